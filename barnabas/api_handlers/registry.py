"""The APIs that this node supports, their versions, their handlers and their listeners. ApiVersions returns this table.

Knows nothing of what an API does. The module of a handler is imported with the first request of its API, which makes
the node start faster. Listeners and forwarding are those of Apache Kafka's ``ApiKeys`` (KIP-500, KIP-590, KIP-919).
"""

import importlib
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.wire.message import Request
from barnabas.wire.schema import Versions

Handler = Callable[[Any, Any], Any]
H = TypeVar("H", bound=Handler)


class Scope(Enum):
    """Which listeners serve an API, and whether a broker that is not the active controller forwards it."""

    BROKER = "brokers answer it"
    CONTROLLER = "controllers answer it"
    BOTH = "both answer it"
    FORWARDED = "controllers answer it; brokers forward it"
    PREPARED = "controllers answer it; brokers answer a part themselves, and forward the rest"
    MEASURED = "brokers answer it where metrics are on"


class Api:
    """One API that this node supports.

    >>> heartbeat = APIS[12]
    >>> heartbeat.module, heartbeat.versions
    ('heartbeat', Versions(first=0, last=4))
    >>> heartbeat.request.__name__
    'HeartbeatRequest'
    """

    __slots__ = ("handle", "key", "module", "request", "scope", "versions")

    request: type[Request]
    handle: Handler

    def __init__(self, key: int, module: str, versions: str | Versions, scope: Scope = Scope.BROKER) -> None:
        self.key = key
        self.module = module  #: the module of this package with its handler
        self.scope = scope
        #: The versions that are supported, and advertised.
        self.versions = Versions.parse(versions) if isinstance(versions, str) else versions

    def __getattr__(self, name: str) -> Any:
        """Imports the module when the request's class or the handler is first needed."""
        if name not in ("handle", "request"):
            raise AttributeError(name)
        importlib.import_module(f"{__package__}.{self.module}")
        self.request, self.handle = HANDLERS[self.module]
        return getattr(self, name)

    def within(self, versions: Versions) -> "Api":
        """Returns the same API with fewer versions."""
        return Api(self.key, self.module, versions, self.scope)


