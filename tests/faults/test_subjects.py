"""The topics, groups and transactional ids of a request, compared with the types of fields in Apache's schemas."""

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.api_handlers.registry import Api
from barnabas.faults.subjects import can_name, selected, subjects_of
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.schema import Struct
from tests.requests import EVERY_VERSION, name_of, named
from tests.wire.test_declarations import SHIPPED, schema, snake_case, within

BESIDES = {("DescribeTopicPartitionsRequest", "topic_name")}
"""Fields that are not subjects of the request: the cursor of a listing."""


def entities(
    fields: list[dict[str, Any]], version: int, common: dict[str, Any], structure: Struct
) -> Iterator[tuple[str, str, str]]:
    """Yields kind, field and value of each topic, group and transactional id, by Apache's ``entityType``."""
    for field in fields:
        name, kind = snake_case(field["name"]), field["type"].removeprefix("[]")
        if not within(field["versions"], version) or not hasattr(structure, name):
            continue
        values = getattr(structure, name)
        for value in values if kind != field["type"] else [values]:
            if inner := field.get("fields") or common.get(kind):
                yield from entities(inner, version, common, value)
            elif field.get("entityType") in ("topicName", "groupId", "transactionalId") and value:
                yield field["entityType"], name, value


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION, ids=name_of)
def test_what_a_request_names_is_found(api: Api, version: int) -> None:
    name = api.request.__name__
    if name not in SHIPPED:
        return
    spec = schema(name)
    common = {struct["name"]: struct["fields"] for struct in spec.get("commonStructs", [])}
    request = named(api.request, version)
    found = subjects_of(request, lambda topic_id: None)
    kept = {
        "topicName": {topic for topic, _ in found.topics},
        "groupId": found.groups,
        "transactionalId": found.transactional_ids,
    }
    subjects = {"topicName": "topic", "groupId": "group", "transactionalId": "transactional_id"}
    for kind, field, value in entities(spec["fields"], version, common, request):
        if (name, field) not in BESIDES:
            assert value in kept[kind], field
            assert can_name(api.request, subjects[kind])


@pytest.mark.parametrize("version", range(6))
def test_partitions_that_are_added_to_a_transaction(version: int) -> None:
    request = named(AddPartitionsToTxnRequest, version)
    transaction = request if version < 4 else request.transactions[0]
    prefix = "v3_and_below_" if version < 4 else ""
    topic = getattr(transaction, f"{prefix}topics")[0]
    found = subjects_of(request, lambda topic_id: None)
    assert getattr(transaction, f"{prefix}transactional_id") in found.transactional_ids
    assert {(topic.name, partition) for partition in topic.partitions} <= found.topics
    left = selected(request, lambda *place: place == (topic.name, topic.partitions[0]), lambda topic_id: None)
    assert subjects_of(left, lambda topic_id: None).topics == {(topic.name, topic.partitions[0])}
