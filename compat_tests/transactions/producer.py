"""A transactional producer to be run as a process and killed: LIBRARY BOOTSTRAP TOPIC ID [TIMEOUT_MS].

It writes one record to each of the topic's three partitions, prints a line, and neither commits nor exits.
"""

import sys

from compat_tests.adapters import CLIENTS


def main() -> None:
    library, bootstrap, topic, transactional_id, *timeout_ms = sys.argv[1:]
    producer = CLIENTS[library](bootstrap).transactional(transactional_id, timeout_ms=int([*timeout_ms, 60_000][0]))
    producer.begin()
    for partition in range(3):
        producer.send(topic, b"of the dead", partition=partition)
    producer.flush()
    sys.stdout.write("written\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
