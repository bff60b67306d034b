"""The lesson's words: every sentence is parsed, and each number, name and claim in it recomputed from the tensors.

A sentence of a form that this file does not know fails: a new claim needs its own check.
"""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import strategies
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings

from attention import attend, glossary, lesson, models
from attention.notices import headline, notices, number, percent

NUMBER = r"(−?\d+(?:\.\d+)?(?:e−?\d+)?)"
SHARE = r"(\d+ %|under 1 %|over 99 %|−?\d+\.\d+(?:e−\d+)?)"


def facts(result):
    """What the sentences are about, in float64, gathered without the code under test."""
    real = [t.index for t in result.tokens if t.real]
    names = sorted(set(result.names), key=len, reverse=True)
    f = SimpleNamespace(
        result=result,
        T=len(result.tokens),
        real=real,
        first=real[0],
        row=real[-1],
        names=result.names,
        ids=[t.id for t in result.tokens],
        NAME="(" + "|".join(map(re.escape, names)) + ")",
    )
    for name in ("x", "q", "k", "v", "scores", "scaled", "masked", "weights", "context", "visible"):
        setattr(f, name, result[name].astype(np.float64))
    return f


def says(f, sentence, pattern):
    """The parts of a sentence of this form, else None. NAME, #, % stand for a name, a number, a share."""
    pattern = re.sub(r"[.?()+°]", lambda m: "\\" + m[0], pattern)
    whom = "(itself|" + f.NAME[1:]
    for placeholder, meaning in {"%": SHARE, "#": NUMBER, "WHOM": whom, "NAME": f.NAME}.items():
        pattern = pattern.replace(placeholder, meaning)
    found = re.fullmatch(pattern, sentence)
    return found and found.groups()


def is_number(printed, value):
    """The printed number is the value, to its last printed digit, and is 0 only where the value is."""
    printed = printed.replace("−", "-")
    if float(printed) == 0:
        return value == 0
    digits = printed.split("e")[0].partition(".")[2]
    power = 10.0 ** int(printed.partition("e")[2] or 0)
    return abs(float(printed) - value) <= 0.5000001 * 10 ** -len(digits) * power + 1e-6 * abs(value)


def is_share(printed, value):
    if printed == "under 1 %":
        return 0 < value < 0.01
    if printed == "over 99 %":
        return 0.99 < value < 1
    if not printed.endswith("%"):
        return not 0 <= value <= 1 and is_number(printed, value)
    shown = int(printed.removesuffix(" %"))
    return abs(shown - 100 * value) <= 0.5000001 + 1e-5 * abs(shown) and (shown != 0 or value == 0)


def one_of(f, sentence, forms):
    """The sentence must have one of these forms, and what goes with the form must hold."""
    for pattern, holds in forms.items():
        parts = says(f, sentence, pattern)
        if parts is not None:
            assert holds(*parts), sentence
            return
    raise AssertionError(f"nobody checks this sentence: {sentence!r}")


# --- one function a step: the forms its notice may take, and what must be true of each -------------------------------


def in_pieces(f):
    """Does a word or a character lie in more than one token? From the tokens' places in the sentence alone."""
    real = [f.result.tokens[i] for i in f.real]
    sentence = f.result.request.sentence
    spans = [
        (m.start() + m[0].startswith(" "), m.end()) for m in re.finditer(r" ?[\w\u0300-\u036f]+|.", sentence, re.S)
    ]
    inside = any(a < t.start < b for a, b in spans for t in real)
    return inside or any(not t.text for t in real)


