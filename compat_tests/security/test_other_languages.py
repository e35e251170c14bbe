"""kafkajs and franz-go over TLS and SASL: an aborted transaction, a committed one, and a group that reads it."""

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compat_tests.go.program import built
from compat_tests.node.installed import installed

from .secured import LOGIN, PASSWORD, USER, Secured, unsecured_token

COUNT = 30
SEEN = {"values": [f"{number} {'x' * 10_000}" for number in range(COUNT)], "offset": COUNT + 2}
PROGRAM = Path(__file__).parent / "node" / "secured.js"
WAYS = [("SSL", ""), *itertools.product(("SASL_PLAINTEXT", "SASL_SSL"), LOGIN)]


def settings(secured: Secured, protocol: str, mechanism: str) -> dict[str, Any]:
    found = {"bootstrap": secured.bootstrap(protocol)}
    if protocol.endswith("SSL"):
        found["authority"] = secured.authority
    if not mechanism:
        return {**found, "certificate": secured.certificate, "key": secured.key}
    found["mechanism"] = mechanism
    if mechanism == "OAUTHBEARER":
        return {**found, "token": unsecured_token()}
    return {**found, "user": USER, "password": PASSWORD}


def run(*command: str, **environment: str) -> dict[str, Any]:
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=90, check=False, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stdout[-500:] + ran.stderr[-4000:]
    seen: dict[str, Any] = json.loads(ran.stdout)
    return {**seen, "offset": int(seen["offset"])}


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(filter(None, way)))
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    named: tuple[str, str] = request.param
    return named


def test_kafkajs(secured: Secured, way: tuple[str, str], tmp_path: Path) -> None:
    modules = str(installed())
    found = settings(secured, *way)
    if "mechanism" in found:
        found["mechanism"] = found["mechanism"].lower()
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(found))
    topic = "kafkajs-" + "-".join(way)
    assert run("node", str(PROGRAM), str(file), topic, str(COUNT), NODE_PATH=modules) == SEEN


def test_franz_go(secured: Secured, way: tuple[str, str], tmp_path: Path) -> None:
    program = str(built())
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(settings(secured, *way)))
    assert run(program, "secured", str(file), "franz-go-" + "-".join(way), str(COUNT)) == SEEN


def test_a_wrong_password(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    for program, mechanism, found in (
        (("node", str(PROGRAM)), "plain", "Authentication failed: Invalid username or password"),
        ((str(built()), "secured"), "SCRAM-SHA-256", "Authentication failed during authentication due to invalid"),
    ):
        wrong = {**settings(secured, "SASL_SSL", mechanism.upper()), "mechanism": mechanism, "password": "not-hers"}
        file.write_text(json.dumps(wrong))
        ran = subprocess.run(
            [*program, str(file), "refused", str(COUNT)],
            capture_output=True, text=True, timeout=90, check=False,
            env={**os.environ, "NODE_PATH": str(installed())},
        )  # fmt: skip
        assert ran.returncode and found in ran.stderr + ran.stdout, (program, ran.stdout, ran.stderr)
