"""The shipped small model does what is said of it: recomputed from the files in float64, by the oracle's formulas."""

import json
import math
import re

import numpy as np
import oracle
import pytest
import torch
from safetensors import safe_open

from attention import train
from attention.models import trained

FOLDER = trained.FOLDER
REPORT = json.loads((FOLDER / "report.json").read_text(encoding="utf-8"))
STEPS = [entry["step"] for entry in REPORT["checkpoints"]]
DEMO = "The cat sat. The cat"

# What begins again, and how it must go on. None of it is in the training text.
SENTENCES = [
    ("The cat sat. The cat", " sat"),
    ("The cat sat on the mat. The cat sat on the", " mat"),
    ("The blicket saw the wug. The blicket saw the", " wug"),
    ("Don't look back in anger, don't look back", " in"),
    ("red blue green red blue green red blue", " green"),
    ("My dog ran. My dog", " ran"),
    ("Bob sings. Bob", " sings"),
    ("Anna likes tea. Anna likes", " tea"),
    ("A bird flew away. A bird flew", " away"),
    ("Your train leaves at nine. Your train leaves at", " nine"),
    ("Maria plays chess with Tom. Maria plays chess with", " Tom"),
    ("We paint houses. We paint", " houses"),
    ("one two three four one two three", " four"),
    ("Please close the window! Please close the", " window"),
    ("Where is my hat? Where is my", " hat"),
    ("Doctor Zorblax smiled, and then Doctor", " Zorblax"),
    ("The dax gave a fep to Lina. The dax gave a", " fep"),
    ("Snow falls in winter; snow falls in", " winter"),
    ("Every robot dreams. Every robot", " dreams"),
    ("Green apples taste sour. Green apples taste", " sour"),
    ("sun moon star sun moon star sun moon", " star"),
    ("They built a rocket. They built a", " rocket"),
    ("Mister Quimby lost his keys. Later Mister Quimby lost his", " keys"),
    ("Coffee is hot. Coffee is", " hot"),
    ("Jazz bands play loud music. Jazz bands play loud", " music"),
    ("He reads books, she writes letters, he reads", " books"),
    ("Time flies like an arrow. Time flies like an", " arrow"),
    ("The old clock stopped. The old clock", " stopped"),
    ("Birds sing. Birds", " sing"),
    ("I love pizza. I love", " pizza"),
    ("The computer beeped twice. The computer beeped", " twice"),
    ("left right up down left right up", " down"),
    ("Nobody knows the answer, nobody knows the", " answer"),
    ("a b c d a b c", " d"),
    ("The glorp ate seven snibs. The glorp ate seven", " snibs"),
    ("Rain, rain, go away. Rain, rain, go", " away"),
]


@pytest.fixture(scope="module", params=STEPS)
def checkpoint(request):
    return request.param


def ids(text):
    return trained.tokenizer().encode(text).ids


def normed(r, norm):
    mean, variance = r.mean(-1, keepdims=True), r.var(-1, keepdims=True)
    return (r - mean) / np.sqrt(variance + norm.eps) * norm.weight.double().numpy() + norm.bias.double().numpy()


def run(tokens, step=None, off=()):
    """The model by the literal formulas, float64: each layer's weights (T, T), and next-token probabilities (T, V)."""
    model = trained.load(step)
    embedding = model.embedding.weight.double().numpy()
    r = embedding[tokens] + model.position.weight.double().numpy()[: len(tokens)]
    weights = []
    for layer, (head, norm) in enumerate(zip(model.heads, model.norms, strict=True)):
        tensors = oracle.attention(head, normed(r, norm))
        weights.append(tensors["weights"])
        if layer not in off:
            r = r + tensors["context"]
    logits = normed(r, model.norm) @ embedding.T
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return weights, shares / shares.sum(-1, keepdims=True)


def segments(count=12, length=40, seed=20_24):
    """Random tokens, a segment and the same again; drawn from another generator than training draws from."""
    draw = np.random.default_rng(seed)
    return [np.tile(draw.choice(trained.tokenizer().get_vocab_size(), length, replace=False), 2) for _ in range(count)]


