# ruff: noqa: E501  rows of a table
"""Hostile text typed into the real page and brought by links: nothing runs, and it is shown literally everywhere."""

import json
import unicodedata
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hostile import by_kind

from attention import attend, text

BOX = "#sentence textarea"
HARD = json.loads((Path(__file__).parents[1] / "data" / "hard_inputs.json").read_text(encoding="utf-8"))["sentences"]
HIT = "window.__hit=1"
CANARIES = [
    f"<img src=x onerror={HIT}>", f"<svg onload={HIT}><b>", f"</script><script>{HIT}</script>", f"${{{HIT}}}", f"`+({HIT})+`",
    f"{{{{{HIT}}}}} {{{{{{{HIT}}}}}}}", f"<%= {HIT} %>", f"javascript:{HIT}", f"'-({HIT})-'", f'"><body onload="{HIT}">',
    f"{{{{constructor.constructor('{HIT}')()}}}}", f"\\u003cscript>{HIT}\\u003c/script>", f"&lt;script&gt;{HIT}&lt;/script&gt;",
    f"</textarea><script>{HIT}</script>", f"</title></style><iframe srcdoc='<script>parent.{HIT[7:]}</script>'>",
    f"<details open ontoggle={HIT}>", f"<a href=javascript:{HIT} autofocus onfocus={HIT}>x</a>", f"[x](javascript:{HIT}) ![](x)",
]  # fmt: skip

# What is on screen, read in the page at once. Each step is opened, the last query and the first key are chosen, and
# every fold is opened: so chips, labels, tooltips, arithmetic and tables all hold the text.
LOOK = """async (steps) => {
    const root = document.querySelector('#explorer');
    const seen = { tags: new Set(), loads: new Set(), handlers: [], arithmetic: '', tables: [] };
    for (const step of steps) {
        document.querySelector(`[data-step="${step}"]`).click();
        if (step === 'weights') {  // a browser takes only so many new addresses in a while, and each choice makes one
            [...document.querySelectorAll('[data-token]')].at(-1).click();
            const host = document.querySelector('[data-matrix="weights"]');
            host.focus();
            host.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true }));
        }
        for (const fold of root.querySelectorAll('details')) fold.open = true;
        await new Promise((done) => setTimeout(done));
        if (step === 'weights') seen.arithmetic = document.querySelector('#arithmetic').textContent;
        for (const table of root.querySelectorAll('table'))
            seen.tables.push([...table.querySelectorAll('tbody th')].map((th) => th.textContent));
        for (const one of document.body.querySelectorAll('*')) {
            seen.tags.add(one.localName);
            for (const { name, value } of one.attributes) {
                if (name.startsWith('on')) seen.handlers.push(name);
                if (['src', 'href', 'srcdoc', 'action', 'data'].includes(name)) seen.loads.add(value);
            }
        }
    }
    const chips = [...document.querySelectorAll('[data-token]')];
    return { ...seen, tags: [...seen.tags], loads: [...seen.loads], hit: window.__hit === undefined ? 'no' : 'yes',
             texts: chips.map((one) => one.dataset.text), shown: chips.map((one) => one.textContent),
             tips: chips.map((one) => one.title) };
}"""
STEPS = ["tokens", "x", "qk", "scores", "scaled", "masked", "weights", "context", "next"]


def batches():
    """The canaries one by one, and the corpus with several sentences in one: test_hostile.py takes each by itself."""
    yield from CANARIES
    for sentences in by_kind().values():
        several = sentences[:1]
        for sentence in sentences[1:]:
            if sum(map(len, several)) + len(sentence) > 120:
                yield " ".join(several)
                several = []
            several.append(sentence)
        yield " ".join(several)


