"""Garbage collection in the Python processes that Spark starts.

Knows nothing of the work of these processes.
"""

import gc
import os
import sys

_seen = 0


def spare_the_collector() -> None:
    """Excludes loaded objects from garbage collection; called when a worker has finished its work.

    Spark's daemon runs a full collection after each task and each commit, which spends 15 to 35 ms on modules and
    classes that never become garbage. Does nothing in other processes.
    """
    global _seen
    if "SPARK_REUSE_WORKER" in os.environ and len(sys.modules) != _seen:
        _seen = len(sys.modules)
        gc.freeze()
