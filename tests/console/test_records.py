"""Records in the console: single ones, searched, live, decoded, produced."""

import json
import re

import pytest
from kafka import KafkaProducer

from barnabas.console.decoding import decoded, raw_fields
from barnabas.console.fetching import Found
from barnabas.console.searching import Cursor, at_path, matching
from barnabas.records.record import Record


def steps_of(pages, address):
    """Follows a search to its end, and returns its last step and all results."""
    text = pages.get(address).text
    shown = ""
    while following := re.search(r'id="step"[^>]* hx-get="([^"]+)"', text):
        text = pages.get(following[1].replace("&amp;", "&"), headers={"hx-request": "true"}).text
        shown += text
    return text, shown


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("partition=all&search=k250&where=key", 1),
        ("partition=all&search=web&where=header", 300),
        ("partition=all&search=$.customer.name = Ada&where=json", 3),
        ("partition=1&search=ada&where=value", 1),
        ("partition=all&search=k&where=key&time=1290", 10),
        ("partition=all&search=nowhere&where=any", 0),
    ],
)
def test_a_search_goes_through_partitions_to_its_end(pages, query, count):
    last, shown = steps_of(pages, f"/topics/orders/records?{query}")
    assert f"{count} found" in last and shown.count("<li>") == count
    assert "data-stop" not in last


def test_a_search_that_cannot_be_says_why(pages):
    answer = pages.get("/topics/orders/search?search=x&where=json&cursor=0:0&partition=all&search=")
    assert answer.status_code == 400 and "no path" in answer.text
    shown = pages.get("/topics/orders/search?search=$&where=json&partition=all", headers={"hx-request": "true"})
    assert shown.status_code == 200 and 'role="alert"' in shown.text and "<html" not in shown.text


def test_the_newest_records_of_all_partitions_are_shown(pages, broker):
    broker.create_topic("merged", partitions=3)
    assert "Produce one" in pages.get("/topics/merged/records").text
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(120):
            producer.send("merged", None, b"k%d" % number, partition=number % 3, timestamp_ms=1000 + number)
    newest = pages.get("/topics/merged/records").text
    assert [f">k{number}<" in newest for number in (119, 118, 70, 69)] == [True, True, True, False]
    assert newest.index(">k119<") < newest.index(">k118<") < newest.index(">k70<")
    assert "/topics/merged/records/2/39?as=auto" in newest, "a record has a link to its page"
    assert pages.get("/topics/merged/records?partition=all").text == newest
    later = pages.get("/topics/merged/records?partition=all&time=1010").text
    assert later.index(">k10<") < later.index(">k11<") < later.index(">k59<")
    assert ">k9<" not in later and ">k60<" not in later
    assert "no records from that time on" in pages.get("/topics/merged/records?partition=all&time=9999999").text


def test_records_are_browsed_by_time(pages):
    text = pages.get("/topics/orders/records?partition=0&time=1970-01-01T00:00:01.150").text
    assert "/topics/orders/records/0/50?" in text and "/topics/orders/records/0/49?" not in text
    assert pages.get("/topics/orders/records?time=yesterday").status_code == 400


def test_one_record_is_shown_whole_with_its_batch_and_as_programs(pages):
    text = pages.get("/topics/orders/records/1/2").text
    assert "&#34;number&#34;: 7" in text and "base offset" in text and "kcat -b" in text and "KafkaConsumer" in text
    address = re.search(r"curl &#39;(\S+)&#39;|curl '(\S+)'", text)
    (record,) = pages.get((address[1] or address[2]).replace("&amp;", "&")).json()
    assert (
        json.loads(record["value"])["number"] == 7
        and record["key"] == "k7"
        and record["headers"] == [["source", "web"]]
    )
    assert pages.get("/topics/orders/records/1/9999").status_code == 404


def test_new_records_appear_live(pages, broker):
    text = pages.get("/topics/orders/tail").text
    following = re.search(r'hx-get="([^"]+)"', text)[1].replace("&amp;", "&")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"just now", partition=2)
    producer.close()
    step = pages.get(following).text
    assert "just now" in step and "k299" not in step
    again = re.search(r'hx-get="([^"]+)"', step)[1].replace("&amp;", "&")
    assert "just now" not in pages.get(again).text


def test_records_are_produced_one_or_many(pages):
    one = pages.submit("/topics/doomed/produce", "/topics/doomed/produce", value="hello", key="k", headers="a: b",
                       partition="1")  # fmt: skip
    assert one.status_code == 303 and one.headers["location"] == "/topics/doomed/records/1/0"
    assert "hello" in pages.get(one.headers["location"]).text
    pages.submit("/topics/doomed/produce", "/topics/doomed/produce", value="x\ny\n", lines="yes", partition="0")
    records = pages.get("/topics/doomed/records.json?partition=0").json()
    assert [each["value"] for each in records] == ["x", "y"]
    pages.submit("/topics/doomed/produce", "/topics/doomed/produce", key="k", null="yes", partition="0")
    assert pages.get("/topics/doomed/records.json?partition=0&offset=2").json()[0]["value"] is None
    wrong = pages.submit("/topics/doomed/produce", "/topics/doomed/produce", value="x", headers="nothing")
    assert wrong.status_code == 400 and "name: value" in wrong.text


def test_the_log_shows_batches_and_segments(pages, broker, tmp_path):
    text = pages.get("/topics/orders/log?partition=0&offset=0").text
    assert "none" in text and ">0 to " in text and "Segments" not in text


