"""A head of the user's own, with the x that enters it. For library and shell: no name in a request stands for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from .. import text
from ..module import CausalAttention
from ..text import Token
from . import Model, Pass, trace_head

LAYERS = ("W_query", "W_key", "W_value")
CONTEXT = 1024  # tokens, for a head that names no limit


class Own(Model):
    """Weights and x, copied as float32, so that training the head further changes no result that is there already."""

    name = "own"
    title = "Your own head"
    words = "A head and its input as they were handed over; this package's arithmetic carries them out."
    example = ""
    tokenizers = ("words", "characters")
    options = frozenset({"tokenizer"})
    digits = 4

    def __init__(self, weights: Mapping[str, Tensor], x: Any, context_length: int = CONTEXT) -> None:
        """weights: `W_query.weight`, `W_key.weight`, `W_value.weight`, each (d_out, d_in), and biases if there are any.

        x: (T, d_in), a row a token. ValueError for what is missing, not finite or of another shape.
        """
        given = {f"{n}.weight": _floats(f"{n}.weight", weights.get(f"{n}.weight"), 2) for n in LAYERS}
        d_out, d_in = given["W_query.weight"].shape
        for name in LAYERS[1:]:
            _agree(f"{name}.weight", given[f"{name}.weight"], (d_out, d_in), "as W_query.weight has")
        biases = {n for n in (f"{layer}.bias" for layer in LAYERS) if weights.get(n) is not None}
        for name in (f"{layer}.bias" for layer in LAYERS) if biases else ():
            given[name] = _floats(name, weights[name], 1) if name in biases else torch.zeros(d_out)
            _agree(name, given[name], (d_out,), "one number an output")
        self.x = _floats("x", x, 2)  # (T, d_in)
        _agree("x", self.x, (len(self.x), d_in), f"as the head takes {d_in} numbers a token")
        self.context_length = context_length
        head = nn.utils.skip_init(CausalAttention, d_in, d_out, context_length, qkv_bias=bool(biases))
        head.load_state_dict(given)
        self._head = head.requires_grad_(False).eval()

    @classmethod
    def of(cls, head: Any, x: Any = None) -> Own:
        """From a module with `W_query`, `W_key`, `W_value`, or the path of a .safetensors file, which may hold x."""
        if isinstance(head, (str, Path)):
            weights = _read(Path(head))
            return cls(weights, weights.get("x") if x is None else x)
        layers = [getattr(head, name, None) for name in LAYERS]
        if not all(isinstance(getattr(layer, "weight", None), Tensor) for layer in layers):
            raise ValueError(
                f"head is {type(head).__name__}, but must be the number of a head, a module with {', '.join(LAYERS)}, "
                "or the path of a .safetensors file."
            )
        weights = {f"{name}.weight": layer.weight for name, layer in zip(LAYERS, layers, strict=True)}
        weights |= {f"{n}.bias": getattr(layer, "bias", None) for n, layer in zip(LAYERS, layers, strict=True)}
        limit = getattr(head, "context_length", None)
        return cls(weights, x, limit if isinstance(limit, int) else CONTEXT)

    def tokenize(self, request) -> list[Token]:
        cut = text.characters if request.tokenizer == "characters" else text.words
        pieces = cut(request.sentence)
        if len(pieces) != len(self.x):
            raise ValueError(
                f"x has {len(self.x):,} rows, but the sentence has {len(pieces):,} {request.tokenizer}: "
                "each needs one row."
            )
        return text.from_pieces(pieces, range(len(pieces)))

    def head(self, request) -> CausalAttention:
        return self._head

    def run(self, request, tokens, device) -> Pass:
        x = torch.zeros(len(tokens), self.x.shape[1])
        x[[t.index for t in tokens if t.real]] = self.x  # padding stays 0
        return Pass(trace_head(self._head, x.to(device), tokens, request))


def _read(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if path.suffix != ".safetensors":
        raise ValueError(f"A head is read from a .safetensors file, but {path.name!r} has another ending.")
    try:
        return load_file(path)
    except FileNotFoundError:
        raise ValueError(f"There is no file {str(path)!r}.") from None
    except (SafetensorError, OSError):
        raise ValueError(f"{path.name!r} cannot be read as a .safetensors file.") from None


def _floats(name: str, value: Any, dimensions: int) -> Tensor:
    """A float32 copy on the CPU. ValueError for anything but finite numbers in that many dimensions."""
    if value is None:
        raise ValueError(f"{name} is missing." + (" Pass x=…, one row a token." if name == "x" else ""))
    try:
        tensor = torch.as_tensor(value).detach().to("cpu", torch.float32, copy=True)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be a tensor of numbers.") from None
    if tensor.dim() != dimensions or not tensor.numel():
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}, but must have {dimensions} dimensions, none of them 0."
        )
    if not tensor.isfinite().all():
        raise ValueError(f"{name} holds numbers that are not finite.")
    return tensor


def _agree(name: str, tensor: Tensor, shape: tuple[int, ...], why: str) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but must be {shape}, {why}.")
