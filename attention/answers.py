"""What the doors answer, as plain data: the API's four answers, and the texts that the explorer paints.

Everything here takes a Request or what becomes one; page.py puts the answers into Gradio.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import orjson

from . import compute, figures, lesson, models, service
from . import export as exports
from .explorer import pack_parameters, payload
from .request import ARGUMENTS as MEANINGS
from .request import MODEL_OPTIONS, Request

MAX_API_TOKENS = 256  # `/attend` answers in JSON, which grows with the square of the tokens
MOST_INLINE = 160  # tokens: the explorer fetches a larger run itself, for Gradio's page is slow with large values

ARGUMENTS = [f.name for f in fields(Request) if f.init]
TYPES = get_type_hints(Request) | {"model": str, "edits": list | None}  # as the doors take them


def computed(request: Request, gpu: bool, tokens: tuple | None = None) -> compute.Result:
    """The request's result, and what the log says about it; the arguments of compute.run."""
    service.note(model=request.source.name)
    result = compute.run(request, gpu, tokens)
    service.note(tokens=len(result.tokens), device=result.device)
    return result


# --- the API ---------------------------------------------------------------------------------------------------------


Extra = dict[str, tuple[type, Any, str]]  # arguments beside the request's: {name: (type, default, meaning)}


def signature(answer: Callable, returns: type, extra: Extra) -> tuple[inspect.Signature, str]:
    """The signature and the documentation of an endpoint: the fields of Request, then `extra`.

    The documentation is the answer's own and says what each argument means.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = {f.name: f.default for f in fields(Request) if f.init} | {"sentence": inspect.Parameter.empty}
    arguments = [inspect.Parameter(n, kind, default=defaults[n], annotation=TYPES[n]) for n in ARGUMENTS]
    arguments += [inspect.Parameter(n, kind, default=d, annotation=t) for n, (t, d, _) in extra.items()]
    meanings = {name: MEANINGS[name] for name in ARGUMENTS} | {name: meaning for name, (*_, meaning) in extra.items()}
    told = "".join(f"\n    {name}: {meaning}" for name, meaning in meanings.items())
    return inspect.Signature(arguments, return_annotation=returns), f"{inspect.getdoc(answer)}\n\nArgs:{told}"


def attend(request: Request) -> dict:
    """Run a sentence through one causal self-attention head and return every tensor of every step.

    Rows are queries, columns are keys. null in `masked` means minus infinity. Sentences over 256 tokens: use /export.
    """
    tokens = compute.tokenize(request)
    service.note(tokens=len(tokens))
    if len(tokens) > MAX_API_TOKENS:
        raise ValueError(
            f"The sentence has {len(tokens):,} tokens, but /attend answers for at most {MAX_API_TOKENS}; "
            "/export gives the same numbers as a file."
        )
    return exports.as_dict(computed(request, True, tokens))


def tokenize(request: Request) -> dict:
    """Cut a sentence into the model's tokens, without computing anything else."""
    return {"tokens": exports.token_dicts(compute.tokenize(request)), "notes": list(request.notes)}


def figure(request: Request, step: str, format: str, theme: str, size: str, dpi: int) -> tuple[str, bytes]:
    """Draw one step of the head's work on a sentence, or all of them, as an image file."""
    data = figures.render(computed(request, gpu=False), step, format, theme=theme, size=size, dpi=dpi)
    return f"attention-{step}.{format}", data


def export(request: Request, format: str) -> tuple[str, bytes]:
    """Give a whole run as one file: every tensor, the tokens, the settings, for any length of sentence."""
    result = computed(request, gpu=False)
    data = exports.export(result, format)
    return exports.file_name(result, format), data


# --- the page --------------------------------------------------------------------------------------------------------


def model_of(settings: dict[str, Any]) -> models.Model:
    """The model that the page's settings name; ValueError for a name that is none."""
    return Request("x", settings["model"]).source


def from_page(settings: dict[str, Any]) -> Request:
    """The page's settings as a Request; what the chosen model has no use for is left out."""
    unused = set(MODEL_OPTIONS) - model_of(settings).options
    if settings["dropout"]:
        unused.discard("seed")
    return Request(**{name: value for name, value in settings.items() if name not in unused})