def copying(step=None):
    """Means over repeated random tokens: layer 1's weight on what followed, correct guesses, layer 0 on the one before.

    The last is the share of all positions but the first where the token before has the largest weight.
    """
    weight, right, before = [], [], []
    for tokens in segments():
        (first, second), shares = run(tokens, step)
        T = len(tokens)
        query = np.arange(T // 2, T - 1)
        weight.append(second[query, query - T // 2 + 1].mean())
        right.append((shares[query].argmax(-1) == tokens[query + 1]).mean())
        before.append((first[1:].argmax(-1) == np.arange(T - 1)).mean())
    return np.mean(weight), np.mean(right), np.mean(before)


def test_the_demo_sentence_is_six_whole_words():
    tokenizer = trained.tokenizer()
    assert [tokenizer.decode([i]) for i in ids(DEMO)] == ["The", " cat", " sat", ".", " The", " cat"]


def test_the_demo_sentence_goes_on_by_looking_back():
    sat = ids(" sat")[0]
    (first, second), shares = run(ids(DEMO))
    assert second[-1, 2] >= 0.9
    assert shares[-1, sat] >= 0.8
    assert first[2].argmax() == 1 and first[2, 1] > 0.5
    assert run(ids(DEMO), off=(1,))[1][-1, sat] < 0.2


def test_it_copies_random_tokens_it_never_saw_in_that_order():
    weight, right, before = copying()
    assert weight >= 0.9 and right >= 0.97 and before > 0.8


def test_it_continues_what_begins_again():
    wrong = []
    for text, expected in SENTENCES:
        guess = run(ids(text))[1][-1].argmax()
        # The first piece of the word where it stood before: what the model can have copied.
        if guess != ids(text + expected)[len(ids(text))]:
            wrong.append((text, trained.tokenizer().decode([guess])))
    assert len(wrong) <= 0.1 * len(SENTENCES), wrong
    assert not {text for text, _ in wrong} & {text for text, _ in SENTENCES[:5]}


def test_the_copying_forms_suddenly_and_at_the_start_there_is_none():
    scores = [copying(step)[0] for step in STEPS]
    assert scores[0] < 0.1 < 0.8 < scores[-1]
    assert any(early < 0.1 and max(scores[n + 1 : n + 4]) > 0.8 for n, early in enumerate(scores[:-1]))


def test_untrained_weights_spread_over_everything(checkpoint):
    if checkpoint == 0:
        shares = run(ids(DEMO), 0)[1]
        assert shares.max() < 0.05


def test_the_report_is_what_the_files_do(checkpoint):
    entry = next(e for e in REPORT["checkpoints"] if e["step"] == checkpoint)
    (first, second), shares = run(ids(DEMO), checkpoint)
    assert entry["demo_weight"] == pytest.approx(second[-1, 2], abs=2e-3)
    assert entry["demo_previous"] == pytest.approx(first[2, 1], abs=2e-3)
    assert entry["demo_guess"] == pytest.approx(shares[-1, ids(" sat")[0]], abs=2e-3)
    assert entry["copying"] == pytest.approx(copying(checkpoint)[0], abs=0.1)  # other random tokens
    assert entry["loss"] < REPORT["checkpoints"][0]["loss"] or checkpoint == 0


def test_the_module_computes_what_the_formulas_say(checkpoint):
    model, tokens = trained.load(checkpoint), ids("Time flies like an arrow. Time flies")
    probabilities = model(torch.tensor([tokens])).softmax(-1)[0]
    np.testing.assert_allclose(probabilities.numpy(), run(tokens, checkpoint)[1], atol=2e-5)


def test_padding_moves_nothing():
    model, tokens = trained.load(), ids(DEMO)
    plain = model(torch.tensor([tokens]))[0]
    padded = torch.tensor([[0, 0, *tokens, 0]])
    real = torch.tensor([[False, False, *[True] * len(tokens), False]])
    torch.testing.assert_close(model(padded, real)[0, 2:-1], plain, atol=1e-4, rtol=1e-4)


def test_a_longer_text_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"129.*128"):
        trained.load()(torch.zeros(1, 129, dtype=torch.long))


def test_an_unknown_checkpoint_is_refused_naming_the_ones_there_are():
    with pytest.raises(ValueError, match=rf"7.*{STEPS[-1]}"):
        trained.load(7)


def test_every_character_is_some_token():
    text = "Ωμέγα 🤗 naïve\tcafé\n你好"
    assert trained.tokenizer().decode(ids(text)) == text


def test_sizes():
    files = sorted(FOLDER.glob("step-*.safetensors"))
    assert [f.name for f in files] == [f"step-{step:05d}.safetensors" for step in STEPS]
    assert 6 <= len(files) <= 10 and STEPS[0] == 0 and sorted(STEPS) == STEPS
    sizes = [f.stat().st_size for f in FOLDER.iterdir()]
    assert max(sizes) <= 8e6 and sum(sizes) <= 12e6
    with safe_open(files[-1], "pt") as weights:
        tensors = [weights.get_tensor(name) for name in weights.keys()]  # noqa: SIM118
    assert {t.dtype for t in tensors} == {torch.float16}
    assert sum(t.numel() for t in tensors) == REPORT["parameters"] <= 590_000
    assert sum(p.numel() for p in trained.load().parameters()) == REPORT["parameters"]


def test_the_model_card_tells_the_reported_numbers():
    """Every row of its table of checkpoints, and the command with the reported number of steps."""
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    names = re.search(r"^\| (step .*) \|$", card, re.M)[1].split(" | ")
    rows = [row.split(" | ") for row in re.findall(r"^\| (\d.*) \|$", card, re.M)]
    assert [int(row[0]) for row in rows] == STEPS
    for row, entry in zip(rows, REPORT["checkpoints"], strict=True):
        told = dict(zip((n.strip("`") for n in names), row, strict=True))
        assert {n: float(told[n]) for n in told} == {n: round(entry[n], 2) for n in told}
    assert f"--steps {REPORT['steps']} --seed {REPORT['seed']}" in card
    assert f"{REPORT['parameters']:,} parameters" in card


# --- training --------------------------------------------------------------------------------------------------------

TINY = dict(vocabulary=300, width=16, context_length=24, batch=4)
TEXT = "The hen ran home. The fox ran after it, and the hen ran on.\nA fox is not a friend.\n" * 40


def test_the_same_seed_trains_the_same_weights(tmp_path):
    before = torch.random.get_rng_state()
    reports = [
        train.train(TEXT, tmp_path / name, steps=6, seed=seed, **TINY)
        for name, seed in zip("abc", (3, 3, 4), strict=True)
    ]
    assert torch.equal(before, torch.random.get_rng_state())
    a, b, c = ({f.name: f.read_bytes() for f in (tmp_path / name).glob("*.safetensors")} for name in "abc")
    assert a == b and a["step-00006.safetensors"] != c["step-00006.safetensors"]
    assert (tmp_path / "a" / "tokenizer.json").read_bytes() == (tmp_path / "b" / "tokenizer.json").read_bytes()
    assert reports[0]["checkpoints"] == reports[1]["checkpoints"]
    assert all(math.isfinite(entry["loss"]) for entry in reports[0]["checkpoints"])


def test_training_lowers_the_loss(tmp_path):
    first, *_, last = train.train(TEXT, tmp_path, steps=60, rate=0.02, warmup=5, **TINY)["checkpoints"]
    assert (first["step"], last["step"]) == (0, 60) and last["loss"] < first["loss"] - 0.3


def test_rows_tell_what_can_be_known(tmp_path):
    """In rows of random segments whatever is to be learnt followed an earlier occurrence of the same token."""
    tokenizer = train.train_tokenizer(TEXT.splitlines(), 300)
    tokens = [i for line in TEXT.splitlines() for i in tokenizer.encode(" " + line).ids]
    recipe = dict(context_length=64, natural=0.0, sentences=0.0)
    now, after, learnt = train.Rows(tokens, tokenizer, recipe, torch.Generator().manual_seed(0)).batch(16)
    assert torch.equal(now[:, 1:], after[:, :-1]) and 0.2 < learnt.float().mean() < 0.9
    for row, following, learn in zip(now.tolist(), after.tolist(), learnt.tolist(), strict=True):
        pairs = list(zip(row, following, strict=True))
        assert all(pair in pairs[:n] for n, pair in enumerate(pairs) if learn[n])
