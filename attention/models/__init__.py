"""Where x and the weights come from. One file a model; this one says what a model is, and loads it when first asked.

A model is a subclass of `Model` named in `NAMES`: it tokenizes a sentence and runs it, on the device it is given.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor

from ..module import CausalAttention
from ..text import Token, bytes_label, pad
from ..trace import Trace

if TYPE_CHECKING:
    from ..compute import Request
    from ..overview import Overview

NAMES = ("textbook", "untrained", "trained", "gpt2")
DEFAULT = "trained"


@dataclass(frozen=True, eq=False)
class Guess:
    """What the model expects next: the most probable tokens, with the numbers that the probabilities come from."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    logits: tuple[float, ...]
    best_logit: float  # of all tokens
    exp_sum: float  # Σ over the whole vocabulary of e^(logit − best)


@dataclass(frozen=True, eq=False)
class Pass:
    """One run of a model: the trace of the chosen head, what x was made from, and the guess where there is one."""

    trace: Trace
    sources: dict[str, Tensor] = field(default_factory=dict)  # CPU, by name: what x was made from, what the guess reads
    guess: Guess | None = None
    overview: Overview | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """One pass of a whole model over a sentence, from which any of its heads is computed. Plain data, on the CPU."""

    device: str  # where it was computed
    stream: np.ndarray  # (layers, T, C) the residual stream that enters each layer, before the layer norm
    final: np.ndarray  # (1, C) what the output layer read
    ids: np.ndarray  # of the guesses
    guess: Guess
    overview: Overview

    @property
    def nbytes(self) -> int:
        return self.stream.nbytes + self.final.nbytes + self.ids.nbytes + self.overview.nbytes


class Model:
    """What every model declares. The class attributes are the facts that validation and the page need."""

    name: ClassVar[str]
    title: ClassVar[str]  # for the choice on the page
    words: ClassVar[str]  # one sentence about it
    example: ClassVar[str]  # a sentence that shows it off
    context_length: ClassVar[int]
    layers: ClassVar[int] = 1
    heads: ClassVar[int] = 1
    own_choice: ClassVar[tuple[int, int]] = (0, 0)  # layer, head
    tokenizers: ClassVar[tuple[str, ...]]  # the first is what "auto" means; one alone cannot be chosen
    options: ClassVar[frozenset[str]] = frozenset()  # the arguments, beyond those all models have, that it takes
    live: ClassVar[bool] = True  # quick enough on the CPU to answer while someone types
    gpu_seconds: ClassVar[int] = 2  # to ask for, at least: quota is checked against what is requested, not used
    digits: ClassVar[int] = 2  # the most decimals in a cell
    examples: ClassVar[tuple[str, ...]] = ()  # further sentences worth a try
    checkpoints: tuple[int, ...] = ()  # training steps after which the weights were kept
    learning: ClassVar[str] = ""  # what to know about how it learned
    losses: tuple[float, ...] = ()  # the loss at each of them, nats a token
    x_rule: ClassVar[str] = "given"  # how x came about, a rule of the lesson

    def tokenize(self, request: Request) -> list[Token]:
        """The sentence's tokens, without padding. ValueError where the model cannot read it."""
        raise NotImplementedError

    def head(self, request: Request) -> CausalAttention:
        """The chosen head, on the CPU."""
        raise NotImplementedError

    def norm(self, request: Request) -> nn.LayerNorm | None:
        """The layer norm before the chosen head, on the CPU; None where x is not normed."""
        return None

    def joint(self, request: Request) -> tuple[str, ...]:
        """What the context goes through before it is added to r, in words: other heads first; empty where nothing."""
        return ()

    def path(self, request: Request) -> tuple[str, ...]:
        """What lies between the sum of r and the context and the guess, in words; empty without a guess."""
        return ()

    def loaded(self) -> bool:
        """Is it in memory, or so small that nobody waits for it?"""
        return True

    def loading(self) -> tuple[int, int] | None:
        """Bytes so far and in all of the file that is being fetched, (0, 0) while files are read, else None."""
        return None

    def run(self, request: Request, tokens: list[Token], device: str) -> Pass:
        """One pass over the (padded) tokens on `device`."""
        raise NotImplementedError

    # A large model splits that in two: a pass over the sentence, worth a GPU and keeping, that serves all heads, and
    # the chosen head, computed from it on the CPU.

    def shared(self, request: Request) -> Request | None:
        """The request of the pass that all heads of this sentence share; None for a model that runs in one go."""
        return None

    def prepare(self) -> None:
        """Load what `read` needs in this process first, so that no GPU time goes into it. ValueError where it fails."""

    def read(self, request: Request, tokens: list[Token], device: str) -> Reading:
        """The pass over the sentence, on `device`; `request` is a shared one."""
        raise NotImplementedError

    def from_reading(self, request: Request, tokens: list[Token], reading: Reading) -> Pass:
        """The chosen head's run, on the CPU, from the pass over its sentence."""
        raise NotImplementedError

    def tokens(self, request: Request) -> list[Token]:
        """The tokens with the request's padding; ValueError where they are more than the context holds."""
        tokens = self.tokenize(request)
        for what, count in (("The sentence has {} tokens", len(tokens)), ("pad_to is {}", request.pad_to)):
            if count > self.context_length:
                raise ValueError(
                    f"{what.format(f'{count:,}')}, but the context of {self.name!r} is {self.context_length:,} tokens."
                )
        return pad(tokens, request.pad_to, request.pad_side)


