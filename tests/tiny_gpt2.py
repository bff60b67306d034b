"""A small GPT-2 with random weights, made with `transformers` and saved as the real one is: same files, same layout."""

from __future__ import annotations

import json
import logging
from pathlib import Path

TEXT = [
    "The cat sat on the mat. The cat saw the other cat, and the cat ran.",
    "Don't look back in anger, I heard you say.",
]
CONTEXT = 64


def make(folder: Path, seed: int = 0, layers: int = 3, heads: int = 4, width: int = 24) -> Path:
    """Context 64, a byte-level vocabulary of its own."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"])
    )
    folder.mkdir(parents=True, exist_ok=True)
    bpe.save(str(folder / "tokenizer.json"))
    size = bpe.get_vocab_size()
    config = GPT2Config(
        n_layer=layers, n_head=heads, n_embd=width, n_positions=CONTEXT, vocab_size=size, bos_token_id=0, eos_token_id=0
    )
    lm = GPT2LMHeadModel(config)
    generator = torch.Generator().manual_seed(seed)
    for name, weight in lm.named_parameters():  # large enough that heads differ and biases matter
        gain = name.endswith("weight") and ".ln_" in name
        weight.data.normal_(1.0 if gain else 0.0, 0.3, generator=generator)
    lm.save_pretrained(folder, safe_serialization=True)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    assert json.loads((folder / "config.json").read_text())["n_layer"] == layers
    return folder
