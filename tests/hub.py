"""A stand-in for the Hugging Face Hub: it gives the files of a folder as the hub would, or gives up half way."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PART = 2**20  # bytes


class Hub:
    """`with Hub(folder, revision) as hub:` serves at `hub.url`.

    hub.cut: bodies end after that many bytes. hub.pause(sent, of): called after each part of a body.
    """

    def __init__(self, folder: Path, revision: str, port: int = 0) -> None:
        self.folder, self.revision, self.port = folder, revision, port
        self.cut: int | None = None
        self.pause: Callable[[int, int], None] = lambda sent, of: None
        self.asked: list[str] = []

    def __enter__(self) -> Hub:
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self.hub.asked.append(f"{self.command} {self.path}")
        path = self.hub.folder / self.path.split("?")[0].rsplit("/", 1)[-1]
        if f"/resolve/{self.hub.revision}/" not in self.path or not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        first = 0
        if asked := self.headers.get("Range"):
            first = int(asked.removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if first else 200)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.hub.revision)
        self.send_header("Accept-Ranges", "bytes")
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        if self.command == "GET":
            for start in range(first, min(len(body), self.hub.cut or len(body)), PART):
                self.wfile.write(body[start : self.hub.cut][:PART])
                self.hub.pause(start + PART, len(body))

    do_HEAD = do_GET  # noqa: N815  the name that http.server calls
