"""A metadata image as a tree of names, as ``kafka-metadata-shell`` shows it: directories are dictionaries, files texts.

Knows nothing of files of the log, nor of the shell's commands. The names and texts are those of Apache Kafka's
``org.apache.kafka.image.node``.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from itertools import groupby
from typing import Final, Union

from barnabas.cli.kafka_tools.tool import KAFKA_VERSION
from barnabas.cluster.features import METADATA_VERSION, METADATA_VERSIONS
from barnabas.cluster.image.image import (
    BrokerImage,
    ControllerImage,
    MetadataImage,
    PartitionImage,
    QuotaEntity,
    TopicImage,
)
from barnabas.config.dynamic import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    TOPIC_RESOURCE,
)
from barnabas.config.endpoints import Endpoint
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from barnabas.uuids import uuid_text
from barnabas.wire.messages.metadata_records import DelegationTokenRecord, UserScramCredentialRecord

Node = Union[str, "Directory"]
Directory = Mapping[str, Node]

CONFIG_RESOURCES: Final = {
    TOPIC_RESOURCE: "TOPIC",
    BROKER_RESOURCE: "BROKER",
    LOGGER_RESOURCE: "BROKER_LOGGER",
    CLIENT_METRICS_RESOURCE: "CLIENT_METRICS",
    GROUP_RESOURCE: "GROUP",
}
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
ENTITIES: Final = {"client-id": "clientId", "ip": "ip", "user": "user"}
DEFAULT_ENTITY: Final = "<default>"
"""The name of a default entity, of which Apache Kafka's shell says that it is not valid."""
RECOVERY_STATES: Final = ("RECOVERED", "RECOVERING")
NO_COMMIT: Final = "unknown"
NO_PRODUCER_ID: Final = -1
"""The next producer id before a block of them was given to a broker."""


def tree_of(image: MetadataImage, timestamp: int) -> Directory:
    """Returns the tree; ``timestamp`` is that of the last batch, in milliseconds since 1970."""
    return {
        "image": {
            "acls": {"byId": {uuid_text(acl_id): _acl(acl) for acl_id, acl in image.acls.items()}},
            "clientQuotas": _quotas(image),
            "cluster": {
                "brokers": {str(broker_id): _broker(each) for broker_id, each in image.brokers.items()},
                "controllers": {str(node_id): _controller(each) for node_id, each in image.controllers.items()},
            },
            "configs": {_resource(*resource): configs for resource, configs in image.configs.items()},
            "delegationToken": {token_id: _token(each) for token_id, each in image.tokens.items()},
            "features": _features(image),
            "producerIds": {"nextProducerId": str(image.next_producer_id or NO_PRODUCER_ID)},
            "provenance": f"offset {image.offset}, epoch {image.epoch}, time {_time(timestamp)}[UTC]",
            "scram": {
                name: {user: _credential(each) for (user, code), each in image.credentials.items() if code == mechanism}
                for mechanism, name in MECHANISMS.items()
            },
            "topics": {
                "byId": {uuid_text(topic_id): _topic(topic) for topic_id, topic in image.topics_by_id.items()},
                "byName": {name: _topic(topic) for name, topic in image.topics_by_name.items()},
            },
        },
        "local": {"commitId": NO_COMMIT, "version": KAFKA_VERSION},
    }


# ---------------------------------------------------------------- topics


def _topic(topic: TopicImage) -> Directory:
    partitions = {str(index): _partition(each) for index, each in topic.partitions.items()}
    return {**partitions, "id": uuid_text(topic.id), "name": topic.name}


def _partition(partition: PartitionImage) -> str:
    return "PartitionRegistration" + _fields({
        "replicas": _list(partition.replicas),
        "directories": _list(map(uuid_text, partition.directories)),
        "isr": _list(partition.isr),
        "removingReplicas": _list(partition.removing),
        "addingReplicas": _list(partition.adding),
        "elr": _list(partition.elr),
        "lastKnownElr": _list(partition.last_known_elr),
        "leader": partition.leader,
        "leaderRecoveryState": RECOVERY_STATES[partition.leader_recovery_state],
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
    })  # fmt: skip


# ---------------------------------------------------------------- nodes and features


def _broker(broker: BrokerImage) -> str:
    cordoned = broker.cordoned_log_dirs
    return "BrokerRegistration" + _fields({
        "id": broker.id,
        "epoch": broker.epoch,
        "incarnationId": uuid_text(broker.incarnation_id),
        "listeners": _listeners(broker.endpoints),
        "supportedFeatures": _ranges(broker.features),
        "rack": "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]",
        "fenced": _bool(broker.fenced),
        "inControlledShutdown": _bool(broker.in_controlled_shutdown),
        "isMigratingZkBroker": "false",
        "directories": _list(map(uuid_text, broker.log_dirs)),
        "cordonedDirectories": "null" if cordoned is None else _list(map(uuid_text, cordoned)),
    })  # fmt: skip


