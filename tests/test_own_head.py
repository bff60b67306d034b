"""A head of one's own, as a module or a file: the numbers of the head itself, or one sentence about what is wrong."""

import io

import pytest
import torch
import torch.nn as nn
from safetensors.torch import save_file

from attention import CausalAttention, attend, export

SENTENCE = "one two three four"


@pytest.fixture
def head():
    return CausalAttention.seeded(3, 2, 6, torch.Generator().manual_seed(0), qkv_bias=True)


@pytest.fixture
def x():
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(1))


def weights(head, **others):
    return {name: tensor.clone() for name, tensor in head.state_dict().items()} | others


def test_a_module_gives_its_own_numbers(head, x):
    run = attend(SENTENCE, head=head, x=x)
    assert torch.equal(run.trace.context, head.trace(x).context)
    assert [t.text for t in run.tokens] == ["one", " two", " three", " four"]
    assert run.request.settings()["model"] == "own" and run.guess is None
    for other in (x.numpy(), x.tolist(), x.double()):
        assert torch.equal(attend(SENTENCE, head=head, x=other).trace.context, run.trace.context)


def test_any_module_with_three_projections_will_do(x):
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.W_query, self.W_key, self.W_value = (nn.Linear(3, 5, bias=False) for _ in range(3))

    other = Other()
    run = attend(SENTENCE, head=other, x=x, scale=False, mask="none")
    assert torch.allclose(run.trace.scores, other.W_query(x) @ other.W_key(x).T, atol=1e-6)
    assert torch.allclose(run.trace.v, other.W_value(x), atol=1e-6)


def test_settings_and_exports_work_as_with_any_model(head, x):
    run = attend(SENTENCE, head=head, x=x, pad_to=6, pad_side="left", edits=[["weights", 3, 2, 0.5]])
    plain = attend(SENTENCE, head=head, x=x)
    assert torch.equal(run.trace.x[2:], plain.trace.x) and not run.trace.x[:2].any()
    assert torch.allclose(run.trace.context[4:], plain.trace.context[2:], atol=1e-6)
    assert all(export.export(run, format) for format in export.FORMATS)
    assert run.figure("weights") and "<iframe" in run._repr_html_()
    names = {}
    exec(export.export(run, "py").decode(), names)
    assert torch.equal(names["context"], run.trace.context)


def test_characters_can_be_the_tokens(head, x):
    assert [t.text for t in attend("abcd", head=head, x=x, tokenizer="characters").tokens] == list("abcd")


def test_training_on_changes_no_result_that_is_there(head, x):
    run = attend(SENTENCE, head=head, x=x)
    before = export.export(run, "json"), export.export(run, "py")
    with torch.no_grad():
        head.W_query.weight.add_(1)
        x.add_(1)
    assert (export.export(run, "json"), export.export(run, "py")) == before
    assert not torch.equal(attend(SENTENCE, head=head, x=x).trace.scores, run.trace.scores)


def test_a_file_with_its_x_or_with_another(head, x, tmp_path):
    path = tmp_path / "head.safetensors"
    save_file(weights(head, x=x), path)
    want = attend(SENTENCE, head=head, x=x).trace.context
    assert torch.equal(attend(SENTENCE, head=path).trace.context, want)
    assert torch.equal(attend(SENTENCE, head=str(path)).trace.context, want)
    assert torch.equal(attend(SENTENCE, head=path, x=2 * x).trace.x, 2 * x)
    save_file({name: tensor for name, tensor in weights(head).items() if "bias" not in name}, path)
    assert attend(SENTENCE, head=path, x=x).trace.q.shape == (4, 2)


def refused(message, **arguments):
    with pytest.raises(ValueError, match=message):
        attend(SENTENCE, **arguments)


def test_what_does_not_fit_is_refused_with_both_numbers(head, x, tmp_path):
    refused("x has 3 rows, but the sentence has 4 words", head=head, x=x[:3])
    refused(r"x has shape \(4, 2\), but must be \(4, 3\)", head=head, x=x[:, :2])
    refused("x has shape .* 2 dimensions", head=head, x=x[None])
    refused("x holds numbers that are not finite", head=head, x=x / 0)
    refused("x is missing", head=head)
    refused("pass it as head", x=x)
    refused("not both", head=head, x=x, model="textbook")
    refused("head is str|another ending", head="nowhere.pt", x=x)
    refused("no file", head=tmp_path / "nowhere.safetensors", x=x)
    refused("head is Linear", head=nn.Linear(3, 2), x=x)
    refused("d_model cannot be set", head=head, x=x, d_model=3)
    refused("pad_to is 7", head=head, x=x, pad_to=7)


def test_a_file_is_checked_and_never_unpickled(head, x, tmp_path):
    path = tmp_path / "head.safetensors"

    def holds(**tensors):
        save_file(tensors, path)

    whole = weights(head, x=x)
    holds(**{name: t for name, t in whole.items() if name != "W_key.weight"})
    refused("W_key.weight is missing", head=path)
    holds(**whole | {"W_key.weight": torch.zeros(2, 4)})
    refused(r"W_key.weight has shape \(2, 4\), but must be \(2, 3\)", head=path)
    holds(**whole | {"W_value.bias": torch.zeros(3)})
    refused(r"W_value.bias has shape \(3,\), but must be \(2,\)", head=path)
    pickled = io.BytesIO()
    torch.save(whole, pickled)
    path.write_bytes(pickled.getvalue())
    refused("cannot be read", head=path)
    path.write_bytes(b"")
    refused("cannot be read", head=path)
