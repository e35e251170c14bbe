"""What is good for the Python processes that Spark starts, whichever of them it is.

Knows nothing of what they do.
"""

import gc
import os
import sys

_seen = 0


def spare_the_collector() -> None:
    """Keep what is loaded out of garbage collections; called where a worker has done its work.

    Spark's daemon collects all of a worker's garbage after each task, and after each commit: 15 to 35 ms of a core to
    look at modules and classes again, that never become garbage. Does nothing in other processes.
    """
    global _seen
    if "SPARK_REUSE_WORKER" in os.environ and len(sys.modules) != _seen:
        _seen = len(sys.modules)
        gc.freeze()
