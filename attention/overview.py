"""All heads of a model at a glance: a small picture of each one's weights, and what it does on this very sentence.

A head is named after a kind of place that gets at least half of its attention, averaged over the tokens that have such
a place. The name says what the head did here, not what it is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

SIDE = 64  # numbers along a picture's edge; longer sentences are coarsened, each number the largest of its block
THRESHOLD = 0.5  # a kind of place is named from this share on

KINDS = {  # name: (title, words); where several reach the threshold the largest share names the head
    "itself": ("itself", "Each token looks at itself."),
    "previous": ("previous token", "Each token looks at the one before it."),
    "first": (
        "first token",
        "Each token looks at the first one. That is often parking: attention that has nothing better to do here.",
    ),
    "copy": ("earlier copy", "A token that occurred before looks at its earlier copy."),
    "after_copy": (
        "after an earlier copy",
        "A token that occurred before looks at what followed its earlier copy: what may well come next.",
    ),
    "pointed": ("one other token", "Most attention of a token goes to one place, but to none of the kinds named here."),
    "broad": ("broad", "Attention is spread: on average no single token gets half of it."),
}
NOTE = (
    f"A head is named after the kind of place that gets at least {THRESHOLD:.0%} of its attention on this sentence, "
    "averaged over the tokens that have such a place; the very first token, which can look only at itself, does not "
    "count. Where none does, the share is that of the most looked-at token, averaged."
).replace("%", " %")


def note(seen: Overview) -> str:
    """How names and pictures came about."""
    if seen.block == 1:
        return NOTE
    return f"{NOTE} One dot of a picture stands for {seen.block} × {seen.block} weights and shows the largest of them."


@dataclass(frozen=True, eq=False)
class Overview:
    """Every head's weights in small and what it measurably does; plain CPU data."""

    pictures: np.ndarray  # (layers, heads, n, n) uint8: 0 … 255 stands for 0 … 1
    shares: np.ndarray  # (layers, heads, kinds) float32, in the order of KINDS; 0 where no token has such a place
    block: int  # tokens along the edge of one number of a picture
    tokens: int

    @property
    def nbytes(self) -> int:
        return self.pictures.nbytes + self.shares.nbytes

    def label(self, layer: int, head: int) -> tuple[str, float]:
        """The head's kind and the share that was measured for it."""
        shares = dict(zip(KINDS, self.shares[layer, head].tolist(), strict=True))
        most = shares.pop("broad")  # the same number as that of "pointed"
        best = max((name for name in shares if name != "pointed"), key=shares.__getitem__)
        if shares[best] >= THRESHOLD:
            return best, shares[best]
        return ("pointed" if most >= THRESHOLD else "broad"), most

    def labels(self) -> list[list[dict[str, Any]]]:
        """Kind and share of every head, as plain data, by layer and head."""
        layers, heads = self.shares.shape[:2]
        pairs = [[self.label(layer, head) for head in range(heads)] for layer in range(layers)]
        return [[{"kind": kind, "share": share} for kind, share in row] for row in pairs]


def block_of(T: int) -> int:
    """How many tokens one number of a picture stands for, along its edge."""
    return -(-T // SIDE)


def picture(weights: Tensor) -> Tensor:
    """weights (heads, T, T) → (heads, n, n) uint8 with n ≤ SIDE: the largest weight of each block, 255 for 1."""
    block = block_of(weights.shape[-1])
    if block > 1:
        weights = torch.nn.functional.max_pool2d(weights[:, None], block, ceil_mode=True)[:, 0]
    return (weights * 255).round().to(torch.uint8)


def places(ids: Tensor) -> Tensor:
    """ids (n,) of the real tokens → (named kinds, n, n) float: 1 / rows where a query finds a key of that kind.

    Multiplied with weights and summed, they give the average share over the tokens that have such a place.
    """
    n = len(ids)
    row, column = torch.arange(n, device=ids.device)[:, None], torch.arange(n, device=ids.device)[None]
    same = (ids[:, None] == ids[None]) & (column < row)  # (n, n) an earlier copy
    after = torch.zeros_like(same)
    after[:, 1:] = same[:, :-1]
    start = min(1, n - 1)  # the first row has no choice
    found = torch.stack(
        [
            (column == row) & (row >= start),
            (column == row - 1) & (row >= start),
            (column == 0) & (row >= 2),  # for the second token the first one is the previous one
            same,
            after & (column < row),
        ]
    )
    rows = found.any(dim=-1).sum(dim=-1).clamp(min=1)  # (kinds,)
    return found / rows[:, None, None]


def measure(weights: Tensor, found: Tensor) -> Tensor:
    """weights (heads, n, n) of the real tokens, found by `places` → (heads, kinds of KINDS) average shares."""
    named = torch.einsum("hij,kij->hk", weights, found)  # (heads, named kinds)
    start = min(1, weights.shape[-1] - 1)
    most = weights[:, start:].amax(dim=-1).mean(dim=-1, keepdim=True)  # (heads, 1)
    return torch.cat([named, most, most], dim=-1)
