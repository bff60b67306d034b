"""`python serve.py path/to/app.py` serves the app on the ZeroGPU runtime, without a GPU.

With BREAKABLE set, three sentences break the project's own function where the GPU would be, and there alone.
"""

import os
import runpy
import sys

import cpu_runtime  # noqa: F401  first of all

if os.environ.get("BREAKABLE"):
    import torch

    from attention import compute

    PARENT, IN_PARENT = os.getpid(), compute._run

    class NoData:
        """What says that it is plain data and cannot be pickled."""

        def numpy(self):
            return lambda: None

    def breakable(request, tokens, device):
        done = IN_PARENT(request, tokens, device)
        if os.getpid() != PARENT and request.sentence == "step step step":
            raise ZeroDivisionError("a bug of ours")
        if os.getpid() != PARENT and request.sentence == "one one one":
            done.sources["bad"] = NoData()
        if os.getpid() != PARENT and request.sentence == "with with with":
            torch.ones(2, device=device) @ torch.ones(2)
        return done

    compute._run = breakable

runpy.run_path(sys.argv[1], run_name="__main__")
