"""Where everything stands in a figure: one step, or the sheet of all. It places; figures.py draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import lesson
from .notices import headline, notices, percent

if TYPE_CHECKING:
    from .figures import Figure, Page


def one(page: Page, step: lesson.Step) -> Figure:
    """One step: its words and formula, and the matrices it shows side by side."""
    f, u, margin = page.f, page.f / 72, 2.2 * page.f / 72
    room, gap, rows = page.width - 2 * margin, 2.2 * u, len(page.result.tokens)
    sentence, formula = lesson.words(step, page.result)
    words, formulas = page.wrap(sentence, room, 1.1 * f), _formula(page, formula, room, 0.95 * f)
    head = margin + 2.2 * u + 1.6 * u * len(words) + 1.4 * u * len(formulas) + 1.2 * u
    shows = list(step.shows)
    bars = step.name == "next" and page.result.guess is not None
    bars_room = 0.45 * room + gap if bars and page.across > 1 else 0  # beside the matrix, else below it
    rows_of = [shows[i : i + page.across] for i in range(0, len(shows), page.across)]
    left, band, bar, foot = page.left(f), page.label_width(f) + 3.8 * u, 3.4 * u, 2.2 * u
    row = 0.62 if any(lesson.MATRICES[n].columns == "key" for n in shows) else 0.4
    most = page.fixed - head - band - bar - foot if page.fixed else 3.6 * f / 7
    side = min(most, max(0.9, row * rows * f / 7))

    def widths(names: list[str]) -> list[float]:
        each = (room - bars_room) / len(names) - left - gap * (len(names) > 1)
        return [page.matrix_width(n, side, max(each, 0.2)) for n in names]

    while any(sum(widths(n)) + len(n) * left + (len(n) - 1) * gap > room - bars_room + 1e-9 for n in rows_of):
        side *= 0.98
    band += page.band(f, side) - page.label_width(f)
    if page.fixed and len(shows) > 1 and not bars:  # a wide page: spread out
        used = sum(widths(shows)) + len(shows) * left + (len(shows) - 1) * gap
        gap += min((room - used) / (len(shows) - 1), 6 * u)
    below = 9 * 1.9 * u if bars and page.across == 1 else 0
    content = (band + side + bar) * len(rows_of) + below
    if not shows:
        page.open(f)
        content = page.chips(margin, 0, room, 6, 1.6) + 2 * u
    page.open(f, head + content + foot)
    _verb(page, margin, margin + 1.2 * u, step, 1.7)
    y = _lines(page, margin, margin + 3.6 * u, words, 1.1, "ink")
    _lines(page, margin, y + 0.1 * u, formulas, 0.95, "muted")
    y = head
    if not shows:
        page.chips(margin, y, room, page.height - u, 1.6)
    for names in rows_of:
        x = margin
        for name, width in zip(names, widths(names), strict=True):
            page.matrix(name, x + left, y + band, width, side)
            x += left + width + gap
        y += band + side + bar
    if bars:
        place = (x, head + band, page.width - margin - x) if page.across > 1 else (margin, y, room)
        _guess(page, *place, 1.1)
    _foot(page, margin)
    return page.fig


def sheet(page: Page) -> Figure:
    """All steps in order, each with the matrices that no step before it has shown."""
    f, count, page.smallest = 0.88 * page.f, page.panels, page.smallest_on_sheet
    u, rows = f / 72, -(-len(lesson.STEPS) // count)
    margin, gap = 2.4 * u, 3.2 * u
    panel = (page.width - 2 * margin - (count - 1) * gap) / count
    left, band, bar = page.left(f), page.label_width(f) + 3.6 * u, 2.8 * u
    title = page.wrap(headline(page.result), page.width - 2 * margin, 1.05 * f)[:2]
    top, head, foot, down = margin + 2.4 * u + 1.5 * u * len(title) + 1.4 * u, 4.4 * u, 2.2 * u, 2.4 * u
    around = top + rows * (head + band + bar) + (rows - 1) * down + foot
    last = lesson.STEPS[(rows - 1) * count :]
    lone = not page.fixed and not page.result.guess and all(s.name == "next" for s in last)  # a row of words only
    side = min(panel - left, max(0.8, 0.5 * len(page.result.tokens)))
    if page.fixed:
        side = min(side, (page.fixed - around) / rows)
    else:
        spare = page.label_width(f) - page.band(f, side)
        band, around = band - spare, around - rows * spare
    page.open(f, around + rows * side - lone * (band + side + bar - 6 * u))
    page.text(margin, margin + 1.3 * u, lesson.TITLE, 1.9, weight="bold")
    _lines(page, margin, margin + 3.4 * u, title, 1.05, "ink")
    seen: set[str] = set()
    for i, step in enumerate(lesson.STEPS):
        x, y = margin + i % count * (panel + gap), top + i // count * (head + band + side + bar + down)
        sentence, formula = lesson.words(step, page.result)
        _verb(page, x, y + 1.0 * u, step, 1.35)
        _lines(page, x, y + 2.6 * u, _formula(page, formula, panel, 0.85 * f)[:3], 0.85, "muted")
        new = [name for name in step.shows if name not in seen]
        seen.update(new)
        each = (panel - left - 2.0 * u * (len(new) - 1)) / max(len(new), 1)
        place = x + left
        for name in new:
            width = page.matrix_width(name, side, each)
            page.matrix(name, place, y + head + band, width, side, name == new[0], len(new) > 1)
            place += width + 2.0 * u
        if step.name == "tokens":
            end = page.chips(x, y + head, panel, y + head + band + side - 3 * u, 1.2)
            notice = page.wrap(notices(page.result)[step.name], panel, f)
            _lines(page, x, end + 1.6 * u, notice, 1.0, "muted")
        elif not new and page.result.guess:
            _guess(page, x, y + head + 0.6 * u, panel, 1.0)
        elif not new:
            _lines(page, x, y + head + 1.4 * u, page.wrap(sentence, panel, f), 1.0, "ink")
    _foot(page, margin)
    return page.fig


def _verb(page: Page, x: float, y: float, step: lesson.Step, scale: float) -> None:
    after = page.text(x, y, str(lesson.STEPS.index(step) + 1), scale, "muted", weight="bold")
    after = page.text(after + 0.5 * scale * page.u, y, step.verb, scale, weight="bold")
    page.text(after + 0.6 * scale * page.u, y, step.tensor, 0.8 * scale, "muted", mono=True)


def _formula(page: Page, formula: str, room: float, size: float) -> list[str]:
    """The formula's lines: its sizes, which stand apart, on a line of their own."""
    return [line for part in formula.split("   ") for line in page.wrap(part, room, size)]


