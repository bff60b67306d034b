"""GPT-2: every head's numbers are those of `transformers`, on a small model with random weights."""

import copy
import json
import os
import socket
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
import torch
from servers import Refused, call, serving
from tokenizers import Tokenizer

from attention import Request, attend, compute, models
from attention.cache import Cache
from attention.explorer import payload
from attention.models import gpt2_files

pytest.importorskip("transformers")
ROOT = Path(__file__).parents[1]
FULL = "The cat saw the other cat " * 40
SENTENCES = {
    "one token": "a",
    "plain": "The cat sat on the mat. The cat",
    "pieces of characters": "I ❤️ 🤗, 漢字",
    "the full context": FULL,
}


@pytest.fixture(scope="module")
def reference(gpt2_folder):
    """The library's own model, its attention written out."""
    from transformers import GPT2LMHeadModel

    return GPT2LMHeadModel.from_pretrained(gpt2_folder, attn_implementation="eager").eval()


@pytest.fixture(params=SENTENCES)
def sentence(request, gpt2_folder):
    if SENTENCES[request.param] != FULL:
        return SENTENCES[request.param]
    ids = Tokenizer.from_file(str(gpt2_folder / "tokenizer.json")).encode(FULL).offsets
    return FULL[: ids[63][1]]


@torch.no_grad()
def by_transformers(reference, tokens):
    """Weights of every layer, every attention block's output, and the last token's probabilities."""
    outputs = []
    hooks = [b.attn.register_forward_hook(lambda *a: outputs.append(a[-1][0][0])) for b in reference.transformer.h]
    done = reference(torch.tensor([[t.id for t in tokens if t.real]]), output_attentions=True)
    for hook in hooks:
        hook.remove()
    return [a[0] for a in done.attentions], outputs, done.logits[0, -1].softmax(-1)


def near(got, want, tolerance=1e-5):
    got, want = (np.asarray(a) for a in (got, want))
    np.testing.assert_allclose(got, want, atol=tolerance * max(1, np.abs(want).max()), rtol=0)


def test_every_head_equals_transformers(reference, sentence):
    own = models.get("gpt2")
    one = attend(sentence, model="gpt2")
    weights, outputs, probabilities = by_transformers(reference, one.tokens)
    if sentence.startswith(FULL[:60]):
        assert len(one.tokens) == own.context_length == 64
    for layer, block in enumerate(reference.transformer.h):
        results = [attend(sentence, model="gpt2", layer=layer, head=head) for head in range(own.heads)]
        for head, result in enumerate(results):
            near(result["weights"], weights[layer][head])
            near(result.guess.probabilities, probabilities.topk(8).values)
        merged = torch.from_numpy(np.concatenate([result["context"] for result in results], axis=1))
        near(block.attn.c_proj(merged).detach(), outputs[layer])
    assert one.guess.exp_sum == pytest.approx(1 / probabilities.max().item(), rel=1e-4)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_moves_nothing(sentence, side):
    for layer in range(3):
        bare = attend(sentence, model="gpt2", layer=layer)
        padded = attend(sentence, model="gpt2", layer=layer, pad_to=min(64, len(bare.tokens) + 5), pad_side=side)
        real = padded.trace.real.numpy()
        for name in ("x", "q", "k", "v", "context"):
            near(padded[name][real], bare[name])
        near(padded["weights"][np.ix_(real, real)], bare["weights"])
        near(padded.guess.probabilities, bare.guess.probabilities)
        near(padded.overview.shares, bare.overview.shares)
        assert not padded["weights"][:, ~real].any() and np.isfinite(padded["x"]).all()


def test_x_is_the_norm_of_a_stream_that_adds_up():
    for layer in range(3):
        result = attend("The cat sat", model="gpt2", layer=layer)
        parts = [result.sources[n] for n in ("embedding", "position", *(["before"] if layer else []))]
        near(sum(parts), result.sources["r"])
        near(models.get("gpt2").norm(result.request)(result.sources["r"]), result["x"])
    logits = result.sources["final"] @ result.sources["output"].T
    near(logits[0], result.guess.logits)


# --- what if ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (1, 3), (2, 2)])
def test_a_head_left_out_is_a_model_without_it(reference, layer, head):
    result = attend("The cat sat. The cat", model="gpt2", layer=layer, head=head, head_off=True)
    without = copy.deepcopy(reference)
    without.transformer.h[layer].attn.c_proj.weight.data[head * 6 : head * 6 + 6] = 0
    _, _, want = by_transformers(without, result.tokens)
    near(result.guess.probabilities, want.topk(8).values)
    whole = attend("The cat sat. The cat", model="gpt2", layer=layer, head=head)
    assert np.abs(np.array(result.guess.logits) - whole.guess.logits).max() > 1e-3
    near(result["weights"], whole["weights"], 0)


