"""Errors that a handler does not catch: every API, in every version, returns the error, or closes the connection."""

import struct
from types import SimpleNamespace

import pytest

from barnabas.api_handlers.error_responses import ERROR_CODES, KEYS, SHAPES, error_response
from barnabas.api_handlers.registry import APIS, Promise
from barnabas.api_handlers.session import Session
from barnabas.clock import ManualClock
from barnabas.errors import CloseConnection, NotController, UnknownServerError
from barnabas.server.dispatch import Dispatcher
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Struct
from tests.raw import framed
from tests.requests import EVERY_VERSION, name_of, named

every_version = pytest.mark.parametrize(("api", "version"), EVERY_VERSION, ids=name_of)

NO_PLACE = {
    "create_acls": range(4),
    "delete_acls": range(4),
    "alter_client_quotas": range(2),
    "alter_user_scram_credentials": (0,),
    "produce": range(14),
    "fetch": range(7),
    "list_offsets": range(12),
    "metadata": range(13),
    "offset_commit": range(11),
    "offset_fetch": [0, 1, 8, 9, 10],
    "find_coordinator": [4, 5, 6],
    "describe_groups": range(7),
    "create_topics": range(8),
    "delete_topics": range(7),
    "delete_records": range(3),
    "offset_for_leader_epoch": range(5),
    "add_partitions_to_txn": range(4),
    "write_txn_markers": [1, 2],
    "txn_offset_commit": range(7),
    "describe_configs": range(5),
    "alter_configs": range(3),
    "alter_replica_log_dirs": range(3),
    "create_partitions": range(4),
    "delete_groups": range(4),
    "elect_leaders": [0],
    "incremental_alter_configs": [0, 1],
    "describe_producers": [0],
    "describe_transactions": [0],
    "consumer_group_describe": [0, 1],
    "describe_topic_partitions": [0],
    "share_group_describe": [1],
    "initialize_share_group_state": [0],
    "read_share_group_state": [0],
    "write_share_group_state": [0, 1],
    "delete_share_group_state": [0],
    "read_share_group_state_summary": [0, 1],
    "streams_group_describe": [0, 1],
    "describe_share_group_offsets": [0, 1],
}
"""Versions whose responses have error codes only in their entries. An empty request has no entry for the error: Apache
Kafka returns an empty success then, Barnabas closes the connection."""


def answer(api, version, request, error):
    """Returns the decoded response if the handler raises ``error``."""

    def fail(request, context):
        raise error

    failing = api.within(api.versions)
    failing.request, failing.handle = api.request, fail
    session = Session(listener="PLAINTEXT", client_host="127.0.0.1", promise=Promise({api.key: failing}))
    dispatcher = Dispatcher(SimpleNamespace(clock=ManualClock(), quotas=None, authorizer=None), session)
    pieces = dispatcher.respond(memoryview(framed(request, version, 7))[4:])
    frame = b"".join(pieces)
    size, correlation_id = struct.unpack_from(">ii", frame)
    assert (size, correlation_id) == (len(frame) - 4, 7)
    response = api.request.response
    return response.decode(frame, version=version, at=8 + response.header_version(version))


def codes(structure, version):
    """Returns all error codes of a response, in wire order."""
    for field in structure.wire_fields():
        if version in field.versions:
            value = getattr(structure, field.name)
            if field.name in ERROR_CODES:
                yield value
            elif field.is_array:
                for each in value or ():
                    if isinstance(each, Struct):
                        yield from codes(each, version)


def values(structure):
    """Returns all texts, ids and numbers of a structure, without error codes and messages."""
    if not isinstance(structure, Struct):
        return {structure}
    found = set()
    for field in structure.wire_fields():
        value = getattr(structure, field.name)
        if not field.name.startswith("error"):
            for each in value if isinstance(value, list) else [value]:
                found |= values(each)
    return found


@every_version
@pytest.mark.parametrize("error", [NotController("as the test wants it"), ZeroDivisionError()], ids=["error", "bug"])
def test_an_error_that_escapes_is_answered_with_an_error(api, version, error):
    request = named(api.request, version)
    response = answer(api, version, request, error)
    code = getattr(error, "code", UnknownServerError.code)
    assert set(codes(response, version)) == {code}


@every_version
def test_everything_that_a_request_names_is_named_where_the_error_is_in_entries(api, version):
    request = named(api.request, version)
    response = error_response(request, NotController(), version)
    has_own_code = any(field.name == "error_code" and version in field.versions for field in response.wire_fields())
    if not has_own_code and api.module not in ("describe_log_dirs", "create_acls", "delete_acls"):
        first = next(field.name for field in request.wire_fields() if field.is_array and version in field.versions)
        for entry in getattr(request, first):
            assert values(entry) & values(response)


@every_version
def test_a_request_that_names_nothing_is_never_answered_as_if_all_was_well(api, version):
    request = named(api.request, version, entries=0)
    has_no_place = version in NO_PLACE.get(api.module, ())
    if has_no_place:
        with pytest.raises(CloseConnection, match=r"no place for the error|acks=0"):
            answer(api, version, request, NotController())
    else:
        assert NotController.code in codes(answer(api, version, request, NotController()), version)


def test_metadata_of_all_topics_has_a_place_for_errors_from_version_13_on():
    assert error_response(MetadataRequest(topics=None), NotController(), 13).error_code == NotController.code
    with pytest.raises(CloseConnection):
        error_response(MetadataRequest(topics=None), NotController(), 12)


def test_a_topic_without_a_name_is_answered_with_an_empty_one():
    topic = MetadataRequest.MetadataRequestTopic(topic_id=bytes(15) + b"\1", name=None)
    response = error_response(MetadataRequest(topics=[topic]), NotController(), 11)
    assert [(each.name, each.topic_id, each.error_code) for each in response.topics] == [
        ("", topic.topic_id, NotController.code)
    ]


@pytest.mark.parametrize("version", range(14))
def test_produce_with_acks_0_has_no_answer_at_all(version):
    request = named(ProduceRequest, version)
    request.acks = 0
    with pytest.raises(CloseConnection, match="acks=0"):
        error_response(request, NotController(), version)


def test_the_message_goes_where_there_is_a_place_for_it():
    (request,) = (named(APIS[22].request, 4),)
    assert not hasattr(error_response(request, NotController("why"), 4), "error_message")
    request = named(APIS[19].request, 7)
    response = error_response(request, NotController("why"), 7)
    assert [each.error_message for each in response.topics] == ["why", "why"]


def test_shapes_are_registered_by_the_module_of_their_api():
    for request, shape in SHAPES.items():
        assert shape.__module__ == f"barnabas.api_handlers.{APIS[request.api_key].module}"


def test_all_keys_are_used():
    declared = {
        field.name
        for api in APIS.values()
        for name in KEYS
        for structure in structures(api.request.response)
        for field in structure.wire_fields()
        if field.name == name
    }
    assert declared == KEYS


def structures(cls):
    yield cls
    for field in cls.wire_fields():
        if isinstance(field.kind, type):
            yield from structures(field.kind)
