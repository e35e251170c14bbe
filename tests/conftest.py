"""Fixtures and options of all tests."""

import os

from hypothesis import settings

# The same examples in each run, so that a failure depends only on the code; BARNABAS_EXAMPLES=1000 uses others.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile("others", max_examples=int(os.environ.get("BARNABAS_EXAMPLES", "100")), deadline=None)
settings.load_profile("others" if "BARNABAS_EXAMPLES" in os.environ else "same")
