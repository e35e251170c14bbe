"""A member of a share group, to be run as a process and killed: BOOTSTRAP GROUP TOPIC.

It prints a line when it has acquired records, and does not acknowledge them.
"""

import sys

from compat_tests.groups.members import Group


def main() -> None:
    bootstrap, group, topic = sys.argv[1:]
    consumer = Group(bootstrap, group).sharer()
    consumer.subscribe([topic])
    while not list(consumer.poll(timeout=1)):
        pass
    sys.stdout.write("acquired\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
