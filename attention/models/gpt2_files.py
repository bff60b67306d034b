"""GPT-2's files: fetched from the Hugging Face Hub on first use, or from a local folder; nothing is kept of a failure.

Whatever is wrong with them is said in one sentence, a ValueError, and the next call tries again.
"""

from __future__ import annotations

import json
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import GPT2LMHeadModel

REPOSITORY = "openai-community/gpt2"
REVISION = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
FOLDER = "ATTENTION_GPT2"  # environment variable: a local folder with the three files
FILES = ("config.json", "tokenizer.json", "model.safetensors")
SIZES = {"n_layer": 12, "n_head": 12, "n_positions": 1024}  # of that revision, so that nothing need be fetched for them
PATIENCE = 3  # seconds that the hub may take to answer


def sizes() -> dict[str, int]:
    """Layers, heads and context: a local folder's, else the published model's. Loads nothing."""
    try:
        return _sizes(os.environ[FOLDER]) if os.environ.get(FOLDER) else SIZES
    except (OSError, ValueError, KeyError, TypeError):
        return SIZES  # what is wrong with the folder is said when it is loaded


@lru_cache(maxsize=4)
def _sizes(folder: str) -> dict[str, int]:
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    return {name: int(config[name]) for name in SIZES}


def _kept(name: str) -> Path | None:
    """The file in the hub's cache."""
    import huggingface_hub as hub

    kept = hub.try_to_load_from_cache(REPOSITORY, name, revision=REVISION)
    return Path(kept) if isinstance(kept, str) else None


# Bytes so far and in all of the file that is being fetched. One for the process: whoever waits waits for the same one.
fetched: tuple[int, int] | None = None


def _bar() -> type:
    """The hub's progress bar, which says in `fetched` how far it is, whether it is drawn or not."""
    from huggingface_hub.utils import tqdm

    class Bar(tqdm):
        def __init__(self, *args, **kwargs) -> None:
            super().__init__(*args, **kwargs)
            self.tell()

        def update(self, n: float = 1) -> None:
            if self.disable:  # then it counts nothing
                self.n += n
            super().update(n)
            self.tell()

        def tell(self) -> None:
            global fetched
            if self.total:  # the hub may have two bars for a file, for what arrived and for what is on the disk
                before = fetched[0] if fetched and fetched[1] == self.total else 0
                fetched = max(before, int(self.n)), int(self.total)

    return Bar


def locate(name: str) -> Path:
    """Where the file is: in the local folder, or in the hub's cache, fetched if need be."""
    global fetched
    if folder := os.environ.get(FOLDER):
        path = Path(folder) / name
        if not path.is_file():
            raise ValueError(f"The folder that {FOLDER} names has no {name}; it must hold {', '.join(FILES)}.")
        return path
    if kept := _kept(name):
        return kept
    import huggingface_hub as hub

    try:  # one question first, not repeated: the download itself would insist for half a minute
        hub.get_hf_file_metadata(hub.hf_hub_url(REPOSITORY, name, revision=REVISION), timeout=PATIENCE)
        return Path(hub.hf_hub_download(REPOSITORY, name, revision=REVISION, etag_timeout=PATIENCE, tqdm_class=_bar()))
    except Exception as error:  # the hub's own, httpx's, the system's: all mean that the file is not here
        raise ValueError(
            f"GPT-2 is not on this computer and could not be fetched from the Hub ({type(error).__name__}): "
            f"try again when there is internet, or let {FOLDER} name a folder that holds it."
        ) from error
    finally:
        fetched = None


def broken(error: Exception) -> ValueError:
    where = f"The folder that {FOLDER} names" if os.environ.get(FOLDER) else "The copy of GPT-2 in the hub's cache"
    return ValueError(f"{where} holds no whole GPT-2 ({type(error).__name__}): fetch its files anew.")


def tokenizer() -> Tokenizer:
    """The checkpoint's own byte-level BPE, in which everything that is typed is ordinary text."""
    return _tokenizer(locate("tokenizer.json"))


@lru_cache(maxsize=2)
def _tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        read = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise broken(error) from error
    read.encode_special_tokens = True  # "<|endoftext|>" is text like any other
    read.no_truncation()
    read.no_padding()
    return read


_loading = threading.Lock()


def _unlocked() -> None:
    global _loading
    _loading = threading.Lock()


os.register_at_fork(after_in_child=_unlocked)  # another thread may be loading while ZeroGPU forks its worker


def load() -> GPT2LMHeadModel:
    """The model, float32, on the CPU, in eval mode. A failure is not remembered: the next call tries again."""
    with _loading:
        *_, weights = map(locate, FILES)
        return _load(weights.parent)


def loaded() -> bool:
    return _load.cache_info().currsize > 0


def loading() -> tuple[int, int] | None:
    """Bytes so far and in all of the file that is being fetched; (0, 0) while files are read; None otherwise."""
    return fetched or ((0, 0) if _loading.locked() else None)


@lru_cache(maxsize=1)
def _load(folder: Path) -> GPT2LMHeadModel:
    from transformers import GPT2LMHeadModel  # seconds to import: only once somebody asks for it

    try:
        lm, told = GPT2LMHeadModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True
        )
        if told["missing_keys"]:
            raise KeyError("weights are missing")
        if not lm.config.scale_attn_weights or lm.config.scale_attn_by_inverse_layer_idx:
            raise NotImplementedError("its attention is scaled in another way")
    except Exception as error:  # of the file system, safetensors, transformers
        raise broken(error) from error
    return lm.requires_grad_(False).eval()
