"""UpdateRaftVoter (API key 82): a voter of the metadata log updates its endpoints and versions (KIP-853)."""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, string, uint16, uuid


class UpdateRaftVoterRequest(Request, api_key=82, versions="0", flexible="0+"):
    class Listener(Struct):
        name: string
        host: string
        port: uint16

    class KRaftVersionFeature(Struct):
        min_supported_version: int16
        max_supported_version: int16

    cluster_id: string | None
    current_leader_epoch: int32
    voter_id: int32
    voter_directory_id: uuid
    listeners: list[Listener]
    kraft_version_feature: KRaftVersionFeature


class UpdateRaftVoterResponse(Response, to=UpdateRaftVoterRequest):
    class CurrentLeader(Struct):
        leader_id: int32 = -1
        leader_epoch: int32 = -1
        host: string = ""
        port: int32 = 0

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    current_leader: CurrentLeader = field(tag=0, default_factory=CurrentLeader)
