"""The events of a recording."""

import base64
import json

import pytest

from barnabas.diagnosis import Address
from barnabas.replay.recorded import Event, RecordingError, read_recording

HEAD = json.dumps({"recording": 1})


def events(*lines):
    return list(read_recording((each if isinstance(each, str) else json.dumps(each) for each in lines), "FILE"))


def test_events():
    frame = base64.b64encode(b"abc").decode()
    found = events(
        HEAD,
        {"event": "open", "connection": 3, "at": 0.5, "node": "kafka:9092", "client": "127.0.0.1:4"},
        {"event": "request", "connection": 3, "at": 0.6, "request": 1, "api": "Fetch", "secrets": True, "frame": frame},
        {"event": "answer", "connection": 3, "at": 0.7, "request": 1, "frame": ""},
        {"event": "close", "connection": 3, "at": 0.8},
    )
    assert found == [
        Event("open", 3, 0.5, node=Address("kafka", 9092)),
        Event("request", 3, 0.6, request=1, frame=b"abc", has_secrets=True),
        Event("answer", 3, 0.7, request=1),
        Event("close", 3, 0.8),
    ]


@pytest.mark.parametrize("head", ["", "{}", "[]", "no JSON", '{"recording": 2}'])
def test_a_file_that_is_no_recording(head):
    with pytest.raises(RecordingError, match="FILE is no recording"):
        events(head)


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        {"event": "pause", "connection": 1, "at": 0},
        {"event": "close", "at": 0},
        {"event": "answer", "connection": 1, "at": 0, "request": 1, "frame": "?"},
    ],
)
def test_a_line_that_is_no_event(line):
    with pytest.raises(RecordingError, match="FILE: line 2 is no event"):
        events(HEAD, line)
