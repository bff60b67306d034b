"""From a Request to its Result: the one function behind @spaces.GPU, the CPU beside it, and a bounded cache."""

from __future__ import annotations

try:  # before torch, as ZeroGPU demands; elsewhere the package may be missing
    import spaces
except ImportError:
    spaces = None

from functools import cached_property
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from . import models, text
from .cache import Cache
from .models import Guess, Pass, Reading
from .overview import Overview
from .request import Request
from .trace import Trace

CACHE_BYTES = 64 * 2**20  # for results
MORE_TOKENS = 256  # each so many cost one more second of GPU time to ask for
READING_BYTES = 128 * 2**20  # for passes of large models over a sentence: 39 MB for GPT-2's 1,024 tokens


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
    overview: Overview | None = None  # every head in small, for a model with many

    def __repr__(self) -> str:
        return f"<Result {self.request.model!r}, {len(self.tokens)} tokens, {self.device}: {self.request.query()[:60]}>"

    @cached_property
    def names(self) -> list[str]:
        return text.names(self.tokens)

    @cached_property
    def real_rows(self) -> list[int]:
        """The rows of the tokens that are no padding, in order."""
        return [t.index for t in self.tokens if t.real]

    @property
    def model(self) -> models.Model:
        return self.request.source

    @property
    def nbytes(self) -> int:
        own = [*self.trace.arrays().values(), *self.sources.values()] + [self.overview] * (self.overview is not None)
        return sum(part.nbytes for part in own)

    def __getitem__(self, name: str):
        """A tensor of the trace by its name, as a numpy array: result["weights"]."""
        return self.trace[name].numpy()

    def figure(self, step: str = "all", **look):
        """One step as a matplotlib figure, or the sheet of all; `look` as in figures.figure."""
        from . import figures  # matplotlib is loaded when a figure is asked for

        return figures.figure(self, step, **look)

    def save(self, path: str | Path, **look) -> None:
        """A file of the kind that its ending names: .json, .npz, .zip (tables), .py, .html, or a figure.

        A figure is .png, .svg or .pdf; `look` as in figures.render: step, theme, size, dpi.
        """
        from . import export, figures

        ending = Path(path).suffix.removeprefix(".").lower()
        formats = {suffix: format for format, suffix in export.SUFFIXES.items()}
        if ending in figures.FORMATS:
            data = figures.render(self, format=ending, **look)
        elif ending not in formats:
            endings = ", ".join(f".{known}" for known in (*formats, *figures.FORMATS))
            raise ValueError(f"A run is saved as one of {endings}; {Path(path).name!r} has no such ending.")
        elif look:
            raise ValueError(f"{', '.join(look)} can be set for a figure only, and .{ending} is none.")
        else:
            data = export.export(self, formats[ending])
        Path(path).write_bytes(data)

    def _repr_html_(self) -> str:
        """What a notebook shows: the explorer."""
        from . import export_html

        return export_html.frame(self)


def tokenize(request: Request) -> tuple[text.Token, ...]:
    """The request's tokens, padding included; the last part of validation, which needs no GPU.

    ValueError for a sentence the model cannot read, too many tokens, or an edit outside the matrix.
    """
    tokens = request.source.tokens(request)
    for tensor, row, column, _ in request.edits:
        if max(row, column) >= len(tokens):
            raise ValueError(
                f"An edit names row {row}, column {column} of {tensor!r}, but with {len(tokens)} tokens "
                f"both must lie from 0 to {len(tokens) - 1}."
            )
    return tuple(tokens)


def _run(request: Request, tokens: tuple[text.Token, ...], device: str) -> Pass | Reading:
    """What is worth a GPU: a small model's whole run, a large model's pass over the sentence."""
    model = request.source
    return (model.read if model.shared(request) else model.run)(request, list(tokens), device)


# --- the GPU boundary ------------------------------------------------------------------------------------------------


def seconds(request: Request, tokens: tuple[text.Token, ...]) -> int:
    """The GPU time to ask for: a start that even an empty run needs, and more where large matrices come back."""
    return request.source.gpu_seconds + len(tokens) // MORE_TOKENS


def _gpu(task):
    return spaces.GPU(duration=seconds)(task) if spaces else task


