"""The errors of the Kafka protocol as exceptions with their codes, and two that close the connection instead.

Knows nothing of who raises or handles them. Codes, names, messages and retriable errors are those of Apache Kafka's
``org.apache.kafka.common.protocol.Errors``. Programs depend on the messages: an error's docstring is the message in
responses if the error was raised without a text.
"""

from collections.abc import Sequence
from typing import ClassVar

NONE = 0


class MalformedMessage(Exception):
    """The bytes are not a valid message: the connection is closed without a response."""


class CloseConnection(Exception):
    """The connection is closed instead of a response. The text is logged."""


class KafkaError(Exception):
    """An error of the protocol: its code is in the response, and its text if the response has a field for it.

    A subclass without a code of its own has the code and the message of its parent.
    """

    code: ClassVar[int]
    message: ClassVar[str]
    retriable: ClassVar[bool]
    by_code: ClassVar[dict[int, type["KafkaError"]]] = {}

    #: The records because of which a batch is refused: index in the batch, and the error of the record (KIP-467).
    record_errors: Sequence[tuple[int, str]] = ()

    def __init_subclass__(cls, *, code: int | None = None, retriable: bool = False) -> None:
        if code is None:
            return
        assert code not in KafkaError.by_code, f"{cls.__name__} reuses the code of {KafkaError.by_code[code]}"
        cls.code, cls.message, cls.retriable = code, " ".join((cls.__doc__ or "").split()), retriable
        KafkaError.by_code[code] = cls

    def __str__(self) -> str:
        return super().__str__() or self.message


class UnknownServerError(KafkaError, code=-1):
    """The server experienced an unexpected error when processing the request."""


class OffsetOutOfRange(KafkaError, code=1):
    """The requested offset is not within the range of offsets maintained by the server."""


class CorruptMessage(KafkaError, code=2, retriable=True):
    """This message has failed its CRC checksum, exceeds the valid size, has a null key for a compacted topic, or is
    otherwise corrupt."""


class UnknownTopicOrPartition(KafkaError, code=3, retriable=True):
    """This server does not host this topic-partition."""


class InvalidFetchSize(KafkaError, code=4):
    """The requested fetch size is invalid."""


class LeaderNotAvailable(KafkaError, code=5, retriable=True):
    """There is no leader for this topic-partition as we are in the middle of a leadership election."""


class NotLeaderOrFollower(KafkaError, code=6, retriable=True):
    """For requests intended only for the leader, this error indicates that the broker is not the current leader. For
    requests intended for any replica, this error indicates that the broker is not a replica of the topic partition."""


class RequestTimedOut(KafkaError, code=7, retriable=True):
    """The request timed out."""


class BrokerNotAvailable(KafkaError, code=8):
    """The broker is not available."""


class ReplicaNotAvailable(KafkaError, code=9, retriable=True):
    """The replica is not available for the requested topic-partition. Produce/Fetch requests and other requests
    intended only for the leader or follower return NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the
    topic-partition."""


class MessageTooLarge(KafkaError, code=10):
    """The request included a message larger than the max message size the server will accept."""


class StaleControllerEpoch(KafkaError, code=11):
    """The controller moved to another broker."""


class OffsetMetadataTooLarge(KafkaError, code=12):
    """The metadata field of the offset request was too large."""


class NetworkException(KafkaError, code=13, retriable=True):
    """The server disconnected before a response was received."""


class CoordinatorLoadInProgress(KafkaError, code=14, retriable=True):
    """The coordinator is loading and hence can't process requests."""


class CoordinatorNotAvailable(KafkaError, code=15, retriable=True):
    """The coordinator is not available."""


class NotCoordinator(KafkaError, code=16, retriable=True):
    """This is not the correct coordinator."""


class InvalidTopicException(KafkaError, code=17):
    """The request attempted to perform an operation on an invalid topic."""


class RecordListTooLarge(KafkaError, code=18):
    """The request included message batch larger than the configured segment size on the server."""


class NotEnoughReplicas(KafkaError, code=19, retriable=True):
    """Messages are rejected since there are fewer in-sync replicas than required."""


class NotEnoughReplicasAfterAppend(KafkaError, code=20, retriable=True):
    """Messages are written to the log, but to fewer in-sync replicas than required."""


class InvalidRequiredAcks(KafkaError, code=21):
    """Produce request specified an invalid value for required acks."""


class IllegalGeneration(KafkaError, code=22):
    """Specified group generation id is not valid."""


