"""Our observer of a quorum of three of Apache Kafka's controllers, whose leaders are killed.

What is copied is equal, byte for byte, under each leader.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.cli import commands
from barnabas.uuids import uuid_text

from .apache import CURRENT, ApacheController, quick
from .observing import CLUSTER_ID, Node, play, same, until


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_our_observer_follows_a_quorum_of_apaches_controllers(kafka_jars: Path, tmp_path: Path, dynamic: bool) -> None:
    """Three controllers; the one that leads is killed, and comes back. We have formatted those of a dynamic quorum."""
    running = {number: ApacheController(tmp_path / f"controller-{number}") for number in (1, 2, 3)}
    static = ",".join(f"{number}@127.0.0.1:{each.port}" for number, each in running.items())
    named = ",".join(
        f"{number}@127.0.0.1:{each.port}:{uuid_text(bytes([number]) * 16)}" for number, each in running.items()
    )
    for number, each in running.items():
        each.properties["node.id"] = str(number)
        each.properties["controller.quorum.voters"] = static
        if dynamic:
            servers = ",".join(f"127.0.0.1:{other.port}" for other in running.values())
            each.properties["controller.quorum.bootstrap.servers"] = servers
            del each.properties["controller.quorum.voters"]
        each.options = ("-Xms64m", "-Xmx256m", *quick(CURRENT))
        each.home.mkdir()
        config = each.home / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in each.properties.items()))
        each.cluster_id = CLUSTER_ID
        if dynamic:
            words = ["storage", "format", "-c", str(config), "-t", CLUSTER_ID, "-I", named]
            ran = CliRunner().invoke(commands.barnabas, words)
            assert ran.exit_code == 0, ran.output

    async def scene() -> None:
        with ThreadPoolExecutor() as starting:
            list(starting.map(ApacheController.start, running.values()))
        home = tmp_path / "ours"
        node = Node(home, *running.values(), bootstrap=dynamic)
        for value in range(3):
            await until(lambda: node.observer.leadership.leader_id in running)
            leader_id, _ = before = node.observer.leadership
            await node.alter("log.retention.ms", str(value))
            await node.has("log.retention.ms", str(value))
            await same(node, home, running[leader_id])
            running[leader_id].stop(kill=True)
            await until(lambda known=before: node.observer.leadership != known)
            await until(lambda: node.observer.leadership.leader_id in running)
            assert node.observer.leadership.leader_id != leader_id
            running[leader_id].start()
        assert node.observer.kraft.version == int(dynamic)
        node.stop()

    try:
        play(scene())
    finally:
        for each in running.values():
            each.stop(kill=True)
