"""A member of a group of the consumer protocol, to be run as a process and killed: BOOTSTRAP GROUP TOPIC.

It prints the number of partitions in its first assignment.
"""

import sys

from compat_tests.groups.members import Group
from compat_tests.waiting import poll_until


def main() -> None:
    bootstrap, group, topic = sys.argv[1:]
    member = Group(bootstrap, group).member("dying")
    member.subscribe([topic])
    poll_until([member], lambda: bool(member.assignment()), "something is assigned")
    sys.stdout.write(f"{len(member.assignment())}\n")
    sys.stdout.flush()
    while True:
        member.poll(1)


if __name__ == "__main__":
    main()
