"""The head on a GPU: parity with the CPU, and what `forward` and `trace` cost against the same operations bare.

    python tests/benchmarks/bench_gpu.py [--device cuda] [--tokens 1024 4096] [--batch 1 8] [--json FILE]

A trace ends on the CPU, so its copies from the device are part of its time, on both sides. Without a GPU the script
itself can be tried: --device cpu --tokens 32 64 --batch 1 2.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.benchmark import Timer

from attention import CausalAttention
from attention.models import on
from attention.trace import TENSORS

D = 64  # numbers a token, a query, a key and a value
PARITY = 1e-5  # the most by which the devices may differ, over the tensor's largest number
FORWARD, TRACE = 1.15, 1.3  # the most over the bare operations


def fused(head: CausalAttention, x: torch.Tensor) -> torch.Tensor:
    """x (B, T, d_in) → (B, T, d_out), with a dimension for heads, which PyTorch's fused kernels ask for."""
    q, k, v = (layer(x)[:, None] for layer in (head.W_query, head.W_key, head.W_value))  # (B, 1, T, d_out) each
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]


def literal(head: CausalAttention, x: torch.Tensor) -> list[torch.Tensor]:
    """Every tensor that a trace keeps, on the CPU."""
    B, T, _ = x.shape
    q, k, v = head.W_query(x), head.W_key(x), head.W_value(x)
    scores = q @ k.transpose(-2, -1)  # (B, T, T)
    scaled = scores / math.sqrt(D)
    real = torch.ones(B, T, dtype=torch.bool, device=x.device)
    visible = real[:, None] & torch.ones(T, T, dtype=torch.bool, device=x.device).tril()  # (B, T, T)
    masked = scaled.masked_fill(~visible, -math.inf)
    weights = torch.softmax(masked, dim=-1)
    return [t.cpu() for t in (x, q, k, v, scores, scaled, masked, weights, weights @ v, real, visible)]


def ratio(ours: Callable, theirs: Callable, pairs: int = 15) -> float:
    """The median over pairs of runs that take turns; Timer waits for the device before it reads the clock."""
    timers = [Timer("call()", globals={"call": call}) for call in (ours, theirs)]
    calls = max(1, round(0.05 / timers[1].timeit(2).mean))
    found = []
    for turn in range(pairs):
        took = {i: timers[i].timeit(calls).mean for i in ((0, 1) if turn % 2 else (1, 0))}
        found.append(took[0] / took[1])
    return statistics.median(found)


class Copies(TorchDispatchMode):
    """Counts the copies from the device to the CPU, and their bytes."""

    count = bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        answer = function(*args, **(kwargs or {}))
        moved = function is torch.ops.aten._to_copy.default and args[0].device.type != answer.device.type == "cpu"
        if moved:
            self.count, self.bytes = self.count + 1, self.bytes + answer.nbytes
        return answer


def differ(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference over the largest number; −∞ must stand in the same places."""
    finite = one.isfinite()
    assert torch.equal(finite, other.isfinite())
    return ((one - other).abs()[finite].max() / one.abs()[finite].max()).item()


def measure(device: str, B: int, T: int) -> list[tuple[str, float, float | None]]:
    """(what, reached, the most that it should be)."""
    generator = torch.Generator().manual_seed(0)
    own = CausalAttention.seeded(D, D, T, generator)
    at_home = torch.randn(B, T, D, generator=generator)
    head, x = on(own, device), at_home.to(device)
    size = f"B = {B}, T = {T}"
    rows = [
        (f"forward / bare, {size}", ratio(partial(head, x), partial(fused, head, x)), FORWARD),
        (f"trace / bare with its copies, {size}", ratio(partial(head.trace, x), partial(literal, head, x)), TRACE),
    ]
    with Copies() as copies:
        head.trace(x)
    rows += [
        (f"trace: copies to the CPU, {size}", copies.count, 11),  # one a tensor
        (f"trace: MB copied, {size}", copies.bytes / 2**20, None),
    ]
    if B == 1:
        want, got = own.trace(at_home), head.trace(x)
        worst = max(differ(want[name], got[name]) for name in TENSORS)
        rows.append((f"trace: CPU − device, {size}", worst, PARITY))
        rows.append((f"forward: CPU − device, {size}", differ(own(at_home), head(x).cpu()), PARITY))
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    options.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096])
    options.add_argument("--batch", type=int, nargs="+", default=[1, 8], help="one for each number of tokens")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    found = []
    with torch.no_grad():
        for B, T in zip(given.batch, given.tokens, strict=True):
            for what, reached, most in measure(given.device, B, T):
                limit = "" if most is None else f"≤ {most:g}  {'' if reached <= most else 'missed'}"
                print(f"{what:48} {reached:10.3g}  {limit}".rstrip(), flush=True)
                found.append({"what": what, "reached": reached, "limit": most})
    if given.json:
        facts = {"device": torch.cuda.get_device_name() if given.device == "cuda" else given.device, "rows": found}
        given.json.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
