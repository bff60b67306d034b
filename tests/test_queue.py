"""A full queue says so in one sentence, and a slow request holds up no quick one."""

import json
import threading
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import pytest
from servers import call, serving

from attention import service

pytest.importorskip("gradio")

SLOW = """
import spaces
import time
from attention import compute, page, startup
page.QUEUE_SIZE = page.CONCURRENCY = 1
answer = compute.run
def slow(request, gpu=True):
    if request.sentence.startswith("slow"):
        time.sleep(2)
    return answer(request, gpu)
compute.run = slow
startup.launch(page.build(), **page.look())
"""


def test_when_the_queue_is_full_one_sentence_says_so_and_the_rest_are_answered(tmp_path, monkeypatch):
    from gradio_client import Client

    app = tmp_path / "slow.py"
    app.write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", ".")
    with serving(tmp_path, app=app) as server:
        client = Client(server.url, verbose=False)

        def ask(i):
            try:
                return call(server.url, "attend", sentence=f"slow {i}")["settings"]["sentence"] == f"slow {i}"
            except urllib.error.HTTPError as error:
                assert error.code == 503 and error.headers["Retry-After"]
                return json.load(error)["detail"]

        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(ask, range(8))
            time.sleep(0.8)
            with pytest.raises(Exception) as full:
                client.predict(sentence="one more", api_name="/attend")
            answers = list(answers)
        assert answers.count(True) >= 2 and set(answers) == {True, service.BUSY}
        assert "try again" in str(full.value).lower() and "\n" not in str(full.value)
        assert call(server.url, "attend", sentence="the next one")["tokens"]


def test_a_slow_figure_never_holds_up_a_cheap_request(server):
    slow = {"sentence": "a b " * 15, "model": "untrained", "step": "all", "format": "pdf", "dpi": 200}
    pending = [threading.Thread(target=call, args=(server.url, "figure"), kwargs=slow | {"seed": i}) for i in range(3)]
    for thread in pending:
        thread.start()
    time.sleep(0.3)
    times = []
    while any(thread.is_alive() for thread in pending) and len(times) < 10:
        began = time.monotonic()
        call(server.url, "attend", sentence=f"quick {len(times)}", model="untrained")
        times.append(time.monotonic() - began)
    held_up = not any(thread.is_alive() for thread in pending) and len(times) < 2
    for thread in pending:
        thread.join(90)
    assert times and not held_up, times
