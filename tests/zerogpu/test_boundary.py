"""What happens between the app and ZeroGPU: the real `spaces` package, a scripted platform, no GPU.

The worker's torch emulates CUDA, so an answer that says "cuda" came through the GPU function, and any mix of devices
in the project's code would have raised there.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("spaces")
pytest.importorskip("gradio")

from device_api import DeviceApi, queue, refuse, status

from attention import Request, compute, models

pytestmark = pytest.mark.zerogpu
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def environment(api, folder):
    """A ZeroGPU Space's environment for a child process."""
    paths = os.pathsep.join(map(str, (ROOT, HERE)))
    return os.environ | {
        "SPACES_ZERO_GPU": "true",
        "SPACES_ZERO_DEVICE_API_URL": api.url,
        "ZEROGPU_OFFLOAD_DIR": str(folder / "offload"),
        "PYTHONPATH": paths,
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
    }


class Child:
    """The library in a process of its own on the ZeroGPU runtime, and the platform that it talks to."""

    def __init__(self, api, folder) -> None:
        self.api, self.log = api, folder / "child.log"
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "child.py")],
            env=environment(api, folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
        )

    def __call__(self, command, **arguments):
        self.process.stdin.write(json.dumps([command, arguments]) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                return json.loads(line.removeprefix("ANSWER "))
        raise AssertionError(self.log.read_text()[-3000:])

    def run(self, args, **how):
        """The answer, and the /schedule calls that it took."""
        before = len(self.api.scheduled())
        answer = self("run", args=args, **how)
        return answer, self.api.scheduled()[before:]

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with DeviceApi() as api:
        child = Child(api, tmp_path_factory.mktemp("zerogpu"))
        yield child
        child.close()


@pytest.fixture
def child(shared):
    """The shared child with nothing kept and nothing scripted."""
    shared("forget")
    yield shared
    assert not shared.api.answers, "the app asked less often than the test expected"


REQUESTS = {
    "textbook": [{"sentence": "Your journey starts with one step", "model": "textbook", "head": 1}],
    "untrained": [
        {"sentence": "the cat sat"},
        {"sentence": "the cat sat", "pad_to": 6, "pad_side": "left", "qkv_bias": True, "dropout": 0.4, "seed": 3},
        {"sentence": "the cat sat", "mask": "after_renormalised", "pad_to": 5, "positions": False},
        {
            "sentence": "the cat",
            "mask": "after",
            "scale": False,
            "edits": [["scores", 0, 0, 1.0], ["weights", 1, 0, 0.5]],
        },
    ],
}
HELLO = {"sentence": "the cat sat on the mat", "model": "untrained"}


def assert_equals_cpu(answer, args):
    """The answer's numbers are those of this process, which knows no ZeroGPU."""
    want = compute.run(Request(**args), gpu=False)
    for name, got in answer["tensors"].items():
        expected = want.sources[name].numpy() if name in want.sources else want[name]
        np.testing.assert_allclose(np.array(got), expected, atol=1e-5, rtol=1e-5)
    assert (answer["guess"] is None) == (want.guess is None)
    if want.guess:
        np.testing.assert_allclose(answer["guess"][1], want.guess.probabilities, atol=1e-5)


@pytest.mark.parametrize("model", models.NAMES)
def test_granted_the_gpu_function_answers_for_every_model(child, model):
    own = models.get(model)
    cases = [args | {"model": model} for args in REQUESTS.get(model, [])]
    cases += [{"sentence": own.example, "model": model, "layer": layer} for layer in range(own.layers)]
    cases += [{"sentence": own.example, "model": model, "pad_to": 12, "mask": "none"}]
    if "head_off" in own.options:
        cases += [{"sentence": own.example, "model": model, "head_off": True}]
    for args in cases:
        child("forget")  # also the passes that serve several heads
        answer, scheduled = child.run(args)
        assert answer.get("device") == "cuda", (args, answer)
        assert answer["notes"] == [] and len(scheduled) == 1
        assert_equals_cpu(answer, args)


def test_gpt2_asks_once_for_a_sentence_and_never_for_another_of_its_heads(child):
    args = {"sentence": "The cat sat. The cat", "model": "gpt2"}
    answer, (asked,) = child.run(args)
    assert answer["device"] == "cuda" and 1 <= float(asked["durationSeconds"]) <= 10
    for change in ({"head": 0}, {"layer": 0, "head": 2}, {"mask": "none"}, {"head_off": True}, {"scale": False},
                   {"edits": [["weights", 3, 0, 0.25]]}):  # fmt: skip
        answer, scheduled = child.run(args | change)
        assert answer["device"] == "cuda" and not scheduled
        assert_equals_cpu(answer, args | change)


def test_gpt2_refused_a_gpu_runs_on_the_cpu_with_the_same_numbers(child):
    args = {"sentence": "The cat sat. The cat", "model": "gpt2", "layer": 2}
    child.run({"sentence": "before", "model": "gpt2"})  # weights that were on a GPU once are whole outside it
    child.api.answers = [refuse(0, 3600)]
    answer, _ = child.run(args)
    assert answer["device"] == "cpu" and len(answer["notes"]) == 1
    assert_equals_cpu(answer, args)
    answer, scheduled = child.run(args | {"head": 0}, gpu=False)
    assert answer["device"] == "cpu" and not answer["notes"] and not scheduled


def test_little_time_is_asked_for_whatever_the_request(child):
    for args in (HELLO, {"sentence": "a " * 900, "d_model": 128, "d_head": 128, "model": "untrained"}):
        _, (asked,) = child.run(args)
        assert 1 <= float(asked["durationSeconds"]) <= 10
        assert asked.get("gpuSize") != "xlarge"


REFUSALS = {
    "quota gone, no visitor token": (refuse(0, 3600), None, "ZeroGPU quota exceeded"),
    "quota gone, visitor token": (refuse(1, 3600), "a.b.c", "ZeroGPU quota exceeded"),
    "runs used up": (refuse(0, 0, "runs-exceeded"), "a.b.c", "ZeroGPU quota exceeded"),
    "pending credits": (refuse(0, 60, "pending-overquota-exceeded"), "a.b.c", "ZeroGPU pending credits exceeded"),
    "illegal duration": (refuse(0, -1, "illegal-duration"), "a.b.c", "ZeroGPU illegal duration"),
    "no GPU": (status(503), None, "ZeroGPU client error"),
    "token expired": (status(401), "a.b.c", "ZeroGPU client error"),
    "broken": (status(500), None, "ZeroGPU did not answer"),
    "teapot": (status(418), "a.b.c", "ZeroGPU did not answer"),
    "queued in vain, no visitor token": (queue(False), None, "ZeroGPU quota exceeded"),
    "queued in vain, visitor token": (queue(False), "a.b.c", "ZeroGPU queue timeout"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_the_cpu_answers_and_says_so(child, case):
    answer, token, why = REFUSALS[case]
    child.api.answers = [answer]
    got, scheduled = child.run(HELLO, token=token)
    assert got.get("device") == "cpu", got
    assert len(scheduled) == 1 and scheduled[0].get("token") == token
    (note,) = got["notes"]
    assert why in note and "CPU" in note and "\n" not in note and note.endswith(".") and "<" not in note
    assert_equals_cpu(got, HELLO)
    again, scheduled = child.run(HELLO)  # a refusal is not kept: the next one asks again
    assert again["device"] == "cuda" and again["notes"] == [] and len(scheduled) == 1


def test_queued_and_then_granted(child):
    child.api.answers = [queue(True)]
    answer, _ = child.run(HELLO)
    assert answer["device"] == "cuda" and answer["notes"] == []


def test_a_killed_worker_costs_one_note_and_the_next_request_works(child):
    child.api.alive, child.api.kill_next = False, True  # a new worker, killed as soon as it has begun
    answer, _ = child.run(HELLO)
    assert answer.get("device") == "cpu", answer
    assert "GPU task aborted" in answer["notes"][0]
    assert_equals_cpu(answer, HELLO)
    after, scheduled = child.run(HELLO)
    assert after["device"] == "cuda" and after["notes"] == [] and len(scheduled) == 1


def test_invalid_requests_never_reach_the_platform(child):
    for change in (
        {"sentence": ""}, {"sentence": None}, {"sentence": " \u200b"}, {"sentence": "a" * 2001}, {"model": "gpt5"},
        {"mask": "x"}, {"scale": "false"}, {"d_head": -1}, {"seed": 2**64}, {"dropout": 1}, {"pad_to": 5000},
        {"edits": [["scores", 99, 0, 1]]}, {"model": "textbook"}, {"sentence": "!" * 1025},
    ):  # fmt: skip
        answer, scheduled = child.run(HELLO | change)
        assert answer.get("error") == "ValueError" and not scheduled, (change, answer)
    assert child.run(HELLO)[0]["device"] == "cuda"


def test_a_preview_never_reaches_the_platform(child):
    answer, scheduled = child.run(HELLO, gpu=False)
    assert answer["device"] == "cpu" and answer["notes"] == [] and not scheduled
    assert_equals_cpu(answer, HELLO)


def test_a_repeated_request_costs_nothing_and_serves_previews_too(child):
    first, scheduled = child.run(HELLO)
    assert len(scheduled) == 1
    for how in ({}, {"gpu": False}):
        again, scheduled = child.run(HELLO, **how)
        assert again == first and not scheduled
    child.run({"sentence": "another", "model": "untrained"}, gpu=False)
    _, scheduled = child.run({"sentence": "another", "model": "untrained"})  # Run after a preview does ask
    assert len(scheduled) == 1


def test_a_bug_of_ours_is_not_hidden_by_the_cpu(tmp_path):
    with DeviceApi() as api:
        child = Child(api, tmp_path)
        try:
            child("break_worker")
            answer, scheduled = child.run(HELLO)
            assert len(scheduled) == 1 and answer.get("title") == "ZeroGPU worker error", answer
            assert "ZeroDivisionError" in answer["message"]
            again, scheduled = child.run(HELLO)  # nothing was kept, and nothing hangs
            assert len(scheduled) == 1 and again["title"] == "ZeroGPU worker error"
            assert child.run(HELLO, gpu=False)[0]["device"] == "cpu"
        finally:
            child.close()


# --- the app itself --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """The app, served on the ZeroGPU runtime: (address, platform)."""
    if not (ROOT / "app.py").exists():
        pytest.skip("there is no app.py yet")
    folder = tmp_path_factory.mktemp("app")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}", folder / "app.log"
    with DeviceApi() as api:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "serve.py"), str(ROOT / "app.py")],
            cwd=ROOT,
            env=environment(api, folder) | {"GRADIO_SERVER_PORT": str(port)},
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
        )
        try:
            for _ in range(480):
                if process.poll() is not None:
                    raise AssertionError(log.read_text()[-3000:])
                try:
                    urllib.request.urlopen(url + "/config", timeout=5).read()
                    break
                except OSError:
                    time.sleep(0.25)
            else:
                raise AssertionError("the app did not start: " + log.read_text()[-3000:])
            yield url, api
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="module")
def client(app):
    from gradio_client import Client

    return Client(app[0], verbose=False)


