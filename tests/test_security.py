# ruff: noqa: E501  rows of a table
"""What a visitor can reach, and what not: files, routes, uploads, server functions, headers."""

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pytest
from servers import call, fetch
from test_api import is_one_sentence

from attention import Request, service
from attention.explorer import ASSETS

pytest.importorskip("gradio")
ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def post(url, body, kind="application/json"):
    """Status and text."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": kind}), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def raw(server, path, method="GET"):
    """Status and body for a path that no client would send."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    connection.putrequest(method, path, skip_accept_encoding=True)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_assets_are_served_and_no_other_file_of_the_project(server):
    for path in ASSETS.iterdir():
        assert fetch(f"{server.url}/gradio_api/file={path}")[0] == 200
    kept = ["app.py", "requirements.txt", "README.md", "attention/page.py", "attention/__init__.py", "tests/servers.py",
            "assets/trained/report.json", "assets/trained/tokenizer.json", "assets/page.css", ".git/config", ".git/HEAD",
            "pyproject.toml"]  # fmt: skip
    secret = ["/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/self/cmdline", "/dev/null", str(server.log),
              str(Path.home() / ".bashrc"), str(ROOT), str(ROOT / "assets"), "/"]  # fmt: skip
    for name in [*kept, *(str(ROOT / name) for name in kept), *secret]:
        status, body = raw(server, f"/gradio_api/file={name}")
        assert status in (403, 404), (name, status)
        assert b"root:" not in body and b"import" not in body


def test_no_spelling_of_a_path_leaves_the_assets(server):
    deep = "../" * 12
    ups = ["../../app.py", "../trained/report.json", f"{deep}etc/passwd", "..%2f..%2fapp.py", "%2e%2e/%2e%2e/app.py",
           "..%252f..%252fapp.py", "....//....//app.py", "..\\..\\app.py", "..%5c..%5capp.py", "main.js/../../../app.py",
           "%00../../app.py", "main.js%00.py", "~/.bashrc", "file:///etc/passwd"]  # fmt: skip
    for up in ups:
        for base in (f"/gradio_api/file={ASSETS}/", "/gradio_api/file=", "/gradio_api/file/", "/assets/", "/static/"):
            status, body = raw(server, base + up)
            assert status in (400, 403, 404, 405, 422), (base + up, status)
            assert b"root:" not in body and b"import spaces" not in body


def test_no_address_is_fetched_for_a_visitor(server):
    for path in ("proxy=http://127.0.0.1:1/x", "file=http://127.0.0.1:1/x", "file=https://127.0.0.1/x"):
        status, _ = raw(server, f"/gradio_api/{path}")
        assert status != 200 and status < 500, path


def test_files_are_not_taken(server):
    edge = uuid.uuid4().hex
    body = (f'--{edge}\r\nContent-Disposition: form-data; name="files"; filename="a.html"\r\n\r\n<script>\r\n'
            f"--{edge}--\r\n").encode()  # fmt: skip
    before = set((server.log.parent / "files").rglob("*"))
    for path in ("upload", "upload/", "upload?upload_id=1", "process_recording"):
        status, told = post(f"{server.url}/gradio_api/{path}", body, f"multipart/form-data; boundary={edge}")
        assert status == 403 and json.loads(told)["detail"] == service.NO_UPLOADS
    assert not [path for path in set((server.log.parent / "files").rglob("*")) - before if path.name == "a.html"]
    assert not any(component["type"] in ("file", "uploadbutton", "audio", "video") and component["props"].get("interactive")
                   for component in json.loads(fetch(server.url + "/config")[1])["components"])  # fmt: skip


def test_a_body_beyond_any_request_is_refused_unread(server):
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    connection.putrequest("POST", "/gradio_api/call/v2/attend")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    began = time.monotonic()
    assert connection.getresponse().status == 413 and time.monotonic() - began < 5
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    connection.request("POST", "/gradio_api/call/v2/attend", iter([b"{}"]), {"Transfer-Encoding": "chunked"},
                       encode_chunked=True)  # fmt: skip
    assert connection.getresponse().status == 411


