"""Every export read back by what knows nothing of this project: json, numpy, csv, an interpreter with torch alone."""

import csv
import io
import json
import re
import subprocess
import sys
import zipfile
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

from attention import Request, attend, export, models
from attention.trace import TENSORS

HOSTILE = (
    '=1+1 +2 -3 @SUM(A1) \t\n =2 ＝3 \'x </script><!-- ${1+1} `tick` \\u "quoted" """ \'\'\' {x} %s <img src=x> '
    "é e\u0301 \u200b \u202e 🤗 你好 مرحبا \x0b\ufffe \u2028 [PAD] ␣"
)
MANY = {"sentence": ("to be or not " * 10)[:128], "model": "untrained", "tokenizer": "characters"}
REQUESTS = {
    **{name: {"sentence": models.get(name).example, "model": name} for name in models.NAMES},
    "first layer": {"sentence": "The cat sat. The cat", "layer": 0},
    "padding": {"sentence": "hi there", "model": "untrained", "pad_to": 5, "pad_side": "left", "qkv_bias": True},
    "padding, trained": {"sentence": "The cat sat. The cat", "pad_to": 9},
    "one token": {"sentence": "Hi", "model": "untrained"},
    "128 tokens": MANY,
    "hostile": {"sentence": HOSTILE, "model": "untrained"},
    "hostile, trained": {"sentence": HOSTILE[:60]},
    "no mask": {"sentence": "one step", "model": "textbook", "mask": "none", "pad_to": 4},
    "after": {"sentence": "one step one", "model": "textbook", "mask": "after", "pad_to": 5, "scale": False},
    "renormalised": {
        "sentence": "a b c",
        "model": "untrained",
        "mask": "after_renormalised",
        "pad_to": 5,
        "pad_side": "left",
    },
    "dropout": {"sentence": "the cat saw the cat", "model": "untrained", "dropout": 0.3, "seed": 5, "d_head": 1},
    "dropout, many": MANY | {"dropout": 0.5},
    "edits": {
        "sentence": "the cat sat",
        "model": "untrained",
        "edits": [["scores", 1, 0, -2.5], ["weights", 2, 1, 0.25], ["scores", 2, 2, 1e6]],
    },
    "halves": {"sentence": "a" * 32, "model": "untrained", "tokenizer": "characters", "positions": False},
}


@pytest.fixture(scope="module")
def runs():
    return {name: attend(**request) for name, request in REQUESTS.items()}


each = pytest.mark.parametrize("name", REQUESTS)


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


@each
def test_json(runs, name):
    run = runs[name]
    got = json.loads(export.export(run, "json").decode("utf-8", "strict"), parse_constant=no_constant)
    assert [t["text"] for t in got["tokens"]] == [t.text for t in run.tokens]
    assert "".join(t["text"] for t in got["tokens"]) == run.request.sentence == got["settings"]["sentence"]
    for tensor in TENSORS:
        rows = [[-np.inf if n is None else n for n in row] for row in got["tensors"][tensor]]
        assert np.array_equal(np.array(rows), run[tensor].astype(float))
    assert np.array_equal(got["visible"], run["visible"])
    assert Request(**got["settings"]) == run.request


@each
def test_npz(runs, name):
    run = runs[name]
    with np.load(io.BytesIO(export.export(run, "npz")), allow_pickle=False) as got:
        for tensor in (*TENSORS, "real", "visible"):
            assert np.array_equal(got[tensor], run[tensor]) and got[tensor].dtype == run[tensor].dtype
        assert ("kept" in got) == bool(run.request.dropout)
        assert got["token_label"].tolist() == [t.label for t in run.tokens]
        assert got["token_id"].tolist() == [t.id for t in run.tokens]
        assert Request(**json.loads(str(got["settings"]))) == run.request
        q = got["x"] @ got["W_query"].T + got.get("W_query_bias", 0)
        assert np.allclose(q, got["q"], atol=1e-5)
        guesses = json.loads(str(got["next_tokens"]))
        assert [g["text"] for g in guesses or []] == list(run.guess.texts if run.guess else ())


