"""A Result as plain data and files. One function a form; the program and the page have modules of their own."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import export_html, export_py
from .explorer import head_arrays
from .request import _choice
from .text import Token
from .trace import TENSORS

if TYPE_CHECKING:
    from .compute import Result

SUFFIXES = {"json": "json", "npz": "npz", "csv": "zip", "py": "py", "html": "html"}
FORMATS = tuple(SUFFIXES)


def export(result: Result, format: str = "json") -> bytes:
    """The whole run as one file. The same result gives the same bytes. ValueError, naming the formats, for another."""
    _choice("format", format, FORMATS)
    writers = {"json": _json, "npz": _npz, "csv": _csv, "py": export_py.program, "html": export_html.page}
    data = writers[format](result)
    return data if isinstance(data, bytes) else data.encode()


def file_name(result: Result, format: str) -> str:
    """A name that says what is in the file: attention-the-cat-sat.json."""
    words = re.findall("[a-z0-9]+", result.request.sentence.lower())
    stem = "-".join(["attention", *words])[:48].rstrip("-")
    return f"{stem}.{SUFFIXES.get(format, format)}"


# --- plain data ------------------------------------------------------------------------------------------------------


def as_dict(result: Result) -> dict[str, Any]:
    """What `/attend` gives: strict JSON, float32 values unrounded, null in `masked` for −∞ and nowhere else."""
    return {
        "tokens": token_dicts(result.tokens),
        "tensors": {name: _rows(result[name]) for name in TENSORS},
        "visible": result["visible"].tolist(),
        "next_tokens": next_tokens(result),
        "settings": result.request.settings(),
        "device": result.device,
        "notes": list(result.notes),
    }


def token_dicts(tokens: Iterable[Token]) -> list[dict[str, Any]]:
    """Tokens as plain data."""
    return [token._asdict() for token in tokens]


def next_tokens(result: Result) -> list[dict[str, Any]] | None:
    """The most probable next tokens, best first; None for a model without an output layer."""
    if result.guess is None:
        return None
    pairs = zip(result.guess.texts, result.guess.probabilities, strict=True)
    return [{"text": text, "probability": probability} for text, probability in pairs]


def _rows(array: np.ndarray) -> list[list[float | None]]:
    hidden = np.isneginf(array)
    if hidden.any():
        array = array.astype(object)  # Python's own floats: float32 holds no None
        array[hidden] = None
    return array.tolist()


def _json(result: Result) -> str:
    return json.dumps(as_dict(result), allow_nan=False, ensure_ascii=False)


# --- numpy -----------------------------------------------------------------------------------------------------------


def _npz(result: Result) -> bytes:
    """Every array by its name, −∞ as −inf: tensors, masks, what x was made from, the head's weights. No pickle."""
    arrays = result.trace.arrays() | {name: source.numpy() for name, source in result.sources.items()}
    arrays |= head_arrays(result.model, result.request)
    for name in ("text", "label", "id", "start", "end"):
        arrays[f"token_{name}"] = np.array([getattr(token, name) for token in result.tokens])
    words = {"settings": result.request.settings(), "next_tokens": next_tokens(result), "notes": result.notes}
    arrays |= {name: np.array(json.dumps(value, ensure_ascii=False)) for name, value in words.items()}
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


# --- tables ----------------------------------------------------------------------------------------------------------

# What makes a spreadsheet take a cell for a formula, also after spaces, and in the wide forms of East Asian fonts.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")


def _csv(result: Result) -> bytes:
    """A zip of tables: tokens, settings, and one a tensor with the tokens' labels; an empty cell in `masked` is −∞."""
    labels = [token.label for token in result.tokens]
    tables = {
        "tokens": [Token._fields, *result.tokens],
        "settings": [["name", "value"], *map(list, _facts(result).items())],
    }
    if guesses := next_tokens(result):
        tables["next_tokens"] = [["text", "probability"], *(list(guess.values()) for guess in guesses)]
    for name, array in result.trace.arrays().items():
        if array.ndim == 1:
            continue  # `real` stands among the tokens
        square = array.shape == (len(labels), len(labels)) and name not in ("x", "q", "k", "v", "context")
        head = ["query", *labels] if square else ["token", *range(array.shape[1])]
        rows = _rows(array)
        tables[name] = [head, *([label, *row] for label, row in zip(labels, rows, strict=True))]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in tables.items():
            written = io.StringIO()
            csv.writer(written).writerows(map(_harmless, row) for row in rows)
            entry = zipfile.ZipInfo(f"{name}.csv")  # a fixed date: the same run gives the same file
            archive.writestr(entry, written.getvalue().encode("utf-8-sig"), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _harmless(cell: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers."""
    if isinstance(cell, str) and _FORMULA.match(cell):
        return "'" + cell
    return int(cell) if isinstance(cell, bool) else cell


def _facts(result: Result) -> dict[str, Any]:
    facts = result.request.settings() | {"device": result.device, "notes": list(result.notes)}
    return {n: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for n, v in facts.items()}