@_gpu
def _run_on_gpu(request: Request, tokens: tuple[text.Token, ...]) -> dict[str, Any] | Reading:
    """What runs where the GPU is. Plain CPU data comes back: numpy arrays cross a process boundary, tensors may not."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    done = _run(request, tokens, device)
    if isinstance(done, Reading):
        return done
    sources = {name: source.numpy() for name, source in done.sources.items()}
    return {
        "device": device,
        "trace": done.trace.arrays(),
        "sources": sources,
        "guess": asdict(done.guess) if done.guess else None,
    }


def _from_gpu(request: Request, tokens: tuple[text.Token, ...]) -> Result:
    if request.source.shared(request):
        return _from_reading(request, tokens, gpu=True)
    answer = _run_on_gpu(request, tokens)
    sources = {name: torch.from_numpy(source) for name, source in answer["sources"].items()}
    guess = Guess(**answer["guess"]) if answer["guess"] else None
    return Result(request, tokens, Trace.from_arrays(answer["trace"]), sources, guess, answer["device"])


def _from_cpu(request: Request, tokens: tuple[text.Token, ...]) -> Result:
    if request.source.shared(request):
        return _from_reading(request, tokens, gpu=False)
    done = _run(request, tokens, "cpu")
    return Result(request, tokens, done.trace, done.sources, done.guess, "cpu")


def _from_reading(request: Request, tokens: tuple[text.Token, ...], gpu: bool) -> Result:
    """A head of a large model: the pass over its sentence, kept or new, and the head from it on the CPU."""
    model = request.source
    shared = model.shared(request)
    reading = _readings.get((shared, True), *[(shared, False)] * (not gpu))
    if reading is None:
        model.prepare()
        reading = _run_on_gpu(shared, tokens) if gpu else _run(shared, tokens, "cpu")
        _readings.put((shared, gpu), reading)
    done = model.from_reading(request, list(tokens), reading)
    return Result(request, tokens, done.trace, done.sources, done.guess, reading.device, overview=done.overview)


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


_cache = Cache(CACHE_BYTES)  # Result
_readings = Cache(READING_BYTES)  # Reading


def run(request: Request, gpu: bool = True, tokens: tuple[text.Token, ...] | None = None) -> Result:
    """The request's result: through the GPU function (`gpu`), or on the CPU alone, or from the kept ones.

    Where the platform refuses a GPU the CPU answers and the notes say so. ValueError as `tokenize` raises it; `tokens`:
    what it gave, where it was asked already.
    """
    found = _cache.get((request, True)) if gpu else kept(request)
    if found is None:
        tokens = tokens or tokenize(request)
        notes: tuple[str, ...] = ()
        try:
            found = _from_gpu(request, tokens) if gpu else _from_cpu(request, tokens)
        except Exception as error:
            refusal = _refusal(error) if gpu else None
            if refusal is None:
                raise
            notes = (f"No GPU was to be had ({refusal}), so the CPU computed this; the numbers agree to rounding.",)
            found = run(request, False, tokens)
        if notes:
            return replace(found, notes=request.notes + notes)
        if isinstance(request.model, str):  # a head of one's own is nobody else's
            _cache.put((request, gpu), found)
    return replace(found, notes=request.notes) if request.notes != found.notes else found


def kept(request: Request) -> Result | None:
    """The request's result where it was computed lately; nothing is computed."""
    return _cache.get((request, True), (request, False))


def attend(sentence: str, *, head: Any = None, x: Any = None, **settings) -> Result:
    """A sentence through an attention head, every step kept. `settings` are the fields of Request.

    head: a model's head by its number, or your own: a module with `W_query`, `W_key` and `W_value`, or the path of a
    .safetensors file with their weights. x: (T, d_in), what enters your own head, a row a word; the file may hold it.
    """
    if x is None and (head is None or isinstance(head, (int, float))):
        return run(Request(sentence, head=head, **settings))
    from .models.own import Own

    if head is None or isinstance(head, (int, float)):
        raise ValueError("x enters a head of your own: pass it as head=….")
    if "model" in settings:
        raise ValueError("A model is named, or a head of your own is given, not both.")
    return run(Request(sentence, model=Own.of(head, x), **settings))
