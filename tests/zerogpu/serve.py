"""`python serve.py path/to/app.py` serves the app on the ZeroGPU runtime, without a GPU."""

import runpy
import sys

import cpu_runtime  # noqa: F401  first of all

runpy.run_path(sys.argv[1], run_name="__main__")
