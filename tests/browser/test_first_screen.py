"""What meets a newcomer: the question, the way to step 1, the sheet on a phone, the matrix that goes along."""

import re

import pytest
from arithmetic import same_digits
from test_page import STEPS, TEXTBOOK, numbers, shown_result

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def shares(explorer):
    """The weights of the row that the guess is made from."""
    return numbers(explorer)["tensors"]["weights"][-1]


def percents(told):
    return [float(number) / 100 for number in re.findall(r"(\d+) %", told)]


@pytest.mark.parametrize("chosen", [0, 2])
def test_the_question_hides_the_answer_until_a_token_is_chosen(explorer, chosen):
    page = explorer.open().page
    page.get_by_role("button", name="Why sat?").click()
    assert "which token would you look at" in page.inner_text(".ax-question")
    assert not page.locator(".ax-headline").is_visible() and not page.locator(".ax-chip-share").first.is_visible()
    assert page.evaluate("document.querySelector('.ax-main').inert")
    page.click(f'[data-token="{chosen}"]')
    row = shares(explorer)
    best = row.index(max(row))
    told = page.inner_text(".ax-question")
    assert percents(told) == pytest.approx([row[i] for i in ([best] if chosen == best else [chosen, best])], abs=0.006)
    assert told.startswith("So does the head" if chosen == best else "The head gives The₁")
    assert page.locator(".ax-headline").is_visible() and page.locator(".ax-chip-share").first.is_visible()
    assert not page.evaluate("document.querySelector('.ax-main').inert")
    assert page.locator('[data-token][aria-pressed="true"]').get_attribute("data-token") == str(len(row) - 1)
    assert "query cat₂, key sat" in explorer.arithmetic  # what the question was about, whatever was chosen


def test_the_question_can_be_given_up_and_ends_with_another_run(explorer):
    page = explorer.open().page
    for end in (
        lambda: page.get_by_role("button", name="Just show me").click(),
        lambda: explorer.step("scores"),
        lambda: explorer.run(),
    ):
        page.get_by_role("button", name="Why sat?").click()
        assert not page.locator(".ax-headline").is_visible()
        end()
        assert page.locator(".ax-headline").is_visible() and not page.locator(".ax-question").is_visible()


def test_there_is_nothing_to_ask_without_a_guess_or_with_the_head_off(explorer):
    explorer.open(**TEXTBOOK)
    assert not explorer.page.get_by_role("button", name="Why").is_visible()
    explorer.open(sentence="The cat sat. The cat", head_off="true")
    assert explorer.page.get_by_role("switch").is_visible()
    assert not explorer.page.get_by_role("button", name="Why").is_visible()
    explorer.open(sentence="The cat sat. The cat", layer="0")  # it looks one token back: not why sat is guessed
    assert explorer.page.get_by_role("switch").is_visible()
    assert not explorer.page.get_by_role("button", name="Why").is_visible()


def test_a_first_visit_offers_to_start_at_the_beginning_a_link_does_not(explorer):
    start = explorer.open().page.get_by_role("button", name="start at step 1")
    start.click()
    assert explorer.address["step"] == STEPS[0] and not start.is_visible()
    explorer.open(**TEXTBOOK, step="scores")
    assert not start.is_visible()


def test_back_and_next_are_in_view_wherever_one_reads(visit):
    for options in ({}, PHONE):
        page = visit(**options).open().page
        for scroll in (0, 300):
            page.evaluate(f"window.scrollTo(0, {scroll})")
            for name in ("‹ Back", "Next ›"):
                box = page.get_by_role("button", name=name).bounding_box()
                assert 0 <= box["y"] <= page.viewport_size["height"] - box["height"]


# --- the sheet -------------------------------------------------------------------------------------------------------


