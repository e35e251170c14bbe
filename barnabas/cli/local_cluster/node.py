"""A node's process: ``barnabas serve``, which ends with the process that has started it.

Knows nothing of the cluster.
"""

import os
import signal
import sys
import threading
import time

from barnabas.cli import main

LONGEST_STOP_S = 5.0


def _end_with_parent() -> None:
    """Waits for the end of standard input, which the parent holds open, and ends this process."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LONGEST_STOP_S)  # without the other nodes, a clean stop might not finish
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.exit(main(["serve", *sys.argv[1:]]))
