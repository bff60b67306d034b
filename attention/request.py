"""Request: everything that decides a result, validated once for the page, the API and the URL.

A request is all there is: the same request gives the same numbers, on any replica, whoever asks.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import parse_qsl, urlencode

from . import models, text
from .module import EDITABLE, MASK_MODES

MAX_CHARACTERS = 2_000
MAX_SIZE = 128  # d_model, d_head
MAX_SEED = 2**32 - 1
MAX_EDITS = 64
MAX_EDIT = 1e6  # an edited number's size

ARGUMENTS = {  # what each one means, for the shell, for agents, for whoever reads the API
    "sentence": f"the text to look at, 1 to {MAX_CHARACTERS:,} characters",
    "model": f"where embeddings and weights come from: {', '.join(models.NAMES)}",
    "layer": "layer of the model, from 0; null for the model's own choice",
    "head": "head of the layer, from 0; null for the model's own choice",
    "tokenizer": "auto; the untrained model also takes words or characters",
    "mask": "causal, none, after (zero after the softmax) or after_renormalised",
    "scale": "divide the scores by the square root of d_out",
    "pad_to": "pad with [PAD] to this many tokens; 0 for no padding",
    "pad_side": "right or left",
    "dropout": "share of the weights to drop, from 0 to below 1, drawn from seed",
    "head_off": "leave this head's output out, to see what the guess owes to it",
    "edits": "list of [tensor, row, column, value] for scores or weights: numbers to replace, the rest is recomputed",
    "checkpoint": "training steps that the weights have seen; null for all",
    "d_model": f"numbers a token, 1 to {MAX_SIZE}; untrained model only",
    "d_head": f"numbers a query, 1 to {MAX_SIZE}; untrained model only",
    "seed": f"0 to {MAX_SEED:,}: what random weights and dropout are drawn from",
    "qkv_bias": "biases in the three projections; untrained model only",
    "positions": "add positions to the embeddings; untrained model only",
}

MODEL_OPTIONS = ("tokenizer", "head_off", "checkpoint", "d_model", "d_head", "seed", "qkv_bias", "positions")


@dataclass(frozen=True)
class Request:
    """Everything that decides a result. Invalid values raise ValueError with one sentence.

    After construction every field holds its final value: `layer` and `head` numbers, `tokenizer` a name, `sentence`
    cleaned, `edits` a tuple of tuples. `notes` says what cleaning did and is no part of the request's identity.
    """

    sentence: str
    model: str | models.Model = models.DEFAULT  # by name; a Model itself for a head of one's own
    layer: int | None = None
    head: int | None = None
    tokenizer: str = "auto"
    mask: str = "causal"
    scale: bool = True
    pad_to: int = 0
    pad_side: str = "right"
    dropout: float = 0.0
    head_off: bool = False
    edits: tuple[tuple[str, int, int, float], ...] | None = None
    checkpoint: int | None = None
    d_model: int = 16
    d_head: int = 8
    seed: int = 0
    qkv_bias: bool = False
    positions: bool = True
    notes: tuple[str, ...] = field(default=(), init=False, compare=False)

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        sentence, note = _sentence(self.sentence)
        put("sentence", sentence)
        put("notes", (note,) if note else ())
        if not isinstance(self.model, models.Model):
            _choice("model", self.model, models.NAMES)
        model = self.source
        put("layer", _index("layer", self.layer, model.own_choice[0], model.layers, model.name))
        put("head", _index("head", self.head, model.own_choice[1], model.heads, model.name))
        self._refuse_foreign_options(model)
        tokenizer = model.tokenizers[0] if _same(self.tokenizer, "auto") else self.tokenizer
        put("tokenizer", _choice("tokenizer", tokenizer, model.tokenizers, "auto"))
        _choice("mask", self.mask, MASK_MODES)
        _choice("pad_side", self.pad_side, ("right", "left"))
        for name in ("scale", "head_off", "qkv_bias", "positions"):
            _flag(name, getattr(self, name))
        put("pad_to", _whole("pad_to", self.pad_to, 0, model.context_length))
        put("dropout", _number("dropout", self.dropout))
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {_shown(self.dropout)}, but must be at least 0 and below 1.")
        for name in ("d_model", "d_head"):
            put(name, _whole(name, getattr(self, name), 1, MAX_SIZE))
        put("seed", _whole("seed", self.seed, 0, MAX_SEED))
        if self.checkpoint is not None:
            put("checkpoint", _whole("checkpoint", self.checkpoint, 0, MAX_SEED))
            _choice("checkpoint", self.checkpoint, model.checkpoints)
        put("edits", _edits(self.edits))

    @property
    def source(self) -> models.Model:
        """The model itself."""
        return self.model if isinstance(self.model, models.Model) else models.get(self.model)

    def _refuse_foreign_options(self, model: models.Model) -> None:
        for f in fields(self):
            if f.name not in MODEL_OPTIONS or f.name in model.options or _same(getattr(self, f.name), f.default):
                continue
            if f.name == "seed" and self.dropout:  # dropout draws from it, whatever the model
                continue
            if f.name == "tokenizer" and _same(self.tokenizer, model.tokenizers[0]):  # what "auto" stands for
                continue
            having = [name for name in models.NAMES if f.name in models.get(name).options]
            raise ValueError(
                f"{f.name} cannot be set for the model {model.name!r}; "
                + (f"it belongs to {', '.join(map(repr, having))}." if having else "no model has it yet.")
            )

    # -- the two written forms: a dict of arguments, and a URL query ---------------------------------------------

    def settings(self) -> dict[str, Any]:
        """The whole request as plain data, defaults filled in: the arguments that give it again."""
        result = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return result | {"model": self.source.name, "edits": [list(edit) for edit in self.edits]}

    def query(self) -> str:
        """The request as a URL query, defaults left out: form-encoded, `true`/`false`, edits as JSON."""
        plain = Request("x", self.model)
        pairs = [("sentence", self.sentence)] + [("model", self.source.name)] * (self.model != models.DEFAULT)
        for name, value in self.settings().items():
            if name not in ("sentence", "model") and getattr(self, name) != getattr(plain, name):
                pairs.append((name, value if isinstance(value, str) else json.dumps(value)))
        return urlencode(pairs)

    @classmethod
    def from_query(cls, query: str) -> Request:
        """The inverse of `query`. Parameters that are not the request's are ignored; bad values raise ValueError."""
        known = {f.name for f in fields(cls) if f.init}
        given = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name in known}
        return cls(**{"sentence": None} | {name: _parsed(name, value) for name, value in given.items()})