class InconsistentGroupProtocol(KafkaError, code=23):
    """The group member's supported protocols are incompatible with those of existing members or first group member
    tried to join with empty protocol type or empty protocol list."""


class InvalidGroupId(KafkaError, code=24):
    """The group id is invalid."""


class UnknownMemberId(KafkaError, code=25):
    """The coordinator is not aware of this member."""


class InvalidSessionTimeout(KafkaError, code=26):
    """The session timeout is not within the range allowed by the broker (as configured by group.min.session.timeout.ms
    and group.max.session.timeout.ms)."""


class RebalanceInProgress(KafkaError, code=27):
    """The group is rebalancing, so a rejoin is needed."""


class InvalidCommitOffsetSize(KafkaError, code=28):
    """The committing offset data size is not valid."""


class TopicAuthorizationFailed(KafkaError, code=29):
    """Topic authorization failed."""


class GroupAuthorizationFailed(KafkaError, code=30):
    """Group authorization failed."""


class ClusterAuthorizationFailed(KafkaError, code=31):
    """Cluster authorization failed."""


class InvalidTimestamp(KafkaError, code=32):
    """The timestamp of the message is out of acceptable range."""


class UnsupportedSaslMechanism(KafkaError, code=33):
    """The broker does not support the requested SASL mechanism."""


class IllegalSaslState(KafkaError, code=34):
    """Request is not valid given the current SASL state."""


class UnsupportedVersion(KafkaError, code=35):
    """The version of API is not supported."""


class TopicAlreadyExists(KafkaError, code=36):
    """Topic with this name already exists."""


class InvalidPartitions(KafkaError, code=37):
    """Number of partitions is below 1."""


class InvalidReplicationFactor(KafkaError, code=38):
    """Replication factor is below 1 or larger than the number of available brokers."""


class InvalidReplicaAssignment(KafkaError, code=39):
    """Replica assignment is invalid."""


class InvalidConfig(KafkaError, code=40):
    """Configuration is invalid."""


class NotController(KafkaError, code=41, retriable=True):
    """This is not the correct controller for this cluster."""


class InvalidRequest(KafkaError, code=42):
    """This most likely occurs because of a request being malformed by the client library or the message was sent to an
    incompatible broker. See the broker logs for more details."""


class UnsupportedForMessageFormat(KafkaError, code=43):
    """The message format version on the broker does not support the request."""


class PolicyViolation(KafkaError, code=44):
    """Request parameters do not satisfy the configured policy."""


class OutOfOrderSequenceNumber(KafkaError, code=45):
    """The broker received an out of order sequence number."""


class DuplicateSequenceNumber(KafkaError, code=46):
    """The broker received a duplicate sequence number."""


class InvalidProducerEpoch(KafkaError, code=47):
    """Producer attempted to produce with an old epoch."""


class InvalidTxnState(KafkaError, code=48):
    """The producer attempted a transactional operation in an invalid state."""


class InvalidProducerIdMapping(KafkaError, code=49):
    """The producer attempted to use a producer id which is not currently assigned to its transactional id."""


class InvalidTransactionTimeout(KafkaError, code=50):
    """The transaction timeout is larger than the maximum value allowed by the broker (as configured by
    transaction.max.timeout.ms)."""


class ConcurrentTransactions(KafkaError, code=51, retriable=True):
    """The producer attempted to update a transaction while another concurrent operation on the same transaction was
    ongoing."""


class TransactionCoordinatorFenced(KafkaError, code=52):
    """Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the current coordinator for a
    given producer."""


class TransactionalIdAuthorizationFailed(KafkaError, code=53):
    """Transactional Id authorization failed."""


class SecurityDisabled(KafkaError, code=54):
    """Security features are disabled."""


class OperationNotAttempted(KafkaError, code=55):
    """The broker did not attempt to execute this operation. This may happen for batched RPCs where some operations in
    the batch failed, causing the broker to respond without trying the rest."""


class KafkaStorageError(KafkaError, code=56, retriable=True):
    """Disk error when trying to access log file on the disk."""


class LogDirNotFound(KafkaError, code=57):
    """The user-specified log directory is not found in the broker config."""


class SaslAuthenticationFailed(KafkaError, code=58):
    """SASL Authentication failed."""


