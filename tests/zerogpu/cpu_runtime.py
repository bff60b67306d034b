"""Imported first of all, this lets the real `spaces` package run in ZeroGPU mode on a torch without CUDA.

Scheduling, the forked worker, pickling both ways, releasing and every error stay the package's own. Replaced is only
what needs a driver: the worker's start of CUDA, and its move of module-level weights to the GPU, which must find
nothing to move, since this project keeps its master copies on the CPU.

The package's emulation of CUDA, which it otherwise ends in the worker, is kept on there: tensors say "cuda", and an
operation between them and CPU tensors raises as it would on a GPU.
"""

# ruff: noqa: E402  the order of these imports is the point

import os
from concurrent.futures import ThreadPoolExecutor

assert os.environ.get("SPACES_ZERO_GPU") == "true", "set SPACES_ZERO_GPU=true first"

import torch

torch.version.cuda = torch.version.cuda or "12.8"  # read when spaces is imported
torch.cuda._is_in_bad_fork = bool  # a lambda in CPU builds; spaces pickles it
if not hasattr(torch._C, "_cuda_init"):
    torch._C._cuda_init = None

import spaces  # noqa: F401
import spaces.zero.torch as runtime
from spaces.zero import wrappers
from spaces.zero.torch import patching


def _start(uuid: str) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = uuid


def _move(callback=None) -> None:
    assert not patching.tensor_packs, "weights at module level were moved to the GPU; they belong on the CPU"


class _Executor(ThreadPoolExecutor):
    """The emulation belongs to a thread, and the worker runs each task in a new one."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, initializer=runtime.enter_mode if wrappers.forked else None, **kwargs)


runtime.init, runtime.move, runtime.unpatch = _start, _move, lambda: None
wrappers.ThreadPoolExecutor = _Executor
