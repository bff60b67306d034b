"""What figures print and in which colours: plain numpy, apart from the drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .compute import Result

THEMES = {
    "light": {
        "page": "#ffffff", "ink": "#16202c", "muted": "#5b6675", "line": "#c3cad3", "hidden": "#f4f5f8",
        "hatch": "#d3d9e1", "chip": "#f1f3f6",
        "bar": "#144278", "edit": "#a8175c", "query": "#a8175c", "key": "#00695f", "value": "#8a5800",
        "inks": ("#16202c", "#ffffff"),
        "signed": ("#2166ac", "#92bede", "#ffffff", "#f7ba82", "#be540c"),
        "unit": ("#ffffff", "#a6c3e0", "#487cb2", "#144278", "#082854"),
    },
    "dark": {
        "page": "#12171f", "ink": "#eef3f9", "muted": "#9aa7b8", "line": "#465364", "hidden": "#171d27",
        "hatch": "#364252", "chip": "#1f2835",
        "bar": "#82b8ec", "edit": "#f07ab0", "query": "#f07ab0", "key": "#4fd1c0", "value": "#f0b74a",
        "inks": ("#0d131c", "#eef3f9"),
        "signed": ("#6eb2f0", "#326292", "#1b222e", "#8a4c1a", "#f5a058"),
        "unit": ("#1b222e", "#284a74", "#427ab8", "#82b8ec", "#d6eaff"),
    },
}  # fmt: skip


def number_strings(values: np.ndarray, decimals: int, zero: bool = True) -> np.ndarray:
    """What is printed for each value: rounded, a true zero as 0, −∞ as it is; short without `zero`: .25 and 1.0."""

    def printed(value: float) -> str:
        if value == 0 or not np.isfinite(value):
            return "0" if value == 0 else "−∞"
        string = f"{abs(value):.{decimals}f}"
        minus = "−" if value < 0 and float(string) else ""
        return minus + (string if zero else string[1:] if string[0] == "0" else string[:-1])

    return np.array([printed(v) for v in values.ravel().tolist()]).reshape(values.shape)


def limit(values: np.ndarray) -> float:
    """The end of a signed scale: the largest finite size, 1 where all is 0."""
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max(initial=0)) or 1.0


def hidden(result: Result, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Which cells are hidden because they lie in the future, and which because their key is padding."""
    values = result[name]
    if name == "masked":
        gone = np.isneginf(values)
    elif name == "weights":
        gone = ~result["visible"] & (values == 0)
    else:
        gone = np.zeros(values.shape, bool)
        return gone, gone
    real = np.broadcast_to(result["real"], gone.shape)
    return gone & real, gone & ~real


def lie_flat(widest: float, pitch: float, f: float) -> bool:
    return widest < max(0.92 * pitch, 1.5 * f / 72)


def luminance(colors) -> np.ndarray:
    """The relative luminance of sRGB colours (..., 4), as WCAG defines it."""
    colors = np.asarray(colors)[..., :3]
    return np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)


def amount(end: float) -> str:
    return f"{end:.2g}" if end < 0.01 or end == 1 else f"{end:,.2f}" if end < 1000 else f"{end:,.0f}"
