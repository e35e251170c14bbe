"""Every error of the Kafka protocol, as an exception that knows its code; and two that close the connection instead.

Knows nothing of who raises or answers them. Codes, names and which are worth a retry are those of Apache Kafka's
``org.apache.kafka.common.protocol.Errors``.
"""

from collections.abc import Sequence
from typing import ClassVar

NONE = 0


class MalformedMessage(Exception):
    """The bytes are not the message that they claim to be: there is no answer, the connection is closed."""


class CloseConnection(Exception):
    """The protocol has no answer to a request but to close its connection. The text goes into the log."""


class KafkaError(Exception):
    """An answer of the protocol: its code goes into the response, its text beside it where there is a place.

    A subclass without a code of its own is a special case of its parent, which shares the parent's.
    """

    code: ClassVar[int]
    retriable: ClassVar[bool]
    by_code: ClassVar[dict[int, type["KafkaError"]]] = {}

    #: Of a batch that is refused for some of its records: their index in the batch, and what is wrong (KIP-467).
    record_errors: Sequence[tuple[int, str]] = ()

    def __init_subclass__(cls, *, code: int | None = None, retriable: bool = False) -> None:
        if code is None:
            return
        assert code not in KafkaError.by_code, f"{cls.__name__} reuses the code of {KafkaError.by_code[code]}"
        cls.code, cls.retriable = code, retriable
        KafkaError.by_code[code] = cls

    def __str__(self) -> str:
        return super().__str__() or self.__doc__ or ""


class UnknownServerError(KafkaError, code=-1):
    """The broker failed in a way that it did not foresee; its log says more."""


class OffsetOutOfRange(KafkaError, code=1):
    """The log has no such offset: it starts later, or ends earlier."""


class CorruptMessage(KafkaError, code=2, retriable=True):
    """The bytes of the records do not match their checksum, or their layout is broken."""


class UnknownTopicOrPartition(KafkaError, code=3, retriable=True):
    """This broker knows no such topic or partition."""


class InvalidFetchSize(KafkaError, code=4):
    """A fetch cannot ask for so few bytes."""


class LeaderNotAvailable(KafkaError, code=5, retriable=True):
    """The partition has no leader at the moment."""


class NotLeaderOrFollower(KafkaError, code=6, retriable=True):
    """This broker does not lead the partition, or is no replica of it."""


class RequestTimedOut(KafkaError, code=7, retriable=True):
    """What was asked for did not happen in the time that it was given."""


class BrokerNotAvailable(KafkaError, code=8):
    """There is no such broker, or it is not running."""


class ReplicaNotAvailable(KafkaError, code=9, retriable=True):
    """The replica that was asked for is not on this broker."""


class MessageTooLarge(KafkaError, code=10):
    """The batch is larger than the topic allows (max.message.bytes)."""


class StaleControllerEpoch(KafkaError, code=11):
    """A newer controller has taken over since."""


class OffsetMetadataTooLarge(KafkaError, code=12):
    """The text beside the committed offset is too long (offset.metadata.max.bytes)."""


class NetworkException(KafkaError, code=13, retriable=True):
    """The connection broke before there was an answer."""


class CoordinatorLoadInProgress(KafkaError, code=14, retriable=True):
    """The coordinator is still reading its log."""


class CoordinatorNotAvailable(KafkaError, code=15, retriable=True):
    """There is no coordinator for this group or transactional id yet."""


class NotCoordinator(KafkaError, code=16, retriable=True):
    """Another broker is the coordinator."""


class InvalidTopicException(KafkaError, code=17):
    """A topic cannot be called that, or this one is not for clients to write to."""


class RecordListTooLarge(KafkaError, code=18):
    """The batch does not fit into a segment."""


class NotEnoughReplicas(KafkaError, code=19, retriable=True):
    """Fewer replicas are in sync than min.insync.replicas demands; nothing was written."""


class NotEnoughReplicasAfterAppend(KafkaError, code=20, retriable=True):
    """The records are written, and then fewer replicas were in sync than min.insync.replicas demands."""