class UnknownProducerId(KafkaError, code=59):
    """This exception is raised by the broker if it could not locate the producer metadata associated with the
    producerId in question. This could happen if, for instance, the producer's records were deleted because their
    retention time had elapsed. Once the last records of the producerId are removed, the producer's metadata is removed
    from the broker, and future appends by the producer will return this exception."""


class ReassignmentInProgress(KafkaError, code=60):
    """A partition reassignment is in progress."""


class DelegationTokenAuthDisabled(KafkaError, code=61):
    """Delegation Token feature is not enabled."""


class DelegationTokenNotFound(KafkaError, code=62):
    """Delegation Token is not found on server."""


class DelegationTokenOwnerMismatch(KafkaError, code=63):
    """Specified Principal is not valid Owner/Renewer."""


class DelegationTokenRequestNotAllowed(KafkaError, code=64):
    """Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token authenticated
    channels."""


class DelegationTokenAuthorizationFailed(KafkaError, code=65):
    """Delegation Token authorization failed."""


class DelegationTokenExpired(KafkaError, code=66):
    """Delegation Token is expired."""


class InvalidPrincipalType(KafkaError, code=67):
    """Supplied principalType is not supported."""


class NonEmptyGroup(KafkaError, code=68):
    """The group is not empty."""


class GroupIdNotFound(KafkaError, code=69):
    """The group id does not exist."""


class FetchSessionIdNotFound(KafkaError, code=70, retriable=True):
    """The fetch session ID was not found."""


class InvalidFetchSessionEpoch(KafkaError, code=71, retriable=True):
    """The fetch session epoch is invalid."""


class ListenerNotFound(KafkaError, code=72, retriable=True):
    """There is no listener on the leader broker that matches the listener on which metadata request was processed."""


class TopicDeletionDisabled(KafkaError, code=73):
    """Topic deletion is disabled."""


class FencedLeaderEpoch(KafkaError, code=74, retriable=True):
    """The leader epoch in the request is older than the epoch on the broker."""


class UnknownLeaderEpoch(KafkaError, code=75, retriable=True):
    """The leader epoch in the request is newer than the epoch on the broker."""


class UnsupportedCompressionType(KafkaError, code=76):
    """The requesting client does not support the compression type of given partition."""


class StaleBrokerEpoch(KafkaError, code=77):
    """Broker epoch has changed."""


class OffsetNotAvailable(KafkaError, code=78, retriable=True):
    """The leader high watermark has not caught up from a recent leader election so the offsets cannot be guaranteed to
    be monotonically increasing."""


class MemberIdRequired(KafkaError, code=79):
    """The group member needs to have a valid member id before actually entering a consumer group."""


class PreferredLeaderNotAvailable(KafkaError, code=80, retriable=True):
    """The preferred leader was not available."""


class GroupMaxSizeReached(KafkaError, code=81):
    """The group has reached its maximum size."""


class FencedInstanceId(KafkaError, code=82):
    """The broker rejected this static consumer since another consumer with the same group.instance.id has registered
    with a different member.id."""


class EligibleLeadersNotAvailable(KafkaError, code=83, retriable=True):
    """Eligible topic partition leaders are not available."""


class ElectionNotNeeded(KafkaError, code=84, retriable=True):
    """Leader election not needed for topic partition."""


class NoReassignmentInProgress(KafkaError, code=85):
    """No partition reassignment is in progress."""


class GroupSubscribedToTopic(KafkaError, code=86):
    """Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."""


class InvalidRecord(KafkaError, code=87):
    """This record has failed the validation on broker and hence will be rejected."""


class UnstableOffsetCommit(KafkaError, code=88, retriable=True):
    """There are unstable offsets that need to be cleared."""


class ThrottlingQuotaExceeded(KafkaError, code=89, retriable=True):
    """The throttling quota has been exceeded."""


class ProducerFenced(KafkaError, code=90):
    """There is a newer producer with the same transactionalId which fences the current one."""


class ResourceNotFound(KafkaError, code=91):
    """A request illegally referred to a resource that does not exist."""


class DuplicateResource(KafkaError, code=92):
    """A request illegally referred to the same resource twice."""


class UnacceptableCredential(KafkaError, code=93):
    """Requested credential would not meet criteria for acceptability."""


class InconsistentVoterSet(KafkaError, code=94):
    """Indicates that the either the sender or recipient of a voter-only request is not one of the expected voters."""


class InvalidUpdateVersion(KafkaError, code=95):
    """The given update version was invalid."""


class FeatureUpdateFailed(KafkaError, code=96):
    """Unable to update finalized features due to an unexpected server error."""


