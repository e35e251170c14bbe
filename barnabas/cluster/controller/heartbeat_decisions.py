"""Decides on the states of brokers by their heartbeats: fenced, unfenced, controlled shutdown.

Knows nothing of time: the heartbeats that are passed in know whose session has expired. The rules are those of Apache
Kafka's ``BrokerHeartbeatManager`` and of ``ReplicationControlManager.processBrokerHeartbeat`` (KIP-631).
"""

from enum import Enum

from barnabas.cluster.controller.commands.nodes import BrokerHeartbeat, FenceStaleBroker, HeartbeatResult
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.directory_decisions import cordoned, taken_offline
from barnabas.cluster.controller.heartbeats import NOTHING, Heard
from barnabas.cluster.controller.node_decisions import registered
from barnabas.cluster.controller.partition_changes import Terms, changes_where, led_by_others
from barnabas.cluster.controller.replicas import is_active
from barnabas.cluster.image.image import NO_LEADER, BrokerImage, MetadataImage
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord


class State(Enum):
    """The state of a broker (``BrokerControlState``)."""

    FENCED = 0
    UNFENCED = 1
    CONTROLLED_SHUTDOWN = 2  #: it still leads partitions, or other brokers may not know their new leaders
    SHUTDOWN_NOW = 3


def broker_heartbeat(command: BrokerHeartbeat, image: MetadataImage, around: Surroundings) -> Decision:
    """Changes the state of a broker as it wants, if that is allowed.

    :raises StaleBrokerEpoch: the epoch is not that of the registration
    """
    broker = registered(command.id, command.epoch, image)
    now = state_of(broker, around)
    then = next_state(now, command, image, around)
    records = changes(now, then, broker, Terms(image, around))
    if then is State.CONTROLLED_SHUTDOWN and now is not then and not has_active_brokers_but(broker.id, image):
        after, _ = image.apply(records)
        records += changes(then, State.SHUTDOWN_NOW, after.brokers[broker.id], Terms(after, around))
        then = State.SHUTDOWN_NOW
    if command.offline_log_dirs:
        after, _ = image.apply(records)
        records += taken_offline(broker.id, command.offline_log_dirs, Terms(after, around))
    if command.cordoned_log_dirs is not None:
        records += cordoned(broker, command.cordoned_log_dirs, image)
    is_caught_up = command.metadata_offset >= around.heartbeats.registered_offset(broker.id)
    is_fenced = then in (State.FENCED, State.SHUTDOWN_NOW)
    heard = Heard(
        broker.id,
        broker.epoch,
        command.metadata_offset,
        fenced=is_fenced,
        shuts_down=then is State.CONTROLLED_SHUTDOWN,
        is_gone=then is State.SHUTDOWN_NOW,  # it may register again immediately
    )
    return Decision(records, HeartbeatResult(is_caught_up, is_fenced, then is State.SHUTDOWN_NOW), heard=heard)


def state_of(broker: BrokerImage, around: Surroundings) -> State:
    if around.heartbeats.shutdown_offset(broker.id) != NOTHING:
        return State.CONTROLLED_SHUTDOWN
    return State.FENCED if broker.fenced else State.UNFENCED


def next_state(now: State, command: BrokerHeartbeat, image: MetadataImage, around: Surroundings) -> State:
    """Returns the next state of a broker (``BrokerHeartbeatManager.calculateNextBrokerState``)."""
    heartbeats = around.heartbeats
    if now is State.FENCED:
        if command.want_shut_down:
            return State.SHUTDOWN_NOW
        is_caught_up = command.metadata_offset >= heartbeats.registered_offset(command.id)
        return State.UNFENCED if is_caught_up and not command.want_fence else State.FENCED
    if now is State.UNFENCED:
        if command.want_fence:
            return State.SHUTDOWN_NOW if command.want_shut_down else State.FENCED
        if not command.want_shut_down:
            return State.UNFENCED
        return State.CONTROLLED_SHUTDOWN if leads(command.id, image) else State.SHUTDOWN_NOW
    offset = heartbeats.shutdown_offset(command.id)
    may_stop = not leads(command.id, image) and heartbeats.others_know(offset, command.id, image)
    return State.SHUTDOWN_NOW if may_stop else State.CONTROLLED_SHUTDOWN


def leads(broker_id: int, image: MetadataImage) -> bool:
    return any(
        partition.leader == broker_id
        for topic in image.topics_by_id.values()
        for partition in topic.partitions.values()
    )


def has_active_brokers_but(broker_id: int, image: MetadataImage) -> bool:
    return any(each != broker_id and is_active(each, image) for each in image.brokers)


def changes(now: State, then: State, broker: BrokerImage, terms: Terms) -> list[object]:
    """Returns the records for a transition between two states."""
    if now is then:
        return []
    if then is State.UNFENCED:
        return unfenced(broker, terms)
    if then is State.CONTROLLED_SHUTDOWN:
        return shutting_down(broker, terms)
    return fenced(broker, terms)


def fenced(broker: BrokerImage, terms: Terms) -> list[object]:
    """Returns the records that fence a broker. It leaves the ISRs, and other brokers lead its partitions."""
    if broker.fenced:
        return []
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=1)
    return [*led_by_others(broker.id, after(record, terms)), record]


def unfenced(broker: BrokerImage, terms: Terms) -> list[object]:
    """Returns the records that unfence a broker. It may become the leader of partitions without a leader."""
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=-1)
    return [record, *changes_where(lambda each: each.leader == NO_LEADER, after(record, terms))]


def shutting_down(broker: BrokerImage, terms: Terms) -> list[object]:
    """Returns the records of a controlled shutdown: the broker leaves the ISRs, and others lead its partitions."""
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1)
    begins = [] if broker.in_controlled_shutdown else [record]
    return [*begins, *led_by_others(broker.id, after(record, terms))]


def after(record: object, terms: Terms) -> Terms:
    image, _ = terms.image.apply([record])
    return Terms(image, terms.around)


def fence_stale_broker(command: FenceStaleBroker, image: MetadataImage, around: Surroundings) -> Decision:
    """Fences one broker whose session has expired, so that the decision on the next one sees the new state."""
    stale = around.heartbeats.stale()
    if stale is None:
        return Decision([], False)
    broker_id, epoch = stale
    broker = image.brokers.get(broker_id)
    heard = Heard(broker_id, epoch, fenced=True, is_gone=True)
    if broker is None or broker.epoch != epoch:
        return Decision([], True, heard=heard)
    return Decision(fenced(broker, Terms(image, around)), True, heard=heard)
