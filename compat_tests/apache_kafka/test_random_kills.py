"""Three nodes that are brokers and controllers, and are killed at random moments, under load.

While one is down, the metadata can be changed, and records are acknowledged; while two are, neither is possible. At the
end all acknowledged records are there, once and in order. ``BARNABAS_KILLS`` is the number of kills.
"""

import os
import time
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from .load import Load, until
from .mixed import BARNABAS, Combined
from .test_mixed_clusters import TOPIC, Story, check, contents

pytestmark = pytest.mark.xdist_group("random_kills")  # it starts its own nodes

KILLS = int(os.environ.get("BARNABAS_KILLS", "4"))
FAST = {
    "broker.heartbeat.interval.ms": "150",
    "broker.session.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "600",
}


def change(story: Story, value: int) -> None:
    """Sets a config, which the active controller commits.

    Requests the metadata first: librdkafka sends changes to the controller of its last Metadata response, and
    reconnects to it repeatedly while it is down.
    """
    story.admin.list_topics(TOPIC, timeout=5)
    entry = ConfigEntry("max.message.bytes", str(1_000_000 + value), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    (future,) = story.admin.incremental_alter_configs([resource], request_timeout=5).values()
    future.result(10)


def has(story: Story, value: int) -> bool:
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    (future,) = story.admin.describe_configs([resource], request_timeout=5).values()
    return bool(future.result(10)["max.message.bytes"].value == str(1_000_000 + value))


def changed(story: Story, value: int) -> bool:
    change(story, value)
    return has(story, value)


@pytest.mark.timeout(180 + 15 * KILLS)
def test_nothing_is_lost_when_any_node_is_killed(tmp_path: Path) -> None:
    random = Random(int(os.environ.get("BARNABAS_SEED", "1")))
    with Combined(tmp_path, [BARNABAS] * 3, FAST) as cluster:
        story = Story(cluster)
        story.create(TOPIC)
        load = Load(cluster.bootstrap, TOPIC)
        try:
            for number in range(KILLS):
                node = cluster.brokers[random.choice(story.ids)]
                node.kill()
                until(lambda number=number: changed(story, number), f"the metadata is changed after kill {number}")
                load.goes_on()
                time.sleep(random.random())  # the time that it is down
                node.start()
                if random.random() < 0.7:
                    until(story.is_whole, f"all replicas are in sync after kill {number}")
                else:
                    until(lambda: min_in_sync(story) >= 2, f"two replicas are in sync after kill {number}")
        finally:
            load.stop()
        check(story, load)
        until(story.is_whole, "all replicas are in sync at the end")
        for node in cluster.brokers.values():
            node.stop()
        for partition in range(len(load.acknowledged)):
            logs = {contents(node.data / f"{TOPIC}-{partition}") for node in cluster.brokers.values()}
            assert len(logs) == 1, [len(log) for log in logs]
        assert [error for node in cluster.brokers.values() for error in node.errors()] == []


def min_in_sync(story: Story) -> int:
    found = story.admin.list_topics(TOPIC, timeout=5).topics[TOPIC]
    return min(len(each.isrs) for each in found.partitions.values())


def test_a_minority_commits_nothing_and_loses_nothing(tmp_path: Path) -> None:
    with Combined(tmp_path, [BARNABAS] * 3, FAST) as cluster:
        story = Story(cluster)
        story.create(TOPIC)
        until(lambda: changed(story, 1), "the metadata is changed")
        load = Load(cluster.bootstrap, TOPIC)
        try:
            load.goes_on()
            first, second, third = cluster.brokers.values()
            for node in (first, second):
                node.kill()
            acknowledged = load.at_rest()  # the client may have responses that it has not handled yet
            with pytest.raises(KafkaException):
                change(story, 2)
            assert load.total == acknowledged, "a record was acknowledged by a minority"
            first.start()
            until(lambda: changed(story, 3), "the metadata is changed by a majority")
            load.goes_on()
            second.start()
            until(story.is_whole, "all replicas are in sync")
        finally:
            load.stop()
        check(story, load)
        assert has(story, 3)
        for node in (first, second, third):
            node.stop()
            assert node.errors() == []
