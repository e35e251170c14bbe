"""Random clients of one classic group, which behave correctly in the end, and the invariants.

Knows nothing of the states of a group. The invariants: no request gets two responses, a generation has one assignment,
a replay of the log gives the same state, and the group becomes stable once all clients behave correctly.
"""

from collections.abc import Callable
from typing import Any

from barnabas.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.groups.messages import Join, JoinResult, LeavingMember, OffsetCommit, OffsetToCommit, Sync, SyncResult

GROUP = "g"
SESSION_S, REBALANCE_S = 10, 30
ROUNDS = 120
"""The time within which a group has to become stable, in seconds: two rebalances that wait for dead members."""

READS_T, READS_U = (bytes.fromhex(f"0000 00000001 0001 {topic} ffffffff") for topic in ("74", "75"))
SUPPORTED = (
    (("range", READS_T), ("sticky", READS_T)),
    (("sticky", READS_T),),
    (("sticky", READS_T), ("range", READS_U)),
)
"""The protocols that clients support. One of them changes its protocols."""

KEEPS_MEMBER_ID = (RebalanceInProgress, IllegalGeneration, MemberIdRequired, InconsistentGroupProtocol)


class PendingResponse:
    """A request without a response yet. Fails if it gets two, or one after its connection is closed."""

    def __init__(self, then: Callable[[Any], object]) -> None:
        self.answers = 0
        self.is_lost = False
        self._then = then

    def __call__(self, result: Any) -> None:
        assert not self.is_lost, "an answer to a question from before the restart"
        self.answers += 1
        assert self.answers == 1, f"answered again: {result}"
        self._then(result)


class Client:
    """A client and its state of the group."""

    def __init__(self, name: str, instance: str | None = None, *, is_old: bool = False) -> None:
        self.name = name
        self.instance = instance
        self.is_old = is_old
        """Whether its JoinGroup has version 3, so that it joins without getting its id first."""
        self.supported = SUPPORTED[0]
        self.forget()

    def forget(self) -> None:
        """Restarts the client."""
        self.member_id = ""
        self.generation = -1
        self.members: tuple[str, ...] = ()
        self.has_to_join = True
        self.has_to_sync = False
        self.is_fenced = False
        self.assignment: bytes | None = None
        self.waits: PendingResponse | None = None

    @property
    def is_waiting(self) -> bool:
        return self.waits is not None and not self.waits.answers and not self.waits.is_lost