class InvalidRequiredAcks(KafkaError, code=21):
    """acks is 0, 1 or -1."""


class IllegalGeneration(KafkaError, code=22):
    """The group is in another generation."""


class InconsistentGroupProtocol(KafkaError, code=23):
    """The member and the group have no protocol in common."""


class InvalidGroupId(KafkaError, code=24):
    """A group cannot be called that."""


class UnknownMemberId(KafkaError, code=25):
    """The group has no such member."""


class InvalidSessionTimeout(KafkaError, code=26):
    """The session time-out is outside of what the broker allows."""


class RebalanceInProgress(KafkaError, code=27):
    """The group is rebalancing: join again."""


class InvalidCommitOffsetSize(KafkaError, code=28):
    """The commit is larger than a record of the offsets topic may be."""


class TopicAuthorizationFailed(KafkaError, code=29):
    """This principal may not do that with the topic."""


class GroupAuthorizationFailed(KafkaError, code=30):
    """This principal may not do that with the group."""


class ClusterAuthorizationFailed(KafkaError, code=31):
    """This principal may not do that with the cluster."""


class InvalidTimestamp(KafkaError, code=32):
    """A record has a timestamp that the topic does not take."""


class UnsupportedSaslMechanism(KafkaError, code=33):
    """This SASL mechanism is not enabled on the listener."""


class IllegalSaslState(KafkaError, code=34):
    """The request does not belong at this point of the authentication."""


class UnsupportedVersion(KafkaError, code=35):
    """This version of the request, or what it asks for, is not served here."""


class TopicAlreadyExists(KafkaError, code=36):
    """There is a topic of that name."""


class InvalidPartitions(KafkaError, code=37):
    """That is not a number of partitions that the topic can have."""


class InvalidReplicationFactor(KafkaError, code=38):
    """There are not that many brokers, or the replication factor is below 1."""


class InvalidReplicaAssignment(KafkaError, code=39):
    """Partitions cannot be assigned to brokers in that way."""


class InvalidConfig(KafkaError, code=40):
    """The config has no such name, or cannot have that value."""


class NotController(KafkaError, code=41, retriable=True):
    """This node is not the active controller."""


class InvalidRequest(KafkaError, code=42):
    """The request can be read, and contradicts itself or the protocol."""


class UnsupportedForMessageFormat(KafkaError, code=43):
    """The format in which the records are stored has no place for that."""


class PolicyViolation(KafkaError, code=44):
    """A policy of this cluster forbids that."""


class OutOfOrderSequenceNumber(KafkaError, code=45):
    """A batch before this one is missing: its sequence number leaves a gap."""


class DuplicateSequenceNumber(KafkaError, code=46):
    """The batch is here already, and too old to say at which offset."""


class InvalidProducerEpoch(KafkaError, code=47):
    """The producer has an old epoch: another with its id has started since."""


class InvalidTxnState(KafkaError, code=48):
    """The transaction is not in a state in which that could be done."""


class InvalidProducerIdMapping(KafkaError, code=49):
    """The transactional id belongs to another producer id."""


class InvalidTransactionTimeout(KafkaError, code=50):
    """The transaction time-out is above transaction.max.timeout.ms."""


class ConcurrentTransactions(KafkaError, code=51, retriable=True):
    """The transaction before is still being completed."""


class TransactionCoordinatorFenced(KafkaError, code=52):
    """Another broker has become the coordinator of this transaction."""


class TransactionalIdAuthorizationFailed(KafkaError, code=53):
    """This principal may not use the transactional id."""


class SecurityDisabled(KafkaError, code=54):
    """The broker runs without what this asks about, such as an authorizer."""


class OperationNotAttempted(KafkaError, code=55):
    """Not tried, because another part of the request failed."""


class KafkaStorageError(KafkaError, code=56, retriable=True):
    """The directory of this log has failed."""


class LogDirNotFound(KafkaError, code=57):
    """The broker has no such log directory."""


class SaslAuthenticationFailed(KafkaError, code=58):
    """The credentials are not right."""


