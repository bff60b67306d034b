"""The program door: the real server, Gradio's client, and raw HTTP."""

import json
import math
import os
import re
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from servers import Refused, call, fetch

from attention import Request, attend, export, models, page, text
from attention.trace import TENSORS

pytest.importorskip("gradio_client")

DATA = Path(__file__).parent / "data"
HARD = json.loads((DATA / "hard_inputs.json").read_text(encoding="utf-8"))
PRINTED = json.loads((DATA / "seed_numbers.json").read_text(encoding="utf-8"))
SENTENCE = "Your journey starts with one step"
OFFLINE = [name for name in models.NAMES if name != "gpt2"]

REQUIRED = object()
ARGUMENTS = {
    "sentence": REQUIRED,
    "model": models.DEFAULT,
    "layer": None,
    "head": None,
    "tokenizer": "auto",
    "mask": "causal",
    "scale": True,
    "pad_to": 0,
    "pad_side": "right",
    "dropout": 0.0,
    "head_off": False,
    "edits": None,
    "checkpoint": None,
    "d_model": 16,
    "d_head": 8,
    "seed": 0,
    "qkv_bias": False,
    "positions": True,
}
ENDPOINTS = {
    "/attend": {},
    "/tokenize": {},
    "/figure": {"step": "all", "format": "png", "theme": "light", "size": "page", "dpi": ...},
    "/export": {"format": "json"},
}


@pytest.fixture(scope="module")
def client(server, tmp_path_factory):
    from gradio_client import Client

    return Client(server.url, verbose=False, download_files=str(tmp_path_factory.mktemp("downloads")))


def sent(**arguments):
    """The JSON text of a request. ASCII only: a lone surrogate travels as an escape."""
    return json.dumps(arguments).encode()


# --- what is published -----------------------------------------------------------------------------------------------


def test_the_endpoints_and_their_arguments_stay_what_was_published(client):
    listing = client.view_api(return_format="dict", print_info=False)
    found = listing["named_endpoints"]
    assert set(found) == set(ENDPOINTS)
    assert not listing["unnamed_endpoints"]
    for name, endpoint in found.items():
        published = {
            p["parameter_name"]: p["parameter_default"] if p["parameter_has_default"] else REQUIRED
            for p in endpoint["parameters"]
        }
        expected = ARGUMENTS | ENDPOINTS[name]
        assert list(published) == list(expected), name
        for argument, default in expected.items():
            if default is not ...:  # a number that may still be tuned
                assert published[argument] is default or published[argument] == default, (name, argument)
        assert len(endpoint["returns"]) == 1


def test_the_published_defaults_are_those_of_a_request(server):
    got = call(server.url, "attend", sentence="hi")
    assert got["settings"] == Request("hi").settings()
    given = {k: v for k, v in ARGUMENTS.items() if k != "sentence"}
    assert call(server.url, "attend", sentence="hi", **given)["settings"] == got["settings"]


# --- the numbers -----------------------------------------------------------------------------------------------------


def printed_equals(got, printed):
    """To the last printed digit."""
    for row, printed_row in zip(got, printed, strict=True):
        for number, digits in zip(row, printed_row, strict=True):
            assert (number is None) == (digits is None)
            assert number is None or abs(number - digits) <= 0.5e-4 + 1e-9


def test_the_textbook_gives_the_printed_numbers(client):
    got = client.predict(sentence=SENTENCE, model="textbook", api_name="/attend")
    assert [t["text"].strip() for t in got["tokens"]] == PRINTED["tokens"]
    printed_equals(got["tensors"]["x"], PRINTED["x"])
    printed_equals(got["tensors"]["weights"], PRINTED["weights_causal"])
    assert round(got["tensors"]["weights"][1][1], 4) == 0.5019
    assert round(got["tensors"]["scores"][1][0], 4) == 0.0191
    unscaled = client.predict(sentence=SENTENCE, model="textbook", scale=False, api_name="/attend")
    printed_equals(unscaled["tensors"]["masked"], PRINTED["scores_masked"])
    masks = {
        "none": "weights_unmasked",
        "after": "weights_masked_after_softmax",
        "after_renormalised": "weights_causal",
    }
    for mask, printed in masks.items():
        other = client.predict(sentence=SENTENCE, model="textbook", mask=mask, api_name="/attend")
        printed_equals(other["tensors"]["weights"], PRINTED[printed])
        assert other["tensors"]["scores"] == got["tensors"]["scores"]
    contexts = client.predict(sentence=SENTENCE, model="textbook", head=1, api_name="/attend")
    printed_equals(contexts["tensors"]["context"], PRINTED["context"])


