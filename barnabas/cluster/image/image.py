"""The metadata image: the state of the cluster as of one offset of the metadata log.

Knows nothing of where the records come from: applying records, in order, gives a new image and the delta between both.
The rules are those of Apache Kafka's ``MetadataImage`` and ``PartitionRegistration``.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.cluster.features import FEATURES, METADATA_VERSION
from barnabas.cluster.image.sorted_map import Changes, SortedMap
from barnabas.config.dynamic import TOPIC_RESOURCE, is_known
from barnabas.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.security.acls import Acl

NO_LEADER = -1
NO_LEADER_CHANGE = -2
"""The value of ``PartitionChangeRecord.leader`` that keeps the leader."""

FIRST_PRODUCER_ID = 0

UNASSIGNED_DIRECTORY = bytes(15) + b"\1"
"""The directory of a replica that its broker has not assigned yet (``DirectoryId.UNASSIGNED``, KIP-858)."""

MIGRATING_DIRECTORY = bytes(16)
"""The directory of a replica that is older than directory ids (``DirectoryId.MIGRATING``)."""


class BrokerImage(NamedTuple):
    """A registered broker. A fenced broker leads no partitions, and clients do not see it."""

    id: int
    epoch: int  #: the offset of its registration record
    incarnation_id: bytes
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None  #: None: the broker has not told
    features: Mapping[str, tuple[int, int]] = MappingProxyType({})


class ControllerImage(NamedTuple):
    """A registered controller (KIP-919)."""

    id: int
    incarnation_id: bytes
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]]
    zk_migration_ready: bool = False


class PartitionImage(NamedTuple):
    """Replicas and leader of a partition, as broker ids. ``directories`` are parallel to ``replicas``."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = 0

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing or self.adding)


class TopicImage(NamedTuple):
    """A topic and its partitions, by index."""

    name: str
    id: bytes
    partitions: Mapping[int, PartitionImage]


class MetadataDelta:
    """The changes of some records. A topic that was created and deleted by them is not included."""

    __slots__ = (
        "brokers", "configs", "credentials", "deleted_topics", "features", "new_acls", "new_topics", "partitions",
        "producer_ids", "quotas", "removed_acls", "tokens",
    )  # fmt: skip

    def __init__(self) -> None:
        self.new_topics: dict[bytes, TopicImage] = {}
        self.deleted_topics: dict[bytes, TopicImage] = {}
        self.partitions: dict[bytes, set[int]] = {}  #: new or changed ones by topic id, with those of new topics
        self.configs: set[tuple[int, str]] = set()  #: resources whose configs have changed
        self.brokers: set[int] = set()
        self.features: set[str] = set()
        self.producer_ids = False
        self.new_acls: list[Acl] = []
        self.removed_acls: list[Acl] = []
        self.credentials: set[tuple[str, int]] = set()
        self.tokens: set[str] = set()
        self.quotas: set[tuple[QuotaEntity, str]] = set()

    def __repr__(self) -> str:
        return "MetadataDelta(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__) + ")"


Configs = Mapping[str, str]
QuotaEntity = tuple[tuple[str, bool, str], ...]
"""Sorted parts of an entity: its type, whether it has a name (False: the default entity), and the name or ""."""


class MetadataImage(NamedTuple):
    """The cluster as of ``offset``, the last applied record of the metadata log; -1 before the first.

    It is immutable, and may be shared between threads.
    """

    offset: int = -1
    epoch: int = 0
    features: Mapping[str, int] = MappingProxyType({})
    brokers: Mapping[int, BrokerImage] = MappingProxyType({})
    controllers: Mapping[int, ControllerImage] = MappingProxyType({})
    topics_by_name: SortedMap[str, TopicImage] = SortedMap()
    topics_by_id: SortedMap[bytes, TopicImage] = SortedMap()
    configs: SortedMap[tuple[int, str], Configs] = SortedMap()
    next_producer_id: int = FIRST_PRODUCER_ID
    acls: "SortedMap[bytes, Acl]" = SortedMap()  #: by their ids
    acl_ids: "SortedMap[Acl, bytes]" = SortedMap()
    credentials: SortedMap[tuple[str, int], records.UserScramCredentialRecord] = SortedMap()  #: by user and mechanism
    tokens: SortedMap[str, records.DelegationTokenRecord] = SortedMap()  #: by token id
    quotas: SortedMap[tuple[QuotaEntity, str], records.ClientQuotaRecord] = SortedMap()  #: by entity and quota name

    @property
    def metadata_version(self) -> int:
        """The level that defines which records can be written; the newest one before the bootstrap."""
        return self.features.get(METADATA_VERSION, FEATURES[METADATA_VERSION].last)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        found = self.topics_by_name.get(topic)
        return found.partitions.get(index) if found is not None else None

    def configs_of(self, resource_type: int, name: str) -> Configs:
        """Returns the configs of the resource that are set, without defaults."""
        return self.configs.get((resource_type, name), {})

    def apply(
        self, changes: Iterable[Any], *, offset: int | None = None, epoch: int | None = None
    ) -> tuple["MetadataImage", MetadataDelta]:
        """Returns the image after these records, and the delta.

        :param offset: the offset of the last record; by default that of the image
        :raises KeyError: the topic, partition or broker of a record does not exist: the log is damaged
        """
        building = _Building(self)
        for record in changes:
            _APPLY[type(record)](building, record)
        return building.finish(self.offset if offset is None else offset, self.epoch if epoch is None else epoch)