def test_every_answer_carries_the_headers_and_a_frame_stays_allowed(server):
    for path in (
        "/",
        "/config",
        "/health",
        f"/gradio_api/file={ASSETS}/main.js",
        "/gradio_api/file=app.py",
        "/nothing",
    ):
        try:
            headers = urllib.request.urlopen(server.url + path, timeout=30).headers
        except urllib.error.HTTPError as error:
            headers = error.headers
        for name, value in service.HEADERS.items():
            assert headers[name] == value, (path, name)
        assert not headers["X-Frame-Options"] and "frame-ancestors" not in (headers["Content-Security-Policy"] or "")


def test_an_exported_page_is_a_download_and_no_page_of_this_site(server):
    for format in ("html", "py", "csv"):
        file = call(server.url, "export", sentence="<script>alert(1)</script>", model="untrained", format=format)
        with urllib.request.urlopen(file["url"], timeout=30) as answer:
            assert answer.headers["Content-Disposition"].startswith("attachment")
            assert "html" not in answer.headers["Content-Type"]


def test_the_server_functions_give_weights_and_kept_runs_and_nothing_else(server):
    config = json.loads(fetch(server.url + "/config")[1])
    explorer = next(c["id"] for c in config["components"] if c["props"].get("elem_id") == "explorer")
    address = f"{server.url}/gradio_api/component_server"
    body = {"data": Request("the cat").query(), "component_id": explorer, "session_hash": "s", "fn_name": "parameters"}
    assert "W_query" in json.loads(post(address, json.dumps(body).encode())[1])
    for function in ("parameters", "finished"):
        for data in (None, "", 5, [], {}, "sentence=&model=x", "model=../x&sentence=a", "a" * 10**5, ["a"], {"a": [1]}):
            status, told = post(address, json.dumps(body | {"fn_name": function, "data": data}).encode())
            assert status == 200 and json.loads(told) == {}, (function, data)
    kept = {"sentence": "a run that is kept " * 9, "model": "untrained"}
    ask = body | {"fn_name": "finished", "data": Request(**kept).query()}
    assert json.loads(post(address, json.dumps(ask).encode())[1]) == {}  # it looks things up and computes nothing
    call(server.url, "attend", **kept)
    assert json.loads(post(address, json.dumps(ask).encode())[1])["settings"]["sentence"] == kept["sentence"]
    for name in ("postprocess", "__init__", "process_example", "nosuch", "", "__class__", "get_config"):
        assert post(address, json.dumps(body | {"fn_name": name}).encode())[0] in (400, 404), name
    for change in ({"component_id": 10**9}, {"component_id": "x"}, {"session_hash": None}):
        assert post(address, json.dumps(body | change).encode())[0] in (200, 400, 404)


def event(server, handler, data, session=None, **more):
    """What a page's handler gives when its event is sent by hand: the message that ends it."""
    session = session or uuid.uuid4().hex
    body = {"data": data, "fn_index": handler["id"], "session_hash": session} | more
    status, told = post(f"{server.url}/gradio_api/queue/join", json.dumps(body).encode())
    if status != 200:
        return {"status": status, "output": {"error": json.loads(told)["detail"]}}
    with urllib.request.urlopen(f"{server.url}/gradio_api/queue/data?session_hash={session}", timeout=30) as stream:
        for line in stream:
            message = json.loads(line[5:]) if line.startswith(b"data:") else {}
            if message.get("msg") == "process_completed":
                return message
    raise AssertionError("the stream ended without an answer")


def sentence_of(message):
    """The one sentence that a handler's answer holds; None where it did what was asked."""
    if "error" in message["output"]:
        return message["output"]["error"]
    for value in message["output"]["data"]:
        if isinstance(value, str) and value.startswith("{"):
            return json.loads(value).get("message", "").replace("<b>", "b")  # the page shows it as text
    return message["output"]["data"][-1]  # beside the downloads


def handlers(server):
    config = json.loads(fetch(server.url + "/config")[1])
    return {h["api_name"] or h["id"]: h for h in config["dependencies"]}


