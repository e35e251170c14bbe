import io
import json
import sys
from typing import NamedTuple

import pytest

from barnabas.cli import main
from barnabas.testing import Broker
from tests.cli.lively import make


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return self.out.splitlines()


@pytest.fixture(scope="session")
def cli_broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(cli_broker):
    """A broker without topics, groups and changed configs."""
    cli_broker.reset()
    return cli_broker


@pytest.fixture
def barnabas(broker, capsys, monkeypatch):
    """Runs a command against the broker, as the command line does."""

    def run(command, *arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([command, "--bootstrap-server", broker.bootstrap_servers, *arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def lively(tmp_path_factory):
    """A data directory with all kinds of records and files, whose broker was stopped; it must not be changed."""
    return make(tmp_path_factory.mktemp("lively") / "data")
