"""The README's examples, run as they are written; only the server's address is put in."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:7860"  # as the README has it
EXPECTED = "0.5018665194511414"


def example(language, containing):
    blocks = [code for kind, code in re.findall(r"```(\w+)\n(.*?)```", README, re.S) if kind == language]
    [found] = [code for code in blocks if containing in code]
    return found


def ran(*command, cwd, **environment):
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=120, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_example_of_the_program_door_names_its_result():
    for language in ("python", "javascript"):
        assert EXPECTED in example(language, ADDRESS)


def test_python_client(server, tmp_path):
    code = example("python", "gradio_client").replace(ADDRESS, server.url)
    said = ran(sys.executable, "-c", code + "\nprint(path)\n", cwd=tmp_path, GRADIO_TEMP_DIR=str(tmp_path))
    assert EXPECTED in said
    assert Path(said.splitlines()[-1]).read_bytes().startswith(b"PK")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_javascript_client(server, tmp_path):
    (tmp_path / "example.mjs").write_text(example("javascript", "Client").replace(ADDRESS, server.url))
    [install] = re.findall(r"`(npm install [^`]+)`", README)
    ran(*install.split(), "--no-audit", "--no-fund", "--ignore-scripts", cwd=tmp_path)
    assert EXPECTED in ran("node", "example.mjs", cwd=tmp_path)


def test_curl(server, tmp_path):
    said = ran("bash", "-euc", example("bash", "curl").replace(ADDRESS, server.url), cwd=tmp_path)
    assert said.startswith("event: complete") and EXPECTED in said


def test_library(tmp_path):
    ran(sys.executable, "-c", example("python", "import CausalAttention"), cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_shell(tmp_path):
    command = example("bash", "python -m attention")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = ran("bash", "-euc", command, cwd=tmp_path, PYTHONPATH=str(ROOT), PATH=path)
    assert "looks back at" in said
    assert {path.name for path in tmp_path.iterdir()} == {"step.png", "step.npz", "attention-one-step.html"}