class Walker:
    """The clients and their coordinator, which is the world of the scenarios."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.clients = [
            Client("a", is_old=True),
            Client("b"),
            Client("c"),
            Client("d", "i"),
            Client("e", "i"),
            Client("f", "j", is_old=True),
        ]
        self.responses: list[PendingResponse] = []
        self.results: dict[int, str] = {}
        """The assignment of each generation."""
        self.chosen: dict[int, str | None] = {}
        """The protocol of each generation."""
        self.has_refused = False

    # ---------------------------------------------------------------- asking

    def ask(self, then: Callable[[Any], object]) -> PendingResponse:
        response = PendingResponse(then)
        self.responses.append(response)
        return response

    def wait(self, client: Client, then: Callable[[Any], object]) -> None:
        """Waits for the response to this request. Responses to earlier ones are ignored."""
        client.waits = response = self.ask(lambda result: then(result) if client.waits is response else None)

    def join(self, client: Client) -> None:
        client.has_to_join, client.has_to_sync = False, False
        self.wait(client, lambda result: self.joined(client, result))
        join = Join(
            GROUP,
            client.member_id,
            client.instance,
            client.name,
            "/127.0.0.1",
            SESSION_S * 1000,
            REBALANCE_S * 1000,
            "consumer",
            client.supported,
            knows_member_id_required=not client.is_old,
            knows_skip_assignment=not client.is_old,
        )
        self.world.coordinator.join(join, client.waits)

    def joined(self, client: Client, result: JoinResult) -> None:
        if result.error:
            if isinstance(result.error, MemberIdRequired):
                client.member_id = result.member_id
            self.refused(client, result.error)
            return
        assert self.chosen.setdefault(result.generation_id, result.protocol_name) == result.protocol_name
        if result.members:
            assert result.leader == result.member_id
            assert result.member_id in {each.member_id for each in result.members}
        client.member_id, client.generation = result.member_id, result.generation_id
        client.members = () if result.skip_assignment else tuple(each.member_id for each in result.members)
        client.has_to_sync = True

    def sync(self, client: Client) -> None:
        client.has_to_sync = False
        generation = client.generation
        self.wait(client, lambda result: self.synced(client, generation, result))
        brought: list[tuple[str, bytes]] = []
        if client.members:
            number = len(self.responses)
            brought = [(member_id, f"{client.generation}/{number}".encode()) for member_id in client.members]
        self.world.coordinator.sync(
            Sync(GROUP, client.generation, client.member_id, client.instance, assignments=brought), client.waits
        )

    def synced(self, client: Client, generation: int, result: SyncResult) -> None:
        if result.error:
            self.refused(client, result.error)
            return
        client.assignment = result.assignment
        if result.assignment:
            brought = result.assignment.decode()
            assert brought.startswith(f"{generation}/"), "an assignment of another generation"
            assert self.results.setdefault(generation, brought) == brought, "two assignments in one generation"

    def heartbeat(self, client: Client) -> None:
        try:
            self.world.coordinator.heartbeat(GROUP, client.member_id, client.instance, client.generation)
        except KafkaError as error:
            self.refused(client, error)

    def commit(self, client: Client) -> None:
        offsets = [OffsetToCommit("t", 0, len(self.responses))]
        commit = OffsetCommit(GROUP, offsets, client.generation, client.member_id, client.instance)
        response = self.ask(lambda errors: None)
        try:
            self.world.coordinator.commit_offsets(commit, response)
        except KafkaError:
            response([])

    def leave(self, client: Client) -> None:
        self.world.coordinator.leave(GROUP, [LeavingMember(client.member_id, client.instance)])

    def refused(self, client: Client, error: KafkaError) -> None:
        client.has_to_join = True
        if isinstance(error, FencedInstanceId):
            client.is_fenced = True
        elif not isinstance(error, KEEPS_MEMBER_ID):
            client.member_id = ""
        assert not isinstance(error, UnknownMemberId) or not client.member_id

    # ---------------------------------------------------------------- around

    def do(self, verb: str, index: int) -> None:
        """Runs one step of a walk."""
        client = self.clients[index % len(self.clients)]
        match verb:
            case "join" | "sync" | "heartbeat" | "commit" | "leave":
                getattr(self, verb)(client)
            case "proceed":
                self.proceed(client)
            case "gather":
                self.gather(self.clients[: index + 1])
            case "forget":
                client.forget()
            case "change":
                client.supported = SUPPORTED[index % len(SUPPORTED)]
            case "advance":
                self.world.clock.advance(index)
            case "refuse":
                self.has_refused = True
                self.world.is_broken = True
            case "restart":
                self.restart()
            case "hold":
                if self.world.held is None:
                    self.world.command("hold")
            case _:
                self.release()
        if self.world.held is None and not self.has_refused:
            self.check_log()

    def restart(self) -> None:
        """Restarts the coordinator as after kill -9: the last responses are lost, and unwritten generations."""
        self.world.is_broken, self.world.held = False, None
        for response in self.responses:
            response.is_lost = not response.answers
        self.chosen.clear()
        self.world.command("restart")

    def release(self) -> None:
        self.world.is_broken = False
        if self.world.held is not None:
            self.world.command("release")

    def check_log(self) -> None:
        """Checks that a replay of the log gives the same state, if no write is pending."""
        now = self.world.coordinator
        here = {each.group_id: now.describe(each.group_id) for each in now.list_groups()}
        after = self.world.replayed()
        offsets = now.fetch_offsets(GROUP)
        for group_id, group in here.items():
            if group.state in ("Stable", "Empty"):
                assert after.describe(group_id) == group, (after.describe(group_id), group)
        assert after.fetch_offsets(GROUP) == offsets

    # --------------------------------------------------------------- settling

    def proceed(self, client: Client) -> None:
        """Runs the next step of a client that behaves correctly."""
        if client.is_waiting or client.is_fenced:
            return
        if client.has_to_join or (client.waits is not None and client.waits.is_lost):
            self.join(client)
        elif client.has_to_sync:
            self.sync(client)
        else:
            self.heartbeat(client)

    def gather(self, clients: list[Client]) -> None:
        """Makes some clients behave correctly for a while."""
        for _ in range(6):
            for client in clients:
                self.proceed(client)
            self.world.clock.advance(0)

    def settle(self, living: list[Client]) -> None:
        """Makes all living clients behave correctly, and checks that the group becomes stable with the leader's
        assignment.
        """
        self.release()
        for client in self.clients:
            client.supported = SUPPORTED[0]
        for _ in range(ROUNDS):
            for client in living:
                self.proceed(client)
            self.world.clock.advance(1)
            if self.is_settled(living):
                break
        members = [client for client in living if not client.is_fenced]
        assert self.is_settled(living), [vars(client) for client in living]
        assert len({client.generation for client in members}) <= 1
        assert all(client.assignment == members[0].assignment != b"" for client in members)

    def is_settled(self, living: list[Client]) -> bool:
        members = [client for client in living if not client.is_fenced]
        if any(client.has_to_join or client.has_to_sync for client in members):
            return False
        if not all(response.answers or response.is_lost for response in self.responses):
            return False
        try:
            group = self.world.coordinator.describe(GROUP)
        except KafkaError:
            return not members
        found = {each.member_id for each in group.members}
        return group.state in ("Stable", "Empty") and found == {client.member_id for client in members}
