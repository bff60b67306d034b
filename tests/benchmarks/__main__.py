"""How close everything is to its limit, as ratios taken in one run. Prints a table and saves it as JSON.

    python tests/benchmarks [library] [figures] [server] [page] [start] [--out FOLDER]

Without names all of them: a name stands for a file bench_….py here, whose `rows` gives what it measured.
`bench_gpu.py` is for a machine with a GPU, `load.py` for many visitors at once.
"""

import argparse
import importlib
import json
import os
import platform
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded; the servers inherit it

CONCERNS = ("library", "figures", "server", "page", "start")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("concerns", nargs="*", choices=[[], *CONCERNS], metavar="concern")
    options.add_argument("--out", type=Path, default=Path("build/benchmarks"))
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found = []
    for concern in given.concerns or CONCERNS:
        for row in importlib.import_module(f"bench_{concern}").rows(given.out):
            print(row, flush=True)
            found.append({"concern": concern, **row._asdict(), "reached": float(row.reached), "kept": bool(row.kept)})
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    text = json.dumps({**machine, "rows": found}, indent=1, ensure_ascii=False)
    (given.out / "benchmarks.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
