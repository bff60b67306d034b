"""Two candidates timed in turns. A ratio taken in one run holds on a shared machine, where times alone do not."""

import statistics
import time
from collections.abc import Callable
from timeit import Timer


def ratio(ours: Callable, theirs: Callable, seconds: float = 3.0, block: float = 0.005) -> float:
    """The median of ours / theirs over blocks of calls that take turns, each block at least `block` seconds long."""
    pair = Timer(ours), Timer(theirs)
    calls = [max(1, round(block / statistics.median(timer.repeat(9, 1)))) for timer in pair]
    ratios, end = [], time.monotonic() + seconds
    while time.monotonic() < end or len(ratios) < 9:
        turn = (0, 1) if len(ratios) % 2 else (1, 0)  # who goes first takes turns too
        times = {i: pair[i].timeit(calls[i]) / calls[i] for i in turn}
        ratios.append(times[0] / times[1])
    return statistics.median(ratios)
