"""The generated functions as code to be read: where it is found, and what stands in it."""

import inspect
import linecache

from barnabas.wire import compiler
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.metadata_records import NoOpRecord
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.source import Source


def test_neighbours_share_one_call_and_the_count_of_tags_is_one_of_them() -> None:
    source = compiler.source(HeartbeatResponse, 4)
    assert "write(pack_ihx(it.throttle_time_ms, it.error_code))" in source
    assert "it.throttle_time_ms, it.error_code, count = unpack_ihB(data, at)" in source


def test_a_length_joins_what_stands_before_it() -> None:
    source = compiler.source(FindCoordinatorResponse, 0)
    assert "write(pack_hih(it.error_code, it.node_id, size))" in source
    assert "it.error_code, it.node_id, size = unpack_hih(data, at)" in source


def test_records_alone_are_views() -> None:
    assert "data = memoryview(data)" in compiler.source(ProduceRequest, 9)
    assert "data = bytes(data)" in compiler.source(FetchRequest, 12)


def test_a_structure_without_fields() -> None:
    assert NoOpRecord().encode(version=0) == b"\0"
    assert NoOpRecord.decode(b"\0", version=0) == NoOpRecord()


def test_functions_are_made_once_and_have_their_source() -> None:
    read = compiler.reader(HeartbeatRequest, 3, False)
    assert compiler.reader(HeartbeatRequest, 3, False) is read
    assert inspect.getsource(read) in compiler.source(HeartbeatRequest, 3)
    linecache.checkcache()
    assert inspect.getsource(read).startswith("def read_HeartbeatRequest_v3(data, at):")
    assert inspect.getsource(HeartbeatRequest.__init__) != ""


def test_names_in_generated_code_do_not_clash() -> None:
    source = Source("f", "")
    one, other = object(), object()
    assert [source.refer("x", one), source.refer("x", other), source.refer("x", one)] == ["x", "x_", "x"]
    assert [source.local("each"), source.local("each")] == ["each", "each2"]
