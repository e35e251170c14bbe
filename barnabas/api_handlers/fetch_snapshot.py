"""FetchSnapshot (API key 59): a piece of a snapshot of the metadata log (KIP-630).

Knows nothing of how snapshots are read.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.controller_fetch import leader_log, sender_of
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


@api(FetchSnapshotRequest)
def fetch_snapshot(request: FetchSnapshotRequest, context: Context) -> FetchSnapshotResponse:
    """Reads the piece at the position in the request."""
    return leader_log(context.broker).fetch_snapshot(request, sender_of(context))


@error_shape(FetchSnapshotRequest)
def refused(request: FetchSnapshotRequest, error: KafkaError, version: int) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=error.code, topics=[])
