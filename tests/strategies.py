"""Valid requests for hypothesis, as the arguments that make them."""

from __future__ import annotations

from hypothesis import strategies as st

from attention import Request, models
from attention.module import MASK_MODES

WORDS = ("Your", "journey", "starts", "with", "one", "step", "your", "STEP")
PIECES = (
    "the",
    " cat",
    " sat",
    ".",
    " ",
    "\t",
    "\n",
    "🤗",
    "❤️",
    "e\u0301",
    "漢字",
    "$a_$",
    "<b>",
    "[PAD]",
    "\u200b",
    "\x00",
)
NUMBERS = st.floats(-50, 50, width=32)


@st.composite
def settings(draw, most_tokens: int = 8):
    """A dict of arguments; `Request(**them)` is valid, edits inside the matrix included."""
    model = draw(st.sampled_from(models.NAMES))
    args = {"model": model}
    if model == "textbook":
        args["sentence"] = draw(st.sampled_from(["", " "])) + " ".join(
            draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=most_tokens))
        )
    else:
        visible = draw(st.sampled_from(PIECES[:1] + PIECES[7:12]))
        args["sentence"] = visible + "".join(draw(st.lists(st.sampled_from(PIECES), max_size=most_tokens - 1)))
    own = models.get(model)
    args["layer"] = draw(st.none() | st.integers(0, own.layers - 1))
    args["head"] = draw(st.none() | st.integers(0, own.heads - 1))
    args["mask"] = draw(st.sampled_from(MASK_MODES))
    args["scale"] = draw(st.booleans())
    args["pad_to"] = draw(st.integers(0, most_tokens + 3))
    args["pad_side"] = draw(st.sampled_from(["left", "right"]))
    args["dropout"] = draw(st.just(0.0) | st.floats(0, 0.95))
    choices = {
        "tokenizer": st.sampled_from(["auto", *own.tokenizers]),
        "head_off": st.booleans(),
        "checkpoint": st.none() | st.sampled_from(getattr(own, "checkpoints", None) or (None,)),
        "d_model": st.integers(1, 24),
        "d_head": st.integers(1, 24),
        "seed": st.integers(0, 2**32 - 1),
        "qkv_bias": st.booleans(),
        "positions": st.booleans(),
    }
    for name, strategy in choices.items():
        if name in own.options or (name == "seed" and args["dropout"]):
            args[name] = draw(strategy)
    if draw(st.booleans()):
        tokens = own.tokens(Request(**args))
        place = st.integers(0, len(tokens) - 1)
        edit = st.tuples(st.sampled_from(["scores", "weights"]), place, place, NUMBERS)
        args["edits"] = draw(st.lists(edit, max_size=4))
    return args
