"""From Enter to painted, and live typing, in a real Chromium with the real server; all pages take turns in one run.

    python tests/benchmarks/bench_page.py

Beside them a page whose one event brings a text of a chosen length: as short as can be, and as long as our answers.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from paired import TESTS, Row  # tells where the others are
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(TESTS / "browser"))  # its conftest, not the one above it

from conftest import BOX, FLAGS, find_chromium
from servers import serving

from attention import Request, answers

BARE = """
import time, gradio as gr
with gr.Blocks(analytics_enabled=False) as page:
    box = gr.Textbox(elem_id="sentence", lines=1, max_lines=1)
    out = gr.HTML(value="", html_template="<i></i>", elem_id="explorer", js_on_load='''
        let n = 0;
        const root = element.closest("#explorer");
        watch("value", () => { root.dataset.painted = ++n; });
        root.dataset.painted = 0;
    ''')
    box.submit(lambda length: f"{time.time_ns():x<{int(length)}}", box, out, show_progress="hidden")
page.queue().launch(quiet=True)
"""
SHORT = 20  # characters of a trivial event's value
TEXT = "The quick brown fox jumps over the lazy dog while 23 owls look on, and nobody knows why they do so. " * 11
LIMITS = {16: (1.8, 50), 128: (5, 150)}  # tokens: over a trivial event, and milliseconds beyond one as large
LONG = 1024  # tokens
TYPED = " on the mat and the dog ran to the big tree. The cat sat on the mat and the dog ran to"  # after the example
KEY, LAG = 125, 300  # milliseconds between two keys, and from the last one to its answer

ENTER = """() => {
  const root = document.querySelector("#explorer");
  window.measured = null;
  let pressed = 0;
  document.addEventListener("keydown", () => (pressed = performance.now()), { capture: true, once: true });
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.measured = performance.now() - pressed)));
  }).observe(root, { attributeFilter: ["data-painted"] });
}"""
TYPING = """() => {
  const root = document.querySelector("#explorer");
  window.typed = 0;
  window.painted = [];
  document.addEventListener("input", () => (window.typed = performance.now()));
  new MutationObserver(() => {
    const query = root.dataset.request;
    requestAnimationFrame(() => setTimeout(() => window.painted.push([query, performance.now() - window.typed])));
  }).observe(root, { attributeFilter: ["data-painted"] });
}"""


def enter(tab) -> float:
    """Milliseconds from the key press to the frame after the repaint."""
    tab.bring_to_front()
    tab.evaluate(ENTER)
    tab.press(BOX, "Enter")
    tab.wait_for_function("window.measured !== null", timeout=20_000)
    took = tab.evaluate("window.measured")
    tab.wait_for_timeout(100)
    return took


def settings(tokens: int) -> dict[str, str]:
    return {"model": "untrained", "tokenizer": "characters", "sentence": TEXT[:tokens]}


@contextmanager
def opened(browser, url: str, **query: str):
    """A tab whose explorer has painted what was asked for."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(f"{url}/?{urlencode(query)}")
    ready = "(text) => { const r = document.querySelector('#explorer[data-painted]'); return r && "
    ready += "(!text || new URLSearchParams(r.dataset.request).get('sentence') === text) }"
    tab.wait_for_function(ready, arg=query.get("sentence"), timeout=20_000)
    yield tab
    tab.close()


def entering(browser, app: str, bare: str, runs: int) -> Iterator[Row]:
    for tokens, (times, beyond) in LIMITS.items():
        length = len(answers.value(answers.painted(Request(**settings(tokens)), gpu=False)))
        with (
            opened(browser, app, **settings(tokens)) as ours,
            opened(browser, bare) as trivial,
            opened(browser, bare) as large,
        ):
            trivial.fill(BOX, str(SHORT))
            large.fill(BOX, str(length))
            turns = [[enter(tab) for tab in (ours, trivial, large)] for _ in range(runs + 3)][3:]
        over = statistics.median(a / b for a, b, _ in turns)
        yield Row(f"Enter to painted / a trivial event, {tokens} tokens", over, times)
        more = statistics.median(a - c for a, _, c in turns)
        yield Row(f"Enter to painted beyond an event as large, {tokens} tokens", more, beyond, "ms")
    with opened(browser, app, **settings(LONG)) as ours:
        took = statistics.median([enter(ours) for _ in range(6)][1:])
    yield Row(f"Enter to painted, {LONG} tokens", took / 1000, 2, "s")


def typing(browser, app: str, model: str) -> Iterator[Row]:
    """Keys at a steady pace, 6 to about 30 tokens: the last answer is soon there, and none is older than the last."""
    start = "The cat sat. The cat"
    with opened(browser, app, model=model, sentence=start) as tab:
        tab.focus(BOX)
        tab.press(BOX, "End")
        tab.evaluate(TYPING)
        tab.keyboard.type(TYPED, delay=KEY)
        whole = "(text) => window.painted.some(([q]) => new URLSearchParams(q).get('sentence') === text)"
        tab.wait_for_function(whole, arg=start + TYPED, timeout=20_000)
        painted = [(parse_qs(query)["sentence"][0], lag) for query, lag in tab.evaluate("window.painted")]
    lengths = [len(sentence) for sentence, _ in painted]
    lag = next(lag for sentence, lag in painted if sentence == start + TYPED)
    yield Row(f"typing, {model}: last key to its answer", lag, LAG, "ms")
    backwards = sum(later < sooner for sooner, later in pairwise(lengths))
    yield Row(f"typing, {model}: answers painted after a newer one", backwards, 0, "")
    yield Row(f"typing, {model}: answers painted a key", len(painted) / len(TYPED))


def rows(_: Path, runs: int = 11) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "bare.py").write_text(BARE)
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=FLAGS)
        with serving(folder, app=folder / "bare.py") as bare, serving(folder) as app:
            yield from entering(browser, app.url, bare.url, runs)
            for model in ("untrained", "trained"):
                yield from typing(browser, app.url, model)
        browser.close()


if __name__ == "__main__":
    for row in rows(Path()):
        print(row, flush=True)