SETTINGS = [
    {},
    {"pad_to": 9},
    {"pad_to": 9, "pad_side": "left"},
    {"mask": "none", "pad_to": 8},
    {"mask": "after", "scale": False},
    {"mask": "after_renormalised", "dropout": 0.4, "seed": 4},
    {"dropout": 0.5, "seed": 2**32 - 1},
    {"edits": [["scores", 1, 0, 2.5], ["weights", 2, 1, 0.25]]},
]
OWN = {
    "textbook": [{"head": 1}],
    "untrained": [
        {"tokenizer": "characters", "d_model": 3, "d_head": 2, "qkv_bias": True, "positions": False, "seed": 7},
        {"d_model": 128, "d_head": 1},
    ],
    "trained": [{"layer": 0}, {"head_off": True}],
}


@pytest.mark.parametrize("model", OFFLINE)
def test_attend_equals_the_library_to_the_last_bit_and_its_settings_give_it_again(server, model):
    sentence = models.get(model).example
    for settings in SETTINGS + OWN.get(model, []):
        got = call(server.url, "attend", sentence=sentence, model=model, **settings)
        want = attend(sentence, model=model, **settings)
        assert got == export.as_dict(want), settings
        assert set(got["settings"]) == set(ARGUMENTS)
        assert Request(**got["settings"]) == want.request
        again = call(server.url, "attend", **got["settings"])
        assert again == got


def is_a_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def test_the_answer_is_strict_json_with_null_in_masked_alone(server):
    got = call(server.url, "attend", sentence=SENTENCE, model="textbook", pad_to=8, pad_side="left")  # call refuses NaN
    json.dumps(got, allow_nan=False)
    assert set(got) == {"tokens", "tensors", "visible", "next_tokens", "settings", "device", "notes"}
    assert list(got["tensors"]) == ["x", "q", "k", "v", "scores", "scaled", "masked", "weights", "context"]
    assert set(got["tensors"]) == set(TENSORS)
    for name, rows in got["tensors"].items():
        assert len(rows) == 8
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                hidden = name == "masked" and not got["visible"][i][j]
                assert value is None if hidden else is_a_number(value), (name, i, j)
    for token in got["tokens"]:
        assert set(token) == {"index", "text", "label", "id", "start", "end", "real"}
    assert got["tokens"][0]["label"] == "[PAD]" and got["tensors"]["weights"][0] == [0] * 8
    real = call(server.url, "attend", sentence=SENTENCE, model="textbook")["tensors"]["context"]
    for padded, plain in zip(got["tensors"]["context"][2:], real, strict=True):
        assert padded == pytest.approx(plain, abs=1e-6)


# --- limits and errors -----------------------------------------------------------------------------------------------


def is_one_sentence(message):
    assert message.endswith(".") and "\n" not in message and len(message) < 400, message
    assert "Traceback" not in message and "Error" not in message and "<" not in message, message
    return True


def test_over_256_tokens_are_refused_naming_export(server):
    many = {"model": "untrained", "tokenizer": "characters"}
    with pytest.raises(Refused) as refusal:
        call(server.url, "attend", sentence="ab" * 128 + "c", **many)
    assert is_one_sentence(str(refusal.value))
    assert all(part in str(refusal.value) for part in ("257", "256", "/export"))
    got = call(server.url, "attend", sentence="ab" * 128, **many)
    assert len(got["tokens"]) == len(got["tensors"]["weights"]) == 256
    assert len(call(server.url, "tokenize", sentence="ab" * 128 + "c", **many)["tokens"]) == 257


