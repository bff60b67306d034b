"""The textbook example: six words with 3-number vectors and d_out = 2, whose numbers stand in print.

The notebook this follows builds its heads one after the other from one seed. Head 0 here is its first triple of draws,
which prints the scores and weights; head 1 is its third triple, which prints the context vectors.
"""

from __future__ import annotations

import re

import torch

from ..module import CausalAttention
from ..text import Token, from_pieces
from . import Model, Pass, trace_head

VECTORS = {
    "Your": (0.43, 0.15, 0.89),
    "journey": (0.55, 0.87, 0.66),
    "starts": (0.57, 0.85, 0.64),
    "with": (0.22, 0.58, 0.33),
    "one": (0.77, 0.25, 0.10),
    "step": (0.05, 0.80, 0.55),
}
IDS = {word.casefold(): i for i, word in enumerate(VECTORS)}
TABLE = torch.tensor(list(VECTORS.values()))  # (6, 3)
SEED = 0
DRAW_OF_HEAD = (1, 3)  # which triple of draws after the seed each head is


class Textbook(Model):
    name = "textbook"
    title = "Textbook: six words"
    words = "Six words with vectors of three numbers, small enough to do the sums by hand."
    example = "Your journey starts with one step"
    examples = (example, "step with step", "one journey")
    context_length = 64
    heads = 2
    tokenizers = ("words",)
    digits = 4

    def tokenize(self, request) -> list[Token]:
        pieces = re.findall(r"\s*\S+(?:\s+\Z)?", request.sentence)
        unknown = next((p.strip() for p in pieces if p.strip().casefold() not in IDS), None)
        if unknown is not None:
            raise ValueError(
                f"The textbook model knows only six words, in any order: {', '.join(VECTORS)}. "
                f"Choose another model for other words."
            )
        return from_pieces(pieces, [IDS[p.strip().casefold()] for p in pieces])

    def head(self, request) -> CausalAttention:
        generator = torch.Generator().manual_seed(SEED)
        d_in = TABLE.shape[1]
        for _ in range(DRAW_OF_HEAD[request.head]):
            head = CausalAttention.seeded(d_in, 2, self.context_length, generator)
        return head

    def run(self, request, tokens, device) -> Pass:
        x = torch.stack([TABLE[t.id] if t.real else torch.zeros(TABLE.shape[1]) for t in tokens])  # (T, 3)
        return Pass(trace_head(self.head(request), x.to(device), tokens, request))


MODEL = Textbook()
