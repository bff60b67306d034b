"""What the numbers in a figure cost, against one text object a cell. Run: python tests/benchmarks/bench_figures.py

Cost is a figure with its numbers minus the same figure without, both as png, the least of several runs.
"""

import io
import time
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
from paired import Row, ratio

from attention import attend, figures
from attention.figure_parts import number_strings
from attention.figures import number_paths

SENTENCE = "the quick brown fox jumps over a lazy dog and then it sat down in the shade of a tree " * 4
DPI = 150


def least(runs: int, *make) -> list[float]:
    """Processor seconds of the fastest run of each. They take turns; the first turn only warms the caches."""
    times = [[] for _ in make]
    for _ in range(runs + 1):
        for own, function in zip(times, make, strict=True):
            start = time.process_time()
            function()
            own.append(time.process_time() - start)
    return [min(own[1:]) for own in times]


def one_matrix(values: np.ndarray, how: str) -> None:
    """A heatmap of 10 × 10 inches without numbers, with one text a cell, or with outlines."""
    figure = matplotlib.figure.Figure(figsize=(10, 10))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, len(values)), ylim=(len(values), 0), frame_on=False)
    axes.imshow(values, extent=(0, len(values), len(values), 0), cmap="Blues", vmin=0, vmax=1)
    strings = number_strings(values, 2) if how != "bare" else None
    rows, columns = np.indices(values.shape).reshape(2, -1)
    if how == "texts":
        for row, column in zip(rows, columns, strict=True):
            axes.text(column + 0.5, row + 0.5, strings[row, column], ha="center", va="center", fontsize=4)
    if how == "path":
        em = 4 / (720 / len(values))
        paths = number_paths(strings.ravel(), columns + 0.5, rows + 0.5, (em, em))
        axes.add_artist(figures.inked(paths, "black"))
    figure.savefig(io.BytesIO(), format="png", dpi=DPI)


def rows(_: Path):
    """The sheet of all steps with its numbers against the same sheet without, 16 tokens."""
    result = attend(SENTENCE[:16], model="untrained", tokenizer="characters")
    sheet = partial(figures.render, result, "all", dpi=DPI)
    yield Row("sheet of all steps / without its numbers, T = 16", ratio(sheet, partial(sheet, numbers=False), 20), 2)


def compare(T: int, runs: int) -> None:
    result = attend(SENTENCE[:T], model="untrained", tokenizer="characters")
    hows = (partial(one_matrix, result["weights"], how) for how in ("bare", "texts", "path"))
    bare, texts, path = least(runs, *hows)
    texts, path = texts - bare, path - bare
    print(f"one matrix, T = {T}: texts {texts * 1e3:.1f} ms, path {path * 1e3:.1f} ms: {texts / path:.0f} times less")
    for step, size in (("all", "page"), ("all", "slide"), ("weights", "slide")):
        draw = partial(figures.render, result, step, size=size, dpi=DPI)
        numbers, bare = least(runs, draw, partial(draw, numbers=False))
        print(f"{step}, {size}, T = {T}: {numbers:.3f} s with numbers, {bare:.3f} s without: {numbers / bare:.2f}")


if __name__ == "__main__":
    compare(16, 9)
    compare(64, 3)
