"""One validation for every door: what comes back is a request that means the same, or one sentence."""

import json
import math
from dataclasses import FrozenInstanceError, fields, replace
from urllib.parse import parse_qs

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from attention import Request, models
from attention.request import MODEL_OPTIONS

NAMES = [f.name for f in fields(Request) if f.init]
DEFAULTS = {
    "layer": 0, "head": 0, "tokenizer": "words", "mask": "causal", "scale": True, "pad_to": 0, "pad_side": "right",
    "dropout": 0.0, "head_off": False, "edits": (), "checkpoint": None, "d_model": 16, "d_head": 8, "seed": 0,
    "qkv_bias": False, "positions": True,
}  # fmt: skip


def refusal(*args, **kwargs):
    """The sentence that refuses these arguments; it must be one, and must not carry the input back."""
    with pytest.raises(ValueError) as error:
        Request(*args, **kwargs)
    sentence = str(error.value)
    assert type(error.value) is ValueError
    assert "\n" not in sentence and sentence.endswith(".") and len(sentence) < 300, sentence
    return sentence


# --- the written forms -----------------------------------------------------------------------------------------------


@given(strategies.settings())
def test_settings_give_the_request_again(args):
    request = Request(**args)
    settings = request.settings()
    assert list(settings) == NAMES
    again = Request(**settings)
    assert again == request and hash(again) == hash(request) and again.settings() == settings
    assert Request(**json.loads(json.dumps(settings, allow_nan=False))) == request


@given(strategies.settings())
def test_query_gives_the_request_again(args):
    request = Request(**args)
    query = request.query()
    assert query.isascii() and " " not in query
    again = Request.from_query(query)
    assert again == request and again.query() == query
    assert Request.from_query(query + "&__theme=dark&cell=0,1&step=scores") == request


@given(st.text(max_size=60))
def test_any_sentence_survives_the_query_once_cleaned(sentence):
    try:
        request = Request(sentence, "untrained")
    except ValueError:
        return
    assert Request.from_query(request.query()) == request


def test_the_query_leaves_defaults_out_and_is_form_encoded():
    assert Request("Hi", models.DEFAULT).query() == "sentence=Hi"
    query = Request("a b&c=é", "untrained", scale=False, dropout=0.25, edits=[["scores", 1, 0, 2]]).query()
    assert query.startswith("sentence=a+b%26c%3D%C3%A9&")
    assert parse_qs(query)["scale"] == ["false"] and parse_qs(query)["dropout"] == ["0.25"]
    assert json.loads(parse_qs(query)["edits"][0]) == [["scores", 1, 0, 2.0]]
    assert Request("one step", "textbook", head=1).query().endswith("model=textbook&head=1")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", "Type a sentence"),
        ("model=textbook", "Type a sentence"),
        ("sentence=", "Type a sentence"),
        ("sentence=a&scale=yes", "scale"),
        ("sentence=a&scale=True", "scale"),
        ("sentence=a&scale=1", "scale"),
        ("sentence=a&dropout=NaN", "dropout"),
        ("sentence=a&dropout=Infinity", "dropout"),
        ("sentence=a&dropout=1e999", "dropout"),
        ("sentence=a&model=", "model"),
        ("sentence=a&model=gpt5", "model"),
        ("sentence=a&edits=[[", "edits"),
        ("sentence=a&edits=" + "[" * 50_000, "edits"),
        ("sentence=a&edits=" + "[" * 900 + "]" * 900, "edit"),
        ("sentence=a&pad_to=" + "9" * 5_000, "pad_to"),
        ("sentence=a&pad_to=[1]", "pad_to"),
        ("sentence=a&mask=true", "mask"),
    ],
)
def test_bad_queries_get_one_sentence(query, names):
    with pytest.raises(ValueError) as error:
        Request.from_query(query)
    assert names in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 300


@given(st.text(max_size=50), st.dictionaries(st.sampled_from(NAMES), st.text(max_size=12), max_size=6))
def test_no_query_raises_anything_else(tail, given_values):
    from urllib.parse import urlencode

    values = {name: value.encode("utf-8", "replace").decode() for name, value in given_values.items()}
    try:
        Request.from_query(urlencode(values) + "&" + tail)
    except ValueError as error:
        assert "\n" not in str(error) and len(str(error)) < 300


# --- defaults --------------------------------------------------------------------------------------------------------


NULLABLE = ("layer", "head", "edits", "checkpoint")


@pytest.mark.parametrize("name", NULLABLE)
def test_null_means_the_default_where_the_default_is_null(name):
    assert Request("Hi there", "untrained", **{name: None}) == Request("Hi there", "untrained")


@pytest.mark.parametrize("name", [n for n in NAMES if n not in (*NULLABLE, "sentence")])
def test_null_elsewhere_is_refused(name):
    model = {} if name == "model" else {"model": "untrained" if name not in ("head_off",) else models.DEFAULT}
    with pytest.raises(ValueError, match=f"^{name} is null, but must be"):
        Request("Hi there", **model, **{name: None})


