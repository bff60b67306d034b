"""A real Chromium on the real server, and a driver that finds the page by its fixed hooks alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 20_000  # how long anything may take, in milliseconds
BOX = "#sentence textarea, #sentence input"


def pytest_collection_modifyitems(items):
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)


def installed() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def find_chromium(playwright) -> str | None:
    """A browser's path, installed here and now where there is none; None for the one that Playwright brings."""
    if path := installed():
        return path
    if os.path.exists(playwright.chromium.executable_path):
        return None
    attempts = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        attempts.append(["apt-get", "install", "-y", "chromium"])
    said = ""
    for attempt in attempts:
        done = subprocess.run(attempt, capture_output=True, text=True, timeout=600)
        said = f"{' '.join(attempt[-3:])}: {(done.stderr or done.stdout)[-300:]}"
        if done.returncode == 0:
            return installed()
    raise AssertionError(
        f"The browser tests need Chromium or Chrome ({', '.join(NAMES)}), and installing one failed. {said}"
    )


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_chromium(playwright), args=FLAGS)
        yield running
        running.close()


class Explorer:
    """One page of the app. What went wrong in it is kept in `trouble`."""

    def __init__(self, browser, url: str, **options) -> None:
        self.url, self.trouble, self.outside, self.waiting = url, [], [], set()
        self.context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        self.context.set_default_timeout(SECONDS)
        self.context.route(lambda address: urlsplit(address).hostname != "127.0.0.1", self._outside)
        self.page = self.context.new_page()
        self.page.on("console", lambda said: said.type == "error" and self.trouble.append(said.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda sent: "/queue/" in sent.url and self.waiting.add(sent))
        for end in ("requestfinished", "requestfailed"):
            self.page.on(end, lambda sent: self.waiting.discard(sent))

    def _outside(self, route) -> None:
        self.outside.append(route.request.url)
        route.fulfill(status=204, body="")

    def _dialog(self, dialog) -> None:
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    # -- going there, and what is painted ---------------------------------------------------------------------------

    def open(self, query: str = "", **parameters) -> Explorer:
        """Open the page, or a link, and wait until what was asked for is painted."""
        query = query or urlencode(parameters)
        self.quiet()
        self.page.goto(f"{self.url}/?{query}" if query else self.url + "/")
        self.wait(0)
        if sentence := parse_qs(query).get("sentence"):
            self.wait_for_request(sentence=sentence[0])
        self.quiet()
        return self

    def quiet(self, milliseconds: int = 80) -> None:
        """Wait until no answer is on its way, and none was for a while; who leaves earlier is told of an error.

        Not for ever: of two streams that Gradio's page opened at once, one may never be closed.
        """
        calm = 0
        for _ in range(SECONDS // 40):
            calm = 0 if self.waiting else calm + 20
            if calm > milliseconds:
                return
            self.page.wait_for_timeout(20)

    @property
    def painted(self) -> int:
        return int(self.page.evaluate("document.querySelector('#explorer')?.dataset.painted ?? 0"))

    def wait(self, before: int) -> int:
        """Wait for a paint after `before`; how many there are then."""
        self.page.wait_for_function(
            "before => Number(document.querySelector('#explorer')?.dataset.painted ?? 0) > before", arg=before
        )
        return self.painted

    def wait_for_request(self, **settings) -> None:
        """Wait until what is painted answers a request with these settings."""
        self.page.wait_for_function(
            """settings => {
                const painted = new URLSearchParams(document.querySelector('#explorer')?.dataset.request ?? '');
                return Object.entries(settings).every(([name, value]) => painted.get(name) === value);
            }""",
            arg=settings,
        )

    def settled(self, milliseconds: int = 400) -> int:
        """How many paints there are once no more come."""
        self.page.wait_for_timeout(milliseconds)
        return self.painted

    @property
    def request(self) -> dict[str, str]:
        """The painted request, as its URL query says it."""
        query = self.page.get_attribute("#explorer", "data-request")
        return {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}

    @property
    def address(self) -> dict[str, str]:
        """The query of the address bar."""
        return {k: v[0] for k, v in parse_qs(urlsplit(self.page.url).query, keep_blank_values=True).items()}

    @property
    def cell(self) -> tuple[int, int]:
        """The selected cell of the matrix that has the focus; else as the address tells it."""
        focused = self.page.evaluate("document.activeElement.dataset.cell ?? null")
        row, column = (focused or self.address["cell"]).split(",")
        return int(row), int(column)

    # -- what a visitor does ----------------------------------------------------------------------------------------

    def type(self, sentence: str) -> None:
        self.page.fill(BOX, sentence)

    def run(self, enter: bool = False) -> int:
        before = self.painted
        if enter:
            self.page.press(BOX, "Enter")
        else:
            self.page.click("#run")
        return self.wait(before)

    def ask(self, sentence: str) -> None:
        """Type a sentence and run it."""
        self.type(sentence)
        self.page.click("#run")
        self.wait_for_request(sentence=sentence)
        self.settled(200)

    def step(self, name: str) -> None:
        self.page.click(f'[data-step="{name}"]')

    def matrix(self, tensor: str):
        return self.page.locator(f'[data-matrix="{tensor}"]')

    def matrices(self) -> list[str]:
        return self.page.eval_on_selector_all("[data-matrix]", "all => all.map(one => one.dataset.matrix)")

    def press(self, tensor: str, *keys: str) -> None:
        host = self.matrix(tensor)
        host.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def hold(self, tensor: str, *keys: str) -> None:
        """Many keys at once, as events in the page: for ways of a hundred cells."""
        self.matrix(tensor).focus()
        self.page.evaluate(
            "keys => keys.forEach((key) => document.activeElement.dispatchEvent("
            "new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })))",
            list(keys),
        )

    def choose(self, tensor: str, row: int, column: int, rows: int) -> None:
        """Reach a cell by the keyboard alone, from wherever the matrix is."""
        keys = ["Home"] + ["ArrowUp"] * rows + ["ArrowDown"] * row + ["ArrowRight"] * column
        self.press(tensor, *keys)

    @property
    def arithmetic(self) -> str:
        return self.page.inner_text("#arithmetic")

    @property
    def tokens(self) -> list[dict[str, str]]:
        return self.page.eval_on_selector_all(
            "[data-token]", "all => all.map(one => ({text: one.dataset.text, shown: one.textContent}))"
        )

    def too_wide(self) -> int:
        """By how many pixels the whole page scrolls sideways."""
        return self.page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")


@pytest.fixture
def visit(browser, server):
    """visit(**options of a browser context) → Explorer. Whatever went wrong in it fails the test."""
    opened: list[Explorer] = []

    def begin(url: str | None = None, **options) -> Explorer:
        opened.append(Explorer(browser, url or server.url, **options))
        return opened[-1]

    yield begin
    trouble = [line for explorer in opened for line in explorer.trouble]
    for explorer in opened:
        explorer.context.close()
    assert not trouble, trouble


@pytest.fixture
def explorer(visit):
    """A page at 1280 pixels, not opened yet."""
    return visit()
