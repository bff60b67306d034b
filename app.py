"""Build the page and serve it: on a Space, or with `python app.py`."""

import spaces  # noqa: F401  before torch: ZeroGPU patches it

from attention import startup

startup.check()

from attention.page import build, look

demo = build()

if __name__ == "__main__":
    startup.launch(demo, **look())
