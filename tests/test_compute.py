"""From a request to its numbers: the printed ones, the hand-computed ones, and the same ones every time."""

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import oracle
import pytest
import strategies
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from attention import Request, attend, compute, models
from attention.cache import Cache
from attention.module import MASK_MODES
from attention.trace import TENSORS

ROOT = Path(__file__).parents[1]
PRINTED = json.loads((Path(__file__).parent / "data" / "seed_numbers.json").read_text(encoding="utf-8"))
SENTENCE = "Your journey starts with one step"


def fresh(request):
    """The request computed anew, whatever is kept."""
    return compute._from_cpu(request, compute.tokenize(request))


def digits(array):
    return [["-inf" if v == -math.inf else f"{v:.4f}" for v in row] for row in array.tolist()]


def printed(name):
    return [["-inf" if v is None else f"{v:.4f}" for v in row] for row in PRINTED[name]]


def same(a, b):
    """Equal bit for bit, tensor by tensor."""
    return all(np.array_equal(a[name], b[name]) for name in TENSORS) and a.tokens == b.tokens


def by_hand(result):
    """The result's tensors by the oracle, from its x, its head's weights and what its request says."""
    request = result.request
    real = [token.real for token in result.tokens]
    kept = None if result.trace.kept is None else result.trace.kept.numpy()
    head = models.get(request.model).head(request)
    return oracle.attention(head, result["x"], real, request.mask, request.scale, kept, request.dropout, request.edits)


# --- the textbook ----------------------------------------------------------------------------------------------------


def test_the_textbook_prints_its_numbers():
    result = attend(SENTENCE, model="textbook")
    assert [t.text.strip() for t in result.tokens] == PRINTED["tokens"]
    np.testing.assert_array_equal(result["x"], np.array(PRINTED["x"], dtype=np.float32))
    assert digits(result["weights"]) == printed("weights_causal")
    hidden = np.where(result.trace.visible.numpy(), result["scores"], -np.inf)
    assert digits(hidden) == printed("scores_masked")
    assert digits(attend(SENTENCE, model="textbook", mask="none")["weights"]) == printed("weights_unmasked")
    after = attend(SENTENCE, model="textbook", mask="after")
    assert digits(after["weights"]) == printed("weights_masked_after_softmax")
    assert digits(attend(SENTENCE, model="textbook", head=1)["context"]) == printed("context")
    renormalised = attend(SENTENCE, model="textbook", mask="after_renormalised")
    assert digits(renormalised["weights"]) == printed("weights_causal")


def test_the_textbook_takes_its_words_in_any_order_case_and_spacing():
    result = attend("  step ONE\tone your\n", model="textbook")
    assert "".join(t.text for t in result.tokens) == "  step ONE\tone your\n"
    rows = [5, 4, 4, 0]
    np.testing.assert_array_equal(result["x"], np.array(PRINTED["x"], dtype=np.float32)[rows])


@pytest.mark.parametrize("sentence", ["Your cat", "journey.", "🤗", "Yourjourney"])
def test_the_textbook_refuses_other_words_listing_the_six(sentence):
    with pytest.raises(ValueError) as error:
        attend(sentence, model="textbook")
    assert all(word in str(error.value) for word in PRINTED["tokens"])
    assert sentence not in str(error.value)


# --- every tensor by hand --------------------------------------------------------------------------------------------


@given(strategies.settings())
def test_every_tensor_equals_a_hand_computation(args):
    result = attend(**args)
    for name, want in by_hand(result).items():
        got = result[name]
        # float32 against float64: relative to the largest number that takes part
        size = 1 + max(np.abs(want[np.isfinite(want)]).max(initial=0), np.abs(result["scaled"]).max())
        assert np.allclose(got, want, atol=1e-5 * size, rtol=1e-4), name
    assert [t.real for t in result.tokens] == result.trace.real.tolist()
    assert not any(np.isnan(result[name]).any() for name in TENSORS)
    finite = set(TENSORS) - {"masked"}
    assert all(np.isfinite(result[name]).all() for name in finite)


