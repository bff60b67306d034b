"""What every test shares."""

import os

import pytest
import tiny_gpt2
from hypothesis import settings
from servers import serving, under_a_path

# Read when torch is first imported, here and in child processes: matrices this small gain nothing from more threads,
# and on a busy machine the threads wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("here", deadline=None, max_examples=60, database=None)
settings.load_profile("here")


# Files whose tests start a server or another process, draw many figures, or search long: no part of a quick run.
SLOW = {
    *("test_api.py", "test_cli.py", "test_export.py", "test_figures.py", "test_gpt2.py", "test_hostile.py"),
    *("test_import_order.py", "test_mcp.py", "test_queue.py", "test_readme_examples.py", "test_security.py"),
    "test_startup.py",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name in SLOW:
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def gpt2_folder(tmp_path_factory):
    """A small random GPT-2 that stands for the real one, in every process of the tests."""
    folder = tiny_gpt2.make(tmp_path_factory.mktemp("tiny-gpt2"))
    os.environ["ATTENTION_GPT2"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The real app. A traceback in its log fails the run."""
    with serving(tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture(scope="session")
def root_path_url(tmp_path_factory):
    """The address of an app that is served under /attn by a reverse proxy."""
    with (
        serving(tmp_path_factory.mktemp("app-under-a-path"), root_path="/attn") as running,
        under_a_path(running, "/attn") as url,
    ):
        yield url
