"""A scripted stand-in for the service that lends GPUs to a ZeroGPU Space, for the `spaces` package to talk to.

It answers, on a port of its own, the four requests that `spaces` 0.51 makes: /startup-report when an app is launched,
/schedule for each call of a decorated function, /allow from the new worker process, /release after the call. What
/schedule answers is taken from `answers`, first one first; when that is empty every call is granted.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit


def refuse(left: int, wait: float, why: str = "quota-exceeded") -> dict:
    """429: `left` seconds of quota, the next in `wait` seconds; a negative wait means the duration is illegal."""
    body = {"left": left, "wait": wait}
    return {"status": 429, "body": body, "headers": {"X-Approve-Result": why, "X-Authenticated": "regular"}}


def status(code: int) -> dict:
    return {"status": code}


def queue(granted: bool) -> dict:
    """Wait a little in the queue, then a GPU, or none."""
    return {"queue": granted}


class DeviceApi:
    """`with DeviceApi() as api:` serves; `api.url` is for the child, `api.calls` what it asked, in order."""

    def __init__(self) -> None:
        self.answers: list[dict] = []
        self.calls: list[tuple[str, dict[str, str]]] = []
        self.kill_next = False  # kill the next new worker in the middle of its first task
        self.workers: set[int] = set()
        self.alive = False  # whether a worker holds the one device there is
        self.numbers = count()
        self.lock = threading.Lock()

    def scheduled(self) -> list[dict[str, str]]:
        """The parameters of every /schedule so far."""
        return [parameters for path, parameters in self.calls if path == "/schedule"]

    def grant(self) -> dict:
        with self.lock:
            idle, self.alive = self.alive, True
            return {"idle": idle, "nvidiaIndex": 0, "nvidiaUUID": "none", "allowToken": f"token-{next(self.numbers)}"}

    def __enter__(self) -> DeviceApi:
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()
        for pid in self.workers:  # a worker outlives a parent that was ended from outside
            with suppress(OSError):
                if self.url.encode() in Path(f"/proc/{pid}/environ").read_bytes():  # the number may be another's by now
                    os.kill(pid, signal.SIGKILL)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: DeviceApi

    def log_message(self, *_) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        url = urlsplit(self.path)
        parameters = dict(parse_qsl(url.query))
        self.api.calls.append((url.path, parameters))
        if url.path == "/schedule":
            answer = self.api.answers.pop(0) if self.api.answers else {}
            if "queue" in answer:
                self.stream(answer["queue"])
            else:
                granted = answer.get("status", 200) == 200
                body = self.api.grant() if granted else answer.get("body")
                self.answer(answer.get("status", 200), body, answer.get("headers", {}))
            return
        if url.path == "/allow":
            pid = int(parameters["pid"])
            self.api.workers.add(pid)
            if self.api.kill_next:
                self.api.kill_next = self.api.alive = False
                os.kill(pid, signal.SIGKILL)
                return
        if url.path == "/release" and parameters.get("fail", "").lower() == "true":
            self.api.alive = False
        self.answer(200)

    def answer(self, code: int, body: dict | None = None, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(code)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(raw)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def stream(self, granted: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.send_header("X-Queuing-Reason", "node")
        self.end_headers()
        last = f"event: succeeded\ndata: {json.dumps(self.api.grant())}\n\n" if granted else "event: failed\n\n"
        for event in ("event: ping\n\n", last):  # `spaces` reads one event a packet
            self.wfile.write(event.encode())
            self.wfile.flush()
            time.sleep(0.1)
        self.close_connection = True
