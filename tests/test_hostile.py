"""Hostile text through every door: nothing runs, nothing breaks, everything comes back literally."""

import ast
import csv
import html
import io
import json
import re
import urllib.request
import xml.etree.ElementTree as ElementTree
import zipfile
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import numpy as np
import pytest
from hostile import SENTENCES, SYNTAX, by_kind
from hypothesis import given
from hypothesis import strategies as st
from servers import Refused, call, fetch
from test_api import ENDPOINTS, WRONG, WRONG_EXTRA, is_one_sentence, sent

from attention import Request, attend, export, figures, text

pytest.importorskip("gradio")
MODELS = ("untrained", "trained")


def is_literal(url, sentence, model):
    """The server's tokens, joined, are the cleaned sentence; or one sentence says why not."""
    cleaned, _ = text.clean(sentence)
    try:
        got = call(url, "tokenize", sent(sentence=sentence, model=model))
    except Refused as refusal:
        if all(map(text.is_invisible, sentence)):
            return str(refusal) == text.EMPTY
        return is_one_sentence(str(refusal)) and "tokens, but the context" in str(refusal)
    return "".join(t["text"] for t in got["tokens"]) == cleaned and all(t["label"] for t in got["tokens"])


@pytest.mark.parametrize("model", MODELS)
def test_every_sentence_of_the_corpus_comes_back_literally(server, model):
    assert len(SENTENCES) > 250
    with ThreadPoolExecutor(4) as pool:
        right = list(pool.map(lambda sentence: is_literal(server.url, sentence, model), SENTENCES))
    assert not [ascii(s) for s, fine in zip(SENTENCES, right, strict=True) if not fine]


@given(st.text(st.characters(), min_size=1, max_size=40))
def test_any_text_comes_back_literally(server, sentence):
    assert is_literal(server.url, sentence, "trained")


@pytest.mark.parametrize("kind", by_kind())
def test_a_link_with_it_opens_the_page_and_writes_nothing_into_it(server, kind):
    plain = fetch(server.url + "/")[1].decode()
    for sentence in by_kind()[kind]:
        cleaned, _ = text.clean(sentence)
        if not all(map(text.is_invisible, cleaned)):
            request = Request(cleaned, "untrained")
            assert Request.from_query(request.query()) == request
        link = urlencode({"sentence": cleaned, "step": cleaned, "cell": cleaned, "model": cleaned})
        status, page = fetch(f"{server.url}/?{link}")
        assert status == 200
        if "<" in cleaned and cleaned not in plain:
            assert cleaned not in page.decode()


def runs():
    """A result for each piece of syntax, and for a few of every other kind."""
    few = [s for sentences in by_kind().values() for s in sentences[:: max(1, len(sentences) // 4)]]
    for sentence in dict.fromkeys(SYNTAX + few):
        if len(sentence) < 400 and not all(map(text.is_invisible, sentence)):
            yield attend(sentence, model="untrained")


def test_figures_are_well_formed_and_hold_no_foreign_element():
    allowed = None
    for result in runs():
        root = ElementTree.fromstring(figures.render(result, "tokens", "svg"))
        names = {element.tag for element in root.iter()}
        allowed = allowed or {element.tag for element in ElementTree.fromstring(
            figures.render(attend("plain words", model="untrained"), "tokens", "svg")).iter()}  # fmt: skip
        assert not {n for n in names - allowed if n.split("}")[1] not in ("clipPath", "use", "path", "image", "rect")}
        assert not [a for e in root.iter() for a in e.attrib if a.lower().startswith("on")]


def test_exports_are_read_back_and_hold_it_literally():
    scripts = None
    for result in runs():
        sentence = result.request.sentence
        assert json.loads(export.export(result, "json"))["settings"]["sentence"] == sentence
        with np.load(io.BytesIO(export.export(result, "npz")), allow_pickle=False) as arrays:
            assert json.loads(str(arrays["settings"]))["sentence"] == sentence
        with zipfile.ZipFile(io.BytesIO(export.export(result, "csv"))) as tables:
            for name in tables.namelist():
                assert re.fullmatch(r"\w+\.csv", name)
                rows = list(csv.reader(io.StringIO(tables.read(name).decode("utf-8-sig"), newline="")))
                assert len({len(row) for row in rows}) == 1
                assert not [c for row in rows for c in row if re.match(r"\s*[=@]|[+-](?![\d.])(?!inf)", c)], rows
        ast.parse(export.export(result, "py"))
        page = export.export(result, "html").decode()
        found = len(re.findall(r"<(?:/?script|iframe|img|svg|base|!--)", page, re.I))
        scripts = scripts or found
        assert found == scripts and f"<title>{html.escape(text.shorten(sentence, 60))}" in page


# --- every argument of every endpoint --------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", ["attend", "tokenize", "figure", "export"])
def test_every_wrong_value_of_every_argument_gets_one_sentence(server, endpoint):
    right = {"sentence": "the cat sat", "model": "untrained"}
    own = {n: v for n, v in WRONG_EXTRA.items() if n in ENDPOINTS["/" + endpoint]}
    cases = [(name, value) for name, values in (WRONG | own).items() for value in values]

    def ask(case):
        name, value = case
        try:
            return f"{name} = {str(value)[:60]} gave {str(call(server.url, endpoint, **(right | {name: value})))[:80]}"
        except Refused as refusal:
            return not is_one_sentence(str(refusal))

    with ThreadPoolExecutor(4) as pool:
        assert not list(filter(None, pool.map(ask, cases)))


def test_bodies_that_are_no_request_are_refused_without_a_traceback(server):
    bodies = [b"", b"{", b"[]", b"null", b"5", b'"x"', b"{}", b'{"sentence": "a", "nosuch": 1}', b"\xff\xfe",
              b"[" * 5000, b'{"data": []}', b'{"data": null}', b'{"data": [[]]}',
              b'{"data": ' + b"[" * 900 + b"]" * 900 + b"}",
              b'{"data": ["a"' + b", 1" * 50 + b"]}", b'{"sentence": NaN}', b'{"__proto__": {}}']  # fmt: skip
    for body in bodies:
        for path in ("v2/attend", "v2/nosuch", "nosuch"):
            address = f"{server.url}/gradio_api/call/{path}"
            request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    event = json.load(answer)["event_id"]
                assert b"Traceback" not in fetch(f"{server.url}/gradio_api/call/{path.split('/')[-1]}/{event}")[1]
            except urllib.error.HTTPError as error:
                assert error.code < 500 and b"Traceback" not in error.read(), (path, body[:40])
    assert call(server.url, "tokenize", sentence="still here")["tokens"]
