"""The lesson: every step, matrix, title, formula and rule, declared once.

Page, figures, arithmetic and exports derive from it.

A rule says how one number of a matrix comes from its operands:

    given         the number is an input
    add           the sum of the operands' numbers at the same place
    norm          layer norm: (r − mean of the row) / sqrt(variance of the row + ε) · gain + bias   (Ba et al. 2016)
    project       a row of x times a row of the weight matrix (+ bias)
    dot           a row of q times a row of k
    scale         divided by sqrt(d_out)                                (Vaswani et al. 2017, section 3.2.1)
    mask          kept where visible, −∞ elsewhere
    softmax       e^(number − the row's best), divided by the row's sum of those
    weighted_sum  a row of weights times a column of v
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import glossary, text

if TYPE_CHECKING:
    from .compute import Result

TITLE = "Causal attention, step by step"
MOST_PIECES = 6  # of a split word that are listed
QUERY_AXIS = "query: who looks"
KEY_AXIS = "key: who is looked at"
LAYERS = ("first", "second")  # what the layers of a model with two are called; those of a larger one have numbers
ORDER_NOTE = (
    "Some texts mask first and scale after. The weights are the same either way; the numbers left here would be larger "
    "by the factor √d."
)


@dataclass(frozen=True)
class Matrix:
    """A tensor as it is shown: `rows` and `columns` are "query", "key", "token" or "dimension"."""

    name: str
    symbol: str
    title: str
    rows: str
    columns: str
    rule: str
    operands: tuple[str, ...] = ()
    role: str = ""  # "query", "key" or "value": the hue of its outline
    unit: bool = False  # between 0 and 1 on a fixed scale; else signed, centred on 0


MATRICES = {
    m.name: m
    for m in (
        Matrix("embedding", "e", "embedding", "token", "dimension", "given"),
        Matrix("position", "p", "position", "token", "dimension", "given"),
        Matrix("earlier", "c₀", "written by the first layer", "token", "dimension", "given"),
        Matrix("earlier_weights", "weights₁", "weights of the first layer", "query", "key", "given", unit=True),
        Matrix("before", "h", "written by the layers before", "token", "dimension", "given"),
        Matrix(
            "r", "r", "residual stream", "token", "dimension", "add", ("embedding", "position", "earlier", "before")
        ),
        Matrix("x", "x", "input", "token", "dimension", "given"),
        Matrix("W_query", "W_query", "query weights", "dimension", "dimension", "given", role="query"),
        Matrix("W_key", "W_key", "key weights", "dimension", "dimension", "given", role="key"),
        Matrix("W_value", "W_value", "value weights", "dimension", "dimension", "given", role="value"),
        Matrix("q", "q", "queries", "query", "dimension", "project", ("x", "W_query"), "query"),
        Matrix("k", "k", "keys", "key", "dimension", "project", ("x", "W_key"), "key"),
        Matrix("scores", "scores", "scores", "query", "key", "dot", ("q", "k")),
        Matrix("scaled", "scaled", "scaled scores", "query", "key", "scale", ("scores",)),
        Matrix("masked", "masked", "masked scores", "query", "key", "mask", ("scaled",)),
        Matrix("weights", "weights", "weights", "query", "key", "softmax", ("masked",), unit=True),
        Matrix("v", "v", "values", "key", "dimension", "project", ("x", "W_value"), "value"),
        Matrix("context", "context", "context", "query", "dimension", "weighted_sum", ("weights", "v")),
    )
}

SOURCES = ("embedding", "position", "earlier", "earlier_weights", "before", "r")  # there only if the model has them
X_OPERANDS = {"given": (), "add": ("embedding", "position"), "norm": ("r",)}


@dataclass(frozen=True)
class Step:
    """One step of the lesson: `verb` is its title, `name` its hook, `shows` the matrices in reading order."""

    name: str
    verb: str
    tensor: str  # the tensor's name, small beside the verb
    shows: tuple[str, ...]
    words: str
    formula: str  # with {T}, {d_in}, {d_out}, {equals}, {root} of the run


STEPS = (
    Step(
        "tokens",
        "Split",
        "tokens",
        (),
        "The sentence is cut into tokens: the pieces that the head compares with one another.",
        "sentence → {T} tokens",
    ),
    Step(
        "x",
        "Embed",
        "x",
        ("x",),
        "Each token becomes a row of numbers. All the head ever sees is these rows.",
        "x: {T} tokens × {d_in} numbers",
    ),
    Step(
        "qk",
        "Ask and offer",
        "q, k",
        ("x", "q", "k"),
        "Each row is turned into two more: a query, what this token asks for, and a key, what it offers to others.",
        "q = x · W_queryᵀ,  k = x · W_keyᵀ   ({T} × {d_in}) · ({d_in} × {d_out}) → {T} × {d_out}",
    ),
    Step(
        "scores",
        "Match",
        "scores",
        ("q", "k", "scores"),
        "Every query is multiplied with every key, number by number, and the products are added up: one score a pair.",
        "scores = q · kᵀ   ({T} × {d_out}) · ({d_out} × {T}) → {T} × {T}",
    ),
    Step(
        "scaled",
        "Scale",
        "scaled",
        ("scores", "scaled"),
        "Longer vectors give larger sums. Dividing by √d keeps the scores at one size, so that the softmax stays soft.",
        "scaled = scores / √{d_out} {equals} scores / {root}",
    ),
    Step(
        "masked",
        "Hide the future",
        "masked",
        ("scaled", "masked"),
        "A token may look at itself and at what came before. Everything after it is set to −∞, which the softmax "
        "turns into exactly 0.",
        "masked = scaled where key ≤ query, else −∞",
    ),
    Step(
        "weights",
        "Share out",
        "weights",
        ("masked", "weights"),
        "Softmax turns each row of scores into shares of attention that add up to 1.",
        "weights = softmax(masked), row by row",
    ),
    Step(
        "context",
        "Blend",
        "v, context",
        ("weights", "v", "context"),
        "Each token takes its share of every value it looks at. The blend is its context: what the head found for it.",
        "context = weights · v   ({T} × {T}) · ({T} × {d_out}) → {T} × {d_out}",
    ),
    Step(
        "next",
        "Guess",
        "next",
        ("context",),
        "The context is added to what the token already carried; from the sum the model guesses the next token.",
        "r + context → norm → output layer → probabilities",
    ),
)
STEP = {step.name: step for step in STEPS}

MASK_TITLES = {
    "causal": "Causal: −∞ before the softmax",
    "none": "No mask: everyone sees everyone",
    "after": "Zero after the softmax",
    "after_renormalised": "Zero after, then renormalise",
}

# What the two mask-dependent steps say under another mask than "causal": (masked words, masked formula, weights words,
# weights formula).
_OTHER_MASKS = {
    "none": (
        "No causal mask: every token may look at every other one, also at tokens that it should not know yet.",
        "masked = scaled",
        STEP["weights"].words,
        STEP["weights"].formula,
    ),
    "after": (
        "This mask acts after the softmax, so no future is hidden yet: it takes part in every row's sum.",
        "masked = scaled",
        "Softmax over all keys, then the future is set to 0. The rows no longer add up to 1: what is missing went to "
        "tokens that were not allowed to be seen.",
        "weights = softmax(masked) · (key ≤ query)",
    ),
    "after_renormalised": (
        "This mask acts after the softmax, so no future is hidden yet.",
        "masked = scaled",
        "Softmax over all keys, the future set to 0, and each row divided by what is left: the same weights as with −∞ "
        "before the softmax.",
        "weights = softmax(masked) · (key ≤ query), each row / its sum",
    ),
}


def operands(matrix: str, result: Result) -> tuple[str, ...]:
    """The matrices that a number of `matrix` is made from in this run."""
    if matrix == "x":
        names = X_OPERANDS[result.model.x_rule]
    else:
        names = MATRICES[matrix].operands
    return tuple(n for n in names if n not in SOURCES or n in result.sources)


def words(step: Step, result: Result) -> tuple[str, str]:
    """The step's sentence and formula for this run's settings and sizes."""
    request = result.request
    sentence, formula = step.words, step.formula
    if request.mask != "causal" and step.name in ("masked", "weights"):
        sentence, formula = _OTHER_MASKS[request.mask][slice(0, 2) if step.name == "masked" else slice(2, 4)]
    if step.name == "tokens":
        sentence += _split(result)
    if step.name == "qk" and result.model.head(request).W_query.bias is not None:
        formula = formula.replace("W_queryᵀ", "W_queryᵀ + b_query").replace("W_keyᵀ", "W_keyᵀ + b_key")
    if step.name == "scaled" and not request.scale:
        sentence, formula = "Scaling is off: the scores go on as they are.", "scaled = scores"
    if step.name == "masked" and not all(t.real for t in result.tokens):
        sentence += " Padding is no part of the sentence: its keys are hidden from everyone."
        if request.mask == "causal":
            formula = "masked = scaled where key ≤ query and key is no padding, else −∞"
        else:
            formula = "masked = scaled where key is no padding, else −∞"
    if step.name == "weights" and any(tensor == "weights" for tensor, *_ in request.edits):
        sentence += " A weight that you set need not fit in: then the row's sum is another."
    if step.name == "weights" and request.dropout:
        sentence += f" Then dropout strikes out some of them and divides the others by {1 - request.dropout:g}."
        formula += f", kept / {1 - request.dropout:g}"
    if step.name == "x" and result.model.x_rule == "norm":
        sentence = (
            "Each token becomes a row of numbers: its embedding plus its position"
            + (", plus what the first layer wrote" if "earlier" in result.sources else "")
            + (", plus all that the layers before wrote" if "before" in result.sources else "")
            + ". The head reads this stream r after a layer norm: x = norm(r)."
        )
        formula = (
            "r = " + " + ".join(MATRICES[n].symbol for n in operands("r", result)) + ",  " + "x = norm(r): {T} × {d_in}"
        )
    if step.name == "next" and result.guess is not None:
        formula = " → ".join(("r + context", *result.model.path(request)))
        if request.head_off:
            sentence = "The head is left out: the model guesses from what the token carried without it."
            formula = formula.replace("r + context", "r")
        if joint := result.model.joint(request):
            formula = " → ".join((*joint, "+ r", *result.model.path(request)))
            if not request.head_off:
                formula = f"context and {formula}"
                sentence = (
                    f"This head's context is one part among many: {joint[0]} and further steps stand between it and "
                    "the guess of the whole model."
                )
    if step.name == "next" and result.guess is None:
        sentence = (
            f"The {result.model.name} model ends at the context: it has no output layer, "
            "so there is nothing to guess with."
        )
        formula = "context → (no output layer)"
    T, d_in, d_out = len(result.tokens), result.trace.x.shape[-1], result.trace.q.shape[-1]
    root = f"{math.sqrt(d_out):.4f}".rstrip("0").rstrip(".")
    equals = "=" if float(root) ** 2 == d_out else "≈"  # "=" only where the printed number is the number
    return sentence, formula.format(T=T, d_in=d_in, d_out=d_out, root=root, equals=equals)


def _split(result: Result) -> str:
    """What a token is to this run's tokenizer."""
    if result.request.tokenizer == "characters":
        return " Here every character is one."
    if result.request.tokenizer != "subwords":
        return ""
    found = text.split_words(result.tokens)
    rule = " This vocabulary holds common words whole and splits what is rarer into pieces"
    if not found:
        return f"{rule}; here nothing is split."
    # An example of letters, if there is one, and with few pieces.
    word, pieces = min(found, key=lambda pair: (any(not t.text for t in pair[1]), len(pair[1])))
    labels = [t.label.removeprefix("␣") for t in pieces]
    if len(labels) > MOST_PIECES:
        labels[MOST_PIECES - 1 :] = [f"{len(labels) - MOST_PIECES + 1} more"]
    return f"{rule}: for example, {text.shorten(text.label(word), 30)} into {', '.join(labels[:-1])} and {labels[-1]}."