def check_headline(f, sentence):
    w, n = f.weights[f.row], f.names
    best = w.max()
    own, request, guess = f.result.model, f.result.request, ""
    if f.result.guess and own.heads > 1:
        guess = f"In layer {request.layer}, head {request.head}, "
    elif f.result.guess:
        word = not in_pieces(f) and re.match(r" [^\W\d_]+$", f.result.guess.texts[0])
        guess = f"To guess the next {'word' if word else 'token'}, "
        if request.layer != own.layers - 1:
            guess = "In the first layer, "
    one_of(
        f,
        sentence,
        {
            "Attention is off: what NAME looks at does not reach the guess.": lambda a: (
                a == n[f.row] and request.head_off and own.heads == 1 and request.layer == own.layers - 1
            ),
            "Attention is off in the first layer: what NAME looks at there does not reach the second one.": lambda a: (
                a == n[f.row] and request.head_off and own.layers == 2 and request.layer == 0
            ),
            "Head # of layer # is off: what NAME looks at there does not reach the guess.": lambda head, layer, a: (
                a == n[f.row] and request.head_off and (int(head), int(layer)) == (request.head, request.layer)
            ),
            "You changed a number; what follows was worked out from there.": lambda: len(request.edits) == 1,
            "You changed # numbers; what follows was worked out from there.": lambda count: (
                int(count) == len(request.edits) > 1
            ),
            guess + "NAME spreads its attention almost evenly over # tokens.": lambda a, count: (
                a == n[f.row] and int(count) == (w > 0).sum() > 1 and best < 1.1 * w.sum() / int(count)
            ),
            "NAME looks nowhere: none of its weights is above zero.": lambda a: a == n[f.row] and best <= 0,
            "NAME is alone, so all its attention stays with itself.": lambda a: (
                a == n[f.row] and len(f.real) == 1 and w[f.row] == 1
            ),
            guess + "NAME looks at itself.": lambda a: a == n[f.row] and w[f.row] == best >= 0.5,
            guess + "NAME looks back at NAME.": lambda a, b: (
                a == n[f.row] and n.index(b) < f.row and w[n.index(b)] == best >= 0.5
            ),
            guess + "NAME looks ahead at NAME.": lambda a, b: (
                a == n[f.row] and n.index(b) > f.row and w[n.index(b)] == best >= 0.5
            ),
            guess + "NAME gives % to WHOM, and nothing to any other token.": lambda a, s, b: (
                a == n[f.row] and is_share(s, best) and best < 0.5 and (w > 0).sum() == 1
                and w[f.row if b == "itself" else n.index(b)] == best
            ),
            guess + "NAME spreads its attention over # tokens; the largest share, %, goes to WHOM.": (
                lambda a, count, s, b: (
                    a == n[f.row] and int(count) == (w > 0).sum() > 1 and is_share(s, best) and best < 0.5
                    and w[f.row if b == "itself" else n.index(b)] == best
                )
            ),
        },
    )  # fmt: skip


def check_tokens(f, sentence):
    ids = [f.ids[i] for i in f.real]
    if max(map(ids.count, ids)) > 1:
        groups = [
            [f.names[i] for i in f.real if f.ids[i] == id_][:4]
            for id_ in ids
            if ids.count(id_) == max(map(ids.count, ids))
        ]
        lists = [f"{', '.join(group[:-1])} and {group[-1]}" for group in groups]
        assert sentence in [f"{names} are the same token, so they start from the same numbers." for names in lists]
        return
    one_of(
        f,
        sentence,
        {
            "# tokens, every one different.": lambda c: int(c) == len(ids) == len(set(ids)) > 1,
            "One token: it can only look at itself.": lambda: len(ids) == 1,
        },
    )


def check_x(f, sentence):
    def pair(a, b, gap="0"):
        a, b = f.names.index(a), f.names.index(b)
        difference = np.abs(f.x[a] - f.x[b]).max()
        return a in f.real and b in f.real and f.ids[a] == f.ids[b] and is_number(gap, difference)

    ids = [f.ids[i] for i in f.real]
    one_of(
        f,
        sentence,
        {
            "NAME and NAME have the same row: nothing here says where they stand.": pair,
            "NAME and NAME are the same token, yet their rows differ by up to #: the place is in the numbers too.": (
                pair
            ),
            "NAME and NAME are the same token, yet their rows differ by up to #: "
            "where they stand and what came before is in the numbers too.": lambda *parts: (
                pair(*parts) and (f.result.request.layer or 0) > 0
            ),
            "# rows of # numbers, no two tokens the same.": lambda r, c: (
                int(r) == len(ids) == len(set(ids)) and int(c) == f.x.shape[1]
            ),
            "One row of # numbers.": lambda c: len(ids) == 1 and int(c) == f.x.shape[1] > 1,
            "One row of one number.": lambda: len(ids) == 1 and f.x.shape[1] == 1,
        },
    )


