"""Attention once more, in numpy float64, by the literal formulas: what the tests compare the project's tensors with.

Masks and softmax go row by row, on purpose unlike the package under test, with which nothing here shares code.
"""

from __future__ import annotations

import math

import numpy as np


def linear(x, layer):
    """x Wᵀ + b with the layer's own numbers, in float64."""
    W = layer.weight.detach().double().numpy()
    out = np.asarray(x, dtype=np.float64) @ W.T
    return out if layer.bias is None else out + layer.bias.detach().double().numpy()


def softmax_row(row, allowed):
    """Shares of the allowed entries of one row; all zero where none is allowed."""
    shares = np.zeros(len(row))
    if allowed.any():
        shares[allowed] = np.exp(row[allowed] - row[allowed].max())
        shares /= shares.sum()
    return shares


def attention(head, x, real=None, mask="causal", scale=True, kept=None, p=0.0, edits=()):
    """Every tensor of one unbatched pass, x (T, d_in), as a dict of float64 arrays."""
    x = np.asarray(x, dtype=np.float64)
    T = len(x)
    real = np.ones(T, dtype=bool) if real is None else np.asarray(real, dtype=bool)
    q, k, v = (linear(x, layer) for layer in (head.W_query, head.W_key, head.W_value))
    scores = q @ k.T
    for tensor, row, column, value in edits:
        if tensor == "scores":
            scores[row, column] = value
    scaled = scores / math.sqrt(q.shape[1]) if scale else scores.copy()

    masked, weights = np.full((T, T), -math.inf), np.zeros((T, T))
    visible = np.zeros((T, T), dtype=bool)
    for i in range(T):
        past = np.arange(T) <= i
        visible[i] = real if mask == "none" else real & past
        before = real & past if mask == "causal" else real
        masked[i, before] = scaled[i, before]
        weights[i] = softmax_row(scaled[i], before)
        if mask.startswith("after"):
            weights[i, i + 1 :] = 0
        if mask == "after_renormalised" and weights[i].sum() > 0:
            weights[i] /= weights[i].sum()
    if kept is not None:
        weights = np.where(np.asarray(kept), weights / (1 - p), 0.0)
    for tensor, row, column, value in edits:
        if tensor == "weights":
            weights[row, column] = value
    tensors = dict(x=x, q=q, k=k, v=v, scores=scores, scaled=scaled, masked=masked, weights=weights)
    return tensors | dict(context=weights @ v, visible=visible)
