"""A group coordinator with a fake cluster, log and clock."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.config.group import GroupSettings
from barnabas.deadlines import Deadlines
from barnabas.errors import NotEnoughReplicas
from barnabas.groups.config import GroupConfig
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.shard import GroupShard
from tests.coordinators.fake_runtime import FakeRuntime


class Partition(NamedTuple):
    replicas: tuple[int, ...]


class Topic(NamedTuple):
    name: str
    id: bytes
    partitions: Mapping[int, Partition]


class Broker(NamedTuple):
    rack: str | None = None


class Image:
    """The part of a ``MetadataImage`` that groups use."""

    def __init__(self, offset: int, topics: Mapping[str, Topic]) -> None:
        self.offset = offset
        self.topics_by_name = topics
        self.topics_by_id = {topic.id: topic for topic in topics.values()}
        self.brokers = {1: Broker()}


class Machine:
    """The coordinator and its environment. ``log`` has what is written, batch by batch."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock()
        self.settings: dict[str, str] = dict(settings)
        self.own_settings: dict[str, dict[str, str]] = {}
        self.image = Image(1, {})
        self.log: list[list[tuple[bytes, bytes | None]]] = []
        self.is_broken = False
        self.held: list[Callable[[], object]] | None = None
        self.ids = 0
        self.on_batch: Callable[[Sequence[tuple[bytes, bytes | None]]], object] = lambda records: None
        self.configure({})

    def configure(self, settings: Mapping[str, str]) -> None:
        self.settings.update(settings)
        self.config = BrokerConfig.from_properties({"log.dirs": "/nowhere", **self.settings})
        if not hasattr(self, "coordinator"):
            self.runtime = FakeRuntime(self.clock, self._new_shard)
            self.runtime.start()
            config = GroupConfig.from_settings(self.config)
            self.coordinator = GroupCoordinator(config, self.runtime, lambda: self.config)

    def _new_shard(self, index: int, deadlines: Deadlines) -> GroupShard:
        return GroupShard(
            GroupConfig.from_settings(self.config),
            self.clock,
            deadlines,
            write=self._write,
            new_uuid=self._new_uuid,
            index=index,
            image=lambda: self.image,
            settings=lambda: self.config,
            group_settings=lambda group_id: GroupSettings(self.config, self.own_settings.get(group_id, {})),
        )

    def _new_uuid(self) -> str:
        self.ids += 1
        return str(uuid.UUID(int=self.ids))

    def _write(
        self,
        group_id: str,
        records: Sequence[tuple[bytes, bytes | None]],
        written: Callable[[Any], object],
        producer: Any = None,
        appended: Callable[[], object] = lambda: None,
    ) -> None:
        if records and self.is_broken:
            written(NotEnoughReplicas())
            return
        if records:
            self.log.append(list(records))
            self.on_batch(records)
        appended()
        if self.held is None:
            written(None)
        else:
            self.held.append(lambda: written(None))

    def group(self, group_id: str = "g") -> ConsumerGroup | None:
        return self.runtime.only.consumer.directory.find(group_id)

    # ------------------------------------------------------------ the cluster

    def change_topic(self, name: str, partitions: int) -> None:
        """Creates the topic, adds partitions, or deletes it if there are none."""
        topics = dict(self.image.topics_by_name)
        former = topics.pop(name, None)
        offset = self.image.offset + 1
        if partitions:
            topic_id = former.id if former else uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {offset}").bytes
            topics[name] = Topic(name, topic_id, {index: Partition((1,)) for index in range(partitions)})
        self.image = Image(offset, topics)
        self.runtime.only.topics_changed({name})

    # ---------------------------------------------------------- start and stop

    def restart(self, *, compacted: bool = False) -> None:
        """Restarts the coordinator with what the log has."""
        self.runtime.kill()
        self.held = None
        records = [record for batch in self.log for record in batch]
        if compacted:
            last = {key: at for at, (key, _) in enumerate(records)}
            records = [record for at, record in enumerate(records) if last[record[0]] == at]
        self.runtime.start(records)