def check_qk(f, sentence):
    q, k = f.q[f.row], f.k[f.row]

    def angle(a, degrees):
        cosine = q @ k / math.sqrt(q @ q) / math.sqrt(k @ k)
        return a == f.names[f.row] and abs(int(degrees) - math.degrees(math.acos(max(-1, min(1, cosine))))) <= 0.51

    form = "NAME asks for one thing and offers another: the angle between its own query and key is #°."
    zeros = "A query or key of NAME is all zeros: it has no direction."
    one_of(f, sentence, {form: angle, zeros: lambda a: a == f.names[f.row] and not (q.any() and k.any())})


def check_scores(f, sentence):
    def pair(a, there, b, b2, back, a2):
        i, j = f.names.index(a), f.names.index(b)
        others = [f.scores[i, key] for key in f.real if key != i]
        return (
            (a, b, i) == (a2, b2, f.row) and j in f.real and j != i and f.scores[i, j] == max(others)
            and is_number(there, f.scores[i, j]) and is_number(back, f.scores[j, i])
        )  # fmt: skip

    one_of(
        f,
        sentence,
        {
            "Looking is not mutual: NAME scores # with NAME, but NAME scores # with NAME.": lambda *p: (
                pair(*p) and p[1] != p[4]
            ),
            "NAME scores # with NAME, and NAME scores # with NAME: here looking is mutual.": lambda *p: (
                pair(*p) and p[1] == p[4]
            ),
            "One token, one score: with itself.": lambda: len(f.real) == 1,
        },
    )


def check_scaled(f, sentence):
    inner = np.ix_(f.real, f.real)
    scores, scaled, scale = f.scores[inner], f.scaled[inner], f.result.request.scale
    one_of(
        f,
        sentence,
        {
            "The scores spread by # (standard deviation); divided, by #.": lambda a, b: (
                scale and is_number(a, scores.std()) and is_number(b, scaled.std())
            ),
            "The scores spread by # (standard deviation), undivided.": lambda a: (
                not scale and is_number(a, scores.std())
            ),
            "The one score, #, becomes #.": lambda a, b: (
                scale and scores.size == 1 and is_number(a, scores[0, 0]) and is_number(b, scaled[0, 0])
            ),
            "The one score stays #.": lambda a: not scale and scores.size == 1 and is_number(a, scores[0, 0]),
        },
    )


def check_masked(f, sentence):
    hidden, causal = int(np.isneginf(f.masked).sum()), f.result.request.mask == "causal"
    finite = np.isfinite(f.masked)
    future = not causal and len(f.real) > 1 and finite[f.first, f.real].all()
    padding = hidden == f.T * (f.T - len(f.real))  # a column for each padded key
    n = f.names
    one_of(
        f,
        sentence,
        {
            "# of # numbers are gone. NAME sees only itself.": lambda h, t, a: (
                causal and int(h) == hidden and int(t) == f.T**2 and len(f.real) == 1 and a == n[f.first]
                and finite[f.first].sum() == 1 and finite[f.first, f.first]
            ),
            "# of # numbers are gone. NAME sees only itself, NAME sees #.": lambda h, t, a, b, c: (
                causal and int(h) == hidden and int(t) == f.T**2 and (a, b) == (n[f.first], n[f.row])
                and finite[f.first].sum() == 1 and finite[f.first, f.first] and finite[f.row].sum() == int(c)
            ),
            "NAME keeps its numbers for all # tokens, the future's too.": lambda a, c: (
                future and a == n[f.first] and int(c) == len(f.real) and hidden == 0
            ),
            "NAME keeps its numbers for all # tokens, the future's too. # numbers belong to padding.": lambda a, c, h: (
                future and a == n[f.first] and int(c) == len(f.real) and int(h) == hidden and padding
            ),
            "NAME has no future to hide.": lambda a: not causal and f.T == 1,
            "NAME has no future to hide. # numbers belong to padding.": lambda a, h: (
                not causal and len(f.real) == 1 and int(h) == hidden and padding
            ),
        },
    )  # fmt: skip


