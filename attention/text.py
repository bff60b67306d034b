"""Text in, tokens out, and the one function from a token to what a person sees.

Offsets count code points of the cleaned sentence. The texts of the tokens, joined, are that sentence, character for
character; whatever must be made visible is in `label` alone. Labels are plain text: each door escapes them itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

PAD = "[PAD]"
PAD_ID = -1
EMPTY = "Type a sentence first."

# What stands for whitespace in a label, and what a screen reader says for it.
MARKS = {" ": ("␣", "space"), "\t": ("⇥", "tab"), "\n": ("⏎", "new line")}
JOINERS = "\u200c\u200d"  # zero width, but part of how emoji families and Persian words are written
BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # drawn as nothing although not of an invisible category
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Token(NamedTuple):  # a dataclass takes several times as long to make and to turn into a dict
    """One piece of the sentence. `text` is the slice start:end; a later piece of a split character has text ""."""

    index: int
    text: str
    label: str
    id: int
    start: int
    end: int
    real: bool = True


# --- cleaning --------------------------------------------------------------------------------------------------------


def is_invisible(char: str) -> bool:
    """True for what leaves no mark on paper: whitespace, controls, format characters, fillers, variation selectors."""
    return (
        unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp")
        or char in BLANK
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
        or _is_noncharacter(char)
    )


def _is_noncharacter(char: str) -> bool:
    return ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF


def clean(sentence: str) -> tuple[str, str | None]:
    """The sentence with lone surrogates and control characters replaced one for one, and a note if there were any.

    Tab and newline stay; nothing is stripped or normalised.
    """
    if sentence.isprintable():
        return sentence, None
    cleaned = "".join(map(_replacement, sentence))
    count = sum(a != b for a, b in zip(sentence, cleaned, strict=True))
    if not count:
        return cleaned, None
    what = "1 character that cannot be shown was" if count == 1 else f"{count} characters that cannot be shown were"
    return cleaned, f"{what} replaced by a visible stand-in."


def _replacement(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    if category != "Cc" or char in "\t\n":
        return char
    if char < " ":
        return chr(0x2400 + ord(char))  # the control pictures ␀ … ␟
    return "␡" if char == "\x7f" else "\ufffd"


# --- labels ----------------------------------------------------------------------------------------------------------


def label(text: str) -> str:
    """What a person sees for a piece of text: marks for whitespace, code points for what is invisible."""
    if text.isascii() and text.isprintable():
        return text.replace(" ", "␣")
    shown = []
    for i, char in enumerate(text):
        if char in MARKS:
            shown.append(MARKS[char][0])
        elif _joins(text, i):
            shown.append(char)
        elif is_invisible(char) or unicodedata.category(char) == "Co":
            shown.append(f"⟨{ord(char):04X}⟩")
        elif unicodedata.combining(char) and not shown:
            shown.append("◌" + char)
        else:
            shown.append(char)
    return "".join(shown)


def _joins(text: str, i: int) -> bool:
    """An invisible character that shapes its neighbours, as in emoji families or Persian words, and so stays itself."""
    if text[i] in JOINERS:
        return 0 < i < len(text) - 1 and not (text[i - 1] + text[i + 1]).isascii()
    return "\ufe00" <= text[i] <= "\ufe0f" and i > 0


def names(tokens: Sequence[Token]) -> list[str]:
    """Short names for axes and sentences: no leading ␣, and a subscript that counts where a name occurs repeatedly."""
    bare = [t.label.removeprefix("␣") or t.label for t in tokens]
    total, seen = Counter(bare), Counter()
    result = []
    for name in bare:
        seen[name] += 1
        result.append(name + (str(seen[name]).translate(SUBSCRIPTS) if total[name] > 1 else ""))
    return result


def bytes_label(piece: bytes) -> str:
    """What a person sees for a vocabulary entry; bytes that are no whole character by their numbers: ⟨byte F0⟩."""
    parts = re.split("([\udc80-\udcff]+)", piece.decode(errors="surrogateescape"))  # text, stray bytes, text, …
    for i in range(1, len(parts), 2):
        stray = parts[i].encode(errors="surrogateescape")
        parts[i] = f"⟨byte{'s' * (len(stray) > 1)} {stray.hex(' ').upper()}⟩"
    return "".join(part if i % 2 else label(part) for i, part in enumerate(parts))


def spoken(name: str) -> str:
    """A label as a screen reader should say it: the marks by their names."""
    if name.isalnum():
        return name
    for mark, word in MARKS.values():
        name = name.replace(mark, f" {word} ")
    return name.strip()


def shorten(name: str, length: int) -> str:
    """At most `length` characters, the middle left out; both ends stay so that repeated stems can be told apart."""
    if len(name) <= length:
        return name
    tail = (length - 1) // 3
    return name[: length - 1 - tail] + "…" + name[len(name) - tail :]


# --- tokenizers ------------------------------------------------------------------------------------------------------


def from_pieces(pieces: Iterable[str], ids: Iterable[int]) -> list[Token]:
    """Tokens from consecutive slices of the sentence."""
    tokens, start = [], 0
    for index, (text, id_) in enumerate(zip(pieces, ids, strict=True)):
        tokens.append(Token(index, text, label(text), id_, start, start + len(text)))
        start += len(text)
    return tokens


def from_bytes(sentence: str, pieces: Sequence[bytes], ids: Sequence[int]) -> list[Token]:
    """Tokens from the consecutive UTF-8 byte pieces of a byte-level tokenizer.

    A character belongs to the piece that holds its first byte; the later pieces of a split character have text "".
    Both kinds say which piece of the character they are: "🤗 1/4", "🤗 2/4".
    """
    owner_of_byte = [i for i, char in enumerate(sentence) for _ in char.encode()]  # byte → character
    first_byte: dict[int, int] = {}
    for byte, char in enumerate(owner_of_byte):
        first_byte.setdefault(char, byte)
    bounds = [0]
    for piece in pieces:
        bounds.append(bounds[-1] + len(piece))
    spans = [sorted(set(owner_of_byte[a:b])) for a, b in pairwise(bounds)]  # characters touched
    parts = Counter(char for span in spans for char in span)  # how many pieces share a character
    part: Counter[int] = Counter()
    tokens, start = [], 0
    for index, (span, id_) in enumerate(zip(spans, ids, strict=True)):
        part.update(span)
        owned = [char for char in span if first_byte[char] >= bounds[index]]
        end = start + len(owned)
        shown = label(sentence[start:end])
        if span[0] not in owned:  # the rest of a character that began in an earlier piece
            shown = f"{label(sentence[span[0]])} {part[span[0]]}/{parts[span[0]]} {shown}".rstrip()
        if owned and parts[owned[-1]] > 1:
            shown += f" {part[owned[-1]]}/{parts[owned[-1]]}"
        tokens.append(Token(index, sentence[start:end], shown, id_, start, end))
        start = end
    return tokens


@lru_cache(maxsize=1)
def _byte_of() -> dict[str, int]:
    # Byte-level tokenizers write a byte as itself where it is a printable Latin-1 character, and the others, in order,
    # as the characters from U+0100 on (Radford et al. 2019).
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(b): b for b in plain} | {chr(0x100 + i): b for i, b in enumerate(others)}


def bytes_of(piece: str) -> bytes:
    """The bytes that a vocabulary entry of a byte-level tokenizer stands for; KeyError where it is none."""
    return bytes(map(_byte_of().__getitem__, piece))


@lru_cache(maxsize=1)
def _word_pattern():
    from tokenizers import Regex, pre_tokenizers

    # A word is a run of letters, marks, digits and joiners, with apostrophes inside; any other visible character
    # (with what combines with it) stands alone; one space belongs to what follows; other whitespace stands alone.
    word = r"[\p{L}\p{M}\p{N}_](?:[\p{L}\p{M}\p{N}_]|['’\x{200c}\x{200d}](?=\p{L}))*"
    return pre_tokenizers.Split(Regex(rf" ?{word}| ?(?!\s)\X|\s"), behavior="isolated")


def words(sentence: str) -> list[str]:
    """Words and punctuation marks, each with the one space before it."""
    return [piece for piece, _ in _word_pattern().pre_tokenize_str(sentence)]


def split_words(tokens: Iterable[Token]) -> list[tuple[str, list[Token]]]:
    """The words and characters that lie in several tokens, each with these."""
    real = [t for t in tokens if t.real]
    word_at: list[int | None] = []  # by character; None at the space before a word, and at spaces that stand alone
    found = words("".join(t.text for t in real))
    for i, word in enumerate(found):
        bare = word.removeprefix(" ")
        word_at += [None] * (len(word) - len(bare)) + [i] * len(bare)
    pieces: dict[int, list[Token]] = {}
    for t in real:
        touched = word_at[t.start : t.end] if t.text else word_at[t.start - 1 : t.start]  # "" is more of a character
        for i in dict.fromkeys(touched):
            if i is not None:
                pieces.setdefault(i, []).append(t)
    return [(found[i].removeprefix(" "), parts) for i, parts in pieces.items() if len(parts) > 1]


def characters(sentence: str) -> list[str]:
    """Code points."""
    return list(sentence)


def pad(tokens: list[Token], length: int, side: str) -> list[Token]:
    """The tokens padded with [PAD] on one side to `length`; unchanged where they are as long already."""
    missing = length - len(tokens)
    if missing <= 0:
        return tokens
    end = tokens[-1].end if tokens else 0
    pads = [Token(0, "", PAD, PAD_ID, end, end, real=False)] * missing
    padded = pads + tokens if side == "left" else tokens + pads
    return [Token(i, t.text, t.label, t.id, t.start, t.end, t.real) for i, t in enumerate(padded)]
