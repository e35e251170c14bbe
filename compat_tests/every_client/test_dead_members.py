"""A member that is killed is removed when its session times out, and the others get its partitions."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.adapters import CLIENTS
from compat_tests.running import Running
from compat_tests.waiting import poll_until, read

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("library", sorted(CLIENTS))
def test_the_survivor_takes_over(own_broker: Callable[..., Running], topic: str, group: str, library: str) -> None:
    broker = own_broker({"group.min.session.timeout.ms": "1000"})
    with contextlib.closing(CLIENTS[library](broker.bootstrap)) as client:
        client.create_topic(topic, 4)
        command = [sys.executable, "-W", "ignore", "-m", "compat_tests.every_client.member"]
        dying = subprocess.Popen(
            [*command, library, broker.bootstrap, topic, group],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        try:
            assert dying.stdout is not None
            assert dying.stdout.readline() == b"4\n"
            survivor = client.consumer(group=group, session_ms=2000)
            survivor.subscribe([topic])
            poll_until([survivor], lambda: len(survivor.assignment()) == 2, "two members share")
        finally:
            dying.kill()
            dying.communicate()
        poll_until([survivor], lambda: len(survivor.assignment()) == 4, "the survivor has all")
        producer = client.producer()
        for index in range(4):
            producer.send(topic, b"%d" % index, partition=index)
        producer.flush()
        assert sorted(record.value or b"" for record in read(survivor, 4)) == [b"0", b"1", b"2", b"3"]
