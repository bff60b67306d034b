"""The explorer's pure modules under Node's own test runner, where Node is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = sorted((Path(__file__).parent / "explorer").glob("*.test.js"))


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed; the browser tests cover the page")
@pytest.mark.parametrize("path", TESTS, ids=lambda p: p.name)
def test_by_node(path):
    done = subprocess.run(["node", "--test", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout
