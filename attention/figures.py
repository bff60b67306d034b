"""Result → matplotlib figures: one for each step of the lesson, and one sheet of all of them.

Every place and length is in inches from the top left corner, f is the base font size in points. All that says something
(titles, formulas, sentences, axes) comes from the lesson. The numbers of a matrix are outlines of thirteen glyphs,
composed with numpy into one collection for each colour: a text object a cell would take minutes.
"""

from __future__ import annotations

import io
import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.patches import BoxStyle, PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath, text_to_path

from . import figure_layout, lesson
from .figure_parts import THEMES, amount, hidden, lie_flat, limit, luminance, number_strings
from .request import _choice, _whole
from .text import shorten

if TYPE_CHECKING:
    from .compute import Result

STEPS = ("all", *lesson.STEP)
FORMATS = ("png", "svg", "pdf")
SIZES = {"column": (3.5, None), "page": (7.0, None), "slide": (13.3, 7.5)}  # inches; no height: as tall as it needs
DPI = (50, 600)
MOST_NUMBERED = 64  # rows or columns; beyond, colours alone
LEAST_POINTS = {"column": 3.3, "page": 3.3, "slide": 2.0}  # smaller numbers are not drawn; a slide is seen enlarged
LEAST_HIDDEN = 12  # in smaller cells (points) the hatching alone says that a number is hidden
_SHAPE = {"column": (6, 1, 2), "page": (7, 3, 3), "slide": (9, 3, 5)}  # base size, matrices and panels side by side
_HIDDEN = ("future", "padding")
_LOCK = threading.RLock()  # matplotlib's fonts and settings belong to the whole process

_RC = {
    "svg.fonttype": "none", "svg.hashsalt": "attention", "pdf.fonttype": 42, "font.sans-serif": ["DejaVu Sans"],
    "text.usetex": False, "text.parse_math": False, "image.composite_image": False, "savefig.bbox": None,
    "savefig.facecolor": "auto", "savefig.transparent": False, "path.effects": [], "path.sketch": None,
}  # fmt: skip
_METADATA = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def figure(
    result: Result, step: str = "all", *, theme: str = "light", size: str = "page", numbers: bool = True
) -> Figure:
    """One step as a figure, or the sheet of all. ValueError, naming what there is, for another step, theme or size."""
    return _figure(result, step, theme, size, numbers, literal=False)


def render(result: Result, step="all", format="png", theme="light", size="page", dpi=200, numbers=True) -> bytes:
    """The figure as a file. The same arguments give the same bytes. `dpi` concerns png alone."""
    _choice("format", format, FORMATS)
    dpi, file = _whole("dpi", dpi, *DPI), io.BytesIO()
    with _LOCK, matplotlib.rc_context(_RC):
        drawn = _figure(result, step, theme, size, numbers, literal=format == "svg")
        drawn.savefig(file, format=format, dpi=dpi, metadata=_METADATA[format])
    return file.getvalue()


def _figure(result, step, theme, size, numbers, literal) -> Figure:
    _choice("step", step, STEPS)
    _choice("theme", theme, tuple(THEMES))
    _choice("size", size, tuple(SIZES))
    with _LOCK, matplotlib.rc_context(_RC):
        page = Page(result, theme, size, numbers, literal)
        return figure_layout.sheet(page) if step == "all" else figure_layout.one(page, lesson.STEP[step])


# --- fonts -----------------------------------------------------------------------------------------------------------

_FIRST, _MONO, _LAST = "DejaVu Sans", "DejaVu Sans Mono", "Last Resort High-Efficiency"  # all come with matplotlib
_OTHERS = (
    "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "PingFang SC", "Hiragino Sans",
    "Microsoft YaHei", "WenQuanYi Zen Hei", "Noto Sans KR", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "Noto Sans Thai", "Arial Unicode MS", "Noto Emoji", "Noto Sans Symbols2", "Segoe UI Symbol",
)  # fmt: skip


@cache
def _fonts() -> dict[str, frozenset[int]]:
    """The families this machine has, in order of preference, each with the code points it can draw."""
    there = set(fontManager.get_font_names())
    found = (n for n in (_FIRST, *_OTHERS) if n in there)
    return {n: frozenset(get_font(fontManager.findfont(n)).get_charmap()) for n in found}


