"""Many visitors at once, then many requests: the real server beside a trivial Gradio endpoint, over raw HTTP.

    python tests/benchmarks/load.py [--visitors 200] [--requests 10000] [--threads 16]

Every answer is compared with the library's own. Prints one JSON object; the times belong to the machine, quote ratios.
"""

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))

from servers import Server, fetch

from attention import attend, export

TRIVIAL = """
import gradio as gr
def attend(sentence: str, model: str, seed: int) -> dict:
    return {"sentence": sentence}
with gr.Blocks(analytics_enabled=False, delete_cache=(3600, 3600)) as page:
    gr.api(attend, api_name="attend", concurrency_limit=8)
page.queue(max_size=200).launch(quiet=True)
"""
REQUESTS = [{"sentence": f"the cat {i} saw the cat", "model": "untrained", "seed": i} for i in range(64)]


def memory(server) -> float:
    """Resident MB of the server's process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Busy(Exception):  # noqa: N818  what happened, not what broke
    """Status 503."""


def ask(connection: http.client.HTTPConnection, arguments: dict) -> dict:
    """One request on a connection that stays open: opening two for each would be most of what is measured."""
    kind = {"Content-Type": "application/json"}
    connection.request("POST", "/gradio_api/call/v2/attend", json.dumps(arguments), kind)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    if answer.status == 503:
        raise Busy
    connection.request("GET", f"/gradio_api/call/attend/{told['event_id']}")
    event, _, data = connection.getresponse().read().decode().rstrip().rpartition("event: ")[2].partition("\ndata: ")
    if event != "complete":
        raise AssertionError(data)
    return json.loads(data)[0]


class Tally:
    """What came of the requests."""

    def __init__(self, server, right) -> None:
        self.host, self.right, self.lock = server.url.removeprefix("http://"), right, threading.Lock()
        self.mine = threading.local()
        self.times: list[float] = []
        self.wrong = self.busy = self.failed = 0

    def ask(self, number: int) -> None:
        arguments, began = REQUESTS[number % len(REQUESTS)], time.perf_counter()
        wrong = busy = failed = 0
        if not hasattr(self.mine, "connection"):
            self.mine.connection = http.client.HTTPConnection(self.host, timeout=120)
        try:
            wrong = ask(self.mine.connection, arguments) != self.right(number % len(REQUESTS))
        except Busy:
            busy = 1
        except Exception as error:
            if not self.failed:  # the first tells what the others are
                print(type(error).__name__, error, file=sys.stderr)
            failed = 1
            self.mine.connection.close()  # the next request opens it again
        with self.lock:
            self.wrong, self.busy, self.failed = self.wrong + wrong, self.busy + busy, self.failed + failed
            self.times.append(time.perf_counter() - began)

    def told(self, seconds: float) -> dict:
        cuts = statistics.quantiles(self.times, n=100)
        return {
            "requests": len(self.times),
            "requests_per_second": round(len(self.times) / seconds, 1),
            "p50_ms": round(cuts[49] * 1000, 1),
            "p95_ms": round(cuts[94] * 1000, 1),
            "wrong": self.wrong,
            "refused_as_busy": self.busy,
            "failed": self.failed,
        }


def at_once(server, right, visitors: int) -> dict:
    """Everyone asks in the same moment."""
    tally, gate = Tally(server, right), threading.Barrier(visitors)

    def visit(number: int) -> None:
        gate.wait()
        tally.ask(number)

    began = time.perf_counter()
    with ThreadPoolExecutor(visitors) as pool:
        list(pool.map(visit, range(visitors)))
    return tally.told(time.perf_counter() - began)


def many(server, right, requests: int, threads: int) -> dict:
    """`requests` from a few threads, each one after another; memory around it."""
    warm = Tally(server, right)  # until what is bounded by number is full
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(warm.ask, range(1200)))
    before, tally, began = memory(server), Tally(server, right), time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(tally.ask, range(requests)))
    told = tally.told(time.perf_counter() - began)
    after = memory(server)
    return told | {
        "memory_before_mb": round(before, 1),
        "memory_after_mb": round(after, 1),
        "growth_mb_per_1000": round((after - before) / len(tally.times) * 1000, 2),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--visitors", type=int, default=200)
    options.add_argument("--requests", type=int, default=10_000)
    options.add_argument("--threads", type=int, default=16)
    asked = options.parse_args()
    expected = [export.as_dict(attend(**arguments)) for arguments in REQUESTS]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        trivial = Path(folder) / "trivial.py"
        trivial.write_text(TRIVIAL)
        for name, app in (("app", {}), ("trivial", {"app": trivial})):
            own = Path(folder) / name
            own.mkdir()
            server = Server(own, **app)
            right = expected.__getitem__ if name == "app" else lambda i: {"sentence": REQUESTS[i]["sentence"]}
            try:
                found[name] = {"at_once": at_once(server, right, asked.visitors)}
                found[name]["many"] = many(server, right, asked.requests, asked.threads)
                found[name]["alive"] = fetch(server.url + "/")[0] == 200
                found[name]["tracebacks"] = server.written().count("Traceback")
                found[name]["files"] = sum(path.is_file() for path in own.glob("files/**/*"))
            finally:
                server.close()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
