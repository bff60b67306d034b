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

import torch
import torch.nn as nn
from torch import Tensor

from ..module import CausalAttention
from ..text import Token, label, pad
from ..trace import Trace

if TYPE_CHECKING:
    from ..compute import Request

NAMES = ("textbook", "untrained")
DEFAULT = "untrained"


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
    sources: dict[str, Tensor] = field(default_factory=dict)  # (T, d_in) each, CPU: what x was made from, by name
    guess: Guess | None = None


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
    digits: ClassVar[int] = 2  # the most decimals in a cell
    examples: ClassVar[tuple[str, ...]] = ()  # further sentences worth a try
    checkpoints: tuple[int, ...] = ()  # training steps after which the weights were kept
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

    def path(self, request: Request) -> tuple[str, ...]:
        """What lies between the sum of r and the context and the guess, in words; empty without a guess."""
        return ()

    def run(self, request: Request, tokens: list[Token], device: str) -> Pass:
        """One pass over the (padded) tokens on `device`."""
        raise NotImplementedError

    def tokens(self, request: Request) -> list[Token]:
        """The tokens with the request's padding; ValueError where they are more than the context holds."""
        tokens = self.tokenize(request)
        for what, count in (("the sentence has {} tokens", len(tokens)), ("pad_to is {}", request.pad_to)):
            if count > self.context_length:
                raise ValueError(
                    f"{what.format(f'{count:,}')}, but the context of {self.name!r} is {self.context_length:,} tokens."
                )
        return pad(tokens, request.pad_to, request.pad_side)


def real_mask(tokens: list[Token]) -> Tensor:
    """(T,) bool, True = real token."""
    return torch.tensor([t.real for t in tokens])


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


def best_guesses(logits: Tensor, piece: Callable[[int], str], count: int = 8) -> Guess:
    """The `count` most probable tokens. logits (V,) → Guess; `piece` gives a token's text by its id."""
    best, ids = logits.topk(min(count, len(logits)))
    powers = (logits - best[0]).exp()  # (V,)
    texts = tuple(map(piece, ids.tolist()))
    return Guess(
        texts=texts,
        labels=tuple(map(label, texts)),
        probabilities=tuple((powers[ids] / powers.sum()).tolist()),
        logits=tuple(best.tolist()),
        best_logit=best[0].item(),
        exp_sum=powers.sum().item(),
    )


def on(module: nn.Module, device: torch.device | str) -> nn.Module:
    """The module on `device`: itself on the CPU, else a copy, since the master copies stay on the CPU."""
    return module if torch.device(device).type == "cpu" else copy.deepcopy(module).to(device)


@cache
def get(name: str) -> Model:
    """The model called `name`, which must be one of NAMES."""
    return importlib.import_module(f"{__name__}.{name}").MODEL
