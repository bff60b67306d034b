"""The page in a real Chromium, found by its fixed hooks: what a visitor does, and what must not happen to them."""

import json
import random
import re

import pytest
from arithmetic import check_lines, check_table, read_number, same_digits
from servers import call, fetch

from attention import Request, attend, models

STEPS = ["tokens", "x", "qk", "scores", "scaled", "masked", "weights", "context", "next"]
TEXTBOOK = {"sentence": "Your journey starts with one step", "model": "textbook"}
OFFLINE = [name for name in models.NAMES if name != "gpt2"]


def numbers(explorer):
    """What `/attend` gives for the painted request."""
    request = Request.from_query(explorer.page.get_attribute("#explorer", "data-request"))
    return call(explorer.url, "attend", **request.settings())


# --- arriving --------------------------------------------------------------------------------------------------------


def test_a_visitor_sees_a_finished_example_at_once(explorer):
    explorer.open()
    assert explorer.painted == 1
    assert explorer.request["sentence"] == models.get(models.DEFAULT).example
    assert [t["text"] for t in explorer.tokens] == [t["text"] for t in numbers(explorer)["tokens"]]
    assert explorer.matrices() and explorer.arithmetic.strip()
    assert explorer.address == {}  # nothing wrote to the address
    assert not explorer.outside, "the page asks for something from elsewhere"


def test_the_fixed_hooks_are_there(explorer):
    explorer.open(**TEXTBOOK)
    page = explorer.page
    assert page.locator("#sentence").count() == page.locator("#run").count() == page.locator("#arithmetic").count() == 1
    assert page.get_attribute("#arithmetic", "aria-live") == "polite"
    steps = page.eval_on_selector_all("[data-step]", "all => all.map(one => one.dataset.step)")
    assert steps == STEPS
    assert [t["text"] for t in explorer.tokens] == ["Your", " journey", " starts", " with", " one", " step"]
    shown = {}
    for step in STEPS:
        explorer.step(step)
        shown[step] = explorer.matrices()
        assert len(set(shown[step])) == len(shown[step])
        assert all(explorer.matrix(tensor).get_attribute("tabindex") == "0" for tensor in shown[step])
    for step, tensor in {
        "x": "x",
        "scores": "scores",
        "scaled": "scaled",
        "masked": "masked",
        "weights": "weights",
    }.items():
        assert tensor in shown[step]
    assert {"q", "k"} <= set(shown["qk"]) and {"v", "context", "weights"} <= set(shown["context"])
    assert not any("v" in shown[step] for step in STEPS[:7])  # it enters where it is used


# --- running ---------------------------------------------------------------------------------------------------------


def test_every_run_paints_exactly_once_also_when_nothing_changed(explorer):
    explorer.open()
    for before in (1, 2, 3):
        assert explorer.painted == before
        explorer.run()
        assert explorer.settled() == before + 1


def test_a_second_run_is_interactive_and_nothing_listens_twice(explorer):
    explorer.open(**TEXTBOOK, step="weights")
    for sentence in ("one step", "Your journey starts with", "with one step one"):
        explorer.ask(sentence)
    assert [t["text"].strip() for t in explorer.tokens] == ["with", "one", "step", "one"]
    explorer.press("weights", "ArrowDown")
    assert explorer.cell == (1, 0)
    explorer.press("weights", "ArrowRight")
    assert explorer.cell == (1, 1)
    explorer.press("weights", "ArrowDown", "ArrowDown")
    assert explorer.cell == (3, 1)
    weights = numbers(explorer)["tensors"]["weights"]
    assert same_digits(shown_result(explorer), weights[3][1])
    explorer.step("context")
    explorer.press("context", "End", "ArrowUp")
    assert explorer.cell == (2, 1)
    assert same_digits(shown_result(explorer), numbers(explorer)["tensors"]["context"][2][1])


def test_live_typing_paints_without_run(explorer):
    explorer.open(model="untrained", sentence="red")
    explorer.page.focus("#sentence input, #sentence textarea")
    explorer.page.keyboard.press("End")
    explorer.page.keyboard.type(" fox")
    explorer.wait_for_request(sentence="red fox")
    explorer.settled()
    assert [t["text"] for t in explorer.tokens] == ["red", " fox"]


