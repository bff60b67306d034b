"""A full queue says so in one sentence, and a slow request holds up no quick one."""

import json
import threading
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from servers import call, serving
from test_security import event, handlers, sentence_of

from attention import Request, service

pytest.importorskip("gradio")

SLOW = """
import spaces
import time
from attention import compute, page, startup
page.QUEUE_SIZE = page.CONCURRENCY = 1
answer = compute.run
def slow(request, *rest):
    if request.sentence.startswith("slow"):
        time.sleep(2)
    return answer(request, *rest)
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


SLOW_FILES = {
    "figure": {"sentence": "a b " * 15, "step": "all", "format": "pdf", "dpi": 200},
    "export": {"sentence": "a b " * 150, "format": "csv"},
}


@pytest.mark.parametrize("endpoint", SLOW_FILES)
def test_a_slow_file_never_holds_up_a_cheap_request(server, endpoint):
    slow = SLOW_FILES[endpoint] | {"model": "untrained"}
    pending = [
        threading.Thread(target=call, args=(server.url, endpoint), kwargs=slow | {"seed": seed, "timeout": 240})
        for seed in range(4)  # twice as many as run at once
    ]
    for thread in pending:
        thread.start()
    time.sleep(0.3)
    answered = 0
    while all(thread.is_alive() for thread in pending[2:]) and answered < 5:
        call(server.url, "attend", sentence=f"quick {answered}", model="untrained")
        answered += 1
    for thread in pending:
        thread.join(240)
    assert answered >= 2  # while at least half of the slow ones were still to come


FORGETFUL = """
import spaces
from attention import page, startup
startup.launch(page.build(), **page.look() | {"state_session_capacity": 2})
"""


def test_a_page_whose_session_is_forgotten_goes_on_with_the_choices_it_had(tmp_path, monkeypatch):
    app = tmp_path / "forgetful.py"
    app.write_text(FORGETFUL)
    monkeypatch.setenv("PYTHONPATH", ".")
    with serving(tmp_path, app=app) as server:
        page = handlers(server)
        start = Request("the cat sat").settings()
        chosen = event(server, page["choose_model"], ["", *(start | {"model": "untrained"}).values()], "first")
        assert chosen["success"]
        for other in range(5):
            assert event(server, page["run"], list(start.values()), f"other-{other}")["success"]
        wanted = Request("the cat sat", "gpt2", layer=1, head=3, mask="after").settings()
        for door in ("run", "preview", "draw_sheet"):
            assert not sentence_of(event(server, page[door], list(wanted.values()), "first"))
        painted = json.loads(event(server, page["run"], list(wanted.values()), "first")["output"]["data"][0])
        assert painted["settings"] == wanted


def test_no_answer_is_kept_once_it_was_given(server):
    def resident() -> int:  # MB
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    def ask(i):
        call(
            server.url, "attend", sentence=(f"{i} " + "abcdefgh " * 40)[:256], model="untrained", tokenizer="characters"
        )

    for i in range(6):  # these fill what is bounded in bytes
        ask(i)
    before = resident()
    for i in range(6, 16):
        ask(i)
    assert resident() - before < 50  # Gradio keeps a thousand sessions, and one holding its answer takes 10 MB
