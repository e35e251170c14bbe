"""The admin API, over sockets, as a test in another language uses it."""

import http.client
import json
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from kafka import KafkaConsumer, KafkaProducer

from barnabas.admin.application import described
from barnabas.config.validators import ConfigError
from barnabas.testing import Broker


class Admin:
    """A client of the API."""

    def __init__(self, url, **headers):
        self.address = urlsplit(url).netloc
        self.headers = headers
        self.connection = http.client.HTTPConnection(self.address, timeout=30)

    def __call__(self, method, path, body=None, **headers):
        data = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        self.connection.request(method, path, data, {**self.headers, **headers})
        answer = self.connection.getresponse()
        data, kind = answer.read(), answer.headers.get_content_type()
        return answer.status, json.loads(data) if data and kind == "application/json" else data


@pytest.fixture(scope="module")
def shared():
    with Broker(barnabas_admin_listener="127.0.0.1:0") as broker:
        yield broker


@pytest.fixture
def broker(shared):
    shared.reset()
    return shared


@pytest.fixture
def admin(shared):
    return Admin(shared.admin_url)


def send(broker, *values, topic="orders", **settings):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings) as producer:
        for value in values:
            producer.send(topic, value).get(10)


def test_the_broker(broker, admin):
    status, results = admin("GET", "/")
    assert status == 200
    assert (results["bootstrap_servers"], results["node_id"], results["topics"]) == (broker.bootstrap_servers, 1, 0)


def test_topics_and_records(broker, admin):
    new = {"name": "orders", "partitions": 2, "configs": {"retention.ms": 1000}}
    assert admin("POST", "/topics", new)[0] == 201
    status, refused = admin("POST", "/topics", new)
    assert (status, refused["error"]["type"]) == (409, "TOPIC_ALREADY_EXISTS")
    records = [{"key": "a", "value": {"drink": "tea"}, "partition": 1}, {"value_base64": "/w==", "partition": 0}]
    assert admin("POST", "/topics/orders/records", records) == (201, {"count": 2})
    found = admin("GET", "/topics/orders/records")[1]
    assert [(each["partition"], each.get("value"), each.get("value_base64")) for each in found] == [
        (0, None, "/w=="),
        (1, '{"drink":"tea"}', None),
    ]
    assert len(admin("GET", "/topics/orders/records?partition=1&limit=5")[1]) == 1
    assert admin("GET", "/topics/orders/records?offset=1")[1] == []
    (topic,) = admin("GET", "/topics")[1]
    assert topic["configs"] == {"retention.ms": "1000"}
    assert [each["end_offset"] for each in topic["partitions"]] == [1, 1]
    assert admin("DELETE", "/topics/orders")[0] == 204
    assert admin("GET", "/topics/orders")[0] == 404
    assert broker.topics() == []


def test_faults(broker, admin):
    status, rule = admin("POST", "/faults", {"api": "Produce", "nth": 1, "error": "NOT_LEADER_OR_FOLLOWER"})
    assert (status, rule["hits"]) == (201, 0)
    send(broker, b"tea")
    path = f"/faults/{rule['id']}"
    assert admin("GET", f"{path}?hits=1&timeout=5")[1]["hits"] == 1
    assert admin("GET", f"{path}?hits=2&timeout=0.02")[0] == 408
    assert len(admin("GET", "/faults/report")[1]) == 1
    assert [each["id"] for each in admin("GET", "/faults")[1]] == [rule["id"]]
    assert admin("DELETE", path)[1]["hits"] == 1
    assert admin("DELETE", path)[0] == 404
    assert broker.faults.rules == ()


