"""Members of groups of the newer protocols, by confluent-kafka, and a witness that records their partitions.

Knows the guarantees of KIP-848 to a group, and nothing of how a broker keeps them.
"""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_INVALID, ShareConsumer, TopicPartition

from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from compat_tests.adapters.base import Place
from compat_tests.adapters.confluent_kafka import QUIET, Consumer
from tests.raw import Client

GROUP_RESOURCE = 32

COMMON = {
    "log_level": QUIET,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "metadata.recovery.strategy": "none",  # otherwise librdkafka 2.16 sends requests to a broker that it has dropped
    "topic.metadata.refresh.fast.interval.ms": 100,
    "fetch.wait.max.ms": 100,
}


class Member(Consumer):
    """A consumer that reports its assigned and revoked partitions to the group's witness."""

    def __init__(self, name: str, configs: dict[str, Any], group: "Group") -> None:
        super().__init__(configs, OFFSET_INVALID)
        self.name, self.group = name, group

    def subscribe(self, topics: Sequence[str]) -> None:
        self.inner.subscribe(
            list(topics),
            on_assign=lambda _, places: self.group.given(self.name, places),
            on_revoke=lambda _, places: self.group.taken(self.name, places),
            on_lost=lambda _, places: self.group.taken(self.name, places),
        )

    def unsubscribe(self) -> None:
        self.inner.unsubscribe()


class Group:
    """Makes members, and records which of them owns which partition; a partition with two owners is added to
    ``offences``."""

    def __init__(self, bootstrap: str, group_id: str) -> None:
        self.bootstrap, self.group_id = bootstrap, group_id
        self.cleanup = contextlib.ExitStack()
        self.lock = threading.Lock()
        self.owners: dict[Place, str] = {}
        self.offences: list[str] = []

    def member(
        self,
        name: str,
        *,
        instance: str | None = None,
        assignor: str | None = None,
        configs: Mapping[str, Any] | None = None,
    ) -> Member:
        """Adds a member of the consumer protocol; ``assignor`` is the broker's."""
        found = {**COMMON, "bootstrap.servers": self.bootstrap, "group.id": self.group_id}
        found |= {"group.protocol": "consumer", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        if instance is not None:
            found["group.instance.id"] = instance
        if assignor is not None:
            found["group.remote.assignor"] = assignor
        return self._made(Member(name, {**found, **(configs or {})}, self))

    def classic_member(self, name: str, assignor: str = "range") -> Member:
        configs = {**COMMON, "bootstrap.servers": self.bootstrap, "group.id": self.group_id}
        configs |= {"auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 20_000}
        configs |= {"partition.assignment.strategy": assignor, "heartbeat.interval.ms": 100}
        return self._made(Member(name, configs, self))

    def _made(self, member: Member) -> Member:
        self.cleanup.callback(member.close)
        return member

    def sharer(self, mode: str = "explicit", configs: Mapping[str, Any] | None = None) -> ShareConsumer:
        """Adds a member of the share group with this id."""
        found = {**COMMON, "bootstrap.servers": self.bootstrap, "group.id": self.group_id}
        consumer = ShareConsumer({**found, "share.acknowledgement.mode": mode, **(configs or {})})
        self.cleanup.callback(self._closed, consumer)
        return consumer

    @staticmethod
    def _closed(consumer: ShareConsumer) -> None:
        with contextlib.suppress(RuntimeError):
            consumer.close()

    def configure(self, **configs: str) -> None:
        """Sets configs of the group, with ``_`` for the dots; librdkafka's admin client has no groups' configs."""
        changes = [
            IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
                name=name.replace("_", "."), config_operation=0, value=value
            )
            for name, value in configs.items()
        ]
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self.group_id, configs=changes
        )
        with Client(int(self.bootstrap.rpartition(":")[2])) as client:
            answer: Any = client.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        (response,) = answer.responses
        assert response.error_code == 0, response.error_message

    def given(self, name: str, places: Sequence[TopicPartition]) -> None:
        with self.lock:
            for place in places:
                owner = self.owners.setdefault((place.topic, place.partition), name)
                if owner != name:
                    self.offences.append(f"{place.topic}-{place.partition} is given to {name}, and is {owner}'s")

    def taken(self, name: str, places: Sequence[TopicPartition]) -> None:
        with self.lock:
            for place in places:
                if self.owners.get((place.topic, place.partition)) == name:
                    del self.owners[place.topic, place.partition]

    def died(self, name: str) -> None:
        """Forgets the member's partitions, since it no longer reports them."""
        with self.lock:
            self.owners = {place: owner for place, owner in self.owners.items() if owner != name}

    def close(self) -> None:
        self.cleanup.close()