class _Building:
    """An image that is being changed. Small mappings are copied at the first change.

    Mappings that may have thousands of entries are :class:`SortedMap`, of which only the changed parts are copied.
    """

    __slots__ = (
        "_copied", "_image", "acl_ids", "acls", "brokers", "configs", "controllers", "credentials", "delta", "features",
        "next_producer_id", "partitions", "quotas", "tokens", "topics_by_id", "topics_by_name",
    )  # fmt: skip

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._copied: set[str] = set()
        self.delta = MetadataDelta()
        self.features: Any = image.features
        self.brokers: Any = image.brokers
        self.controllers: Any = image.controllers
        self.topics_by_name: Any = image.topics_by_name
        self.topics_by_id: Any = image.topics_by_id
        self.configs: Any = image.configs
        self.acls: Any = image.acls
        self.acl_ids: Any = image.acl_ids
        self.credentials: Any = image.credentials
        self.tokens: Any = image.tokens
        self.quotas: Any = image.quotas
        self.next_producer_id = image.next_producer_id
        self.partitions: dict[bytes, dict[int, PartitionImage]] = {}  # of changed topics

    def writable(self, name: str) -> Any:
        mapping = getattr(self, name)
        if name not in self._copied:
            self._copied.add(name)
            mapping = mapping.changes() if isinstance(mapping, SortedMap) else dict(mapping)
            setattr(self, name, mapping)
        return mapping

    def partitions_of(self, topic_id: bytes) -> dict[int, PartitionImage]:
        """Returns the topic's partitions, for changes."""
        partitions = self.partitions.get(topic_id)
        if partitions is None:
            partitions = self.partitions[topic_id] = dict(self.topics_by_id[topic_id].partitions)
        return partitions

    def change_configs(self, resource: tuple[int, str]) -> dict[str, str]:
        """Returns the resource's configs, for changes."""
        configs = self.writable("configs")
        mine = configs.get(resource)
        if mine is None or resource not in self.delta.configs:
            mine = configs[resource] = dict(mine or {})
            self.delta.configs.add(resource)
        return mine  # type: ignore[no-any-return]

    def finish(self, offset: int, epoch: int) -> tuple[MetadataImage, MetadataDelta]:
        delta = self.delta
        if self.partitions:
            by_id, by_name = self.writable("topics_by_id"), self.writable("topics_by_name")
            for topic_id, partitions in self.partitions.items():
                topic = by_id[topic_id]._replace(partitions=partitions)
                by_id[topic_id] = by_name[topic.name] = topic
                if topic_id in delta.new_topics:
                    delta.new_topics[topic_id] = topic
        for resource in delta.configs:
            if not self.configs.get(resource, True):
                del self.configs[resource]
        image = MetadataImage(
            offset, epoch, self.features, self.brokers, self.controllers, _finished(self.topics_by_name),
            _finished(self.topics_by_id), _finished(self.configs), self.next_producer_id, _finished(self.acls),
            _finished(self.acl_ids), _finished(self.credentials), _finished(self.tokens), _finished(self.quotas),
        )  # fmt: skip
        return image, delta


def _finished(mapping: Any) -> Any:
    # isinstance of an abstract base class is a call of Python code, for eight mappings in each image.
    return mapping.finish() if type(mapping) is Changes else mapping


# ---------------------------------------------------------------- topics and partitions


def _topic(building: _Building, record: records.TopicRecord) -> None:
    topic = TopicImage(record.name, record.topic_id, {})
    building.writable("topics_by_id")[topic.id] = topic
    building.writable("topics_by_name")[topic.name] = topic
    building.delta.new_topics[topic.id] = topic
    building.partitions[topic.id] = {}


def _partition(building: _Building, record: records.PartitionRecord) -> None:
    replicas = tuple(record.replicas)
    building.partitions_of(record.topic_id)[record.partition_id] = PartitionImage(
        replicas,
        tuple(record.isr),
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        tuple(record.directories) or (ZERO_UUID,) * len(replicas),
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
        record.leader_recovery_state,
    )
    building.delta.partitions.setdefault(record.topic_id, set()).add(record.partition_id)


