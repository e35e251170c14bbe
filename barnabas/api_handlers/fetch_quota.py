"""The consumer byte rate quota of responses with records, in Fetch and ShareFetch.

Knows nothing of partitions. Rules of Apache Kafka's ``KafkaApis.handleFetchRequest``.
"""

from barnabas.api_handlers.context import Context
from barnabas.wire.message import Response


def most_bytes(context: Context, limit: int) -> int:
    """Returns ``limit``, or the bytes above which the client would certainly be throttled, if that is less."""
    most = None if context.meter is None else context.meter.most_fetched()
    return limit if most is None else min(limit, most)


def refuses(context: Context, response: Response) -> bool:
    """Returns whether the response has to be empty, since its size exceeds the quota of the client.

    The size includes the length prefix.
    """
    meter = context.meter
    return meter is not None and meter.refuses_fetched(4 + sum(map(len, response.encode_parts(context.api_version))))
