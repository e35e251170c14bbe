"""The Java clients' transactions, by the current release and by the last of the line before, as either generation.

The program is ``java/Transactions.java``; this module has only its expected results.
"""

from pathlib import Path

import pytest

from compat_tests.apache_kafka.apache import CURRENT, RELEASES, KafkaUnavailable, jars, run_java

PROGRAM = Path(__file__).parent / "java" / "Transactions.java"

EXPECTED = """\
first	[0, 0, 1]
aborted	[3, 2]
open	[[0:a, 1:c], [0:b]] [0:b, 2:e, 4:f, 5:plain]
last stable offsets	4 of 6
committed	[[0:a, 1:c], [0:b, 4:f, 5:plain]]
states	[CompleteCommit, CompleteCommit, CompleteAbort, CompleteCommit, CompleteCommit, CompleteAbort]
of six	[[0:0, 2:1, 6:3, 8:4]]
offsets committed	CompleteCommit {0=7a note, 1=8}
offsets aborted	CompleteAbort {0=7a note, 1=8}
wrong generation	CommitFailedException
offsets of no member	CompleteCommit {1=11}
zombie sends	InvalidProducerEpochException
zombie commits	InvalidProducerEpochException
fenced by an admin	ProducerFencedException
after fencing	[[2:successor]]
timed out	CompleteAbort
after the time-out	[[2:in time]]
beyond the limit	KafkaException
initialized	Empty 54321 []
ongoing	Ongoing 54321 [0, 1] true
listed	[[Ongoing], [Ongoing], [Ongoing], []]
active	[true, true, 0, 0]
done	CompleteCommit false
unknown id	TransactionalIdNotFoundException
last stable offsets of the aborted	[2, 0]
ended	CompleteAbort
ends of the aborted	[3, 2]
"""


@pytest.mark.parametrize("version", RELEASES)
def test_java_transactions(of_generation: str, generation: int, version: str, name: str) -> None:
    try:
        jars(version)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    done = run_java(version, str(PROGRAM), of_generation, f"{name}-", timeout=110)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    said = dict(line.split("\t") for line in done.stdout.splitlines())
    assert said.pop("transaction.version") == str(generation)
    newer = generation == 2 and version == CURRENT
    assert said.pop("epochs") == ("[0, 1, 2, 3, 4, 5]" if newer else "[0, 0, 0, 0, 0, 0]")
    assert said.pop("too late") == ("InvalidTxnStateException" if newer else "ProducerFencedException")
    assert said == dict(line.split("\t") for line in EXPECTED.splitlines())