class UnknownProducerId(KafkaError, code=59):
    """Nothing is remembered of this producer; its last records may have been deleted."""


class ReassignmentInProgress(KafkaError, code=60):
    """The partition is being reassigned."""


class DelegationTokenAuthDisabled(KafkaError, code=61):
    """Delegation tokens are not enabled."""


class DelegationTokenNotFound(KafkaError, code=62):
    """There is no such delegation token."""


class DelegationTokenOwnerMismatch(KafkaError, code=63):
    """The delegation token is not this principal's to renew or expire."""


class DelegationTokenRequestNotAllowed(KafkaError, code=64):
    """Delegation tokens cannot be asked for on such a connection."""


class DelegationTokenAuthorizationFailed(KafkaError, code=65):
    """This principal may not do that with the delegation token."""


class DelegationTokenExpired(KafkaError, code=66):
    """The delegation token has expired."""


class InvalidPrincipalType(KafkaError, code=67):
    """There are no principals of that type."""


class NonEmptyGroup(KafkaError, code=68):
    """The group still has members."""


class GroupIdNotFound(KafkaError, code=69):
    """There is no such group."""


class FetchSessionIdNotFound(KafkaError, code=70, retriable=True):
    """There is no such fetch session; it may have been evicted."""


class InvalidFetchSessionEpoch(KafkaError, code=71, retriable=True):
    """The fetch does not come next in its session."""


class ListenerNotFound(KafkaError, code=72, retriable=True):
    """The leader has no listener of the name that this one has."""


class TopicDeletionDisabled(KafkaError, code=73):
    """Topics cannot be deleted here (delete.topic.enable)."""


class FencedLeaderEpoch(KafkaError, code=74, retriable=True):
    """The leader epoch is an old one: there was an election since."""


class UnknownLeaderEpoch(KafkaError, code=75, retriable=True):
    """The leader epoch is newer than this broker knows."""


class UnsupportedCompressionType(KafkaError, code=76):
    """The records are compressed in a way that this version of the request does not have."""


class StaleBrokerEpoch(KafkaError, code=77):
    """The broker has registered anew since."""


class OffsetNotAvailable(KafkaError, code=78, retriable=True):
    """The new leader does not know its high watermark yet."""


class MemberIdRequired(KafkaError, code=79):
    """Join again with the member id that this answer gives."""


class PreferredLeaderNotAvailable(KafkaError, code=80, retriable=True):
    """The preferred replica cannot lead now."""


class GroupMaxSizeReached(KafkaError, code=81):
    """The group has as many members as it may have (group.max.size)."""


class FencedInstanceId(KafkaError, code=82):
    """Another member has this group instance id now."""


class EligibleLeadersNotAvailable(KafkaError, code=83, retriable=True):
    """No replica that could lead is available."""


class ElectionNotNeeded(KafkaError, code=84, retriable=True):
    """The partition has the leader that it should have."""


class NoReassignmentInProgress(KafkaError, code=85):
    """The partition is not being reassigned."""


class GroupSubscribedToTopic(KafkaError, code=86):
    """The group is subscribed to the topic, so its offsets stay."""


class InvalidRecord(KafkaError, code=87):
    """A record or its batch is not as the topic wants it."""


class UnstableOffsetCommit(KafkaError, code=88, retriable=True):
    """A transaction that commits these offsets is not decided yet."""


class ThrottlingQuotaExceeded(KafkaError, code=89, retriable=True):
    """There were more changes than the quota allows: wait as long as the answer says."""


class ProducerFenced(KafkaError, code=90):
    """Another producer with this transactional id has started since."""


class ResourceNotFound(KafkaError, code=91):
    """There is no such resource."""


class DuplicateResource(KafkaError, code=92):
    """There is such a resource already, or it is named twice."""


class UnacceptableCredential(KafkaError, code=93):
    """These credentials do not meet the rules."""


class InconsistentVoterSet(KafkaError, code=94):
    """The voters that the request names are not those of the quorum."""


