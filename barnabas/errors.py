"""Every error of the Kafka protocol, as an exception that knows its code; and the one that is none of them.

Knows nothing of who raises or answers them. Codes, names and which are worth a retry are those of Apache Kafka's
``org.apache.kafka.common.protocol.Errors``.
"""

from collections.abc import Sequence
from typing import ClassVar

NONE = 0


class MalformedMessage(Exception):
    """The bytes are not the message that they claim to be: there is no answer, the connection is closed."""


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
    """Unknown server error."""


class OffsetOutOfRange(KafkaError, code=1):
    """Offset out of range."""


class CorruptMessage(KafkaError, code=2, retriable=True):
    """Corrupt message."""


class UnknownTopicOrPartition(KafkaError, code=3, retriable=True):
    """Unknown topic or partition."""


class InvalidFetchSize(KafkaError, code=4):
    """Invalid fetch size."""


class LeaderNotAvailable(KafkaError, code=5, retriable=True):
    """Leader not available."""


class NotLeaderOrFollower(KafkaError, code=6, retriable=True):
    """Not leader or follower."""


class RequestTimedOut(KafkaError, code=7, retriable=True):
    """Request timed out."""


class BrokerNotAvailable(KafkaError, code=8):
    """Broker not available."""


class ReplicaNotAvailable(KafkaError, code=9, retriable=True):
    """Replica not available."""


class MessageTooLarge(KafkaError, code=10):
    """Message too large."""


class StaleControllerEpoch(KafkaError, code=11):
    """Stale controller epoch."""


class OffsetMetadataTooLarge(KafkaError, code=12):
    """Offset metadata too large."""


class NetworkException(KafkaError, code=13, retriable=True):
    """Network exception."""


class CoordinatorLoadInProgress(KafkaError, code=14, retriable=True):
    """Coordinator load in progress."""


class CoordinatorNotAvailable(KafkaError, code=15, retriable=True):
    """Coordinator not available."""


class NotCoordinator(KafkaError, code=16, retriable=True):
    """Not coordinator."""


class InvalidTopicException(KafkaError, code=17):
    """Invalid topic exception."""


class RecordListTooLarge(KafkaError, code=18):
    """Record list too large."""


class NotEnoughReplicas(KafkaError, code=19, retriable=True):
    """Not enough replicas."""


class NotEnoughReplicasAfterAppend(KafkaError, code=20, retriable=True):
    """Not enough replicas after append."""


class InvalidRequiredAcks(KafkaError, code=21):
    """Invalid required acks."""


class IllegalGeneration(KafkaError, code=22):
    """Illegal generation."""


class InconsistentGroupProtocol(KafkaError, code=23):
    """Inconsistent group protocol."""


class InvalidGroupId(KafkaError, code=24):
    """Invalid group id."""


class UnknownMemberId(KafkaError, code=25):
    """Unknown member id."""


class InvalidSessionTimeout(KafkaError, code=26):
    """Invalid session timeout."""


class RebalanceInProgress(KafkaError, code=27):
    """Rebalance in progress."""


class InvalidCommitOffsetSize(KafkaError, code=28):
    """Invalid commit offset size."""


class TopicAuthorizationFailed(KafkaError, code=29):
    """Topic authorization failed."""


class GroupAuthorizationFailed(KafkaError, code=30):
    """Group authorization failed."""


class ClusterAuthorizationFailed(KafkaError, code=31):
    """Cluster authorization failed."""


class InvalidTimestamp(KafkaError, code=32):
    """Invalid timestamp."""


class UnsupportedSaslMechanism(KafkaError, code=33):
    """Unsupported sasl mechanism."""


class IllegalSaslState(KafkaError, code=34):
    """Illegal sasl state."""


class UnsupportedVersion(KafkaError, code=35):
    """Unsupported version."""


class TopicAlreadyExists(KafkaError, code=36):
    """Topic already exists."""


class InvalidPartitions(KafkaError, code=37):
    """Invalid partitions."""


class InvalidReplicationFactor(KafkaError, code=38):
    """Invalid replication factor."""


class InvalidReplicaAssignment(KafkaError, code=39):
    """Invalid replica assignment."""


class InvalidConfig(KafkaError, code=40):
    """Invalid config."""


class NotController(KafkaError, code=41, retriable=True):
    """Not controller."""