def test_what_a_request_changes_reaches_the_guess():
    args = dict(sentence="The cat sat. The cat", model="gpt2", layer=1, head=2)
    plain = attend(**args)
    row = len(plain.tokens) - 1
    same = attend(**args, edits=[["weights", row, 0, float(plain["weights"][row, 0])]])
    near(same.guess.logits, plain.guess.logits)
    near(attend(**args, mask="after_renormalised").guess.logits, plain.guess.logits)
    for change in ({"edits": [["weights", row, 0, 9.0]]}, {"scale": False}, {"dropout": 0.5}, {"mask": "none"}):
        changed = attend(**args, **change)
        assert np.abs(np.array(changed.guess.logits) - plain.guess.logits).max() > 1e-3, change
        assert changed.overview is plain.overview


# --- one pass serves all heads ---------------------------------------------------------------------------------------


@pytest.fixture
def passes(monkeypatch):
    """The requests of the passes over a sentence, as they are made."""
    made, run = [], compute._run_on_gpu
    monkeypatch.setattr(compute, "_run_on_gpu", lambda request, tokens: made.append(request) or run(request, tokens))
    for name in ("_cache", "_readings"):
        monkeypatch.setattr(compute, name, Cache(getattr(compute, name).limit))
    return made


def test_one_pass_serves_every_head_mask_and_edit(passes):
    args = dict(sentence="The cat sat on it", model="gpt2")
    changes = [{}, {"layer": 0, "head": 3}, {"mask": "none"}, {"edits": [["scores", 1, 0, 2.0]]}, {"head_off": True}]
    changes += [{"scale": False}, {"dropout": 0.3, "seed": 5}, {"layer": 1, "mask": "after"}]
    for change in changes:
        attend(**args, **change)
        compute.run(Request(**args, **change), gpu=False)
        assert len(passes) == 1
    attend(**args, pad_to=20)
    attend("Another", model="gpt2")
    assert len(passes) == 3
    assert compute._readings.size == sum(r.nbytes for r in compute._readings.entries.values())


def test_passes_are_kept_in_bounded_memory(passes, monkeypatch):
    attend("The cat", model="gpt2")
    (one,) = compute._readings.entries.values()
    monkeypatch.setattr(compute, "_readings", Cache(3 * one.nbytes))
    for word in ("cat", "sat", "mat", "saw", "ran"):
        attend(f"The {word}", model="gpt2")
        assert compute._readings.size <= 3 * one.nbytes


def test_a_pass_of_the_real_size_fits_what_is_kept():
    full = 12 * 1024 * 768 * 4 + 144 * 64 * 64  # bytes
    assert 3 * full < compute.READING_BYTES


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentence", ["The cat", " 🤗\n\t", "<|endoftext|>[PAD]", "e\u0301ẞ\u200b", "$a_$ <b>"])
def test_tokens_are_the_checkpoints_own_and_join_to_the_sentence(gpt2_folder, sentence):
    tokens = compute.tokenize(Request(sentence, "gpt2"))
    assert "".join(t.text for t in tokens) == sentence
    assert all(t.id != 0 for t in tokens)  # <|endoftext|> was typed, not meant
    if "<|" not in sentence:
        assert [t.id for t in tokens] == Tokenizer.from_file(str(gpt2_folder / "tokenizer.json")).encode(sentence).ids


# --- the overview ----------------------------------------------------------------------------------------------------


def test_pictures_are_the_weights_of_every_head():
    result = attend("The cat sat. The cat", model="gpt2")
    told = json.loads(json.dumps(payload(result)))["overview"]
    assert (told["layers"], told["heads"], told["size"], told["block"]) == (3, 4, len(result.tokens), 1)
    shape = (3, 4, told["size"], told["size"])
    pictures = np.frombuffer(b64decode(told["pictures"]), np.uint8).reshape(shape)
    for layer in range(3):
        for head in range(4):
            weights = attend("The cat sat. The cat", model="gpt2", layer=layer, head=head)["weights"]
            near(pictures[layer, head] / 255, weights, 0.5001 / 255)
            assert told["labels"][layer][head]["kind"] in told["kinds"]
    again = payload(attend("The cat sat. The cat", model="gpt2", head=1, mask="none"))["overview"]
    assert again["key"] == told["key"] and again["pictures"] == told["pictures"]
    assert payload(attend("The cat", model="untrained"))["overview"] is None


# --- loading ---------------------------------------------------------------------------------------------------------


def test_before_anything_is_loaded_the_published_sizes_hold(monkeypatch):
    monkeypatch.delenv(gpt2_files.FOLDER)
    own = models.get("gpt2")
    assert (own.layers, own.heads, own.context_length) == (12, 12, 1024)
    assert Request("Hi", "gpt2", layer=11, head=11).layer == 11
    with pytest.raises(ValueError, match="layers 0 to 11"):
        Request("Hi", "gpt2", layer=12)