class InvalidUpdateVersion(KafkaError, code=95):
    """The feature cannot go to that level."""


class FeatureUpdateFailed(KafkaError, code=96):
    """The features stay as they are: the update failed."""


class PrincipalDeserializationFailure(KafkaError, code=97):
    """The principal in the forwarded request cannot be read."""


class SnapshotNotFound(KafkaError, code=98):
    """There is no such snapshot."""


class PositionOutOfRange(KafkaError, code=99):
    """The snapshot does not reach as far as that position."""


class UnknownTopicId(KafkaError, code=100, retriable=True):
    """This broker knows no topic with that id."""


class DuplicateBrokerRegistration(KafkaError, code=101):
    """Another broker that is alive has this id."""


class BrokerIdNotRegistered(KafkaError, code=102):
    """No broker with that id has registered."""


class InconsistentTopicId(KafkaError, code=103, retriable=True):
    """The topic has another id in the log."""


class InconsistentClusterId(KafkaError, code=104):
    """The request is meant for another cluster."""


class TransactionalIdNotFound(KafkaError, code=105):
    """Nothing is known of this transactional id."""


class FetchSessionTopicIdError(KafkaError, code=106, retriable=True):
    """The fetch session began with topic names and went on with ids, or the other way round."""


class IneligibleReplica(KafkaError, code=107):
    """The replica may not join those in sync now."""


class NewLeaderElected(KafkaError, code=108):
    """The change removed the leader, and another was elected."""


class OffsetMovedToTieredStorage(KafkaError, code=109):
    """The offset is only in tiered storage now."""


class FencedMemberEpoch(KafkaError, code=110):
    """The member has an old epoch: leave everything, and join again."""


class UnreleasedInstanceId(KafkaError, code=111):
    """A member that is still here has this group instance id."""


class UnsupportedAssignor(KafkaError, code=112):
    """The group cannot use this assignor."""


class StaleMemberEpoch(KafkaError, code=113):
    """The member has an old epoch: hear the next heartbeat's answer, and try again."""


class MismatchedEndpointType(KafkaError, code=114):
    """The request went to the wrong kind of listener: broker or controller."""


class UnsupportedEndpointType(KafkaError, code=115):
    """There are no endpoints of that type."""


class UnknownControllerId(KafkaError, code=116):
    """There is no such controller."""


class UnknownSubscriptionId(KafkaError, code=117):
    """The client's telemetry subscription is not the present one."""


class TelemetryTooLarge(KafkaError, code=118):
    """The telemetry is larger than the broker takes."""


class InvalidRegistration(KafkaError, code=119):
    """The controller does not accept this registration."""


class TransactionAbortable(KafkaError, code=120):
    """The transaction cannot be committed any more, but it can be aborted."""


class InvalidRecordState(KafkaError, code=121):
    """The record was not acquired by this member, or not any longer."""


class ShareSessionNotFound(KafkaError, code=122, retriable=True):
    """There is no such share session."""


class InvalidShareSessionEpoch(KafkaError, code=123, retriable=True):
    """The request does not come next in its share session."""


class FencedStateEpoch(KafkaError, code=124):
    """The share group's state has gone on to a newer epoch."""


class InvalidVoterKey(KafkaError, code=125):
    """The voter has another directory id."""


class DuplicateVoter(KafkaError, code=126):
    """The node is a voter already."""


class VoterNotFound(KafkaError, code=127):
    """There is no such voter."""


class InvalidRegularExpression(KafkaError, code=128):
    """The regular expression cannot be understood."""


class RebootstrapRequired(KafkaError, code=129):
    """The client had better start again from its bootstrap servers."""


class StreamsInvalidTopology(KafkaError, code=130):
    """The topology contradicts itself."""


class StreamsInvalidTopologyEpoch(KafkaError, code=131):
    """The topology's epoch does not fit the group."""


class StreamsTopologyFenced(KafkaError, code=132):
    """The group has gone on to a newer topology."""


class ShareSessionLimitReached(KafkaError, code=133, retriable=True):
    """There are as many share sessions as there may be."""
