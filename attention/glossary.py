"""The terms of the field that the lesson uses, each explained in one sentence, and which of them a step uses."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .compute import Result
    from .lesson import Step

# Terms of the field that sentences and formulas use: (what shows that one is used, what it means).
GLOSSARY = {
    "token": (r"\btokens?\b", "A piece of the sentence: a word, a part of a word, or a mark."),
    "head": (
        r"\bheads?\b",
        "One unit of attention with weights of its own; a large model has many, side by side and in layers.",
    ),
    "embedding": (
        r"\bembeddings?\b",
        "The row of numbers that stands for a token, the same wherever the token occurs.",
    ),
    "residual stream r": (
        r"\bstream\b|\br\b",
        "One row of numbers for each token that runs through the whole model: every part reads it and adds to it.",
    ),
    "layer norm": (
        r"\bnorm\b",
        "Brings a row to mean 0 and spread 1, then multiplies each number by a learned gain and adds a learned bias.",
    ),
    "value": (
        r"\bvalues?\b",
        "A third row made from x, beside query and key: v = x · W_valueᵀ, what a token gives to those who look at it.",
    ),
    "softmax": (
        r"\bsoftmax\b",
        "Turns numbers into shares that add up to 1: e to the power of each, divided by the sum of all those powers.",
    ),
    "dropout": (r"\bdropout\b", "Strikes out some weights at random and enlarges the others, as is done in training."),
    "output projection": (r"\boutput projection\b", "Turns what all heads of a layer found into one row as wide as r."),
    "MLP": (r"\bMLP\b", "A small network after the heads of each layer; it works on every row by itself."),
    "output layer": (
        r"\boutput layer\b",
        "Multiplies the last row with one learned row for each token of the vocabulary: one logit for each.",
    ),
    "logit": (
        r"\blogits?\b",
        "A number for how well a token would follow; softmax turns all of them into probabilities.",
    ),
    "byte": (r"⟨bytes? ", "A computer stores a character as one to four bytes; a token may hold only some of them."),
}


def terms(step: Step, result: Result, *said: str) -> list[str]:
    """The terms of the glossary that the page uses at a step, where it says `said`."""
    if step.name == "next" and result.guess:
        said += (f"logit softmax {' '.join(result.guess.labels)}",)  # the arithmetic of a guess
    used: set[str] = set()
    found = set().union(*map(_named, said))
    while not found <= used:  # what one term means may use another
        used |= found
        found = set().union(*(_named(GLOSSARY[term][1]) for term in used))
    return [term for term in GLOSSARY if term in used]


@lru_cache(maxsize=256)  # most sentences come again with every run
def _named(said: str) -> frozenset[str]:
    return frozenset(term for term, (pattern, _) in GLOSSARY.items() if re.search(pattern, said, re.IGNORECASE))
