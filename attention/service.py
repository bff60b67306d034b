"""Around the page: health, headers, limits, and one line of log a request. No GPU here, and no visitor's text."""

from __future__ import annotations

import json
import logging
import re
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from . import models

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
VERSION = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
STARTED = time.monotonic()
MAX_BODY = 8 * 2**20  # bytes of a request; far above what any valid one needs
BUSY = "Too many requests are waiting just now; please try again in a few seconds."
MALFORMED = (TypeError, ValueError, IndexError, AttributeError, RecursionError)
UNREADABLE = "The request does not hold the arguments that this endpoint takes."
NO_UPLOADS = "This app takes no files."
HEADERS = {  # a frame around the app stays allowed: a Space is one
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # an address holds the visitor's sentence
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


# --- one line of log a request ---------------------------------------------------------------------------------------

LOG = logging.getLogger("attention.requests")
_line: ContextVar[dict[str, Any] | None] = ContextVar("line", default=None)


@contextmanager
def line(door: str) -> Iterator[None]:
    """Log what happens inside as one JSON line, once it is over. Only facts that `note` was given go in."""
    facts = {"door": door, "model": None, "tokens": None, "device": None, "ms": 0.0, "outcome": "answered"}
    token, began = _line.set(facts), time.perf_counter()
    try:
        yield
    except BaseException:
        if facts["outcome"] == "answered":
            facts["outcome"] = "failed"
        raise
    finally:
        _line.reset(token)
        facts["ms"] = round((time.perf_counter() - began) * 1000, 1)
        LOG.info(json.dumps(facts))


def logged(function):
    """The function with `line` around it."""

    @wraps(function)
    def call(*args, **kwargs):
        with line(function.__name__):
            return function(*args, **kwargs)

    return call


def note(**facts: Any) -> None:
    """Facts for the line of the request that is being answered: model, tokens, device, outcome."""
    if (open_line := _line.get()) is not None:
        open_line.update(facts)


def refused() -> None:
    note(outcome="refused")


# --- the server around the page --------------------------------------------------------------------------------------


async def health(_request) -> JSONResponse:
    """Is this replica up? Computes nothing."""
    facts = {"status": "ok", "version": VERSION, "models": list(models.NAMES)}
    return JSONResponse(facts | {"uptime_seconds": round(time.monotonic() - STARTED, 1)})


async def _no_uploads(_request) -> JSONResponse:
    return JSONResponse({"detail": NO_UPLOADS}, 403)


async def _busy(_request, error) -> JSONResponse:
    """Gradio says 503 where its queue is full."""
    full = "full" in str(error.detail)
    return JSONResponse({"detail": BUSY if full else str(error.detail)}, 503, headers={"Retry-After": "3"})


async def _unknown(request, error: KeyError) -> JSONResponse:
    """Gradio looks endpoints and components up in dicts; a name that is not there is the client's mistake."""
    return _mistake(request, error, 404, "There is no such endpoint or component.")


async def _malformed(request, error: Exception) -> JSONResponse:
    """Gradio sorts a body's arguments while it joins them to the queue, before any code of ours."""
    return _mistake(request, error, 400, UNREADABLE)


async def _misshaped(_request, _error) -> JSONResponse:
    """FastAPI would list what is wrong with the body, and the body with it."""
    return JSONResponse({"detail": UNREADABLE}, 422)


def _mistake(request, error: Exception, status: int, told: str) -> JSONResponse:
    """Only where a client's names and arguments are read; anywhere else the error is not its mistake."""
    if not re.search(r"/gradio_api/(call|run|api|queue/join|component_server)\b", request.url.path):
        raise error
    return JSONResponse({"detail": told}, status)


class Guard:
    """ASGI middleware: security headers on every answer, and no request that is too large to be one."""

    def __init__(self, app) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message) -> None:
            if message["type"] == "http.response.start":
                have = {name.lower() for name, _ in message["headers"]}
                new = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = message | {"headers": [*message["headers"], *(pair for pair in new if pair[0] not in have)]}
            await send(message)

        sent = dict(scope["headers"])
        length = sent.get(b"content-length", b"0")
        if b"chunked" in sent.get(b"transfer-encoding", b"").lower():
            answer = JSONResponse({"detail": "Please send the request's length."}, 411)
        elif not length.isdigit() or int(length) > MAX_BODY:
            answer = JSONResponse({"detail": f"A request has at most {MAX_BODY:,} bytes."}, 413)
        else:
            await self.app(scope, receive, send_with_headers)
            return
        await answer(scope, receive, send_with_headers)


def app_settings(malformed: tuple[type[Exception], ...] = ()) -> dict[str, Any]:
    """What Gradio's server is made with; `malformed`: further errors of Gradio's that mean a malformed request."""
    uploads = ("/gradio_api/upload", "/gradio_api/upload/", "/gradio_api/process_recording")
    return {
        "routes": [Route("/health", health), *(Route(path, _no_uploads, methods=["POST"]) for path in uploads)],
        "middleware": [Middleware(Guard)],
        "exception_handlers": {503: _busy, KeyError: _unknown, RequestValidationError: _misshaped}
        | dict.fromkeys(MALFORMED + malformed, _malformed),
    }
