"""Causal self-attention, twice: `forward` runs PyTorch's fused kernel, `trace` shows the work and keeps every tensor.

Scaled dot-product attention after Vaswani et al. 2017, "Attention Is All You Need", equation 1:
context = softmax(q kᵀ / sqrt(d_out)) v. In eval mode both paths agree to float rounding.

Shapes: B batch, T tokens, d_in and d_out the sizes of one token's vector before and after the head.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from .trace import Trace

MASK_MODES = ("causal", "none", "after", "after_renormalised")
EDITABLE = ("scores", "weights")

Edit = tuple[str, int, int, float]  # (tensor, row, column, value)


# --- one pure function a step: what `trace` composes, and what the lesson explains -----------------------------------


def dot(q: Tensor, k: Tensor) -> Tensor:
    """Raw scores: every query with every key. q, k (…, T, d_out) → (…, T, T); row = query, column = key."""
    return q @ k.transpose(-2, -1)


def causal_mask(T: int, device: torch.device | None = None) -> Tensor:
    """(T, T) bool, True where the key is not in the query's future: column ≤ row."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril_()


def visibility(real: Tensor, causal: bool) -> Tensor:
    """real (…, T) bool → visible (…, T, T) bool: the key is real and, if causal, not in the query's future."""
    T = real.shape[-1]
    keys = real.unsqueeze(-2)  # (…, 1, T)
    return keys & causal_mask(T, real.device) if causal else keys.expand(*real.shape, T)


def hide(scaled: Tensor, allowed: Tensor) -> Tensor:
    """−inf wherever `allowed` is False; a new tensor, the earlier step is left as it was."""
    return scaled.masked_fill(~allowed, -math.inf)


def softmax(masked: Tensor, may_be_empty: bool = True) -> Tensor:
    """Softmax of each row; a row of −inf alone gives zeros, not NaN. `may_be_empty=False` skips that check."""
    weights = torch.softmax(masked, dim=-1)
    if may_be_empty:
        nowhere = (masked == -math.inf).all(dim=-1, keepdim=True)  # (…, T, 1)
        weights = weights.masked_fill(nowhere, 0.0)
    return weights


def renormalise(weights: Tensor) -> Tensor:
    """Each row divided by its sum; a row that sums to 0 stays 0."""
    total = weights.sum(dim=-1, keepdim=True)  # (…, T, 1)
    return weights / total.masked_fill(total == 0, 1.0)


def drop(weights: Tensor, kept: Tensor, p: float) -> Tensor:
    """Inverted dropout (Srivastava et al. 2014): survivors grow by 1 / (1 − p), the rest become 0."""
    return weights * kept / (1.0 - p)


def blend(weights: Tensor, v: Tensor) -> Tensor:
    """Context: the weighted sum of the values. (…, T, T) @ (…, T, d_out) → (…, T, d_out)."""
    return weights @ v


def edited(tensor: Tensor, name: str, edits: Iterable[Edit]) -> Tensor:
    """`tensor` with the numbers that `edits` replace in it, in every sequence of the batch; a copy where one does."""
    for _, row, column, value in (e for e in edits if e[0] == name):
        tensor = tensor.clone()
        tensor[..., row, column] = value
    return tensor


# --- the modules -----------------------------------------------------------------------------------------------------


