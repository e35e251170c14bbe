import json

import click
import pytest

from barnabas.cli.produce import Line, reader

READ = ("--from-beginning", "--timeout-ms", "10000")


def test_lines_go_in_and_come_out(barnabas, broker):
    broker.create_topic("t")
    assert barnabas("produce", "--topic", "t", stdin=b"one\ntwo\r\n\nthree") == (0, "", "")
    out = barnabas("consume", "--topic", "t", *READ, "--max-messages", "4")
    assert (out.code, out.lines, out.err) == (0, ["one", "two", "", "three"], "Processed a total of 4 messages\n")


def test_keys_headers_and_nulls(barnabas, broker):
    broker.create_topic("t")
    properties = ("parse.key=true", "parse.headers=true", "key.separator=:", "null.marker=NULL")
    options = [part for each in properties for part in ("--property", each)]
    barnabas("produce", "--topic", "t", *options, stdin=b"a:1,b:2\tk:v\n\tl:NULL\n")
    records = broker.records("t")
    assert [(record.key, record.value, record.headers) for record in records] == [
        (b"k", b"v", (("a", b"1"), ("b", b"2"))),
        (b"l", None, ()),
    ]
    printed = ("print.key=true", "print.headers=true", "print.partition=true", "print.offset=true", "key.separator=|")
    options = [part for each in printed for part in ("--formatter-property", each)]
    assert barnabas("consume", "--topic", "t", *READ, "--max-messages", "2", *options).lines == [
        "Partition:0|Offset:0|a:1,b:2|k|v",
        "Partition:0|Offset:1|NO_HEADERS|l|null",
    ]


def test_json(barnabas, broker):
    broker.create_topic("t")
    sent = barnabas("produce", "--topic", "t", "--json", stdin=b"one\ntwo\n")
    assert [json.loads(line) for line in sent.lines] == [
        {"topic": "t", "partition": 0, "offset": 0},
        {"topic": "t", "partition": 0, "offset": 1},
    ]
    (line,) = barnabas("consume", "--topic", "t", *READ, "--max-messages", "1", "--json").lines
    found = json.loads(line)
    assert (found["topic"], found["offset"], found["key"], found["value"], found["headers"]) == (
        "t",
        0,
        None,
        "one",
        [],
    )


def test_bytes_that_are_no_text_are_shown_in_base64(barnabas, broker):
    broker.create_topic("t")
    barnabas("produce", "--topic", "t", stdin=b"\xff\xfe\n")
    (line,) = barnabas("consume", "--topic", "t", *READ, "--max-messages", "1", "--json").lines
    assert json.loads(line)["value_base64"] == "//4="


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs(barnabas, broker, codec):
    broker.create_topic("t")
    assert barnabas("produce", "--topic", "t", "--compression-codec", codec, stdin=b"packed\n").code == 0
    assert [record.value for record in broker.records("t")] == [b"packed"]


@pytest.mark.parametrize("acks", ["0", "1", "-1", "all"])
def test_acks(barnabas, broker, acks):
    broker.create_topic("t")
    options = ("--request-required-acks", acks, "--producer-property", "enable.idempotence=false")
    assert barnabas("produce", "--topic", "t", "--sync", *options, stdin=b"sure\n").code == 0


@pytest.mark.parametrize(
    ("offset", "values"),
    [("0", ["a", "b", "c"]), ("2", ["c"]), ("-2", ["b", "c"]), ("-9", ["a", "b", "c"]), ("earliest", ["a", "b", "c"])],
)
def test_where_to_start_in_a_partition(barnabas, broker, offset, values):
    broker.create_topic("t")
    barnabas("produce", "--topic", "t", stdin=b"a\nb\nc\n")
    start = ("--partition", "0", "--offset", offset, "--max-messages", str(len(values)), "--timeout-ms", "10000")
    assert barnabas("consume", "--topic", "t", *start).lines == values


def test_an_end_without_records(barnabas, broker):
    broker.create_topic("t")
    out = barnabas("consume", "--topic", "t", "--partition", "0", "--offset", "latest", "--timeout-ms", "200")
    assert out == (0, "", "Processed a total of 0 messages\n")
    assert barnabas("consume", "--topic", "t", "--partition", "0", "--offset", "soon").code == 2


def test_topics_by_pattern(barnabas, broker):
    for name in ("in-a", "in-b", "out"):
        broker.create_topic(name)
        barnabas("produce", "--topic", name, stdin=name.encode() + b"\n")
    out = barnabas("consume", "--include", "in-.*", *READ, "--max-messages", "2")
    assert sorted(out.lines) == ["in-a", "in-b"]


def test_properties_of_the_client_from_a_file(barnabas, broker, tmp_path):
    broker.create_topic("t")
    file = tmp_path / "client.properties"
    file.write_text("client.id=someone\nsecurity.protocol=PLAINTEXT\nno.such.property=1\nmax.block.ms=5000\n")
    assert barnabas("produce", "--topic", "t", "--command-config", str(file), stdin=b"x\n").code == 0


def test_a_line_without_its_key(barnabas, broker):
    broker.create_topic("t")
    out = barnabas("produce", "--topic", "t", "--property", "parse.key=true", stdin=b"bare\n")
    assert (out.code, out.err) == (1, "Error: No key separator found on line number 1: 'bare'\n")


@pytest.mark.parametrize(
    ("properties", "line", "record"),
    [
        ({}, b"a\tb", Line(None, b"a\tb", [])),
        ({"parse.key": "true"}, b"a\tb\tc", Line(b"a", b"b\tc", [])),
        ({"parse.key": "true", "key.separator": "\\t"}, b"a\tb", Line(b"a", b"b", [])),
        ({"parse.key": "true", "ignore.error": "true"}, b"ab", Line(None, b"ab", [])),
        ({"parse.headers": "true"}, b"h:1,g:\tv", Line(None, b"v", [("h", b"1"), ("g", b"")])),
        ({"parse.headers": "true", "headers.delimiter": "|", "headers.separator": ";"}, b"h:1;g:2|v",
            Line(None, b"v", [("h", b"1"), ("g", b"2")])),
        ({"null.marker": "-"}, b"-", Line(None, None, [])),
    ],
)  # fmt: skip
def test_how_a_line_is_read(properties, line, record):
    assert reader(properties)(line) == record


def test_a_line_that_cannot_be_read():
    with pytest.raises(click.ClickException, match="No headers separator"):
        reader({"parse.headers": "true"})(b"v")