class PrincipalDeserializationFailure(KafkaError, code=97):
    """Request principal deserialization failed during forwarding. This indicates an internal error on the broker
    cluster security setup."""


class SnapshotNotFound(KafkaError, code=98):
    """Requested snapshot was not found."""


class PositionOutOfRange(KafkaError, code=99):
    """Requested position is not greater than or equal to zero, and less than the size of the snapshot."""


class UnknownTopicId(KafkaError, code=100, retriable=True):
    """This server does not host this topic ID."""


class DuplicateBrokerRegistration(KafkaError, code=101):
    """This broker ID is already in use."""


class BrokerIdNotRegistered(KafkaError, code=102):
    """The given broker ID was not registered."""


class InconsistentTopicId(KafkaError, code=103, retriable=True):
    """The log's topic ID did not match the topic ID in the request."""


class InconsistentClusterId(KafkaError, code=104):
    """The clusterId in the request does not match that found on the server."""


class TransactionalIdNotFound(KafkaError, code=105):
    """The transactionalId could not be found."""


class FetchSessionTopicIdError(KafkaError, code=106, retriable=True):
    """The fetch session encountered inconsistent topic ID usage."""


class IneligibleReplica(KafkaError, code=107):
    """The new ISR contains at least one ineligible replica."""


class NewLeaderElected(KafkaError, code=108):
    """The AlterPartition request successfully updated the partition state but the leader has changed."""


class OffsetMovedToTieredStorage(KafkaError, code=109):
    """The requested offset is moved to tiered storage."""


class FencedMemberEpoch(KafkaError, code=110):
    """The member epoch is fenced by the group coordinator. The member must abandon all its partitions and rejoin."""


class UnreleasedInstanceId(KafkaError, code=111):
    """The instance ID is still used by another member in the consumer group. That member must leave first."""


class UnsupportedAssignor(KafkaError, code=112):
    """The assignor or its version range is not supported by the consumer group."""


class StaleMemberEpoch(KafkaError, code=113):
    """The member epoch is stale. The member must retry after receiving its updated member epoch via the
    ConsumerGroupHeartbeat API."""


class MismatchedEndpointType(KafkaError, code=114):
    """The request was sent to an endpoint of the wrong type."""


class UnsupportedEndpointType(KafkaError, code=115):
    """This endpoint type is not supported yet."""


class UnknownControllerId(KafkaError, code=116):
    """This controller ID is not known."""


class UnknownSubscriptionId(KafkaError, code=117):
    """Client sent a push telemetry request with an invalid or outdated subscription ID."""


class TelemetryTooLarge(KafkaError, code=118):
    """Client sent a push telemetry request larger than the maximum size the broker will accept."""


class InvalidRegistration(KafkaError, code=119):
    """The controller has considered the broker registration to be invalid."""


class TransactionAbortable(KafkaError, code=120):
    """The server encountered an error with the transaction. The client can abort the transaction to continue using this
    transactional ID."""


class InvalidRecordState(KafkaError, code=121):
    """The record state is invalid. The acknowledgement of delivery could not be completed."""


class ShareSessionNotFound(KafkaError, code=122, retriable=True):
    """The share session was not found."""


class InvalidShareSessionEpoch(KafkaError, code=123, retriable=True):
    """The share session epoch is invalid."""


class FencedStateEpoch(KafkaError, code=124):
    """The share coordinator rejected the request because the share-group state epoch did not match."""


class InvalidVoterKey(KafkaError, code=125):
    """The voter key doesn't match the receiving replica's key."""


class DuplicateVoter(KafkaError, code=126):
    """The voter is already part of the set of voters."""


class VoterNotFound(KafkaError, code=127):
    """The voter is not part of the set of voters."""


class InvalidRegularExpression(KafkaError, code=128):
    """The regular expression is not valid."""


class RebootstrapRequired(KafkaError, code=129):
    """Client metadata is stale. The client should rebootstrap to obtain new metadata."""


class StreamsInvalidTopology(KafkaError, code=130):
    """The supplied topology is invalid."""


class StreamsInvalidTopologyEpoch(KafkaError, code=131):
    """The supplied topology epoch is invalid."""


class StreamsTopologyFenced(KafkaError, code=132):
    """The supplied topology epoch is outdated."""


class ShareSessionLimitReached(KafkaError, code=133, retriable=True):
    """The limit of share sessions has been reached."""
