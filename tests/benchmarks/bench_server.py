"""Requests a second over raw HTTP, 32 clients at once, beside a trivial Gradio function in turns."""

import http.client
import json
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from load import TRIVIAL
from paired import Row
from servers import Server, serving

from attention import Request, compute

WORDS = {  # with a space before each, one token of the model that is asked
    "untrained": "the a cat dog owl fox sat ran saw on in by old red big one",
    "trained": "the a I to and of in was said he she it that you but all",
}
CLIENTS = 32
SECONDS = 2  # of one turn


def sentence(draw: random.Random, model: str) -> str:
    """16 tokens; there are too many such sentences for one to come twice."""
    return " " + " ".join(draw.choices(WORDS[model].split(), k=16))


def answered(server: Server, draw: random.Random, model: str, seconds: float = SECONDS) -> float:
    """Answers a second to CLIENTS at once, each asking again as soon as it has its answer."""
    count, lock, end = 0, threading.Lock(), time.monotonic() + seconds

    def client() -> None:
        nonlocal count
        while time.monotonic() < end:
            line = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
            body = json.dumps({"sentence": sentence(draw, model), "model": model, "seed": 0})
            line.request("POST", "/gradio_api/call/v2/attend", body, {"Content-Type": "application/json"})
            event = json.loads(line.getresponse().read())["event_id"]
            line.request("GET", f"/gradio_api/call/attend/{event}")
            told = line.getresponse().read()
            assert b"event: complete" in told, told[:300]
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


def rows(_: Path, turns: int = 9):
    draw = random.Random(0)
    for model in WORDS:
        assert all(len(compute.tokenize(Request(sentence(draw, model), model=model))) == 16 for _ in range(100)), model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "trivial.py").write_text(TRIVIAL)
        with serving(folder, app=folder / "trivial.py") as trivial, serving(folder) as app:
            for model, least in (("untrained", 0.6), ("trained", 0.4)):
                for server in (trivial, app):
                    answered(server, draw, model, 1)  # warm
                pairs = [(answered(app, draw, model), answered(trivial, draw, model)) for _ in range(turns)]
                reached = statistics.median(ours / theirs for ours, theirs in pairs)
                yield Row(f"/attend, {model}, requests a second / a bare one, T = 16", reached, least, at_least=True)
