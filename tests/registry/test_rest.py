"""Confluent's REST API, over sockets, as its clients use it."""

import json

import pytest
from kafka.admin import KafkaAdminClient

STRING = '"string"'
USER = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
AGED = {**USER, "fields": [*USER["fields"], {"name": "age", "type": "int"}]}
SIZE = {"type": "enum", "name": "Size", "namespace": "shop", "symbols": ["S", "L"]}
DEFAULTED = {**USER, "fields": [*USER["fields"], {"name": "age", "type": "int", "default": 0}]}


def text(schema):
    return json.dumps(schema, separators=(",", ":"))


def code(answer):
    status, results = answer
    assert status == (results["error_code"] if results["error_code"] < 1000 else results["error_code"] // 100)
    return results["error_code"]


def test_a_schema_is_registered_once_and_has_one_id(client):
    assert client("GET", "/subjects") == (200, [])
    status, first = client.register("users-value", USER)
    assert (status, first["id"], first["version"]) == (200, 1, 1)
    assert client.type == "application/vnd.schemaregistry.v1+json"
    assert client.register("users-value", json.dumps(USER, indent=4))[1]["id"] == 1
    assert client.register("people-value", USER)[1] == first
    assert client.register("users-value", DEFAULTED)[1]["id"] == 2
    assert client("GET", "/subjects") == (200, ["people-value", "users-value"])
    assert client("GET", "/subjects/users-value/versions") == (200, [1, 2])
    assert client("GET", "/subjects/users-value/versions?offset=1&limit=1") == (200, [2])
    found = client("GET", "/subjects/users-value/versions/latest")[1]
    assert (found["subject"], found["version"], found["id"], found["schema"]) == ("users-value", 2, 2, text(DEFAULTED))
    assert "schemaType" not in found
    assert client("GET", "/subjects/users-value/versions/1/schema") == (200, USER)
    assert client("GET", "/schemas/ids/1")[1]["schema"] == text(USER)
    assert client("GET", "/schemas/ids/1/schema") == (200, USER)
    assert client("GET", "/schemas/ids/1/subjects") == (200, ["people-value", "users-value"])
    assert client("GET", "/schemas/ids/2/versions") == (200, [{"subject": "users-value", "version": 2}])
    assert client("GET", f"/schemas/guids/{first['guid']}")[1]["schema"] == text(USER)
    assert client("GET", f"/schemas/guids/{first['guid']}/ids") == (200, [{"context": ".", "id": 1}])
    assert client("POST", "/subjects/users-value", {"schema": text(USER)})[1]["version"] == 1
    assert [each["version"] for each in client("GET", "/schemas?subjectPrefix=users")[1]] == [1, 2]
    assert [each["id"] for each in client("GET", "/schemas?latestOnly=true")[1]] == [1, 2]
    assert client("GET", "/schemas/types") == (200, ["PROTOBUF", "JSON", "AVRO"])


def test_what_is_not_there(client):
    assert code(client("GET", "/subjects/none/versions")) == 40401
    assert code(client("GET", "/subjects/none/versions/1")) == 40401
    assert code(client("GET", "/schemas/ids/7")) == 40403
    assert code(client("POST", "/subjects/none", {"schema": STRING})) == 40401
    client.register("some", STRING)
    assert code(client("GET", "/subjects/some/versions/2")) == 40402
    assert code(client("GET", "/subjects/some/versions/zero")) == 42202
    assert code(client("POST", "/subjects/some", {"schema": '"int"'})) == 40403
    assert code(client("GET", "/nowhere")) == 404
    assert code(client("PUT", "/subjects")) == 405
    assert code(client("POST", "/subjects/some/versions", b"{")) == 400
    assert code(client("POST", "/subjects/some/versions", b"<a/>", content_type="text/xml")) == 415
    assert code(client("GET", "/config/some")) == 40408
    assert code(client("GET", "/mode/some")) == 40409


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "{",
        '"nothing"',
        '{"type":"record","name":"9","fields":[]}',
        '{"type":"record","name":"a","fields":[{"name":"b","type":"int","default":"x"}]}',
        '["int","int"]',
        '{"type":"enum","name":"a","symbols":["b","b"]}',
        '{"type":"record","name":"a","fields":{}}',
        '{"type":"record","name":"a","fields":[{"name":"b","type":"int","order":"up"}]}',
        "5",
    ],
)
def test_what_is_no_schema(client, schema):
    assert code(client.register("bad", schema)) == 42201