def changed(partition: PartitionImage, record: records.PartitionChangeRecord) -> PartitionImage:
    """Returns the partition after the change. Each change increments the partition epoch; a leader, even the same one,
    increments the leader epoch.
    """
    replicas = partition.replicas if record.replicas is None else tuple(record.replicas)
    if record.directories is not None:
        directories = tuple(record.directories)
    elif replicas == partition.replicas:
        directories = partition.directories
    else:
        known = dict(zip(partition.replicas, partition.directories, strict=True))
        directories = tuple(known.get(replica, ZERO_UUID) for replica in replicas)
    recovery = record.leader_recovery_state
    is_led_anew = record.leader != NO_LEADER_CHANGE
    return PartitionImage(
        replicas,
        partition.isr if record.isr is None else tuple(record.isr),
        partition.removing if record.removing_replicas is None else tuple(record.removing_replicas),
        partition.adding if record.adding_replicas is None else tuple(record.adding_replicas),
        record.leader if is_led_anew else partition.leader,
        partition.leader_epoch + is_led_anew,
        partition.partition_epoch + 1,
        directories,
        partition.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
        partition.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
        partition.leader_recovery_state if recovery < 0 else recovery,
    )


def _partition_change(building: _Building, record: records.PartitionChangeRecord) -> None:
    topic_id, index = record.topic_id, record.partition_id
    partitions = building.partitions_of(topic_id)
    partitions[index] = changed(partitions[index], record)
    building.delta.partitions.setdefault(topic_id, set()).add(index)


def _clear_elr(building: _Building, record: records.ClearElrRecord) -> None:
    """Clears the eligible leader replicas of a topic, or of all topics: ``min.insync.replicas`` has changed."""
    by_name = building.topics_by_name
    for topic in [by_name[record.topic_name]] if record.topic_name else list(by_name.values()):
        current = building.partitions.get(topic.id, topic.partitions)
        for index, partition in list(current.items()):
            if partition.elr or partition.last_known_elr:
                building.partitions_of(topic.id)[index] = partition._replace(elr=(), last_known_elr=())
                building.delta.partitions.setdefault(topic.id, set()).add(index)


def _remove_topic(building: _Building, record: records.RemoveTopicRecord) -> None:
    topic = building.writable("topics_by_id").pop(record.topic_id)
    del building.writable("topics_by_name")[topic.name]
    partitions = building.partitions.pop(topic.id, None)
    if partitions is not None:
        topic = topic._replace(partitions=partitions)
    delta = building.delta
    delta.partitions.pop(topic.id, None)
    if delta.new_topics.pop(topic.id, None) is None:
        delta.deleted_topics[topic.id] = topic
    if (TOPIC_RESOURCE, topic.name) in building.configs:
        del building.writable("configs")[TOPIC_RESOURCE, topic.name]
        delta.configs.add((TOPIC_RESOURCE, topic.name))


def _config(building: _Building, record: records.ConfigRecord) -> None:
    if not is_known(record.resource_type, record.name):
        return  # of an earlier release: with it no config of the resource could be changed (KAFKA-19851)
    configs = building.change_configs((record.resource_type, record.resource_name))
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value


# ---------------------------------------------------------------- brokers, controllers, features


def _endpoints(found: Iterable[Any]) -> dict[str, Endpoint]:
    return {
        each.name: Endpoint(each.name, each.host, each.port, SECURITY_PROTOCOLS[each.security_protocol])
        for each in found
    }


def _feature_ranges(found: Iterable[Any]) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in found}


def _register_broker(building: _Building, record: records.RegisterBrokerRecord) -> None:
    building.writable("brokers")[record.broker_id] = BrokerImage(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        _endpoints(record.end_points),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        tuple(record.log_dirs),
        None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        _feature_ranges(record.features),
    )
    building.delta.brokers.add(record.broker_id)


def _change_broker(building: _Building, broker_id: int, **changes: Any) -> None:
    brokers = building.writable("brokers")
    brokers[broker_id] = brokers[broker_id]._replace(**changes)
    building.delta.brokers.add(broker_id)


def _broker_registration_change(building: _Building, record: records.BrokerRegistrationChangeRecord) -> None:
    """Applies a change: ``fenced`` -1 unfences, 1 fences, 0 keeps; ``in_controlled_shutdown`` is never unset."""
    changes: dict[str, Any] = {}
    if record.fenced:
        changes["fenced"] = record.fenced > 0
    if record.in_controlled_shutdown > 0:
        changes["in_controlled_shutdown"] = True
    if record.log_dirs:
        changes["log_dirs"] = tuple(record.log_dirs)
    if record.cordoned_log_dirs is not None:
        changes["cordoned_log_dirs"] = tuple(record.cordoned_log_dirs)
    _change_broker(building, record.broker_id, **changes)


