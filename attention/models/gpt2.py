"""GPT-2 small (Radford et al. 2019): 12 × 12 heads on any sentence, with `transformers`' weights and numbers.

One pass of the whole model over a sentence keeps what enters each layer, the guess and small weights of all heads; any
head is then computed on the CPU by this project's own CausalAttention from slices of the weights. Whatever a request
changes about its head (mask, scale, dropout, edits, leaving it out) goes on from that layer, so the guess follows.

Shapes: T tokens, C width, H heads, d = C / H. Weights are loaded on first use and stay on the CPU; a GPU gets a copy
inside the call. (Module-level "cuda" weights would be packed away by ZeroGPU and read as zeros outside a GPU call.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn as nn
from torch import Tensor

from .. import overview, text
from ..module import CausalAttention, blend, dot, hide, softmax, visibility
from . import Model, Pass, Reading, best_guesses, gpt2_files, on, positions, real_mask, trace_head
from .gpt2_files import broken, load, sizes, tokenizer

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

Alteration = tuple[int, Tensor]  # a head, and the context (T, d) that it gives instead


def embed(lm: GPT2LMHeadModel, tokens: list[text.Token]) -> tuple[Tensor, Tensor]:
    """Embeddings and positions, (T, C) each, zero at padding; on the model's device."""
    device = lm.transformer.wte.weight.device
    real = real_mask(tokens)[:, None].to(device)  # (T, 1)
    ids = torch.tensor([t.id if t.real else 0 for t in tokens]).to(device)  # (T,)
    return lm.transformer.wte(ids) * real, lm.transformer.wpe(positions(tokens).to(device)) * real