def _covered(char: str, fonts: int | None = None) -> bool:
    return any(ord(char) in points for points in list(_fonts().values())[:fonts])


@lru_cache(4096)
def drawable(string: str) -> str:
    """The string, with ⟨code point⟩ for each character that no font here can draw."""
    return "".join(c if _covered(c) else f"⟨{ord(c):04X}⟩" for c in string)


def _families(string: str) -> list[str]:
    if all(_covered(c, 1) for c in string):
        return [_FIRST, "sans-serif"]
    return [*_fonts(), *([] if all(map(_covered, string)) else [_LAST]), "sans-serif"]


@lru_cache(4096)
def _advance(char: str, weight: str = "normal") -> float:
    font = FontProperties(family=_families(char), size=100, weight=weight)
    return text_to_path.get_text_width_height_descent(char, font, ismath=False)[0] / 100


def _width(string: str, size: float, weight: str = "normal") -> float:
    return sum(_advance(c, weight) for c in string) * size / 72


def _fit(string: str, room: float, size: float) -> str:
    length = len(string)
    while length > 1 and _width(shortened := shorten(string, length), size) > room:
        length -= max(1, (len(shortened) - int(room * 72 / size)) // 2)  # an em is the widest that is usual
    return shorten(string, max(length, 1))


def _wrap(string: str, room: float, size: float) -> list[str]:
    lines = [""]
    for word in string.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and _width(longer, size) > room:
            lines.append(_fit(word, room, size))
        else:
            lines[-1] = longer if lines[-1] else _fit(word, room, size)
    return lines


# --- numbers ---------------------------------------------------------------------------------------------------------

GLYPHS = ".0123456789−∞"  # in the order of their code points
_HALF = 0.365  # half the height of a digit, in em


@cache
def _outlines() -> tuple[np.ndarray, list[Path], np.ndarray]:
    """Rising code points, an outline for each (1 em high, minus narrowed), and their widths; entry 0 is nothing."""
    narrow = [0.72 if c == "−" else 1 for c in GLYPHS]
    paths = [TextPath((0, 0), c, size=1, prop=FontProperties(family=_FIRST)) for c in GLYPHS]
    paths = [Path(p.vertices * (n, 1), p.codes) for p, n in zip(paths, narrow, strict=True)]
    widths = [0.0] + [_advance(c) * n for c, n in zip(GLYPHS, narrow, strict=True)]
    return np.array([0, *map(ord, GLYPHS)]), [Path(np.empty((0, 2))), *paths], np.array(widths)


def _indices(strings: np.ndarray) -> np.ndarray:
    """(n,) strings → (n, longest) indices into the outlines."""
    points = np.ascontiguousarray(strings).view(np.uint32).reshape(len(strings), -1)
    return np.searchsorted(_outlines()[0], points)


def fitting_numbers(values: np.ndarray, unit: bool, width: float, height: float, most: float, smallest: float):
    """The strings for cells of this size (points) and their font size; None where none that can be read fit."""
    if max(values.shape) > MOST_NUMBERED:
        return None
    for decimals, zero, least in (
        ((2, True, 4.6), (2, False, smallest)) if unit else ((2, True, 4.2), (1, True, smallest))
    ):
        strings = number_strings(values, decimals, zero)
        widest = _outlines()[2][_indices(strings.ravel())].sum(axis=1).max()
        size = min(most, 0.86 * width / widest, 0.62 * height)
        if size >= least:
            return strings, size
    return None


def number_paths(strings: np.ndarray, x: np.ndarray, y: np.ndarray, em: tuple[float, float]) -> list[Path]:
    """The strings (n,), each centred on its (x, y); y points down, `em` is the font size in those units.

    A path holds up to 64 copies of one glyph: one large path would take the renderer longer. A glyph is never split,
    since what is inside a contour is a hole only beside that contour.
    """
    _, outlines, widths = _outlines()
    index = _indices(strings)  # (n, longest)
    ends = widths[index].cumsum(axis=1)
    left = x[:, None] + (ends - widths[index] - ends[:, -1:] / 2) * em[0]
    base = np.broadcast_to((y + _HALF * em[1])[:, None], left.shape)
    paths = []
    for i in np.unique(index[index > 0]):
        places, glyph = np.stack([left[index == i], base[index == i]], axis=1), outlines[i]
        vertices = places[:, None] + glyph.vertices * (em[0], -em[1])  # (copies, points of the glyph, 2)
        for some in np.split(vertices, range(64, len(vertices), 64)):
            paths.append(Path(some.reshape(-1, 2), np.tile(glyph.codes, len(some))))
    return paths


def inked(paths: list[Path], color: str) -> PathCollection:
    """The paths filled. Not snapped to pixels: a minus or a point, being a thin rectangle, could vanish."""
    return PathCollection(paths, fc=color, lw=0, clip_on=False, snap=False)


# --- matrices --------------------------------------------------------------------------------------------------------


def _cells(mask: np.ndarray) -> Path:
    """The outline of the True cells, each run of neighbours in a row as one rectangle."""
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(int), axis=1)
    (row, start), (_, end) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    corners = [np.stack([a, row + b], axis=1) for a, b in ((start, 0), (end, 0), (end, 1), (start, 1), (start, 0))]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path(np.stack(corners, axis=1).reshape(-1, 2), np.tile(codes, len(row)).astype(np.uint8))


