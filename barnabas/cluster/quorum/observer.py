"""An observer of the metadata quorum: a node without a vote that copies the log from the leader.

Knows nothing of sockets, nor of metadata records. The rules are those of Apache Kafka's ``KafkaRaftClient`` for an
observer (KIP-595): it fetches from the leader; it fetches from any controller while it does not know the leader, or
while the leader does not respond.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.cluster.quorum import fetching
from barnabas.cluster.quorum.client import NO_NODE, LastLeader, Leadership, QuorumListener, ReplicaKey
from barnabas.cluster.quorum.controllers import Controllers
from barnabas.cluster.quorum.fetching import Answer, Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog, MetadataLogError
from barnabas.cluster.quorum.quorum_state import (
    FILE_NAME,
    CorruptQuorumState,
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)
from barnabas.cluster.quorum.record_batches import EncodedBatch
from barnabas.cluster.quorum.replicated_log import ReplicatedLog
from barnabas.cluster.quorum.snapshots import KRaftState, Snapshot, SnapshotId, decode_snapshot
from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    InvalidRecord,
    KafkaError,
    KafkaStorageError,
    NotController,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    SnapshotNotFound,
    UnknownLeaderEpoch,
)
from barnabas.log.files import Files
from barnabas.log.follower import EpochEnd, Position
from barnabas.peers.peers import ConnectionRefused, Peers
from barnabas.wire.message import Request
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotResponse
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.cluster.quorum.leader_log import LeaderLog

logger = logging.getLogger(__name__)

LANE = "metadata"

ELECTIONS = NotLeaderOrFollower, FencedLeaderEpoch, UnknownLeaderEpoch
"""The errors of nodes that do not know the leader."""

FetchedPartition = FetchResponse.FetchableTopicResponse.PartitionData
SnapshotPiece = FetchSnapshotResponse.TopicSnapshot.PartitionSnapshot


class Limits(NamedTuple):
    """The configs ``controller.quorum.*`` of a follower or observer."""

    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20

    @property
    def fetch_max_wait_ms(self) -> int:
        """How long the leader may wait before it responds.

        With the default time-out of Apache Kafka it is its 500 ms. With a shorter time-out it is half of the time-out:
        otherwise the response of a leader without new records would come after the time-out.
        """
        return min(fetching.MAX_WAIT_MS, self.fetch_timeout_ms // 2)


DEFAULT_LIMITS = Limits()


class Observer:
    """A :class:`~barnabas.cluster.quorum.client.Quorum` for an observer.

    :param peers: sends requests to the controllers by their ids in ``controllers``
    :param on_fatal: called with the reason when this node cannot continue, since its log contradicts the leader's
    """

    is_sole_voter = False
    voter_endpoints: Sequence[Endpoint] = ()

    def __init__(
        self,
        metadata_log: MetadataLog,
        identity: Identity,
        controllers: Controllers,
        peers: Peers,
        *,
        files: Files,
        clock: Clock,
        scheduler: Scheduler,
        random: Random,
        on_fatal: Callable[[str], object],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.metadata_log = metadata_log
        self.node_id = identity.node_id
        self.leadership = Leadership()
        self.last_leader = LastLeader()
        self.listeners: list[QuorumListener] = []
        self._replica = ReplicatedLog(metadata_log, self.listeners, self._learn_voters)
        self._identity = identity
        self._controllers = controllers
        self._peers = peers
        self._files = files
        self._clock = clock
        self._scheduler = scheduler
        self._random = random
        self._on_fatal = on_fatal
        self._limits = limits
        self._stored: QuorumState | None = None  # the content of quorum-state
        self._download: tuple[SnapshotId, bytearray] | None = None
        self._catch_up_to: int | None = None  # the first high watermark in a leader's response
        self._when_caught_up: list[Callable[[], object]] = []
        self._is_following = False
        self._is_stepping = False
        self._attempt: object | None = None  # identifies the request in flight, or the snapshot that is being written
        self._timer: Timer | None = None
        self._backing_off: dict[int, float] = {}
        self._complaints: set[str] = set()

    # ------------------------------------------------------------ start and stop

    def load(self) -> None:
        """Reads the voters. Listeners are not called, since only the leader knows what is committed.

        :raises MetadataLogError: the log cannot be read
        """
        self._replica.load()
        self._learn_voters(self._replica.latest_kraft)

    def start(self) -> None:
        """Starts to follow the last known leader.

        :raises MetadataLogError: the last epoch is not known
        """
        try:
            self._stored = read_quorum_state(self._files, self._state_path)
        except CorruptQuorumState as error:
            raise MetadataLogError(str(error)) from error
        before = self._stored or QuorumState()
        epoch = max(before.leader_epoch, self.metadata_log.last_epoch)
        knows_leader = epoch == before.leader_epoch and before.leader_id != self.node_id
        self._is_following = True
        self._follow(Leadership(before.leader_id if knows_leader else NO_NODE, epoch))
        self._step()

    def stop(self) -> None:
        """Stops following. The response to a request in flight is ignored."""
        self._is_following = False
        self._attempt = None
        if self._timer is not None:
            self._timer.cancel()

    def resign(self, done: Callable[[], object]) -> None:
        done()

    # ------------------------------------------------------------ for the node

    @property
    def is_leader(self) -> bool:
        return False

    @property
    def leader_log(self) -> "LeaderLog | None":
        return None

    @property
    def kraft(self) -> KRaftState:
        return self._replica.kraft

    @property
    def high_watermark(self) -> int | None:
        """The high watermark, as far as this node's log reaches; None until a response of a leader has it."""
        return self._replica.high_watermark

    def voters(self) -> Mapping[int, ReplicaKey]:
        named = self._replica.latest_kraft.voters
        if named is not None:
            return {each.voter_id: ReplicaKey(each.voter_id, each.voter_directory_id) for each in named.voters}
        return {node_id: ReplicaKey(node_id) for node_id in self._controllers.configured_voters}

    @property
    def voter_directory_id(self) -> bytes:
        return self._identity.directory_id if self.kraft.version else ZERO_UUID

    @property
    def next_offset(self) -> int:
        return self.metadata_log.log.log_end_offset

    def append(self, batches: Sequence[EncodedBatch]) -> int:
        raise NotController

    def upgrade_kraft_version(self) -> None:
        raise NotController

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return self._controllers.endpoint_of(node_id)

    def endpoints_of(self, node_id: int) -> Sequence[Endpoint]:
        if node_id == self.node_id and self.voter_endpoints:
            return self.voter_endpoints
        named = self._replica.latest_kraft.voters
        for voter in () if named is None else named.voters:
            if voter.voter_id == node_id:
                return [Endpoint(each.name, each.host, each.port, "") for each in voter.endpoints]
        known = self.endpoint_of(node_id)
        return () if known is None else (known,)

    def when_caught_up(self, done: Callable[[], object]) -> None:
        self._when_caught_up.append(done)
        self._check_caught_up()

    def _check_caught_up(self) -> None:
        if self._catch_up_to is not None and self._replica.has_heard(self._catch_up_to):
            waiting, self._when_caught_up = self._when_caught_up, []
            for done in waiting:
                done()

    # ------------------------------------------------------------ the leader

    @property
    def _state_path(self) -> str:
        return f"{self.metadata_log.directory}/{FILE_NAME}"

    def _follow(self, leadership: Leadership) -> None:
        """Follows another leader, or none, in that epoch. It is stored before it is used."""
        voters = None if self._replica.latest_kraft.version else self._controllers.configured_voters
        state = QuorumState(leadership.leader_id, leadership.epoch, voters)
        if state != self._stored:
            write_quorum_state(self._files, self._state_path, state)
            self._stored = state
        self._download = None
        self._backing_off.pop(leadership.leader_id, None)
        self._announce(leadership)

    def _announce(self, leadership: Leadership) -> None:
        """Notifies the listeners of the leader."""
        self.leadership = leadership
        leader = "no known leader" if leadership.leader_id == NO_NODE else f"node {leadership.leader_id} as its leader"
        logger.info("Epoch %d of the metadata quorum has %s", leadership.epoch, leader)
        for listener in self.listeners:
            listener.leadership_changed(leadership)

    def _learn_voters(self, kraft: KRaftState) -> None:
        if kraft.voters is not None:
            self._controllers.learn_voters(kraft.voters)

    def _heed(self, answer: Answer) -> bool | None:
        """Follows the leader that a response names. Returns None if the rest of the response is valid, too.

        Otherwise returns whether to send a request immediately (``KafkaRaftClient.maybeHandleCommonResponse``).
        """
        known, named = self.leadership, answer.leadership
        if named is None:
            return False
        for node_id, host, port in answer.endpoints:
            self._controllers.learn(node_id, host, port)
        names_leader = named.leader_id != NO_NODE
        if named.epoch < known.epoch or isinstance(answer.error, UnknownLeaderEpoch):
            return False
        is_other = named.epoch == known.epoch and known.leader_id not in (NO_NODE, named.leader_id)
        if names_leader and (named.leader_id == self.node_id or is_other):
            logger.error("Ignoring node %d as the leader of epoch %d, in which %s", named.leader_id, named.epoch, known)
            return False
        if named.epoch > known.epoch or (names_leader and known.leader_id == NO_NODE):
            self._follow(named)
            return None if answer.error is None and named.epoch == known.epoch else names_leader
        return None if answer.error is None or isinstance(answer.error, SnapshotNotFound) else False

    # ------------------------------------------------------------ requests

    def _step(self) -> None:
        """Sends the next request, and the next, as long as responses come immediately."""
        if self._is_stepping:
            return  # the loop below continues
        self._is_stepping = True
        try:
            while self._is_following and self._attempt is None:
                target = self._target()
                if target is None:
                    self._wait()
                    return
                self._send(target)
        finally:
            self._is_stepping = False

    def _target(self) -> int | None:
        """Returns the node to send a request to; None while all of them are backing off.

        It is the leader, even if it has not answered for long, and is not among the voters in this node's log: the
        others can only name it (KAFKA-19354). After a response of no use another controller gets the next request.
        """
        self._end_backoffs()
        leader_id = self.leadership.leader_id
        if leader_id != NO_NODE and leader_id not in self._backing_off:
            return leader_id
        ready = [node_id for node_id in self._controllers.candidates if node_id not in self._backing_off]
        return self._random.choice(ready) if ready else None

    def _end_backoffs(self) -> None:
        """Forgets the backoffs that have ended."""
        now = self._clock.monotonic()
        self._backing_off = {node_id: until for node_id, until in self._backing_off.items() if until > now}

    def _wait(self) -> None:
        """Sets a timer to the end of the first backoff."""
        until = min(self._backing_off.values(), default=self._clock.monotonic() + self._limits.retry_backoff_ms / 1000)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._scheduler.call_later(max(until - self._clock.monotonic(), 0.0), self._step)

    def _send(self, target: int) -> None:
        attempt = self._attempt = object()
        limits, epoch = self._limits, self.leadership.epoch
        request: Request
        take: Callable[[Any], bool]
        if self._download is not None and target == self.leadership.leader_id:
            snapshot_id, received = self._download
            request = fetching.snapshot_request(
                self._identity, epoch, snapshot_id, position=len(received), max_bytes=limits.fetch_snapshot_max_bytes
            )
            take = self._take_piece
        else:
            position = Position(self.metadata_log.log.log_end_offset, self.metadata_log.last_epoch)
            request = fetching.fetch_request(
                self._identity,
                epoch,
                position,
                high_watermark=self.high_watermark,
                max_bytes=limits.fetch_max_bytes,
                max_wait_ms=limits.fetch_max_wait_ms,
            )
            take = self._take_batches
        done = partial(self._answered, attempt, target, take)
        self._peers.send(target, request, done, lane=LANE, timeout_ms=limits.request_timeout_ms)

    def _answered(
        self,
        attempt: object,
        target: int,
        take: Callable[[Any], bool],
        response: FetchResponse | FetchSnapshotResponse | None,
        error: KafkaError | None,
    ) -> None:
        if attempt is not self._attempt:
            return  # this node has stopped following
        self._attempt = None
        answer = Answer(error) if response is None else fetching.read_answer(response)
        if isinstance(error, ConnectionRefused):
            self._refused(target)
        of_use = self._guard(partial(self._take, answer, take))
        if answer.error is not None and not of_use and not isinstance(answer.error, ELECTIONS):
            self._complain(f"node {target} answers {answer.error!r}")
        if not of_use:
            if isinstance(response, FetchSnapshotResponse):
                self._download = None  # the leader does not have it
            self._back_off(target)
        self._step()

    def _take(self, answer: Answer, take: Callable[[Any], bool]) -> bool:
        of_use = self._heed(answer)
        if of_use is None and self.leadership.leader_id != NO_NODE:  # only the leader responds without an error
            return take(answer.body)
        return bool(of_use)

    def _guard(self, action: Callable[[], bool]) -> bool:
        """Handles a response. Returns whether to send the next request immediately."""
        try:
            return action()
        except (CorruptMessage, InvalidRecord, OffsetOutOfRange) as damage:
            self._complain(f"what the leader sends cannot be appended: {damage!r}")
        except (MetadataLogError, KafkaStorageError, OSError) as failure:
            self.stop()
            self._on_fatal(str(failure))
        return False

    def _refused(self, node_id: int) -> None:
        """Handles a refused connection. A node without a vote can only send its request to another one."""

    def _back_off(self, node_id: int) -> None:
        self._backing_off[node_id] = self._clock.monotonic() + self._limits.retry_backoff_ms / 1000

    def _complain(self, text: str) -> None:
        """Logs a problem, once until a fetch from the leader succeeds."""
        if text not in self._complaints:
            self._complaints.add(text)
            logger.warning("The metadata log cannot be fetched: %s", text)

    # ------------------------------------------------------------ copying

    def _take_batches(self, body: FetchedPartition) -> bool:
        """Appends the batches of the leader, truncates the log, or starts to download a snapshot, as the response
        demands.
        """
        replica, now_ms = self._replica, self._clock.time_ms()
        diverging, snapshot = body.diverging_epoch, body.snapshot_id
        if diverging.epoch >= 0:
            end_offset = replica.truncate(EpochEnd(diverging.epoch, diverging.end_offset), now_ms)
            logger.info("The metadata log differs from the leader's: it is truncated to offset %d", end_offset)
        elif snapshot.epoch >= 0 and snapshot.end_offset >= 0:
            self._download = (SnapshotId(snapshot.end_offset, snapshot.epoch), bytearray())
        else:
            replica.append(bytes(body.records or b""), now_ms)
            self._commit(body.high_watermark)
        return self._fetched()

    def _commit(self, high_watermark: int) -> None:
        if high_watermark < 0:
            return  # a leader does not know it before a record of its epoch is committed
        if self._catch_up_to is None:
            self._catch_up_to = high_watermark
        self._replica.commit(high_watermark)
        self._check_caught_up()

    def _fetched(self) -> bool:
        self.last_leader = LastLeader(self.leadership.leader_id, self._clock.monotonic())
        self._complaints.clear()
        return True

    # ------------------------------------------------------------ snapshots

    def _take_piece(self, piece: SnapshotPiece) -> bool:
        """Adds a part of the snapshot, and installs the snapshot when it is complete and on the disk."""
        if self._download is None:
            return False
        snapshot_id, received = self._download
        sent_id = SnapshotId(piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
        if piece.error_code or sent_id != snapshot_id or piece.position != len(received) or not piece.unaligned_records:
            self._download = None  # the leader has deleted it, and names the next one
            return False
        received += piece.unaligned_records
        if len(received) >= piece.size:
            self._download = None
            snapshot = decode_snapshot(bytes(received))
            self._attempt = object()
            written = partial(self._written, self._attempt, snapshot_id, snapshot)
            self.metadata_log.write_snapshot(snapshot_id, lambda: bytes(received), written)
        return self._fetched()

    def _written(
        self, attempt: object, snapshot_id: SnapshotId, snapshot: Snapshot, error: BaseException | None
    ) -> None:
        if attempt is not self._attempt:
            return
        self._attempt = None
        if error is not None:
            self._complain(f"the snapshot {snapshot_id.file_name} cannot be written: {error}")
            self._back_off(self.leadership.leader_id)
        else:
            logger.info("The metadata log starts again from the snapshot %s", snapshot_id.file_name)
            self._guard(partial(self._install, snapshot_id, snapshot))
        self._step()

    def _install(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> bool:
        self._replica.install(snapshot_id, snapshot)
        self._check_caught_up()
        return True
