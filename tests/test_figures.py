"""Figures: files that open, the numbers of the trace on them, colours that mean the same everywhere."""

import io
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.path import Path
from PIL import Image

from attention import attend, figures, lesson
from attention.figure_parts import hidden, limit, luminance, number_strings
from attention.models import Guess

pytestmark = pytest.mark.filterwarnings("error")

CAT = "The cat sat. The cat"
HOSTILE = {
    "two dollars": "$$",
    "a pair of dollars": "costs $5 and $6",
    "mathtext": "$a_$ and \\alpha ^ {",
    "markup": "<img src=x onerror=alert(1)>",
    "script's end": "</script><!-- ]]>",
    "template": "${1+1} `tick` %s {T}",
    "quotes": 'say "hi" & it\'s <b>',
    "emoji": "I ❤️ pizza 🤗",
    "families of emoji": "👨‍👩‍👧 a",
    "chinese": "你好，世界",
    "arabic": "مرحبا بالعالم",
    "combining": "café cafe\u0301",
    "zero width": "a\u200bb",
    "whitespace": "a  \t\nb",
    "controls": "a\u000bb\u0000c\ufffe",
    "surrogate": "a \ud83d b",
    "unassigned and private": "a \U000e0fff \ue000 \U0010ffff",
    "one long word": "a" * 300,
}


def untrained(sentence=CAT, **settings):
    return attend(sentence, model="untrained", **settings)