def readable(settings: dict[str, Any]) -> tuple[Request, str]:
    """The page's settings as a request, with the model's example where it cannot read the sentence, and a word on that.

    An example of ours is exchanged without a word: nobody wrote it.
    """
    sentence, example = settings["sentence"], model_of(settings).example
    try:
        request = from_page(settings)
        compute.tokenize(request)
        return request, ""
    except ValueError as error:
        request = from_page(settings | {"sentence": example})
        if any(sentence in models.get(name).examples for name in models.NAMES):
            return request, ""
        service.refused()
        return request, f"{error} Its own example stands here instead of: {sentence}"


def from_event(data: Any) -> Request:
    """The request in an event of the explorer's; one sentence where there is none."""
    try:
        return Request(**data["settings"])
    except (KeyError, TypeError):
        raise ValueError(service.UNREADABLE) from None


def value(answer: dict[str, Any]) -> str:
    """An answer as the explorer's value: text, for Gradio's page clones and compares a value's objects many times over.

    A number makes each answer a new value, so that it is painted.
    """
    return orjson.dumps(answer | {"run": time.time_ns()}).decode()


def painted(request: Request, gpu: bool, **opened: Any) -> dict[str, Any]:
    """A run for the explorer: its payload, or for a large one where to fetch it."""
    result = computed(request, gpu)
    if len(result.tokens) <= MOST_INLINE:
        return payload(result) | {"open": opened}
    told = {"query": request.query(), "settings": request.settings(), "notes": list(result.notes)}
    return told | {"fetch": True, "open": opened}


def example() -> dict[str, Any]:
    """What is there on arrival: the default model on a sentence that shows it off."""
    return painted(Request(models.get(models.DEFAULT).example), gpu=False)


def message(error: ValueError) -> dict[str, Any]:
    """A refusal for the explorer; what is there stays."""
    if hasattr(error, "title"):  # Gradio's, raised where the GPU is: a mistake of ours, not the visitor's
        service.note(outcome="failed")
        return {"message": f"This could not be computed ({error}); the mistake is the app's."}
    service.refused()
    return {"message": str(error)}


def opened(params: dict[str, str]) -> dict[str, Any]:
    """`step`, `cell`, and `tensor` where the cell is not of the step's result; what is no such thing is left out."""
    found: dict[str, Any] = {}
    if params.get("step") in lesson.STEP:
        found["step"] = params["step"]
    row, _, column = params.get("cell", "").partition(",")
    if row.isdecimal() and column.isdecimal() and len(row + column) < 9:
        found["cell"] = [int(row), int(column)]
    if params.get("tensor") in lesson.MATRICES:
        found["tensor"] = params["tensor"]
    return found


def controls(request: Request) -> list[dict[str, Any]]:
    """What the settings' components become, brought to a request; those that the model lacks are hidden."""
    model = models.get(request.model)
    values = request.settings() | {"edits": request.settings()["edits"] or None}
    layers = lesson.LAYERS if model.layers == len(lesson.LAYERS) else [""] * model.layers
    choices = {
        "layer": [(f"{i}: {name}" if name else str(i), i) for i, name in enumerate(layers)],
        "head": [(str(i), i) for i in range(model.heads)],
        "tokenizer": list(model.tokenizers),
    }
    found = []
    for name in ARGUMENTS:
        properties: dict[str, Any] = {"value": values[name]}
        if name in choices:
            properties |= {"choices": choices[name], "visible": len(choices[name]) > 1}
        elif name in MODEL_OPTIONS and name != "checkpoint":
            properties |= {"visible": name in model.options}
        found.append(properties)
    return found


def _looked_up(look: Callable[[Request], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    """A function that the explorer calls outside the queue, with a request's query: never a run, empty on nonsense."""

    def call(query: str) -> dict[str, Any]:
        try:
            return look(Request.from_query(query))
        except (ValueError, AttributeError, TypeError):
            return {}

    call.__name__ = look.__name__
    return call


@_looked_up
def parameters(request: Request) -> dict[str, Any]:
    """The weights of a request's head, for taking q, k and v apart."""
    return pack_parameters(models.get(request.model), request)


@_looked_up
def finished(request: Request) -> dict[str, Any]:
    """The payload of a large run that was just computed; empty where it is not kept any more."""
    result = compute.kept(request)
    return payload(result) if result else {}
