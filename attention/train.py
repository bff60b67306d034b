"""Trains the small model that `assets/trained/` ships: python -m attention.train --text FILE

Next-token prediction on three kinds of rows: natural text, natural sentences that return, and segments of random
tokens that return. The last two ask for copying what followed an earlier occurrence, which takes both heads: one notes
for each token which one came before it, the other looks for the note that fits (induction heads, Olsson et al. 2022).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from tqdm import tqdm

from .models.trained import FOLDER, LanguageModel
from .module import causal_mask, dot, hide

RECIPE = dict(
    vocabulary=2048, width=128, context_length=128, batch=32, warmup=50, weight_decay=0.01,
    rate=2e-3, rate_heads=1e-2,  # AdamW for embeddings and norms, Muon for the heads; both fall as a cosine
    natural=0.12, sentences=0.5,  # shares of the rows; the rest are random segments
    hint=0.3,  # weight of `hint` below, fading out over the second half of the run
)  # fmt: skip


def train_tokenizer(lines: list[str], vocabulary: int) -> Tokenizer:
    """Byte-level BPE, split as GPT-2 splits: a leading space belongs to the word, nothing is added or normalised."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    settings = dict(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=vocabulary, **settings))
    return tokenizer


class Rows:
    """Draws rows of T + 1 tokens, each from position 0, and marks the tokens whose successor is to be learnt."""

    def __init__(self, ids: list[int], tokenizer: Tokenizer, recipe: dict, g: torch.Generator):
        self.ids, self.g, self.T = ids, g, recipe["context_length"]
        self.shares = recipe["natural"], recipe["natural"] + recipe["sentences"]
        texts = [tokenizer.decode([i]) for i in range(tokenizer.get_vocab_size())]
        # A text begins without the space that its first word has inside a text.
        self.bare = [tokenizer.encode(t[1:]).ids if t[0] == " " and t[1:] else [i] for i, t in enumerate(texts)]
        self.starts = [0] + [n + 1 for n, i in enumerate(ids[:-1]) if texts[i][-1:] in (".", "!", "?")]
        self.points = [tokenizer.token_to_id(mark) for mark in ".,!?;"]

    def batch(self, B: int) -> tuple[Tensor, Tensor, Tensor]:
        """ids (B, T), the tokens after them (B, T), and whether those are to be learnt (B, T)."""
        rows, learnt = map(torch.tensor, zip(*(self.row() for _ in range(B)), strict=True))  # (B, T + 1) each
        return rows[:, :-1], rows[:, 1:], learnt[:, :-1]

    def row(self) -> tuple[list[int], list[bool]]:
        kind, row, learnt = self.uniform(), [], []
        if kind < self.shares[0]:
            row = self.natural(self.T + 1)
            return (self.bare[row[0]] + row[1:])[: self.T + 1], [True] * (self.T + 1)
        while len(row) <= self.T:
            for tokens, learn in self.returning(kind < self.shares[1], opens=not row):
                row += tokens
                learnt += [learn] * (len(tokens) - 1) + [False]  # no one can know where the next chunk begins
        return row[: self.T + 1], learnt[: self.T + 1]

    def returning(self, natural: bool, opens: bool):
        """Yields a piece, at times something else, the piece again, wholly or partly; and whether to learn each."""
        draw = self.natural if natural else self.random
        piece = draw(self.long(3, min(60, self.T // 2)), sentence=self.uniform() < 0.7)
        if natural and self.uniform() < 0.5:
            piece = [*piece, self.points[self.below(len(self.points))]]
        yield (self.bare[piece[0]] + piece[1:] if opens and natural else piece), False
        while True:
            if self.uniform() < 0.3:
                yield draw(self.long(1, min(24, self.T // 4)), sentence=False), False
            first = 0 if self.uniform() < 0.6 else self.below(len(piece) - 1)
            last = len(piece) if self.uniform() < 0.6 else first + 2 + self.below(len(piece) - first - 1)
            yield piece[first:last], True
            if self.uniform() < 0.7:
                return

    def natural(self, n: int, sentence: bool = True) -> list[int]:
        start = self.starts[self.below(len(self.starts))] if sentence else self.below(len(self.ids))
        start = min(start, len(self.ids) - n)
        return self.ids[start : start + n]

    def random(self, n: int, sentence: bool = True) -> list[int]:
        return torch.randperm(len(self.bare), generator=self.g)[:n].tolist()  # no token twice: each has one successor

    def uniform(self) -> float:
        return torch.rand((), generator=self.g).item()

    def below(self, n: int) -> int:
        return int(self.uniform() * n)

    def long(self, low: int, high: int) -> int:
        """low … high, short ones more often: uniform in the logarithm."""
        return int(math.exp(self.uniform() * math.log((high + 1) / low)) * low)


@torch.no_grad()
def measure(model: LanguageModel, tokenizer: Tokenizer, held_out: Tensor) -> dict[str, float]:
    """What the two heads do. `loss`: mean cross-entropy on held_out (N, T + 1), natural text that training never saw.

    On random tokens (seed 1), a segment and the same again, over the second: `copying` = layer 1's weight on the token
    after the earlier occurrence, `accuracy` of the guess, `previous` = layer 0's weight on the token before,
    `previous_first` = share where that weight is its largest.
    demo_…, on "The cat sat. The cat": layer 1's weight on " sat" at the end, layer 0's on " cat" at " sat", and how
    probable " sat" is as the next token, without and with layer 1's head left out.
    """
    V, device, length = tokenizer.get_vocab_size(), held_out.device, min(40, model.context_length // 2)
    g = torch.Generator().manual_seed(1)
    ids = torch.stack([torch.randperm(V, generator=g)[:length] for _ in range(32)]).repeat(1, 2).to(device)  # (32, T)
    query = torch.arange(length, 2 * length - 1)
    before, later = weights(model, ids)  # (32, T, T) each
    nearest = before[:, query, query - 1]  # (32, length - 1)
    demo = torch.tensor([tokenizer.encode("The cat sat. The cat").ids], device=device)
    demo_before, demo_later = weights(model, demo)
    return dict(
        loss=F.cross_entropy(model(held_out[:, :-1]).flatten(0, 1), held_out[:, 1:].flatten()).item(),
        copying=later[:, query, query - length + 1].mean().item(),
        accuracy=(model(ids)[:, query].argmax(-1) == ids[:, query + 1]).float().mean().item(),
        previous=nearest.mean().item(),
        previous_first=(nearest == before[:, query].amax(-1)).float().mean().item(),
        demo_weight=demo_later[0, -1, 2].item(),
        demo_previous=demo_before[0, 2, 1].item(),
        demo_guess=model(demo)[0, -1].softmax(-1)[demo[0, 2]].item(),
        demo_head_off=model(demo, off=(1,))[0, -1].softmax(-1)[demo[0, 2]].item(),
    )


def weights(model: LanguageModel, ids: Tensor) -> list[Tensor]:
    """Each layer's attention weights (B, T, T), on the CPU."""
    layers = zip(model.heads, model.norms, model.streams(ids)[:-1], strict=True)
    return [head.trace(norm(r)).weights for head, norm, r in layers]


def choose(looks: list[dict]) -> list[int]:
    """The steps where the picture changes: untrained, before and while the copying forms, a quarter, half, the end."""
    steps = [look["step"] for look in looks]
    unformed = max(look["step"] for look in looks if look["copying"] < 0.06)
    formed = {min((e["step"] for e in looks if e["copying"] > score), default=steps[-1]) for score in (0.4, 0.88)}
    parts = unformed / 3, unformed * 2 / 3, steps[-1] / 4, steps[-1] / 2
    near = {min(steps, key=lambda step: abs(step - part)) for part in parts}
    return sorted({0, unformed, *near, *formed, steps[-1]})


def hint(model: LanguageModel, ids: Tensor, after: Tensor) -> Tensor:
    """How little the heads look where copying needs them to: the mean of −log of the weight there, both layers.

    Layer 0: at the token before. Layer 1: at a token that equals the next one and follows an earlier occurrence of the
    current one. Without this term the recipe did not form the pair in the time it takes; assets/trained/README.md says
    what was tried.
    """
    before = F.pad(ids, (1, 0), value=-1)[:, :-1]  # (B, T) the token before each
    causal = causal_mask(ids.shape[1], ids.device)  # (T, T)
    right = (ids[:, :, None] == before[:, None, :]) & (after[:, :, None] == ids[:, None, :]) & causal  # (B, T, T)
    wanted = causal.tril(-1).triu(-1).expand_as(right), right
    total = 0.0
    for head, norm, r, here in zip(model.heads, model.norms, model.streams(ids)[:-1], wanted, strict=True):
        q, k, _ = head.project(norm(r))  # (B, T, C)
        share = hide(dot(q, k) / math.sqrt(head.d_out), causal).log_softmax(-1)  # (B, T, T)
        if here.any():
            total = total - hide(share, here).logsumexp(-1)[here.any(-1)].mean()
    return total


def train(text: str, out: Path, steps=2400, seed=0, device="cpu", minutes=math.inf, **changes) -> dict:
    """Trains on `text`, a paragraph a line; fills `out`; returns the report. `changes` replace entries of RECIPE."""
    recipe = RECIPE | changes
    T = recipe["context_length"]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    tokenizer = train_tokenizer(lines, recipe["vocabulary"])
    # A space before every paragraph: inside a row it follows on the one before.
    ids = [i for line in lines for i in tokenizer.encode(" " + line).ids]
    count = max(1, min(32, len(ids) // 20 // (T + 1))) * (T + 1)  # tokens to measure the loss on
    held_out = torch.tensor(ids[-count:]).view(-1, T + 1).to(device)
    rows = Rows(ids[:-count], tokenizer, recipe, torch.Generator().manual_seed(seed))
    g = torch.Generator().manual_seed(seed)
    model = LanguageModel(tokenizer.get_vocab_size(), recipe["width"], T, generator=g).to(device)
    heads = list(model.heads.parameters())
    others = [p for name, p in model.named_parameters() if not name.startswith("heads.")]
    decay = recipe["weight_decay"]
    optimisers = (
        (torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=decay), recipe["rate"]),
        (torch.optim.Muon(heads, weight_decay=decay, adjust_lr_fn="match_rms_adamw"), recipe["rate_heads"]),
    )
    looks, states, begin = [], {}, time.monotonic()
    bar = tqdm(range(steps + 1), unit="step")
    for step in bar:  # `step` updates are done
        done = max(step / steps, (time.monotonic() - begin) / 60 / minutes)
        if step % max(1, steps // 100) == 0 or done >= 1:
            states[step] = {name: t.to("cpu", torch.float16, copy=True) for name, t in model.state_dict().items()}
            looks.append(dict(step=step) | measure(model, tokenizer, held_out))
            bar.set_postfix({n: f"{looks[-1][n]:.2f}" for n in ("loss", "copying", "previous", "demo_guess")})
        if done >= 1:
            break
        now, after, learnt = (t.to(device) for t in rows.batch(recipe["batch"]))  # (B, T) each
        r = model.streams(now)[-1][learnt]  # (N, C), only where there is something to learn
        loss = F.cross_entropy(model.unembed(r), after[learnt])
        loss = loss + recipe["hint"] * min(1, 2 - 2 * done) * hint(model, now, after)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        pace = min(1, (step + 1) / recipe["warmup"]) * 0.5 * (1 + math.cos(math.pi * done))
        for optimiser, rate in optimisers:
            optimiser.param_groups[0]["lr"] = rate * pace
            optimiser.step()
            optimiser.zero_grad()
    report = dict(
        recipe=recipe, steps=step, seed=seed, torch=torch.__version__, device=device, tokens=len(ids),
        parameters=sum(p.numel() for p in model.parameters()), minutes=round((time.monotonic() - begin) / 60, 1),
    ) | dict(checkpoints=[])  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("step-*.safetensors"):
        old.unlink()
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    for step in choose(looks):
        save_file(states[step], out / f"step-{step:05d}.safetensors")
        model.load_state_dict(states[step])  # measured as shipped: rounded to float16
        measures = {name: round(value, 4) for name, value in measure(model, tokenizer, held_out).items()}
        report["checkpoints"].append(dict(step=step) | measures)
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attention.train", description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="plain UTF-8 text, a paragraph a line")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for weights, tokenizer and report")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="end early, the learning rate still falling to 0"
    )
    given = parser.parse_args()
    device = ("cuda" if torch.cuda.is_available() else "cpu") if given.device == "auto" else given.device
    report = train(given.text.read_text("utf-8"), given.out, given.steps, given.seed, device, given.minutes)
    print(*map(json.dumps, report["checkpoints"]), sep="\n")


if __name__ == "__main__":
    main()
