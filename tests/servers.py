"""The real app in a process of its own, and the two ways in which tests talk to it: Gradio's client and raw HTTP."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
START_SECONDS = 90


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`python app.py` (or another app), answering at `url`; what it writes is in `log`."""

    def __init__(self, folder: Path, root_path: str = "", app: Path = ROOT / "app.py", **more: str) -> None:
        port = free_port()
        self.url, self.log = f"http://127.0.0.1:{port}", folder / f"{app.stem}.log"
        environment = os.environ | {
            "GRADIO_SERVER_NAME": "127.0.0.1",
            "GRADIO_SERVER_PORT": str(port),
            "GRADIO_ANALYTICS_ENABLED": "False",
            "GRADIO_TEMP_DIR": str(folder / "files"),
            "HF_HUB_OFFLINE": "1",
            "PYTHONUNBUFFERED": "1",
        }
        environment |= {"GRADIO_ROOT_PATH": root_path} if root_path else {}
        environment |= more
        self.process = subprocess.Popen(
            [sys.executable, str(app)],
            cwd=ROOT,
            env=environment,
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError("the app ended at once:\n" + self.written()[-3000:])
            try:
                with urllib.request.urlopen(self.url + "/config", timeout=5) as answer:
                    answer.read()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the app did not start:\n" + self.written()[-3000:])

    def written(self) -> str:
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        """End the process that was started here, and no other."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def serving(folder: Path, root_path: str = "", app: Path = ROOT / "app.py", **more: str):
    """A server for a while, `more` in its environment; what it raises and nobody catches fails whoever used it."""
    server = Server(folder, root_path, app, **more)
    try:
        yield server
    finally:
        server.close()
    written = server.written()
    at = written.find("Traceback (most recent call last)")
    assert at < 0, "the server wrote a traceback:\n" + written[at : at + 4000]


# --- raw HTTP --------------------------------------------------------------------------------------------------------


class Refused(Exception):  # noqa: N818  what happened, not what broke
    """The one sentence that a client gets instead of an answer."""


def call(url: str, endpoint: str, body: bytes | None = None, timeout: float = 60, **arguments: Any) -> Any:
    """What an endpoint gives, over Gradio's HTTP API. `body`: the JSON text to send, where no encoder would write it.

    Refused with the server's message where it refuses.
    """
    body = json.dumps(arguments).encode() if body is None else body
    address = f"{url}/gradio_api/call/v2/{endpoint}"
    question = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(question, timeout=timeout) as answer:
        event = json.load(answer)["event_id"]
    event_at = f"{url}/gradio_api/call/{endpoint}/{event}"
    with urllib.request.urlopen(event_at, timeout=timeout) as stream:
        kind = ""
        for line in stream:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data" and kind in ("complete", "error"):
                found = json.loads(value, parse_constant=_not_json)
                if kind == "error":
                    raise Refused(found["error"] if isinstance(found, dict) else found)
                return found[0]
    raise AssertionError("the stream ended without an answer")


def _not_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def fetch(url: str, timeout: float = 30) -> tuple[int, bytes]:
    """Status and body."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


# --- a proxy that serves the app under a path ------------------------------------------------------------------------


@contextmanager
def under_a_path(server: Server, prefix: str):
    """A reverse proxy: its address + prefix is the server's root; everything else is not found."""
    target = server.url.removeprefix("http://")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_) -> None:
            pass

        def do_GET(self) -> None:
            if self.path != prefix and not self.path.startswith((prefix + "/", prefix + "?")):
                self.send_error(404)
                return
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", "accept-encoding")}
            headers |= {"X-Forwarded-Host": self.headers["Host"], "X-Forwarded-Proto": "http"}
            path = self.path.removeprefix(prefix) or "/"
            connection = http.client.HTTPConnection(target, timeout=60)
            try:
                connection.request(self.command, path if path[0] == "/" else "/" + path, body, headers)
                answer = connection.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("connection", "transfer-encoding", "server", "date"):
                        self.send_header(name, value)
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                connection.close()

        do_POST = do_HEAD = do_GET  # noqa: N815  the names that http.server calls

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}{prefix}"
    finally:
        proxy.shutdown()
        proxy.server_close()