class InvalidRequest(KafkaError, code=42):
    """Invalid request."""


class UnsupportedForMessageFormat(KafkaError, code=43):
    """Unsupported for message format."""


class PolicyViolation(KafkaError, code=44):
    """Policy violation."""


class OutOfOrderSequenceNumber(KafkaError, code=45):
    """Out of order sequence number."""


class DuplicateSequenceNumber(KafkaError, code=46):
    """Duplicate sequence number."""


class InvalidProducerEpoch(KafkaError, code=47):
    """Invalid producer epoch."""


class InvalidTxnState(KafkaError, code=48):
    """Invalid txn state."""


class InvalidProducerIdMapping(KafkaError, code=49):
    """Invalid producer id mapping."""


class InvalidTransactionTimeout(KafkaError, code=50):
    """Invalid transaction timeout."""


class ConcurrentTransactions(KafkaError, code=51, retriable=True):
    """Concurrent transactions."""


class TransactionCoordinatorFenced(KafkaError, code=52):
    """Transaction coordinator fenced."""


class TransactionalIdAuthorizationFailed(KafkaError, code=53):
    """Transactional id authorization failed."""


class SecurityDisabled(KafkaError, code=54):
    """Security disabled."""


class OperationNotAttempted(KafkaError, code=55):
    """Operation not attempted."""


class KafkaStorageError(KafkaError, code=56, retriable=True):
    """Kafka storage error."""


class LogDirNotFound(KafkaError, code=57):
    """Log dir not found."""


class SaslAuthenticationFailed(KafkaError, code=58):
    """Sasl authentication failed."""


class UnknownProducerId(KafkaError, code=59):
    """Unknown producer id."""


class ReassignmentInProgress(KafkaError, code=60):
    """Reassignment in progress."""


class DelegationTokenAuthDisabled(KafkaError, code=61):
    """Delegation token auth disabled."""


class DelegationTokenNotFound(KafkaError, code=62):
    """Delegation token not found."""


class DelegationTokenOwnerMismatch(KafkaError, code=63):
    """Delegation token owner mismatch."""


class DelegationTokenRequestNotAllowed(KafkaError, code=64):
    """Delegation token request not allowed."""


class DelegationTokenAuthorizationFailed(KafkaError, code=65):
    """Delegation token authorization failed."""


class DelegationTokenExpired(KafkaError, code=66):
    """Delegation token expired."""


class InvalidPrincipalType(KafkaError, code=67):
    """Invalid principal type."""


class NonEmptyGroup(KafkaError, code=68):
    """Non empty group."""


class GroupIdNotFound(KafkaError, code=69):
    """Group id not found."""


class FetchSessionIdNotFound(KafkaError, code=70, retriable=True):
    """Fetch session id not found."""


class InvalidFetchSessionEpoch(KafkaError, code=71, retriable=True):
    """Invalid fetch session epoch."""


class ListenerNotFound(KafkaError, code=72, retriable=True):
    """Listener not found."""


class TopicDeletionDisabled(KafkaError, code=73):
    """Topic deletion disabled."""


class FencedLeaderEpoch(KafkaError, code=74, retriable=True):
    """Fenced leader epoch."""


class UnknownLeaderEpoch(KafkaError, code=75, retriable=True):
    """Unknown leader epoch."""


class UnsupportedCompressionType(KafkaError, code=76):
    """Unsupported compression type."""


class StaleBrokerEpoch(KafkaError, code=77):
    """Stale broker epoch."""


class OffsetNotAvailable(KafkaError, code=78, retriable=True):
    """Offset not available."""


class MemberIdRequired(KafkaError, code=79):
    """Member id required."""


class PreferredLeaderNotAvailable(KafkaError, code=80, retriable=True):
    """Preferred leader not available."""


class GroupMaxSizeReached(KafkaError, code=81):
    """Group max size reached."""


class FencedInstanceId(KafkaError, code=82):
    """Fenced instance id."""


class EligibleLeadersNotAvailable(KafkaError, code=83, retriable=True):
    """Eligible leaders not available."""


class ElectionNotNeeded(KafkaError, code=84, retriable=True):
    """Election not needed."""


class NoReassignmentInProgress(KafkaError, code=85):
    """No reassignment in progress."""


class GroupSubscribedToTopic(KafkaError, code=86):
    """Group subscribed to topic."""


