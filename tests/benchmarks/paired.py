"""Two candidates timed in turns. A ratio taken in one run holds on a shared machine, where times alone do not."""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from timeit import Timer
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "browser")]  # so the benchmarks find what they measure


class Row(NamedTuple):
    """A figure that was reached, and the most (`at_least`: the least) that it should be; None for no such limit."""

    what: str
    reached: float
    limit: float | None = None
    unit: str = "×"
    at_least: bool = False

    @property
    def kept(self) -> bool:
        """Is it within its limit?"""
        return self.limit is None or (self.reached >= self.limit if self.at_least else self.reached <= self.limit)

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"{'≥' if self.at_least else '≤'} {self.limit:g} {self.unit}"
        return f"{self.what:68} {self.reached:9.3g} {self.unit:18} {limit:22} {'' if self.kept else 'missed'}".rstrip()


def ratio(ours: Callable, theirs: Callable, seconds: float = 3.0, block: float = 0.005) -> float:
    """The median of ours / theirs over blocks of calls that take turns, each block about `block` seconds long.

    In processor time: what others do on the machine is neither's doing.
    """
    timers = Timer(ours, timer=time.process_time), Timer(theirs, timer=time.process_time)
    calls = [max(1, round(block / statistics.median(timer.repeat(9, 1)))) for timer in timers]
    ratios, end = [], time.monotonic() + seconds
    while time.monotonic() < end or len(ratios) < 9:
        turns = (0, 1) if len(ratios) % 2 else (1, 0)  # who goes first takes turns too
        took = {i: timers[i].timeit(calls[i]) / calls[i] for i in turns}
        ratios.append(took[0] / took[1])
    return statistics.median(ratios)