def test_values_with_schemas_are_decoded(pages, broker):
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    url = broker.schema_registry_url
    schema = '{"type":"record","name":"Order","fields":[{"name":"sku","type":"string"}]}'
    serializer = AvroSerializer(SchemaRegistryClient({"url": url}), schema)
    data = serializer({"sku": "A-1"}, SerializationContext("orders", MessageField.VALUE))
    shown = decoded(data, "auto", url)
    assert (
        shown["kind"] == "avro" and json.loads(shown["text"]) == {"sku": "A-1"} and shown["note"].startswith("schema")
    )
    assert decoded(data, "avro", None)["kind"] == "hex", "without a registry there is no schema"
    assert decoded(data, "auto", None)["kind"] == "hex"


def test_a_schema_that_a_header_names_is_found(pages, broker):
    from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    schema = '{"type":"record","name":"Cup","fields":[{"name":"size","type":"int"}]}'
    with SchemaRegistryClient({"url": broker.schema_registry_url}) as registry:
        serializer = AvroSerializer(registry, schema, conf={"schema.id.serializer": header_schema_id_serializer})
        headers = []
        value = serializer({"size": 33}, SerializationContext("cups", MessageField.VALUE, headers))
    broker.create_topic("cups", partitions=1)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("cups", value, headers=headers)
    page = pages.get("/topics/cups/records/0/0").text
    assert "Value (avro)" in page and "&#34;size&#34;: 33" in page
    assert "1 found" in steps_of(pages, "/topics/cups/records?search=$.size = 33&where=json&partition=all")[0]


def test_protobuf_is_decoded_with_its_schema_and_without(broker):
    import urllib.request

    url = broker.schema_registry_url
    text = (
        'syntax = "proto3"; package shop; message Other { int32 a = 1; } message Order { string sku = 1; int32 n = 2; }'
    )
    body = json.dumps({"schemaType": "PROTOBUF", "schema": text}).encode()
    request = urllib.request.Request(f"{url}/subjects/proto-value/versions", body, {"content-type": "application/json"})
    number = json.loads(urllib.request.urlopen(request).read())["id"]
    message = b"\x0a\x03A-1\x10\x05"
    shown = decoded(b"\0" + number.to_bytes(4, "big") + b"\x02\x02" + message, "auto", url)
    assert shown["kind"] == "protobuf" and json.loads(shown["text"]) == {"sku": "A-1", "n": 5}
    assert raw_fields(message) == [{"field": 1, "value": "A-1"}, {"field": 2, "value": 5}]
    assert decoded(b"\xff\xff", "protobuf")["note"].startswith("not protobuf")


def test_paths_within_json():
    value = {"items": [{"sku": "a"}, {"sku": "b"}], "customer": {"name": "Ada"}}
    assert at_path(value, ["items", "*", "sku"]) == ["a", "b"]
    assert at_path(value, ["items", "1", "sku"]) == ["b"]
    assert at_path(value, ["customer", "none"]) == []
    assert Cursor.parse("3:4711") == (3, 4711) and str(Cursor(3, 4711)) == "3:4711"
    with pytest.raises(ValueError, match="must be a partition"):
        Cursor.parse("3")


def test_a_search_through_bytes_without_a_schema_asks_the_registry_once(pages, broker, monkeypatch):
    from barnabas.cli import schemas

    requests = []
    ask = schemas.Client.__call__
    monkeypatch.setattr(schemas.Client, "__call__", lambda *given: requests.append(given[2]) or ask(*given))
    for _ in range(5):
        assert decoded(b"\0\0\0\x7f\xffxyz", "auto", broker.schema_registry_url)["kind"] == "hex"
    assert len(requests) <= 2


@pytest.mark.parametrize(
    ("value", "text", "is_found"),
    [
        (b'{"drink":"caf\\u00e9","table":1}', "café", True),
        (b'{"drink":"tea","table":1}', '"table": 1', True),
        (b'{"drink":"tea","table":1}', '"table":1', True),
        (b'{"drink":"tea","table":1}', "TEA", True),
        (b'{"drink":"tea","table":1}', '"table": 2', False),
        (b'{"drink":"caf\\u00e9","table":1}', '"drink": "café"', True),
        (b'{"drink":"tea","table":1}', "coffee", False),
        (b'{"drink":"tea",\n "table":1}', "table", True),
        (b"\xff\x00", "ff 00", True),
        (b"\x01\x02", "01 02", True),
        (b"tea\n", "tea", True),
        (None, "null", False),
    ],
)
def test_a_search_finds_what_is_shown_and_what_was_written(value, text, is_found):
    record = Record(0, 0, None, value, [])
    assert matching("value", text, None)(Found(0, record, None)) is is_found


@pytest.mark.parametrize(
    ("value", "text", "is_found"),
    [
        (b'{"table":1}', "$.table = 1", True),
        (b'{"table":1}', "$.table", True),
        (b'{"table":1}', "$.chair", False),
        (b'{"table":1}', "$.table = 2", False),
        (b'{"table":1e0}', "$.table = 1.0", True),
        (b'{"t\\u0061ble":"\\u0061"}', "$.table = a", True),
        (b'{"of":{"a":[1,2]}}', '$.of = {"a": [1, 2]}', True),
        (b'[{"a":null},{"a":true}]', "$.*.a = true", True),
        (b'[{"a":null},{"a":true}]', "$.1.a = true", True),
        (None, "$.a", False),
    ],
)
def test_a_path_is_found_however_json_is_written(value, text, is_found):
    assert matching("json", text, None)(Found(0, Record(0, 0, None, value, []), None)) is is_found