@pytest.mark.parametrize("mask", MASK_MODES)
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("padding", [{}, {"pad_to": 8}, {"pad_to": 8, "pad_side": "left"}])
def test_the_mask_table(mask, scale, padding):
    result = attend("the cat saw the cat", model="untrained", mask=mask, scale=scale, **padding)
    want, weights = by_hand(result), result["weights"]
    np.testing.assert_allclose(weights, want["weights"], atol=1e-6)
    assert np.array_equal(np.isneginf(result["masked"]), np.isneginf(want["masked"]))
    assert np.array_equal(result["visible"], want["visible"])
    assert (weights[~want["visible"]] == 0).all()
    real = result.trace.real.numpy()
    sums = weights.sum(axis=1)
    if mask == "after":
        assert (sums[real][:-1] < 1).all() and sums[real][-1] == pytest.approx(1, abs=1e-6)
    else:
        np.testing.assert_allclose(sums, want["visible"].any(axis=1), atol=1e-6)
    base = attend("the cat saw the cat", model="untrained", **padding)
    assert np.array_equal(result["scores"], base["scores"])
    assert np.array_equal(result["scaled"], base["scaled" if scale else "scores"])


def test_edits_change_what_follows_and_nothing_else():
    plain = attend("the cat sat", model="untrained")
    edits = [["scores", 2, 0, 6.0]]
    result = attend("the cat sat", model="untrained", edits=edits)
    row = np.array([6.0, plain["scores"][2, 1], plain["scores"][2, 2]], dtype=np.float64) / math.sqrt(8)
    shares = np.exp(row) / np.exp(row).sum()
    np.testing.assert_allclose(result["weights"][2], shares, atol=1e-6)
    np.testing.assert_allclose(result["context"][2], shares @ plain["v"], atol=1e-5)
    assert np.array_equal(result["weights"][:2], plain["weights"][:2])
    assert np.array_equal(result["context"][:2], plain["context"][:2])
    share = attend("the cat sat", model="untrained", edits=[["weights", 1, 0, 0.0]])
    np.testing.assert_allclose(share["context"][1], plain["weights"][1, 1] * plain["v"][1], atol=1e-6)


@pytest.mark.parametrize("edit", [["scores", 3, 0, 1.0], ["weights", 0, 3, 1.0], ["scores", 2000, 2000, 1.0]])
def test_an_edit_outside_the_matrix_is_refused_naming_both_numbers(edit):
    with pytest.raises(ValueError) as error:
        attend("the cat sat", model="untrained", edits=[edit])
    assert str(max(edit[1:3])) in str(error.value) and "3 tokens" in str(error.value)
    attend("the cat sat", model="untrained", edits=[[edit[0], 0, 0, 1.0]])


# --- determinism -----------------------------------------------------------------------------------------------------

MIXED = [
    dict(sentence=sentence, model=model, mask=mask, dropout=dropout, **more)
    for sentence, model, more in (
        (SENTENCE, "textbook", {"head": 1}),
        ("one step with one step", "textbook", {}),
        ("red", "untrained", {"seed": 1}),
        ("blue is not red", "untrained", {"seed": 2, "pad_to": 9, "pad_side": "left"}),
        ("the cat sat on the mat " * 8, "untrained", {"d_model": 64, "d_head": 32, "qkv_bias": True}),
        ("漢字 🤗 e\u0301", "untrained", {"tokenizer": "characters", "positions": False}),
    )
    for mask in ("causal", "none", "after")
    for dropout in (0.0, 0.3, 0.5)
]


def test_fifty_requests_at_once_give_what_each_gives_alone():
    requests = [Request(**args) for args in MIXED][:50]
    assert len(requests) == 50 and len(set(requests)) == 50
    alone = [fresh(request) for request in requests]
    torch.manual_seed(0)
    state = torch.get_rng_state()
    with ThreadPoolExecutor(16) as pool:
        for compute_one in (fresh, compute.run):
            together = list(pool.map(compute_one, requests * 2))
            assert all(same(a, b) for a, b in zip(alone * 2, together, strict=True))
    assert torch.equal(torch.get_rng_state(), state)  # nothing drew from the generator that everyone shares


@given(strategies.settings())
@hypothesis_settings(max_examples=25)
def test_a_request_always_gives_the_same(args):
    first = fresh(Request(**args))
    torch.manual_seed(len(args))
    assert same(first, fresh(Request.from_query(Request(**args).query())))
    assert same(first, attend(**args))


