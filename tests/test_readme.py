"""The README says what is so: the Space card, the pins, the limits, the arguments, the file tree."""

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from attention import Request, compute, models
from attention.answers import MAX_API_TOKENS
from attention.explorer import ASSETS
from attention.page import CONCURRENCY, QUEUE_SIZE
from attention.request import MAX_CHARACTERS, MAX_EDITS, MAX_SEED, MAX_SIZE

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CARD = yaml.safe_load(README.split("---")[1])
PINS = dict(re.findall(r"^([\w-]+)(?:\[\w+\])?==(.+)$", (ROOT / "requirements.txt").read_text(), re.M))


def test_the_card_is_one_that_a_zerogpu_space_takes():
    assert CARD["sdk"] == "gradio"
    assert CARD["sdk_version"] == PINS["gradio"]
    assert (ROOT / CARD["app_file"]).is_file()
    assert CARD["python_version"] == "3.12"  # a string: YAML would read 3.10 as 3.1
    assert len(CARD["short_description"]) <= 60
    assert {CARD["colorFrom"], CARD["colorTo"]} <= {
        *("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"),
    }
    assert CARD["license"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"].lower()


def test_what_zerogpu_needs_exactly_is_pinned_exactly():
    assert PINS.keys() >= {"torch", "gradio", "spaces"}


def test_limits_are_the_constants():
    for sentence in (
        f"at most {MAX_CHARACTERS:,} characters",
        f"answers for up to {MAX_API_TOKENS} tokens",
        f"at most {MAX_EDITS} edits",
        f"sizes, 1 to {MAX_SIZE}",
        f"0 to {MAX_SEED:,}",
        f"asks for {compute.seconds(Request('a'), ())} seconds (GPT-2: {models.get('gpt2').gpu_seconds})",
        f"more for every {compute.MORE_TOKENS} tokens",
        f"At most {QUEUE_SIZE} requests wait",
        f"Up to {CONCURRENCY} run at once",
        f"up to {models.get('untrained').context_length:,} tokens",
    ):
        assert sentence in README, sentence


def _documented_arguments() -> dict[str, str]:
    """Argument → default, from the table of arguments."""
    found = {}
    for names, defaults in re.findall(r"^\| (`[^|]+`) \| ([^|]+) \| ", README, re.M):
        values = re.findall(r"`([^`]+)`|(null|\(required\))", defaults)
        for name, value in zip(re.findall(r"`(\w+)`", names), values * 2, strict=False):
            found[name] = value[0] or value[1]
    return found


def test_every_argument_is_documented_with_its_default():
    documented = _documented_arguments()
    for f in fields(Request):
        if not f.init:
            continue
        assert f.name in documented, f.name
        if f.name != "sentence":
            assert documented[f.name] == json.dumps(f.default), f.name


@pytest.mark.parametrize("name", models.NAMES)
def test_every_model_is_documented(name):
    assert f"| `{name}` |" in README


def test_the_file_tree_names_every_module():
    tree = README.split("## How it is made")[1]
    for path in [*(ROOT / "attention").glob("*.py"), ROOT / "app.py"]:
        if path.name not in ("__init__.py", "__main__.py"):
            assert re.search(rf"^ *{path.name} ", tree, re.M), path.name
    assert ASSETS.relative_to(ROOT).as_posix() in tree
