"""What every test shares."""

import os

from hypothesis import settings

# Read when torch is first imported, here and in child processes: matrices this small gain nothing from more threads,
# and on a busy machine the threads wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("here", deadline=None, max_examples=60, database=None)
settings.load_profile("here")