def test_an_incompatible_schema_is_refused_and_what_breaks_is_named(client):
    client.register("users", USER)
    status, results = client.register("users", AGED)
    assert (status, results["error_code"]) == (409, 409)
    assert "The field 'age' at path '/fields/1' in the new schema has no default value" in results["message"]
    path = "/compatibility/subjects/users/versions"
    body = {"schema": text(AGED)}
    assert client("POST", f"{path}/latest", body) == (200, {"is_compatible": False})
    messages = client("POST", f"{path}/1?verbose=true", body)[1]["messages"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in messages[0]
    assert "{oldSchemaVersion: 1}" in messages
    assert code(client("POST", f"{path}/9", body)) == 40402
    assert client("PUT", "/config/users", {"compatibility": "forward"}) == (200, {"compatibility": "FORWARD"})
    assert client("GET", "/config/users") == (200, {"compatibilityLevel": "FORWARD"})
    assert client("POST", path, body)[1]["is_compatible"]
    assert client.register("users", AGED)[0] == 200
    assert client("DELETE", "/config/users") == (200, {"compatibilityLevel": "FORWARD"})
    assert code(client("PUT", "/config", {"compatibility": "SOME"})) == 42203
    assert client("GET", "/config/users?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD"})


def test_a_check_that_wants_reasons_takes_an_invalid_schema_as_one(client):
    client.register("users", USER)
    path, body = "/compatibility/subjects/users/versions/latest", {"schema": "{"}
    assert code(client("POST", path, body)) == 42201
    status, checked = client("POST", f"{path}?verbose=true", body)
    assert (status, checked["is_compatible"]) == (200, False)
    assert "no Avro schema" in checked["messages"][0]