# The other layer runs as it was trained, whatever is tried with this one.
UNTOUCHED = {"layer": 0, "head": None, "edits": None, "mask": "causal", "scale": True, "dropout": 0.0, "seed": 0}


def parts_of_scaled(f, key):
    """What each summand of r brings to the last row's scaled score with a key, and the biases, by numpy."""
    model, request = f.result.model, f.result.request
    norm, layer = model.norm(request), model.head(request).W_key
    r = f.result.sources["r"][key].double().numpy()
    query = f.q[f.row] / (np.sqrt(f.q.shape[1]) if request.scale else 1)
    W = layer.weight.double().numpy()
    centred = {name: f.result.sources[name][key].double().numpy() for name in ("embedding", "position", "earlier")}
    gain = norm.weight.double().numpy() / np.sqrt(r.var() + norm.eps)
    parts = {name: query @ (W @ (gain * (c - c.mean()))) for name, c in centred.items()}
    return parts | {
        "biases": query @ (W @ norm.bias.double().numpy() + (0 if layer.bias is None else layer.bias.double().numpy()))
    }


def check_weights(f, sentence):
    w, n = f.weights[f.row], f.names

    def gives(a, share, b, first=None):
        key = f.row if b == "itself" else n.index(b)
        good = a == n[f.row] and w[key] == w.max() > 0 and is_share(share, w[key])
        return good and (first is None or (first == n[f.first] and f.weights[f.first, f.first] == 1
                                           and f.visible[f.first].sum() == 1 and f.row != f.first))  # fmt: skip

    def leaks(a, total, leaked):
        row = f.scaled[f.first]
        shares = np.exp(row[f.real] - row[f.real].max())
        ahead = shares[1:].sum() / shares.sum()  # what the first real token gives to its future, by hand
        return (
            f.result.request.mask == "after" and a == n[f.first]
            and abs(float(total) - f.weights[f.first].sum()) <= 0.00501 and abs(float(leaked) - ahead) <= 0.00501
        )  # fmt: skip

    sentence, deeper, tail = sentence.partition(" Of the scaled score ")
    if deeper:
        form = "Of the scaled score #, # comes from what the first layer wrote at NAME; there NAME gave % to NAME."
        total, part, at, a, share, b = says(f, deeper.strip() + " " + tail, form)
        key = n.index(a)
        assert at == a and key == w.argmax() and is_number(total, f.scaled[f.row, key]), tail
        parts = parts_of_scaled(f, key)
        assert is_number(part, parts["earlier"]) and abs(sum(parts.values()) - f.scaled[f.row, key]) < 1e-3, parts
        earlier = attend(**f.result.request.settings() | UNTOUCHED)["weights"][key]  # layer 0 itself
        assert earlier[n.index(b)] == earlier.max() >= 0.5 and is_share(share, earlier.max()), tail
    one_of(
        f,
        sentence,
        {
            "NAME gives % to WHOM.": gives,
            "NAME gives % to WHOM. NAME can look only at itself, so it gives itself all.": gives,
            "NAME gives nothing to anyone: none of its weights is above zero.": lambda a: (
                a == n[f.row] and w.max() <= 0
            ),
            "Row NAME adds up to # only: # leaked to tokens in its future.": leaks,
        },
    )


