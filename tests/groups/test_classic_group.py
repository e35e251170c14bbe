"""ClassicGroup, as far as no scenario shows it."""

import logging

from barnabas.deadlines import Deadline
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.classic_member import ClassicMember


def test_a_subscription_that_cannot_be_read_is_a_warning_once(caplog):
    caplog.set_level(logging.DEBUG)
    group = ClassicGroup("g", 0)
    group.add(ClassicMember("m", None, "c", "/h", 1, 1, (("range", b"?"),), Deadline(list)), "consumer")
    group.protocol_name = "range"
    for _ in range(3):
        group.compute_subscribed_topics()
    assert group.subscribed_topics is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG", "DEBUG"]