def test_rules_by_script_and_scenario(broker, admin):
    text = {"content-type": "text/plain"}
    status, rules = admin("POST", "/faults", "Produce nth=2 error=NOT_LEADER_OR_FOLLOWER\n* delay=0.01", **text)
    assert (status, len(rules)) == (201, 2)
    form = {"content-type": "application/x-www-form-urlencoded"}  # as curl -d says
    assert len(admin("POST", "/faults", "Fetch delay=0.01", **form)[1]) == 1
    yaml = '- api: Metadata\n  first: 1\n  error: LEADER_NOT_AVAILABLE\n- api: "*"\n  delay: 0.01\n'
    assert len(admin("POST", "/faults", yaml, **{"content-type": "application/yaml"})[1]) == 2
    assert len(admin("POST", "/faults/scenarios/leader-moves", {"topic": "orders"})[1]) == 2
    after = {"api": "Fetch", "delay": 0.01, "after": rules[0]["id"]}
    assert "after=[api=Produce" in admin("POST", "/faults", after)[1]["rule"]
    assert admin("POST", "/faults", {"delay": 0.01}, **text)[1]["rule"] == "delay=0.01"
    assert len(broker.faults.rules) == 9
    assert admin("POST", "/faults/seed", {"seed": 7})[0] == 204
    assert admin("DELETE", "/faults")[0] == 204
    assert admin("GET", "/faults")[1] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/faults", {"api": "Produce", "error": "NOT_LEADER"}, 400, "did you mean NOT_LEADER_OR_FOLLOWER"),
        ("POST", "/faults", {"api": "Produce", "edit": "x"}, 400, "is a function"),
        ("POST", "/faults", {"api": "Produce", "nth": "2", "cut": "before"}, 400, "nth is a whole number"),
        ("POST", "/faults", {"node": 2, "cut": "before"}, 400, "whose id is 1"),
        ("POST", "/faults", "{", 400, "no JSON"),
        ("POST", "/faults", "[1]", 400, "JSON object"),
        ("POST", "/faults", {"during": 99, "delay": 1}, 404, "no rule 99"),
        ("POST", "/faults/scenarios/nope", None, 404, "leader_moves"),
        ("POST", "/faults/scenarios/disk_full", None, 400, "topic"),
        ("POST", "/faults/seed", {}, 400, "seed"),
        ("GET", "/faults/7?hits=x", None, 404, "no rule"),
        ("POST", "/clock/advance", {"weeks": 1}, 400, "seconds, minutes"),
        ("POST", "/clock/advance", {"hours": -1}, 400, "not negative"),
        ("POST", "/clock/at", {"date": "soon"}, 400, "soon"),
        ("GET", "/topics/nope/records", None, 404, "no topic"),
        ("POST", "/topics/t/records", "3", 400, "no record"),
        ("POST", "/topics/t/records", {"records": [{"value": "tea"}]}, 400, "a record has no field 'records'"),
        ("POST", "/topics/t/records", {"value": "tea", "partition": "x"}, 400, "partition is 'x'"),
        ("POST", "/topics/t/records", {"value_base64": None}, 400, "no record"),
        ("POST", "/topics/t/records", {"headers": {"a": "b"}}, 400, "headers are an array"),
        ("POST", "/topics/t/records", {"headers": [{"key": "a"}]}, 400, "a header has no field 'key'"),
        ("POST", "/topics/t/records", {"headers": [{"value": "b"}]}, 400, 'a header needs a "name"'),
        ("POST", "/topics", {"name": "t", "num_partitions": 3}, 400, "there is name, partitions, configs"),
        ("POST", "/topics", {"name": "t", "configs": ["a"]}, 400, "configs is an object"),
        ("GET", "/requests?clientid=x", None, 400, "there is api, client_id, limit, count"),
        ("GET", "/clock?zone=UTC", None, 400, "no parameter zone; there is none"),
        ("POST", "/clock/at", {"time": "2027-01-01"}, 400, "there is date"),
        ("POST", "/topics", {"name": "no/good"}, 409, "no/good"),
        ("PUT", "/states/x", "no", 400, "not the saved state"),
        ("POST", "/states/x/restore", None, 404, "no saved state"),
        ("GET", "/requests", None, 409, "POST /requests"),
        ("GET", "/nope", None, 404, "/openapi.json"),
        ("PUT", "/", None, 405, "/openapi.json"),
    ],
)
def test_errors_are_json_and_say_what_is_wrong(broker, admin, method, path, body, status, said):
    found, results = admin(method, path, body)
    assert (found, said in results["error"]["message"]) == (status, True), results


def test_time(broker, admin):
    admin("POST", "/topics", {"name": "orders", "configs": {"retention.ms": 3_600_000}})
    admin("POST", "/topics/orders/records", {"value": "tea"})
    before = admin("GET", "/clock")[1]
    after = admin("POST", "/clock/advance", {"hours": 7})[1]
    assert after["time_ms"] - before["time_ms"] >= 7 * 3_600_000
    assert admin("GET", "/topics/orders/records")[1] == []
    assert admin("POST", "/clock/freeze")[1]["is_frozen"] is True
    assert admin("POST", "/clock/at", {"date": "2031-01-01"})[1]["date"] == "2031-01-01T00:00:00.000+00:00"
    assert admin("POST", "/clock/go-on")[1]["is_frozen"] is False
    assert admin("POST", "/reset")[0] == 204
    assert broker.clock.time_ms < after["time_ms"]


