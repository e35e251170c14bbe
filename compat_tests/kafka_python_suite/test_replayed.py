"""kafka-python's own tests, recorded by the proxy and replayed: the responses are equal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli import main
from compat_tests.kafka_python_suite import suite
from compat_tests.kafka_python_suite.test_suite import PROPERTIES
from compat_tests.running import Running
from tests.cli.proxying import Proxying

DELAYED = PROPERTIES | {"group.initial.rebalance.delay.ms": "500"}
"""Members that join at the same moment are in one generation, in the recording and in the replay."""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_suite_is_replayed(
    own_broker: Callable[..., Running], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, file = tmp_path / "suite", tmp_path / "suite.jsonl"
    home.mkdir()
    try:
        suite.source_distribution()
    except suite.SuiteUnavailable as reason:
        pytest.skip(str(reason))
    with Proxying(own_broker(DELAYED).bootstrap, "--record", str(file)) as proxying:
        found = suite.run(home, proxying.bootstrap_servers, seconds=450)
        proxying.stop()
    assert list(found.values()).count("passed") >= 40
    code = main(["replay", str(file), "--bootstrap-server", own_broker(DELAYED).bootstrap])
    assert code == 0, capsys.readouterr().out
