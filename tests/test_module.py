"""The mathematics: printed numbers, PyTorch's own kernel, and formulas written out in numpy are the judges."""

import json
import math
from pathlib import Path

import numpy as np
import oracle
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from attention import CausalAttention, SelfAttention
from attention.module import MASK_MODES
from attention.trace import Trace

PRINTED = json.loads((Path(__file__).parent / "data" / "seed_numbers.json").read_text(encoding="utf-8"))
X = torch.tensor(PRINTED["x"])
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 3e-2, torch.float16: 5e-3}


def digits(tensor):
    """Four decimals, as torch prints them; None for −inf."""
    return [[None if v == -math.inf else f"{v:.4f}" for v in row] for row in tensor.tolist()]


def printed(name):
    return [[None if v is None else f"{v:.4f}" for v in row] for row in PRINTED[name]]


def printed_heads():
    """The three heads that the notebook builds after one seed, in its order."""
    torch.manual_seed(0)
    return SelfAttention(3, 2).eval(), SelfAttention(3, 2).eval(), CausalAttention(3, 2, 6, 0.0).eval()


def seeded(d_in=5, d_out=3, context_length=12, seed=1, **more):
    return CausalAttention.seeded(d_in, d_out, context_length, torch.Generator().manual_seed(seed), **more)