def _controller(controller: ControllerImage) -> str:
    return "ControllerRegistration" + _fields({
        "id": controller.id,
        "incarnationId": uuid_text(controller.incarnation_id),
        "zkMigrationReady": _bool(controller.zk_migration_ready),
        "listeners": _listeners(controller.endpoints),
        "supportedFeatures": _ranges(controller.features),
    })  # fmt: skip


def _listeners(endpoints: Mapping[str, Endpoint]) -> str:
    return _list(
        f"Endpoint(listenerName='{name}', securityProtocol={each.security_protocol}, host='{each.host}', "
        f"port={each.port})"
        for name, each in sorted(endpoints.items())
    )


def _ranges(features: Mapping[str, tuple[int, int]]) -> str:
    found = (
        f"{name}: {first}" if first == last else f"{name}: {first}-{last}"
        for name, (first, last) in sorted(features.items())
    )
    return "{" + ", ".join(found) + "}"


def _features(image: MetadataImage) -> Directory:
    level = image.features.get(METADATA_VERSION)
    finalized = {f"finalized_{name}": str(each) for name, each in image.features.items() if name != METADATA_VERSION}
    version = "Optional.empty" if level is None else f"Optional[{METADATA_VERSIONS.get(level, level)}]"
    return {**finalized, "metadataVersion": version}


# ---------------------------------------------------------------- configs, quotas and rights


def _resource(kind: int, name: str) -> str:
    label = CONFIG_RESOURCES.get(kind, str(kind))
    return f"{label}:{name}" if name else label


def _quotas(image: MetadataImage) -> Directory:
    return {
        _entity(entity): {name: _double(record.value) for (_, name), record in found}
        for entity, found in groupby(image.quotas.items(), lambda item: item[0][0])
    }


def _entity(entity: QuotaEntity) -> str:
    named = {kind: name if has_name else DEFAULT_ENTITY for kind, has_name, name in entity}
    return "_".join(f"{ENTITIES[kind]}({_escaped(named[kind])})" for kind in ENTITIES if kind in named)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _acl(acl: Acl) -> str:
    codes: dict[str, IntEnum] = {
        "resourceType": ResourceType(acl.resource_type),
        "patternType": PatternType(acl.pattern_type),
        "operation": Operation(acl.operation),
        "permissionType": Permission(acl.permission),
    }
    name = {kind: code.name for kind, code in codes.items()}
    return (
        f"StandardAcl[resourceType={name['resourceType']}, resourceName={acl.resource_name}, "
        f"patternType={name['patternType']}, principal={acl.principal}, host={acl.host}, "
        f"operation={name['operation']}, permissionType={name['permissionType']}]"
    )


def _credential(record: UserScramCredentialRecord) -> str:
    return "ScramCredentialData" + _fields({
        "salt": record.salt.hex(), "storedKey": record.stored_key.hex(), "serverKey": record.server_key.hex(),
        "iterations": record.iterations,
    })  # fmt: skip


def _token(record: DelegationTokenRecord) -> str:
    """Returns the text of Apache Kafka's ``DelegationTokenDataNode``, parentheses and all."""
    return (
        f"DelegationTokenDatatokenId={record.token_id}(owner={record.owner}(tokenRequester={record.requester}"
        f"(renewers={' '.join(record.renewers)}, issueTimestamp={record.issue_timestamp}, "
        f"maxTimestamp={record.max_timestamp}), expiryTimestamp={record.expiration_timestamp}"
    )


# ---------------------------------------------------------------- Java's texts


def _fields(values: Mapping[str, object]) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in values.items()) + ")"


def _list(values: Iterable[object]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


def _bool(value: bool) -> str:
    return str(value).lower()


def _double(value: float) -> str:
    """Returns a number as ``Double.toString`` does: with an exponent from ten million on, and below a thousandth."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(text for text in (f"{value:.{digits}e}" for digits in range(18)) if float(text) == value)
    digits, _, exponent = shortest.partition("e")
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(exponent)}"


def _time(timestamp: int) -> str:
    """Returns a time as ``ISO_ZONED_DATE_TIME`` has it: fractions of a second only as long as they must be."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp)
    fraction = f"{moment.microsecond:06d}".rstrip("0")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{f'.{fraction}' if fraction else ''}Z"