def check_context(f, sentence):
    w, context, n = f.weights[f.row], f.context[f.row], f.names

    def near(a, share, b, far):
        key = n.index(b)
        gap = np.abs(context - f.v[key]).max()
        return (
            a == n[f.row] and w[key] == w.max() and is_share(share, w[key]) and gap <= float(far) + 1e-9 <= gap + 0.0101
        )

    one_of(
        f,
        sentence,
        {
            "NAME's context is % the value of NAME; no number of it is further than # from that value's.": near,
            "NAME's context is the value of NAME, number for number.": lambda a, b: (
                a == n[f.row] and np.array_equal(context, f.v[n.index(b)])
            ),
            "NAME's weights are all zero, so its context is all zeros.": lambda a: (
                a == n[f.row] and not w.any() and not context.any()
            ),
        },
    )


def check_next(f, sentence):
    guess = f.result.guess
    if guess is None:
        assert sentence == ""
        return
    share = re.fullmatch(f"First guess: {re.escape(guess.labels[0])}, {SHARE}\\.", sentence)[1]
    assert is_share(share, guess.probabilities[0]) and guess.probabilities[0] == max(guess.probabilities)


CHECKS = {
    name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")
}  # fmt: skip


def check_everything(result):
    f = facts(result)
    said = notices(result)
    assert list(said) == [step.name for step in lesson.STEPS]
    for name, sentence in (said | {"headline": headline(result)}).items():
        assert "\n" not in sentence and not re.search(r"\bnan\b|\binf\b", re.sub(f.NAME, "", sentence))
        CHECKS[name](f, sentence)


TABLE = [
    dict(sentence="Hi"),
    dict(sentence="Hi", pad_to=3),
    dict(sentence="Hi", pad_to=3, pad_side="left"),
    dict(sentence="Hi", pad_to=2, mask="none"),
    dict(sentence="Hi", dropout=0.5, seed=1),
    dict(sentence="Hi", dropout=0.5, seed=2),
    dict(sentence="Hi", edits=[["weights", 0, 0, 0.3]]),
    dict(sentence="Hi", edits=[["weights", 0, 0, -1.0]]),
    dict(sentence="Hi", scale=False),
    dict(sentence="the cat saw the cat"),
    dict(sentence="My owl reads. My owl", model="trained"),
    dict(sentence="My owl reads. My owl", model="trained", layer=0),
    dict(sentence="The cat. The", model="trained"),
    dict(sentence="The cat sat. The cat", model="trained"),
    dict(sentence="The cat sat. The cat", model="trained", scale=False),
    dict(sentence="The cat sat. The cat", model="trained", layer=0, head_off=True),
    dict(sentence="The cat sat. The cat", model="trained", head_off=True),
    dict(sentence="the cat", edits=[["weights", 1, 0, 7.0], ["weights", 1, 1, -0.11]]),
    dict(sentence="I love pizza 🤗", model="trained", pad_to=20, pad_side="left"),
    dict(sentence="a a a a a a"),
    dict(sentence="a a a", positions=False),
    dict(sentence="the cat sat", pad_to=6),
    dict(sentence="the cat sat", pad_to=6, pad_side="left"),
    dict(sentence="the cat sat", pad_to=6, pad_side="left", mask="none"),
    dict(sentence="the cat sat", pad_to=6, pad_side="left", mask="after"),
    dict(sentence="the cat sat", mask="after"),
    dict(sentence="the cat sat", mask="after", dropout=0.5),
    dict(sentence="the cat sat", mask="after", edits=[["weights", 0, 0, 0.2]]),
    dict(sentence="the cat sat", mask="after_renormalised"),
    dict(sentence="the cat sat", mask="none"),
    *(dict(sentence="the cat sat", dropout=0.7, seed=seed) for seed in range(6)),
    dict(sentence="the cat sat", edits=[["scores", 2, 0, 1000.0]]),
    dict(sentence="the cat sat", edits=[["scores", 2, 0, 2.0], ["scores", 0, 2, 2.0], ["scores", 2, 1, -9.0]]),
    dict(sentence="the cat sat", edits=[["weights", 2, c, 0.0] for c in range(3)]),
    dict(sentence="the cat sat", edits=[["weights", 2, c, 0.005] for c in range(3)]),
    dict(sentence="the cat", edits=[["weights", 1, 0, -0.001], ["weights", 1, 1, -0.001]]),
    dict(sentence="a , b . c , d", d_head=1, d_model=1),
    dict(sentence="I ❤️ pizza 🤗 ( [PAD] )", qkv_bias=True, pad_to=12),
    dict(sentence="Your journey starts with one step", model="textbook"),
    dict(sentence="one ONE One", model="textbook"),
    dict(sentence="one step", model="textbook", mask="none"),
    dict(sentence="one", model="textbook"),
]