def test_seeds_matter():
    a, b = (attend("the cat", model="untrained", seed=seed) for seed in (0, 1))
    assert not np.allclose(a["x"], b["x"]) and not np.allclose(a["q"], b["q"])


@pytest.mark.parametrize(
    "args", [dict(sentence=SENTENCE, model="textbook"), dict(sentence="a b c d e f", model="untrained")]
)
def test_dropout_is_drawn_from_the_seed(args):
    results = [attend(**args, dropout=0.5, seed=seed) for seed in range(40)]
    masks = [r["kept"] for r in results]
    assert len({m.tobytes() for m in masks}) == 40
    assert np.mean(masks) == pytest.approx(0.5, abs=0.06)
    for result in results[:5]:
        plain = attend(**args, seed=result.request.seed) if args["model"] == "untrained" else attend(**args)
        np.testing.assert_allclose(result["weights"], plain["weights"] * result["kept"] * 2, atol=1e-6)
    assert attend(**args).trace.kept is None
    assert np.mean([attend(**args, dropout=0.9, seed=seed)["kept"] for seed in range(40)]) == pytest.approx(
        0.1, abs=0.04
    )


# --- tokens ----------------------------------------------------------------------------------------------------------

EXTEND = [
    ("textbook", SENTENCE, " step", {}),
    ("untrained", "the cat sat", " down", {}),
    ("untrained", "the cat sat", "s", {"tokenizer": "characters"}),
    ("untrained", "the cat sat", " the", {"positions": False, "qkv_bias": True}),
]


@pytest.mark.parametrize(("model", "sentence", "more", "settings"), EXTEND)
def test_appending_changes_no_earlier_row(model, sentence, more, settings):
    short, long = (attend(s, model=model, **settings) for s in (sentence, sentence + more))
    T = len(short.tokens)
    assert len(long.tokens) == T + 1
    for name in ("x", "q", "k", "v", "context"):
        np.testing.assert_allclose(long[name][:T], short[name], atol=1e-6)
    np.testing.assert_allclose(long["weights"][:T, :T], short["weights"], atol=1e-6)
    assert (long["weights"][:T, T:] == 0).all()


@pytest.mark.parametrize("mask", ["causal", "none", "after_renormalised"])
@pytest.mark.parametrize(("model", "sentence", "_", "settings"), EXTEND)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_moves_no_real_row(model, sentence, _, settings, side, mask):
    bare = attend(sentence, model=model, mask=mask, **settings)
    padded = attend(sentence, model=model, mask=mask, pad_to=len(bare.tokens) + 3, pad_side=side, **settings)
    real = padded.trace.real.numpy()
    assert real.tolist() == ([False] * 3 + [True] * len(bare.tokens))[:: 1 if side == "left" else -1]
    for name in ("x", "q", "k", "v", "context"):
        np.testing.assert_allclose(padded[name][real], bare[name], atol=1e-6)
    np.testing.assert_allclose(padded["weights"][real][:, real], bare["weights"], atol=1e-6)
    assert (padded["weights"][:, ~real] == 0).all()
    for name, source in padded.sources.items():
        np.testing.assert_allclose(source.numpy()[real], bare.sources[name].numpy(), atol=1e-7)
    if side == "left" and mask == "causal":
        assert (padded["weights"][:3] == 0).all() and (padded["context"][:3] == 0).all()


def test_words_and_characters():
    words = attend("the cat", model="untrained")
    characters = attend("the cat", model="untrained", tokenizer="characters")
    assert [t.text for t in words.tokens] == ["the", " cat"]
    assert [t.text for t in characters.tokens] == list("the cat")
    assert [t.id for t in characters.tokens] == [ord(c) for c in "the cat"]


def test_x_is_embedding_plus_position():
    result = attend("the the cat", model="untrained", pad_to=5, pad_side="left")
    total = result.sources["embedding"].numpy() + result.sources["position"].numpy()
    np.testing.assert_array_equal(result["x"], total)
    bare = attend("the cat the", model="untrained", positions=False)
    assert set(bare.sources) == {"embedding"}
    assert not np.array_equal(bare["x"][0], bare["x"][2])  # "the" and " the" are two words to it
    twice = attend("a a a", model="untrained", positions=False)["x"]
    assert np.array_equal(twice[1], twice[2])


