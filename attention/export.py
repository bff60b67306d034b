"""A Result as plain data and files. One function a form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from .text import Token
from .trace import TENSORS

if TYPE_CHECKING:
    from .compute import Result


def as_dict(result: Result) -> dict[str, Any]:
    """What `/attend` gives: strict JSON, float32 values unrounded, null in `masked` for −∞ and nowhere else."""
    return {
        "tokens": token_dicts(result.tokens),
        "tensors": {name: _rows(result[name]) for name in TENSORS},
        "visible": result["visible"].tolist(),
        "next_tokens": next_tokens(result),
        "settings": result.request.settings(),
        "device": result.device,
        "notes": list(result.notes),
    }


def token_dicts(tokens: Iterable[Token]) -> list[dict[str, Any]]:
    """Tokens as plain data."""
    return [asdict(token) for token in tokens]


def next_tokens(result: Result) -> list[dict[str, Any]] | None:
    """The most probable next tokens, best first; None for a model without an output layer."""
    if result.guess is None:
        return None
    pairs = zip(result.guess.texts, result.guess.probabilities, strict=True)
    return [{"text": text, "probability": probability} for text, probability in pairs]


def _rows(array: np.ndarray) -> list[list[float | None]]:
    rows = array.tolist()
    if np.isneginf(array).any():
        return [[None if value == -np.inf else value for value in row] for row in rows]
    return rows