@pytest.mark.parametrize("args", TABLE, ids=str)
def test_every_claim_is_true(args):
    check_everything(attend(**{"model": "untrained"} | args))


@pytest.mark.parametrize("model", models.NAMES)
def test_every_claim_is_true_for_every_models_example(model):
    own = models.get(model)
    for layer in range(own.layers):
        for more in ({}, {"pad_to": 14, "pad_side": "left"}, {"mask": "none"}, {"mask": "after"}, {"dropout": 0.5}):
            check_everything(attend(own.example, model=model, layer=layer, **more))


@given(strategies.settings())
@hypothesis_settings(max_examples=150)
@example({"sentence": "a" * 30, "model": "untrained", "tokenizer": "characters", "mask": "after"})
def test_every_claim_is_true_of_any_request(args):
    result = attend(**args)
    check_everything(result)
    page = lesson.for_page(result)
    assert len(page["steps"]) == len(lesson.STEPS) and page["headline"] == headline(result)


def test_whatever_can_be_changed_has_a_name():
    assert list(lesson.SETTINGS) == list(attend("Hi", model="untrained").request.settings())


def test_this_file_notices_a_false_claim():
    result = attend("the cat sat", model="untrained")
    f, said = facts(result), notices(result)
    lies = {
        "tokens": "4 tokens, every one different.",
        "x": said["x"].replace("16", "17"),
        "scaled": re.sub(r"by (\d)", lambda m: f"by {int(m[1]) + 1}", said["scaled"]),
        "masked": said["masked"].replace("3 of 9", "6 of 9"),
        "weights": re.sub(r"\d+ %", "1 %", said["weights"]),
        "context": re.sub(r"than \d+\.\d\d", "than 9.99", said["context"]),
        "qk": re.sub(r"\d+°", "1°", said["qk"]),
        "scores": said["scores"].replace("scores ", "scores 9"),
        "next": "First guess: cat, 50 %.",
    }
    for name, lie in lies.items():
        assert lie != said[name]
        with pytest.raises(AssertionError):
            CHECKS[name](f, lie)


# --- numbers in sentences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "share", [0, 1e-9, 0.004, 0.005, 0.00501, 0.0149, 0.5, 0.9949, 0.995, 0.99999, 1, 1.43, -0.001, -0.3]
)
def test_percent_never_rounds_to_nothing_or_all(share):
    assert is_share(percent(share), share)


@pytest.mark.parametrize("value", [0, 1e-9, -3e-5, 0.00012, 0.0191, -0.0297, 0.0999, 0.1, 1.005, -123.456, 99999.5])
def test_number_is_zero_only_for_zero(value):
    assert is_number(number(value), value)


# --- formulas and declarations ---------------------------------------------------------------------------------------


def formula(step, sentence="the cat sat", **settings):
    return lesson.words(lesson.STEP[step], attend(sentence, **{"model": "untrained"} | settings))[1]