def test_a_config_that_is_null_is_removed(client):
    client("PUT", "/config", {"compatibility": "FULL"})
    client("PUT", "/config/users", {"compatibility": "NONE", "normalize": True})
    client("PUT", "/config/users", {"compatibility": None})
    assert client("GET", "/config/users") == (200, {"normalize": True})
    assert client("GET", "/config/users?defaultToGlobal=true")[1]["compatibilityLevel"] == "FULL"
    client("PUT", "/config/users", {"normalize": None})
    assert code(client("GET", "/config/users")) == 40408
    client("PUT", "/config", {"compatibility": None})
    assert client("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})


def test_the_id_names_the_kafka_cluster(client, broker):
    clusters = client("GET", "/v1/metadata/id")[1]["scope"]["clusters"]
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert clusters["kafka-cluster"] == admin.describe_cluster()["cluster_id"]


def test_deletion_is_soft_and_then_permanent(client):
    client.register("users", USER)
    client.register("users", DEFAULTED)
    assert code(client("DELETE", "/subjects/users/versions/1?permanent=true")) == 40407
    assert client("DELETE", "/subjects/users/versions/1") == (200, 1)
    assert code(client("DELETE", "/subjects/users/versions/1")) == 40406
    assert client("GET", "/subjects/users/versions") == (200, [2])
    assert client("GET", "/subjects/users/versions?deleted=true") == (200, [1, 2])
    assert client("GET", "/subjects/users/versions?deletedOnly=true") == (200, [1])
    assert client("GET", "/schemas/ids/1")[0] == 200
    assert client("DELETE", "/subjects/users/versions/1?permanent=true") == (200, 1)
    assert code(client("GET", "/schemas/ids/1")) == 40403
    assert code(client("DELETE", "/subjects/users?permanent=true")) == 40405
    assert client("DELETE", "/subjects/users") == (200, [2])
    assert code(client("DELETE", "/subjects/users")) == 40404
    assert client("GET", "/subjects?deletedOnly=true") == (200, ["users"])
    assert client.register("users", AGED)[1]["version"] == 3
    assert client("DELETE", "/subjects/users") == (200, [3])
    assert client("DELETE", "/subjects/users?permanent=true") == (200, [2, 3])
    assert client("GET", "/subjects?deleted=true") == (200, [])


def test_modes(client):
    assert client("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert client("PUT", "/mode", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    assert code(client.register("users", USER)) == 42205
    assert client("PUT", "/mode/users", {"mode": "IMPORT"})[0] == 200
    imported = client.register("users", USER, id=40, version=7)[1]
    assert (imported["id"], imported["version"]) == (40, 7)
    assert code(client("PUT", "/mode/users", {"mode": "ODD"})) == 42204
    assert client("DELETE", "/mode/users") == (200, {"mode": "IMPORT"})
    client("PUT", "/mode", {"mode": "READWRITE"})
    assert client.register("others", STRING)[1]["id"] == 41
    assert code(client("PUT", "/mode", {"mode": "IMPORT"})) == 42205
    assert code(client.register("others", '"int"', id=50)) == 42205


def test_contexts_have_ids_of_their_own(client):
    client.register("users", USER)
    assert client.register(":.staging:users", STRING)[1]["id"] == 1
    assert client("GET", "/contexts") == (200, [".", ".staging"])
    assert client("GET", "/contexts/.staging/subjects") == (200, [":.staging:users"])
    assert client("GET", "/contexts/.staging/subjects/users/versions/1/schema") == (200, "string")
    assert client("GET", "/schemas/ids/1?subject=:.staging:users")[1]["schema"] == STRING
    assert client("GET", "/subjects") == (200, [":.staging:users", "users"])
    assert client("GET", "/subjects?subjectPrefix=:.staging:") == (200, [":.staging:users"])
    client("PUT", "/config/:.staging:", {"compatibility": "NONE"})
    assert client.register(":.staging:users", '"int"')[0] == 200
    assert code(client.register("users", '"int"')) == 409
    assert code(client("DELETE", "/contexts/.staging")) == 42211


def test_references_are_resolved_and_keep_what_they_name(client):
    client.register("names", SIZE)
    shirt = {"type": "record", "name": "Shirt", "fields": [{"name": "size", "type": "shop.Size"}]}
    assert code(client.register("shirts", shirt)) == 42201
    reference = {"name": "shop.Size", "subject": "names", "version": 1}
    client.register("shirts", shirt, references=[reference])
    status, made = client("GET", "/subjects/shirts/versions/1")
    assert (status, made["references"], made["schema"]) == (200, [reference], text(shirt))
    assert client("GET", "/subjects/names/versions/1/referencedby") == (200, [made["id"]])
    assert code(client("DELETE", "/subjects/names/versions/1")) == 42206
    assert code(client.register("shirts", shirt, references=[{**reference, "version": 2}])) == 42201
    assert client("GET", "/subjects/shirts/versions/1?format=resolved")[1]["schema"] == text(
        {**shirt, "fields": [{"name": "size", "type": {**SIZE, "type": "enum"}}]}
    )
    client("DELETE", "/subjects/shirts")
    assert client("DELETE", "/subjects/names/versions/1") == (200, 1)


def test_a_reference_to_the_latest_version_names_the_one_that_is_the_latest_then(client):
    client.register("names", SIZE)
    shirt = {"type": "record", "name": "Shirt", "fields": [{"name": "size", "type": "shop.Size"}]}
    latest = {"name": "shop.Size", "subject": "names", "version": -1}
    first = client.register("shirts", shirt, references=[latest])[1]
    assert client("GET", "/subjects/shirts/versions/1")[1]["references"] == [{**latest, "version": 1}]
    assert client("GET", "/subjects/names/versions/1/referencedby") == (200, [first["id"]])
    client.register("names", {**SIZE, "symbols": ["S", "L", "XL"], "default": "S"})
    assert client.register("shirts", shirt, references=[latest])[1]["id"] != first["id"]
    assert client("GET", "/subjects/shirts/versions/2")[1]["references"] == [{**latest, "version": 2}]
    nothing = {**latest, "subject": "none"}
    assert code(client.register("shirts", shirt, references=[nothing])) == 42201


def test_a_version_that_was_deleted_and_made_again_is_what_it_is_now(client):
    shirt = {"type": "record", "name": "Shirt", "fields": [{"name": "size", "type": "shop.Size"}]}
    references = [{"name": "shop.Size", "subject": "names", "version": 1}]
    client.register("names", SIZE)
    client.register("shirts", shirt, references=references)
    for subject in ("shirts", "names"):
        client("DELETE", f"/subjects/{subject}")
        client("DELETE", f"/subjects/{subject}?permanent=true")
    assert code(client.register("shirts", shirt, references=references)) == 42201
    client.register("names", {**SIZE, "name": "Length"})
    assert code(client.register("shirts", shirt, references=references)) == 42201


def test_a_subject_may_have_a_slash(client):
    assert client.register("a%2Fb", STRING)[1]["id"] == 1
    assert client("GET", "/subjects") == (200, ["a/b"])


def test_normalize_takes_what_differs_in_order_for_the_same(client):
    one, other = {**USER, "b": 1, "a": 2}, {**USER, "a": 2, "b": 1}
    first = client.register("users", one, query="?normalize=true")[1]
    assert client.register("users", other, query="?normalize=true")[1] == first
    assert code(client("POST", "/subjects/users", {"schema": text(one)})) == 40403
    assert client("POST", "/subjects/users?normalize=true", {"schema": text(one)})[1]["id"] == first["id"]


def test_the_log_is_what_other_registries_read(client, broker):
    client.register("users", USER)
    client("PUT", "/config", {"compatibility": "FULL"})
    client("DELETE", "/subjects/users")
    records = [(json.loads(each.key), each.value and json.loads(each.value)) for each in broker.records("_schemas")]
    assert records == [
        (
            {"keytype": "SCHEMA", "subject": "users", "version": 1, "magic": 1},
            {"subject": "users", "version": 1, "id": 1, "schema": text(USER), "deleted": False},
        ),
        ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
        ({"keytype": "DELETE_SUBJECT", "subject": "users", "magic": 0}, {"subject": "users", "version": 1}),
    ]


def test_the_log_that_another_registry_wrote_is_read(client, broker):
    key = {"keytype": "SCHEMA", "subject": "s", "version": 3, "magic": 1}
    value = {"subject": "s", "version": 3, "id": 12, "md5": "QQ==", "schema": STRING, "deleted": False, "ts": 1}
    lines = [
        {"key": '{"keytype":"NOOP","magic":0}', "value": None},
        {"key": text(key), "value": text(value)},
        {"key": '{"keytype":"CONFIG","subject":null,"magic":0}', "value": '{"compatibilityLevel":"NONE"}'},
        {"key": "no JSON", "value": "at all"},
        {"key": '{"keytype":"MODE","subject":"s","magic":0}', "value": '{"mode":"READONLY"}'},
    ]
    broker.create_topic("_schemas", configs={"cleanup.policy": "compact"})
    broker.seed(lines, "_schemas")
    assert client("GET", "/subjects/s/versions/3")[1]["id"] == 12
    assert client("GET", "/config") == (200, {"compatibilityLevel": "NONE"})
    assert code(client.register("s", '"int"')) == 42205
    assert client.register("t", '"int"')[1]["id"] == 13


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://shop.example.com"}, {"Host": "rebound.example.com:8081"}], ids=["page", "name"]
)
def test_a_web_page_of_somebody_else_is_refused(client, headers):
    """A browser sends a POST without a content type to any address, and calls it JSON to nobody."""
    status, _ = client("POST", "/subjects/orders-value/versions", {"schema": '"string"'}, **headers)
    assert status == 403
    assert client("GET", "/subjects") == (200, [])
