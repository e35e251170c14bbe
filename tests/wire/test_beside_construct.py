"""The records of ``__transaction_state``, decoded with construct by the inspection tools.

No other Python library has them; golden/ has those of Apache Kafka's own classes.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cli.layouts.coordinators import transaction_record
from barnabas.wire.messages.transaction_records import TransactionLogValue, encode_key, encode_value
from barnabas.wire.schema import Struct

WIRE = settings.get_profile("wire")


def as_read(structure: Struct) -> dict[str, Any]:
    """Returns the fields as construct does, except for the tags in the partitions."""
    found = {}
    for field in structure.wire_fields():
        value = getattr(structure, field.name)
        inner = isinstance(field.kind, type) and value is not None
        found[field.name] = [as_read(each) for each in value] if inner else value
    return found


def without_tags(value: Any) -> Any:
    if isinstance(value, list):
        return [without_tags(each) for each in value]
    return {name: each for name, each in value.items() if name != "tags"} if isinstance(value, dict) else value


@pytest.mark.parametrize("version", [0, 1])
@given(data=st.data())
@settings(parent=WIRE)
def test_same_fields(any_value: Callable[..., Any], version: int, data: st.DataObject) -> None:
    value = data.draw(any_value(TransactionLogValue, version))
    value.transaction_status = data.draw(st.sampled_from([-1, 8, 127]))  # known states are shown by name
    transactional_id = data.draw(st.text(max_size=40))
    key, fields = transaction_record(encode_key(transactional_id), encode_value(value, version))
    assert key == {"type": "TransactionLog", "transactional_id": transactional_id}
    assert fields.pop("version") == version
    expected = as_read(value)
    if version == 0:
        expected = {name: each for name, each in expected.items() if name in fields}
    assert {name: without_tags(each) for name, each in fields.items()} == expected


def test_states_have_their_names() -> None:
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_status=2,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=4,
    )
    _, fields = transaction_record(encode_key("t"), encode_value(value, 1))
    assert fields["transaction_status"] == "PrepareCommit"
    assert fields["transaction_partitions"] is None
    _, nothing = transaction_record(encode_key("t"), None)
    assert nothing is None