def test_one_token_more_than_the_context_is_refused_naming_both():
    for model, sentence in (("textbook", "one " * 65), ("untrained", "!" * 1025)):
        with pytest.raises(ValueError) as error:
            attend(sentence.strip(), model=model)
        count = 65 if model == "textbook" else 1025
        limit = models.get(model).context_length
        assert f"{count:,}" in str(error.value) and f"{limit:,}" in str(error.value)
        assert attend("one step", model=model).tokens


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_the_cache_is_bounded_in_bytes_and_drops_the_least_used():
    results = [fresh(Request("a b c d", "untrained", seed=seed)) for seed in range(20)]
    size = results[0].nbytes
    assert size >= sum(results[0][name].nbytes for name in TENSORS)
    cache = Cache(limit=5 * size)
    for seed, result in enumerate(results):
        cache.put((result.request, True), result)
        assert cache.size == sum(r.nbytes for r in cache.entries.values()) <= cache.limit
        if seed >= 2:
            assert cache.get((results[2].request, True)) is results[2]  # asked for again and again: stays
    assert len(cache.entries) == 5 and cache.get((results[0].request, True)) is None
    cache.put((results[2].request, True), results[2])
    assert cache.size == 5 * size
    big = fresh(Request("a " * 60, "untrained"))
    assert big.nbytes > cache.limit
    cache.put((big.request, True), big)
    assert cache.get((big.request, True)) is None and len(cache.entries) == 5


def test_the_cache_that_serves_stays_within_its_limit():
    for seed in range(12):
        attend("a " * 700, model="untrained", seed=seed)
    kept = compute._cache
    assert kept.size == sum(r.nbytes for r in kept.entries.values()) <= compute.CACHE_BYTES
    assert attend("Hi", model="untrained")["weights"].tolist() == [[1.0]]


def test_a_repeated_request_is_not_computed_again():
    first = attend("the cat sat here", model="untrained", seed=77)
    assert attend("the cat sat here", model="untrained", seed=77).trace is first.trace
    assert compute.run(Request("the cat sat here", "untrained", seed=77), gpu=False).trace is first.trace


def test_notes_belong_to_the_asking_not_to_what_is_kept():
    dirty, clean = attend("a\x00b", model="untrained"), attend("a␀b", model="untrained")
    assert dirty.notes and not clean.notes and same(dirty, clean)
    assert attend("a\x00b", model="untrained").notes == dirty.notes


def test_the_result_says_which_device_computed_it():
    result = attend("Hi", model="untrained")
    assert result.device == ("cuda" if torch.cuda.is_available() else "cpu")
    assert compute.run(Request("Ho", "untrained"), gpu=False).device == "cpu"


@pytest.mark.requires_cuda
def test_cuda_agrees_with_the_cpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    for request in (Request(**args) for args in MIXED):
        tokens = compute.tokenize(request)
        gpu, cpu = compute._from_gpu(request, tokens), compute._from_cpu(request, tokens)
        assert gpu.device == "cuda"
        for name in TENSORS:
            np.testing.assert_allclose(gpu[name], cpu[name], atol=1e-5, rtol=1e-5)


# --- the library stands alone ----------------------------------------------------------------------------------------

WITHOUT = """
import json, sys
BLOCKED = ("gradio", "spaces", "matplotlib", "gradio_client")
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
from attention import CausalAttention, Request, SelfAttention, Trace, attend
weights = attend("Your journey", model="textbook")["weights"][1].tolist()
context = attend("the cat sat", model="untrained", dropout=0.5)["context"].tolist()
assert not [name for name in sys.modules if name.split(".")[0] in BLOCKED]
print(json.dumps([weights, context]))
"""


def test_the_library_needs_neither_gradio_nor_spaces_nor_matplotlib_and_gives_the_same_in_another_process():
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    weights, context = json.loads(done.stdout)
    assert [f"{w:.4f}" for w in weights] == ["0.4981", "0.5019"]
    assert context == attend("the cat sat", model="untrained", dropout=0.5)["context"].tolist()
