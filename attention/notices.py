"""Sentences about the very example on screen, computed from its numbers; none is written in advance."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .compute import Result


def last_real(result: Result) -> int:
    """The row of the last real token: the one that the next word is guessed from."""
    return max(t.index for t in result.tokens if t.real)


def best_key(result: Result, row: int) -> int:
    """The key with the largest weight in a row; the first of equal ones."""
    return int(result["weights"][row].argmax())


def percent(share: float) -> str:
    """A share for a sentence; never rounded to 0 % or 100 % where it is neither."""
    if 0.995 <= share < 1:
        return "over 99 %"
    return "under 1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")


def headline(result: Result) -> str:
    """What the chosen head does for the last token, in one sentence."""
    names, row = result.names, last_real(result)
    weights = result["weights"][row]
    if not weights.any():
        return f"{names[row]} may look nowhere: its weights are all zero."
    key = best_key(result, row)
    start = f"To guess the next word, {names[row]}" if result.guess else names[row]
    share = float(weights[key])
    if len(result.tokens) == 1:
        return f"{names[row]} is alone, so all its attention stays with itself."
    if share >= 0.5:
        if key == row:
            return f"{start} looks at itself."
        return f"{start} looks back at {names[key]}." if key < row else f"{start} looks ahead at {names[key]}."
    seen = int((weights > 0).sum())
    target = "itself" if key == row else names[key]
    return f"{start} spreads its attention over {seen} tokens; most of it, {percent(share)}, goes to {target}."


def notices(result: Result) -> dict[str, str]:
    """One thing to notice at each step, by the step's name."""
    steps = (_tokens, _x, _qk, _scores, _scaled, _masked, _weights, _context, _next)
    return {step.__name__[1:]: step(result) for step in steps}


def _tokens(result: Result) -> str:
    T, repeated = len(result.tokens), Counter(t.text for t in result.tokens if t.real and t.text)
    text, count = max(repeated.items(), key=lambda item: item[1])
    if count < 2:
        return f"{T} tokens, every one different." if T > 1 else "One token: it can only look at itself."
    same = [result.names[t.index] for t in result.tokens if t.text == text]
    return f"{_list(same[:4])} are the same token: only their place tells them apart."


def _x(result: Result) -> str:
    x, tokens = result["x"], [t for t in result.tokens if t.real]
    for i, a in enumerate(tokens):
        for b in tokens[i + 1 :]:
            if a.id == b.id:
                gap = float(np.abs(x[a.index] - x[b.index]).max())
                pair = f"{result.names[a.index]} and {result.names[b.index]}"
                if gap == 0:
                    return f"{pair} have the same row: nothing here says where they stand."
                return f"{pair} are the same token, yet their rows differ by up to {gap:.2f}: the place is in the numbers too."
    return f"{len(tokens)} rows of {x.shape[1]} numbers, no two tokens the same."


def _qk(result: Result) -> str:
    row = last_real(result)
    q, k = result["q"][row], result["k"][row]
    cosine = float(q @ k / max(np.linalg.norm(q) * np.linalg.norm(k), 1e-30))
    return (
        f"{result.names[row]} asks for one thing and offers another: "
        f"the angle between its own query and key is {np.degrees(np.arccos(np.clip(cosine, -1, 1))):.0f}°."
    )


def _scores(result: Result) -> str:
    scores, row = result["scores"], last_real(result)
    if len(scores) == 1:
        return "One token, one score."
    column = int(scores[row].argmax()) if scores[row].argmax() != row else int(np.argsort(scores[row])[-2])
    a, b = result.names[row], result.names[column]
    return (
        f"Looking is not mutual: {a} scores {scores[row, column]:.2f} with {b}, but {b} scores "
        f"{scores[column, row]:.2f} with {a}."
    )


def _scaled(result: Result) -> str:
    before, after = float(result["scores"].std()), float(result["scaled"].std())
    if not result.request.scale:
        return f"The scores spread by {before:.2f} (standard deviation), undivided."
    return f"The scores spread by {before:.2f} (standard deviation); after the division by {after:.2f}."


def _masked(result: Result) -> str:
    hidden = int(np.isneginf(result["masked"]).sum())
    T, names, row = len(result.tokens), result.names, last_real(result)
    seen = int(result.trace.visible[row].sum())
    if result.request.mask != "causal":
        extra = f" {hidden} numbers belong to padding." if hidden else ""
        return f"Row {names[0]} keeps all its numbers, the future's too.{extra}"
    first = next(t.index for t in result.tokens if t.real)
    return f"{hidden} of {T * T} numbers are gone. {names[first]} sees only itself, {names[row]} sees {seen}."


def _weights(result: Result) -> str:
    weights, row, names = result["weights"], last_real(result), result.names
    totals = weights.sum(axis=1)
    if result.request.mask == "after" and totals[0] < 0.999:
        return f"Row {names[0]} adds up to {totals[0]:.2f} only: {1 - totals[0]:.2f} leaked to words in its future."
    key = best_key(result, row)
    share = float(weights[row, key])
    first = next(t.index for t in result.tokens if t.real)
    text = f"{names[row]} gives {percent(share)} to {'itself' if key == row else names[key]}."
    if weights[first, first] == 1 and row != first:
        text += f" {names[first]} can look only at itself, so it gives itself all."
    return text


def _context(result: Result) -> str:
    row, names = last_real(result), result.names
    key = best_key(result, row)
    context, v = result["context"][row], result["v"][key]
    gap = float(np.abs(context - v).max())
    share = float(result["weights"][row, key])
    return (
        f"{names[row]}'s context is {percent(share)} the value of {names[key]}; "
        f"no number of it is further than {gap:.2f} from that value's."
    )


def _next(result: Result) -> str:
    if result.guess is None:
        return ""
    guess = result.guess
    return f"First guess: {guess.labels[0]}, {percent(guess.probabilities[0])}."


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