TEXT_FIELDS = ("sentence", "model", "tokenizer", "mask", "pad_side")


def _parsed(name: str, value: str) -> Any:
    if name in TEXT_FIELDS:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value  # validation says what is wrong with it


def _shown(value: Any) -> str:
    """A value in an error message: on one line, short, and never long enough to carry a text back."""
    try:
        shown = "null" if value is None else repr(value) if isinstance(value, str) else " ".join(str(value).split())
    except (ValueError, RecursionError):  # Python writes out neither huge numbers nor deep nesting
        shown = f"a very large {type(value).__name__}"
    return text.shorten(shown, 40)


def _sentence(value: Any) -> tuple[str, str | None]:
    if value is None:
        raise ValueError(text.EMPTY)
    if not isinstance(value, str):
        raise ValueError(f"sentence is {_shown(value)}, but must be text.")
    if len(value) > MAX_CHARACTERS:
        raise ValueError(f"The sentence has {len(value):,} characters, but at most {MAX_CHARACTERS:,} are allowed.")
    if all(map(text.is_invisible, value)):
        raise ValueError(text.EMPTY)
    return text.clean(value)


def _choice(name: str, value: Any, allowed: tuple, *also: str) -> Any:
    if isinstance(value, (str, int)) and not isinstance(value, bool) and value in allowed:
        return value
    *most, last = map(repr, (*also, *allowed))
    raise ValueError(f"{name} is {_shown(value)}, but must be {', '.join(most)}{' or ' if most else ''}{last}.")


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {_shown(value)}, but must be true or false.")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value):
        raise ValueError(f"{name} is {_shown(value)}, but must be a number.")
    return float(value)


def _finite(value: int | float) -> bool:
    return isinstance(value, int) and abs(value) < 2**63 or isinstance(value, float) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    # JSON knows one kind of number, so 4.0 is a whole number too; True is not.
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if not _is_whole(value) or not low <= value <= high:
        raise ValueError(f"{name} is {_shown(value)}, but must be a whole number from {low:,} to {high:,}.")
    return int(value)


def _index(name: str, value: Any, default: int, count: int, model: str) -> int:
    if value is None:
        return default
    if not _is_whole(value) or not 0 <= value < count:
        has = f"has one {name}, number 0" if count == 1 else f"has {name}s 0 to {count - 1}"
        raise ValueError(f"{name} is {_shown(value)}, but the model {model!r} {has}.")
    return int(value)


def _same(value: Any, default: Any) -> bool:
    if not isinstance(value, (int, float, str)):
        return value is default
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _edits(value: Any) -> tuple[tuple[str, int, int, float], ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or len(value) > MAX_EDITS:
        raise ValueError(f"edits must be a list of at most {MAX_EDITS} entries [tensor, row, column, value].")
    edits: dict[tuple[str, int, int], float] = {}
    for entry in value:
        if not isinstance(entry, (list, tuple)) or len(entry) != 4:
            raise ValueError("Each edit must be [tensor, row, column, value], for example ['scores', 1, 0, 2.5].")
        tensor = _choice("an edit's tensor", entry[0], EDITABLE)
        row = _whole("an edit's row", entry[1], 0, MAX_CHARACTERS)
        column = _whole("an edit's column", entry[2], 0, MAX_CHARACTERS)
        number = _number("an edit's value", entry[3])
        if abs(number) > MAX_EDIT:
            raise ValueError(f"an edit's value is {_shown(number)}, but must lie within ±{MAX_EDIT:,.0f}.")
        edits[tensor, row, column] = number  # the last one for a cell counts
    return tuple((*cell, number) for cell, number in edits.items())
