"""A directory with ACLs goes to Apache Kafka and back: both list, refuse and log the same.

Knows nothing of the records that ACLs are kept in.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka
from .hand_over import apache_on, barnabas_on, running
from .play import Play, Step
from .rights_steps import ALL, ANY_ACL, DENY, GROUP, PREFIXED, READ, TOPIC, TXN, WRITE, acl
from .steps import ask

pytestmark = pytest.mark.xdist_group("acls-hand-over")

GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
STRANGER = "127.3.0.9"
HELD = [
    acl(TOPIC, READ, "orders", host="*", allows=DENY),
    acl(TOPIC, WRITE, "or", host=STRANGER) | {"ResourcePatternType": PREFIXED},
    acl(GROUP, READ, "*", host="*") | {"Principal": "User:CN=alice,O=b"},
    acl(TXN, ALL, "x", host="h"),
]
ALL_ACLS = ask("DescribeAcls", v=3, **(ANY_ACL | {"ResourceNameFilter": None}))
REFUSED = ask("ListOffsets", v=7, on="stranger", ReplicaId=-1, Topics=[
    {"Name": "orders", "Partitions": [{"PartitionIndex": index, "Timestamp": -1} for index in (0, 1)]},
    {"Name": "other", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]},
])  # fmt: skip
JOINED = ask("Heartbeat", v=4, on="stranger", GroupId="g", MemberId="m", GenerationId=1)
AUDIT = re.compile(r"Principal = User:ANONYMOUS is Denied .*")


def played(broker: "ApacheKafka | BarnabasProcess", *steps: Step) -> list[Any]:
    play = Play(("127.0.0.1", broker.port), "", {}, {"stranger": STRANGER})
    play.run(steps)
    return [answer for _, _, answer in play.transcript]


def listed(answer: Any) -> list[Any]:
    """Returns every single ACL, sorted."""
    return sorted(
        repr((each["ResourceType"], each["ResourceName"], each["PatternType"], sorted(one.items())))
        for each in answer["Resources"]
        for one in each["Acls"]
    )


def refusals(path: Path) -> list[str]:
    return sorted(set(AUDIT.findall(path.read_text())))


def test_there_and_back(kafka_jars: Path, tmp_path: Path) -> None:
    theirs, ours = apache_on(tmp_path, GUARDED), barnabas_on(tmp_path, GUARDED)
    ours.port = theirs.port
    requests = (ALL_ACLS, REFUSED, JOINED)
    with running(ours):
        played(ours, ask("CreateAcls", v=3, quiet=True, Creations=HELD))
        first, *mine = played(ours, *requests)
    assert len(listed(first)) == len(HELD)
    with running(theirs):
        found, *answers = played(theirs, *requests)
        assert (listed(found), answers) == (listed(first), mine)
        assert refusals(theirs.log) == refusals(ours.output) != []
        gone = {**ANY_ACL, "ResourceNameFilter": "orders", "PatternTypeFilter": 3}
        changes = [ask("DeleteAcls", v=3, quiet=True, Filters=[gone])]
        changes.append(ask("CreateAcls", v=3, quiet=True, Creations=[acl(TOPIC, READ, "new", host="*")]))
        there = ANY_ACL | {"ResourceNameFilter": "new"}
        changes.append(ask("DescribeAcls", v=3, quiet=True, until=("Resources.0.ResourceName", "new"), **there))
        played(theirs, *changes)
        last = played(theirs, ALL_ACLS, REFUSED)
    with running(ours):
        again = played(ours, ALL_ACLS, REFUSED)
    assert listed(again[0]) == listed(last[0]) != listed(first)
    assert again[1] == last[1]
