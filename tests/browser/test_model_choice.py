"""Choosing a model: GPT-2 comes over the network, and how far it is stands on the page, which stays alive meanwhile."""

import re
import threading

import pytest
import tiny_gpt2
from hub import Hub
from servers import serving

from attention.models import gpt2_files

SIZES = {"layers": 12, "heads": 12, "width": 300}  # the layers and heads of the real one, in 50 MB


@pytest.fixture(scope="module")
def slow_hub(tmp_path_factory):
    """(hub, let): the body of a large file goes on only while `let["bytes"]` allows it."""
    folder = tiny_gpt2.make(tmp_path_factory.mktemp("wide-gpt2"), **SIZES)
    let, changed = {"bytes": 0}, threading.Condition()

    def pause(sent: int, of: int) -> None:
        with changed:
            while of > 10e6 and sent > let["bytes"]:
                changed.wait(0.05)

    with Hub(folder, gpt2_files.REVISION) as hub:
        hub.pause = pause
        yield hub, let
        let["bytes"] = 1e12


def choose(explorer, model: str, by_keyboard: bool = False) -> None:
    field = explorer.page.locator("#model input")
    field.click()
    if by_keyboard:
        field.fill(model)
        field.press("Enter")
    else:
        explorer.page.get_by_role("option", name=re.compile(model)).click()


def chosen(explorer) -> str:
    return explorer.page.input_value("#model input")


def test_the_page_says_how_far_the_download_is(visit, slow_hub, tmp_path):
    hub, let = slow_hub
    environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "0"}
    environment |= {"HF_HUB_DISABLE_XET": "1", gpt2_files.FOLDER: ""}
    with serving(tmp_path, **environment) as app:
        explorer = visit(app.url)
        page = explorer.open().page
        assert not page.locator("#loading").is_visible()
        before = explorer.painted
        choose(explorer, "GPT-2")
        told = []
        for megabytes in (12, 24, 36):
            let["bytes"] = megabytes * 2**20
            shown = "parseFloat(document.querySelector('#loading')?.innerText.match(/: ([\\d.]+) of/)?.[1])"
            page.wait_for_function(f"least => {shown} > least", arg=megabytes - 6)
            told.append(re.search(r"this once: ([\d.]+) of ([\d.]+) MB$", page.inner_text("#loading").strip()).groups())
        done, total = zip(*(map(float, line) for line in told), strict=True)
        assert done[0] < done[1] < done[2] < total[0] and len(set(total)) == 1
        size = (hub.folder / "model.safetensors").stat().st_size
        assert total[0] == round(size / 1e6, 1) and page.locator("#loading progress").get_attribute("max") == str(size)
        assert explorer.painted == before and page.is_hidden(".ax-message")

        other = visit(app.url)  # somebody else types meanwhile
        other.open()
        other.type("The dog ran. The dog")
        other.wait_for_request(sentence="The dog ran. The dog")
        assert not other.page.locator("#loading").is_visible()

        choose(explorer, "Textbook")  # meanwhile one may change one's mind, and type
        explorer.wait_for_request(model="textbook")
        explorer.type("one step")
        explorer.wait_for_request(sentence="one step", model="textbook")
        choose(explorer, "GPT-2", by_keyboard=True)
        explorer.settled(1000)
        choose(explorer, "Untrained", by_keyboard=True)
        explorer.wait_for_request(model="untrained")
        let["bytes"] = 1e12
        page.wait_for_selector("#loading", state="hidden")
        explorer.settled(2000)
        assert explorer.request["model"] == "untrained" and chosen(explorer).startswith("Untrained")
        choose(explorer, "GPT-2")
        explorer.wait_for_request(model="gpt2")
        page.wait_for_selector("#loading", state="hidden")
        assert page.inner_text("h2").startswith("In layer") and page.is_hidden(".ax-message")


def test_a_model_that_cannot_be_had_gives_the_choice_back(visit, tmp_path):
    with serving(tmp_path, HF_HOME=str(tmp_path / "hub"), **{gpt2_files.FOLDER: ""}) as app:  # with HF_HUB_OFFLINE=1
        explorer = visit(app.url)
        page = explorer.open(sentence="one step", model="textbook").page
        choose(explorer, "GPT-2")
        page.wait_for_selector(".ax-message:not([hidden])")
        assert "internet" in page.inner_text(".ax-message") and explorer.request["model"] == "textbook"
        page.wait_for_function("document.querySelector('#model input').value.startsWith('Textbook')")
        explorer.ask("one journey")
        assert explorer.request["model"] == "textbook" and page.is_hidden(".ax-message")


def test_passing_the_choice_by_changes_nothing_and_one_choice_paints_once(explorer):
    page = explorer.open(sentence="The cat sat. The cat", layer=0).page
    page.focus("#sentence textarea")
    painted = explorer.painted
    for _ in range(3):
        page.keyboard.press("Tab")
    assert explorer.settled(1000) == painted and explorer.request["layer"] == "0"
    choose(explorer, "Untrained")
    explorer.wait_for_request(model="untrained")
    assert explorer.settled(1000) == painted + 1
    choose(explorer, "Textbook", by_keyboard=True)
    explorer.wait_for_request(model="textbook")
    assert explorer.settled(1000) == painted + 2


def test_a_sentence_that_the_model_cannot_read_is_not_lost_without_a_word(explorer):
    page = explorer.open(sentence="My own words", model="untrained").page
    choose(explorer, "Textbook")
    explorer.wait_for_request(model="textbook")
    told = page.inner_text(".ax-message")
    assert "six words" in told and told.endswith("instead of: My own words")
    assert "journey" in page.input_value("#sentence textarea, #sentence input")
    choose(explorer, "Untrained")
    explorer.wait_for_request(model="untrained")
    assert page.is_hidden(".ax-message")
    explorer.open()  # nobody wrote the example
    choose(explorer, "Textbook")
    explorer.wait_for_request(model="textbook")
    assert page.is_hidden(".ax-message")