def test_a_token_beyond_the_context_is_refused_and_none_is_cut(server):
    limit = models.get("untrained").context_length
    many = {"model": "untrained", "tokenizer": "characters"}
    assert len(call(server.url, "tokenize", sentence="a" * limit, **many)["tokens"]) == limit
    with pytest.raises(Refused) as refusal:
        call(server.url, "tokenize", sentence="a" * (limit + 1), **many)
    assert is_one_sentence(str(refusal.value))
    assert f"{limit:,}" in str(refusal.value) and f"{limit + 1:,}" in str(refusal.value)


NAN, INFINITE = math.nan, math.inf
NOT_NUMBERS = ["1", "", True, [1], {"a": 1}, NAN, INFINITE, -INFINITE]
NOT_FLAGS = ["false", "true", "", 0, 1, 0.5, [], {}, NAN]
NOT_NAMES = ["", "no such", "<b>", 0, True, 1.5, [], {}, "\ud83d", "x" * 5000]
WRONG = {
    "sentence": [None, "", "   ", "\u200b\u2060 ", "\t\n", 5, 1.5, True, ["hi"], {"path": "hi"}, "a" * 2001,
                 "a" * 10**6],
    "model": [*NOT_NAMES, "Untrained", "__init__", "../textbook"],
    "layer": [*NOT_NUMBERS, -1, 99, 0.5],
    "head": [*NOT_NUMBERS, -1, 99, 0.5],
    "tokenizer": NOT_NAMES,
    "mask": NOT_NAMES,
    "scale": NOT_FLAGS,
    "pad_to": [*NOT_NUMBERS, -1, 2.5, 1025, 1e9, 2**70],
    "pad_side": NOT_NAMES,
    "dropout": [*NOT_NUMBERS, -0.1, 1, 1.5, 1e300, 10**400],
    "head_off": [*NOT_FLAGS, True],
    "edits": [
        "scores", 5, True, {"scores": 1}, [["scores", 0, 0]], [["q", 0, 0, 1.0]], [["scores", 9, 0, 1.0]],
        [["scores", 0, -1, 1.0]], [["scores", 0.5, 0, 1.0]], [["scores", 0, 0, NAN]], [["scores", 0, 0, "1"]],
        [["scores", 0, 0, None]], [[["scores"], 0, 0, 1]], [5], [None], [["weights", 0, 0, 1e300]],
        [["scores", 0, 0, 1.0]] * 1000,
    ],
    "checkpoint": [*NOT_NUMBERS, -1, 3, 0.5],
    "d_model": [*NOT_NUMBERS, 0, -1, 129, 16.5, 1e9],
    "d_head": [*NOT_NUMBERS, 0, -1, 129, 2.5, 1e9],
    "seed": [*NOT_NUMBERS, -1, 0.5, 2**32, 2**64],
    "qkv_bias": NOT_FLAGS,
    "positions": NOT_FLAGS,
}  # fmt: skip
NO_FORMATS = [*NOT_NAMES, "exe", "PNG"]
WRONG_EXTRA = {
    "step": [*NOT_NAMES, "W_query"],
    "format": NO_FORMATS,
    "theme": NOT_NAMES,
    "size": NOT_NAMES,
    "dpi": [*NOT_NUMBERS, 0, -5, 1e9],
}


def test_no_argument_is_forgotten_here():
    assert list(WRONG) == list(ARGUMENTS) and list(WRONG_EXTRA) == list(ENDPOINTS["/figure"])


def refused(url, endpoint, **arguments):
    try:
        got = call(url, endpoint, **arguments)
    except Refused as refusal:
        return is_one_sentence(str(refusal))
    raise AssertionError(f"{endpoint} took {str(arguments)[:200]}: {str(got)[:200]}")


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_wrong_value_gets_one_sentence_and_the_next_request_works(server, argument):
    right = {"sentence": "the cat sat", "model": "untrained"}
    for i, value in enumerate(WRONG[argument]):
        assert refused(server.url, ("attend", "tokenize")[i % 2], **(right | {argument: value}))
    assert len(call(server.url, "attend", **right)["tokens"]) == 3


