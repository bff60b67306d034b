"""What heads are named after, on weights made for it; pictures of long sentences."""

import numpy as np
import pytest
import torch

from attention import overview
from attention.overview import KINDS, Overview

IDS = torch.tensor([5, 6, 7, 5, 6, 8, 7])
T = len(IDS)


def pointing(target):
    """(T, T): each row looks at `target(row)`, or nowhere better than at the first token where that is None."""
    weights = torch.zeros(T, T)
    for row in range(T):
        weights[row, target(row) if target(row) is not None else 0] = 1
    return weights


def earlier(row):
    return max((j for j in range(row) if IDS[j] == IDS[row]), default=None)


def after(row):
    return None if earlier(row) is None else earlier(row) + 1


EVEN = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
HEADS = {
    "itself": pointing(lambda row: row),
    "previous": pointing(lambda row: max(row - 1, 0)),
    "first": pointing(lambda row: 0),
    "copy": pointing(earlier),
    "after_copy": pointing(after),
    "pointed": pointing(lambda row: (0, 1, 1, 2, 0, 2, 4)[row]),
    "broad": EVEN,
}


def seen(weights, ids=IDS):
    """The overview of one layer with these heads."""
    shares = overview.measure(weights, overview.places(ids))
    return Overview(overview.picture(weights)[None].numpy(), shares[None].numpy(), 1, len(ids))


def by_hand(weights, kind, ids=IDS):
    """The share of a kind of place, one weight at a time."""
    is_there = {
        "itself": lambda i, j: i == j and i >= 1,
        "previous": lambda i, j: j == i - 1,
        "first": lambda i, j: j == 0 and i >= 2,
        "copy": lambda i, j: j < i and ids[i] == ids[j],
        "after_copy": lambda i, j: 0 < j < i and ids[i] == ids[j - 1],
    }
    n = len(ids)
    if kind in ("pointed", "broad"):
        return np.mean([max(row) for row in weights[1:].tolist()])
    rows = [[weights[i, j].item() for j in range(n) if is_there[kind](i, j)] for i in range(n)]
    return np.mean([sum(row) for row in rows if row])


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_is_named_by_what_it_does(kind):
    name, share = seen(HEADS[kind][None]).label(0, 0)
    assert name == kind
    assert share == pytest.approx(by_hand(HEADS[kind], kind), abs=1e-6)


def test_every_share_is_the_average_it_claims_to_be():
    weights = torch.softmax(torch.randn(3, T, T, generator=torch.Generator().manual_seed(0)), -1).tril()
    weights /= weights.sum(-1, keepdim=True)
    for head, row in enumerate(seen(weights).shares[0]):
        for kind, share in zip(KINDS, row, strict=True):
            assert share == pytest.approx(by_hand(weights[head], kind), abs=1e-6), kind


def test_half_is_enough_and_less_is_broad():
    for share, kind in ((0.5, "itself"), (0.49, "broad")):
        weights = share * HEADS["itself"] + (1 - share) * EVEN
        weights[range(T), range(T)] = share
        assert seen(weights[None]).label(0, 0)[0] == kind


@pytest.mark.parametrize("n", [1, 2])
def test_the_shortest_sentences(n):
    ids, weights = IDS[:n], torch.tensor([[1.0, 0.0], [0.8, 0.2]])[:n, :n]
    found = seen(weights[None], ids)
    assert found.label(0, 0) == (("itself", 1.0) if n == 1 else ("previous", pytest.approx(0.8)))
    assert np.isfinite(found.shares).all()


@pytest.mark.parametrize(("tokens", "size"), [(1, 1), (64, 64), (65, 33), (128, 64), (130, 44), (1024, 64)])
def test_long_sentences_are_coarsened_by_the_largest_weight_of_a_block(tokens, size):
    weights = torch.rand(2, tokens, tokens, generator=torch.Generator().manual_seed(1))
    weights[1, tokens // 2, tokens // 3] = 1
    got, block = overview.picture(weights).numpy(), overview.block_of(tokens)
    assert got.shape == (2, size, size) and size <= overview.SIDE
    assert got[1, tokens // 2 // block, tokens // 3 // block] == 255
    last = weights[0, (size - 1) * block :, :block].max().item()  # the last block may be smaller
    assert abs(got[0, -1, 0] / 255 - last) <= 0.5001 / 255


def test_the_note_says_what_a_dot_is():
    assert "50 %" in overview.NOTE and "dot" not in overview.note(seen(EVEN[None]))
    coarse = Overview(np.zeros((1, 1, 44, 44), np.uint8), np.zeros((1, 1, 7), np.float32), 3, 130)
    assert "3 × 3" in overview.note(coarse)