def test_an_error_stands_beside_the_box_and_the_next_run_works(explorer):
    explorer.open(**TEXTBOOK, step="weights")
    before = explorer.painted
    explorer.type("Hello <b>there</b>")
    explorer.page.click("#run")
    alert = explorer.page.locator("[role=alert]:visible", has_text="Your, journey, starts, with, one, step")
    alert.first.wait_for()
    assert alert.count() == 1 and "<" not in alert.inner_text()
    box, said = explorer.page.locator("#sentence").bounding_box(), alert.bounding_box()
    assert 0 <= said["y"] - (box["y"] + box["height"]) < 150
    assert explorer.settled() == before  # the last result stays, and can still be explored
    assert len(explorer.tokens) == 6 and explorer.request["sentence"] == TEXTBOOK["sentence"]
    explorer.press("weights", "ArrowDown")
    assert explorer.cell == (1, 0)
    assert "Error" not in explorer.page.inner_text("#explorer")
    for wrong, says in (("", "Type a sentence first."), ("   ", "Type a sentence first.")):
        explorer.type(wrong)
        explorer.page.click("#run")
        explorer.page.locator("[role=alert]:visible", has_text=says).wait_for()
    explorer.ask("one step")
    assert len(explorer.tokens) == 2 and explorer.page.locator("[role=alert]:visible").count() == 0


def test_another_model_brings_its_example_where_it_cannot_read_the_sentence(explorer):
    explorer.open(model="untrained", sentence="red fox")
    explorer.page.click("#model input")
    explorer.page.get_by_role("option", name=models.get("textbook").title).click()
    explorer.wait_for_request(model="textbook")
    explorer.settled()
    assert explorer.request["sentence"] == models.get("textbook").example
    assert explorer.run() and explorer.request["model"] == "textbook"


# --- links -----------------------------------------------------------------------------------------------------------


def test_a_link_opens_exactly_there_and_writes_nothing_before_the_visitor_acts(explorer):
    query = "sentence=Your+journey+starts+with+one+step&model=textbook&step=scores&cell=1%2C0&utm_source=class"
    explorer.open(query)
    explorer.settled(1000)
    assert explorer.page.url == f"{explorer.url}/?{query}"
    assert explorer.request == TEXTBOOK and explorer.page.input_value("#sentence input, #sentence textarea")
    assert "scores" in explorer.matrices()
    assert "query journey, key Your" in explorer.arithmetic and "0.0191" in explorer.arithmetic
    explorer.press("scores", "ArrowRight")
    assert explorer.cell == (1, 1)
    assert explorer.address["utm_source"] == "class" and explorer.address["step"] == "scores"
    explorer.quiet()
    explorer.page.reload()
    explorer.wait(0)
    explorer.wait_for_request(model="textbook")
    explorer.settled()
    assert "query journey, key journey" in explorer.arithmetic and "0.0297" in explorer.arithmetic


def test_a_link_carries_every_setting(explorer):
    request = Request(
        "the cat sat", "untrained", tokenizer="characters", mask="after", scale=False, pad_to=14, pad_side="left",
        dropout=0.25, edits=[["scores", 5, 4, 2.5]], d_model=3, d_head=2, seed=7, qkv_bias=True, positions=False,
    )  # fmt: skip
    explorer.open(request.query() + "&step=weights&cell=5,4")
    assert Request.from_query(explorer.page.get_attribute("#explorer", "data-request")) == request
    assert len(explorer.tokens) == 14
    weights = attend(**request.settings())["weights"]
    assert same_digits(shown_result(explorer), float(weights[5, 4]))
    explorer.run()  # the controls have followed the link, so Run asks for the same
    explorer.settled()
    assert Request.from_query(explorer.page.get_attribute("#explorer", "data-request")) == request


def test_a_link_to_a_cell_that_is_not_there_opens_the_step(explorer):
    for odd in ("99,99", "-1,b", "1,0,0"):
        explorer.open(**TEXTBOOK, step="weights", cell=odd)
        assert "weights" in explorer.matrices() and explorer.arithmetic.strip(), odd


# --- the keyboard ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step, tensor", [("x", "x"), ("scores", "k"), ("masked", "masked"), ("context", "context")])
def test_the_keys_start_at_the_first_cell(explorer, step, tensor):
    explorer.open(**TEXTBOOK, step=step)  # nothing is chosen yet
    explorer.matrix(tensor).focus()
    assert explorer.cell == (0, 0)