@pytest.mark.parametrize(("T", "d_in", "d_out"), [(1, 1, 1), (3, 16, 8), (5, 64, 16), (7, 3, 100)])
def test_formulas_carry_the_sizes_of_this_run(T, d_in, d_out):
    settings = dict(sentence=" ".join("abcdefgh"[:T]), d_model=d_in, d_head=d_out)
    assert f"{T} tokens" in formula("tokens", **settings)
    assert f"{T} tokens × {d_in} numbers" in formula("x", **settings)
    assert f"({T} × {d_in}) · ({d_in} × {d_out}) → {T} × {d_out}" in formula("qk", **settings)
    assert f"({T} × {d_out}) · ({d_out} × {T}) → {T} × {T}" in formula("scores", **settings)
    assert f"({T} × {T}) · ({T} × {d_out}) → {T} × {d_out}" in formula("context", **settings)
    everything = [lesson.words(step, attend(**{"model": "untrained"} | settings)) for step in lesson.STEPS]
    assert not any("{" in part or "}" in part for pair in everything for part in pair)


@pytest.mark.parametrize(
    ("d_head", "root"), [(1, "= scores / 1"), (16, "= scores / 4"), (100, "= scores / 10"), (8, "≈ scores / 2.8284")]
)
def test_the_divisor_is_named_and_is_an_equality_only_where_it_is_one(d_head, root):
    assert formula("scaled", d_head=d_head) == f"scaled = scores / √{d_head} {root}"
    assert formula("scaled", d_head=d_head, scale=False) == "scaled = scores"


def test_the_first_step_says_what_the_vocabulary_splits():
    def said(sentence, **settings):
        result = attend(sentence, **settings)
        return result, lesson.words(lesson.STEP["tokens"], result)[0]

    for sentence, split in [
        ("My owl reads. My owl", True), ("The cat sat. The cat", False), ("I love pizza 🤗", True), ("🤗", True),
        ("a\u00a0b", True), ("a  \n\n", False), ("“naïve”", True), ("x" * 90, True),
        ("a supercalifragilistic cat", True),
    ]:  # fmt: skip
        result, words = said(sentence, pad_to=100, pad_side="left")
        assert ("nothing is split" in words) == (not split) == (not in_pieces(facts(result)))
        if not split:
            continue
        word, first, last = re.search(r": for example, (.+) into (.+) and (.+)\.$", words).groups()
        labels = "|".join(t.label.removeprefix("␣") for t in result.tokens if t.real)
        assert "|".join(first.split(", ")) in labels and (last in labels or last.endswith("more"))
        if "/" not in labels and "more" not in last:
            assert first.replace(", ", "") + last == word and word in sentence
    assert "split" not in said("My owl", model="untrained", tokenizer="words")[1]
    assert "every character is one" in said("My owl", model="untrained", tokenizer="characters")[1]
    assert "owl into o, w and l" in said("My owl", model="untrained", tokenizer="subwords")[1]
    assert "split" not in said("one step", model="textbook")[1]


@pytest.mark.parametrize("model", models.NAMES)
def test_every_term_that_a_step_uses_is_explained_there(model):
    terms = {
        "softmax": "softmax", "logit": "logit", "stream": "residual stream r", "norm": "layer norm", "head": "head",
        "token": "token", "embedding": "embedding", "MLP": "MLP", "dropout": "dropout", "output layer": "output layer",
        "output projection": "output projection", "value": "value", "⟨byte ": "byte", "r +": "residual stream r",
    }  # fmt: skip
    assert set(terms.values()) == set(glossary.GLOSSARY)
    sentences = [models.get(model).example, "one step" if model == "textbook" else "naïve zebra"]
    for args in ({}, {"mask": "after"}, {"dropout": 0.5}, {"layer": 0}, {"pad_to": 20}):
        for sentence in sentences:
            page = lesson.for_page(attend(sentence, model=model, **args))
            for step in page["steps"]:
                listed = " ".join(step["terms"])
                meanings = " ".join(page["glossary"][term] for term in step["terms"])
                said = f"{step['words']} {step['formula']} {step['notice']} {meanings}"
                for used, term in terms.items():
                    assert used not in said or term in listed, (step["name"], used)
    if page["path"]:
        assert {"logit", "softmax"} <= set(step["terms"])  # of a guess taken apart, at the last step


