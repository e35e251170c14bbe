"""Observers of the metadata log: ours of Apache Kafka's controller, and Apache Kafka's broker of our controller.

The copy is equal byte for byte, also after a restart of the observer.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.cli import commands
from barnabas.cluster.quorum.client import Leadership
from barnabas.cluster.quorum.quorum_state import FILE_NAME

from .apache import CURRENT, ApacheBroker, ApacheController, run_java
from .observing import CLUSTER_ID, LOG, WITHIN, Controller, Node, content, play, same, until

pytestmark = pytest.mark.xdist_group("quorum")  # it starts its own brokers


@pytest.fixture(params=[False, True], ids=["static", "dynamic"])
def controller(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[ApacheController]:
    properties = {"metadata.log.max.record.bytes.between.snapshots": "1500"}
    with ApacheController(tmp_path / "controller", properties, standalone=request.param) as running:
        yield running


def test_our_observer_follows_apaches_controller(controller: ApacheController, tmp_path: Path) -> None:
    home = tmp_path / "first"

    async def scene() -> None:
        node = Node(home, controller, bootstrap=controller.standalone)
        caught_up = asyncio.Event()
        node.observer.when_caught_up(caught_up.set)
        async with asyncio.timeout(WITHIN):
            await caught_up.wait()
        for number in range(5):
            await node.alter("log.retention.ms", str(number))
            await node.has("log.retention.ms", str(number))
        await same(node, home, controller)
        epoch = node.observer.leadership.epoch
        assert node.observer.leadership == Leadership(1, epoch)
        assert node.observer.kraft.version == int(controller.standalone)
        node.stop()

        # A restart with the existing copy, while more is written.
        node = Node(home, controller, bootstrap=controller.standalone)
        await node.alter("log.retention.ms", "100")
        await node.has("log.retention.ms", "100")
        await same(node, home, controller)

        # A new leader, in another epoch.
        controller.stop(kill=True)
        controller.start()
        await until(lambda: node.observer.leadership.epoch > epoch and node.observer.leadership.leader_id == 1)
        await node.alter("log.retention.ms", "200")
        await node.has("log.retention.ms", "200")
        await same(node, home, controller)

        # Another observer begins with a snapshot. The file is there before the controller offers it to observers.
        theirs = controller.home / "data" / LOG
        for number in range(100):
            if "Successfully wrote snapshot" in controller.log.read_text():
                break
            await node.alter("log.retention.ms", str(1000 + number))
            await asyncio.sleep(0.02)
        second_home = tmp_path / "second"
        second = Node(second_home, controller, bootstrap=controller.standalone)
        await node.alter("log.retention.ms", "300")
        await second.has("log.retention.ms", "300")
        await node.has("log.retention.ms", "300")
        assert second.log.log_start_offset > 0
        await same(second, second_home, controller)
        assert second.loader.image == node.loader.image
        (snapshot,) = (second_home / LOG).glob("*.checkpoint")
        assert snapshot.read_bytes() == (theirs / snapshot.name).read_bytes()
        for each in (node, second):
            each.stop()

    play(scene())


# ---------------------------------------------------------------- Apache Kafka's observer


def alter(broker: ApacheBroker, value: int) -> None:
    """Sets a config of all brokers by a request to one of them, which forwards it."""
    words = ["configs", "--bootstrap-server", broker.bootstrap, "--alter", "--entity-type", "brokers"]
    ran = CliRunner().invoke(
        commands.barnabas, [*words, "--entity-default", "--add-config", f"log.retention.ms={value}"]
    )
    assert ran.exit_code == 0, ran.output


async def equal(broker: ApacheBroker, controller: Controller) -> None:
    """Returns when both logs hold the same from where the broker's begins."""
    ours, theirs = (each.home / "data" / LOG for each in (controller, broker))

    def start() -> int:
        return max([int(each.name[:20]) for each in theirs.glob("*.checkpoint")], default=0)

    await until(lambda: content(ours, start()) == content(theirs, start()) != b"")


@pytest.mark.parametrize("standalone", [False, True], ids=["static", "dynamic"])
def test_apaches_broker_follows_our_controller(kafka_jars: Path, tmp_path: Path, standalone: bool) -> None:
    controller = Controller(tmp_path / "controller", standalone=standalone)
    first = ApacheBroker(tmp_path / "first", 2, CLUSTER_ID, controller.quorum)
    second = ApacheBroker(tmp_path / "second", 3, CLUSTER_ID, controller.quorum)

    async def scene() -> None:
        controller.start()
        first.start()
        alter(first, 1)
        await equal(first, controller)
        states = [(each.home / "data" / LOG / FILE_NAME).read_text() for each in (controller, first)]
        assert states[0] == states[1] or standalone  # without the log it does not know the voters

        # A restart of the observer, and then of the leader.
        first.stop()
        first.start()
        alter(first, 2)
        await equal(first, controller)
        controller.kill()
        controller.start()
        for value in range(30, 60):
            alter(first, value)
        await equal(first, controller)

        # An observer that begins with a snapshot.
        second.start()
        assert list((second.home / "data" / LOG).glob("*.checkpoint"))
        alter(second, 4)
        await equal(second, controller)
        await equal(first, controller)
        words = ("--bootstrap-server", second.bootstrap, "describe", "--replication")
        in_step = {("1", "0", "Leader"), ("2", "0", "Observer"), ("3", "0", "Observer")}

        def described() -> set[tuple[str, str, str]]:
            """Returns id, lag and state of each; an observer may lack the newest NoOp record."""
            ran = run_java(CURRENT, "org.apache.kafka.tools.MetadataQuorumCommand", *words)
            rows = [line.split() for line in ran.stdout.splitlines()[1:]]
            return {(row[0], row[3], row[-1]) for row in rows}

        await until(lambda: described() == in_step)

    try:
        play(scene())
        assert controller.complaints() == []
        said = [line for each in (first, second) for line in each.log.read_text().splitlines()]
        complaints = [line for line in said if "] WARN " in line or "] ERROR " in line]
        assert [line for line in complaints if "could not be established" not in line] == []  # while it was down
    finally:
        for each in (first, second):
            each.stop(kill=True)
        controller.kill()
