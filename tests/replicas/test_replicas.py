"""Two replicas behind nginx under a path: one is killed under load, the other goes on with the same links and calls."""

import json
import shutil
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from servers import Server, fetch, free_port

from attention import attend, export

pytest.importorskip("gradio")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed (apt install nginx-light)"),
]
CONF = (Path(__file__).parent / "nginx.conf").read_text()


@pytest.fixture
def replicas(tmp_path):
    """(address, two servers)."""
    servers = []
    try:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            servers.append(Server(tmp_path / name, root_path="/attn"))
        port = free_port()
        first, second = (server.url.rpartition(":")[2] for server in servers)
        conf = tmp_path / "nginx.conf"
        written = CONF.split("\n\n", 1)[1]
        for word, value in {"PORT": port, "FIRST": first, "SECOND": second, "FOLDER": tmp_path}.items():
            written = written.replace(word, str(value))
        conf.write_text(written)
        nginx = subprocess.Popen(["nginx", "-c", str(conf), "-p", str(tmp_path), "-g", "daemon off;"])
        try:
            for _ in range(50):
                try:
                    fetch(f"http://127.0.0.1:{port}/attn/health")
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/attn", servers
        finally:
            nginx.terminate()
            nginx.wait(10)
    finally:
        for server in servers:
            server.close()


def ask(url, visitor, **arguments):
    """`/attend` as one visitor."""
    headers = {"Content-Type": "application/json", "X-Visitor": visitor}
    question = urllib.request.Request(f"{url}/gradio_api/call/v2/attend", json.dumps(arguments).encode(), headers)
    event = json.load(urllib.request.urlopen(question, timeout=20))["event_id"]
    answer = urllib.request.Request(f"{url}/gradio_api/call/attend/{event}", headers={"X-Visitor": visitor})
    with urllib.request.urlopen(answer, timeout=20) as stream:
        lines = stream.read().decode().splitlines()
    assert "event: complete" in lines, lines[:4]
    return json.loads(next(line[6:] for line in lines if line.startswith("data: [")))[0]


def test_one_replica_dies_under_load_and_only_its_running_requests_are_lost(replicas):
    url, servers = replicas
    threads, asked = 8, {"sentence": "the cat saw the cat", "model": "untrained"}
    expected = [export.as_dict(attend(**asked, seed=seed)) for seed in range(threads)]
    lost, wrong, right, killed, stop = [], [], [], threading.Event(), threading.Event()

    def visit(number):
        while not stop.is_set():
            before = killed.is_set()
            try:
                good = ask(url, f"visitor-{number}", **asked, seed=number) == expected[number]
                (right if good else wrong).append((number, before))
            except Exception:
                lost.append((number, before))

    visitors = [threading.Thread(target=visit, args=(number,)) for number in range(threads)]
    for visitor in visitors:
        visitor.start()
    time.sleep(3)
    assert all(server.written().count('"attend"') for server in servers)  # both have been at work
    servers[0].process.kill()
    killed.set()
    time.sleep(4)
    stop.set()
    for visitor in visitors:
        visitor.join(40)
    assert not wrong and len(lost) <= threads and sum(before for _, before in right) >= threads
    assert len({number for number, _ in lost}) == len(lost)  # nobody lost two
    status, page = fetch(f"{url}/?sentence=the+cat&model=untrained&step=scores")
    assert status == 200 and b"<script" in page and json.loads(fetch(url + "/health")[1])["status"] == "ok"
    for number in range(threads):
        assert ask(url, f"visitor-{number}", **asked, seed=number) == expected[number]
    print(f"{len(right)} answers, {len(lost)} lost in flight, 0 wrong")
