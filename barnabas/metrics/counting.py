"""Counts requests: by API, version and error, how long they take, and the bytes and records of topics.

Knows nothing of Prometheus, nor of sockets: :meth:`Counting.handle` replaces
:func:`barnabas.api_handlers.handling.handle`. The cost is per request and per batch, never per record: a request
increments the counters of its API and its topics. Of an API with many requests only a sample is timed.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from barnabas.api_handlers.answering import Answer, Later, then
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.handling import Handle, handle
from barnabas.api_handlers.registry import Api
from barnabas.errors import CloseConnection
from barnabas.metrics.counts import OTHERS, ApiCounts, ClientCounts, TopicCounts
from barnabas.metrics.reading import (
    BATCHES_SINCE,
    COUNT_AT,
    Sent,
    acknowledgements_of,
    batches_of,
    errors_of,
    record_count,
)
from barnabas.wire.message import Request, Response
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

MOST_TOPICS: Final = 1000
MOST_CLIENTS: Final = 200

TIMED: Final = 100
"""About how many requests of an API are timed between two calls of :meth:`Counting.set_strides`."""

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
        self.apis: dict[type[Request], ApiCounts] = {}
        self.topics: dict[str, TopicCounts] = {}
        self.clients: dict[str, ClientCounts] = {}
        self.acknowledged: Counter[int] = Counter()  #: records of share groups, by type of acknowledgement
        self.replication_bytes_out = 0
        self._known: dict[str | bytes, TopicCounts] = {}  # by name and by id
        self._now = now
        self._soon = soon
        self._arrived = arrived
        self.handle = self._new_handle()  #: replaces :func:`barnabas.api_handlers.handling.handle`

    # ------------------------------------------------------------ each request

    def _new_handle(self) -> Handle:
        """Returns the replacement of :func:`handle`. It is a closure, since attribute look-ups would cost more."""
        apis, known, count, timed, find = self.apis, self._known, self._count, self._timed, self._find

        def counted(api: Api, request: Any, context: Context) -> Answer:
            """Handles a request, and counts it. :raises CloseConnection: there is no response"""
            try:
                counts = apis[type(request)]
            except KeyError:
                counts = apis[type(request)] = ApiCounts(api.versions.last)
            counts.left -= 1
            if counts.left <= 0:
                return timed(counts, api, request, context)
            try:
                answer = handle(api, request, context)
            except CloseConnection:
                counts.closed += 1
                raise
            if type(answer) is not ProduceResponse:
                return count(counts, request, context, answer)
            try:  # the most frequent request: one batch, which was appended
                (produced,) = request.topic_data
                (row,) = produced.partition_data
                version = context.api_version
                if answer.responses[0].partition_responses[0].error_code or version < BATCHES_SINCE:
                    return count(counts, request, context, answer)
            except ValueError:
                return count(counts, request, context, answer)
            key = produced.name or produced.topic_id
            topic = known.get(key) or find(produced.name, produced.topic_id, context)
            data = row.records
            topic.batches += 1
            topic.bytes_in += len(data)
            topic.messages_in += record_count(data, COUNT_AT)[0]
            counts.versions[version] += 1
            return answer

        return counted

    def _count(self, counts: ApiCounts, request: Request, context: Context, answer: Answer) -> Answer:
        """Counts a request that has been handled, at once or when its later response is there."""
        # The records are in the receive buffer, which is reused before a later response is there.
        batches = batches_of(request, context.api_version) if type(request) is ProduceRequest else None
        if type(answer) is not Later:
            self._count_answered(counts, request, batches, context, answer)
            return answer

        def answered(response: Response) -> Response:
            self._count_answered(counts, request, batches, context, response)
            return response

        try:
            return then(answer, answered)
        except CloseConnection:
            counts.closed += 1
            raise

    def _count_answered(
        self, counts: ApiCounts, request: Request, batches: list[Sent] | None, context: Context, response: Any
    ) -> None:
        """Counts a request that was answered; with acks=0 there is no response."""
        counts.versions[context.api_version] += 1
        if batches is not None:
            errors = self._count_produced(batches, context, response)
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
        weight = counts.weight
        counts.left = counts.weight = counts.stride
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
        bytes_in = sum(each.size for each in batches_of(request, 3)) if type(request) is ProduceRequest else 0
        answer = self._count(counts, request, context, answer)

        def answered(response: Response) -> Response:
            at = self._now() if later else returned
            counts.total.add(at - began, weight)
            client.requests += weight
            client.seconds += (at - began) * weight
            client.bytes_in += bytes_in * weight
            if type(response) is FetchResponse:
                client.bytes_out += size_of(response) * weight
            if later:
                counts.remote.add(at - returned, weight)
            if self._soon is not None:
                self._soon(lambda: counts.send.add(self._now() - at, weight))
            return response

        later = type(answer) is Later
        if answer is None:  # acks=0
            counts.total.add(returned - began, weight)
            client.requests += weight
            client.bytes_in += bytes_in * weight
            return None
        return then(answer, answered)

    def client(self, client_id: str) -> ClientCounts:
        counts = self.clients.get(client_id)
        if counts is None:
            if len(self.clients) >= MOST_CLIENTS:
                client_id = OTHERS
            counts = self.clients.setdefault(client_id, ClientCounts())
        return counts

    # ------------------------------------------------------------ topics

    def topic(self, name: str) -> TopicCounts:
        counts = self.topics.get(name)
        if counts is None:
            if len(self.topics) >= MOST_TOPICS:
                name = OTHERS
            counts = self.topics.setdefault(name, TopicCounts())
        return counts

    def _find(self, name: str, topic_id: bytes, context: Context) -> TopicCounts:
        """Returns the counts of a topic that a request names or identifies."""
        counts = self.topic(name or context.broker.topic_name(topic_id) or OTHERS)
        if len(self._known) >= 2 * MOST_TOPICS:  # topics were deleted, and others created
            self._known.clear()
        self._known[name or topic_id] = counts
        return counts

    def _count_produced(self, batches: list[Sent], context: Context, response: ProduceResponse | None) -> list[int]:
        """Returns the error codes of the response."""
        failed = {
            (answer.name, answer.topic_id, row.index): row.error_code
            for answer in (() if response is None else response.responses)
            for row in answer.partition_responses
            if row.error_code
        }
        for batch in batches:
            counts = self._known.get(batch.topic or batch.topic_id) or self._find(batch.topic, batch.topic_id, context)
            counts.batches += 1
            if failed and batch[:3] in failed:
                counts.failed_batches += 1
            else:
                counts.bytes_in += batch.size
                counts.messages_in += batch.records
        return list(failed.values())

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
                        counts = self._known.get(topic.topic or topic.topic_id) or self._find(
                            topic.topic, topic.topic_id, context
                        )
                    counts.bytes_out += size
                    counts.failed_fetches += code != 0
        return errors


def size_of(response: FetchResponse) -> int:
    """Returns the bytes of records in a response."""
    return sum(len(row.records or b"") for topic in response.responses for row in topic.partitions)
