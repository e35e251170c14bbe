"""Clients of schema registries in Go and JavaScript against the registry of a broker; skipped if they are missing."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.go.program import BUILD_SECONDS, built
from compat_tests.node.installed import installed

HERE = Path(__file__).parent

pytest.importorskip("fastavro")
pytest.importorskip("jsonschema")


@pytest.fixture
def url() -> Iterator[str]:
    """The address of the registry of a new broker. The wheel's environment has no extras, so it is this one's."""
    options = ["--dev", "--port", "0", "--override", "barnabas.schema.registry.listener=127.0.0.1:0"]
    command = [sys.executable, "-m", "barnabas", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"schema-registry at (\S+?)(?:;|$)", process.stdout.readline().strip())
            assert found is not None
            yield found[1]
        finally:
            process.terminate()
            process.wait(timeout=30)


def seen(command: list[str], **environment: str) -> Any:
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=90, check=False, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.xdist_group("go")
@pytest.mark.timeout(BUILD_SECONDS + 120)
def test_franz_go(url: str) -> None:
    found = seen([str(built()), "registry", url])
    assert [found["created"][name] for name in ("subject", "version", "id")] == ["drinks-value", 1, 1]
    assert found["latest"] == found["created"]
    assert found["by_guid"]["guid"] == found["created"]["guid"]
    assert (found["lookup"], found["refused"]) == (1, 409)
    assert (found["compatible"], found["level"]) == ([False, True], "FORWARD")
    assert found["modes"] == ["READONLY", "READWRITE"]
    assert (found["usages"], found["references"]) == (["drinks-value"], ["tables"])
    assert (found["unremoved"], found["removed"]) == ([42206, 40401], [1])
    assert found["subjects"] == [["cups", "drinks-value"], ["cups", "drinks-value", "tables"]]
    assert found["missing"] == [40403, 40401, 40402]
    assert [found["imported"][name] for name in ("version", "id")] == [7, 40]
    assert found["contexts"] == ["."]
    assert sorted(found["types"]) == ["AVRO", "JSON", "PROTOBUF"]


def test_kafkajs(url: str) -> None:
    modules = installed("@kafkajs/confluent-schema-registry", "3.9.0")
    found = seen(["node", str(HERE / "registry.js"), url], NODE_PATH=str(modules))
    assert found["back"] == {kind: {"table": 7, "drink": "tea"} for kind in ("AVRO", "JSON", "PROTOBUF")}
    assert found["ids"] == {"AVRO": [1, 1, 1], "JSON": [2, 2, 2], "PROTOBUF": [3, 3, 3]}
    assert "incompatible with an earlier schema" in found["refused"]
    assert "Subject 'none' not found" in found["missing"]