class SelfAttention(nn.Module):
    """One attention head without a causal mask: every query may look at every real key.

    `W_query`, `W_key`, `W_value` are `nn.Linear(d_in, d_out)`, made in that order with nothing drawn in between, so
    that a seed set before gives the numbers that other implementations of the same three layers print.
    """

    causal = False

    def __init__(
        self, d_in: int, d_out: int, dropout: float = 0.0, qkv_bias: bool = False, *, device=None, dtype=None
    ) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout is {dropout}, but must be at least 0 and below 1")
        self.d_in, self.d_out = d_in, d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias, device=device, dtype=dtype)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias, device=device, dtype=dtype)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias, device=device, dtype=dtype)
        self.dropout = dropout

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x (…, T, d_in) → q, k, v, each (…, T, d_out): x @ Wᵀ (+ b)."""
        # F.linear on the layers' own parameters: the same numbers as calling the layers, without the call's overhead.
        W_q, W_k, W_v = self.W_query, self.W_key, self.W_value
        return (
            F.linear(x, W_q.weight, W_q.bias),
            F.linear(x, W_k.weight, W_k.bias),
            F.linear(x, W_v.weight, W_v.bias),
        )

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Context vectors by PyTorch's fused kernel; no (T, T) tensor is kept.

        x: (T, d_in) or (B, T, d_in), finite. padding_mask: (B, T) bool ((T,) for an unbatched x), True = real token.
        Returns the leading shape of x with d_out last. A query that may look nowhere gets a zero context.
        In training mode dropout draws from PyTorch's global generator, as nn.Dropout does.
        Raises ValueError for another shape, dtype or length than the head was made for.
        """
        self._check(x, padding_mask)
        # With a dimension for heads, though there is one: on the CPU anything else goes to a kernel that keeps (T, T).
        q, k, v = self.project(x.unsqueeze(1) if x.dim() == 3 else x[None, None])  # (B, 1, T, d_out) each
        p = self.dropout if self.training else 0.0
        if padding_mask is None:
            context = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=self.causal)  # (B, 1, T, d_out)
        else:
            real = padding_mask if x.dim() == 3 else padding_mask[None]  # (B, T)
            visible = visibility(real, self.causal)[:, None]  # (B, 1, T, T)
            nowhere = ~visible.any(dim=-1, keepdim=True)  # (B, 1, T, 1)
            # What a kernel does with a row that is masked throughout differs by backend: let such rows look anywhere,
            # then zero them.
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=visible | nowhere, dropout_p=p)
            context = context.masked_fill(nowhere, 0.0)  # (B, 1, T, d_out)
        return context.squeeze(1) if x.dim() == 3 else context[0, 0]

    @torch.no_grad()
    def trace(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        *,
        mask: str | None = None,
        scale: bool = True,
        dropout: float | None = None,
        kept: Tensor | None = None,
        edits: Sequence[Edit] = (),
    ) -> Trace:
        """The same head with its work shown: a `Trace` of every tensor, on the CPU, unbatched where x is.

        mask: one of MASK_MODES; None = "causal" for a causal head, else "none". scale: divide by sqrt(d_out).
        kept: bool, as large as the weights, dropout's survivors, which grow by 1 / (1 − dropout); None = no dropout.
        dropout: the probability that `kept` was drawn with; None = the head's own.
        edits: numbers of "scores" or "weights" to replace; everything after them is computed from the new number.
        Raises ValueError as `forward` does, and for an unknown mask.
        """
        self._check(x, padding_mask)
        mask = mask or ("causal" if self.causal else "none")
        if mask not in MASK_MODES:
            raise ValueError(f"mask is {mask!r}, but must be one of {', '.join(MASK_MODES)}")
        x = x.detach()  # (…, T, d_in), here and below with or without a leading B
        padded = padding_mask is not None
        real = padding_mask if padded else torch.ones(x.shape[:-1], dtype=torch.bool, device=x.device)  # (…, T)
        visible = visibility(real, causal=mask != "none")  # (…, T, T)
        before = visible if mask == "causal" else visibility(real, causal=False)  # removed before the softmax: all else

        q, k, v = self.project(x)  # (…, T, d_out) each
        scores = edited(dot(q, k), "scores", edits)  # (…, T, T)
        scaled = scores / math.sqrt(self.d_out) if scale else scores  # (…, T, T)
        masked = hide(scaled, before) if padded or mask == "causal" else scaled  # (B, T, T)
        if mask in ("after", "after_renormalised"):
            # In double: what the future leaves of a row can be too small for a float, and is then divided by itself.
            weights = softmax(masked.double(), may_be_empty=padded) * visible  # (…, T, T)
            weights = (renormalise(weights) if mask == "after_renormalised" else weights).to(masked.dtype)
        else:
            weights = softmax(masked, may_be_empty=padded)  # (…, T, T)
        if kept is not None:
            weights = drop(weights, kept.to(x.device), self.dropout if dropout is None else dropout)
        weights = edited(weights, "weights", edits)  # (…, T, T)
        context = blend(weights, v)  # (…, T, d_out)

        tensors = dict(x=x, q=q, k=k, v=v, scores=scores, scaled=scaled, masked=masked, weights=weights)
        tensors |= dict(context=context, real=real, visible=visible) | ({} if kept is None else dict(kept=kept))
        return Trace(**{name: tensor.cpu() for name, tensor in tensors.items()})

    def _check(self, x: Tensor, padding_mask: Tensor | None) -> None:
        if x.dim() not in (2, 3) or x.shape[-1] != self.d_in:
            raise ValueError(f"x has shape {tuple(x.shape)}, but must be (T, {self.d_in}) or (B, T, {self.d_in})")
        if padding_mask is None:
            return
        if padding_mask.dtype != torch.bool:
            raise ValueError(f"padding_mask is {padding_mask.dtype}, but must be torch.bool (True = real token)")
        if padding_mask.shape != x.shape[:-1]:
            shapes = tuple(padding_mask.shape), tuple(x.shape), tuple(x.shape[:-1])
            raise ValueError("padding_mask has shape {}, but x {} needs {}".format(*shapes))


class CausalAttention(SelfAttention):
    """One attention head in which no query looks into its future, for sequences up to `context_length` tokens."""

    causal = True

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float = 0.0,
        qkv_bias: bool = False,
        *,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(d_in, d_out, dropout, qkv_bias, device=device, dtype=dtype)
        self.context_length = context_length

    @classmethod
    def seeded(
        cls, d_in: int, d_out: int, context_length: int, generator: torch.Generator, dropout=0.0, qkv_bias=False
    ) -> CausalAttention:
        """A head with the weights that nn.Linear would draw, from `generator` alone; the global one stays untouched."""
        head = nn.utils.skip_init(cls, d_in, d_out, context_length, dropout, qkv_bias)
        for layer in (head.W_query, head.W_key, head.W_value):
            nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
            if layer.bias is not None:
                bound = 1 / math.sqrt(d_in)
                nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
        return head.eval()

    def _check(self, x: Tensor, padding_mask: Tensor | None) -> None:
        super()._check(x, padding_mask)
        if x.shape[-2] > self.context_length:
            raise ValueError(f"x has {x.shape[-2]} tokens, but context_length is {self.context_length}")