def test_arrows_home_and_end_move_in_every_matrix(explorer):
    tensors = numbers(explorer.open(**TEXTBOOK))["tensors"]
    for step, shown in {
        "x": ["x"],
        "qk": ["q", "k"],
        "scores": ["q", "k", "scores"],
        "scaled": ["scaled"],
        "masked": ["masked"],
        "weights": ["weights"],
        "context": ["v", "context"],
    }.items():
        explorer.step(step)
        for tensor in shown:
            walk(explorer, tensor, tensors[tensor])


def walk(explorer, tensor, values):
    rows, columns = len(values), len(values[0])
    transposed = "kᵀ" in explorer.page.inner_text("#explorer") and tensor == "k"
    right, left, down, up = "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"
    if transposed:  # the keys go where they point, on a matrix whose rows are drawn as columns
        right, left, down, up = down, up, right, left
    for keys, expected in (
        ([up] * rows + [left] * columns, (0, 0)),
        ([right], (0, 1)),
        ([down, down], (2, 1)),
        (["Home"], (2, 0)),
        (["End"], (2, columns - 1)),
        ([right], (2, columns - 1)),
        ([down] * rows, (rows - 1, columns - 1)),
        ([left, up], (rows - 2, columns - 2)),
    ):
        explorer.press(tensor, *keys)
        assert explorer.cell == expected, (tensor, keys)
        row, column = expected
        value = values[row][column]
        assert same_digits(shown_result(explorer), value), (tensor, expected)


def test_the_whole_lesson_by_the_keyboard_alone(explorer):
    explorer.open(**TEXTBOOK, step="tokens")
    page = explorer.page
    for step in STEPS[1:8]:
        tab_to(
            page, "[...document.querySelectorAll('#explorer button')].find(one => /^Next/.test(one.textContent.trim()))"
        )
        page.keyboard.press("Enter")
        assert explorer.address["step"] == step
    tab_to(page, "document.querySelector('[data-matrix=context]')")
    for key in ("ArrowDown", "ArrowDown", "End"):
        page.keyboard.press(key)
    assert explorer.cell == (2, 1)
    assert same_digits(shown_result(explorer), numbers(explorer)["tensors"]["context"][2][1])