def test_layer_and_head_fall_back_each_by_itself():
    for name in models.NAMES:
        model, sentence = models.get(name), models.get(name).example
        for layer in (None, *range(model.layers)):
            for head in (None, *range(model.heads)):
                request = Request(sentence, name, layer=layer, head=head)
                assert request.layer == (model.own_choice[0] if layer is None else layer)
                assert request.head == (model.own_choice[1] if head is None else head)


# --- refusals --------------------------------------------------------------------------------------------------------

NAN, INF = float("nan"), math.inf
NOT_A_NUMBER = ["5", "", "NaN", True, NAN, INF, -INF, [], {}, [3], (1,), b"1", 1j, object(), 10**5000, -(10**5000)]
NOT_WHOLE = [*NOT_A_NUMBER, 0.5, -1, -(2**63), 2**64, 1e9, 1e300]
NOT_A_BOOL = ["false", "true", "", 0, 1, 0.0, NAN, INF, [], {}, [True], b"", -1, 1e300, 10**5000]
NOT_A_CHOICE = [
    "",
    "x",
    "Causal",
    " causal",
    "a\nb",
    "<b>" * 500,
    0,
    1,
    True,
    NAN,
    INF,
    -1,
    1e300,
    [],
    ["causal"],
    {},
    b"causal",
]
BAD = {
    "model": NOT_A_CHOICE,
    "layer": [*NOT_WHOLE, 1],
    "head": [*NOT_WHOLE, 1],
    "tokenizer": NOT_A_CHOICE,
    "mask": NOT_A_CHOICE,
    "scale": NOT_A_BOOL,
    "pad_to": [*NOT_WHOLE, 1025],
    "pad_side": NOT_A_CHOICE,
    "dropout": [*NOT_A_NUMBER, -0.1, 1, 1.0, 1e300, -1e300, 2**64],
    "head_off": NOT_A_BOOL,
    "edits": ["[]", 1, True, NAN, {}, {"a": 1}, b"", [1], ["scores"], [["scores", 0, 0]], [["scores", 0, 0, 1, 2]],
              [None], [["x", 0, 0, 1]], [[None, 0, 0, 1]], [[[], 0, 0, 1]], [["scores", -1, 0, 1]],
              [["scores", 0, 0.5, 1]],
              [["scores", "0", 0, 1]], [["scores", True, 0, 1]], [["scores", 0, 0, NAN]], [["weights", 0, 0, INF]],
              [["scores", 0, 0, "1"]], [["scores", 0, 0, None]], [["scores", 0, 0, True]], [["scores", 0, 0, 1e7]],
              [["scores", 0, 0, -1e300]], [["scores", 2**70, 0, 1]], [["scores", 0, 10**5000, 1]],
              [["scores", 0, 0, 1]] * 65],
    "checkpoint": [*NOT_WHOLE, 1],
    "d_model": [*NOT_WHOLE, 0, 129],
    "d_head": [*NOT_WHOLE, 0, 129],
    "seed": [*(v for v in NOT_WHOLE if v != 1e9), 2**32],
    "qkv_bias": NOT_A_BOOL,
    "positions": NOT_A_BOOL,
}  # fmt: skip


def test_every_argument_has_its_row():
    assert set(BAD) == set(NAMES) - {"sentence"}


@pytest.mark.parametrize("name", BAD)
def test_wrong_values_get_one_sentence_that_names_the_argument(name):
    for value in BAD[name]:
        sentence = refusal(**{"sentence": "Hi", "model": "untrained"} | {name: value})
        assert name in sentence or (name == "edits" and "edit" in sentence), (value, sentence)


def test_deeply_nested_values_get_one_sentence_too():
    nested = []
    for _ in range(5_000):
        nested = [nested]
    for name in BAD:
        assert "edit" in refusal(**{"sentence": "Hi", "model": "untrained"} | {name: nested}) or name != "edits"
        refusal(**{"sentence": "Hi", "model": "untrained", name: [[nested, 0, 0, 1]]})


def test_arrays_get_one_sentence_too():
    for name in BAD:
        refusal(**{"sentence": "Hi", "model": "untrained"} | {name: np.zeros((3, 3))})


def test_a_sentence_that_is_no_text():
    for value in (0, 1, True, NAN, [], ["Hi"], {}, b"Hi", 10**5000, np.array(["Hi", "Ho"])):
        assert "sentence is" in refusal(value, "untrained")


@pytest.mark.parametrize(
    "value", [None, "", " ", "\t\n", "\u200b\u2060 ", "\u3164", "\u00a0\u2003", "\ufe0f", "\x00\x01"]
)
def test_nothing_visible_is_no_sentence(value):
    assert refusal(value, "untrained") == "Type a sentence first."