SETTINGS = {  # what the page calls what can be changed about a run
    "sentence": "sentence",
    "model": "model",
    "layer": "layer",
    "head": "head",
    "tokenizer": "tokenizer",
    "mask": "mask",
    "scale": "scaling",
    "pad_to": "padding",
    "pad_side": "side of the padding",
    "dropout": "dropout",
    "head_off": "attention switch",
    "edits": "edited numbers",
    "checkpoint": "training",
    "d_model": "size of x",
    "d_head": "size of q and k",
    "seed": "seed",
    "qkv_bias": "bias",
    "positions": "positions",
}

QUIZ = {
    "button": "Why {guess}?",
    "question": "Before you see it: to guess what follows {query}, which token would you look at? Choose one.",
    "skip": "Just show me",
    "same": "So does the head: {key} gets {most} of its attention.",
    "other": "The head gives {chosen} {own}. It looks most at {key}: {most}.",
}


def _looks_at_its_guess(result: Result) -> bool:
    """Whether "why this guess?" is answered by where the head looks: else the question would mislead."""
    request, guess = result.request, result.guess
    if guess is None or request.head_off or request.edits or request.layer != result.model.layers - 1:
        return False
    last = result.real_rows[-1]
    looked_at = result.tokens[int(result["weights"][last].argmax())]
    return last > 0 and looked_at.label.strip("␣") == guess.labels[0].strip("␣")


