"""``barnabas schemas`` as it is typed, against a registry."""

import json

import pytest
from click.testing import CliRunner

from barnabas.cli.commands import barnabas
from barnabas.testing import Broker

USER = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
AGED = {**USER, "fields": [*USER["fields"], {"name": "age", "type": "int"}]}
DEFAULTED = {**USER, "fields": [*USER["fields"], {"name": "age", "type": "int", "default": 0}]}


@pytest.fixture
def schemas():
    with Broker(barnabas_schema_registry_listener="127.0.0.1:0") as broker:

        def run(verb, *arguments):
            command = ["schemas", verb, "--registry", broker.schema_registry_url, *map(str, arguments)]
            result = CliRunner().invoke(barnabas, command)
            return result.exit_code, result.output

        yield run


@pytest.fixture
def file(tmp_path):
    def write(schema, name="user.avsc"):
        path = tmp_path / name
        path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
        return path

    return write


def test_each_verb(schemas, file):
    assert schemas("list") == (0, "No schemas\n")
    assert schemas("register", "users", file(USER)) == (0, "users has this schema as version 1, id 1\n")
    assert schemas("check", "users", file(DEFAULTED)) == (0, "The schema is compatible with users\n")
    code, results = schemas("check", "users", file(AGED))
    assert code == 1
    assert "The field 'age' at path '/fields/1' in the new schema has no default value" in results
    assert schemas("register", "users", file(AGED))[0] == 1
    assert schemas("register", "users", file(DEFAULTED))[0] == 0
    assert json.loads(schemas("show", "users")[1]) == DEFAULTED
    results = schemas("diff", "users", 1)[1]
    assert "--- users version 1" in results
    assert '+      "default": 0' in results
    proto = 'syntax = "proto3";\nmessage Shirt {\n  int32 size = 1;\n}\n'
    assert schemas("register", "shirts", file(proto, "shirt.proto"))[0] == 0
    listed = json.loads(schemas("list", "--json")[1])
    assert [tuple(each.values()) for each in listed] == [("shirts", 1, 3, "PROTOBUF"), ("users", 2, 2, "AVRO")]
    assert schemas("delete", "users", 1) == (0, "users: deleted: 1\n")
    assert schemas("delete", "users") == (0, "users: deleted: 2\n")
    assert schemas("delete", "users", "--permanent") == (0, "users: deleted permanently: 1, 2\n")
    assert "Subject 'users' not found. (40401)" in schemas("show", "users")[1]


def test_a_registry_that_is_not_there():
    result = CliRunner().invoke(barnabas, ["schemas", "list", "--registry", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert "Cannot ask the schema registry at http://127.0.0.1:1" in result.output
