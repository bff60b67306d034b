"""The small language model that `assets/trained/` ships: two of this project's own attention heads and nothing else.

r = embedding + position; r = r + head(norm(r)), twice; logits = norm(r) @ embeddingᵀ. No MLP, no output projection.
Shapes: B batch, T tokens, C width, V vocabulary. `attention/train.py` makes the weights.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from .. import text
from ..module import CausalAttention
from . import Model, Pass, best_guesses, on, positions, real_mask, trace_head

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FOLDER = Path(__file__).parents[2] / "assets" / "trained"


class LanguageModel(nn.Module):
    """Guesses the next token. Weights are drawn from `generator`, or left unset (to be loaded) without one."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        context_length: int,
        layers: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        g = generator or torch.Generator()
        # The embedding is the output layer too. Not by skip_init: its first use on one costs 0.7 s of imports.
        self.embedding = nn.Embedding.from_pretrained(torch.empty(vocabulary, width), freeze=False)  # (V, C)
        self.position = nn.Embedding.from_pretrained(torch.empty(context_length, width), freeze=False)
        self.heads = nn.ModuleList(CausalAttention.seeded(width, width, context_length, g) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))  # one before each head
        self.norm = nn.LayerNorm(width)
        for table in (self.embedding, self.position):
            nn.init.normal_(table.weight, std=0.02, generator=g)

    def embed(self, ids: Tensor, real: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """ids (B, T) → r (B, T, C) before the first head. Positions count real tokens only, unless given."""
        B, T = ids.shape
        if self.context_length < T:
            raise ValueError(f"the text has {T} tokens, but this model takes at most {self.context_length}")
        if positions is None:
            positions = torch.arange(T, device=ids.device).expand(B, T)
            if real is not None:
                positions = (real.cumsum(dim=-1) - 1).clamp(min=0)  # (B, T)
        return self.embedding(ids) + self.position(positions)  # (B, T, C)

    def unembed(self, r: Tensor) -> Tensor:
        """r (…, C) after the last head → logits (…, V)."""
        return F.linear(self.norm(r), self.embedding.weight)

    def streams(
        self, ids: Tensor, real: Tensor | None = None, positions: Tensor | None = None, off: tuple[int, ...] = ()
    ) -> list[Tensor]:
        """The residual stream before the first head and after each one, (B, T, C) every time.

        real: (B, T) bool, True = real token. off: layers whose head is left out of the stream.
        """
        r = self.embed(ids, real, positions)
        kept = [r]
        for layer, (head, norm) in enumerate(zip(self.heads, self.norms, strict=True)):
            if layer not in off:
                r = r + head(norm(r), real)
            kept.append(r)
        return kept

    def forward(
        self, ids: Tensor, real: Tensor | None = None, positions: Tensor | None = None, off: tuple[int, ...] = ()
    ) -> Tensor:
        """ids (B, T) → logits (B, T, V) for the token after each; the arguments of `streams`."""
        return self.unembed(self.streams(ids, real, positions, off)[-1])


# --- what assets/trained ships, read when first asked for ------------------------------------------------------------


def _report() -> dict:
    path = FOLDER / "report.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"checkpoints": []}


CHECKPOINTS: list[dict] = _report()["checkpoints"]  # {"step", "loss", "copying", …} in order; the last is finished


@lru_cache
def tokenizer() -> Tokenizer:
    """The byte-level BPE the weights were trained with."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@lru_cache(maxsize=16)
def load(checkpoint: int | None = None) -> LanguageModel:
    """The weights after `checkpoint` training steps (None = finished), float32, on the CPU, in eval mode."""
    from safetensors.torch import load_file

    steps = [entry["step"] for entry in CHECKPOINTS]
    step = steps[-1] if checkpoint is None else checkpoint
    if step not in steps:
        raise ValueError(f"checkpoint is {checkpoint!r}, but must be one of {', '.join(map(str, steps))}")
    weights = {name: t.float() for name, t in load_file(FOLDER / f"step-{step:05d}.safetensors").items()}
    V, C = weights["embedding.weight"].shape
    T, _ = weights["position.weight"].shape
    model = LanguageModel(V, C, T)
    model.load_state_dict(weights)
    return model.requires_grad_(False).eval()


# --- the model on the page -------------------------------------------------------------------------------------------


class Trained(Model):
    name = "trained"
    title = "Trained: small, two layers"
    words = (
        "Two attention heads, one above the other, trained on children's books. They know one trick: to find what "
        "followed the same word before, and to say it again. Attention can do more than copy; this model cannot."
    )
    example = "The cat sat. The cat"
    learning = (
        "Loss: how badly it guesses text that it never saw; it rises for a while as copying forms. Training "
        "rewarded both heads for looking where copying needs it: this shows how two heads can copy, not that any "
        "network must find it."
    )
    examples = (example, "My dog ran. My dog", "The blicket saw the wug. The blicket saw the")
    layers = 2
    own_choice = (1, 0)
    tokenizers = ("subwords",)
    options = frozenset({"head_off", "checkpoint"})
    x_rule = "norm"

    @property
    def context_length(self) -> int:
        return load().context_length

    @property
    def checkpoints(self) -> tuple[int, ...]:
        return tuple(entry["step"] for entry in CHECKPOINTS)

    @property
    def losses(self) -> tuple[float, ...]:
        return tuple(entry["loss"] for entry in CHECKPOINTS)

    def tokenize(self, request):
        return subwords(request.sentence)

    def head(self, request) -> CausalAttention:
        return load(request.checkpoint).heads[request.layer]

    def norm(self, request) -> nn.LayerNorm:
        return load(request.checkpoint).norms[request.layer]

    def path(self, request) -> tuple[str, ...]:
        return (("second layer",) if request.layer == 0 else ()) + ("norm", "output layer", "probabilities")

    def run(self, request, tokens, device) -> Pass:
        lm = on(load(request.checkpoint), device)
        real = real_mask(tokens)  # (T,)
        ids = torch.tensor([t.id if t.real else 0 for t in tokens])  # (T,)
        embedding = lm.embedding.weight[ids.to(device)] * real[:, None].to(device)  # (T, C)
        position = lm.position.weight[positions(tokens).to(device)] * real[:, None].to(device)  # (T, C)
        sources = {"embedding": embedding, "position": position}
        padding = None if real.all() else real.to(device)
        r = embedding + position  # (T, C)
        for layer, (head, norm) in enumerate(zip(lm.heads, lm.norms, strict=True)):
            if layer == request.layer:
                sources["r"] = r
                trace = trace_head(head, norm(r), tokens, request)
                context = trace.context.to(device) * (not request.head_off)
            elif layer < request.layer:
                earlier = head.trace(norm(r), padding)
                context = earlier.context.to(device)
                sources |= {"earlier": context, "earlier_weights": earlier.weights}
            else:
                context = head(norm(r), padding)
            r = r + context  # (T, C)
        last = max(t.index for t in tokens if t.real)
        sources["final"] = lm.norm(r[last])[None]  # (1, C) what the output layer reads
        guess, ids = best_guesses(lm.unembed(r[last]).cpu(), piece)
        sources["output"] = lm.embedding.weight[ids.to(device)]  # (guesses, C) the output layer's rows of the guesses
        return Pass(trace, {name: source.cpu() for name, source in sources.items()}, guess)


def subwords(sentence: str):
    """The trained model's tokens of any sentence."""
    encoding = tokenizer().encode(sentence, add_special_tokens=False)
    return text.from_bytes(sentence, [text.bytes_of(t) for t in encoding.tokens], encoding.ids)


def piece(token_id: int) -> bytes:
    """A vocabulary entry, which may be a part of a character."""
    return text.bytes_of(tokenizer().id_to_token(token_id))


MODEL = Trained()
