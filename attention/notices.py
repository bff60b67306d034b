"""Sentences about the very example on screen, computed from its numbers; none is written in advance."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from .text import split_words

if TYPE_CHECKING:
    from .compute import Result


def last_real(result: Result) -> int:
    """The row of the last real token: the one that the next word is guessed from."""
    return result.real_rows[-1]


def best_key(result: Result, row: int) -> int:
    """The key with the largest weight in a row; the first of equal ones."""
    return int(result["weights"][row].argmax())


ROUNDING = 1e-5  # a share that is above 1 by no more than that is 1


def percent(share: float) -> str:
    """A share for a sentence; never rounded to 0 % or 100 % where it is neither. What is no share is just a number."""
    if not 0 <= share <= 1 + ROUNDING:
        return number(share)
    if 0.995 <= share < 1:
        return "over 99 %"
    if 0 < share <= 0.005:
        return "under 1 %"
    return f"{share:.0%}".replace("%", " %")


def number(value: float) -> str:
    """A number for a sentence: two decimals, four where it is small, and never 0 where it is not."""
    digits = ".2f" if value == 0 or abs(value) >= 0.1 else ".4f" if abs(value) >= 0.0001 else ".1e"
    return f"{value:{digits}}".replace("-", "−")


def loading(done: int, total: int) -> str:
    """How far a model is on its way, in bytes; `total` is 0 once all of it is here and is read."""
    if not total:
        return "Loading the model"
    return f"Downloading the model, this once: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"


EVEN = 1.1  # times the average share: up to here a row counts as even


def headline(result: Result) -> str:
    """What the chosen head does for the last token, in one sentence."""
    names, row = result.names, last_real(result)
    weights, key = result["weights"][row], best_key(result, row)
    start = names[row]
    if result.request.head_off:
        return _left_out(result)
    if result.request.edits:
        count = len(result.request.edits)
        return (
            f"You changed {'a number' if count == 1 else f'{count} numbers'}; what follows was worked out from there."
        )
    model, request = result.model, result.request
    if result.guess and model.heads > 1:
        start = f"In layer {request.layer}, head {request.head}, {names[row]}"
    elif result.guess:  # only the last layer's head speaks to the guess directly
        last = request.layer == model.layers - 1
        start = f"{f'To guess the next {_unit(result)}' if last else 'In the first layer'}, {names[row]}"
    share = float(weights[key])
    if share <= 0:
        return f"{names[row]} looks nowhere: none of its weights is above zero."
    if len(result.real_rows) == 1 and share == 1:
        return f"{names[row]} is alone, so all its attention stays with itself."
    if share >= 0.5:
        if key == row:
            return f"{start} looks at itself."
        return f"{start} looks back at {names[key]}." if key < row else f"{start} looks ahead at {names[key]}."
    seen = int((weights > 0).sum())
    target = "itself" if key == row else names[key]
    if seen > 1 and share < EVEN / seen and result.request.mask != "after" and not result.request.dropout:
        return f"{start} spreads its attention almost evenly over {seen} tokens."
    if seen == 1:
        return f"{start} gives {percent(share)} to {target}, and nothing to any other token."
    return f"{start} spreads its attention over {seen} tokens; the largest share, {percent(share)}, goes to {target}."


def _left_out(result: Result) -> str:
    """The headline where the head is left out, and which one that is where there are several."""
    request, model, name = result.request, result.model, result.names[last_real(result)]
    if model.heads > 1:
        return (
            f"Head {request.head} of layer {request.layer} is off: what {name} looks at there does not reach the guess."
        )
    if request.layer < model.layers - 1:
        return f"Attention is off in the first layer: what {name} looks at there does not reach the second one."
    return f"Attention is off: what {name} looks at does not reach the guess."


def _unit(result: Result) -> str:
    """ "word", where every word of the sentence is one token and the guess begins a word of its own; else "token"."""
    guess = result.guess.texts[0]
    return "word" if guess[:1] == " " and guess[1:].isalpha() and not split_words(result.tokens) else "token"


def notices(result: Result) -> dict[str, str]:
    """One thing to notice at each step, by the step's name."""
    steps = (_tokens, _x, _qk, _scores, _scaled, _masked, _weights, _context, _next)
    return {step.__name__[1:]: step(result) for step in steps}


def _tokens(result: Result) -> str:
    tokens = [t for t in result.tokens if t.real]
    (most, count), *_ = Counter(t.id for t in tokens).most_common(1)
    if count < 2:
        few = "One token: it can only look at itself."
        return f"{len(tokens)} tokens, every one different." if len(tokens) > 1 else few
    same = [result.names[t.index] for t in tokens if t.id == most]
    return f"{_list(same[:4])} are the same token, so they start from the same numbers."


def _x(result: Result) -> str:
    x, tokens = result["x"], [t for t in result.tokens if t.real]
    for i, a in enumerate(tokens):
        for b in tokens[i + 1 :]:
            if a.id == b.id:
                gap = float(np.abs(x[a.index] - x[b.index]).max())
                pair = f"{result.names[a.index]} and {result.names[b.index]}"
                if gap == 0:
                    return f"{pair} have the same row: nothing here says where they stand."
                differ = f"{pair} are the same token, yet their rows differ by up to {number(gap)}"
                if "earlier" in result.sources or "before" in result.sources:
                    return f"{differ}: where they stand and what came before is in the numbers too."
                return f"{differ}: the place is in the numbers too."
    if len(tokens) == 1:
        return f"One row of {x.shape[1]} numbers." if x.shape[1] > 1 else "One row of one number."
    return f"{len(tokens)} rows of {x.shape[1]} numbers, no two tokens the same."


