"""Before the page is built: is all there, whole, of a version that works? If not, one sentence and exit code 1."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parents[1] / "assets"
PYTHON = (3, 11)
VERSIONS = {"torch": ((2, 8), (3, 0)), "gradio": ((6, 31), (7, 0))}  # from, and below
TAKEN = "{} taken; set GRADIO_SERVER_PORT to the number of a free one."


class Trouble(Exception):  # noqa: N818  a state of the machine, told in one sentence
    """Why the app cannot start, as one sentence."""


def check() -> None:
    """End the process with one sentence where the app could not work."""
    try:
        _versions()
        _port()
        _explorer()
        _trained()
    except Trouble as trouble:
        _end(trouble)


def launch(page, **settings: Any) -> None:
    """page.launch with one line of log a request, and one sentence where the port is taken."""
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    logging.getLogger("attention.requests").setLevel(logging.INFO)
    port = os.environ.get("GRADIO_SERVER_PORT")
    if port and _answers(int(port)):
        _end(Trouble(TAKEN.format(f"Port {port} is")))
    try:
        page.launch(**settings)
    except OSError as error:
        if "empty port" not in str(error):
            raise
        _end(Trouble(TAKEN.format(f"Port {port} is" if port else "Port 7860 and the 99 after it are")))


def _answers(port: int) -> bool:
    """Does somebody listen there? Not every system refuses to let two servers share a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(trouble: Trouble) -> None:
    print(trouble, file=sys.stderr, flush=True)
    raise SystemExit(1)


def _versions() -> None:
    if sys.version_info[:2] < PYTHON:
        have = ".".join(map(str, sys.version_info[:3]))
        raise Trouble(f"Python {have} is too old; this app needs {PYTHON[0]}.{PYTHON[1]} or later.")
    for name, (low, high) in VERSIONS.items():
        wanted = f"at least {low[0]}.{low[1]} and below {high[0]}"
        try:
            have = version(name)
        except PackageNotFoundError:
            raise Trouble(f"{name} is not installed; run: pip install -r requirements.txt.") from None
        if not low <= tuple(map(int, re.findall(r"\d+", have)[:2])) < high:
            raise Trouble(f"{name} {have} is not supported, only {wanted}; run: pip install -r requirements.txt.")


def _port() -> None:
    given = os.environ.get("GRADIO_SERVER_PORT", "7860")
    if not given.isdecimal() or not 0 < int(given) < 65536:
        raise Trouble("GRADIO_SERVER_PORT must be a number from 1 to 65,535.")


def _read(path: Path) -> str:
    if not path.is_file():
        raise Trouble(f"{_short(path)} is missing; fetch the project again, with all of assets/.")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise Trouble(f"{_short(path)} cannot be read; fetch the file again.") from None


def _short(path: Path) -> str:
    return path.relative_to(ASSETS.parent).as_posix()


def _explorer() -> None:
    """The style sheets, and every module that the page's first one imports."""
    folder = ASSETS / "explorer"
    for path in (ASSETS / "page.css", folder / "explorer.css"):
        _read(path)
    todo, seen = ["gradio.js"], set()
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += re.findall(r'"\./([\w-]+\.js)"', _read(folder / name))


def _trained() -> None:
    """Every checkpoint of the trained model: whole, of the right sizes, and of the tokenizer's vocabulary."""
    folder = ASSETS / "trained"
    try:
        steps = [entry["step"] for entry in json.loads(_read(folder / "report.json"))["checkpoints"]]
        entries = len(json.loads(_read(folder / "tokenizer.json"))["model"]["vocab"])
    except (ValueError, KeyError, TypeError):
        raise Trouble("assets/trained/ holds a damaged report.json or tokenizer.json; fetch the files again.") from None
    if not steps:
        raise Trouble("assets/trained/report.json names no weights; fetch the file again.")
    from .models import trained

    for step in steps:
        path = folder / f"step-{step:05d}.safetensors"
        if not path.is_file():
            raise Trouble(f"{_short(path)} is missing; fetch the project again, with all of assets/.")
        try:
            tables = trained.load(step).state_dict()
            whole = all(t.isfinite().all() for t in tables.values()) and len(tables["embedding.weight"]) == entries
        except Exception:  # whatever a damaged file brings about
            whole = False
        if not whole:
            raise Trouble(f"{_short(path)} is damaged or holds weights of other sizes; fetch the file again.")
