"""The response to a request that failed as a whole, beside that of Apache Kafka's own classes.

``java/ErrorResponses.java`` calls ``AbstractRequest.getErrorResponse``. Messages are not compared, nor is the order of
entries: Apache Kafka keeps them in hash tables.
"""

from typing import Any

import pytest

from barnabas.api_handlers.error_responses import error_response
from barnabas.api_handlers.registry import Api
from barnabas.errors import CloseConnection, CoordinatorNotAvailable
from barnabas.wire.message import Request
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Struct
from tests.requests import EVERY_VERSION, name_of, named

from .apache import JavaProgram

PROGRAM = "ErrorResponses.java"

UNKNOWN_THERE = {
    "produce": range(3),
    "fetch": range(4),
    "list_offsets": [0],
    "offset_commit": [0, 1],
    "offset_fetch": [0],
    "create_topics": [0, 1],
    "delete_topics": [0],
    "offset_for_leader_epoch": [0, 1],
    "txn_offset_commit": [6],
    "describe_configs": [0],
    "alter_replica_log_dirs": [0],
    "describe_acls": [0],
    "create_acls": [0],
    "delete_acls": [0],
    "create_delegation_token": [0],
    "renew_delegation_token": [0],
    "expire_delegation_token": [0],
    "describe_delegation_token": [0],
    "describe_log_dirs": [0],
    "delete_groups": [3],
    "streams_group_heartbeat": [1],
    "streams_group_describe": [1],
    "streams_group_topology_description_update": [0],
}
"""Versions that this release of Apache Kafka has removed, or does not have yet."""

OTHERWISE = {
    ("describe_log_dirs", 1): "there an empty answer, here the error is that of a directory without a name",
    ("describe_log_dirs", 2): "there an empty answer, here the error is that of a directory without a name",
    ("list_partition_reassignments", 0): "there all partitions that were asked for, as if they had no replicas",
}

COMPARED = [
    (api, version)
    for api, version in EVERY_VERSION
    if version not in UNKNOWN_THERE.get(api.module, ()) and (api.module, version) not in OTHERWISE
]


def answered_there(program: JavaProgram, request: Request, code: int, version: int) -> bytes | None:
    answer = program.ask(f"{request.api_key} {version} {code} {request.encode(version=version).hex()}")
    return None if answer == "-" else bytes.fromhex(answer)


def plain(value: Any) -> Any:
    """Returns the response without messages, and with its entries sorted."""
    if isinstance(value, Struct):
        return {
            field.name: plain(getattr(value, field.name))
            for field in value.wire_fields()
            if field.name != "error_message"
        }
    if isinstance(value, list | tuple):
        return sorted((plain(each) for each in value), key=repr)
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.parametrize(("api", "version"), COMPARED, ids=name_of)
def test_an_error_has_the_shape_that_it_has_there(java_program: JavaProgram, api: Api, version: int) -> None:
    request = named(api.request, version)
    theirs = answered_there(java_program, request, CoordinatorNotAvailable.code, version)
    assert theirs is not None
    ours = error_response(request, CoordinatorNotAvailable(), version).encode(version=version)
    response = api.request.response
    assert plain(response.decode(ours, version=version)) == plain(response.decode(theirs, version=version))


def test_neither_answers_a_produce_request_with_acks_0(java_program: JavaProgram) -> None:
    request = named(ProduceRequest, 9)
    request.acks = 0
    assert answered_there(java_program, request, CoordinatorNotAvailable.code, 9) is None
    with pytest.raises(CloseConnection):
        error_response(request, CoordinatorNotAvailable(), 9)


def test_a_request_that_names_nothing_is_answered_there_as_if_all_was_well(java_program: JavaProgram) -> None:
    """Barnabas closes the connection instead (tests/api_handlers/test_error_responses.py)."""
    request = named(ProduceRequest, 9, entries=0)
    answer = answered_there(java_program, request, CoordinatorNotAvailable.code, 9)
    assert answer is not None
    assert ProduceRequest.response.decode(answer, version=9).responses == []
