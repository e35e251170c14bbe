"""Brokers of a simulation with two log directories, each on a disk of its own."""

import asyncio
import errno
from random import Random

import pytest

from barnabas.cluster.features import DIRECTORIES, ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from tests.history.records import History
from tests.simulation.clients import Admin
from tests.simulation.cluster import BROKER, COMBINED, CONTROLLER, SimulatedCluster
from tests.simulation.faults import Faults
from tests.simulation.invariants import Invariants
from tests.simulation.loop import SimulatedLoop
from tests.simulation.node import DIRECTORY, SECOND_DIRECTORY
from tests.simulation.plans import KINDS

PARTITIONS = 4


@pytest.fixture
def cluster():
    cluster = SimulatedCluster(SimulatedLoop(), Random(1), (COMBINED,) * 3, directories=(DIRECTORY, SECOND_DIRECTORY))
    yield cluster
    cluster.close()
    cluster.loop.close()


async def started(cluster):
    """Starts the nodes, and returns an admin client, after it has created a topic."""
    await cluster.start()
    admin = Admin("admin", cluster, History(), Random(2))
    await of(admin, admin.create({"orders": PARTITIONS}, replicas=3, configs={}))
    await until(lambda: all(len(partitions(broker)) == PARTITIONS for broker in cluster.brokers().values()))
    return admin


def of(client, work):
    """Runs a client's coroutine as its process."""
    return asyncio.wait_for(client.loop.create_task(work, context=client.life.context), 60)


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.05)


def partitions(broker):
    return [broker.partitions[place] for place in broker.partitions if place[0] == "orders"]


def to_second_directory():
    return to_directory(SECOND_DIRECTORY, range(PARTITIONS))


def to_directory(path, indexes):
    kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topic = kind.AlterReplicaLogDirTopic(name="orders", partitions=list(indexes))
    return AlterReplicaLogDirsRequest(dirs=[kind(path=path, topics=[topic])])


def paths(broker):
    return {partition.log.log_directory.path for partition in partitions(broker)}


def test_a_replica_moves_by_one_change_of_the_metadata(cluster):
    async def run():
        admin = await started(cluster)
        await until(lambda: not list(cluster.misplaced()))
        before = {each.index: each.image.partition_epoch for each in partitions(cluster.brokers()[1])}
        moved = dict.fromkeys(range(PARTITIONS), 0)
        for broker_id, broker in cluster.brokers().items():
            for each in partitions(broker):
                moved[each.index] += each.log.log_directory.path != SECOND_DIRECTORY
            await of(admin, admin.ask(broker_id, to_second_directory()))
            await until(lambda broker=broker: paths(broker) == {SECOND_DIRECTORY})
        await until(lambda: not list(cluster.misplaced()))
        assert sum(moved.values()) > 0
        after = {each.index: each.image.partition_epoch for each in partitions(cluster.brokers()[1])}
        assert after == {index: epoch + moved[index] for index, epoch in before.items()}

    cluster.loop.run_until_complete(run())


def test_a_move_asks_once_while_there_is_no_controller():
    lines = []
    cluster = SimulatedCluster(
        SimulatedLoop(), Random(1), (CONTROLLER, *(BROKER,) * 3), directories=(DIRECTORY, SECOND_DIRECTORY),
        trace=lines.append,
    )  # fmt: skip

    async def run():
        admin = await started(cluster)
        await until(lambda: not list(cluster.misplaced()))
        broker, controller = cluster.brokers()[1], cluster.nodes[1000]
        moved = sum(each.log.log_directory.path != SECOND_DIRECTORY for each in partitions(broker))
        controller.kill(power_cut=False)
        await of(admin, admin.ask(1, to_second_directory()))
        await asyncio.sleep(5)
        assert paths(broker) == {DIRECTORY, SECOND_DIRECTORY}
        lines.clear()
        await controller.start()
        await until(lambda: paths(broker) == {SECOND_DIRECTORY})
        assert sum("1 -> 1000 AssignReplicasToDirs" in line for line in lines) == moved

    cluster.loop.run_until_complete(run())
    cluster.close()
    cluster.loop.close()


def test_the_metadata_learns_of_a_move_that_was_cancelled_after_it_was_recorded(cluster):
    async def run():
        await started(cluster)
        await until(lambda: not list(cluster.misplaced()))
        node, broker = next(each for each in cluster.brokers().items() if not each[1].quorum.is_leader)
        moved = next(each for each in partitions(broker) if each.log.log_directory.path == DIRECTORY)
        moves, first, second = broker.log_manager.moves, *broker.log_manager.directories
        moves.start(moved.log, second)
        while broker.hosting.assigned_directory(moved.log, broker.image) != second.directory_id:
            await asyncio.sleep(0.001)
        assert moved.log.log_directory is first
        moves.cancel(("orders", moved.index))
        assert [each for each in cluster.misplaced() if f"broker {node}" in each]
        await until(lambda: not list(cluster.misplaced()))
        assert moved.log.log_directory is first

    cluster.loop.run_until_complete(asyncio.wait_for(run(), 300))


def test_a_node_goes_on_without_a_directory_and_gets_it_back(cluster):
    async def run():
        await started(cluster)
        node, broker = cluster.nodes[1], cluster.brokers()[1]
        assert paths(broker) == {DIRECTORY, SECOND_DIRECTORY}
        lost = {each.index for each in partitions(broker) if each.log.log_directory.path == SECOND_DIRECTORY}
        node.confine_failures(SECOND_DIRECTORY)
        node.disk_error = (errno.EIO, ())
        broker.log_manager.housekeeping.checkpoint_all()
        await until(lambda: node.lost_directories == [SECOND_DIRECTORY])
        other = cluster.brokers()[2]
        await until(lambda: all((1 in each.image.isr) == (each.index not in lost) for each in partitions(other)))
        assert not node.fatal
        node.disk_error = None
        faults = Faults(cluster, [], KINDS, Invariants(cluster).votes)
        faults.watch()
        await until(lambda: node.is_running and not node.lost_directories)
        await until(lambda: all(1 in each.image.isr for each in partitions(other)))

    cluster.loop.run_until_complete(run())


def test_a_version_that_is_raised_before_a_broker_is_unfenced_records_its_directories():
    cluster = SimulatedCluster(
        SimulatedLoop(), Random(1), (CONTROLLER, *(BROKER,) * 2),
        levels={METADATA_VERSION: DIRECTORIES - 1, ELIGIBLE_LEADER_REPLICAS: 0},
    )  # fmt: skip

    def late_heartbeats(stream, data):
        is_heartbeat = int.from_bytes(data[4:6]) == BrokerHeartbeatRequest.api_key and not stream.is_accepted
        return 2.0 if is_heartbeat and stream.life.name == "2" else 0.0

    async def run():
        await cluster.start()
        node = cluster.nodes[2]
        node.kill(power_cut=False)
        cluster.network.late_rules.append(late_heartbeats)
        starting = node.start()
        await until(lambda: getattr(node.process, "node", None) is not None and node.process.node.epoch >= 0)
        broker = node.process.node
        admin = Admin("admin", cluster, History(), Random(2))
        await of(admin, admin.raise_to(METADATA_VERSION, DIRECTORIES))
        await until(lambda: broker.image.metadata_version == DIRECTORIES)
        assert not broker.image.brokers[2].log_dirs
        assert not node.is_running
        cluster.network.late_rules.clear()
        await starting
        await until(lambda: broker.image.brokers[2].log_dirs and broker.image.brokers[1].log_dirs)

    cluster.loop.run_until_complete(asyncio.wait_for(run(), 300))
    cluster.close()
    cluster.loop.close()
