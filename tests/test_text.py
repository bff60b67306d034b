"""Text in, tokens out: nothing is lost, nothing invisible stays invisible."""

import json
import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attention import text

HARD = json.loads((Path(__file__).parent / "data" / "hard_inputs.json").read_text(encoding="utf-8"))

# Any code point of any plane, lone surrogates included, with the awkward ones drawn often.
AWKWARD = "\ud83d\udc00\u200b\u200c\u200d\ufe0f\u0301\u0000\u000b\r\n\t \u00a0\u2028\u3164\ufffe\ufffd"
AWKWARD += "\U000e0001\U0010ffff🤗👩漢é'’"
ANY_TEXT = st.text(st.one_of(st.characters(), st.sampled_from(AWKWARD)), max_size=30)
CUTS = st.lists(st.integers(0, 10**6), max_size=25)


def clean(sentence):
    return text.clean(sentence)[0]


def pieces_of(raw, cuts):
    """The bytes `raw` in consecutive non-empty pieces."""
    bounds = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
    return [raw[a:b] for a, b in pairwise(bounds)]


def assert_shown(label, source):
    assert label
    for char in label:
        category = unicodedata.category(char)
        assert category not in ("Cc", "Cs", "Zs", "Zl", "Zp", "Co"), (label, char)
        if category == "Cf":  # only what joins two visible characters may stay
            assert char in "\u200c\u200d" and char not in (label[0], label[-1])
    assert "\ufffd" not in label or "\ufffd" in source


# --- cleaning --------------------------------------------------------------------------------------------------------


@given(ANY_TEXT)
def test_cleaning_replaces_one_for_one_and_nothing_else(sentence):
    cleaned, note = text.clean(sentence)
    assert len(cleaned) == len(sentence)
    changed = [(a, b) for a, b in zip(sentence, cleaned, strict=True) if a != b]
    for a, _ in changed:
        assert unicodedata.category(a) in ("Cc", "Cs") and a not in "\t\n"
    for char in cleaned:
        assert unicodedata.category(char) not in ("Cc", "Cs") or char in "\t\n"
    assert (note is None) == (not changed)
    if changed:
        assert note.startswith(f"{len(changed)} character")
    assert text.clean(cleaned) == (cleaned, None)
    cleaned.encode()  # no lone surrogate is left


def test_every_control_character_gets_a_stand_in_of_its_own_where_there_is_one():
    controls = [chr(c) for c in range(32) if chr(c) not in "\t\n"] + ["\x7f"]
    shown = clean("".join(controls))
    assert len(set(shown)) == len(controls) and "\ufffd" not in shown
    assert shown.startswith("␀␁") and shown.endswith("␟␡")


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenize", [text.words, text.characters])
@given(sentence=ANY_TEXT)
@example(sentence="\r\n \u0301\u200d")
@example(sentence="🇩🇪🇫🇷 👩‍👩‍👧‍👦")
def test_the_texts_join_to_the_sentence(tokenize, sentence):
    sentence = clean(sentence)
    pieces = tokenize(sentence)
    assert "".join(pieces) == sentence and all(pieces)
    tokens = text.from_pieces(pieces, range(len(pieces)))
    for i, token in enumerate(tokens):
        assert (token.index, token.id, token.real) == (i, i, True)
        assert sentence[token.start : token.end] == token.text
        assert_shown(token.label, token.text)


@given(ANY_TEXT, CUTS)
@example("a🤗b", [2, 3, 4])
@example("🤗🤗", [1, 5, 6])
@example("é🤗", [1, 4])
def test_byte_pieces_join_to_the_sentence_wherever_the_bytes_are_cut(sentence, cuts):
    sentence = clean(sentence)
    raw = sentence.encode()
    pieces = pieces_of(raw, cuts)
    tokens = text.from_bytes(sentence, pieces, range(len(pieces)))
    assert len(tokens) == len(pieces) and "".join(t.text for t in tokens) == sentence
    position = 0
    for i, (token, piece) in enumerate(zip(tokens, pieces, strict=True)):
        assert (token.index, token.id) == (i, i) and sentence[token.start : token.end] == token.text
        # a character belongs to the piece that holds its first byte (one that is no continuation byte)
        assert len(token.text) == sum(byte & 0xC0 != 0x80 for byte in piece)
        position += len(piece)
        for part in token.label.split(" "):
            assert_shown(part, sentence)
    assert position == len(raw)


