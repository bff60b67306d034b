"""From a Request to its Result: the one function behind @spaces.GPU, the CPU beside it, and a bounded cache."""

from __future__ import annotations

try:  # before torch, as ZeroGPU demands; elsewhere the package may be missing
    import spaces
except ImportError:
    spaces = None

import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from . import models, text
from .models import Guess, Pass
from .request import Request
from .trace import Trace

CACHE_BYTES = 64 * 2**20


# --- the result ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Result:
    """A request's answer: its tokens and every tensor, where it was computed, and what there is to say about it."""

    request: Request
    tokens: tuple[text.Token, ...]
    trace: Trace
    sources: dict[str, torch.Tensor]
    guess: Guess | None
    device: str
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return text.names(self.tokens)

    @property
    def model(self) -> models.Model:
        return models.get(self.request.model)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.trace.arrays().values()) + sum(s.nbytes for s in self.sources.values())

    def __getitem__(self, name: str):
        """A tensor of the trace by its name, as a numpy array: result["weights"]."""
        return self.trace[name].numpy()

    def figure(self, step: str = "all", **look):
        """One step as a matplotlib figure, or the sheet of all; `look` as in figures.figure."""
        from . import figures  # matplotlib is loaded when a figure is asked for

        return figures.figure(self, step, **look)


def tokenize(request: Request) -> tuple[text.Token, ...]:
    """The request's tokens, padding included; the last part of validation, which needs no GPU.

    ValueError for a sentence the model cannot read, too many tokens, or an edit outside the matrix.
    """
    tokens = models.get(request.model).tokens(request)
    for tensor, row, column, _ in request.edits:
        if max(row, column) >= len(tokens):
            raise ValueError(
                f"An edit names row {row}, column {column} of {tensor!r}, but with {len(tokens)} tokens "
                f"both must lie from 0 to {len(tokens) - 1}."
            )
    return tuple(tokens)


def _run(request: Request, tokens: tuple[text.Token, ...], device: str) -> Pass:
    return models.get(request.model).run(request, list(tokens), device)


# --- the GPU boundary ------------------------------------------------------------------------------------------------


def seconds(request: Request, tokens: tuple[text.Token, ...]) -> int:
    """The GPU time to ask for: quota is checked against what is requested, not against what is used."""
    return 3


def _gpu(task):
    return spaces.GPU(duration=seconds)(task) if spaces else task


@_gpu
def _run_on_gpu(request: Request, tokens: tuple[text.Token, ...]) -> dict[str, Any]:
    """What runs where the GPU is. Plain CPU data comes back: numpy arrays cross a process boundary, tensors may not."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    done = _run(request, tokens, device)
    sources = {name: source.numpy() for name, source in done.sources.items()}
    return {
        "device": device,
        "trace": done.trace.arrays(),
        "sources": sources,
        "guess": asdict(done.guess) if done.guess else None,
    }


def _from_gpu(request: Request, tokens: tuple[text.Token, ...]) -> Result:
    answer = _run_on_gpu(request, tokens)
    sources = {name: torch.from_numpy(source) for name, source in answer["sources"].items()}
    guess = Guess(**answer["guess"]) if answer["guess"] else None
    return Result(request, tokens, Trace.from_arrays(answer["trace"]), sources, guess, answer["device"])


def _from_cpu(request: Request, tokens: tuple[text.Token, ...]) -> Result:
    done = _run(request, tokens, "cpu")
    return Result(request, tokens, done.trace, done.sources, done.guess, "cpu")


def _refusal(error: Exception) -> str | None:
    """Why the platform gave no GPU, in its own short words; None where the error is ours and must not be hidden."""
    title = getattr(error, "title", "")  # a gr.Error of the platform; it is a ValueError too, so never catch by class
    if title == "ZeroGPU worker error":  # killed, or an exception of ours by the name of its class
        return "GPU task aborted" if "GPU task aborted" in str(error) else None
    if isinstance(title, str) and title.startswith("ZeroGPU"):
        return title
    on_zerogpu = hasattr(_run_on_gpu, "zerogpu")
    if on_zerogpu and (isinstance(error, (RuntimeError, OSError)) or type(error).__module__.startswith("httpx")):
        return "ZeroGPU did not answer"  # errors of ours come as "ZeroGPU worker error" there
    return None


# --- asking ----------------------------------------------------------------------------------------------------------


class _Cache:
    """Results by request and by whether the GPU function gave them; the least used leave first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.entries: OrderedDict[tuple[Request, bool], Result] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, *keys: tuple[Request, bool]) -> Result | None:
        with self.lock:
            for key in keys:
                if key in self.entries:
                    self.entries.move_to_end(key)
                    return self.entries[key]
        return None

    def put(self, key: tuple[Request, bool], result: Result) -> None:
        with self.lock:
            if key in self.entries or result.nbytes > self.limit:
                return
            self.entries[key] = result
            self.size += result.nbytes
            while self.size > self.limit:
                self.size -= self.entries.popitem(last=False)[1].nbytes


_cache = _Cache(CACHE_BYTES)


def run(request: Request, gpu: bool = True) -> Result:
    """The request's result: through the GPU function (`gpu`), or on the CPU alone, or from the kept ones.

    Where the platform refuses a GPU the CPU answers and the notes say so. ValueError as `tokenize` raises it.
    """
    kept = _cache.get((request, True)) if gpu else _cache.get((request, True), (request, False))
    if kept is None:
        tokens = tokenize(request)
        notes: tuple[str, ...] = ()
        try:
            kept = _from_gpu(request, tokens) if gpu else _from_cpu(request, tokens)
        except Exception as error:
            refusal = _refusal(error) if gpu else None
            if refusal is None:
                raise
            notes = (f"No GPU was to be had ({refusal}), so the CPU computed this; the numbers agree to rounding.",)
            kept = run(request, gpu=False)
        if notes:
            return replace(kept, notes=request.notes + notes)
        _cache.put((request, gpu), kept)
    return replace(kept, notes=request.notes) if request.notes != kept.notes else kept


def attend(sentence: str, **settings) -> Result:
    """A sentence through an attention head, every step kept. `settings` are the fields of Request."""
    return run(Request(sentence, **settings))