def onward(
    lm: GPT2LMHeadModel,
    r: Tensor,
    real: Tensor,
    start: int = 0,
    instead: Alteration | None = None,
    see: Callable[[Tensor, Tensor], None] = lambda r, weights: None,
) -> Tensor:
    """The residual stream r (T, C) that enters layer `start`, through all layers from there on → (T, C).

    real (T,) bool. instead: what one head of layer `start` gives in its place. see(r, weights (H, T, T)) is called for
    each layer. A query that may look nowhere has zero weights, as in the module.
    """
    T, C = r.shape
    H = lm.config.n_head
    visible = visibility(real[None], causal=True)[0]  # (T, T)
    for layer, block in enumerate(lm.transformer.h[start:], start):
        qkv = block.attn.c_attn(block.ln_1(r))  # (T, 3 C)
        q, k, v = (t.view(T, H, C // H).transpose(0, 1) for t in qkv.split(C, dim=-1))  # (H, T, d) each
        weights = softmax(hide(dot(q, k) / math.sqrt(C // H), visible))  # (H, T, T)
        contexts = blend(weights, v)  # (H, T, d)
        if instead and layer == start:
            contexts[instead[0]] = instead[1]
        see(r, weights)
        r = r + block.attn.c_proj(contexts.transpose(0, 1).reshape(T, C))  # (T, C)
        r = r + block.mlp(block.ln_2(r))  # (T, C)
    return r


def piece(token_id: int) -> bytes:
    """A vocabulary entry, which may be a part of a character."""
    entry = tokenizer().id_to_token(token_id) or ""
    try:
        return text.bytes_of(entry)
    except KeyError:  # an added entry that is not written in byte-level characters
        return entry.encode()


class Gpt2(Model):
    name = "gpt2"
    title = "GPT-2: 144 heads"
    words = (
        "A real language model of 2019 with 124 million weights. Each of its 144 heads sees only a part of the story: "
        "between one head and the guess lie the other heads, the output projection, the MLPs and further layers."
    )
    example = "The cat sat on the mat. The cat"
    examples = (example, "When Mary and John went out, John gave a book to", "I love 🤗 and 漢字")
    tokenizers = ("subwords",)
    options = frozenset({"head_off"})
    live = False
    x_rule = "norm"
    gpu_seconds = 10  # moving 0.5 GB, and loading it first in a worker that is older than this process's copy

    @property
    def layers(self) -> int:
        return sizes()["n_layer"]

    @property
    def heads(self) -> int:
        return sizes()["n_head"]

    @property
    def context_length(self) -> int:
        return sizes()["n_positions"]

    @property
    def own_choice(self) -> tuple[int, int]:
        return min(5, self.layers - 1), min(5, self.heads - 1)  # known to look at what followed an earlier copy

    def tokenize(self, request) -> list[text.Token]:
        encoding = tokenizer().encode(request.sentence, add_special_tokens=False)
        try:
            pieces = [text.bytes_of(entry) for entry in encoding.tokens]
        except KeyError as error:
            raise broken(error) from error
        if b"".join(pieces) != request.sentence.encode():
            raise broken(ValueError())
        return text.from_bytes(request.sentence, pieces, encoding.ids)

    def head(self, request) -> CausalAttention:
        lm = load()
        conv = lm.transformer.h[request.layer].attn.c_attn  # weight (C, 3 C): transposed, q then k then v
        C, d = lm.config.n_embd, lm.config.n_embd // lm.config.n_head
        head = nn.utils.skip_init(CausalAttention, C, d, lm.config.n_positions, qkv_bias=True)
        for i, layer in enumerate((head.W_query, head.W_key, head.W_value)):
            own = slice(i * C + request.head * d, i * C + (request.head + 1) * d)
            layer.weight.data.copy_(conv.weight[:, own].T)
            layer.bias.data.copy_(conv.bias[own])
        return head.requires_grad_(False).eval()

    def norm(self, request) -> nn.LayerNorm:
        return load().transformer.h[request.layer].ln_1

    def joint(self, request) -> tuple[str, ...]:
        others = self.heads - 1
        count = {1: "one", 11: "eleven"}.get(others, str(others))
        return *((f"{count} other head{'s' * (others > 1)}",) if others else ()), "output projection"

    def path(self, request) -> tuple[str, ...]:
        further = self.layers - 1 - request.layer
        layers = (f"{further} further layer{'s' * (further > 1)}",) if further else ()
        return ("MLP", *layers, "norm", "output layer", "probabilities")

    def shared(self, request):
        return replace(
            request, layer=None, head=None, mask="causal", scale=True, dropout=0.0, seed=0, head_off=False, edits=None
        )

    def prepare(self) -> None:
        load()

    def loaded(self) -> bool:
        return gpt2_files.loaded()

    def loading(self) -> tuple[int, int] | None:
        return gpt2_files.loading()

    def read(self, request, tokens, device) -> Reading:
        lm = on(load(), device)
        real = real_mask(tokens)
        rows = real.nonzero()[:, 0].to(device)  # (n,)
        found = overview.places(torch.tensor([t.id for t in tokens if t.real]).to(device))
        stream, pictures, shares = [], [], []

        def see(r: Tensor, weights: Tensor) -> None:
            stream.append(r.cpu())
            pictures.append(overview.picture(weights).cpu())
            shares.append(overview.measure(weights[:, rows][:, :, rows], found).cpu())

        embedding, position = embed(lm, tokens)
        r = onward(lm, embedding + position, real.to(device), see=see)  # (T, C)
        guess, final, ids = self.guess(lm, r, tokens)
        small = [torch.stack(parts).numpy() for parts in (pictures, shares)]
        seen = overview.Overview(*small, overview.block_of(len(tokens)), len(tokens))
        return Reading(device, torch.stack(stream).numpy(), final.numpy(), ids.numpy(), guess, seen)

    def guess(self, lm, r: Tensor, tokens):
        """From r (T, C) after the last layer: the guess, what the output layer read (1, C), and the guesses' ids."""
        last = max(t.index for t in tokens if t.real)
        final = lm.transformer.ln_f(r[last])  # (C,)
        guess, ids = best_guesses(lm.lm_head(final).cpu(), piece)
        return guess, final[None].cpu(), ids

    def from_reading(self, request, tokens, reading) -> Pass:
        lm = load()
        r = torch.from_numpy(reading.stream[request.layer])  # (T, C)
        trace = trace_head(self.head(request), self.norm(request)(r), tokens, request)
        embedding, position = embed(lm, tokens)
        sources = {"embedding": embedding, "position": position}
        if request.layer:
            sources["before"] = r - (embedding + position)
        guess, final, ids = reading.guess, torch.from_numpy(reading.final), torch.from_numpy(reading.ids)
        if replace(request, layer=None, head=None) != self.shared(request):  # it changes what its head gives
            context = trace.context * (not request.head_off)  # (T, d)
            altered = onward(lm, r, real_mask(tokens), request.layer, (request.head, context))  # (T, C)
            guess, final, ids = self.guess(lm, altered, tokens)
        sources |= {"r": r, "final": final, "output": lm.lm_head.weight[ids]}
        return Pass(trace, sources, guess, reading.overview)


MODEL = Gpt2()
