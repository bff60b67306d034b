"""From Enter to painted, in a real Chromium with the real server, beside a trivial Gradio event in the same run.

    python tests/benchmarks/bench_page.py [--runs 15] [--json FILE]

Prints medians in milliseconds and their ratio to the trivial event; quote the ratios, the times belong to the machine.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT / "tests")]

from conftest import FLAGS, find_chromium  # noqa: E402
from servers import serving  # noqa: E402

TRIVIAL = """
import time, gradio as gr
with gr.Blocks(analytics_enabled=False) as page:
    box = gr.Textbox(elem_id="sentence", lines=1, max_lines=1)
    out = gr.HTML(value={"n": 0}, html_template="<i></i>", elem_id="explorer", js_on_load='''
        let n = 0;
        const root = element.closest("#explorer");
        watch("value", () => { root.dataset.painted = ++n; });
        root.dataset.painted = 0;
    ''')
    box.submit(lambda text: {"n": time.time_ns()}, box, out, show_progress="hidden")
page.queue().launch(quiet=True)
"""
TEXT = "The quick brown fox jumps over the lazy dog while 23 owls look on, and nobody knows why they do so. "

WATCH = """() => {
  const root = document.querySelector("#explorer");
  window.measured = null;
  let pressed = 0;
  document.addEventListener("keydown", () => (pressed = performance.now()), { capture: true, once: true });
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.measured = performance.now() - pressed)));
  }).observe(root, { attributeFilter: ["data-painted"] });
}"""
BOX = "#sentence textarea, #sentence input"


def median(page, runs: int) -> float:
    """Milliseconds from the key press to the frame after the repaint, the median of `runs` after three more."""
    times = []
    for _ in range(runs + 3):
        page.evaluate(WATCH)
        page.press(BOX, "Enter")
        page.wait_for_function("window.measured !== null", timeout=20_000)
        times.append(page.evaluate("window.measured"))
        page.wait_for_timeout(120)
    return statistics.median(times[3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        (Path(folder) / "trivial.py").write_text(TRIVIAL)
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=FLAGS)
        with serving(Path(folder), app=Path(folder) / "trivial.py") as trivial, serving(Path(folder)) as real:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(trivial.url)
            page.wait_for_selector("#explorer[data-painted]", state="attached")
            page.fill(BOX, "hello")
            rows["trivial event"] = median(page, given.runs)
            page.close()
            for tokens in (16, 64, 128, 1024):
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                sentence = (TEXT * 11)[:tokens]
                page.goto(f"{real.url}/?model=untrained&tokenizer=characters&sentence={quote(sentence)}")
                page.wait_for_function(f"document.querySelectorAll('[data-token]').length === {tokens}")
                rows[f"{tokens} tokens"] = median(page, given.runs if tokens < 1000 else 5)
                page.close()
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(real.url)
            page.wait_for_selector("#explorer[data-painted]")
            rows["trained, the example"] = median(page, given.runs)
        browser.close()
    base = rows["trivial event"]
    for name, time in rows.items():
        print(f"{name:24} {time:8.0f} ms  {time / base:6.2f} ×")
    if given.json:
        given.json.write_text(json.dumps({name: time / base for name, time in rows.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