def test_on_a_phone_touching_a_cell_opens_the_sheet_beside_it_and_its_arrows_step(visit):
    explorer = visit(**PHONE).open(**TEXTBOOK)
    page = explorer.page
    grip = page.locator(".ax-grip")
    assert grip.get_attribute("aria-expanded") == "false"
    host = explorer.matrix("weights")
    host.scroll_into_view_if_needed()
    side = host.bounding_box()["width"] / 6
    host.tap(position={"x": side * 1.5, "y": side * 4.5})
    assert grip.get_attribute("aria-expanded") == "true"
    page.wait_for_timeout(300)
    below = host.bounding_box()["y"] + side * 5
    assert below <= page.locator(".ax-sheet").bounding_box()["y"]  # the cell can be seen above the sheet
    assert explorer.cell == (4, 1)
    page.get_by_role("button", name="cell: up").tap()
    assert "query with, key journey" in explorer.arithmetic
    grip.tap()
    assert grip.get_attribute("aria-expanded") == "false"
    host.tap(position={"x": side * 0.5, "y": side * 0.5})
    assert grip.get_attribute("aria-expanded") == "false"  # somebody who closed it wants it closed
    assert "query Your, key Your" in explorer.arithmetic


def test_on_a_wide_screen_the_arithmetic_stands_in_the_panel(explorer):
    page = explorer.open().page
    assert not page.locator(".ax-grip").is_visible() and not page.locator(".ax-moves").is_visible()
    assert page.locator("#arithmetic").bounding_box()["x"] > explorer.matrix("weights").bounding_box()["x"]


def test_the_mouse_looks_a_click_pins(explorer):
    explorer.open(**TEXTBOOK, step="scores")
    values = numbers(explorer)["tensors"]["scores"]
    host = explorer.matrix("scores")
    side = host.bounding_box()["width"] / 6

    def at(row, column):
        return {"x": side * (column + 0.5), "y": side * (row + 0.5)}

    host.click(position=at(2, 4))
    assert same_digits(shown_result(explorer), values[2][4])
    host.hover(position=at(5, 1))
    assert same_digits(shown_result(explorer), values[5][1])
    explorer.page.mouse.move(5, 5)
    assert same_digits(shown_result(explorer), values[2][4])  # what was pinned comes back
    assert explorer.address["cell"] == "2,4"
    for row in range(6):
        for column in range(6):
            host.click(position=at(row, column))
            assert same_digits(shown_result(explorer), values[row][column]), (row, column)


# --- motion ----------------------------------------------------------------------------------------------------------

MOVING = """step => {
    document.querySelector(`[data-step="${step}"]`).click();
    const host = document.querySelector('[data-matrix="weights"]');
    return host.getAnimations({ subtree: true }).length;
}"""


@pytest.mark.parametrize("motion, moving", [("no-preference", True), ("reduce", False)])
def test_the_weights_move_to_their_place_at_blend(visit, motion, moving):
    explorer = visit(reduced_motion=motion).open()
    before = explorer.matrix("weights").bounding_box()
    assert (explorer.page.evaluate(MOVING, "context") > 0) == moving
    explorer.page.wait_for_timeout(500)
    after = explorer.matrix("weights").bounding_box()
    assert (before["x"], before["y"]) != (after["x"], after["y"])
    assert (explorer.page.evaluate(MOVING, "weights") > 0) == moving


def test_from_match_to_share_out_the_matrix_stays_in_place(explorer):
    explorer.open(**TEXTBOOK)
    places = []
    for step in ("scores", "scaled", "masked", "weights"):
        explorer.step(step)
        explorer.page.wait_for_timeout(300)
        places.append(explorer.matrix(step).bounding_box())
        assert explorer.page.locator(f'[data-matrix="{step}"] canvas').count() == 1  # what faded is gone
    assert all(place == places[0] for place in places)


# --- many tokens, many keys ------------------------------------------------------------------------------------------


def test_the_names_stay_in_view_in_a_large_matrix(explorer):
    page = explorer.open(sentence="a quick walk " * 40, model="untrained", tokenizer="characters", step="scores").page
    page.evaluate("Object.assign(document.querySelector('.ax-scroll'), {scrollTop: 400, scrollLeft: 60})")
    frame = page.locator(".ax-scroll").bounding_box()
    down, along = (page.locator(f".ax-{side}-labels").bounding_box() for side in ("row", "column"))
    assert abs(down["x"] - frame["x"]) <= 4 and abs(along["y"] - frame["y"]) <= 4


def test_the_address_follows_however_many_keys_are_pressed(explorer):
    explorer.open(**TEXTBOOK, step="weights")
    around = ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]
    explorer.press("weights", *around * 60, "ArrowDown", "ArrowDown", "End")
    explorer.page.wait_for_function("new URL(location).searchParams.get('cell') === '2,5'")