def test_the_pieces_of_one_character_say_so():
    tokens = text.from_bytes("a🤗b", [b"a\xf0", b"\x9f", b"\xa4\x97b"], [1, 2, 3])
    assert [t.text for t in tokens] == ["a🤗", "", "b"]
    assert [t.label for t in tokens] == ["a🤗 1/3", "🤗 2/3", "🤗 3/3 b"]
    assert [(t.start, t.end) for t in tokens] == [(0, 2), (2, 2), (2, 3)]
    whole = text.from_bytes("🤗!", [b"\xf0\x9f\xa4\x97", b"!"], [1, 2])
    assert [t.label for t in whole] == ["🤗", "!"]


@pytest.mark.parametrize("case", HARD["sentences"], ids=lambda case: case["id"])
def test_hard_sentences_get_these_labels(case):
    sentence, note = text.clean(case["text"])
    assert bool(note) == case.get("note", False)
    for name in ("words", "characters"):
        if name in case:
            pieces = getattr(text, name)(sentence)
            assert [text.label(piece) for piece in pieces] == case[name]


def test_words():
    assert text.words("It's 3.5 o’clock, well-known_name!") == [
        "It's", " 3", ".", "5", " o’clock", ",", " well", "-", "known_name", "!",
    ]  # fmt: skip
    assert text.words("a  b") == ["a", " ", " b"]
    assert text.words("don't 'quote'") == ["don't", " '", "quote", "'"]


def test_split_words():
    def split(*pieces):
        sentence = b"".join(pieces).decode()
        found = text.split_words(text.from_bytes(sentence, pieces, range(len(pieces))))
        return [(word, [t.index for t in parts]) for word, parts in found]

    assert split(b"My", b" o", b"w", b"l", b".") == [("owl", [1, 2, 3])]
    assert split(b"a", b" ", b"cat", b".", b" The", b"\n\n", b'."') == []
    assert split(b" \xf0\x9f", b"\xa4\x97", b"!") == [("🤗", [0, 1])]
    assert split(b"n", b"a\xc3", b"\xaf", b"ve b") == [("naïve", [0, 1, 2, 3])]
    assert split("\u00a0".encode()[:1], "\u00a0".encode()[1:]) == [("\u00a0", [0, 1])]
    tokens = text.from_bytes("an owl", [b"an", b" o", b"wl"], [1, 2, 3])
    assert [[t.index for t in parts] for _, parts in text.split_words(text.pad(tokens, 5, "left"))] == [[3, 4]]


# --- labels, names ---------------------------------------------------------------------------------------------------


@given(st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(AWKWARD[2:])), min_size=1))
def test_a_label_shows_every_character(piece):
    assert_shown(text.label(clean(piece)), clean(piece))


@pytest.mark.parametrize(
    "char", [chr(c) for c in (0x200B, 0xAD, 0x2060, 0xFEFF, 0x3000, 0x2028, 0x202E, 0xE0041, 0xE000)]
)
def test_what_leaves_no_mark_is_shown_by_its_code_point(char):
    assert text.label(char) == f"⟨{ord(char):04X}⟩"
    assert text.label(f"a{char}b") == f"a⟨{ord(char):04X}⟩b"


def test_different_short_texts_have_different_labels():
    pieces = ["a", " a", "a ", "\ta", "\na", "a\u200b", "\u00a0a", "\u2009a", "a\u0301", "á"]
    assert len({text.label(p) for p in pieces}) == len(pieces)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4), CUTS)