def real_mask(tokens: list[Token]) -> Tensor:
    """(T,) bool, True = real token."""
    return torch.from_numpy(np.array([t.real for t in tokens], dtype=bool))  # torch.tensor takes a list more slowly


def positions(tokens: list[Token]) -> Tensor:
    """(T,) int64: the place among the real tokens, so that padding moves nothing; 0 at padding."""
    real = real_mask(tokens)
    return (real.cumsum(0) - 1).clamp(min=0)


def trace_head(head: CausalAttention, x: Tensor, tokens: list[Token], request: Request) -> Trace:
    """The request's mask, scale, padding, dropout and edits applied to one head. x (T, d_in) → Trace, unbatched."""
    kept = None
    if request.dropout:
        generator = torch.Generator().manual_seed(request.seed)
        kept = torch.rand(len(tokens), len(tokens), generator=generator) >= request.dropout  # (T, T)
    real = real_mask(tokens)
    padding_mask = None if real.all() else real.to(x.device)
    settings = dict(mask=request.mask, scale=request.scale, dropout=request.dropout, kept=kept, edits=request.edits)
    return on(head, x.device).trace(x, padding_mask, **settings)


def best_guesses(logits: Tensor, piece: Callable[[int], bytes], count: int = 8) -> tuple[Guess, Tensor]:
    """The `count` most probable tokens and their ids. logits (V,); `piece` gives a token's bytes by its id."""
    best, ids = logits.topk(min(count, len(logits)))
    powers = (logits - best[0]).exp()  # (V,)
    pieces = list(map(piece, ids.tolist()))
    guess = Guess(
        texts=tuple(entry.decode(errors="replace") for entry in pieces),
        labels=tuple(map(bytes_label, pieces)),
        probabilities=tuple((powers[ids] / powers.sum()).tolist()),
        logits=tuple(best.tolist()),
        best_logit=best[0].item(),
        exp_sum=powers.sum().item(),
    )
    return guess, ids


def on(module: nn.Module, device: torch.device | str) -> nn.Module:
    """The module on `device`: itself on the CPU, else a copy, since the master copies stay on the CPU."""
    if torch.device(device).type == "cpu":
        return module
    moved = {id(t): nn.Parameter(t.detach().to(device), t.requires_grad) for t in module.parameters()}
    moved |= {id(t): t.to(device) for t in module.buffers()}
    return copy.deepcopy(module, moved)  # takes the moved tensors instead of copying the old ones


@cache
def get(name: str) -> Model:
    """The model called `name`, which must be one of NAMES."""
    return importlib.import_module(f"{__name__}.{name}").MODEL