def tables(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {
            name.removesuffix(".csv"): list(csv.reader(io.StringIO(archive.read(name).decode("utf-8-sig"), newline="")))
            for name in archive.namelist()
        }


def is_number(cell):
    try:
        float(cell)
        return True
    except ValueError:
        return False


@each
def test_csv(runs, name):
    run = runs[name]
    got = tables(export.export(run, "csv"))
    labels = [t.label for t in run.tokens]
    for tensor in TENSORS:
        head, *rows = got[tensor]
        square = tensor in ("scores", "scaled", "masked", "weights")
        assert [cell.removeprefix("'") for cell in head[1:]] == [
            label.removeprefix("'") for label in (labels if square else map(str, range(run[tensor].shape[1])))
        ]
        assert [row[0].removeprefix("'") for row in rows] == [label.removeprefix("'") for label in labels]
        numbers = np.array([[float(cell or "-inf") for cell in row[1:]] for row in rows])
        assert np.array_equal(numbers, run[tensor].astype(float))
        assert tensor == "masked" or all(all(row) for row in rows)
    assert np.array_equal(np.array([row[1:] for row in got["visible"][1:]]) == "1", run["visible"])
    assert ("kept" in got) == bool(run.request.dropout) and ("next_tokens" in got) == bool(run.guess)
    columns = dict(zip(got["tokens"][0], zip(*got["tokens"][1:], strict=True), strict=True))
    assert list(map(int, columns["id"])) == [t.id for t in run.tokens]
    assert [text.removeprefix("'") for text in columns["text"]] == [t.text.removeprefix("'") for t in run.tokens]
    assert dict(got["settings"])["model"] == run.request.model
    for rows in got.values():  # nothing that a spreadsheet would carry out
        for cell in (cell for row in rows for cell in row):
            assert is_number(cell) or not re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", cell), cell


# An interpreter in which torch can be imported, and nothing of ours or beside it. -I leaves out the folder it runs in.
ALONE = """
import sys
for name in ("attention", "numpy", "gradio", "matplotlib", "safetensors", "tokenizers", "spaces"):
    sys.modules[name] = None
import runpy, warnings
warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    print("run", path)
    runpy.run_path(path)
"""


def python(*arguments, cwd):
    done = subprocess.run([sys.executable, "-I", *arguments], cwd=cwd, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def printed(runs, tmp_path_factory):
    """What each exported program prints."""
    folder = tmp_path_factory.mktemp("programs")
    paths = {name: folder / f"{i}.py" for i, name in enumerate(runs)}
    for name, path in paths.items():
        path.write_bytes(export.export(runs[name], "py"))
    _, *parts = re.split(r"^run .*\n", python("-c", ALONE, *map(str, paths.values()), cwd=folder), flags=re.M)
    return dict(zip(paths, parts, strict=True))


def as_the_page_prints(number):
    """toFixed(4) of JavaScript: the exact binary number, halves away from zero; a true zero as 0."""
    return f"{Decimal(number).quantize(Decimal('0.0001'), ROUND_HALF_UP)}" if number else "0"


@each
def test_the_program_prints_the_pages_numbers_to_the_last_digit(runs, printed, name):
    run = runs[name]
    lines = printed[name].splitlines()
    for tensor in ("weights", "context"):
        at = lines.index(f"{tensor} ({run[tensor].shape[0]} × {run[tensor].shape[1]})")
        for token, row, line in zip(run.tokens, run[tensor].tolist(), lines[at + 1 :], strict=False):
            numbers = line.split(maxsplit=len(row))
            assert numbers[: len(row)] == list(map(as_the_page_prints, row))
            assert numbers[len(row)].strip() == repr(token.text or token.label)
    assert len(lines) == 2 * (len(run.tokens) + 1)


def test_the_program_is_short_and_reads_like_the_lesson(runs):
    program = export.export(runs["textbook"], "py").decode()
    assert len(program.splitlines()) < 90 and "base64.b64decode" in program
    assert "W_query" in program and "import attention" not in program
    code = program.split("W_value = ")[1]
    order = [code.index(f"\n{name} = ") for name in ("q", "k", "scores", "scaled", "masked", "weights", "v", "context")]
    assert order == sorted(order)
    for name in ("128 tokens", "trained"):
        assert len(export.export(runs[name], "py").decode().splitlines()) < 90


def test_a_program_also_runs_by_itself(runs, printed, tmp_path):
    (tmp_path / "run.py").write_bytes(export.export(runs["textbook"], "py"))
    assert python("run.py", cwd=tmp_path) == printed["textbook"]


@pytest.mark.parametrize("format", export.FORMATS)
def test_the_same_request_gives_the_same_bytes(format):
    request = REQUESTS["dropout"]
    assert export.export(attend(**request), format) == export.export(attend(**request), format)


@pytest.mark.parametrize("format", ["exe", "", None, ["json"], 1])
def test_another_format_is_refused_naming_those_there_are(runs, format):
    with pytest.raises(ValueError, match="'json', 'npz', 'csv', 'py' or 'html'"):
        export.export(runs["textbook"], format)


def test_files_are_named_after_the_sentence_and_never_leave_their_folder():
    names = {
        s: export.file_name(attend(s, model="untrained"), "csv") for s in ("The cat sat.", "../../x", "你好", "a" * 99)
    }
    assert names["The cat sat."] == "attention-the-cat-sat.zip"
    assert names["../../x"] == "attention-x.zip" and names["你好"] == "attention.zip"
    assert all(re.fullmatch(r"[a-z0-9.-]{1,60}", name) for name in names.values())


# --- the library's door ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "npz", "zip", "py", "html", "png", "svg", "pdf", "PNG"])
def test_save_goes_by_the_ending(runs, tmp_path, ending):
    path = tmp_path / f"run.{ending}"
    runs["textbook"].save(path, **({"step": "weights", "dpi": 60} if ending in ("png", "svg", "pdf", "PNG") else {}))
    starts = {"json": b"{", "npz": b"PK", "zip": b"PK", "py": b'"""', "html": b"<!doctype html>", "pdf": b"%PDF"}
    starts |= {"png": b"\x89PNG", "PNG": b"\x89PNG", "svg": b"<?xml"}
    assert path.read_bytes().startswith(starts[ending])


def test_save_refuses_what_it_cannot_mean(runs, tmp_path):
    with pytest.raises(ValueError, match=r"\.json, \.npz, \.zip.*'run\.csv'"):  # many tables are no one table
        runs["textbook"].save(tmp_path / "run.csv")
    with pytest.raises(ValueError, match="step can be set for a figure only"):
        runs["textbook"].save(tmp_path / "run.json", step="weights")
    assert not list(tmp_path.iterdir())


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(runs):
    import html.parser

    found = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, dict(attributes)))

    Reader().feed(runs["hostile"]._repr_html_())
    [(tag, attributes)] = found  # one element: nothing in the sentence breaks out of the attribute
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"].encode() == export.export(runs["hostile"], "html")
