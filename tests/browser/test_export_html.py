"""The page that an export is: opened from a file in Chromium with the network off, and as a notebook's frame."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from servers import call, fetch

from attention import attend, export, models

HOSTILE = "</script><!-- <img src=x onerror=alert(1)> ${1+1} `tick` \\u 🤗 \u2028 é \"'&lt;"
REQUESTS = {
    **{name: {"sentence": models.get(name).example, "model": name} for name in models.NAMES},
    "padding": {"sentence": "hi there", "model": "untrained", "pad_to": 5, "pad_side": "left"},
    "one token": {"sentence": "Hi", "model": "untrained"},
    "128 tokens": {"sentence": ("to be or not " * 10)[:128], "model": "untrained", "tokenizer": "characters"},
    "hostile": {"sentence": HOSTILE, "model": "untrained"},
    "dropout and edits": {
        "sentence": "the cat sat",
        "model": "untrained",
        "mask": "after",
        "dropout": 0.3,
        "edits": [["scores", 2, 1, 2.5]],
    },
}
STEPS = ["tokens", "x", "qk", "scores", "scaled", "masked", "weights", "context", "next"]


@pytest.fixture
def offline(browser):
    """offline(path) → a page of its own without network. Whatever went wrong in it fails the test."""
    contexts, trouble, asked = [], [], []

    def begin(path: Path, **options):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: said.type in ("error", "warning") and trouble.append(said.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield begin
    for context in contexts:
        context.close()
    assert not trouble, trouble
    assert all(re.match("file:|data:|about:", url) for url in asked), asked


def painted(page):
    page.wait_for_selector("#explorer[data-painted='1']", timeout=20_000)
    return page


@pytest.mark.parametrize("name", REQUESTS)
def test_the_page_works_from_a_file_without_network(offline, tmp_path, name):
    run = attend(**REQUESTS[name])
    path = tmp_path / "run.html"
    run.save(path)
    page = painted(offline(path))
    texts = page.eval_on_selector_all("[data-token]", "all => all.map(one => one.dataset.text)")
    assert texts == [t.text for t in run.tokens] and page.title().endswith("Causal attention, step by step")
    assert page.get_attribute("#explorer", "data-request") == run.request.query()
    for step in STEPS:
        page.click(f'[data-step="{step}"]')
        assert page.get_attribute(f'[data-step="{step}"]', "aria-current") == "step"
    # Nobody is there to compute another run, so nothing asks for one.
    assert not page.locator(
        ".ax-what-if *, .ax-example, .ax-switch, .ax-change, .ax-learning:not([hidden]), .ax-compare *"
    ).count()


def test_every_weight_of_the_head_is_there_however_large(offline, tmp_path):
    run = attend("the cat sat", model="untrained", d_model=128, d_head=128)
    run.save(tmp_path / "run.html")
    page = painted(offline(tmp_path / "run.html"))
    page.click('[data-step="qk"]')
    page.focus('[data-matrix="q"]')
    page.keyboard.press("Home")
    said = page.inner_text("#arithmetic")
    value = f"{run['q'][0, 0]:.4f}".replace("-", "\u2212")
    assert value in said and "128" in said
    weight = f"{run.model.head(run.request).W_query.weight[0, 0].item():.4f}".replace("-", "\u2212")
    page.locator("#arithmetic summary").first.click()
    assert weight in page.inner_text("#arithmetic")


def test_page_and_program_print_the_same_digits(offline, tmp_path):
    run = attend("Your journey starts with one step", model="textbook")
    run.save(tmp_path / "run.html")
    run.save(tmp_path / "run.py")
    done = subprocess.run([sys.executable, "-I", "run.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = [line.split()[:6] for line in done.stdout.splitlines()[1:7]]
    page = painted(offline(tmp_path / "run.html"))
    page.click('[data-step="weights"]')
    page.focus('[data-matrix="weights"]')
    for row in range(6):
        page.keyboard.press("Home")
        for column in range(row + 1):
            result = page.inner_text("#arithmetic").replace("\u2212", "-")
            assert re.search(rf"(?<![\d.]){re.escape(rows[row][column])}(?!\d)", result), (row, column, result)
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")


def test_the_page_follows_the_visitors_dark_theme(offline, tmp_path):
    attend("one step", model="textbook").save(tmp_path / "run.html")
    page = painted(offline(tmp_path / "run.html", color_scheme="dark"))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 22, 31)"


def test_a_notebook_shows_the_explorer_and_keeps_it_apart(offline, tmp_path):
    run = attend(HOSTILE, model="untrained")
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{run._repr_html_()}</body>", encoding="utf-8")
    page = offline(path)
    frame = page.frame_locator("iframe")
    frame.locator("#explorer[data-painted='1']").wait_for(timeout=20_000)
    assert frame.locator("[data-token]").count() == len(run.tokens)
    assert page.evaluate("document.querySelector('iframe').contentDocument") is None


def test_the_buttons_of_the_page_give_each_export(explorer, tmp_path):
    explorer.open(sentence="one step", model="textbook")
    page = explorer.page
    page.click("#take-away button")
    for format, suffix in export.SUFFIXES.items():
        page.click(f"#take-{format}")
        link = page.locator(f'#sheet-files a[download$=".{suffix}"]').first
        link.wait_for()
        with page.expect_download() as download:
            link.click()
        assert download.value.suggested_filename == f"attention-one-step.{suffix}"
        file = call(explorer.url, "export", sentence="one step", model="textbook", format=format)
        assert Path(download.value.path()).read_bytes() == fetch(file["url"])[1]