def picture(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def texts(svg: bytes) -> list[str]:
    return [e.text for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def matrix(figure, name: str):
    return next(ax for ax in figure.axes if ax.get_label() == name)


# --- every sentence, every form --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentence", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_sentence_is_drawn_and_its_svg_holds_it_literally(sentence):
    result = untrained(sentence)
    svg = figures.render(result, "tokens", "svg", size="slide")
    shown = [t for t in texts(svg) if t]
    labels = [t.label for t in result.tokens if len(t.label) < 16]
    assert [label for label in labels if label not in shown] == []
    if len(labels) == len(result.tokens):
        assert shown[-1 - len(labels) : -1] == labels  # in reading order, before the foot
    assert figures.render(result, "tokens", "png", dpi=50).startswith(b"\x89PNG")


def test_a_sheet_of_everything_hostile_is_well_formed_and_holds_every_name():
    result = untrained('$$ </script> a_$ & "<b>" 你好 🤗 مرحبا a\u0000b')
    shown = texts(figures.render(result, "all", "svg"))
    for name in result.names:
        assert name in shown, name
    assert figures.render(result, "all", "pdf").startswith(b"%PDF")
    assert figures.render(result, "all", "png", dpi=50).startswith(b"\x89PNG")


def test_what_no_font_can_draw_is_named_by_its_code_point():
    assert figures.drawable("a\U0010fffdb") == "a⟨10FFFD⟩b"
    assert figures.drawable("plain ₁ ␣ −∞ é") == "plain ₁ ␣ −∞ é"


@pytest.mark.parametrize("step", figures.STEPS)
def test_each_step_says_what_the_lesson_says(step):
    result = untrained()
    shown = " ".join(filter(None, texts(figures.render(result, step, "svg"))))
    for one in lesson.STEPS if step == "all" else (lesson.STEP[step],):
        sentence, formula = lesson.words(one, result)
        assert one.verb in shown and one.tensor in shown
        assert " ".join(formula.split()) in " ".join(shown.split())
        if step != "all":
            assert sentence in shown
    if step in ("weights", "all"):
        assert lesson.QUERY_AXIS in shown and lesson.KEY_AXIS in shown


SETTINGS = [
    *({"mask": mask} for mask in lesson.MASK_TITLES),
    {"pad_to": 9, "pad_side": "left"},
    {"pad_to": 9, "pad_side": "right", "mask": "none"},
    {"d_model": 128, "d_head": 128},
    {"d_model": 1, "d_head": 1, "positions": False},
    {"dropout": 0.5},
    {"edits": [["scores", 1, 0, 1e6], ["weights", 0, 5, 0.25]]},
    {"sentence": "Hi"},
    {"sentence": "abcdefgh" * 16, "tokenizer": "characters"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_setting_gives_a_sheet(settings):
    result = untrained(**settings)
    assert picture(figures.render(result, dpi=50)).std() > 5


def test_a_guess_is_drawn_as_bars():
    guess = Guess(("sat", "$x$"), ("␣sat", "$x$"), (0.75, 0.125), (2.0, 0.2), 2.0, 1.33)
    result = replace(untrained(), guess=guess)
    shown = texts(figures.render(result, "next", "svg"))
    assert {"␣sat", "$x$", "75 %", "12 %"} <= set(shown)
    bars = [bar.get_width() for bar in figures.figure(result, "next").axes[0].containers[0]]
    assert bars[0] / bars[1] == pytest.approx(6)
    assert "75 %" in texts(figures.render(result, "all", "svg", size="column"))


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_numbers_are_the_traces_rounded_once():
    values = np.array([[0.125, 1.0, 0.0], [-0.004, -1.236, -np.inf], [-0.0, 12.5, 0.996]])
    assert number_strings(values, 2).tolist() == [
        ["0.12", "1.00", "0"],
        ["0.00", "−1.24", "−∞"],
        ["0", "12.50", "1.00"],
    ]
    assert number_strings(np.array([0.25, 1.0, 0.0]), 2, zero=False).tolist() == [".25", "1.0", "0"]
    result = untrained()
    strings, _ = figures.fitting_numbers(result["scores"], False, 40, 40, 7, 3.3)
    read = np.array([[float(s.replace("−", "-")) for s in row] for row in strings])
    assert np.abs(read - result["scores"]).max() <= 0.005 + 1e-7


def test_numbers_shrink_then_lose_decimals_then_go():
    scores = untrained()["scores"]

    def decimals(cell):
        fitting = figures.fitting_numbers(scores, False, cell, cell, 7, 3.3)
        return fitting and len(fitting[0][0, 0].split(".")[1])

    assert [decimals(cell) for cell in (40, 20, 11, 5)] == [2, 2, 1, None]
    assert figures.fitting_numbers(np.zeros((65, 65)), True, 99, 99, 7, 3.3) is None


def test_each_string_is_drawn_in_the_middle_of_its_cell():
    strings = np.array(["0.25", "−∞", "8"])
    x, y = np.array([0.5, 1.5, 7.5]), np.array([0.5, 3.5, 0.5])
    for i in range(3):
        paths = figures.number_paths(strings[i : i + 1], x[i : i + 1], y[i : i + 1], (0.2, 0.2))
        alone = Path.make_compound_path(*paths).get_extents()
        assert alone.x0 + alone.x1 == pytest.approx(2 * x[i], abs=0.06)
        assert alone.y0 + alone.y1 == pytest.approx(2 * y[i], abs=0.06)
        assert 0 < alone.width < 1 and 0 < alone.height < 0.2
    together = Path.make_compound_path(*figures.number_paths(strings, x, y, (0.2, 0.2))).get_extents()
    assert together.x0 < 0.5 < 7.5 < together.x1 and together.y0 < 0.5 < 3.5 < together.y1


def test_no_glyph_is_split_so_that_holes_stay_holes():
    n = 1_000
    for glyph, contours in (("0", 2), ("8", 3), ("1", 1)):
        paths = figures.number_paths(np.array([glyph] * n), np.arange(n), np.zeros(n), (1, 1))
        counts = [int((path.codes == Path.MOVETO).sum()) for path in paths]
        assert sum(counts) == n * contours and all(count % contours == 0 for count in counts)


@pytest.mark.parametrize("glyph", figures.GLYPHS)
def test_every_glyph_leaves_ink_wherever_it_falls_between_pixels(glyph):
    n, side = 23, 10  # cells of 10 + 1/23 pixels, so that each glyph meets the pixels at another place
    figure = figures.Figure(figsize=((n * side + 1) / 50, (n * side + 1) / 50))
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, n), ylim=(n, 0), frame_on=False, xticks=(), yticks=())
    rows, columns = np.indices((n, n)).reshape(2, -1)
    ax.add_artist(
        figures.inked(figures.number_paths(np.array([glyph] * n * n), columns + 0.5, rows + 0.5, (0.6, 0.6)), "k")
    )
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=50)
    dark = 255 - picture(file.getvalue())[..., 0]
    edges = np.linspace(0, n * side + 1, n + 1).astype(int)
    ink = np.add.reduceat(np.add.reduceat(dark, edges[:-1], axis=0), edges[:-1], axis=1)
    assert ink.min() > 0.5 * np.median(ink) > 0


def test_drawn_numbers_follow_the_values():
    assert (
        picture(figures.render(untrained(), "weights"))
        != picture(figures.render(untrained(), "weights", numbers=False))
    ).any()
    svg = figures.render(untrained(), "weights", "svg")
    assert svg.count(b"<text") < 50  # outlines: no text a cell
    assert len(svg) > len(figures.render(untrained(), "weights", "svg", numbers=False)) + 5_000


# --- colours ---------------------------------------------------------------------------------------------------------


def test_weights_have_one_fixed_scale_and_signed_numbers_one_around_zero():
    figure, result = figures.figure(untrained(mask="after")), untrained(mask="after")
    for name in ("x", "q", "k", "v", "scores", "scaled", "masked", "weights", "context"):
        values, image = result[name], matrix(figure, name).images[0]
        end = np.abs(values).max()
        assert image.get_clim() == ((0, 1) if name == "weights" else pytest.approx((-end, end)))
        assert np.array_equal(image.get_array(), values)


def test_limits_come_from_finite_numbers_only():
    assert limit(np.array([-np.inf, 2.0, -3.0, np.nan])) == 3
    assert limit(np.zeros((2, 2))) == limit(np.array([[-np.inf]])) == 1
    masked = untrained()["masked"]
    image = matrix(figures.figure(untrained(), "masked"), "masked").images[0]
    end = np.abs(masked[np.isfinite(masked)]).max()
    assert image.get_clim() == pytest.approx((-end, end))


@pytest.mark.parametrize("theme", figures.THEMES)
def test_one_token_draws_one_in_the_colour_of_one(theme):
    figure = figures.figure(untrained("Hi"), "weights", theme=theme, size="slide")
    image = matrix(figure, "weights").images[0]
    drawn = picture(figures.render(untrained("Hi"), "weights", theme=theme, size="slide", dpi=50))
    one = np.round(np.array(image.cmap(1.0)[:3]) * 255)
    assert (np.abs(drawn - one).max(axis=2) <= 1).mean() > 0.003
    assert number_strings(untrained("Hi")["weights"], 2).tolist() == [["1.00"]]


@pytest.mark.parametrize("theme", figures.THEMES)
def test_numbers_contrast_with_their_cells(theme):
    colors = (
        matrix(figures.figure(untrained(), "weights", theme=theme), "weights").images[0].cmap(np.linspace(0, 1, 99))
    )
    inks = [luminance(figures.to_rgba(ink)) for ink in figures.THEMES[theme]["inks"]]
    for light in luminance(colors):
        assert max((max(light, ink) + 0.05) / (min(light, ink) + 0.05) for ink in inks) > 3.9


def test_future_and_padding_are_told_apart():
    result = untrained("hi there", pad_to=4, pad_side="left")
    for name in ("masked", "weights"):
        future, padding = hidden(result, name)
        assert padding.tolist() == [[True, True, False, False]] * 4
        assert future.tolist() == [[False, False, True, True]] * 2 + [[False, False, False, True], [False] * 4]
    drawn = matrix(figures.figure(result, "masked"), "masked")
    assert {p.get_hatch() for p in drawn.artists + drawn.patches if p.get_hatch()} == {"////", "..."}
    assert {"future", "padding"} <= set(texts(figures.render(result, "masked", "svg")))
    assert not any(mask.any() for mask in hidden(untrained(mask="after"), "masked"))  # nothing is hidden yet
    assert hidden(untrained(mask="after"), "weights")[0].sum() == 15


# --- the file itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", figures.SIZES)
def test_pixels_are_inches_times_dpi(size):
    width, height = figures.SIZES[size]
    for step, dpi in (("tokens", 80), ("weights", 50)):
        drawn = picture(figures.render(untrained(), step, size=size, dpi=dpi)).shape
        assert drawn[1] == round(width * dpi)
        assert height is None or drawn[0] == round(height * dpi)


@pytest.mark.parametrize("theme", figures.THEMES)
def test_the_theme_is_the_ground(theme):
    ground = picture(figures.render(untrained(), "masked", theme=theme, dpi=50))[0, 0]
    assert ground.tolist() == list(bytes.fromhex(figures.THEMES[theme]["page"][1:]))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"step": "softmax"}, "'all', 'tokens', 'x', 'qk'"),
        ({"step": None}, "'all', 'tokens'"),
        ({"format": "gif"}, "'png', 'svg' or 'pdf'"),
        ({"theme": "blue"}, "'light' or 'dark'"),
        ({"size": "A4"}, "'column', 'page' or 'slide'"),
        ({"dpi": 49}, "50 to 600"),
        ({"dpi": 601}, "50 to 600"),
        ({"dpi": float("nan")}, "50 to 600"),
        ({"dpi": True}, "50 to 600"),
    ],
    ids=str,
)
def test_what_there_is_not_is_refused_naming_what_there_is(wrong, right):
    with pytest.raises(ValueError, match=right):
        figures.render(untrained(), **wrong)


def test_renders_in_parallel_threads_equal_their_serial_results():
    jobs = [
        (untrained("red green"), "weights", "png", "light"),
        (untrained("blue"), "weights", "png", "dark"),
        (untrained("$5 你好"), "scores", "svg", "light"),
        (untrained("a b c", mask="none"), "masked", "pdf", "light"),
        (untrained("a b c"), "masked", "svg", "dark"),
        (untrained("hi", pad_to=4), "context", "png", "light"),
        (attend("Your journey", model="textbook"), "qk", "svg", "light"),
        (attend("one step", model="textbook"), "tokens", "pdf", "dark"),
    ]
    serial = [figures.render(*job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda job: figures.render(*job), jobs)) == serial
    assert len(set(serial)) == 8


def test_nothing_global_is_touched():
    code = """
import sys
from attention import attend
result = attend("a b", model="untrained")
assert "matplotlib" not in sys.modules  # nor does the library need it before a figure is asked for
import matplotlib
settings = lambda: {k: matplotlib.rcParams[k] for k in matplotlib.rcParams if k != "backend"}
before = settings()
result.figure("weights")
from attention import figures
figures.render(result, "tokens", "svg")
assert "matplotlib.pyplot" not in sys.modules
assert settings() == before
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)
