"""The table of faults and outcomes, tried on the running app: every model, through /attend and through Run."""

import json
import urllib.request
from itertools import count

import pytest

pytest.importorskip("spaces")
pytest.importorskip("gradio")

from device_api import queue
from servers import Refused, call
from test_api import WRONG
from test_boundary import REFUSALS, app  # noqa: F401  a fixture
from visitor import Visitor

from attention import Request, compute, models

pytestmark = pytest.mark.zerogpu
WORDS = ("Your", "journey", "starts", "with", "one", "step")
numbers = count(1)


@pytest.fixture(scope="module", autouse=True)
def breakable():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BREAKABLE", "1")
        yield


def new_sentence():
    """A sentence of the textbook's words that nobody has asked for yet."""
    number, words = next(numbers), []
    while number:
        number, digit = divmod(number, len(WORDS))
        words.append(WORDS[digit])
    return " ".join(["Your step", *words])


def through(door, url, token=None, **request):
    """(device, notes) of an answer through one of the doors."""
    if door == "/attend":
        headers = {"Content-Type": "application/json"} | ({"x-ip-token": token} if token else {})
        question = urllib.request.Request(
            f"{url}/gradio_api/call/v2/attend", json.dumps(request).encode(), headers=headers
        )
        event = json.load(urllib.request.urlopen(question, timeout=60))["event_id"]
        with urllib.request.urlopen(f"{url}/gradio_api/call/attend/{event}", timeout=60) as stream:
            lines = stream.read().decode().splitlines()
        kind, data = lines[-3 if not lines[-1] else -2][7:], json.loads(next(x[6:] for x in lines if x[:5] == "data:"))
        assert kind == "complete", lines
        answer = data[0]
    else:
        answer = Visitor(url, **({"x_ip_token": token} if token else {})).run(**request)
    return answer.get("device"), answer.get("notes"), answer


DOORS = ("/attend", "Run")
each_door = pytest.mark.parametrize("door", DOORS)
each_model = pytest.mark.parametrize("model", models.NAMES)


@each_door
@each_model
def test_granted_queued_and_asked_again(app, model, door):  # noqa: F811
    url, api = app
    for script in ([], [queue(True)]):
        before, api.answers, sentence = len(api.scheduled()), script, new_sentence()
        device, notes, _ = through(door, url, sentence=sentence, model=model)
        (asked,) = api.scheduled()[before:]  # one Run is one call
        assert device == "cuda" and notes == [] and not api.answers
        request = Request(sentence, model)
        assert float(asked["durationSeconds"]) == compute.seconds(request, compute.tokenize(request)) <= 10
        for again in DOORS:  # and the same request none, through either door
            device, notes, _ = through(again, url, sentence=sentence, model=model)
            assert device == "cuda" and notes == [] and len(api.scheduled()) == before + 1


@each_door
@pytest.mark.parametrize("case", REFUSALS)
def test_refused_the_cpu_answers_every_model_and_says_so(app, case, door):  # noqa: F811
    url, api = app
    answer, token, why = REFUSALS[case]
    for model in models.NAMES:
        before, api.answers = len(api.scheduled()), [answer]
        device, notes, _ = through(door, url, token, sentence=new_sentence(), model=model)
        (asked,) = api.scheduled()[before:]
        assert device == "cpu" and len(notes) == 1 and why in notes[0] and asked.get("token") == token, model


@each_door
def test_a_worker_killed_in_the_middle_costs_one_note(app, door):  # noqa: F811
    url, api = app
    for model in models.NAMES:
        api.alive, api.kill_next = False, True
        device, notes, _ = through(door, url, sentence=new_sentence(), model=model)
        assert device == "cpu" and "GPU task aborted" in notes[0]
        device, notes, _ = through(door, url, sentence=new_sentence(), model=model)
        assert device == "cuda" and notes == []


BUGS = {"exception": "step step step", "unpicklable": "one one one", "cpu and cuda mixed": "with with with"}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_of_ours_is_told_by_its_class_and_the_next_request_works(app, bug):  # noqa: F811
    url, _ = app
    request = {"sentence": BUGS[bug], "model": "textbook"}
    with pytest.raises(Refused, match="Error"):
        call(url, "attend", **request)
    shown = Visitor(url).run(**request)
    assert "Error" in shown["message"] and "tokens" not in shown  # never an answer from the CPU in its place
    device, notes, _ = through("Run", url, sentence=new_sentence(), model="textbook")
    assert device == "cuda" and notes == []


def test_the_time_asked_for_grows_with_the_tokens(app):  # noqa: F811
    url, api = app
    asked = []
    for tokens in (1, 300, 600, 1000):
        Visitor(url).run(sentence="a " * tokens, model="untrained")
        asked.append(float(api.scheduled()[-1]["durationSeconds"]))
    assert asked == sorted(set(asked)) and asked[0] <= 2 and asked[-1] <= 6


@each_model
def test_everything_but_run_and_attend_spends_no_gpu_time(app, model):  # noqa: F811
    url, api = app
    before, sentence = len(api.scheduled()), new_sentence()
    request = {"sentence": sentence, "model": model}
    for page in ("/", f"/?sentence=one+step&model={model}&step=scores&cell=1,0", "/health", "/config"):
        urllib.request.urlopen(url + page, timeout=30).read()
    visitor = Visitor(url)
    load = next(d for d in visitor.config["dependencies"] if any(event == "load" for _, event in d["targets"]))
    assert isinstance(visitor.call(load["id"], []), list)
    chosen = visitor.choose(model, sentence)
    settings = visitor.settings(**request)
    typed = visitor.send("explorer", "typed", settings, {"sentence": sentence})
    edited = request | {"edits": [["scores", 1, 0, 2.5]]}
    shown = [visitor.send("explorer", "ask", [], {"settings": edited}), chosen]
    if models.get(model).live:  # a large model waits for Run
        shown.append(typed)
    visitor.named["mask"] = next(id for id, props in visitor.components.items() if props.get("label") == "Mask")
    # a setting's live preview
    shown.append(visitor.send("mask", "input", visitor.settings(**request, mask="none")))
    for value, *_ in shown:
        answer = json.loads(value)
        assert answer.get("device") == "cpu", answer.get("message")
    visitor.send("draw-sheet", "click", settings)
    for format in ("json", "npz", "csv", "py", "html"):
        assert visitor.send(f"take-{format}", "click", settings)
        assert call(url, "export", **request, format=format)["path"]
    for step in ("tokens", "weights", "context"):
        assert call(url, "figure", **request, step=step, format="svg")["path"]
    assert call(url, "tokenize", **request)["tokens"]
    body = {"data": Request(**request).query(), "component_id": visitor.named["explorer"],
            "session_hash": visitor.session, "fn_name": "parameters"}  # fmt: skip
    look_up = urllib.request.Request(
        f"{url}/gradio_api/component_server", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    assert "W_query" in json.load(urllib.request.urlopen(look_up, timeout=30))
    assert len(api.scheduled()) == before


def test_no_wrong_value_reaches_the_platform(app):  # noqa: F811
    url, api = app
    before = len(api.scheduled())
    for name, values in WRONG.items():
        for value in values:
            with pytest.raises(Refused):
                call(url, "attend", **{"sentence": "the cat sat", "model": "untrained"} | {name: value})
    assert len(api.scheduled()) == before