def test_length_is_refused_naming_count_and_limit():
    sentence = refusal("a" * 1_000_000, "untrained")
    assert "1,000,000" in sentence and "2,000" in sentence
    assert "2,001" in refusal(" " * 2001, "untrained")
    assert len(Request("a" * 2000, "untrained").sentence) == 2000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mask": "before"}, ["'before'", "causal", "none", "after", "after_renormalised"]),
        ({"pad_side": "up"}, ["'right'", "'left'"]),
        ({"tokenizer": "subword"}, ["auto", "words", "characters"]),
        ({"d_head": 129}, ["129", "1 to 128"]),
        ({"seed": 2**64}, [str(2**64), "0 to 4,294,967,295"]),
        ({"pad_to": 2000}, ["2000", "1,024"]),
        ({"dropout": 1.0}, ["1.0", "below 1"]),
        ({"scale": "false"}, ["'false'", "true or false"]),
        ({"head": 3}, ["3", "number 0"]),
        ({"model": "gpt5"}, ["gpt5", *models.NAMES]),
        ({"edits": [["q", 0, 0, 1]]}, ["'q'", "scores", "weights"]),
    ],
)
def test_refusals_name_what_is_allowed(change, says):
    sentence = refusal(**{"sentence": "Hi", "model": "untrained"} | change)
    assert all(word in sentence for word in says), sentence


def test_a_refusal_does_not_carry_a_text_back():
    for name in ("model", "mask", "tokenizer", "pad_side", "seed", "scale", "dropout"):
        sentence = refusal(**{"sentence": "Hi", "model": "untrained"} | {name: "<img src=x onerror=alert(1)>" * 100})
        assert len(sentence) < 200


@pytest.mark.parametrize("model", models.NAMES)
@pytest.mark.parametrize(
    ("name", "value"),
    [("tokenizer", "characters"), ("head_off", True), ("checkpoint", 5), ("d_model", 4), ("d_head", 4), ("seed", 1),
     ("qkv_bias", True), ("positions", False)],
)  # fmt: skip
def test_options_of_another_model_are_refused_naming_whose_they_are(model, name, value):
    assert name in MODEL_OPTIONS
    own = models.get(model)
    if name in own.options:
        return
    sentence = refusal(own.example, model, **{name: value})
    having = [m for m in models.NAMES if name in models.get(m).options]
    assert name in sentence and repr(model) in sentence
    assert all(repr(m) in sentence for m in having) or not having


def test_default_values_of_foreign_options_are_accepted():
    request = Request(
        "one step", "textbook", d_model=16, d_head=8, seed=0, qkv_bias=False, positions=True, tokenizer="auto"
    )
    assert request == Request("one step", "textbook")
    assert Request("one step", "textbook", tokenizer="words") == request  # what "auto" stands for there
    assert "qkv_bias" in refusal("one step", "textbook", qkv_bias=0)


def test_dropout_brings_its_seed_to_every_model():
    assert Request("one step", "textbook", dropout=0.5, seed=3).seed == 3
    assert "seed" in refusal("one step", "textbook", seed=3)


# --- identity --------------------------------------------------------------------------------------------------------


def test_numbers_that_mean_the_same_are_the_same_request():
    a = Request("Hi", "untrained", pad_to=4.0, dropout=0, seed=2.0, edits=[["scores", 0.0, 0, 1]])
    b = Request("Hi", "untrained", pad_to=4, dropout=0.0, seed=2, edits=(("scores", 0, 0, 1.0),))
    assert a == b and hash(a) == hash(b) and a.query() == b.query()
    assert isinstance(a.pad_to, int) and isinstance(a.dropout, float) and a.edits == (("scores", 0, 0, 1.0),)


@pytest.mark.parametrize(
    "change",
    [{"sentence": "Ho"}, {"mask": "none"}, {"scale": False}, {"pad_to": 3}, {"dropout": 0.1}, {"d_model": 4},
     {"seed": 1}, {"edits": [["scores", 0, 0, 0]]}, {"positions": False}, {"tokenizer": "characters"}],
)  # fmt: skip
def test_another_value_is_another_request(change):
    base = {"sentence": "Hi", "model": "untrained"}
    assert Request(**base | change) != Request(**base)
    assert Request(**base | change).query() != Request(**base).query()


def test_the_last_edit_of_a_cell_counts():
    request = Request("a b", "untrained", edits=[["scores", 1, 0, 1], ["weights", 1, 0, 2], ["scores", 1, 0, 3]])
    assert sorted(request.edits) == [("scores", 1, 0, 3.0), ("weights", 1, 0, 2.0)]


def test_a_request_is_frozen_and_cannot_be_changed_through_its_arguments():
    edits = [["scores", 0, 0, 1.0]]
    request = Request("Hi", "untrained", edits=edits)
    edits[0][3] = 9.0
    assert request.edits == (("scores", 0, 0, 1.0),)
    with pytest.raises(FrozenInstanceError):
        request.seed = 1
    request.settings()["edits"].clear()
    assert request.edits
    assert replace(Request("Hi", "untrained", seed=4), sentence="Ho").seed == 4


def test_notes_say_what_cleaning_did_and_are_no_part_of_the_identity():
    dirty, clean = Request("a\x00b", "untrained"), Request("a␀b", "untrained")
    assert dirty.sentence == clean.sentence == "a␀b"
    assert len(dirty.notes) == 1 and "1 character" in dirty.notes[0] and clean.notes == ()
    assert dirty == clean and hash(dirty) == hash(clean)
    assert "notes" not in dirty.settings()
