"""A Result as one short PyTorch program that computes it again, without this package."""

from __future__ import annotations

import textwrap
from base64 import b64encode
from typing import TYPE_CHECKING

import numpy as np

from . import lesson

if TYPE_CHECKING:
    from .compute import Result

LITERAL = 100  # numbers: up to so many are written out, more go in as base64

_HEAD = '''"""Causal attention, step by step: one head on one sentence. Needs PyTorch and nothing else.

Rows are queries, columns are keys.
"""

import base64
import math

import torch
import torch.nn.functional as F


def unpack(packed, *shape, dtype=torch.float32):
    """Numbers from their bytes in base64."""
    return torch.frombuffer(bytearray(base64.b64decode(packed)), dtype=dtype).reshape(shape)


def show(name, rows):
    """A matrix with four decimals: 0 where it is exactly 0, halves away from zero."""
    print(f"{name} ({len(rows)} × {len(rows[0])})")
    for token, row in zip(tokens, rows.tolist()):
        print(*(f"{n * (1 + 1e-12):9.4f}" if n else f"{0:9}" for n in row), f"  {token!r}")

'''


def program(result: Result) -> str:
    """The program: the data, then the steps in the lesson's order, each under its sentence; prints weights, context."""
    trace, head = result.trace, result.model.head(result.request)
    T, d_in = trace.x.shape
    shown = [token.text or token.label for token in result.tokens]
    lines = [f"tokens = {shown!r}", f"T, d_in, d_out = {T}, {d_in}, {head.d_out}", ""]
    arrays = {"x": trace.x}
    for name in ("query", "key", "value"):
        layer = getattr(head, f"W_{name}")
        arrays |= {f"W_{name}": layer.weight, f"b_{name}": layer.bias}
    lines += [f"{name} = {_numbers(array)}" for name, array in arrays.items()]
    if trace.kept is not None:
        lines.append(f"kept = {_numbers(trace.kept)}  # what dropout, drawn from the seed, left over")
    for step, code in _steps(result).items():
        lines += ["", *_comment(lesson.STEP[step], result), *code]
    lines += ["", 'show("weights", weights)', 'show("context", context)']
    return _HEAD + "\n" + "\n".join(lines) + "\n"


def _comment(step: lesson.Step, result: Result) -> list[str]:
    """The step's verb, sentence and formula, as the page has them."""
    sentence, formula = lesson.words(step, result)
    return [*textwrap.wrap(f"# {step.verb}: {sentence}", 110, subsequent_indent="# "), f"# {formula}"]


def _steps(result: Result) -> dict[str, list[str]]:
    """Step of the lesson → its lines of code, for this run's settings."""
    request, real = result.request, result["real"]
    padded = not real.all()
    causal = "torch.ones(T, T, dtype=torch.bool).tril()  # key ≤ query"
    code: dict[str, list[str]] = {
        "qk": ["q = F.linear(x, W_query, b_query)  # (T, d_out)", "k = F.linear(x, W_key, b_key)"],
        "scores": ["scores = q @ k.transpose(-2, -1)  # (T, T)", *_edits(result, "scores")],
        "scaled": [f"scaled = scores{' / math.sqrt(d_out)' if request.scale else ''}"],
        "masked": [],
        "weights": ["weights = torch.softmax(masked, dim=-1)"],
        "context": ["v = F.linear(x, W_value, b_value)", "context = weights @ v  # (T, d_out)"],
    }
    masked, weights = code["masked"], code["weights"]
    if padded:
        count = int(real.sum())
        where = f"< {count}" if real[0] else f">= T - {count}"
        masked += [f"real = torch.arange(T) {where}  # the rest is padding"]
    if request.mask == "causal":
        masked += [f"visible = {causal}"] + ["visible = visible & real"] * padded
        masked += ["masked = scaled.masked_fill(~visible, -math.inf)"]
    else:
        masked += ["masked = scaled.masked_fill(~real, -math.inf)" if padded else "masked = scaled"]
    if np.isneginf(result["masked"]).all(axis=1).any():
        weights += ["weights = weights.nan_to_num(0.0)  # a row that may look nowhere"]
    if request.mask in ("after", "after_renormalised"):
        weights += [f"visible = {causal}"] + ["visible = visible & real"] * padded + ["weights = weights * visible"]
    if request.mask == "after_renormalised":
        weights += [
            "total = weights.sum(dim=-1, keepdim=True)",
            "weights = weights / total.masked_fill(total == 0, 1.0)",
        ]
    if result.trace.kept is not None:
        weights += [f"weights = weights * kept / (1 - {request.dropout!r})"]
    weights += _edits(result, "weights")
    return code


def _edits(result: Result, tensor: str) -> list[str]:
    edits = [edit for edit in result.request.edits if edit[0] == tensor]
    return [f"{tensor}[{row}, {column}] = {value!r}  # changed by hand" for _, row, column, value in edits]


def _numbers(array) -> str:
    """Source code for a tensor: digits that give the same float32 again, or base64."""
    if array is None:
        return "None"
    array = array.detach().numpy()
    if array.size > LITERAL:
        packed = b64encode(np.ascontiguousarray(array)).decode()
        dtype = ", dtype=torch.bool" if array.dtype == bool else ""
        return f'unpack("{packed}", {", ".join(map(str, array.shape))}{dtype})'
    if array.ndim == 1:
        return f"torch.tensor([{', '.join(map(str, array))}])"
    rows = "".join(f"    [{', '.join(map(str, row))}],\n" for row in array)
    return f"torch.tensor([\n{rows}])"