def _fence_broker(building: _Building, record: records.FenceBrokerRecord) -> None:
    _change_broker(building, record.id, fenced=True)


def _unfence_broker(building: _Building, record: records.UnfenceBrokerRecord) -> None:
    _change_broker(building, record.id, fenced=False)


def _unregister_broker(building: _Building, record: records.UnregisterBrokerRecord) -> None:
    del building.writable("brokers")[record.broker_id]
    building.delta.brokers.add(record.broker_id)


def _register_controller(building: _Building, record: records.RegisterControllerRecord) -> None:
    building.writable("controllers")[record.controller_id] = ControllerImage(
        record.controller_id,
        record.incarnation_id,
        _endpoints(record.end_points),
        _feature_ranges(record.features),
        record.zk_migration_ready,
    )


def _unregister_controller(building: _Building, record: records.UnregisterControllerRecord) -> None:
    building.writable("controllers").pop(record.controller_id, None)


def _feature_level(building: _Building, record: records.FeatureLevelRecord) -> None:
    features = building.writable("features")
    if record.feature_level:
        features[record.name] = record.feature_level
    else:
        features.pop(record.name, None)
    building.delta.features.add(record.name)


def _producer_ids(building: _Building, record: records.ProducerIdsRecord) -> None:
    building.next_producer_id = record.next_producer_id
    building.delta.producer_ids = True


# ---------------------------------------------------------------- security and quotas


def _acl(building: _Building, record: records.AccessControlEntryRecord) -> None:
    from barnabas.security.acls import Acl  # not needed by a cluster without ACLs

    acl = Acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
    building.writable("acls")[record.id] = acl
    building.writable("acl_ids")[acl] = record.id
    building.delta.new_acls.append(acl)


def _remove_acl(building: _Building, record: records.RemoveAccessControlEntryRecord) -> None:
    acl = building.writable("acls").pop(record.id)
    del building.writable("acl_ids")[acl]
    building.delta.removed_acls.append(acl)


def quota_entity(record: records.ClientQuotaRecord) -> QuotaEntity:
    """Returns the entity of a quota, as it is a key in the image."""
    names = ((each.entity_type, each.entity_name is not None, each.entity_name or "") for each in record.entity)
    return tuple(sorted(names))


_KEYED: dict[type, tuple[str, Callable[[Any], Any]]] = {
    records.UserScramCredentialRecord: ("credentials", lambda record: (record.name, record.mechanism)),
    records.DelegationTokenRecord: ("tokens", lambda record: record.token_id),
    records.ClientQuotaRecord: ("quotas", lambda record: (quota_entity(record), record.key)),
}
"""Records that the image has unchanged: the mapping of the image, and the key there."""

_REMOVES: dict[type, tuple[str, Callable[[Any], Any]]] = {
    records.RemoveUserScramCredentialRecord: _KEYED[records.UserScramCredentialRecord],
    records.RemoveDelegationTokenRecord: _KEYED[records.DelegationTokenRecord],
}


def _set(building: _Building, record: Any) -> None:
    part, key_of = _KEYED[type(record)]
    if getattr(record, "remove", False):
        _unset(building, part, key_of(record))
    else:
        key = key_of(record)
        building.writable(part)[key] = record
        getattr(building.delta, part).add(key)


def _remove(building: _Building, record: Any) -> None:
    part, key_of = _REMOVES[type(record)]
    _unset(building, part, key_of(record))


def _unset(building: _Building, part: str, key: Any) -> None:
    building.writable(part).pop(key, None)
    getattr(building.delta, part).add(key)


def _nothing(building: _Building, record: Any) -> None:
    """Ignores a record that changes nothing."""


_APPLY: dict[type, Callable[[_Building, Any], None]] = {
    records.TopicRecord: _topic,
    records.PartitionRecord: _partition,
    records.PartitionChangeRecord: _partition_change,
    records.ClearElrRecord: _clear_elr,
    records.RemoveTopicRecord: _remove_topic,
    records.ConfigRecord: _config,
    records.RegisterBrokerRecord: _register_broker,
    records.BrokerRegistrationChangeRecord: _broker_registration_change,
    records.FenceBrokerRecord: _fence_broker,
    records.UnfenceBrokerRecord: _unfence_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.RegisterControllerRecord: _register_controller,
    records.UnregisterControllerRecord: _unregister_controller,
    records.FeatureLevelRecord: _feature_level,
    records.ProducerIdsRecord: _producer_ids,
    records.NoOpRecord: _nothing,
    records.ZkMigrationStateRecord: _nothing,
    records.AccessControlEntryRecord: _acl,
    records.RemoveAccessControlEntryRecord: _remove_acl,
    **dict.fromkeys(_KEYED, _set),
    **dict.fromkeys(_REMOVES, _remove),
}
