"""AddRaftVoter (API key 80): make an observer of the metadata log a voter (KIP-853).

v1 ack_when_committed (KIP-1186)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string, uint16, uuid


class AddRaftVoterRequest(Request, api_key=80, versions="0-1", flexible="0+"):
    class Listener(Struct):
        name: string
        host: string
        port: uint16

    cluster_id: string | None
    timeout_ms: int32
    voter_id: int32
    voter_directory_id: uuid
    listeners: list[Listener]
    ack_when_committed: bool = field("1+", default=True)  #: False: respond when the change is appended


class AddRaftVoterResponse(Response, to=AddRaftVoterRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