@pytest.mark.parametrize("argument", WRONG_EXTRA)
def test_a_wrong_value_for_a_figure_gets_one_sentence(server, argument):
    for value in WRONG_EXTRA[argument]:
        assert refused(server.url, "figure", sentence="hi", model="untrained", **{argument: value})


def test_a_wrong_format_for_an_export_gets_one_sentence(server):
    for value in NO_FORMATS:
        assert refused(server.url, "export", sentence="hi", model="untrained", format=value)


def test_an_option_that_a_model_lacks_is_refused_naming_the_models_that_have_it(server):
    for argument, value in {"d_model": 8, "d_head": 4, "seed": 1, "qkv_bias": True, "positions": False}.items():
        with pytest.raises(Refused) as refusal:
            call(server.url, "tokenize", sentence="one step", model="textbook", **{argument: value})
        assert is_one_sentence(str(refusal.value)) and "untrained" in str(refusal.value)


def test_words_that_the_textbook_lacks_are_refused_naming_the_six(server):
    with pytest.raises(Refused) as refusal:
        call(server.url, "attend", sentence="<img src=x onerror=alert(1)>", model="textbook")
    assert all(word in str(refusal.value) for word in PRINTED["tokens"]) and "<" not in str(refusal.value)


# --- hostile text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [name for name in OFFLINE if name != "textbook"])
def test_hostile_sentences_come_back_character_for_character(server, model):
    for case in HARD["sentences"]:
        cleaned, note = text.clean(case["text"])
        body = sent(sentence=case["text"], model=model)
        if all(map(text.is_invisible, case["text"])):
            with pytest.raises(Refused, match="Type a sentence first"):
                call(server.url, "tokenize", body)
            continue
        tokens = call(server.url, "tokenize", body)
        assert "".join(t["text"] for t in tokens["tokens"]) == cleaned, case["id"]
        assert bool(tokens["notes"]) == bool(note) == case.get("note", False)
        for token in tokens["tokens"]:
            assert cleaned[token["start"] : token["end"]] == token["text"]
            assert token["label"] and "\ufffd" not in token["label"].replace("\ufffd", "", cleaned.count("\ufffd"))
        if model == "untrained":
            assert [t["label"] for t in tokens["tokens"]] == case["words"]
        whole = call(server.url, "attend", body)
        assert whole["tokens"] == tokens["tokens"] and whole["notes"] == tokens["notes"]
        assert whole["settings"]["sentence"] == cleaned


def test_what_is_no_sentence_is_refused_and_says_what_to_do(server):
    for case in HARD["refused"]:
        for endpoint in ("attend", "tokenize", "figure", "export"):
            with pytest.raises(Refused, match="Type a sentence first"):
                call(server.url, endpoint, sent(sentence=case["text"]))


def test_padding_that_was_typed_is_ordinary_text(server):
    got = call(server.url, "attend", sentence="[PAD] <|endoftext|>", model="untrained")
    assert all(token["real"] and token["text"] for token in got["tokens"])


# --- files -----------------------------------------------------------------------------------------------------------


def test_figures_can_be_downloaded_in_every_format(client):
    asked = {"sentence": "one step", "model": "textbook", "api_name": "/figure"}
    files = {"png": Path(client.predict(**asked))}  # the sheet of all steps
    files |= {format: Path(client.predict(step="weights", format=format, **asked)) for format in ("svg", "pdf")}
    assert files["png"].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert ElementTree.fromstring(files["svg"].read_bytes()).tag.endswith("svg")
    assert files["pdf"].read_bytes().startswith(b"%PDF-")
    assert all(path.suffix == f".{format}" for format, path in files.items())


def test_exports_can_be_downloaded_in_every_format_under_a_name_that_says_what_it_is(client):
    asked = {"sentence": "one <step>", "model": "untrained"}
    for format, suffix in export.SUFFIXES.items():
        path = Path(client.predict(**asked, format=format, api_name="/export"))
        assert path.name == f"attention-one-step.{suffix}"
        assert path.read_bytes() == export.export(attend(**asked), format)