def test_starting_and_opening_the_page_asks_for_no_gpu(app, client):
    url, api = app
    page = urllib.request.urlopen(url + "/?sentence=Hi&model=untrained", timeout=20).read()
    assert page and not api.scheduled()
    assert [path for path, _ in api.calls].count("/startup-report") == 1


def test_the_apps_endpoint_goes_through_the_gpu_function(app, client):
    _, api = app
    before = len(api.scheduled())
    got = client.predict(sentence="one step", model="textbook", api_name="/attend")
    assert got["device"] == "cuda" and got["notes"] == [] and len(api.scheduled()) == before + 1
    want = compute.run(Request("one step", "textbook"), gpu=False)
    np.testing.assert_allclose(got["tensors"]["weights"], want["weights"], atol=1e-5)


def test_the_apps_endpoint_answers_from_the_cpu_when_refused(app, client):
    _, api = app
    for answer in (refuse(0, 3600), status(503), status(500)):
        api.answers = [answer]
        got = client.predict(sentence="with one step", model="textbook", api_name="/attend")
        assert got["device"] == "cpu" and len(got["notes"]) == 1 and not api.answers


def test_a_client_that_sends_nonsense_gets_a_sentence_and_asks_for_no_gpu(app, client):
    _, api = app
    before = len(api.scheduled())
    for change in ({"sentence": ""}, {"mask": "x"}, {"scale": "false"}, {"edits": [["scores", 99, 0, 1]]}):
        with pytest.raises(Exception) as error:
            client.predict(**({"sentence": "step", "model": "textbook", "api_name": "/attend"} | change))
        assert str(error.value).strip().endswith(".") and "Traceback" not in str(error.value)
    assert len(api.scheduled()) == before


def test_many_at_once_all_get_their_own(app, client):
    sentences = [" ".join(["one", "step", "with"][: 1 + i % 3] * (1 + i // 3)) for i in range(12)]
    jobs = [client.submit(sentence=s, model="textbook", mask="none", api_name="/attend") for s in sentences]
    for sentence, job in zip(sentences, jobs, strict=True):
        got = job.result(timeout=60)
        want = compute.run(Request(sentence, "textbook", mask="none"), gpu=False)
        assert got["settings"]["sentence"] == sentence
        np.testing.assert_allclose(got["tensors"]["weights"], want["weights"], atol=1e-5)
