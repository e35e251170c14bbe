"""What a response with records counts for the quota of its client, in Fetch and ShareFetch.

Knows nothing of partitions. Rules of Apache Kafka's ``KafkaApis.handleFetchRequest``.
"""

from barnabas.api_handlers.context import Context
from barnabas.wire.message import Response


def most_bytes(context: Context, limit: int) -> int:
    """Returns ``limit``, or what the client can fetch at once without certainly being throttled, if that is less."""
    most = None if context.meter is None else context.meter.most_fetched()
    return limit if most is None else min(limit, most)


def refuses(context: Context, response: Response) -> bool:
    """Returns whether the response has to stay empty, since it is more than the client may have now.

    The size that counts is that of the body, and of the length before it.
    """
    meter = context.meter
    return meter is not None and meter.refuses_fetched(4 + sum(map(len, response.encode_parts(context.api_version))))