def test_a_guess_that_is_a_piece_of_a_character_is_named_by_its_byte():
    for sentence in ("🤗", "naïve zebra"):
        guess = attend(sentence).guess
        assert "�" in guess.texts
        for shown, label in zip(guess.texts, guess.labels, strict=True):
            assert ("�" in shown) == bool(re.search(r"⟨bytes?( [0-9A-F]{2})+⟩", label)) and "�" not in label
    assert "⟨byte F0⟩" in notices(attend("🤗"))["next"]


def test_formulas_follow_the_settings():
    assert "else −∞" in formula("masked") and "padding" not in formula("masked")
    assert formula("masked", mask="none") == formula("masked", mask="after") == "masked = scaled"
    for mask in ("causal", "none", "after", "after_renormalised"):
        padded = formula("masked", mask=mask, pad_to=5)
        assert "key is no padding, else −∞" in padded and ("key ≤ query" in padded) == (mask == "causal")
    assert formula("weights", dropout=0.25).endswith("/ 0.75")
    assert "key ≤ query" in formula("weights", mask="after") and "its sum" in formula(
        "weights", mask="after_renormalised"
    )
    assert "b_query" in formula("qk", qkv_bias=True) and "b_" not in formula("qk")


@pytest.mark.parametrize("model", models.NAMES)
def test_the_page_gets_matrices_that_exist_with_operands_that_exist(model):
    result = attend(models.get(model).example, model=model)
    page = lesson.for_page(result)
    matrices = page["matrices"]
    for name, matrix in matrices.items():
        assert name in result.trace or name in result.sources or name.startswith("W_")
        for operand in matrix["operands"]:
            assert operand in matrices or operand.startswith("W_")  # shown only where a step has room
        assert (matrix["rule"] == "given") == (not matrix["operands"])
    for step in page["steps"]:
        assert set(step["shows"]) <= set(matrices) and step["words"] and step["formula"]
    assert [s["name"] for s in page["steps"]] == [
        "tokens", "x", "qk", "scores", "scaled", "masked", "weights", "context", "next",
    ]  # fmt: skip


def test_the_rules_describe_the_tensors():
    """Each rule of the lesson, carried out in numpy on the operands it names, gives the matrix."""
    result = attend("the cat sat on the mat", model="untrained", d_model=6, d_head=4)
    t = {
        name: result[name].astype(float)
        for name in ("x", "q", "k", "v", "scores", "scaled", "masked", "weights", "context")
    }
    t |= {name: source.numpy().astype(float) for name, source in result.sources.items()}
    head = result.model.head(result.request)
    t |= {w: getattr(head, w).weight.detach().numpy().astype(float) for w in ("W_query", "W_key", "W_value")}
    visible = result["visible"]
    rules = {
        "add": lambda *parts: sum(parts),
        "project": lambda x, W: x @ W.T,
        "dot": lambda q, k: q @ k.T,
        "scale": lambda scores: scores / math.sqrt(4),
        "mask": lambda scaled: np.where(visible, scaled, -np.inf),
        "softmax": lambda m: (e := np.exp(m - m.max(1, keepdims=True))) / e.sum(1, keepdims=True),
        "weighted_sum": lambda weights, v: weights @ v,
    }  # fmt: skip
    done = set()
    for name, matrix in lesson.for_page(result)["matrices"].items():
        if matrix["rule"] != "given":
            computed = rules[matrix["rule"]](*(t[operand] for operand in matrix["operands"]))
            np.testing.assert_allclose(computed, t[name], atol=1e-5)
            done.add(name)
    assert done == {"x", "q", "k", "v", "scores", "scaled", "masked", "weights", "context"}