def test_an_export_has_no_limit_but_the_context(server):
    many = {"sentence": "ab" * 128 + "c", "model": "untrained", "tokenizer": "characters"}
    data = fetch(call(server.url, "export", **many)["url"])[1]
    assert len(json.loads(data)["tensors"]["weights"]) == 257


def test_eight_exports_at_once_are_never_mixed(server):
    asked = [
        {"sentence": f"the cat {i} saw", "model": "untrained", "seed": i, "format": format}
        for i, format in enumerate([*export.FORMATS, "json", "npz", "csv"])
    ]
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(lambda arguments: call(server.url, "export", **arguments), asked))
    for arguments, file in zip(asked, files, strict=True):
        wanted = {name: value for name, value in arguments.items() if name != "format"}
        assert fetch(file["url"])[1] == export.export(attend(**wanted), arguments["format"])


def test_an_answer_leaves_one_file_and_no_copy(server):
    folder = server.log.parent / "files"
    before = {path for path in folder.rglob("*") if path.is_file()}
    for i in range(5):
        call(server.url, "export", sentence=f"cat {i}", model="untrained", format=export.FORMATS[i])
        call(server.url, "figure", sentence=f"cat {i}", model="untrained", step="weights", format="svg")
    assert len({path for path in folder.rglob("*") if path.is_file()} - before) == 10


def test_files_go_when_they_are_old(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    for i in range(500):
        if i == 250:  # all so far grow old, and one loses its file to Gradio
            next(tmp_path.rglob("run.json")).unlink()
            for folder in tmp_path.iterdir():
                os.utime(folder, (0, time.time() - 2 * page.FILE_AGE - 1))
        path = Path(page._file("run.json", b"{}"))
    assert len(list(tmp_path.rglob("run.json"))) == len(list(tmp_path.iterdir())) == 250
    assert path.read_bytes() == b"{}"


def test_every_step_has_a_figure_of_its_own(server):
    steps = ["tokens", "x", "qk", "scores", "scaled", "masked", "weights", "context", "next"]
    seen = set()
    for step in steps:
        file = call(server.url, "figure", sentence="step", model="textbook", step=step, format="svg")
        status, data = fetch(file["url"])
        assert status == 200 and ElementTree.fromstring(data).tag.endswith("svg")
        seen.add(data)
    assert len(seen) == len(steps)


def test_a_figure_shows_hostile_text_as_it_is(server):
    for sentence in ("costs $5 & <b>", "a\u000bb\u0000c\ufffe"):
        file = call(server.url, "figure", sentence=sentence, model="untrained", step="weights", format="svg")
        root = ElementTree.fromstring(fetch(file["url"])[1])
        assert not [e for e in root.iter() if e.tag.endswith("}script")]


# --- many at once, and under a path ----------------------------------------------------------------------------------


def test_fifty_at_once_each_get_their_own_result(server):
    asked = [{"sentence": f"the cat {i} saw the cat", "model": "untrained", "seed": i} for i in range(50)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda arguments: call(server.url, "attend", **arguments), asked))
    for arguments, answer in zip(asked, answers, strict=True):
        assert answer == export.as_dict(attend(**arguments))
    assert len({json.dumps(answer["tensors"]["weights"]) for answer in answers}) == 50


def test_page_assets_and_api_work_under_a_path(root_path_url, tmp_path):
    from gradio_client import Client

    status, page = fetch(root_path_url + "/")
    assert status == 200
    for address in set(re.findall(r'(?:src|href)="(\./assets/[^"]+)"', page.decode())):
        assert fetch(f"{root_path_url}/{address[2:]}")[0] == 200
    assert fetch(root_path_url.removesuffix("/attn") + "/")[0] == 404  # the proxy serves nothing outside the path
    client = Client(root_path_url, verbose=False, download_files=str(tmp_path))
    got = client.predict(sentence=SENTENCE, model="textbook", api_name="/attend")
    assert round(got["tensors"]["weights"][1][1], 4) == 0.5019
    file = call(root_path_url, "figure", sentence="one step", model="textbook", step="weights")
    assert file["url"].startswith(root_path_url + "/") and fetch(file["url"])[1].startswith(b"\x89PNG")
