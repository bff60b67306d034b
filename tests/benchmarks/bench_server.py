"""Requests a second, 32 clients at once, beside a trivial Gradio function in turns.

Twice: as Gradio's own clients ask (through the queue's routes), and as curl does (through the plain ones).
"""

import http.client
import json
import random
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from load import TRIVIAL
from paired import Row
from servers import Server, fetch, serving

from attention import Request, compute

WORDS = {  # with a space before each, one token of the model that is asked
    "untrained": "the a cat dog owl fox sat ran saw on in by old red big one",
    "trained": "the a I to and of in was said he she it that you but all",
}
CLIENTS = 32
SECONDS = 2  # of one turn
KIND = {"Content-Type": "application/json"}

Ask = Callable[[http.client.HTTPConnection, Request, str], bytes]  # one request on an open line, by a client of a name


def sentence(draw: random.Random, model: str) -> str:
    """16 tokens; there are too many such sentences for one to come twice."""
    return " " + " ".join(draw.choices(WORDS[model].split(), k=16))


def as_curl(server: Server) -> Ask:
    """Two plain requests: the question, then the answer by its id."""

    def ask(line, request, _) -> bytes:
        body = {"sentence": request.sentence, "model": request.model, "seed": 0}
        line.request("POST", "/gradio_api/call/v2/attend", json.dumps(body), KIND)
        event = json.loads(line.getresponse().read())["event_id"]
        line.request("GET", f"/gradio_api/call/attend/{event}")
        return line.getresponse().read()

    return ask


def as_client(server: Server) -> Ask:
    """What gradio_client and @gradio/client send: all values in order to the queue, then the session's stream."""
    endpoints = json.loads(fetch(server.url + "/config")[1])["dependencies"]
    number, takes = next((e["id"], len(e["inputs"])) for e in endpoints if e["api_name"] == "attend")

    def ask(line, request, name) -> bytes:
        settings = request.settings()
        values = list(settings.values()) if takes == len(settings) else [request.sentence, request.model, 0]
        body = {"data": values, "fn_index": number, "session_hash": name}
        line.request("POST", "/gradio_api/queue/join", json.dumps(body), KIND)
        line.getresponse().read()
        line.request("GET", f"/gradio_api/queue/data?session_hash={name}")
        return line.getresponse().read()

    return ask


def answered(server: Server, ask: Ask, draw: random.Random, model: str, seconds: float = SECONDS) -> float:
    """Answers a second to CLIENTS at once, each asking again as soon as it has its answer."""
    count, lock, end = 0, threading.Lock(), time.monotonic() + seconds

    def client() -> None:
        nonlocal count
        name = uuid.uuid4().hex
        while time.monotonic() < end:
            line = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
            told = ask(line, Request(sentence(draw, model), model=model), name)
            assert b"event: complete" in told or b'"success":true' in told, told[:300]
            line.close()
            with lock:
                count += 1

    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    began = time.monotonic()
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    return count / (time.monotonic() - began)


def rows(_: Path, turns: int = 7):
    draw = random.Random(0)
    for model in WORDS:
        assert all(len(compute.tokenize(Request(sentence(draw, model), model=model))) == 16 for _ in range(100)), model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "trivial.py").write_text(TRIVIAL)
        with serving(folder, app=folder / "trivial.py") as trivial, serving(folder) as app:
            for way, told in ((as_client, "Gradio's clients"), (as_curl, "plain HTTP")):
                ours, theirs = way(app), way(trivial)
                for model, least in (("untrained", 0.6), ("trained", 0.4)):
                    ratios = []
                    for _ in range(turns + 1):
                        pair = (answered(app, ours, draw, model), answered(trivial, theirs, draw, model))
                        ratios.append(pair[0] / pair[1])
                    reached = statistics.median(ratios[1:])  # the first warms both
                    yield Row(
                        f"/attend, {model}, requests a second / a bare one, {told}", reached, least, at_least=True
                    )