class Hostile:
    """A page, what a plain sentence shows on it, and how a hostile one must look beside that."""

    def __init__(self, explorer) -> None:
        self.explorer = explorer.open(model="untrained", sentence="some plain words", step="weights")
        self.plain = explorer.page.evaluate(LOOK, STEPS)
        self.plain["tags"] += ["li"]  # of the notes

    def type(self, sentence: str) -> None:
        """Into the box, over what is there, as one input; controls and lone surrogates only come from a script."""
        page = self.explorer.page
        if any(unicodedata.category(char) in ("Cc", "Cs") for char in sentence):
            page.evaluate(
                "([box, text]) => { box = document.querySelector(box); box.value = JSON.parse(text);"
                " box.dispatchEvent(new Event('input', { bubbles: true })); }",
                [BOX, json.dumps(sentence)],
            )
        else:
            page.evaluate("box => { box = document.querySelector(box); box.focus(); box.select(); }", BOX)
            page.keyboard.insert_text(sentence)

    def check(self, sentence: str, steps: list[str]) -> None:
        self.explorer.wait_for_request(sentence=sentence)
        result = attend(sentence, model="untrained")
        seen, names = self.explorer.page.evaluate(LOOK, steps), result.names
        said = ascii(sentence)
        assert seen["hit"] == "no" and not seen["handlers"], said
        for kind in ("tags", "loads"):
            assert sorted(set(seen[kind]) - set(self.plain[kind])) == [], said
        assert "".join(seen["texts"]) == sentence, said
        assert seen["texts"] == [token.text for token in result.tokens], said
        for name, token, shown, tip in zip(names, result.tokens, seen["shown"], seen["tips"], strict=True):
            assert name in shown and tip.startswith(token.label), said
        assert f"query {names[-1]}, key {names[0]}" in seen["arithmetic"], (said, seen["arithmetic"])
        if len(names) <= 32:  # of longer ones a table lists the chosen row alone
            assert list(names) in seen["tables"], said

    def check_address(self, sentence: str) -> None:
        """It may follow later: a browser takes only so many in a while."""
        self.explorer.page.wait_for_function(
            "sentence => new URLSearchParams(location.search).get('sentence') === sentence", arg=sentence
        )


@pytest.fixture
def hostile(explorer):
    return Hostile(explorer)


def test_everything_hostile_can_be_typed_and_is_shown_literally(hostile):
    typed = list(dict.fromkeys(batches()))
    assert len(typed) > 40
    for number, sentence in enumerate(typed):
        if all(map(text.is_invisible, sentence)):
            continue
        cleaned, note = text.clean(sentence.replace("\r\n", "\n").replace("\r", "\n"))  # as a box has it
        hostile.type(sentence)
        hostile.check(
            cleaned, STEPS if number < 4 else ["tokens", "weights"] if number < len(CANARIES) else ["weights"]
        )
        if number % 8 == 0:
            hostile.check_address(cleaned)
        if note:
            assert note in hostile.explorer.page.inner_text("#explorer")
    assert not hostile.explorer.outside


def test_hard_inputs_are_shown_as_the_words_they_are_made_of(hostile):
    for case in HARD:
        cleaned, note = text.clean(case["text"])
        if all(map(text.is_invisible, case["text"])) or "\r" in case["text"]:
            continue  # a box has its own end of line
        hostile.type(case["text"])
        hostile.check(cleaned, ["tokens", "weights"])
        for token, label in zip(hostile.explorer.tokens, case["words"], strict=True):
            assert label.removeprefix("␣") in token["shown"], case["id"]
        if note:
            assert note in hostile.explorer.page.inner_text("#explorer"), case["id"]


def test_links_with_everything_hostile_open_the_page_and_come_back_the_same(hostile):
    page = hostile.explorer.page
    several = ["\n".join(CANARIES[::2] + by_kind()["markup"]),
               "a\ud83d\x00\x1b" + " ".join(by_kind()["joined"] + by_kind()["direction"][:8])]  # fmt: skip
    for sentence in several:
        cleaned, _ = text.clean(sentence)
        hostile.explorer.quiet()
        page.goto("about:blank")
        query = urlencode({"sentence": sentence, "model": "untrained", "x": CANARIES[0]}, errors="surrogatepass")
        address = f"{hostile.explorer.url}/?{query}"
        page.goto(address)
        hostile.explorer.wait_for_request(model="untrained")
        assert page.url == address  # nothing has written to it yet
        assert hostile.explorer.request["sentence"].replace("\ufffd", "") == cleaned.replace("\ufffd", "")
        cleaned = hostile.explorer.request["sentence"]
        hostile.check(cleaned, ["context", "weights"])
        hostile.check_address(cleaned)
        hostile.explorer.quiet()
        page.reload()  # the address is the explorer's own now
        hostile.explorer.wait_for_request(sentence=cleaned)
        hostile.check(cleaned, ["weights"])


def test_a_canary_in_any_parameter_of_a_link_does_nothing(hostile):
    page = hostile.explorer.page
    harmless = {"sentence": "some words", "model": "untrained", "step": "weights"}
    hidden = dict.fromkeys(["step", "cell", "tensor", "__theme", "x"], CANARIES[0])
    for more in (hidden, *({name: CANARIES[0]} for name in ("model", "tokenizer", "mask", "edits"))):
        hostile.explorer.quiet()
        page.goto(f"{hostile.explorer.url}/?{urlencode(harmless | more)}")
        hostile.explorer.wait(0)
        seen = page.evaluate(LOOK, ["weights"])
        assert seen["hit"] == "no" and not seen["handlers"]
        assert not set(seen["tags"]) - set(hostile.plain["tags"])