def test_a_folder_that_is_not_whole_is_said_in_one_sentence_and_can_be_mended(gpt2_folder, tmp_path, monkeypatch):
    monkeypatch.setenv(gpt2_files.FOLDER, str(tmp_path))
    whole = {name: (gpt2_folder / name).read_bytes() for name in gpt2_files.FILES}
    for name in ("tokenizer.json", "config.json", "model.safetensors"):
        for content in (None, b"", whole[name][: len(whole[name]) // 2], b"version https://x\noid sha256:0\nsize 5\n"):
            for other in gpt2_files.FILES:
                (tmp_path / other).write_bytes(whole[other])
            (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
            with pytest.raises(ValueError) as error:
                attend(f"The cat {name} {content and len(content)}", model="gpt2")
            said = str(error.value)
            assert said.endswith(".") and "\n" not in said and len(said) < 200 and str(tmp_path) not in said, said
        (tmp_path / name).write_bytes(whole[name])
        assert attend("The cat", model="untrained")
    assert attend("The cat is here", model="gpt2").guess


def test_the_published_file_names_its_weights_otherwise_and_holds_masks_too(gpt2_folder, tmp_path, monkeypatch):
    from safetensors.torch import load_file, save_file

    want = attend("The cat sat", model="gpt2").guess.logits
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((gpt2_folder / name).read_bytes())
    weights = load_file(gpt2_folder / "model.safetensors").items()
    masks = {f"h.{layer}.attn.bias": torch.ones(1, 1, 64, 64).tril() for layer in range(3)}
    save_file({k.removeprefix("transformer."): w for k, w in weights} | masks, tmp_path / "model.safetensors")
    monkeypatch.setenv(gpt2_files.FOLDER, str(tmp_path))
    for kept in ("_cache", "_readings"):
        monkeypatch.setattr(compute, kept, Cache(2**20))
    assert attend("The cat sat", model="gpt2").guess.logits == want


CHILD = """
import json, os, sys, time
sys.path[:0] = [{root!r}, {tests!r}]
import socket
from pathlib import Path
from hub import Hub
from attention import attend
from attention.models import gpt2_files

def asked():
    begin = time.monotonic()
    try:
        said = attend("The cat sat", model="gpt2", layer=0, head=0).guess.texts[0]
        return ["fine", said, time.monotonic() - begin]
    except ValueError as error:
        return ["refused", str(error), time.monotonic() - begin]

port = int(os.environ["HF_ENDPOINT"].rsplit(":", 1)[1])
hub = Hub(Path({folder!r}), gpt2_files.REVISION, port)
answers = {{}}
{body}
print("ANSWERS", json.dumps(answers))
"""
BODY = {
    "nobody there, then the network is back": """
answers["down"] = asked()
answers["others"] = attend("The cat", model="untrained").device
with hub:
    answers["up"] = asked()
answers["down again"] = asked()
""",
    "cut off half way": """
with hub:
    hub.cut = 30_000
    answers["down"] = asked()
    hub.cut = None
    answers["up"] = asked()
""",
    "nobody answers": """
silent = socket.create_server(("127.0.0.1", port))
answers["down"] = asked()
silent.close()
with hub:
    answers["up"] = asked()
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BODY)
def test_without_internet_one_sentence_soon_and_later_it_works(case, gpt2_folder, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "ATTENTION_"))}
    environment |= {"HF_HOME": str(tmp_path), "HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_HUB_DISABLE_XET": "1"}
    code = CHILD.format(root=str(ROOT), tests=str(ROOT / "tests"), folder=str(gpt2_folder.resolve()), body=BODY[case])
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.split("ANSWERS ")[1])
    kind, said, seconds = answers["down"]
    assert kind == "refused" and said.endswith(".") and "internet" in said and "\n" not in said
    assert seconds < 12, answers
    assert answers["up"][0] == "fine"
    assert answers.get("down again", ["fine"])[0] == "fine"  # it is here now
    assert answers.get("others", "cpu")


@pytest.mark.parametrize("module", ["attention", "attention.page"])
def test_nothing_of_it_is_loaded_before_it_is_asked_for(module, tmp_path):
    code = f"import sys; import {module} as m; getattr(m, 'build', int)(); print('transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.split()[-1:] == ["False"], done.stderr[-2000:]


def test_on_the_page_a_model_that_cannot_be_loaded_is_one_sentence(tmp_path, monkeypatch):
    page = pytest.importorskip("attention.page")
    monkeypatch.setenv(gpt2_files.FOLDER, str(tmp_path))
    values = (Request("The cat").settings() | {"model": "gpt2"}).values()
    chosen = page.choose_model("sentence=Hi&model=untrained", *values)
    assert chosen[1 + page.ARGUMENTS.index("model")] == "untrained"  # of the run that stays on screen
    assert page.choose_model("sentence=Hi", *values)[1 + page.ARGUMENTS.index("model")] == models.DEFAULT
    for answer in (chosen[0], page.run(*values), page.preview(*values)):
        shown = json.loads(answer)
        assert shown["message"].endswith(".") and "query" not in shown
    assert "message" not in json.loads(page.preview(*Request("The cat").settings().values()))


@pytest.mark.slow
def test_the_app_offline_refuses_gpt2_alone(tmp_path, monkeypatch):
    monkeypatch.delenv(gpt2_files.FOLDER)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    with serving(tmp_path) as app:  # it runs with HF_HUB_OFFLINE=1
        with pytest.raises(Refused, match=r"internet.*\.$"):
            call(app.url, "attend", sentence="The cat", model="gpt2")
        assert call(app.url, "attend", sentence="The cat", model="untrained")["tokens"]