def test_a_piece_of_a_vocabulary_shows_its_text_and_the_numbers_of_stray_bytes(sentence, cuts):
    for piece in pieces_of(sentence.encode(), cuts):
        label = text.bytes_label(piece)
        try:
            assert label == text.label(piece.decode())
        except UnicodeDecodeError:
            stray = bytes.fromhex("".join(re.findall(r"⟨bytes? ([0-9A-F ]+)⟩", label)))
            assert stray and all(byte > 0x7F for byte in stray) and stray[:1] in piece
            assert "\ufffd" not in label or "\ufffd" in sentence


def test_stray_bytes_have_readable_labels():
    assert text.bytes_label(b"\xf0") == "⟨byte F0⟩"
    assert text.bytes_label(b" \xf0\x9f") == "␣⟨bytes F0 9F⟩"
    assert text.bytes_label(b"\xa4\x97b\xc3") == "⟨bytes A4 97⟩b⟨byte C3⟩"
    assert text.bytes_label(b"\xef\xbf\xbd") == "\ufffd"  # that character itself, which a vocabulary may hold


def tokens_of(*pieces):
    return text.from_pieces(pieces, range(len(pieces)))


def test_names_count_what_repeats():
    assert text.names(tokens_of("the", " cat", " saw", " the", " cat")) == ["the₁", "cat₁", "saw", "the₂", "cat₂"]
    assert text.names(tokens_of(" ", "a", " ")) == ["␣₁", "a", "␣₂"]
    many = text.names(tokens_of(*"x" * 11))
    assert many[0] == "x₁" and many[-1] == "x₁₁" and len(set(many)) == 11
    assert text.names(text.pad(tokens_of("[PAD]"), 3, "left")) == ["[PAD]₁", "[PAD]₂", "[PAD]₃"]


@given(st.lists(st.sampled_from(["a", " a", "b", " ", "\n", "\u200b"]), min_size=1, max_size=15))
def test_names_tell_every_token_apart(pieces):
    names = text.names(tokens_of(*pieces))
    assert len(set(names)) == len(pieces)


@pytest.mark.parametrize(("label", "says"), [("␣cat", "space cat"), ("⇥", "tab"), ("⏎", "new line"), ("a␣", "a space")])
def test_marks_have_spoken_names(label, says):
    assert " ".join(text.spoken(label).split()) == says


@given(st.text(max_size=40), st.integers(1, 30))
def test_shorten(name, length):
    short = text.shorten(name, length)
    assert len(short) <= length
    if len(name) <= length:
        assert short == name
    else:
        head, tail = short.split("…", 1) if "…" not in name else (short[0], "")
        assert len(short) == length and name.startswith(head) and name.endswith(tail)


def test_shorten_keeps_both_ends():
    assert text.shorten("international", 9) == "intern…al"
    assert text.shorten("a" * 300, 12) == "aaaaaaaa…aaa"


# --- padding ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["a", " b", "漢"]), min_size=1, max_size=6), st.integers(0, 12))
def test_pad(pieces, length):
    tokens, end = tokens_of(*pieces), len("".join(pieces))
    for side in ("left", "right"):
        padded = text.pad(tokens, length, side)
        assert len(padded) == max(len(tokens), length)
        assert [t.index for t in padded] == list(range(len(padded)))
        real = [t for t in padded if t.real]
        assert [(t.text, t.label, t.id, t.start, t.end) for t in real] == [
            (t.text, t.label, t.id, t.start, t.end) for t in tokens
        ]
        pads = [t for t in padded if not t.real]
        assert all((t.text, t.label, t.start, t.end) == ("", "[PAD]", end, end) for t in pads)
        assert padded[: len(pads)] == pads if side == "left" else padded[len(real) :] == pads


def test_a_typed_pad_is_ordinary_text():
    tokens = text.from_pieces(text.words("[PAD] a"), range(4))
    assert all(t.real for t in tokens) and "".join(t.text for t in tokens) == "[PAD] a"