def _qk(result: Result) -> str:
    name, row = result.names[last_real(result)], last_real(result)
    q, k = result["q"][row].astype(float), result["k"][row].astype(float)
    if not q.any() or not k.any():
        return f"A query or key of {name} is all zeros: it has no direction."
    cosine = float(q @ k / (np.linalg.norm(q) * np.linalg.norm(k)))
    return (
        f"{name} asks for one thing and offers another: "
        f"the angle between its own query and key is {np.degrees(np.arccos(np.clip(cosine, -1, 1))):.0f}°."
    )


def _scores(result: Result) -> str:
    scores, row = result["scores"], last_real(result)
    others = [i for i in result.real_rows if i != row]
    if not others:
        return "One token, one score: with itself."
    column = others[int(scores[row, others].argmax())]
    a, b = result.names[row], result.names[column]
    there, back = number(float(scores[row, column])), number(float(scores[column, row]))
    if there == back:
        return f"{a} scores {there} with {b}, and {b} scores {back} with {a}: here looking is mutual."
    return f"Looking is not mutual: {a} scores {there} with {b}, but {b} scores {back} with {a}."


def _scaled(result: Result) -> str:
    real = slice(result.real_rows[0], last_real(result) + 1)  # padding is on one side
    scores, scaled = result["scores"][real, real], result["scaled"][real, real]
    scale = result.request.scale
    if scores.size == 1:
        one = number(scores[0, 0])
        return f"The one score, {one}, becomes {number(scaled[0, 0])}." if scale else f"The one score stays {one}."
    spread = f"The scores spread by {number(scores.std(dtype=float))} (standard deviation)"
    return f"{spread}; divided, by {number(scaled.std(dtype=float))}." if scale else f"{spread}, undivided."


def _masked(result: Result) -> str:
    hidden, T = int(np.isneginf(result["masked"]).sum()), len(result.tokens)
    names, real = result.names, result.real_rows
    first, row = real[0], real[-1]
    if result.request.mask == "causal":
        text = f"{hidden} of {T * T} numbers are gone. {names[first]} sees only itself"
        return f"{text}, {names[row]} sees {int(result.trace.visible[row].sum())}." if row != first else f"{text}."
    if row == first:
        text = f"{names[first]} has no future to hide."
    else:
        text = f"{names[first]} keeps its numbers for all {len(real)} tokens, the future's too."
    return f"{text} {hidden} numbers belong to padding." if hidden else text


def _weights(result: Result) -> str:
    weights, names, request = result["weights"], result.names, result.request
    first, row = result.real_rows[0], last_real(result)
    key = best_key(result, row)
    share, total = float(weights[row, key]), f"{weights[first].sum():.2f}"
    as_computed = not request.dropout and not any(edit[0] == "weights" for edit in request.edits)
    if request.mask == "after" and as_computed and float(total) < 1:
        return f"Row {names[first]} adds up to {total} only: {1 - float(total):.2f} leaked to tokens in its future."
    if share <= 0:
        return f"{names[row]} gives nothing to anyone: none of its weights is above zero."
    text = f"{names[row]} gives {percent(share)} to {'itself' if key == row else names[key]}."
    alone = request.mask in ("causal", "after_renormalised") and weights[first, first] == 1
    if alone and row != first:
        text += f" {names[first]} can look only at itself, so it gives itself all."
    return text + _written_before(result, key)


def _written_before(result: Result, key: int) -> str:
    """How much of the score with `key` comes from what the first layer wrote there, where that decides."""
    if "earlier" not in result.sources or result.request.edits:
        return ""
    earlier = result.sources["earlier_weights"][key].numpy()
    at, row = int(earlier.argmax()), last_real(result)
    if at == key or earlier[at] < 0.5:
        return ""
    seen = result.trace.visible[row].numpy()
    part, scaled = scaled_part(result, row, "earlier"), result["scaled"][row]
    if not part[key] - part[seen].mean() > (scaled[key] - scaled[seen].mean()) / 2 > 0:  # it sets the key apart
        return ""
    names = result.names
    return (
        f" Of the scaled score {number(scaled[key])}, {number(part[key])} comes from what the first layer wrote at "
        f"{names[key]}; there {names[key]} gave {percent(float(earlier[at]))} to {names[at]}."
    )


def scaled_part(result: Result, row: int, source: str) -> np.ndarray:
    """(T,) the part of a row's scaled scores that one summand of r brings: q · W_key (gain · (c − mean c) / std r).

    Layer norm of a sum, its divisor given, is the sum of its parts, and a constant from the biases.
    """
    norm, head = result.model.norm(result.request), result.model.head(result.request)
    r, c = (result.sources[name].numpy().astype(float) for name in ("r", source))  # (T, C)
    normed = (c - c.mean(1, keepdims=True)) / np.sqrt(r.var(1, keepdims=True) + norm.eps) * norm.weight.numpy()
    scores = normed @ head.W_key.weight.numpy().T @ result["q"][row]  # (T,)
    return scores / math.sqrt(result["q"].shape[1]) if result.request.scale else scores


def _context(result: Result) -> str:
    row, names = last_real(result), result.names
    if not result["weights"][row].any():
        return f"{names[row]}'s weights are all zero, so its context is all zeros."
    key = best_key(result, row)
    gap = float(np.abs(result["context"][row] - result["v"][key]).max())
    if gap == 0:
        return f"{names[row]}'s context is the value of {names[key]}, number for number."
    share = float(result["weights"][row, key])
    return (
        f"{names[row]}'s context is {percent(share)} the value of {names[key]}; "
        f"no number of it is further than {math.ceil(gap * 100) / 100:.2f} from that value's."
    )


def _next(result: Result) -> str:
    if result.guess is None:
        return ""
    guess = result.guess
    return f"First guess: {guess.labels[0]}, {percent(guess.probabilities[0])}."


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
