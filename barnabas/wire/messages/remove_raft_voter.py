"""RemoveRaftVoter (API key 81): make a voter of the metadata log an observer (KIP-853)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int16, int32, string, uuid


class RemoveRaftVoterRequest(Request, api_key=81, versions="0", flexible="0+"):
    cluster_id: string | None
    voter_id: int32
    voter_directory_id: uuid


class RemoveRaftVoterResponse(Response, to=RemoveRaftVoterRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
