"""Requests that a filter selects are printed and recorded."""

import base64
import json
import struct

import pytest

from barnabas.clock import ManualClock
from barnabas.diagnosis import Address
from barnabas.proxy.observing import Filter, Observing
from barnabas.proxy.printing import Printer
from barnabas.proxy.recording import Recorder
from barnabas.proxy.withheld import Records, Withholding, change_of
from barnabas.records.builder import build_batch
from barnabas.wire.frames import requests
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from tests.raw import framed

NODE = Address("kafka", 9092)
KNOWN = requests()


def produce(*topics):
    Topic = ProduceRequest.TopicProduceData
    data = [
        Topic(name=name, partition_data=[Topic.PartitionProduceData(index=n, records=build_batch([(b"k", b"tea", 5)]))])
        for n, name in enumerate(topics)
    ]
    return ProduceRequest(transactional_id=None, acks=1, timeout_ms=1, topic_data=data)


class Seen:
    """One connection with observed requests."""

    def __init__(self, *filters, records=Records.WHOLE, as_json=False, topics=None):
        self.clock = ManualClock(time_ms=1_700_000_000_000)
        self.lines, self.recorded = [], []
        names = (topics or {}).get
        withholding = Withholding(change_of(records, b"key"), KNOWN)
        sinks = [
            Printer(self.lines.append, names, as_json=as_json),
            Recorder(self.recorded.append, {"records": records.value}, self.clock.monotonic(), withholding),
        ]
        self.observing = Observing(sinks, KNOWN, self.clock, Filter.parse(filters), names)
        self.observing.opened(1, NODE, ("127.0.0.1", 5))

    def pass_by(self, request, version, response=None):
        self.token(framed(request, version, 7)[4:], b"" if response is None else response.encode_frame(7, version))

    def token(self, frame, answer):
        answered = self.observing.requested(1, memoryview(frame))
        self.clock.advance(0.25)
        if answered is not None:
            answered(b"".join(answer))

    @property
    def events(self):
        return [json.loads(line) for line in self.recorded]


PRODUCED = ProduceResponse(responses=[])


def test_a_line_of_text_for_each():
    seen = Seen()
    seen.pass_by(produce("orders", "bills"), 9, PRODUCED)
    seen.pass_by(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4, HeartbeatResponse(error_code=27))
    first, second = seen.lines
    assert first.startswith("22:13:20.000 #1 raw to kafka:9092: Produce 9 bills[1] orders[0] ")
    assert first.endswith(" B in 250.0 ms")
    assert second.endswith("Heartbeat 4 group=g 24 B, 12 B in 250.0 ms REBALANCE_IN_PROGRESS")


def test_an_object_for_each():
    seen = Seen(as_json=True)
    seen.pass_by(produce("orders"), 9, PRODUCED)
    found = json.loads(seen.lines[0])
    assert (found["api"], found["version"], found["node"], found["client_id"]) == ("Produce", 9, "kafka:9092", "raw")
    assert found["request"]["topic_data"][0]["partition_data"][0]["records"][0]["records"][0]["value"] == "tea"
    assert (
        found["answer"] == {"responses": [], "throttle_time_ms": 0, "node_endpoints": []}
        or "responses" in found["answer"]
    )
    assert (found["took_ms"], found["error"]) == (250.0, None)


def test_a_request_without_an_answer():
    seen = Seen()
    seen.pass_by(produce("orders"), 9)
    assert seen.lines[0].endswith("no answer")
    assert seen.events[-1]["frame"] == ""


def test_an_answer_in_version_0_where_the_version_is_unknown():
    seen = Seen(as_json=True)
    frame = framed(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4, 7)[4:]
    seen.token(frame, ApiVersionsResponse(error_code=35, api_keys=[]).encode_frame(7, 0))
    assert json.loads(seen.lines[0])["error"] == "UNSUPPORTED_VERSION"


@pytest.mark.parametrize("frame", [b"", b"\0\0", b"\0alice\0secret", struct.pack(">hhih", 999, 0, 7, -1)])
def test_what_is_no_request(frame):
    seen = Seen(as_json=True)
    seen.token(frame, [bytes(8)])
    assert "undecoded" in json.loads(seen.lines[0])
    assert "secret" not in "".join(seen.lines + seen.recorded)


def test_tokens_are_neither_shown_nor_recorded():
    for as_json in (False, True):
        seen = Seen(as_json=as_json)
        seen.pass_by(
            SaslAuthenticateRequest(auth_bytes=b"\0a\0xyzzy"), 2, SaslAuthenticateResponse(auth_bytes=b"v=xyzzy")
        )
        everything = "".join(seen.lines) + "".join(
            repr(base64.b64decode(each.get("frame", ""))) for each in seen.events
        )
        assert "xyzzy" not in everything
        assert b"xyzzy".hex() not in everything
        assert seen.events[2]["secrets"] is True


def test_the_events_of_a_recording():
    seen = Seen()
    seen.pass_by(produce("orders"), 9, PRODUCED)
    seen.observing.closed(1)
    head, opened, request, answer, closed = seen.events
    assert head == {"recording": 1, "records": "whole"}
    assert opened == {"event": "open", "connection": 1, "at": 0.0, "node": "kafka:9092", "client": "127.0.0.1:5"}
    assert base64.b64decode(request.pop("frame")) == framed(produce("orders"), 9, 7)[4:]
    assert request == {
        "event": "request", "connection": 1, "at": 0.0, "request": 1,
        "api": "Produce", "version": 9, "client_id": "raw",
    }  # fmt: skip
    assert base64.b64decode(answer.pop("frame")) == b"".join(PRODUCED.encode_frame(7, 9))[4:]
    assert answer == {"event": "answer", "connection": 1, "at": 0.25, "request": 1}
    assert closed == {"event": "close", "connection": 1, "at": 0.25}


def test_records_that_are_not_to_be_recorded():
    seen = Seen(records=Records.NONE)
    seen.pass_by(produce("orders"), 9, PRODUCED)
    frame = base64.b64decode(seen.events[2]["frame"])
    whole = framed(produce("orders"), 9, 7)[4:]
    assert b"tea" in whole
    assert b"tea" not in frame
    assert frame[:19] == whole[:19]


PARTITION = FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
FETCH = FetchRequest(
    max_wait_ms=0, min_bytes=0, topics=[FetchRequest.FetchTopic(topic_id=b"o" * 16, partitions=[PARTITION])]
)


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ((), [True, True, True]),
        (("api=Produce",), [True, False, False]),
        (("api=0", "api=heartbeat"), [True, True, False]),
        (("client_id=raw",), [True, True, True]),
        (("client_id=other",), [False, False, False]),
        (("topic=orders",), [True, False, True]),
        (("topic=bills", "topic=milk"), [False, False, False]),
        (("api=Fetch", "topic=orders"), [False, False, True]),
    ],
)
def test_a_filter(filters, wanted):
    exchanges = [
        (produce("orders"), 9, PRODUCED),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4, HeartbeatResponse()),
        (FETCH, 13, None),
    ]
    found = []
    for each in exchanges:
        seen = Seen(*filters, topics={b"o" * 16: "orders"})
        seen.pass_by(*each)
        found.append(len(seen.lines) == 1)
        assert len(seen.recorded) == 2 + 2 * found[-1]
    assert found == wanted


@pytest.mark.parametrize("text", ["Produce", "topics=orders", "api=Produced", "api=999"])
def test_an_invalid_filter(text):
    with pytest.raises(ValueError, match=r"api|API"):
        Filter.parse([text])
