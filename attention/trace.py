"""Trace: every tensor of one pass through an attention head, by the names used everywhere in this project.

B batch, T tokens. A trace of an unbatched input has no leading B. Rows are queries, columns are keys, always.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Trace:
    """One pass, step by step. Tensors live on the CPU and carry no gradient.

    Floats are float32 (or the head's own dtype), masks are bool. `masked` holds -inf where the softmax may not look;
    `weights` is the factor that multiplies `v`, after masks, softmax, dropout and edits.
    """

    x: Tensor  # (B, T, d_in)   what enters the head
    q: Tensor  # (B, T, d_out)  queries
    k: Tensor  # (B, T, d_out)  keys
    v: Tensor  # (B, T, d_out)  values
    scores: Tensor  # (B, T, T) q @ kᵀ, raw
    scaled: Tensor  # (B, T, T) scores / sqrt(d_out), or = scores with scaling off
    masked: Tensor  # (B, T, T) scaled, -inf where removed before the softmax
    weights: Tensor  # (B, T, T) what multiplies v
    context: Tensor  # (B, T, d_out) weights @ v
    real: Tensor  # (B, T) bool, True = real token
    visible: Tensor  # (B, T, T) bool, may this query look at this key
    kept: Tensor | None = None  # (B, T, T) bool, dropout's survivors; None without dropout

    def __getitem__(self, name: str) -> Tensor:
        """The tensor called `name`; KeyError names the ones there are."""
        if name not in TENSORS + MASKS:
            raise KeyError(f"no tensor {name!r}; there are {', '.join(TENSORS + MASKS)}")
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in TENSORS

    def arrays(self) -> dict[str, np.ndarray]:
        """The same tensors as numpy arrays (sharing memory): plain data that can cross a process boundary."""
        present = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: tensor.numpy() for name, tensor in present if tensor is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Trace:
        """The inverse of `arrays`."""
        return cls(**{name: torch.from_numpy(array) for name, array in arrays.items()})


TENSORS = ("x", "q", "k", "v", "scores", "scaled", "masked", "weights", "context")
MASKS = ("real", "visible", "kept")
