"""The Java clients of two releases over SASL_SSL: an aborted and a committed transaction, and a group that reads."""

from pathlib import Path

import pytest

from compat_tests.apache_kafka.apache import RELEASES, KafkaUnavailable, jars, run_java

from .secured import Secured, write

COUNT = 30
PROGRAM = Path(__file__).parent.parent / "tls" / "java" / "Secured.java"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("version", RELEASES)
def test_java(secured: Secured, tmp_path: Path, version: str, mechanism: str) -> None:
    try:
        jars(version)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    file = write(tmp_path / "client.properties", secured.properties("SASL_SSL", mechanism))
    done = run_java(version, str(PROGRAM), file, f"java-{version}-{mechanism}", str(COUNT), "10000", timeout=110)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert done.stdout.split() == [str(COUNT)]