def for_page(result: Result) -> dict[str, Any]:
    """The lesson as the explorer needs it: steps with this run's words, matrices with their rules, axis titles."""
    from .notices import headline, notices  # they read results; the declarations above do not

    notice = notices(result)
    steps = []
    for step in STEPS:
        sentence, formula = words(step, result)
        told = {"words": sentence, "formula": formula, "notice": notice.get(step.name, "")}
        steps.append(vars(step) | told | {"terms": glossary.terms(step, result, *told.values())})
    matrices = {
        name: vars(m) | {"operands": operands(name, result)}
        for name, m in MATRICES.items()
        if name in result.trace or name in result.sources or name.startswith("W_")
    }
    matrices["x"]["rule"] = result.model.x_rule if matrices["x"]["operands"] else "given"
    return {
        "title": TITLE,
        "headline": headline(result),
        "steps": steps,
        "matrices": matrices,
        "glossary": {term: meaning for term, (_, meaning) in glossary.GLOSSARY.items()},
        "axes": {"query": QUERY_AXIS, "key": KEY_AXIS, "token": "token", "dimension": "dimension"},
        "masks": MASK_TITLES,
        "settings": SETTINGS,
        "order_note": ORDER_NOTE if result.request.mask == "causal" and result.request.scale else "",
        "joint": result.model.joint(result.request),
        "path": result.model.path(result.request),
        "quiz": QUIZ if _looks_at_its_guess(result) else None,
    }