def test_states(broker, admin):
    admin("POST", "/topics/orders/records", {"value": "tea"})
    status, saved = admin("POST", "/states")
    assert status == 201
    kept = admin("GET", f"/states/{saved['id']}")[1]
    admin("POST", "/reset")
    assert admin("POST", f"/states/{saved['id']}/restore")[0] == 204
    assert [record.value for record in broker.records("orders")] == [b"tea"]
    assert admin("DELETE", f"/states/{saved['id']}")[0] == 204
    assert admin("PUT", "/states/mine", kept) == (200, {"id": "mine"})
    admin("POST", "/reset")
    assert admin("POST", "/states/mine/restore")[0] == 204
    assert [record.value for record in broker.records("orders")] == [b"tea"]


def test_requests_and_connections(broker, admin):
    assert admin("POST", "/requests")[0] == 204
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="shop")
    producer.send("orders", b"tea").get(10)
    (seen,) = admin("GET", "/requests?api=Produce&client_id=shop")[1]
    assert (seen["error"], seen["client_software_name"]) == (None, "kafka-python")
    assert seen["answer"]["responses"][0]["partition_responses"][0]["error_code"] == 0
    assert admin("GET", "/requests?api=produce&count")[1] == {"count": 1}
    assert "kafka-python" in {each["client_software_name"] for each in admin("GET", "/connections")[1]}
    producer.close()
    assert admin("DELETE", "/requests")[0] == 204
    assert admin("GET", "/requests")[0] == 409


def test_the_document_describes_each_endpoint(admin):
    status, document = admin("GET", "/openapi.json")
    assert (status, document) == (200, json.loads(json.dumps(described())))
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    rule = document["paths"]["/faults"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert (rule["nth"], rule["delay"], rule["topic"]) == ({"type": "integer"}, {"type": "number"}, {"type": "string"})
    assert (rule["after"], rule["coordinator"], rule["stale"]) == (
        {"type": "integer"},
        {"type": "array"},
        {"type": "boolean"},
    )
    assert rule["error"] == {"type": ["string", "integer"]}


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example:80"}, {"origin": "http://evil.example"}, {"origin": "null"}],
)
def test_no_page_of_a_stranger_reaches_it(admin, headers):
    assert admin("GET", "/", **headers)[0] == 403


def test_a_token():
    with Broker(barnabas_admin_listener="0.0.0.0:0", barnabas_admin_token="sesame") as broker:
        assert broker.admin_url.startswith("http://127.0.0.1:")
        assert Admin(broker.admin_url)("GET", "/")[0] == 401
        assert Admin(broker.admin_url, authorization="Bearer mellon")("GET", "/")[0] == 401
        assert Admin(broker.admin_url, authorization="Bearer sesame", host="elsewhere")("GET", "/")[0] == 200
        assert Admin(broker.admin_url, authorization="Bearer sesame")("GET", "/topics") == (200, [])


def test_it_is_never_open_to_other_machines_without_a_token():
    with pytest.raises(ConfigError, match=r"barnabas\.admin\.token"), Broker(barnabas_admin_listener="0.0.0.0:0"):
        pass


def test_a_broker_of_its_own_process_turns_its_clock(tmp_path):
    file = tmp_path / "ready.json"
    command = [sys.executable, "-m", "barnabas", "serve", "--dev", "--port", "0", "--ready-file", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 30
            while not file.exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            ready = json.loads(file.read_text())
            admin = Admin(ready["admin"])
            admin("POST", "/topics", {"name": "orders", "configs": {"retention.ms": 3_600_000}})
            admin("POST", "/topics/orders/records", {"value": "tea"})
            consumer = KafkaConsumer(
                "orders", bootstrap_servers=ready["bootstrap_servers"], auto_offset_reset="earliest"
            )
            assert next(consumer).value == b"tea"
            consumer.close()
            admin("POST", "/clock/advance", {"hours": 7})
            assert admin("GET", "/topics/orders/records")[1] == []
        finally:
            process.terminate()
    assert process.returncode == 0
