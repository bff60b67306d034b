"""python -m attention: what it prints and writes, and exit code 2 with one sentence for what is wrong."""

import io
import json
import sys
from dataclasses import fields

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from attention import CausalAttention, Request, attend, export
from attention.__main__ import main, parser
from attention.request import ARGUMENTS


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """shell(arguments…) → what it printed; run in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        main(list(arguments))
        return capsys.readouterr().out

    return run


def test_every_field_of_a_request_has_its_option_and_its_words():
    told = parser().format_help()
    assert list(ARGUMENTS) == [f.name for f in fields(Request) if f.init]
    for name in list(ARGUMENTS)[1:]:
        assert f"--{name.replace('_', '-')}" in told


def test_without_anything_to_write_it_prints_words_weights_and_guess(shell):
    said = shell("The cat sat. The cat")
    run = attend("The cat sat. The cat")
    rows = [line.split()[:6] for line in said.splitlines() if line.startswith(" ")]
    assert np.allclose(np.array(rows, float), run["weights"], atol=5.1e-5)
    assert "cat₂" in said and run.guess.labels[0] in said


def test_all_settings_reach_the_request(shell):
    shell(
        *("a b c", "--model", "untrained", "--mask", "after", "--no-scale", "--pad-to", "5", "--pad-side", "left"),
        *("--dropout", "0.25", "--seed", "3", "--d-model", "4", "--d-head", "2", "--qkv-bias", "--no-positions"),
        *("--tokenizer", "words", "--edits", '[["scores", 1, 0, 2.5]]', "--save", "run.json"),
    )
    with open("run.json", encoding="utf-8") as file:
        got = json.load(file)["settings"]
    assert Request(**got) == Request(
        "a b c", "untrained", mask="after", scale=False, pad_to=5, pad_side="left", dropout=0.25, seed=3, d_model=4,
        d_head=2, qkv_bias=True, positions=False, edits=[["scores", 1, 0, 2.5]],
    )  # fmt: skip


def test_files_of_every_kind(shell, tmp_path):
    said = shell(
        *("one step", "--model", "textbook", "--figure", "a.svg", "--figure", "b.pdf", "--step", "weights"),
        *("--save", "c.npz", "--save", "d.zip", "--export", "html", "--export", "py"),
    )
    names = ["a.svg", "b.pdf", "c.npz", "d.zip", "attention-one-step.html", "attention-one-step.py"]
    assert said.splitlines() == [f"wrote {name}" for name in names]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    run = attend("one step", model="textbook")
    assert (tmp_path / "attention-one-step.html").read_bytes() == export.export(run, "html")
    assert np.array_equal(np.load("c.npz")["weights"], run["weights"])


def test_a_head_of_ones_own(shell, tmp_path):
    head = CausalAttention.seeded(3, 2, 6, torch.Generator().manual_seed(0))
    x = torch.eye(3)
    save_file({**head.state_dict(), "x": x}, tmp_path / "mine.safetensors")
    shell("one two three", "--head", "mine.safetensors", "--save", "run.npz")
    assert np.allclose(np.load("run.npz")["context"], head(x).detach(), atol=1e-6)


WRONG = {
    "no sentence": ([], "required"),
    "empty": ([" "], "Type a sentence first"),
    "model": (["a", "--model", "no"], "'textbook', 'untrained'"),
    "foreign option": (["a", "--d-model", "4"], "it belongs to 'untrained'"),
    "words": (["a", "--dropout", "much"], "dropout"),
    "edits": (["a", "--edits", "[["], "edits"),
    "head": (["a", "--head", "7"], "head is 7"),
    "no file": (["a", "--head", "no.safetensors"], "There is no file"),
    "figure's ending": (["a", "--figure", "a.gif"], ".png, .svg or .pdf"),
    "ending": (["a", "--save", "a.exe"], ".json, .npz, .zip"),
    "format": (["a", "--export", "exe"], "json"),
    "no folder": (["a", "--save", "no/such/folder.npz"], "cannot be written"),
    "dpi": (["a", "--figure", "a.png", "--dpi", "1"], "dpi is 1"),
    "unknown option": (["a", "--colour", "red"], "--colour"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_gets_one_sentence_and_exit_code_2(shell, capsys, tmp_path, case):
    arguments, message = WRONG[case]
    with pytest.raises(SystemExit) as ended:
        shell(*arguments)
    said = capsys.readouterr().err
    assert ended.value.code == 2 and message in said and "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_a_terminal_that_lacks_a_character_shows_another(monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    main(["你好", "--model", "untrained"])
    terminal.flush()
    assert b"weights" in terminal.buffer.getvalue()
