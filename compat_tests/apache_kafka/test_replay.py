"""Traffic recorded at Apache Kafka or Barnabas, and replayed at the other: the responses are equal.

ApiVersions is left out: :mod:`test_api_versions` compares it.
"""

from pathlib import Path

import pytest

from barnabas.cli import main
from tests.cli.proxying import Proxying
from tests.cli.traffic import traffic

from .hand_over import apache_on, barnabas_on, running

pytestmark = pytest.mark.xdist_group("replay")  # it starts its own nodes
NODES = {"Apache Kafka": apache_on, "Barnabas": barnabas_on}


@pytest.mark.parametrize(("at", "beside"), [("Apache Kafka", "Barnabas"), ("Barnabas", "Apache Kafka")])
def test_answers_are_the_same_at_the_other(
    at: str, beside: str, kafka_jars: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "traffic.jsonl"
    with running(NODES[at](tmp_path / "one")) as bootstrap, Proxying(bootstrap, "--record", str(file)) as proxying:
        traffic(proxying.bootstrap_servers)
        proxying.stop()
    with running(NODES[beside](tmp_path / "other")) as bootstrap:
        code = main(["replay", str(file), "--bootstrap-server", bootstrap, "--ignore", "ApiVersions"])
    assert code == 0, capsys.readouterr().out
