"""The Java clients' groups of the newer kinds: KafkaConsumer of the current release and of the last of the line before,
share consumers and the admin of the current one.

The programs are in ``java/``; this module has only their expected results.
"""

from pathlib import Path

import pytest

from compat_tests.apache_kafka.apache import CURRENT, PREVIOUS, KafkaUnavailable, jars, run_java
from compat_tests.running import Running

PROGRAMS = Path(__file__).parent / "java"

CONSUMERS = """\
uniform alone	[first +4] Consumer Stable uniform [4] [4] [/127.0.0.1]
uniform shared	[first -2, second +2] [to 0, to 1, to 2, to 3]
uniform described	Consumer Stable uniform [2, 2] [2, 2] [/127.0.0.1]
uniform left	[second -2, first +2]
uniform empty	Consumer Empty uniform [] [] [] {0=1, 1=1, 2=1, 3=1}
range alone	[first +4] Consumer Stable range [4] [4] [/127.0.0.1]
range shared	[first -2, second +2] [to 0, to 1, to 2, to 3]
range described	Consumer Stable range [2, 2] [2, 2] [/127.0.0.1]
range left	[second -2, first +2]
range empty	Consumer Empty uniform [] [] [] {0=1, 1=1, 2=1, 3=1}
offset	1 a note Optional[0]
metadata	true false Optional.empty
altered by another	UnknownMemberIdException
deleted by another	GroupSubscribedToTopicException
group deleted	GroupNotEmptyException
altered	{0=3, 1=0}
from there	[3]
committed by itself	{0=4, 1=0}
gone	{}
a twin	UnreleasedInstanceIdException
epochs of a static member	1
pattern	[pattern-1-0, pattern-2-0, pattern-2-1]
grown	[one-0, two-0, two-1, two-2]
unsubscribed	[] Consumer Empty uniform [] [] []
deleted	[]
classic	Classic Stable range [4] [-1] [/127.0.0.1]
both	Consumer Stable uniform [2, 2] [2, 2] [/127.0.0.1]
newer only	Consumer Stable uniform [4] [4] [/127.0.0.1]
older only	Classic Stable range [4] [-1] [/127.0.0.1]
"""

NEWEST = """\
pattern	[pattern-1-0]
another	[pattern-1-0, pattern-x-0]
no pattern	InvalidRegularExpression
epochs	Stable 3 [true] [true]
listed	[Consumer consumer Stable][][Consumer consumer Stable][Consumer consumer Stable][]
as a share group	GroupIdNotFoundException
implicit	[0 1, 1 1, 2 1, 3 1, 4 1, 5 1, 6 1, 7 1, 8 1, 9 1] {0=[0, 1, 2, 3, 4], 1=[0, 1, 2, 3, 4]} Optional[30000]
done with	{implicit-0=0 lag 0, implicit-1=0 lag 0}
explicit	{0=1, 1=3, 2=1, 3=1, 4=3, 5=1} [Optional.empty]
the next	[6 1]
not acquired	IllegalStateException
explicitly done with	{explicit-0=6 lag 0}
lock	Optional[1500]
renewal 0	[Optional.empty]
renewal 1	[Optional.empty]
renewal 2	[Optional.empty]
renewal 3	[Optional.empty]
renewal 4	[Optional.empty]
renewal 5	[Optional.empty]
renewed	0 [Optional.empty]
renewed and done with	{renewed-0=0 lag 0}
together	true
members	[1, 1]
read	10
altered in use	GroupNotEmptyException
deleted in use	GroupNotEmptyException
group deleted in use	GroupNotEmptyException
offsets	{offsets-0=0 lag 0, offsets-1=0 lag 0}
altered	nothing {offsets-0=3 lag 2, offsets-1=0 lag 0}
from there	[6, 8]
altered what is not there	UnknownTopicOrPartitionException
deleted	nothing {}
deleted again	UnknownTopicOrPartitionException
group deleted	nothing
and gone	GroupIdNotFoundException []
offsets of none	nothing
offsets of a new one	nothing
described	Stable 3 true true a client /127.0.0.1 Optional.empty [described-0, described-1, described-2]
shared and listed	[Share share Stable][Share share Stable][]
as a consumer group	GroupIdNotFoundException
joined by a consumer	GroupIdNotFoundException
emptied	Empty
default	20000 STATIC_BROKER_CONFIG latest DEFAULT_CONFIG
set	19000 DYNAMIC_GROUP_CONFIG earliest DYNAMIC_GROUP_CONFIG
with configs	true
out of bounds	InvalidConfigurationException
below the heartbeat	InvalidConfigurationException
no such config	InvalidConfigurationException
no such reset	InvalidConfigurationException
unset	20000 STATIC_BROKER_CONFIG latest DEFAULT_CONFIG
no streams group	GroupIdNotFoundException
not a streams group	GroupIdNotFoundException
streams groups	[]
"""


ROLLING = """\
eager	[2, 2] range 4
either	[2, 2] range 8
either	[2, 2] cooperative-sticky 12
cooperative	[2, 2] cooperative-sticky 16
cooperative	[2, 2] cooperative-sticky 20
"""


def outcome(version: str, program: str, bootstrap: str, prefix: str) -> list[str]:
    try:
        jars(version)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    done = run_java(version, str(PROGRAMS / program), bootstrap, prefix, timeout=120)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.splitlines()


@pytest.mark.parametrize("version", [CURRENT, PREVIOUS])
def test_the_consumer_protocol(quick: Running, name: str, version: str) -> None:
    assert outcome(version, "Consumers.java", quick.bootstrap, f"{name}-") == CONSUMERS.splitlines()


def test_share_consumers_and_the_admin(quick: Running, name: str) -> None:
    assert outcome(CURRENT, "Newest.java", quick.bootstrap, f"{name}-") == NEWEST.splitlines()


def test_from_eager_to_cooperative(quick: Running, name: str) -> None:
    assert outcome(CURRENT, "Rolling.java", quick.bootstrap, f"{name}-") == ROLLING.splitlines()
