"""The shell's door: python -m attention "The cat sat. The cat" --figure weights.png"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from . import attend, figures
from .export import FORMATS, export, file_name
from .request import ARGUMENTS, Request

MOST_SHOWN = 16  # tokens: weights of longer sentences would not fit a terminal's lines


def parser() -> argparse.ArgumentParser:
    """One option a field of Request, and what to do with the result."""
    parser = argparse.ArgumentParser("python -m attention", description="A sentence through one causal attention head.")
    for f in (f for f in fields(Request) if f.init):
        if f.name == "sentence":
            parser.add_argument(f.name, help=ARGUMENTS[f.name])
        elif isinstance(f.default, bool):
            flag = argparse.BooleanOptionalAction
            parser.add_argument(_option(f.name), action=flag, help=_help(f.name), default=argparse.SUPPRESS)
        else:
            read = READ.get(f.name, type(f.default) if f.default is not None else int)
            name = f.name.upper()
            parser.add_argument(_option(f.name), type=read, metavar=name, help=_help(f.name), default=argparse.SUPPRESS)
    out = parser.add_argument_group("what to do with it (each may be given several times; without any: print it)")
    many = {"action": "append", "default": []}
    out.add_argument("--figure", metavar="FILE", **many, help="draw a .png, .svg or .pdf")
    out.add_argument(
        "--save", metavar="FILE", **many, help="save as .json, .npz, .zip (tables), .py, .html or a figure"
    )
    out.add_argument("--export", choices=FORMATS, **many, help="the same, into a file named after the sentence")
    look = parser.add_argument_group("how figures look")
    look.add_argument("--step", choices=figures.STEPS, default="all", help="one step instead of the sheet of all")
    look.add_argument("--theme", choices=figures.THEMES, default="light")
    look.add_argument("--size", choices=figures.SIZES, default="page")
    look.add_argument("--dpi", type=int, default=200, help="dots an inch, for .png")
    return parser


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _help(name: str) -> str:
    extra = ", or the path of a .safetensors file with a head of your own and its x" if name == "head" else ""
    return (ARGUMENTS[name].replace("null for", "without it") + extra).replace("%", "%%")


def _head(value: str) -> int | str:
    return value if value.endswith(".safetensors") else int(value)


def _edits(value: str) -> list:
    return json.loads(value)


_head.__name__, _edits.__name__ = "number", "JSON"  # what argparse calls them in its errors
READ: dict[str, Callable[[str], Any]] = {"head": _head, "edits": _edits}


def main(arguments: list[str] | None = None) -> None:
    """Exit code 0, or 2 with one sentence about what was wrong."""
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a character shows another
        sys.stdout.reconfigure(errors="replace")
    command = parser()
    given = vars(command.parse_args(arguments))
    look = {name: given.pop(name) for name in ("step", "theme", "size", "dpi")}
    drawn, saved, exported = (given.pop(name) for name in ("figure", "save", "export"))
    try:
        if unknown := next((f for f in drawn if Path(f).suffix.lower().lstrip(".") not in figures.FORMATS), None):
            raise ValueError(f"A figure is saved as .png, .svg or .pdf, but {unknown!r} has another ending.")
        result = attend(**given)
        for file in drawn + saved:
            result.save(file, **(look if Path(file).suffix.lower().lstrip(".") in figures.FORMATS else {}))
            print(f"wrote {file}")
        for format in exported:
            Path(file_name(result, format)).write_bytes(export(result, format))
            print(f"wrote {file_name(result, format)}")
    except ValueError as error:
        command.error(str(error))
    except OSError as error:
        command.error(f"{error.filename or 'A file'} cannot be written: {error.strerror or error}.")
    if not (drawn or saved or exported):
        print(_told(result))


def _told(result) -> str:
    """The result in words and, where they fit, the weights: rows are queries, columns are keys."""
    from .notices import headline

    lines = [headline(result), "", f"tokens: {' '.join(result.names)}"]
    if len(result.tokens) <= MOST_SHOWN:
        lines += ["", "weights (row = query, column = key)"]
        for name, row in zip(result.names, result["weights"].tolist(), strict=True):
            lines.append(" ".join(f"{n:7.4f}" if n else f"{0:7}" for n in row) + f"  {name}")
    if result.guess:
        guesses = zip(result.guess.labels, result.guess.probabilities, strict=True)
        lines += ["", "next: " + ", ".join(f"{label} {share:.2f}" for label, share in list(guesses)[:3])]
    return "\n".join([*lines, *(("", *result.notes) if result.notes else ())])


if __name__ == "__main__":
    main()
