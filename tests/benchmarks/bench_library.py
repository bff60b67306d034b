"""The mathematics and the way to an answer, in one process on one thread, each against what it is made of."""

import json
import math
import time
from functools import partial
from pathlib import Path
from timeit import repeat

import matplotlib.figure
import numpy as np
import orjson
import torch
import torch.nn.functional as F
from paired import Row, ratio
from torch.profiler import profile

from attention import CausalAttention, Request, compute, export, lesson
from attention.explorer import pack, payload
from attention.trace import TENSORS

TEXT = "The quick brown fox jumps over the lazy dog while 23 owls look on, and nobody knows why they do so. " * 11
D = 64


def ask(T: int) -> compute.Result:
    """A run of T tokens from its sentence on, nothing of it kept from the last time."""
    compute._cache.limit = 0
    return compute.run(Request(TEXT[:T], model="untrained", tokenizer="characters"), gpu=False)


def page(T: int) -> dict:
    """What the page gets."""
    return payload(ask(T))


def endpoint(T: int) -> bytes:
    """What /attend sends."""
    return orjson.dumps(export.as_dict(ask(T)))


def bare(T: int):
    """The trace that `ask` ends in, alone."""
    result = ask(T)
    head, x = result.model.head(result.request), result.trace.x
    return lambda: head.trace(x)


def literal(head: CausalAttention, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The formulas as they are written in a book, the same tensors kept."""
    q, k, v = head.W_query(x), head.W_key(x), head.W_value(x)
    scores = q @ k.transpose(-2, -1)
    scaled = scores / math.sqrt(head.d_out)
    visible = torch.ones(len(x), len(x), dtype=torch.bool).tril()
    masked = scaled.masked_fill(~visible, -torch.inf)
    weights = torch.softmax(masked, dim=-1)
    return q, k, v, scores, scaled, visible, masked, weights, weights @ v


def fused(head: CausalAttention, x: torch.Tensor) -> torch.Tensor:
    """Three layers and PyTorch's kernel; x (1, 1, T, d), the shape in which the CPU has its quickest one."""
    q, k, v = head.W_query(x), head.W_key(x), head.W_value(x)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def most_kept(call) -> int:
    """Bytes of all that a call allocates, freed or not."""
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        call()
    return sum(max(0, event.self_cpu_memory_usage) for event in seen.events())


@torch.no_grad()
def rows(out: Path):
    torch.set_num_threads(1)
    for T in (16, 64, 128, 256, 1024, 4096):
        head, x = CausalAttention(D, D, T).eval(), torch.randn(T, D)
        reached = ratio(partial(head, x), partial(fused, head, x[None, None]))
        yield Row(f"forward / nn.Linear × 3 + SDPA, T = {T}", reached, 1.05 if T >= 256 else 1.15)
    yield Row("forward, T = 4096: all memory it takes", most_kept(lambda: head(x)) / (4 * T * T), 0.1, "of one (T, T)")
    for T in (64, 256, 1024):
        head, x = CausalAttention(D, D, T).eval(), torch.randn(T, D)
        reached = ratio(partial(head.trace, x), partial(literal, head, x))
        yield Row(f"trace / the formulas, T = {T}", reached, 1.2 if T >= 256 else None)

    T, trace, result = 128, bare(128), ask(128)
    numbers = sum(result[name].size for name in TENSORS)
    yield Row("page path / bare trace, T = 128", ratio(lambda: page(T), trace), 6)
    yield Row("  of it up to the trace", ratio(lambda: ask(T), trace))
    matrices = [result[name] for name in TENSORS if name != "masked"]
    yield Row("  of it packing the matrices", ratio(lambda: [pack(matrix) for matrix in matrices], trace))
    yield Row("  of it the lesson's sentences", ratio(lambda: lesson.for_page(result), trace))
    yield Row("page payload, T = 128", len(json.dumps(page(T))) / numbers, 6, "bytes a number")
    yield Row("/attend / bare trace, T = 128", ratio(lambda: endpoint(T), trace), 40)
    yield Row("  of it writing floats", ratio(partial(orjson.dumps, export.as_dict(result)), trace))
    yield Row("/attend, T = 128", len(endpoint(T)) / numbers, 20, "bytes a number")
    yield from growth(out)


def seconds(call) -> float:
    """Processor seconds of the fastest of some calls."""
    return min(repeat(call, number=1, repeat=15, timer=time.process_time))


def growth(out: Path):
    """Time and bytes from 64 to 1,024 tokens: the exponent of T between neighbours, and a plot."""
    sizes = (64, 128, 256, 512, 1024)
    figure = matplotlib.figure.Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    measured = {
        "trace": lambda T: seconds(bare(T)),
        "page path": lambda T: seconds(lambda: page(T)),
        "/attend": lambda T: seconds(lambda: endpoint(T)),
        "payload": lambda T: len(json.dumps(page(T))),
        "/attend's answer": lambda T: len(endpoint(T)),
    }
    for name, measure in measured.items():
        values = [measure(T) for T in sizes]
        ax = axes[0] if values[0] < 1 else axes[1]
        ax.loglog(sizes, values, marker="o", label=name)
        yield Row(f"growth of {name}, T = 64 to 1024", np.polyfit(np.log(sizes), np.log(values), 1)[0], 2, "power of T")
    for ax, what in zip(axes, ("seconds", "bytes"), strict=True):
        low = min(line.get_ydata()[0] for line in ax.get_lines())
        ax.loglog(sizes, [low * (T / sizes[0]) ** 2 for T in sizes], "k:", label="T²")
        ax.set(xlabel="tokens", ylabel=what, xticks=sizes, xticklabels=sizes)
        ax.minorticks_off()
        ax.legend()
    figure.savefig(out / "growth.png", dpi=120)
