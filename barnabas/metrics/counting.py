"""Counts requests: by API, version and error, how long they take, and the bytes and records of topics.

Knows nothing of Prometheus, nor of sockets: the functions of :meth:`Counting.new_handle` replace
:func:`barnabas.api_handlers.handling.handle`. The cost is per request and per batch, never per record: a request
decrements one counter of its version. What is appended is counted by the partitions, and read from them
(:class:`~barnabas.cluster.replication.traffic.Traffic`). Of an API with many requests only a sample is timed.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from barnabas.api_handlers.answering import Answer, Later, then
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.handling import Handle, failed, guarded, handle
from barnabas.api_handlers.registry import Api
from barnabas.cluster.replication.partition import Partition
from barnabas.errors import CloseConnection
from barnabas.metrics.counts import OTHERS, ApiCounts, ClientCounts, TopicCounts
from barnabas.metrics.reading import acknowledgements_of, errors_of, size_of_request, size_of_response
from barnabas.wire.message import Request, Response
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

MOST_TOPICS: Final = 1000
MOST_CLIENTS: Final = 200

TIMED: Final = 50
"""At most so many requests of an API are timed between two calls of :meth:`Counting.set_strides`, while its rate stays
the same. A small request that is timed costs as much as two or three.
"""

AT_STRIDE: Final = TIMED // 5
"""How many requests are timed before the stride doubles."""

SHARING: Final = frozenset({78, 79})
"""ShareFetch and ShareAcknowledge."""

Soon = Callable[[Callable[[], object]], object]
Arrived = Callable[[Context], float | None]


def unknown(context: Context) -> float | None:
    """Returns None: the time of arrival is unknown."""
    return None


class Counting:
    """The counts of a node since its start.

    :param now: the monotonic time in seconds
    :param soon: calls a function in the loop's next turn, when the responses have been written
    :param arrived: returns the time at which the last bytes of the connection arrived; None if it is unknown
    """

    def __init__(self, now: Callable[[], float], soon: Soon | None = None, arrived: Arrived = unknown) -> None:
        self.apis: dict[tuple[int, int], ApiCounts] = {}  #: by API key and version
        self.topics: dict[str, TopicCounts] = {}
        self.clients: dict[str, ClientCounts] = {}
        self.acknowledged: Counter[int] = Counter()  #: records of share groups, by type of acknowledgement
        self.replication_bytes_out = 0
        self.partitions: Callable[[], Iterable[Partition]] = tuple  #: returns those whose traffic is counted
        self._handles: dict[tuple[int, int], Handle] = {}  # by API key and version
        self._known: dict[str | bytes, TopicCounts] = {}  # by name and by id
        self._now = now
        self._soon = soon
        self._arrived = arrived

    # ------------------------------------------------------------ each request

    def new_handle(self, api: Api, version: int) -> Handle:
        """Returns the replacement of :func:`handle` for the requests of one version of an API, of all listeners.

        It is a closure, and repeats :func:`handle` instead of calling it: an attribute look-up and a call cost 1 % of a
        small request each.
        """
        key = api.key, version
        if key in self._handles:
            return self._handles[key]
        left = 1
        count, timed, refused = self._count, self._timed, self._refused
        tells = api.key == ProduceRequest.api_key  # of its errors, by the context

        def counted(api: Api, request: Any, context: Context) -> Answer:
            """Handles a request, and counts it. :raises CloseConnection: there is no response"""
            nonlocal left
            answer: Answer
            left -= 1
            if not left:
                return timed(counts, api, request, context)
            try:
                if context.broker.authorizer is None:
                    answer = api.handle(request, context)
                else:
                    answer = guarded(api, request, context)
                    context.has_errors = True  # it may have refused a part of the request
            except Exception as error:
                answer = refused(counts, api, request, context, error)
            if tells and not context.has_errors:
                return answer
            return count(counts, context, request, answer)

        def add_left(more: int) -> int:
            nonlocal left
            left += more
            return left

        counts = self.apis[key] = ApiCounts(add_left)
        self._handles[key] = counted
        return counted

    def _refused(self, counts: ApiCounts, api: Api, request: Request, context: Context, error: Exception) -> Response:
        """Returns the response to a request whose handler has raised ``error``."""
        context.has_errors = True
        try:
            return failed(api, request, context, error)
        except CloseConnection:
            counts.closed += 1
            raise

    def _count(self, counts: ApiCounts, context: Context, request: Request, answer: Answer) -> Answer:
        """Counts the errors of a request that has been handled, at once or when its later response is there."""
        context.has_errors = False
        if type(answer) is not Later:
            self._count_answered(counts, context, request, answer)
            return answer

        def answered(response: Response) -> Response:
            self._count_answered(counts, context, request, response)
            return response

        try:
            return then(answer, answered)
        except CloseConnection:
            counts.closed += 1
            raise

    def _count_answered(self, counts: ApiCounts, context: Context, request: Request, response: Any) -> None:
        """Counts the errors of a response; a produce request with acks=0 has none."""
        if type(response) is ProduceResponse:
            errors = self._count_produced(response, context)
        elif type(response) is FetchResponse:
            errors = self._count_fetched(request, response, context)
        else:
            errors = [] if response is None else errors_of(response, context.api_version)
            if request.api_key in SHARING and not errors:
                self.acknowledged.update(acknowledgements_of(request))
        if errors:
            counts.failed += 1
            for code in errors:
                counts.errors[code] += 1

    # ------------------------------------------------------------ times

    def set_strides(self) -> None:
        """Sets the sampling rate of each API by the number of its requests since the last call."""
        for counts in self.apis.values():
            counts.set_stride(TIMED)

    def _timed(self, counts: ApiCounts, api: Api, request: Request, context: Context) -> Answer:
        """Handles, counts and times a request."""
        weight = counts.begin_timed(AT_STRIDE)
        arrived = self._arrived(context)
        began = self._now()
        if arrived is not None:
            counts.queue.add(max(began - arrived, 0.0), weight)
        try:
            answer = handle(api, request, context)
        except CloseConnection:
            counts.closed += 1
            raise
        returned = self._now()
        counts.local.add(returned - began, weight)
        client = self.client(context.client_id or "")
        client.requests += weight
        if type(request) is ProduceRequest:
            client.bytes_in += size_of_request(request) * weight
        answer = self._count(counts, context, request, answer)
        if type(answer) is not Later:
            self._add_answered(counts, client, weight, began, returned, answer)
            return answer

        def answered(response: Response) -> Response:
            at = self._now()
            counts.remote.add(at - returned, weight)
            self._add_answered(counts, client, weight, began, at, response)
            return response

        return then(answer, answered)

    def _add_answered(
        self, counts: ApiCounts, client: ClientCounts, weight: int, began: float, at: float, response: Any
    ) -> None:
        """Adds what is known of a timed request once its response is there; with acks=0 it is None."""
        counts.total.add(at - began, weight)
        client.seconds += (at - began) * weight
        if type(response) is FetchResponse:
            client.bytes_out += size_of_response(response) * weight
        if self._soon is not None and response is not None:
            self._soon(lambda: counts.send.add(self._now() - at, weight))

    def client(self, client_id: str) -> ClientCounts:
        counts = self.clients.get(client_id)
        if counts is None:
            if len(self.clients) >= MOST_CLIENTS:
                client_id = OTHERS
            counts = self.clients.setdefault(client_id, ClientCounts())
        return counts

    # ------------------------------------------------------------ topics

    def read_all(self) -> None:
        """Adds what was appended to the hosted partitions to the counts of their topics."""
        for partition in self.partitions():
            self.read(partition)

    def read(self, partition: Partition) -> None:
        """Adds what was appended to the partition to the counts of its topic."""
        if partition.traffic is not None and partition.batches:
            self.topic(partition.topic).add(partition, partition.traffic)

    def topic(self, name: str) -> TopicCounts:
        counts = self.topics.get(name)
        if counts is None:
            if len(self.topics) >= MOST_TOPICS:
                name = OTHERS
            counts = self.topics.setdefault(name, TopicCounts())
        return counts

    def _counts_of(self, name: str, topic_id: bytes, context: Context) -> TopicCounts:
        """Returns the counts of a topic that a request names or identifies."""
        known = self._known.get(name or topic_id)
        if known is not None:
            return known
        counts = self.topic(name or context.broker.topic_name(topic_id) or OTHERS)
        if len(self._known) >= 2 * MOST_TOPICS:  # topics were deleted, and others created
            self._known.clear()
        self._known[name or topic_id] = counts
        return counts

    def _count_produced(self, response: ProduceResponse, context: Context) -> list[int]:
        """Returns the error codes of the response. Batches that were appended have been counted already."""
        errors = []
        for topic in response.responses:
            for row in topic.partition_responses:
                if row.error_code:
                    errors.append(row.error_code)
                    if row.base_offset < 0:  # it was not appended
                        counts = self._counts_of(topic.name, topic.topic_id, context)
                        counts.batches += 1
                        counts.failed_batches += 1
        return errors

    def _count_fetched(self, request: Any, response: FetchResponse, context: Context) -> list[int]:
        """Returns the error codes of the response."""
        is_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
        errors = [response.error_code] if response.error_code else []
        for topic in response.responses:
            counts: TopicCounts | None = None
            for row in topic.partitions:
                size, code = len(row.records or b""), row.error_code
                if code:
                    errors.append(code)
                if is_follower:
                    self.replication_bytes_out += size
                elif size or code:
                    if counts is None:
                        counts = self._counts_of(topic.topic, topic.topic_id, context)
                    counts.bytes_out += size
                    counts.failed_fetches += code != 0
        return errors
