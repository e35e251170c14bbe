"""Brings a running broker back to the state of a new one, between two tests.

Knows nothing of threads: it runs in the broker's own.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.broker import Broker
from barnabas.cluster.controller.commands.acls import CreateAcls, DeleteAcls
from barnabas.cluster.controller.commands.configs import AlterConfigs, ConfigResource
from barnabas.cluster.controller.commands.features import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate, UpdateFeatures
from barnabas.cluster.controller.commands.quotas import AlterClientQuotas, QuotaAlteration
from barnabas.cluster.controller.commands.scram import AlterUserScramCredentials, ScramDeletion
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.controller.controller import logged
from barnabas.cluster.controller.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.cluster.features import ELIGIBLE_LEADER_REPLICAS, FEATURES, METADATA_VERSION
from barnabas.cluster.image.image import QuotaEntity
from barnabas.config.dynamic import BROKER_RESOURCE
from barnabas.errors import KafkaError
from barnabas.security.acls import Acl, AclFilter
from barnabas.security.sasl.scram import CODES


class AtStart(NamedTuple):
    """The state in which the broker started."""

    features: Mapping[str, int]
    acls: Sequence[Acl] = ()
    users: Collection[str] = ()  #: users whose SCRAM credentials stay


def reset(
    broker: Broker, at_start: AtStart, done: Callable[[], object], *, kept_topics: Collection[bytes] = ()
) -> None:
    """Removes topics, groups, transactions, sessions, dynamic configs, quotas and new users.

    Features and ACLs are restored to those at the start.

    ``metadata.version`` and ``kraft.version`` stay, since they cannot go down. Connections stay, too.

    :param kept_topics: the ids of topics that stay
    """
    image, controller = broker.image, broker.controller
    updates = _updates(image.features, at_start.features)
    if updates:
        controller.submit(UpdateFeatures(updates), logged("the levels of features"))
    configs = [(ConfigResource(*each), _configs_at_start(broker, each, at_start.features)) for each in image.configs]
    controller.submit(AlterConfigs(configs), logged("the configs"))

    if image.acls:
        controller.submit(DeleteAcls([AclFilter()]), logged("the ACLs"))
    if at_start.acls:
        controller.submit(CreateAcls(at_start.acls), logged("the ACLs"))
    for code in CODES.values():  # a user may be named once in a command
        deletions = [
            ScramDeletion(*key) for key in image.credentials if key[1] == code and key[0] not in at_start.users
        ]
        if deletions:
            controller.submit(AlterUserScramCredentials(deletions, []), logged("the credentials"))
    if image.quotas:
        controller.submit(AlterClientQuotas(_without_quotas(image.quotas)), logged("the quotas"))

    def deleted(result: Any, error: KafkaError | None) -> None:
        broker.forget_share_partitions()
        broker.fetch_sessions.clear()
        done()

    topics = [(None, topic_id) for topic_id in image.topics_by_id if topic_id not in kept_topics]
    controller.submit(DeleteTopics(topics), deleted)


def _without_quotas(quotas: Iterable[tuple[QuotaEntity, str]]) -> list[QuotaAlteration]:
    removed: dict[QuotaEntity, list[tuple[str, float | None]]] = {}
    for entity, name in quotas:
        removed.setdefault(entity, []).append((name, None))
    return [
        QuotaAlteration({kind: name if is_named else None for kind, is_named, name in entity}, values)
        for entity, values in removed.items()
    ]


def _updates(levels: Mapping[str, int], wanted: Mapping[str, int]) -> list[FeatureUpdate]:
    updates = []
    for name in FEATURES:
        before, level = levels.get(name, 0), wanted.get(name, 0)
        if name != METADATA_VERSION and level != before:
            updates.append(FeatureUpdate(name, level, UPGRADE if level > before else SAFE_DOWNGRADE))
    return updates


def _configs_at_start(
    broker: Broker, resource: tuple[int, str], features: Mapping[str, int]
) -> list[tuple[str, str | None]]:
    """Returns the configs of a new cluster: none, or the one config that must be equal on all brokers."""
    if resource != (BROKER_RESOURCE, "") or not features.get(ELIGIBLE_LEADER_REPLICAS):
        return []
    return [(MIN_INSYNC_REPLICAS, str(broker.config.static(MIN_INSYNC_REPLICAS)))]
