"""The process under test: the real ZeroGPU runtime, driven line by line.

Each line of standard input is a JSON list [command, arguments]; the answer is the JSON line after "ANSWER ".
"""

import json
import os
import sys

import cpu_runtime  # noqa: F401  first of all
import gradio as gr
from gradio.context import LocalContext

from attention import Request, compute

PARENT = os.getpid()
IN_PARENT = compute._run


def run(args: dict, gpu: bool = True, token: str | None = None) -> dict:
    LocalContext.request.set(gr.Request(headers={"x-ip-token": token}) if token else None)
    try:
        result = compute.run(Request(**args), gpu=gpu)
    except Exception as error:
        return {"error": type(error).__name__, "title": getattr(error, "title", None), "message": str(error)}
    numbers = {name: result[name].tolist() for name in ("x", "q", "masked", "weights", "context")}
    sources = {name: source.tolist() for name, source in result.sources.items()}
    tensors = [*result.trace.arrays().values(), *(s.numpy() for s in result.sources.values())]
    return {
        "device": result.device,
        "notes": result.notes,
        "tensors": numbers | sources,
        "guess": result.guess and [result.guess.texts, result.guess.probabilities],
        "bytes": sum(a.nbytes for a in tensors),
    }


def break_worker() -> None:
    """From now on the project's own function fails in the worker, and there alone."""

    def broken(*args):
        if os.getpid() != PARENT:
            raise ZeroDivisionError("a bug of ours")
        return IN_PARENT(*args)

    compute._run = broken


def forget() -> None:
    for kept in (compute._cache, compute._readings):
        kept.entries.clear()
        kept.size = 0


for line in sys.stdin:
    command, arguments = json.loads(line)
    answer = {"run": run, "break_worker": break_worker, "forget": forget}[command](**arguments)
    print("ANSWER", json.dumps(answer), flush=True)

os._exit(0)  # without waiting for the worker, which the platform ends