class ForwardedApi(Api):
    """An API on a broker's listener: answered here while this node is the active controller, forwarded otherwise."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Api) -> None:
        super().__init__(inner.key, inner.module, inner.versions, inner.scope)
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "handle":
            self.handle = self._handle
        elif name == "request":
            self.request = self._inner.request
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def _handle(self, request: Request, context: Any) -> Any:
        if context.is_elsewhere:
            return importlib.import_module(f"{__package__}.forwarding").forward(request, context)
        return self._inner.handle(request, context)

    def within(self, versions: Versions) -> "ForwardedApi":
        return ForwardedApi(self._inner.within(versions))


HANDLERS: dict[str, tuple[type[Request], Handler]] = {}
"""The requests and handlers whose modules have been imported, by module."""

_TABLE: Final = (
    Api(0, "produce", "0-13"),
    Api(1, "fetch", "0-18"),
    Api(2, "list_offsets", "0-11"),
    Api(3, "metadata", "0-13"),
    Api(8, "offset_commit", "0-10"),
    Api(9, "offset_fetch", "0-10"),
    Api(10, "find_coordinator", "0-6"),
    Api(11, "join_group", "0-9"),
    Api(12, "heartbeat", "0-4"),
    Api(13, "leave_group", "0-5"),
    Api(14, "sync_group", "0-5"),
    Api(15, "describe_groups", "0-6"),
    Api(16, "list_groups", "0-5"),
    Api(17, "sasl_handshake", "0-1", Scope.BOTH),
    Api(18, "api_versions", "0-4", Scope.BOTH),
    Api(19, "create_topics", "0-7", Scope.FORWARDED),
    Api(20, "delete_topics", "0-6", Scope.FORWARDED),
    Api(21, "delete_records", "0-2"),
    Api(22, "init_producer_id", "0-5"),
    Api(23, "offset_for_leader_epoch", "0-4"),
    Api(24, "add_partitions_to_txn", "0-5"),
    Api(25, "add_offsets_to_txn", "0-4"),
    Api(26, "end_txn", "0-5"),
    Api(27, "write_txn_markers", "1-2"),
    Api(28, "txn_offset_commit", "0-6"),
    Api(29, "describe_acls", "0-3", Scope.BOTH),
    Api(30, "create_acls", "0-3", Scope.FORWARDED),
    Api(31, "delete_acls", "0-3", Scope.FORWARDED),
    Api(32, "describe_configs", "0-4", Scope.BOTH),
    Api(33, "alter_configs", "0-2", Scope.PREPARED),
    Api(34, "alter_replica_log_dirs", "0-2"),
    Api(35, "describe_log_dirs", "0-5"),
    Api(36, "sasl_authenticate", "0-2", Scope.BOTH),
    Api(37, "create_partitions", "0-3", Scope.FORWARDED),
    Api(38, "create_delegation_token", "0-3", Scope.PREPARED),
    Api(39, "renew_delegation_token", "0-2", Scope.PREPARED),
    Api(40, "expire_delegation_token", "0-2", Scope.PREPARED),
    Api(41, "describe_delegation_token", "0-3", Scope.BOTH),
    Api(42, "delete_groups", "0-3"),
    Api(43, "elect_leaders", "0-2", Scope.FORWARDED),
    Api(44, "incremental_alter_configs", "0-1", Scope.PREPARED),
    Api(45, "alter_partition_reassignments", "0-1", Scope.FORWARDED),
    Api(46, "list_partition_reassignments", "0", Scope.FORWARDED),
    Api(47, "offset_delete", "0"),
    Api(48, "describe_client_quotas", "0-1"),
    Api(49, "alter_client_quotas", "0-1", Scope.FORWARDED),
    Api(50, "describe_user_scram_credentials", "0", Scope.BOTH),
    Api(51, "alter_user_scram_credentials", "0", Scope.FORWARDED),
    Api(52, "vote", "0-2", Scope.CONTROLLER),
    Api(53, "begin_quorum_epoch", "0-1", Scope.CONTROLLER),
    Api(54, "end_quorum_epoch", "0-1", Scope.CONTROLLER),
    Api(55, "describe_quorum", "0-2", Scope.FORWARDED),
    Api(56, "alter_partition", "2-3", Scope.CONTROLLER),
    Api(57, "update_features", "0-2", Scope.FORWARDED),
    Api(58, "envelope", "0", Scope.CONTROLLER),
    Api(59, "fetch_snapshot", "0-1", Scope.CONTROLLER),
    Api(60, "describe_cluster", "0-2", Scope.BOTH),
    Api(61, "describe_producers", "0"),
    Api(62, "broker_registration", "0-4", Scope.CONTROLLER),
    Api(63, "broker_heartbeat", "0-2", Scope.CONTROLLER),
    Api(64, "unregister_broker", "0", Scope.FORWARDED),
    Api(65, "describe_transactions", "0"),
    Api(66, "list_transactions", "0-2"),
    Api(67, "allocate_producer_ids", "0", Scope.CONTROLLER),
    Api(68, "consumer_group_heartbeat", "0-1"),
    Api(69, "consumer_group_describe", "0-1"),
    Api(70, "controller_registration", "0", Scope.CONTROLLER),
    Api(71, "get_telemetry_subscriptions", "0", Scope.MEASURED),
    Api(72, "push_telemetry", "0", Scope.MEASURED),
    Api(73, "assign_replicas_to_dirs", "0", Scope.CONTROLLER),
    Api(74, "list_config_resources", "0-1"),
    Api(75, "describe_topic_partitions", "0"),
    Api(76, "share_group_heartbeat", "1"),
    Api(77, "share_group_describe", "1"),
    Api(78, "share_fetch", "1-2"),
    Api(79, "share_acknowledge", "1-2"),
    Api(80, "add_raft_voter", "0-1", Scope.FORWARDED),
    Api(81, "remove_raft_voter", "0", Scope.FORWARDED),
    Api(82, "update_raft_voter", "0", Scope.CONTROLLER),
    Api(83, "initialize_share_group_state", "0"),
    Api(84, "read_share_group_state", "0"),
    Api(85, "write_share_group_state", "0-1"),
    Api(86, "delete_share_group_state", "0"),
    Api(87, "read_share_group_state_summary", "0-1"),
    Api(88, "streams_group_heartbeat", "0-1"),
    Api(89, "streams_group_describe", "0-1"),
    Api(90, "describe_share_group_offsets", "0-1"),
    Api(91, "alter_share_group_offsets", "0"),
    Api(92, "delete_share_group_offsets", "0"),
    Api(93, "streams_group_topology_description_update", "0"),
)

APIS: Final[Mapping[int, Api]] = {each.key: each for each in _TABLE}
"""All APIs, answered here."""

BROKER_APIS: Final[Mapping[int, Api]] = {
    each.key: ForwardedApi(each) if each.scope is Scope.FORWARDED else each
    for each in _TABLE
    if each.scope not in (Scope.CONTROLLER, Scope.MEASURED)
}
"""The APIs on a broker's listeners."""

