"""The place of an error that is about some topics and partitions of a request."""

from collections.abc import Iterator

import pytest

from barnabas.api_handlers.error_responses import ERROR_CODES
from barnabas.api_handlers.registry import Api
from barnabas.errors import NotLeaderOrFollower
from barnabas.faults.placing import entries_answer, is_failed, mark_entries
from barnabas.faults.subjects import can_name, subjects_of
from barnabas.wire.message import Response
from barnabas.wire.schema import Struct
from tests.requests import EVERY_VERSION, name_of, named

ABOUT_TOPICS = [(api, version) for api, version in EVERY_VERSION if can_name(api.request, "topic")]

AS_A_WHOLE = {"consumer_group_heartbeat", "list_partition_reassignments"}
"""APIs whose responses have only an error code at the top."""

OF_DIRECTORIES = {"describe_log_dirs"}
"""APIs whose error codes are about directories of topics."""

about_topics = pytest.mark.parametrize(("api", "version"), ABOUT_TOPICS, ids=name_of)


def codes(structure: Struct, version: int) -> Iterator[tuple[Struct, str]]:
    """Yields the structures with error codes in that version."""
    for field in structure.wire_fields():
        if version in field.versions and field.name in ERROR_CODES:
            yield structure, field.name
        elif version in field.versions and field.is_array and isinstance(field.kind, type):
            for each in getattr(structure, field.name):
                yield from codes(each, version)


@about_topics
def test_an_answer_for_entries_has_the_error_in_them(api: Api, version: int) -> None:
    request = named(api.request, version)
    answer = entries_answer(request, NotLeaderOrFollower(), version)
    having = [where for where, name in codes(answer, version) if getattr(where, name) == NotLeaderOrFollower.code]
    assert having
    assert is_failed(answer) == (api.module in AS_A_WHOLE)
    answer.encode(version=version)
    places = subjects_of(answer, bytes.hex).topics
    assert places <= subjects_of(request, bytes.hex).topics
    assert places or api.module in AS_A_WHOLE | OF_DIRECTORIES


@about_topics
def test_an_answer_of_the_handler_is_marked_in_entries(api: Api, version: int) -> None:
    response: Response = named(api.request.response, version)
    for where, name in codes(response, version):
        setattr(where, name, 0)
    mark_entries(response, lambda *place: True, NotLeaderOrFollower(), version, lambda each: "t", whole_topics=True)
    marked = [where for where, name in codes(response, version) if getattr(where, name) == NotLeaderOrFollower.code]
    assert bool(marked) == (api.module not in AS_A_WHOLE | OF_DIRECTORIES)
    assert not is_failed(response)