def _lines(page: Page, x: float, y: float, lines: list[str], scale: float, color: str) -> float:
    """Lines of text below one another; where the next would stand."""
    for line in lines:
        page.text(x, y, line, scale, color)
        y += 1.4 * scale * page.u
    return y


def _foot(page: Page, margin: float) -> None:
    """Where the numbers come from, and what the marks of hidden cells mean."""
    request, x, y, u = page.result.request, page.width - margin, page.height - 1.2 * page.u, page.u
    for mark in sorted(page.marks, reverse=True):
        x -= page.measure(mark, 0.85 * page.f)
        page.text(x, y, mark, 0.85, "muted")
        x -= 2 * u
        page.swatch(x, y - 0.85 * u, 1.5 * u, 1.1 * u, mark)
        x -= 1.2 * u
    run = f"{page.result.model.name} · layer {request.layer}, head {request.head} · {lesson.MASK_TITLES[request.mask]}"
    page.text(margin, y, page.fit(run, x - margin, 0.85 * page.f), 0.85, "muted")


def _guess(page: Page, x: float, y: float, width: float, scale: float) -> None:
    """The most probable next tokens as bars on a scale from 0 to 1."""
    guess, line = page.result.guess, 1.9 * scale * page.u
    labels = [page.fit(n, 0.35 * width, page.f * scale) for n in guess.labels[:8]]
    start = x + max(page.measure(n, page.f * scale) for n in labels) + 0.7 * page.u
    room = x + width - start - page.measure("over 99 %", page.f * scale) - 0.5 * page.u
    middles, shares = y + (np.arange(len(labels)) + 0.5) * line, np.array(guess.probabilities[: len(labels)])
    page.paper.barh(middles, shares * room, 0.62 * line, left=start, color=page.theme["bar"])
    page.paper.vlines(start, y, y + line * len(labels), page.theme["line"], lw=1)
    for i, (label, share) in enumerate(zip(labels, guess.probabilities, strict=False)):
        base = y + (i + 0.5) * line + 0.33 * scale * page.u
        page.text(start - 0.4 * page.u, base, label, scale, align="right")
        page.text(start + share * room + 0.4 * page.u, base, percent(share), scale, "muted")