TELEMETRY_APIS: Final[Mapping[int, Api]] = {each.key: each for each in _TABLE if each.scope is Scope.MEASURED}
"""The further APIs of a broker where metrics are on (KIP-714). Apache Kafka has them only with a receiver plug-in."""

_CONTROLLERS_OWN: Final = (
    Api(1, "controller_fetch", "4-18", Scope.CONTROLLER),
    Api(33, "controller_alter_configs", "0-2", Scope.PREPARED),
    Api(44, "controller_incremental_alter_configs", "0-1", Scope.PREPARED),
    Api(60, "controller_describe_cluster", "0-2", Scope.BOTH),
)
"""APIs for which a controller has another handler than a broker. Its Fetch serves the metadata log."""

CONTROLLER_APIS: Final[Mapping[int, Api]] = {
    each.key: each for each in (*_TABLE, *_CONTROLLERS_OWN) if each.scope not in (Scope.BROKER, Scope.MEASURED)
}
"""The APIs on a controller's listeners."""

_ALLOCATE_PRODUCER_IDS: Final = 67

FORWARDABLE: Final = frozenset(
    {
        _ALLOCATE_PRODUCER_IDS,  # which a broker's listener does not accept
        *(each.key for each in _TABLE if each.scope in (Scope.FORWARDED, Scope.PREPARED)),
    }
)
"""The APIs that a controller answers in an envelope."""


class Promise(NamedTuple):
    """The APIs that are advertised on a listener."""

    apis: Mapping[int, Api] = BROKER_APIS
    release: str | None = None  #: the release of Apache Kafka whose APIs these are; None for all APIs
    is_controllers: bool = False  #: whether it is a controller's listener


CONTROLLERS_PROMISE: Final = Promise(CONTROLLER_APIS, is_controllers=True)


def api(request: type[Request]) -> Callable[[H], H]:
    """Registers the decorated function as the handler of ``request``, in the versions of the table.

    The function takes the request and a :class:`~barnabas.api_handlers.context.Context`. It returns the response, a
    :class:`~barnabas.api_handlers.answering.Later`, or None if the protocol has no response. A
    :class:`~barnabas.errors.KafkaError` that it raises becomes the API's error response.
    """
    promised = APIS[request.api_key].versions  # a controller's handler has the same
    assert promised.first in request.versions and promised.last in request.versions, (
        f"{request.__name__} is not declared for {promised}"
    )

    def register(handle: H) -> H:
        module = handle.__module__.rpartition(".")[2]
        assert module not in HANDLERS, f"{module} has two handlers"
        HANDLERS[module] = request, handle
        return handle

    return register
