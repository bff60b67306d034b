"""From the start of the process to the first answer, and the memory then, beside a bare app with the same imports.

python tests/benchmarks/bench_start.py
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from paired import Row  # tells where the others are

# isort: split
from servers import ROOT, Server, call

BARE = """
import spaces, torch, matplotlib, gradio as gr
def attend(sentence: str) -> dict:
    return {"sentence": sentence}
with gr.Blocks(analytics_enabled=False) as page:
    gr.api(attend, api_name="attend")
page.queue().launch(quiet=True)
"""


def started(folder: Path, app: Path) -> tuple[float, float]:
    """Seconds to the first answer of /attend, and resident MB after it."""
    began = time.perf_counter()
    server = Server(folder, app=app)
    try:
        call(server.url, "attend", sentence="The cat sat. The cat")
        took = time.perf_counter() - began
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return took, int(status.split("VmRSS:")[1].split()[0]) / 1024
    finally:
        server.close()


def rows(_: Path, turns: int = 5) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = folder / "bare.py"
        bare.write_text(BARE)
        pairs = [(started(folder, ROOT / "app.py"), started(folder, bare)) for _ in range(turns + 1)][1:]
    for i, (what, most) in enumerate((("seconds to the first answer", 1.15), ("memory", 1.3))):
        yield Row(f"start: {what} / a bare app", statistics.median(a[i] / b[i] for a, b in pairs), most)


if __name__ == "__main__":
    for row in rows(Path()):
        print(row, flush=True)