def test_a_large_run_is_fetched_beside_the_value_and_says_so_where_it_is_lost(explorer):
    large = {"sentence": "a quick walk " * 40, "model": "untrained", "tokenizer": "characters"}
    page = explorer.open(**large).page
    assert len(explorer.tokens) == 520
    assert explorer.arithmetic.strip()
    before = explorer.painted
    explorer.run(enter=True)
    assert explorer.settled() == before + 1
    page.route("**/component_server/", lambda route: route.fulfill(json={}))
    page.press("#sentence textarea, #sentence input", "Enter")
    page.get_by_text("Press Run once more").wait_for()
    assert len(explorer.tokens) == 520  # what was there stays
    page.unroute("**/component_server/")
    explorer.run()
    assert not page.get_by_text("Press Run once more").is_visible()


def test_a_difference_of_nothing_says_so(explorer):
    page = explorer.open().page
    page.get_by_role("button", name="Keep to compare").click()
    page.get_by_role("button", name="B − A").click()
    assert "0 everywhere" in page.inner_text(".ax-foot")


# --- A beside B ------------------------------------------------------------------------------------------------------


def test_the_kept_run_is_shown_whole_and_what_is_changed_from_it_is_the_next(explorer):
    page = explorer.open().page
    told = page.inner_text(".ax-headline"), page.inner_text(".ax-guess-word")
    page.get_by_role("button", name="Keep to compare").click()
    page.get_by_role("switch").click()
    explorer.wait_for_request(head_off="true")
    assert page.inner_text(".ax-headline") != told[0]
    page.get_by_role("button", name="A", exact=True).click()
    assert (page.inner_text(".ax-headline"), page.inner_text(".ax-guess-word")) == told
    assert page.get_by_role("switch").get_attribute("aria-checked") == "true"
    page.get_by_role("button", name="My dog ran. My dog").click()
    explorer.wait_for_request(sentence="My dog ran. My dog")
    assert "head_off" not in explorer.request  # a change of A
    assert page.get_by_role("button", name="B", exact=True).get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="A", exact=True).click()
    assert page.inner_text(".ax-headline") == told[0] and explorer.tokens[1]["text"] == " cat"


def test_a_kept_run_may_have_more_or_fewer_tokens(explorer):
    page = explorer.open(sentence="the cat sat on the mat", model="untrained", step="weights", cell="5,5").page
    page.get_by_role("button", name="Keep to compare").click()
    explorer.ask("the cat")
    for name, tokens in (("A", 6), ("B", 2), ("A", 6)):
        page.get_by_role("button", name=name, exact=True).click()
        for step in STEPS:
            explorer.step(step)
            assert len(explorer.tokens) == tokens
    assert page.get_by_role("button", name="B − A").is_disabled()


# --- room ------------------------------------------------------------------------------------------------------------


def test_a_phone_shows_numbers_of_the_matrix_on_arrival(visit):
    explorer = visit(**PHONE).open()
    weights = explorer.matrix("weights").bounding_box()
    above = explorer.page.locator(".ax-sheet").bounding_box()["y"] - weights["y"]
    assert above > 2 * weights["height"] / 6


@pytest.mark.parametrize("sentence", ["The cat sat on the mat", "a remarkably long sentence of words " * 5])
@pytest.mark.parametrize("model", ["untrained", "trained"])
def test_blend_shows_every_column(explorer, model, sentence):
    page = explorer.open(sentence=sentence, model=model, step="context").page
    edge = page.locator(".ax-scroll").bounding_box()
    for tensor in ("v", "context"):
        box = explorer.matrix(tensor).bounding_box()
        assert box["x"] + box["width"] <= edge["x"] + edge["width"], tensor


def test_the_chosen_token_of_a_long_sentence_is_in_view(visit):
    for options in ({}, PHONE):
        page = visit(**options).open(sentence="the quick brown fox " * 30, model="untrained").page
        row = page.locator(".ax-chips").bounding_box()
        chosen = page.locator('[data-token][aria-pressed="true"]').bounding_box()
        assert row["y"] <= chosen["y"] and chosen["y"] + chosen["height"] <= row["y"] + row["height"] + 1