class InvalidRecord(KafkaError, code=87):
    """Invalid record."""


class UnstableOffsetCommit(KafkaError, code=88, retriable=True):
    """Unstable offset commit."""


class ThrottlingQuotaExceeded(KafkaError, code=89, retriable=True):
    """Throttling quota exceeded."""


class ProducerFenced(KafkaError, code=90):
    """Producer fenced."""


class ResourceNotFound(KafkaError, code=91):
    """Resource not found."""


class DuplicateResource(KafkaError, code=92):
    """Duplicate resource."""


class UnacceptableCredential(KafkaError, code=93):
    """Unacceptable credential."""


class InconsistentVoterSet(KafkaError, code=94):
    """Inconsistent voter set."""


class InvalidUpdateVersion(KafkaError, code=95):
    """Invalid update version."""


class FeatureUpdateFailed(KafkaError, code=96):
    """Feature update failed."""


class PrincipalDeserializationFailure(KafkaError, code=97):
    """Principal deserialization failure."""


class SnapshotNotFound(KafkaError, code=98):
    """Snapshot not found."""


class PositionOutOfRange(KafkaError, code=99):
    """Position out of range."""


class UnknownTopicId(KafkaError, code=100, retriable=True):
    """Unknown topic id."""


class DuplicateBrokerRegistration(KafkaError, code=101):
    """Duplicate broker registration."""


class BrokerIdNotRegistered(KafkaError, code=102):
    """Broker id not registered."""


class InconsistentTopicId(KafkaError, code=103, retriable=True):
    """Inconsistent topic id."""


class InconsistentClusterId(KafkaError, code=104):
    """Inconsistent cluster id."""


class TransactionalIdNotFound(KafkaError, code=105):
    """Transactional id not found."""


class FetchSessionTopicIdError(KafkaError, code=106, retriable=True):
    """Fetch session topic id error."""


class IneligibleReplica(KafkaError, code=107):
    """Ineligible replica."""


class NewLeaderElected(KafkaError, code=108):
    """New leader elected."""


class OffsetMovedToTieredStorage(KafkaError, code=109):
    """Offset moved to tiered storage."""


class FencedMemberEpoch(KafkaError, code=110):
    """Fenced member epoch."""


class UnreleasedInstanceId(KafkaError, code=111):
    """Unreleased instance id."""


class UnsupportedAssignor(KafkaError, code=112):
    """Unsupported assignor."""


class StaleMemberEpoch(KafkaError, code=113):
    """Stale member epoch."""


class MismatchedEndpointType(KafkaError, code=114):
    """Mismatched endpoint type."""


class UnsupportedEndpointType(KafkaError, code=115):
    """Unsupported endpoint type."""


class UnknownControllerId(KafkaError, code=116):
    """Unknown controller id."""


class UnknownSubscriptionId(KafkaError, code=117):
    """Unknown subscription id."""


class TelemetryTooLarge(KafkaError, code=118):
    """Telemetry too large."""


class InvalidRegistration(KafkaError, code=119):
    """Invalid registration."""


class TransactionAbortable(KafkaError, code=120):
    """Transaction abortable."""


class InvalidRecordState(KafkaError, code=121):
    """Invalid record state."""


class ShareSessionNotFound(KafkaError, code=122, retriable=True):
    """Share session not found."""


class InvalidShareSessionEpoch(KafkaError, code=123, retriable=True):
    """Invalid share session epoch."""


class FencedStateEpoch(KafkaError, code=124):
    """Fenced state epoch."""


class InvalidVoterKey(KafkaError, code=125):
    """Invalid voter key."""


class DuplicateVoter(KafkaError, code=126):
    """Duplicate voter."""


class VoterNotFound(KafkaError, code=127):
    """Voter not found."""


class InvalidRegularExpression(KafkaError, code=128):
    """Invalid regular expression."""


class RebootstrapRequired(KafkaError, code=129):
    """Rebootstrap required."""


class StreamsInvalidTopology(KafkaError, code=130):
    """Streams invalid topology."""


class StreamsInvalidTopologyEpoch(KafkaError, code=131):
    """Streams invalid topology epoch."""


class StreamsTopologyFenced(KafkaError, code=132):
    """Streams topology fenced."""


class ShareSessionLimitReached(KafkaError, code=133, retriable=True):
    """Share session limit reached."""
