"""A Result as the explorer's payload: what `/attend` gives plus the lesson, tensors packed as base64 float32."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import lesson, overview, text
from .trace import TENSORS

if TYPE_CHECKING:
    from .compute import Result
    from .models import Model
    from .request import Request

ASSETS = Path(__file__).parent.parent / "assets" / "explorer"
SMALL = 4096  # numbers: weight matrices up to this size travel with every payload, larger ones when asked for


def payload(result: Result) -> dict[str, Any]:
    """Everything the explorer draws. Strict JSON: −∞ lives inside the packed numbers only."""
    request, trace = result.request, result.trace
    tensors = {name: result[name] for name in TENSORS if name != "masked"} | {
        n: s.numpy() for n, s in result.sources.items()
    }
    small = trace.x.shape[-1] * trace.q.shape[-1] <= SMALL
    return {
        "query": request.query(),
        "settings": request.settings(),
        "tokens": [t._asdict() | {"spoken": text.spoken(n)} for t, n in zip(result.tokens, result.names, strict=True)],
        "names": result.names,
        "tensors": {name: pack(array) for name, array in tensors.items()} | {"masked": _pack_masked(result)},
        "visible": _bits(trace.visible.numpy()),
        "kept": None if trace.kept is None else _bits(trace.kept.numpy()),
        "parameters": pack_parameters(result.model, request) if small else {},
        "parameters_of": parameters_key(result),
        "guess": _guess(result),
        "model": _model(result),
        "digits": result.model.digits,
        "device": result.device,
        "notes": list(result.notes),
        "lesson": lesson.for_page(result),
        "overview": _overview(result),
    }


def pack(array: np.ndarray) -> dict[str, Any]:
    """(rows, columns) float32 → {"shape", "data"}: base64 of the little-endian bytes, 5.4 bytes a number."""
    array = np.ascontiguousarray(array, dtype="<f4")
    return {"shape": list(array.shape), "data": b64encode(array).decode()}


def _pack_masked(result: Result) -> dict[str, Any]:
    """`masked` as what it is: `scaled`, and one bit a number that is −∞ instead. A quarter less to send."""
    hidden = np.isneginf(result["masked"])
    return {"shape": list(hidden.shape), "like": "scaled", "hidden": _bits(hidden)}


def pack_parameters(model: Model, request: Request) -> dict[str, Any]:
    """`head_arrays`, packed."""
    return {name: pack(array) for name, array in head_arrays(model, request).items()}


def head_arrays(model: Model, request: Request) -> dict[str, np.ndarray]:
    """What a request's head computes with: weights (d_out, d_in), biases and the norm before it as rows."""
    head, norm = model.head(request), model.norm(request)
    arrays = {}
    for name in ("W_query", "W_key", "W_value"):
        layer = getattr(head, name)
        arrays[name] = layer.weight
        if layer.bias is not None:
            arrays[f"{name}_bias"] = layer.bias[None]
    if norm is not None:
        arrays |= {"norm_gain": norm.weight[None], "norm_bias": norm.bias[None]}
        arrays["norm_epsilon"] = torch.tensor([[norm.eps]])
    return {name: array.detach().numpy() for name, array in arrays.items()}


def parameters_key(result: Result) -> str:
    """The same for all runs that use the same weights, so that a page fetches those once."""
    r = result.request
    return json.dumps([result.model.name, r.layer, r.head, r.checkpoint, r.d_model, r.d_head, r.seed, r.qkv_bias])


def _bits(mask: np.ndarray) -> str:
    return b64encode(np.packbits(mask)).decode()


def _model(result: Result) -> dict[str, Any]:
    model, request = result.model, result.request
    numbered = f", layer {request.layer}" if model.layers > 1 else ""  # counted from 0, as in the API
    layer = f", {lesson.LAYERS[request.layer]} layer" if model.layers == len(lesson.LAYERS) else numbered
    head = f", head {request.head}" if model.heads > 1 else ""
    return {
        "name": model.name,
        "title": model.title + layer + head,
        "words": model.words,
        "layers": model.layers,
        "examples": model.examples,
        "checkpoints": model.checkpoints,
        "losses": model.losses,
        "learning": model.learning,
    }


def _guess(result: Result) -> dict[str, Any] | None:
    if result.guess is None:
        return None
    guess = asdict(result.guess)
    return guess | {"names": [label.removeprefix("␣") or label for label in guess["labels"]]}


def _overview(result: Result) -> dict[str, Any] | None:
    """All heads of a large model in small: pictures as bytes (0 … 255 for 0 … 1), to look at and never to read off."""
    seen = result.overview
    if seen is None:
        return None
    layers, heads, size, _ = seen.pictures.shape
    return {
        "key": result.model.shared(result.request).query(),  # the same while the pictures are
        "layers": layers,
        "heads": heads,
        "size": size,  # numbers along a picture's edge
        "block": seen.block,  # tokens along a number's edge
        "tokens": seen.tokens,
        "pictures": b64encode(seen.pictures).decode(),  # (layers, heads, size, size), row = query
        "labels": seen.labels(),  # by layer and head: {"kind", "share"}
        "kinds": {name: {"title": title, "words": words} for name, (title, words) in overview.KINDS.items()},
        "threshold": overview.THRESHOLD,
        "note": overview.note(seen),
    }
