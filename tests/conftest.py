"""Settings that all tests share."""

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded: test workers run side by side

settings.register_profile("chainroute", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("chainroute")
