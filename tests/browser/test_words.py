"""The words on the page that explain words."""

from attention import attend, glossary, lesson


def test_the_words_of_a_step_are_explained_by_keyboard_and_stay_unfolded(explorer):
    explorer.open()
    page = explorer.page
    steps = {step["name"]: step for step in lesson.for_page(attend(explorer.request["sentence"]))["steps"]}
    explorer.step("x")
    summary = page.get_by_text("Words used here")
    assert not page.locator("dl").is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    for name in ("x", "context", "next"):
        explorer.step(name)
        assert page.locator("dt").all_inner_texts() == steps[name]["terms"]
        assert page.locator("dd").all_inner_texts() == [glossary.GLOSSARY[term][1] for term in steps[name]["terms"]]
    explorer.step("scores")
    assert not steps["scores"]["terms"] and not page.locator("dl").count()


def test_a_guess_that_is_a_piece_of_a_character_is_readable_wherever_it_is_shown(explorer):
    explorer.open(sentence="I love 🤗", step="next")
    page = explorer.page
    guess = attend("I love 🤗").guess
    assert page.locator(".ax-guess-name").all_inner_texts() == list(guess.labels)
    assert guess.labels[0].removeprefix("␣") in page.inner_text(".ax-guess-word")
    explorer.open(sentence="🤗", step="next")
    assert "⟨byte F0⟩" in page.inner_text(".ax-guess-word") and "⟨byte F0⟩" in explorer.arithmetic
    assert "�" not in page.inner_text("#explorer")