def draw(*shape, seed=7, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# --- printed numbers -------------------------------------------------------------------------------------------------


def test_unmasked_weights_as_printed():
    first, _, _ = printed_heads()
    assert digits(first.trace(X).weights) == printed("weights_unmasked")


def test_mask_after_the_softmax_as_printed():
    first, _, _ = printed_heads()
    trace = first.trace(X, mask="after")
    assert digits(trace.weights) == printed("weights_masked_after_softmax")


def test_masked_scores_as_printed_where_the_notebook_masks_before_it_scales():
    first, _, _ = printed_heads()
    trace = first.trace(X, mask="causal")
    assert digits(trace.scores.masked_fill(~trace.visible, -math.inf)) == printed("scores_masked")
    # the same picture, divided by √2, is what this project calls masked
    assert torch.equal(trace.masked, (trace.scores / math.sqrt(2)).masked_fill(~trace.visible, -math.inf))


def test_causal_weights_as_printed():
    first, _, _ = printed_heads()
    assert digits(first.trace(X, mask="causal").weights) == printed("weights_causal")


def test_context_as_printed_for_a_batch_of_two():
    *_, third = printed_heads()
    batch = torch.stack((X, X))
    for context in (*third(batch), *third.trace(batch).context, third(X), third.trace(X).context):
        assert digits(context) == printed("context")


# --- the square, padded form: q, k, v as wide as x, a batch, keys at padding removed ---------------------------------


@pytest.mark.parametrize("side", ["right", "left"])
def test_square_padded_batch_by_its_formulas(side):
    B, T, d = 3, 6, 4
    torch.manual_seed(3)
    head = CausalAttention(d, d, context_length=9).eval()
    x, lengths = draw(B, T, d), (6, 4, 1)
    real = torch.tensor([[i < n for i in range(T)] for n in lengths])
    if side == "left":
        real = real.flip(1)

    Q, K, V = (
        x.double().numpy() @ w.weight.detach().double().numpy().T for w in (head.W_query, head.W_key, head.W_value)
    )
    scores = Q @ K.transpose(0, 2, 1) / np.sqrt(d)
    scores[:, np.triu(np.ones((T, T), dtype=bool), k=1)] = -np.inf
    scores = np.where(~real.numpy()[:, None, :], -np.inf, scores)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        literal = (e / e.sum(axis=-1, keepdims=True)) @ V

    defined = ~np.isnan(literal).any(axis=-1)  # the formulas leave 0 / 0 where a query has nothing to look at
    assert defined[real.numpy()].all() and (side == "right" or not defined.all())
    for context in (head(x, real), head.trace(x, real).context):
        context = context.detach().numpy()
        np.testing.assert_allclose(context[defined], literal[defined], atol=2e-6)
        assert (context[~defined] == 0).all()


# --- both paths, and the oracle, over a table ------------------------------------------------------------------------

PADDING = {
    "none": lambda B, T: None,
    "right": lambda B, T: torch.arange(T).expand(B, T) < torch.arange(1, B + 1)[:, None].clamp(max=T),
    "left": lambda B, T: torch.arange(T).flip(0).expand(B, T) < torch.arange(1, B + 1)[:, None].clamp(max=T),
    "all": lambda B, T: torch.zeros(B, T, dtype=torch.bool),
    "holes": lambda B, T: torch.arange(B * T).reshape(B, T) % 3 == 1,
}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize(("B", "T", "bias"), [(None, 1, True), (None, 7, False), (1, 1, False), (2, 12, True)])
@pytest.mark.parametrize("causal", [True, False])
def test_forward_is_trace_is_the_formula(causal, B, T, bias, padding, dtype):
    torch.manual_seed(B or 0)
    head = CausalAttention(5, 3, 12, qkv_bias=bias) if causal else SelfAttention(5, 3, qkv_bias=bias)
    head = head.to(dtype).eval()
    x, real = draw(B or 1, T, 5, dtype=dtype), PADDING[padding](B or 1, T)
    sequences = [(x[b], None if real is None else real[b]) for b in range(B or 1)]
    if B is None:
        x, real = sequences[0]
    with torch.no_grad():
        context = head(x, padding_mask=real)
    trace = head.trace(x, padding_mask=real)
    assert context.shape == (*x.shape[:-1], 3) and context.dtype == dtype
    near = dict(atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    assert torch.allclose(context, trace.context, **near)
    for b, (one, one_real) in enumerate(sequences):
        want = oracle.attention(head, one.double(), one_real, mask="causal" if causal else "none")
        for name, value in want.items():
            got = (trace[name] if B is None else trace[name][b]).double().numpy()
            assert np.allclose(got, value, **near), name  # NaN equals nothing


def test_parity_with_pytorchs_kernel():
    head, x = seeded(16, 8, 50, qkv_bias=True), draw(4, 50, 16)
    with torch.no_grad():
        q, k, v = head.W_query(x), head.W_key(x), head.W_value(x)
        want = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        everywhere = F.scaled_dot_product_attention(q, k, v)
        unscaled = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    trace = head.trace(x)
    torch.testing.assert_close(head(x), want)
    torch.testing.assert_close(trace.context, want, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(head.trace(x, mask="none").context, everywhere, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(head.trace(x, scale=False).context, unscaled, atol=2e-6, rtol=1e-5)
    for name, layer in (("q", head.W_query), ("k", head.W_key), ("v", head.W_value)):
        torch.testing.assert_close(trace[name], layer(x).detach())


# --- properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", range(1, 9))
def test_nothing_comes_from_the_future(changed):
    head, x = seeded(), draw(2, 9, 5)
    other = x.clone()
    other[:, changed:] = draw(2, 9 - changed, 5, seed=99) * 50
    for a, b in ((head(x), head(other)), (head.trace(x).context, head.trace(other).context)):
        torch.testing.assert_close(a[:, :changed], b[:, :changed], atol=1e-6, rtol=0)
        assert not torch.equal(a[:, changed:], b[:, changed:])
    a, b = head.trace(x).weights, head.trace(other).weights
    torch.testing.assert_close(a[:, :changed], b[:, :changed], atol=1e-6, rtol=0)


def test_the_gradient_of_a_row_with_respect_to_later_tokens_is_exactly_zero():
    head, x = seeded(), draw(6, 5).requires_grad_()
    for row in range(6):
        (gradient,) = torch.autograd.grad(head(x)[row].sum(), x)
        assert (gradient[row + 1 :] == 0).all() and (gradient[: row + 1] != 0).any(dim=1).all()


def test_a_prefix_gives_the_first_rows():
    head, x = seeded(), draw(12, 5)
    whole, trace = head(x), head.trace(x)
    for T in range(1, 12):
        torch.testing.assert_close(head(x[:T]), whole[:T], atol=1e-6, rtol=0)
        part = head.trace(x[:T])
        torch.testing.assert_close(part.weights, trace.weights[:T, :T], atol=1e-6, rtol=0)


def test_permuting_the_batch_permutes_the_answers():
    head, x, order = seeded(), draw(5, 8, 5), torch.tensor([3, 0, 4, 1, 2])
    real = torch.rand(5, 8, generator=torch.Generator().manual_seed(0)) < 0.7
    torch.testing.assert_close(head(x, real)[order], head(x[order], real[order]), atol=1e-6, rtol=0)
    torch.testing.assert_close(
        head.trace(x, real).weights[order], head.trace(x[order], real[order]).weights, atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("training", [False, True])
def test_a_query_that_may_look_nowhere_gets_zero(dtype, training):
    head = seeded(qkv_bias=True, dropout=0.3).to(dtype).train(training)
    x = draw(2, 6, 5, dtype=dtype) * 30
    real = torch.tensor([[False, False, True, True, False, True], [False] * 6])
    nowhere = ~real.cumsum(1).bool()
    context, trace = head(x, real), head.trace(x, real)
    assert (context[nowhere] == 0).all() and not context.isnan().any()
    assert (trace.weights[nowhere] == 0).all() and (trace.context[nowhere] == 0).all()
    assert (trace.masked[nowhere] == -math.inf).all() and not trace.weights.isnan().any()
    assert trace.weights[~nowhere].sum(-1).allclose(torch.ones((), dtype=dtype), atol=1e-2)


@pytest.mark.requires_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("padding", PADDING)
def test_on_cuda_the_same_and_never_nan(padding, dtype):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    head = seeded(5, 8, qkv_bias=True).to(dtype)
    x, real = draw(3, 8, 5, dtype=dtype), PADDING[padding](3, 8)
    trace = head.trace(x, real)
    head = head.cuda()
    device_real = None if real is None else real.cuda()
    context, on_device = head(x.cuda(), device_real).cpu(), head.trace(x.cuda(), device_real)
    near = dict(atol=max(TOLERANCE[dtype], 1e-5), rtol=max(TOLERANCE[dtype], 1e-5))
    torch.testing.assert_close(context, trace.context, **near)
    for name in ("masked", "weights", "context"):
        torch.testing.assert_close(on_device[name], trace[name], **near)
    if real is not None:
        assert (context[~real.cumsum(1).bool()] == 0).all()


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("scale", [True, False])
def test_the_four_masks(padding, scale):
    head, x, real = seeded(), draw(3, 8, 5) * 2, PADDING[padding](3, 8)
    trace = {mask: head.trace(x, real, mask=mask, scale=scale) for mask in MASK_MODES}
    keys = torch.ones(3, 8, dtype=torch.bool) if real is None else real
    causal = torch.ones(8, 8, dtype=torch.bool).tril() & keys[:, None]
    for name in ("q", "k", "v", "scores", "scaled"):
        assert all(torch.equal(trace[mask][name], trace["causal"][name]) for mask in MASK_MODES)
    for mask in ("causal", "none", "after_renormalised"):
        sums = trace[mask].weights.sum(-1)
        may_look = trace[mask].visible.any(-1)
        torch.testing.assert_close(sums, may_look.float(), atol=2e-6, rtol=0)
    for mask in MASK_MODES:
        assert torch.equal(trace[mask].visible, keys[:, None].expand(3, 8, 8) if mask == "none" else causal)
        assert (trace[mask].weights[~trace[mask].visible] == 0).all()
        removed = causal if mask == "causal" else keys[:, None].expand(3, 8, 8)
        assert torch.equal(trace[mask].masked == -math.inf, ~removed)
    torch.testing.assert_close(trace["after"].weights, trace["none"].weights * causal, atol=1e-7, rtol=0)
    torch.testing.assert_close(trace["after_renormalised"].weights, trace["causal"].weights, atol=1e-6, rtol=0)
    # the future leaks through the denominator: where a real key lies ahead, the row sums to less than 1
    ahead = (keys[:, None] & ~torch.ones(8, 8, dtype=torch.bool).tril()).any(-1)
    assert (trace["after"].weights.sum(-1)[ahead] < 1).all()


@pytest.mark.parametrize("d_out", [1, 2, 16, 64])
def test_the_divisor_is_the_root_of_the_key_size(d_out):
    head, x = seeded(5, d_out), draw(6, 5)
    trace, off = head.trace(x), head.trace(x, scale=False)
    np.testing.assert_allclose(trace.scaled.numpy(), trace.scores.numpy() / d_out**0.5, rtol=1e-6)
    assert torch.equal(off.scaled, off.scores) and torch.equal(off.scores, trace.scores)


def test_padded_rows_do_not_move_real_ones():
    head, x = seeded(), draw(5, 5)
    alone, rubbish = head.trace(x), draw(3, 5, seed=5) * 100
    for real, padded in (
        (torch.tensor([True] * 5 + [False] * 3), torch.cat((x, rubbish))),
        (torch.tensor([False] * 3 + [True] * 5), torch.cat((rubbish, x))),
    ):
        for mask in ("causal", "none"):
            trace = head.trace(padded, real, mask=mask)
            want = alone if mask == "causal" else head.trace(x, mask=mask)
            torch.testing.assert_close(trace.context[real], want.context, atol=1e-6, rtol=0)
            torch.testing.assert_close(trace.weights[real][:, real], want.weights, atol=1e-6, rtol=0)
        torch.testing.assert_close(head(padded, real)[real], alone.context, atol=1e-6, rtol=0)


# --- dropout ---------------------------------------------------------------------------------------------------------


def test_trace_drops_what_kept_says_and_divides_the_rest():
    head, x = seeded(), draw(2, 6, 5)
    kept = torch.rand(2, 6, 6, generator=torch.Generator().manual_seed(4)) >= 0.4
    plain, trace = head.trace(x), head.trace(x, kept=kept, dropout=0.4)
    torch.testing.assert_close(trace.weights[kept], plain.weights[kept] / 0.6)
    assert (trace.weights[~kept] == 0).all() and torch.equal(trace.kept, kept) and plain.kept is None
    np.testing.assert_allclose(trace.context, trace.weights.numpy() @ trace.v.numpy(), atol=1e-6)
    assert torch.equal(trace.masked, plain.masked)
    own = seeded(dropout=0.25).trace(x, kept=kept)
    torch.testing.assert_close(own.weights[kept], plain.weights[kept] / 0.75)


@pytest.mark.parametrize("padded", [False, True])
def test_dropout_in_training_only_and_unbiased(padded):
    head, x = seeded(dropout=0.5), draw(1, 4, 5).expand(3000, 4, 5)
    real = torch.tensor([True, True, True, False]).expand(3000, 4) if padded else None
    want = head.eval()(x[:1], real[:1] if padded else None)
    head.train()
    torch.manual_seed(0)
    first = head(x, real)
    assert not torch.equal(first, head(x, real))
    assert (first == 0).all(-1)[:, 0].float().mean() == pytest.approx(0.5, abs=0.04)  # row 0 has one key
    torch.testing.assert_close(first.mean(0), want[0], atol=0.08, rtol=0)
    torch.manual_seed(0)
    assert torch.equal(first, head(x, real))
    assert torch.equal(head.trace(x[0]).weights, head.eval().trace(x[0]).weights)  # the trace draws nothing


# --- edits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", MASK_MODES)
@pytest.mark.parametrize(
    "edits",
    [
        [("scores", 2, 1, 5.0)],
        [("scores", 1, 3, 9.0)],
        [("weights", 3, 0, -2.0)],
        [("scores", 4, 4, -3.0), ("weights", 4, 1, 0.5), ("weights", 0, 0, 0.0)],
    ],
)
def test_edits_replace_one_number_and_what_follows(edits, mask):
    head, x = seeded().double(), draw(5, 5, dtype=torch.float64)
    plain, trace = head.trace(x, mask=mask), head.trace(x, mask=mask, edits=edits)
    for name, value in oracle.attention(head, x, mask=mask, edits=edits).items():
        np.testing.assert_allclose(trace[name].numpy(), value, atol=1e-12)
    untouched = [row for row in range(5) if row not in {edit[1] for edit in edits}]
    assert torch.equal(trace.context[untouched], plain.context[untouched])
    for tensor, row, column, value in edits:
        assert trace[tensor][row, column] == value
    batch = head.trace(x.expand(2, 5, 5), mask=mask, edits=edits)
    assert torch.equal(batch.context[0], batch.context[1])
    torch.testing.assert_close(batch.context[0], trace.context)


# --- construction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
def test_seeded_draws_what_three_linear_layers_draw(bias):
    before = torch.get_rng_state()
    head = seeded(7, 4, 10, seed=123, qkv_bias=bias)
    assert torch.equal(before, torch.get_rng_state())  # the global generator was left alone
    torch.manual_seed(123)
    layers = [nn.Linear(7, 4, bias=bias) for _ in range(3)]
    after = torch.get_rng_state()
    for layer, own in zip(layers, (head.W_query, head.W_key, head.W_value), strict=True):
        assert torch.equal(layer.weight, own.weight)
        assert (own.bias is None) if not bias else torch.equal(layer.bias, own.bias)
    torch.manual_seed(123)
    plain = CausalAttention(7, 4, 10, qkv_bias=bias)
    assert torch.equal(plain.W_value.weight, head.W_value.weight)
    assert torch.equal(after, torch.get_rng_state())  # and nothing but the three layers was drawn
    assert not head.training


def test_no_matrix_of_the_context_is_stored():
    head = CausalAttention(4, 2, context_length=4096, qkv_bias=True)
    names = {f"W_{w}.{part}" for w in ("query", "key", "value") for part in ("weight", "bias")}
    assert set(head.state_dict()) == names
    assert sum(t.numel() for t in head.state_dict().values()) == 3 * (4 * 2 + 2)
    assert not list(head.buffers())


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that any operation gives."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        answer = function(*args, **(kwargs or {}))
        for tensor in answer if isinstance(answer, (tuple, list)) else (answer,):
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return answer


@pytest.mark.parametrize("shape", [(50, 5), (2, 50, 5)], ids=["unbatched", "batched"])
def test_forward_writes_no_matrix_of_all_pairs(shape):
    head = seeded(context_length=50)
    with torch.no_grad(), Largest() as largest:
        head(draw(*shape))
    assert largest.numbers == math.prod(shape)


def test_gradients_flow_through_forward_and_not_through_trace():
    head, x = seeded(qkv_bias=True), draw(2, 6, 5).requires_grad_()
    real = torch.tensor([[False, True, True, True, True, True], [True, True, True, False, False, False]])
    for mask in (None, real):
        head.zero_grad()
        x.grad = None
        head(x, mask).square().sum().backward()
        for parameter in (x, *head.parameters()):
            assert parameter.grad.isfinite().all() and parameter.grad.abs().sum() > 0
    trace = head.trace(x)
    assert not any(trace[name].requires_grad for name in ("x", "q", "weights", "context"))


def test_gradient_equals_finite_differences():
    head = seeded(3, 2).double()
    x = draw(2, 4, 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(head, (x,))


def test_a_trace_is_not_overwritten_by_a_later_step():
    head, x = seeded(), draw(6, 5)
    real = torch.tensor([True] * 4 + [False] * 2)
    trace = head.trace(x, real, edits=[("weights", 2, 0, 0.5)])
    assert trace.scores.isfinite().all() and trace.scaled.isfinite().all() and torch.equal(trace.x, x)


def test_trace_as_arrays_and_back():
    trace = seeded().trace(draw(4, 5), kept=torch.ones(4, 4, dtype=torch.bool), dropout=0.1)
    back = Trace.from_arrays(trace.arrays())
    for name in ("x", "masked", "weights", "real", "visible", "kept"):
        assert torch.equal(back[name], trace[name])
    with pytest.raises(KeyError, match="scores"):
        trace["score"]


# --- errors ----------------------------------------------------------------------------------------------------------

T5 = torch.ones(5, dtype=torch.bool)


@pytest.mark.parametrize(
    ("x", "real", "says"),
    [
        ((13, 5), None, ["13", "12"]),
        ((2, 13, 5), None, ["13", "12"]),
        ((5, 4), None, ["(5, 4)", "5)"]),
        ((5,), None, ["(5,)", "(T, 5)"]),
        ((1, 2, 5, 5), None, ["(1, 2, 5, 5)", "(B, T, 5)"]),
        ((5, 5), T5[:4], ["(4,)", "(5,)"]),
        ((2, 5, 5), T5, ["(5,)", "(2, 5)"]),
        ((5, 5), T5.float(), ["torch.float32", "torch.bool"]),
        ((5, 5), T5.int(), ["torch.int32", "torch.bool"]),
    ],
)
def test_errors_name_both_sides(x, real, says):
    head = seeded()
    for call in (head, head.trace):
        with pytest.raises(ValueError) as error:
            call(torch.zeros(*x), padding_mask=real)
        assert all(word in str(error.value) for word in says), str(error.value)


@pytest.mark.parametrize("p", [-0.1, 1.0, 2, float("nan")])
def test_dropout_out_of_range_is_refused(p):
    with pytest.raises(ValueError, match="dropout"):
        CausalAttention(3, 2, 6, dropout=p)


def test_an_unknown_mask_is_refused_naming_the_known_ones():
    with pytest.raises(ValueError) as error:
        seeded().trace(draw(3, 5), mask="before")
    assert all(mask in str(error.value) for mask in ("before", *MASK_MODES))
