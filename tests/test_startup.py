"""Where the app cannot work it says so at once: one sentence, exit code 1, no traceback."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers import call, fetch
from test_api import is_one_sentence

from attention import models, startup
from attention.models import trained

pytest.importorskip("gradio")
ROOT = Path(__file__).parents[1]
LAST = trained.CHECKPOINTS[-1]["step"]
WEIGHTS = f"trained/step-{LAST:05d}.safetensors"


@pytest.fixture
def assets(tmp_path, monkeypatch):
    """A copy of assets/ to break."""
    shutil.copytree(ROOT / "assets", tmp_path / "assets")
    monkeypatch.setattr(startup, "ASSETS", tmp_path / "assets")
    monkeypatch.setattr(trained, "FOLDER", tmp_path / "assets" / "trained")
    trained.load.cache_clear()
    yield tmp_path / "assets"
    trained.load.cache_clear()


def ended(capsys):
    with pytest.raises(SystemExit) as end:
        startup.check()
    said = capsys.readouterr().err.strip()
    assert end.value.code == 1 and is_one_sentence(said)
    return said


def test_the_project_as_it_is_passes(assets):
    startup.check()


FILES = ["page.css", "explorer/explorer.css", "explorer/gradio.js", "explorer/main.js", "explorer/numbers.js",
         "trained/report.json", "trained/tokenizer.json", WEIGHTS]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(assets, capsys, name):
    (assets / name).unlink()
    assert f"assets/{name} is missing" in ended(capsys)


def test_damaged_weights_are_named(assets, capsys):
    path = assets / WEIGHTS
    whole = path.read_bytes()
    other = sorted((assets / "trained").glob("*.safetensors"))[0].read_bytes()
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    for data in (b"", b"\0" * 100, whole[: len(whole) // 2], whole + b"x", pointer):
        path.write_bytes(data)
        trained.load.cache_clear()
        assert f"assets/{WEIGHTS} is damaged" in ended(capsys), data[:20]
    path.write_bytes(other)  # whole weights pass, whosever they are: sizes are what a file can say
    trained.load.cache_clear()
    startup.check()


def test_weights_of_other_sizes_are_named(assets, capsys):
    from safetensors.torch import load_file, save_file

    tables = load_file(assets / WEIGHTS)
    for name in ("embedding.weight", "position.weight", "norm.weight", "heads.0.W_query.weight"):
        cut = tables[name][:-1].contiguous()
        if name == "position.weight":
            cut = cut[:, :-1].contiguous()
        save_file(tables | {name: cut}, assets / WEIGHTS)
        trained.load.cache_clear()
        assert f"assets/{WEIGHTS} is damaged" in ended(capsys), name


@pytest.mark.parametrize("name", ["report.json", "tokenizer.json"])
def test_damaged_descriptions_are_named(assets, capsys, name):
    for text in ("", "{", "[]", "{}", "null"):
        (assets / "trained" / name).write_text(text)
        assert "damaged" in ended(capsys)


@pytest.mark.parametrize("name, have", [("gradio", "5.49.1"), ("gradio", "7.0.0"), ("torch", "1.13.1+cpu")])
def test_an_unsupported_version_is_named(monkeypatch, capsys, name, have):
    real = startup.version
    monkeypatch.setattr(startup, "version", lambda other: have if other == name else real(other))
    said = ended(capsys)
    assert name in said and have in said


def test_an_old_python_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    assert "Python 3.10.13" in ended(capsys)


def test_a_port_that_is_none_is_named(monkeypatch, capsys):
    for port in ("", "abc", "-1", "0", "65536"):
        monkeypatch.setenv("GRADIO_SERVER_PORT", port)
        assert "GRADIO_SERVER_PORT" in ended(capsys)


def start(folder, **environment):
    return subprocess.run(
        [sys.executable, "app.py"], cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=90
    )


def test_a_taken_port_ends_the_app_with_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = start(ROOT, GRADIO_SERVER_PORT=port, GRADIO_ANALYTICS_ENABLED="False")
    assert done.returncode == 1 and f"Port {port} is taken" in done.stderr and "Traceback" not in done.stderr


def test_a_missing_asset_ends_the_app_itself_with_one_sentence(tmp_path):
    for name in ("attention", "assets"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "assets" / "trained" / "report.json").unlink()
    done = start(tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("assets/trained/report.json is missing")


# --- a running app ---------------------------------------------------------------------------------------------------


def test_health_says_what_runs(server):
    status, body = fetch(server.url + "/health")
    told = json.loads(body)
    assert status == 200 and told["status"] == "ok" and told["models"] == list(models.NAMES) and told["version"]
    time.sleep(0.3)
    assert json.loads(fetch(server.url + "/health")[1])["uptime_seconds"] > told["uptime_seconds"]


def test_the_log_has_one_line_a_request_and_no_text_of_the_visitor(server):
    before = len(server.written())
    call(server.url, "attend", sentence="zebra crossing the street")
    call(server.url, "export", sentence="zebra", model="untrained", format="npz")
    with pytest.raises(Exception, match="cannot be set"):
        call(server.url, "attend", sentence="zebra", d_model=4)
    with pytest.raises(Exception, match="model is"):
        call(server.url, "attend", sentence="zebra", model="zebra")
    fetch(server.url + "/")
    fetch(server.url + "/health")
    written = server.written()[before:]
    lines = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
    assert [line["door"] for line in lines] == ["attend", "export", "attend", "attend"]
    assert [line["outcome"] for line in lines] == ["answered", "answered", "refused", "refused"]
    assert all(set(line) == {"door", "model", "tokens", "device", "ms", "outcome"} for line in lines)
    assert lines[0]["model"] == "trained" and lines[0]["tokens"] > 3 and lines[0]["device"] in ("cpu", "cuda")
    assert lines[1]["model"] == "untrained" and lines[3]["model"] is None and all(line["ms"] >= 0 for line in lines)
    assert "zebra" not in written and "127.0.0.1" not in written