class Page:
    """A figure while it is drawn."""

    def __init__(self, result: Result, theme: str, size: str, numbers: bool, literal: bool) -> None:
        self.result, self.theme, self.numbers, self.literal = result, THEMES[theme], numbers, literal
        self.f, self.across, self.panels = _SHAPE[size]
        self.width, self.fixed = SIZES[size]
        self.smallest, self.smallest_on_sheet = LEAST_POINTS[size], LEAST_POINTS["page"]
        self.names = [shorten(self._shown(n), 24) for n in result.names]
        self.marks: set[str] = set()

    def open(self, f: float, height: float = 1) -> None:
        """The figure, now that its base size and its height are known."""
        self.f, self.u, self.height = f, f / 72, self.fixed or height
        self.fig = Figure(figsize=(self.width, self.height), dpi=150, facecolor=self.theme["page"])
        self.paper = self.axes(0, 0, self.width, self.height, self.width, self.height)  # its cells are inches

    # measuring, in inches; wrap and fit give what is drawn

    measure = staticmethod(_width)

    def fit(self, string: str, room: float, size: float) -> str:
        return _fit(self._shown(string), room, size)

    def wrap(self, string: str, room: float, size: float) -> list[str]:
        return _wrap(self._shown(string), room, size)

    def _shown(self, string: str) -> str:
        return string if self.literal else drawable(string)

    def text(
        self, x, y, string, scale=1.0, color="ink", align="left", weight="normal", rotation=0, mono=False
    ) -> float:
        """A line of text on its baseline at `scale` times the base size; its end, as if it were left-aligned."""
        string, size = self._shown(string), self.f * scale
        family = [_MONO, "monospace"] if mono else _families(string)
        place = dict(ha=align, va="baseline", rotation=rotation, rotation_mode="anchor")
        style = dict(fontsize=size, family=family, weight=weight, color=self.theme[color], parse_math=False)
        self.fig.text(x / self.width, 1 - y / self.height, string, **place, **style)
        return x + (len(string) * 0.602 * size / 72 if mono else _width(string, size, weight))

    def axes(self, x, y, width, height, columns=1, rows=1):
        """A bare axes whose cells are 1 × 1, row 0 on top."""
        place = (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        ax = self.fig.add_axes(place, xlim=(0, columns), ylim=(rows, 0), frame_on=False, xticks=(), yticks=())
        ax.set_autoscale_on(False)
        return ax

    def _box(self, x, y, width, height) -> None:
        self.paper.add_artist(Rectangle((x, y), width, height, fill=False, ec=self.theme["line"], lw=0.6))

    def swatch(self, x, y, width, height, mark: str) -> None:
        """A little cell that shows the mark."""
        corners = Path([(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)], closed=True)
        self._mark(self.paper, mark, corners)
        self._box(x, y, width, height)

    def left(self, f: float) -> float:
        """The room that row labels and their axis title take."""
        return self.label_width(f) + 2.1 * f / 72

    def label_width(self, f: float) -> float:
        return min(max(_width(n, f) for n in self.names), 5.2 * f / 72)

    def band(self, f: float, side: float) -> float:
        """The room that labels take above a matrix whose columns are tokens: they lie flat where they fit."""
        widest = max(_width(n, f) for n in self.names)
        return f / 72 if lie_flat(widest, side / len(self.names), f) else self.label_width(f)

    def matrix_width(self, name: str, side: float, room: float) -> float:
        """How wide a matrix as high as `side` is drawn: square cells where there is room."""
        rows, columns = self.result[name].shape
        if lesson.MATRICES[name].columns == "key":
            return side
        return float(np.clip(columns * side / rows, min(0.35 * side, room), room))

    def matrix(self, name: str, x: float, y: float, width: float, height: float, labels=True, caption=True) -> None:
        """The matrix with its upper left cell at (x, y); labels, caption and scale go around it."""
        said, values, u = lesson.MATRICES[name], self.result[name], self.u
        (rows, columns), end = values.shape, 1.0 if said.unit else limit(values)
        ax = self.axes(x, y, width, height, columns, rows)
        ax.set_label(name)
        cmap = LinearSegmentedColormap.from_list(name, self.theme["unit" if said.unit else "signed"])
        norm = Normalize(0 if said.unit else -end, end)
        shown = np.ma.masked_invalid(values)
        smooth = "nearest" if max(values.shape) <= 256 else "auto"  # more cells than pixels: averaged, none left out
        ax.imshow(shown, cmap, norm, aspect="auto", extent=(0, columns, rows, 0), interpolation=smooth)
        future, padding = hidden(self.result, name)
        for mark, mask in zip(_HIDDEN, (future, padding), strict=True):
            if mask.any():
                self._mark(ax, mark, _cells(mask))
        cell = (width / columns * 72, height / rows * 72)
        if min(cell) > 5:
            ax.hlines(range(1, rows), 0, columns, self.theme["page"], lw=0.6)
            ax.vlines(range(1, columns), 0, rows, self.theme["page"], lw=0.6)
        if self.numbers:
            self._numbers(ax, values, future | padding, cmap(norm(shown.filled(0))), said.unit, cell)
        frame = dict(fill=False, clip_on=False)
        ax.add_artist(Rectangle((0, 0), columns, rows, ec=self.theme[said.role or "line"], lw=0.8, **frame))
        for tensor, row, column, _ in self.result.request.edits:
            if tensor == name:
                ax.add_artist(Rectangle((column, row), 1, 1, ec=self.theme["edit"], lw=1.4, **frame))
        self._labels(said.rows, x, y, height, labels, down=True)
        top = self._labels(said.columns, x, y, width, True, down=False, count=columns)
        if caption:
            after = self.text(x, top - 0.6 * u, said.symbol, 1.05, said.role or "ink", weight="bold", mono=True)
            title = "" if said.title == said.symbol else said.title.removeprefix(f"{said.symbol} ")
            self.text(after + 0.6 * u, top - 0.6 * u, title, 0.95, "muted")
        self._scale(x, y + height + 0.7 * u, width, cmap, "0" if said.unit else f"−{amount(end)}", amount(end))

    def _mark(self, ax, mark: str, cells: Path) -> None:
        self.marks.add(mark)
        style = dict(
            fc=self.theme["hidden"], ec=self.theme["hatch"], lw=0, hatch={"future": "////", "padding": "..."}[mark]
        )
        ax.add_artist(PathPatch(cells, **style)).set_hatch_linewidth(0.5)

    def _numbers(self, ax, values, gone, colors, unit, cell) -> None:
        fitting = fitting_numbers(values, unit, *cell, self.f, self.smallest)
        if fitting is None:
            return
        strings, size = fitting
        drawn = gone & (min(cell) >= LEAST_HIDDEN)
        dark, light = self.theme["inks"]
        level = np.sqrt((luminance(to_rgba(dark)) + 0.05) * (luminance(to_rgba(light)) + 0.05)) - 0.05
        bright = luminance(colors) > level  # where the dark ink has more contrast than the light one
        for mask, color in ((~gone & bright, dark), (~gone & ~bright, light), (drawn, self.theme["muted"])):
            row, column = np.nonzero(mask)
            if len(row):
                paths = number_paths(strings[mask], column + 0.5, row + 0.5, (size / cell[0], size / cell[1]))
                ax.add_artist(inked(paths, color))

    def _labels(self, kind: str, x: float, y: float, length: float, labels: bool, down: bool, count: int = 0) -> float:
        """Labels and title of one axis, left of (down) or above the matrix; the height where the title ends."""
        tokens = kind != "dimension"
        names = self.names if tokens else list(map(str, range(count)))
        pitch, u = length / len(names), self.u
        size = min(1.0, max(0.72, pitch * 72 / self.f * 0.8)) * (1 if tokens else 0.8)
        room = self.label_width(self.f)
        names = [_fit(n, room, self.f * size) for n in names]
        widest = max(_width(n, self.f * size) for n in names)
        flat = not down and (not tokens or lie_flat(widest, pitch, self.f))
        every = int(np.ceil((widest + (0.1 if tokens else 0.5) * u if flat else 1.05 * size * u) / pitch))
        for i in range(0, len(names), every) if labels else ():
            middle = (i + 0.5) * pitch
            if down:
                self.text(x - 0.5 * u, y + middle + 0.3 * size * u, names[i], size, align="right")
            elif flat:
                self.text(x + middle, y - 0.5 * u, names[i], size, "ink" if tokens else "muted", align="center")
            else:
                self.text(x + middle + 0.3 * size * u, y - 0.5 * u, names[i], size, rotation=90)
        title = {"query": lesson.QUERY_AXIS, "key": lesson.KEY_AXIS}.get(kind, kind)
        color = kind if kind in ("query", "key") else "muted"
        if down:
            away = (widest if labels else 0) + 1.0 * u
            self.text(x - away, y + length / 2, title, 0.8, color, align="center", rotation=90)
            return y
        top = y - (u if flat else widest) - 1.0 * u
        self.text(x, top, title, 0.8, color)
        return top - 0.8 * u

    def _scale(self, x, y, width, cmap, low: str, high: str) -> None:
        ramp = dict(aspect="auto", extent=(x, x + width, y + 0.5 * self.u, y))
        self.paper.imshow(np.linspace(0, 1, 256)[None], cmap, **ramp)
        self._box(x, y, width, 0.5 * self.u)
        y += 1.5 * self.u
        self.text(x, y, low, 0.8, "muted")
        self.text(x + width, y, high, 0.8, "muted", align="right")
        if low != "0" and width > _width(low + high, 0.8 * self.f) + 2.4 * self.u:
            self.text(x + width / 2, y, "0", 0.8, "muted", align="center")

    # -- what is no matrix --------------------------------------------------------------------------------------------

    def chips(self, x: float, y: float, width: float, most: float, scale: float) -> float:
        """The tokens as boxes in reading order, as many as fit above `most`; where they end."""
        line, u = 1.9 * scale * self.u, scale * self.u
        boxes, left = [], x
        for i, token in enumerate(self.result.tokens):
            label = self.fit(token.label, min(width - 1.2 * u, 14 * u), self.f * scale)
            wide = _width(label, self.f * scale) + 0.9 * u
            if left + wide > x + width:
                left, y = x, y + line
            if y + 2 * line > most and i + 1 < len(self.result.tokens) and left + 2 * wide + 3 * u > x + width:
                self.text(left, y + 1.15 * u, f"… +{len(self.result.tokens) - i}", scale, "muted")
                break
            boxes.append(BoxStyle.Round(pad=0, rounding_size=0.3 * u)(left, y, wide, 1.55 * u, 1))
            self.text(left + 0.45 * u, y + 1.12 * u, label, scale, "ink" if token.real else "muted")
            left += wide + 0.35 * u
        style = dict(fc=self.theme["chip"], ec=self.theme["line"], lw=0.6)
        self.paper.add_artist(PathPatch(Path.make_compound_path(*boxes), **style))
        return y + line