def tab_to(page, element):
    """Press Tab until the element has the focus."""
    for _ in range(150):
        if page.evaluate(f"document.activeElement === ({element})"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no way by Tab to {element}")


def test_the_pinned_pair_stays_through_the_steps(explorer):
    explorer.open(**TEXTBOOK, step="scores", cell="3,1")
    for step in ("scaled", "masked", "weights", "scores"):
        explorer.step(step)
        assert "query with, key journey" in explorer.arithmetic
    explorer.step("context")
    assert "query with" in explorer.arithmetic


# --- arithmetic ------------------------------------------------------------------------------------------------------


def shown_result(explorer):
    return explorer.page.inner_text("#arithmetic output").strip()


def test_the_textbook_cells_are_taken_apart_to_the_printed_numbers(explorer):
    explorer.open(**TEXTBOOK, step="weights", cell="1,1")
    assert shown_result(explorer) == "0.5019"
    explorer.step("scores")
    explorer.choose("scores", 1, 0, 6)
    assert shown_result(explorer) == "0.0191"
    lines = explorer.arithmetic
    assert "×" in lines and check_lines(lines) >= 1


CASES = {
    "textbook": [{}, {"head": 1, "mask": "after_renormalised"}, {"mask": "after", "dropout": 0.3, "scale": False}],
    "untrained": [
        {},
        {"d_model": 4, "d_head": 3, "qkv_bias": True, "pad_to": 8},
        {"dropout": 0.5, "pad_to": 8, "pad_side": "left"},
    ],
    "trained": [{}, {"layer": 0}],
}


@pytest.mark.parametrize("model", OFFLINE)
def test_printed_numbers_give_the_printed_result_wherever_there_is_an_equals_sign(explorer, model):
    draw = random.Random(model)
    checked = 0
    for settings in CASES.get(model, [{}]):
        request = Request(models.get(model).example, model, **settings)
        result = attend(**request.settings())
        explorer.open(request.query())
        for step in STEPS[1:8]:
            explorer.step(step)
            tensors = explorer.matrices()
            for tensor in draw.sample(tensors, min(2, len(tensors))):
                values = result.sources[tensor].numpy() if tensor in result.sources else result[tensor]
                row, column = draw.randrange(values.shape[0]), draw.randrange(values.shape[1])
                select(explorer, tensor, row, column, values.shape)
                where = (settings, step, tensor, row, column, explorer.arithmetic)
                assert same_digits(shown_result(explorer), float(values[row, column])), where
                try:
                    checked += check_lines(explorer.arithmetic)
                    checked += check_table(open_table(explorer))
                except AssertionError as error:
                    raise AssertionError(f"{error} in {where}") from None
    assert checked >= 10


def select(explorer, tensor, row, column, shape):
    """Reach a cell by the keyboard, from wherever the matrix is; the keys go where they point."""
    turned = tensor == "k" and "kᵀ" in explorer.page.inner_text("#explorer")
    up, down, right = ("ArrowLeft", "ArrowRight", "ArrowDown") if turned else ("ArrowUp", "ArrowDown", "ArrowRight")
    explorer.hold(tensor, "Home", *[up] * shape[0], *[down] * row, *[right] * column)
    assert explorer.cell == (row, column)


def open_table(explorer):
    """The rows of the table on demand, each as its cells' texts."""
    summary = explorer.page.locator("#arithmetic details summary")
    if not summary.count():
        return []
    summary.first.click()
    rows = explorer.page.eval_on_selector_all(
        "#arithmetic details tr", "all => all.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )
    summary.first.click()
    return rows


def test_a_masked_cell_says_why(explorer):
    explorer.open(**TEXTBOOK, pad_to=8, step="masked", cell="1,4")
    assert shown_result(explorer) == "−∞" and "future" in explorer.arithmetic
    explorer.choose("masked", 3, 7, 8)
    assert shown_result(explorer) == "−∞" and "padding" in explorer.arithmetic
    explorer.step("weights")
    assert shown_result(explorer) == "0"


# --- what if ---------------------------------------------------------------------------------------------------------


def test_an_edit_has_the_consequences_that_attend_gives(explorer):
    explorer.open(**TEXTBOOK, step="scores", cell="3,1")
    before = explorer.painted
    field = explorer.page.locator("#arithmetic input")
    field.fill("2.5")
    field.press("Enter")
    explorer.wait(before)
    explorer.settled()
    expected = call(explorer.url, "attend", **TEXTBOOK, edits=[["scores", 3, 1, 2.5]])
    assert json.loads(explorer.request["edits"]) == expected["settings"]["edits"]
    explorer.step("weights")
    explorer.press("weights", "Home")
    for column in range(6):
        assert same_digits(shown_result(explorer), expected["tensors"]["weights"][3][column])
        explorer.press("weights", "ArrowRight")
    explorer.step("context")
    explorer.press("context", "Home")
    assert same_digits(shown_result(explorer), expected["tensors"]["context"][3][0])
    explorer.run()  # the edit is part of the request now, and Run keeps it
    assert "edits" in explorer.request


def test_the_mask_can_be_chosen_where_it_acts(explorer):
    explorer.open(**TEXTBOOK, step="weights", cell="0,5")
    assert shown_result(explorer) == "0"
    for mask in ("none", "after", "after_renormalised", "causal"):
        before = explorer.painted
        explorer.page.locator("#explorer select").select_option(mask)
        explorer.wait(before)
        explorer.settled()
        assert explorer.request.get("mask", "causal") == mask
        expected = call(explorer.url, "attend", **TEXTBOOK, mask=mask)["tensors"]["weights"]
        assert same_digits(shown_result(explorer), expected[0][5])


# --- looks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width, theme", [(1280, "light"), (390, "dark")])
def test_the_page_never_scrolls_sideways(visit, width, theme):
    explorer = visit(viewport={"width": width, "height": 844})
    long = {"sentence": " ".join(["an extraordinarily longish sentence of words"] * 5), "model": "untrained"}
    for parameters in (TEXTBOOK, long, {"sentence": "a" * 300, "model": "untrained"}):
        explorer.open(**parameters, __theme=theme)
        dark = explorer.page.evaluate("document.body.classList.contains('dark')")
        assert dark == (theme == "dark")
        for step in STEPS:
            explorer.step(step)
            assert explorer.too_wide() <= 0, (parameters["sentence"][:20], step)


def test_a_touch_screen_reaches_a_cell(visit):
    explorer = visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).open(**TEXTBOOK)
    for step in ("weights", "context"):
        explorer.page.locator(f'[data-step="{step}"]').tap()
        host = explorer.matrix(step)
        host.scroll_into_view_if_needed()
        box = host.bounding_box()
        columns = 6 if step == "weights" else 2
        host.tap(position={"x": box["width"] * 1.5 / columns, "y": box["height"] * 3.5 / 6})
        assert explorer.cell == (3, 1)
        assert same_digits(shown_result(explorer), numbers(explorer)["tensors"][step][3][1])


# --- under a path ----------------------------------------------------------------------------------------------------


def test_the_page_works_under_a_path(visit, root_path_url):
    explorer = visit(root_path_url).open(**TEXTBOOK, step="weights", cell="1,1")
    assert shown_result(explorer) == "0.5019"
    before = explorer.painted
    explorer.run()
    assert explorer.settled() == before + 1
    explorer.press("weights", "ArrowLeft")
    assert explorer.cell == (1, 0) and explorer.page.url.startswith(root_path_url + "/?")


def test_the_explorers_modules_are_served_as_scripts(explorer):
    types = {}
    explorer.page.on("response", lambda got: types.setdefault(got.url, got.headers.get("content-type", "")))
    explorer.open()
    modules = {url: kind for url, kind in types.items() if re.search(r"/explorer/\w+\.js$", url)}
    assert modules and all("javascript" in kind for kind in modules.values())
    assert all(fetch(url)[0] == 200 for url in modules)
    assert read_number("−1.5×10⁻⁷") == -1.5e-7


# --- once broken, held since ------------------------------------------------------------------------------------------


def test_enter_paints_exactly_once(explorer):
    explorer.open()
    for before in (1, 2, 3):
        explorer.run(enter=True)
        assert explorer.settled(800) == before + 1


@pytest.mark.parametrize("how", ["Backspace", "paste", "cut", "input method"])
def test_every_way_of_changing_the_sentence_is_live(explorer, how):
    explorer.open(model="untrained", sentence="red fox")
    page = explorer.page
    page.focus("#sentence input, #sentence textarea")
    page.keyboard.press("End")
    if how == "Backspace":
        page.keyboard.press("Backspace")
        expected = "red fo"
    elif how == "input method":
        page.keyboard.insert_text("es")
        expected = "red foxes"
    elif how == "cut":
        page.keyboard.press("Control+Shift+ArrowLeft")
        page.keyboard.press("Control+x")
        expected = "red "
    else:
        page.keyboard.press("Control+a")
        page.keyboard.press("Control+c")
        page.keyboard.press("End")
        page.keyboard.press("Control+v")
        expected = "red foxred fox"
    explorer.wait_for_request(sentence=expected)


def test_a_link_to_an_operands_cell_opens_that_cell(explorer):
    explorer.open(**TEXTBOOK, step="scores")
    explorer.press("q", "ArrowDown", "ArrowRight")
    before, address = explorer.arithmetic, explorer.page.url
    explorer.quiet()
    explorer.page.goto("about:blank")
    explorer.quiet()
    explorer.page.goto(address)
    explorer.wait_for_request(model="textbook")
    explorer.settled()
    assert explorer.arithmetic == before


@pytest.mark.parametrize(
    "query",
    [
        "sentence=Hello&model=textbook",
        "sentence=one&model=gpt5&step=scores",
        "sentence=one&model=textbook&d_head=NaN",
        "sentence=&model=textbook",
        "sentence=one&edits=%5B%5B%5D&scale=yes",
        "sentence=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&model=textbook&step=__proto__&cell=9,9",
    ],
)
def test_a_broken_link_says_so_and_leaves_the_example(explorer, query):
    explorer.quiet()
    explorer.page.goto(f"{explorer.url}/?{query}")
    explorer.page.locator("[role=alert]:visible").first.wait_for()
    assert explorer.request["sentence"] == models.get(models.DEFAULT).example
    before = explorer.settled()
    assert explorer.run() == before + 1
