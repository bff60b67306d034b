"""Random embeddings and random weights from a seed: what a head computes before it has learned anything."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import torch
from torch import Tensor

from .. import text
from ..module import CausalAttention
from . import Model, Pass, positions, real_mask, trace_head


class Untrained(Model):
    name = "untrained"
    title = "Untrained: random weights"
    words = "Embeddings and weights drawn at random from a seed: the arithmetic is real, but nothing has been learned."
    example = "The cat sat on the mat"
    examples = (example, "the cat saw the cat", "你好，世界")
    context_length = 1024
    tokenizers = ("words", "characters", "subwords")
    options = frozenset({"tokenizer", "d_model", "d_head", "seed", "qkv_bias", "positions"})
    x_rule = "add"

    def tokenize(self, request):
        if request.tokenizer == "characters":
            pieces = text.characters(request.sentence)
            return text.from_pieces(pieces, map(ord, pieces))
        if request.tokenizer == "subwords":
            from .trained import subwords  # the tokenizer file is read when it is first asked for

            return subwords(request.sentence)
        pieces = text.words(request.sentence)
        return text.from_pieces(pieces, map(word_id, pieces))

    def head(self, request) -> CausalAttention:
        return seeded_head(request.d_model, request.d_head, request.seed, request.qkv_bias)

    def run(self, request, tokens, device) -> Pass:
        d = request.d_model
        nothing = torch.zeros(d)
        x = torch.stack([embed(t.id, d, request.seed) if t.real else nothing for t in tokens])  # (T, d)
        sources = {"embedding": x}
        if request.positions:
            real = real_mask(tokens)[:, None]  # (T, 1)
            sources["position"] = position_table(d, request.seed)[positions(tokens)] * real  # (T, d)
            x = x + sources["position"]
        return Pass(trace_head(self.head(request), x.to(device), tokens, request), sources)


def word_id(piece: str) -> int:
    """A number for a word that depends on nothing but the word: 31 bits of a hash."""
    return int.from_bytes(blake2b(piece.encode(), digest_size=4).digest()) >> 1


def _generator(*key: object) -> torch.Generator:
    # The generator takes 32 bits of its seed: hash the key into them, so that neighbouring seeds share nothing.
    digest = blake2b(repr(key).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest))


@lru_cache(maxsize=4096)
def embed(token_id: int, d: int, seed: int) -> Tensor:
    """(d,) standard normal, the same for a token wherever and with whatever else it stands."""
    return torch.randn(d, generator=_generator("embedding", token_id, seed))


@lru_cache(maxsize=8)
def position_table(d: int, seed: int) -> Tensor:
    """(context, d) standard normal; drawn whole, so that a longer sentence keeps the shorter one's rows."""
    return torch.randn(Untrained.context_length, d, generator=_generator("position", seed))


@lru_cache(maxsize=8)
def seeded_head(d_model: int, d_head: int, seed: int, qkv_bias: bool) -> CausalAttention:
    """The head that `torch.manual_seed(seed)` and three fresh nn.Linear would give."""
    generator = torch.Generator().manual_seed(seed)
    return CausalAttention.seeded(d_model, d_head, Untrained.context_length, generator, qkv_bias=qkv_bias)


MODEL = Untrained()