def test_the_pages_own_handlers_answer_nonsense_with_one_sentence(server):
    found = handlers(server)
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
    nonsense = [None, "<b>", {}, [], -1, 1e300, True, file, [file], [[[]]], {"__type__": "update", "value": 1}]
    asked = 0
    for name, handler in found.items():
        wanted = len(handler["inputs"])
        if not wanted or name in ("attend", "tokenize", "figure", "export"):
            continue
        rows = [[], [{}], *([value] * wanted for value in nonsense), [[]] * 40]
        for data in rows:
            message = event(server, handler, data, event_data="<b>")
            if name == "watch_loading" and message["success"]:  # which says nothing of a model that there is not
                continue
            told = sentence_of(message)
            assert told and is_one_sentence(told), (name, data, told)
            asked += 1
    assert asked > 80


def test_an_event_of_the_explorers_without_a_request_is_refused_in_one_sentence(server):
    nonsense = [None, "<b>", 5, [], {}, {"settings": None}, {"settings": []}, {"settings": {}}, {"settings": "sentence"},
                {"settings": {"sentence": "a", "nosuch": 1}}, {"settings": {"model": "untrained"}},
                {"settings": {"sentence": {}}}, {"settings": {"sentence": "a", "model": "../page"}}]  # fmt: skip
    handler = handlers(server)["ask"]
    for data in nonsense:
        told = sentence_of(event(server, handler, [], event_data=data))
        assert told and is_one_sentence(told), (data, told)
        assert "'settings'" not in told and "__init__" not in told
    for more in ({"trigger_id": 10**9}, {"trigger_id": "x"}, {"trigger_id": {}}, {"fn_index": "x"}, {"fn_index": 10**6},
                 {"session_hash": {}}, {"session_hash": None}, {"data": {}}):  # fmt: skip
        assert is_one_sentence(sentence_of(event(server, handler, more.pop("data", []), **more))), more


@pytest.mark.parametrize("data", [[], ["a"], [None] * 18, [{}] * 18, [[]] * 40, [0, 1, 2]])
def test_arguments_by_position_that_are_too_few_or_of_no_use_get_one_sentence(server, data):
    status, told = post(f"{server.url}/gradio_api/call/attend", json.dumps({"data": data}).encode())
    assert status == 200
    told = fetch(f"{server.url}/gradio_api/call/attend/{json.loads(told)['event_id']}")[1].decode()
    kind, told = re.search(r"event: (\w+)\ndata: (.*)", told).groups()
    assert kind == "error" and is_one_sentence(json.loads(told)["error"])


def test_nobody_gets_past_the_queue(server):
    for path in ("run/attend", "api/attend", "run/predict", "run/run"):
        for data in ([], ["the cat"] + [None] * 17):
            status, told = post(f"{server.url}/gradio_api/{path}", json.dumps({"data": data, "fn_index": 0}).encode())
            assert status == 404 and "detail" in json.loads(told), (path, told)


def test_what_gradio_has_for_its_owner_is_closed(server):
    for path in ("/monitoring", "/monitoring/summary", "/gradio_api/vibe-code", "/gradio_api/profiling/traces", "/docs",
                 "/redoc", "/gradio_api/run-history/records"):  # fmt: skip
        status, body = raw(server, path)
        assert status in (401, 403, 404, 405) or b"<title>" in body, path


def test_nothing_is_unpickled_and_no_code_is_made_from_text():
    for path in (ROOT / "attention").rglob("*.py"):
        found = re.findall(
            r"(?<!\.)\b(?:pickle|eval|exec|compile|os\.system|subprocess|torch\.load|marshal)\b\(?", path.read_text()
        )
        assert not [word for word in found if word.endswith("(") and word != "compile("], path


def test_the_readme_lists_what_a_visitor_can_reach():
    section = README.split("## Security")[1].split("\n## ")[0]
    for word in ("/health", "/attend", "/tokenize", "/figure", "/export", "/gradio_api/mcp/", "assets/explorer", "Referrer-Policy",
                 "413", "nothing is unpickled"):  # fmt: skip
        assert word in section, word
    assert os.path.basename(ASSETS) == "explorer"
