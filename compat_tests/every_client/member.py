"""A member of a group, to be run as a process and killed: LIBRARY BOOTSTRAP TOPIC GROUP.

It prints the number of partitions in its first assignment.
"""

import sys

from compat_tests.adapters import CLIENTS
from compat_tests.waiting import poll_until


def main() -> None:
    library, bootstrap, topic, group = sys.argv[1:]
    consumer = CLIENTS[library](bootstrap).consumer(group=group, session_ms=2000)
    consumer.subscribe([topic])
    poll_until([consumer], lambda: bool(consumer.assignment()), "something is assigned")
    sys.stdout.write(f"{len(consumer.assignment())}\n")
    sys.stdout.flush()
    while True:
        consumer.poll(1)


if __name__ == "__main__":
    main()
