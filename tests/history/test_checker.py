"""Each anomaly in the smallest history that has it, found once and alone; and histories that only resemble one."""

import pytest

from tests.history.checker import ANOMALIES, judge
from tests.history.conftest import FAIL, INFO, Story
from tests.history.records import DURING, Transform, read, write


def kinds(story):
    return [anomaly.kind for anomaly in judge(story.history()).anomalies]


def during(records, reader="r", committed=True):
    """Returns the poll of a transaction."""
    return (records, reader, committed, "")


def good():
    story = Story()
    story.send(("a", 1, 0), ("b", 2, 0))
    story.transaction(("a", 3, 1), ("b", 4, 1))
    story.poll(("a", 0, 1), ("a", 1, 3), ("b", 0, 2))
    story.poll(("b", 1, 4))
    return story


def unwritten():
    story = good()
    story.poll(("a", 3, 99))
    return story


def written_elsewhere():
    """Value 2 was sent to b."""
    story = Story()
    story.send(("b", 2, None), outcome=INFO)
    story.poll(("a", 0, 2))
    return story


def aborted():
    story = Story()
    story.transaction(("a", 1, 0), outcome=FAIL)
    story.poll(("a", 0, 1))
    return story


def early():
    story = Story()
    story.poll(("a", 0, 1))
    story.transaction(("a", 1, 0))
    return story


def precommitted():
    story = Story()
    story.transaction(("a", 1, 0), polls=[during([("a", 0, 1)], "p")])
    return story


def past_open():
    """Value 1 is at a:0 and not committed yet when 2, after it, is read."""
    story = Story()
    story.send(("a", 2, 1), process="q")
    story.poll(("a", 1, 2))
    story.transaction(("a", 1, 0))
    story.poll(("a", 0, 1), reader="later")
    return story


def inconsistent():
    story = Story()
    story.send(("a", 1, 0))
    story.send(("a", 2, 0), process="q")
    story.poll(("a", 0, 1))
    story.poll(("a", 0, 2), reader="s")
    return story


def doubled():
    story = Story()
    story.send(("a", 1, 0))
    story.poll(("a", 0, 1), ("a", 1, 1))
    return story


def lost():
    story = Story()
    story.send(("a", 1, 0))
    story.send(("a", 2, 1))
    story.poll(("a", 1, 2))
    return story


def lost_in_a_transaction():
    """read_uncommitted readers have read it, read_committed readers have not."""
    story = Story()
    story.transaction(("a", 1, 0))
    story.send(("a", 2, 2))
    story.poll(("a", 0, 1), ("a", 2, 2), reader="all", committed=False)
    story.poll(("a", 2, 2))
    return story


def torn():
    """The outcome of the commit is unknown; one of its records exists, and one does not."""
    story = Story()
    story.transaction(("a", 1, 0), ("b", 2, 0), outcome=INFO)
    story.send(("b", 3, 2))
    story.poll(("a", 0, 1), ("b", 2, 3))
    return story


def torn_at_the_end():
    story = Story()
    story.transaction(("a", 1, 0), ("b", 2, 0), outcome=INFO)
    story.poll(("a", 0, 1))
    return story


def unseen():
    story = Story()
    story.send(("a", 1, 0))
    story.poll(("b", 0, 2))
    story.send(("b", 2, 0))
    return story


def unseen_without_an_offset():
    story = Story()
    story.send(("a", 1, -1))
    story.send(("a", 2, 5))
    story.poll(("a", 5, 2))
    return story


def backwards():
    story = good()
    story.poll(("b", 0, 2))
    return story


def twice():
    story = good()
    story.poll(("b", 1, 4))
    return story


def backwards_inside():
    story = good()
    story.polls([("a", 1, 3)], [("a", 0, 1)], reader="s")
    return story


def skipped():
    story = good()
    story.send(("a", 5, 3))
    story.poll(("a", 0, 1), reader="s")
    story.poll(("a", 3, 5), reader="s")
    return story


def skipped_inside():
    story = good()
    story.send(("a", 5, 3))
    story.poll(("a", 0, 1), ("a", 3, 5), reader="s")
    return story


def skipped_what_is_not_committed():
    """read_uncommitted readers read aborted records, too."""
    story = Story()
    story.send(("a", 1, 0))
    story.transaction(("a", 2, 1), outcome=FAIL)
    story.send(("a", 3, 3))
    story.poll(("a", 0, 1), ("a", 3, 3), reader="all", committed=False)
    return story


def sent_backwards():
    story = Story()
    story.send(("a", 1, 1))
    story.send(("a", 2, 0))
    story.poll(("a", 0, 2), ("a", 1, 1))
    return story


def sent_backwards_inside():
    story = Story()
    story.transaction(("a", 1, 1), ("a", 2, 0))
    story.poll(("a", 0, 2), ("a", 1, 1))
    return story


def stuck():
    story = good()
    story.stuck["a"] = "nobody ends this transaction"
    return story


def circular():
    """Each transaction reads the other's write. One read is early, too, unless the times of the commits are unknown."""
    story = Story()
    story.transaction(("a", 1, 0), polls=[during([("b", 0, 2)], "p")], commits=False)
    story.transaction(("b", 2, 0), polls=[during([("a", 0, 1)], "q")], commits=False, process="q")
    return story


def transformed(*outputs, committed):
    """Values 1 and 2 are the inputs, at 0 and 1; an output is (value, source)."""
    story = Story()
    story.send(("in", 1, 0), ("in", 2, 1))
    for offset, (value, source) in enumerate(outputs):
        story.transaction(("out", value, offset, source))
        story.poll(("out", offset, value))
    story.poll(("in", 0, 1), ("in", 1, 2))
    story.transforms.append(Transform(["in"], ["out"], {"in": committed}))
    return story


FOUND = [
    (unwritten, "unwritten-read"),
    (written_elsewhere, "unwritten-read"),
    (aborted, "aborted-read"),
    (early, "early-read"),
    (precommitted, "precommitted-read"),
    (past_open, "past-open-transaction"),
    (inconsistent, "inconsistent-offset"),
    (lost, "lost-write"),
    (lost_in_a_transaction, "lost-write"),
    (torn, "torn-transaction"),
    (torn_at_the_end, "torn-transaction"),
    (unseen, "unseen"),
    (unseen_without_an_offset, "unseen"),
    (doubled, "duplicate"),
    (backwards, "nonmonotonic-poll"),
    (twice, "nonmonotonic-poll"),
    (backwards_inside, "internal-nonmonotonic-poll"),
    (skipped, "poll-skip"),
    (skipped_inside, "internal-poll-skip"),
    (skipped_what_is_not_committed, "internal-poll-skip"),
    (sent_backwards, "nonmonotonic-send"),
    (sent_backwards_inside, "internal-nonmonotonic-send"),
    (stuck, "stuck"),
    (circular, "circular-reads"),
    (lambda: transformed((11, 1), committed=2), "input-lost"),
    (lambda: transformed((11, 1), (12, 2), (13, 1), committed=2), "input-doubled"),
    (lambda: transformed((11, 1), (12, 2), committed=1), "offset-behind"),
    (lambda: transformed((11, 1), (12, 2), (13, 77), committed=2), "output-from-nothing"),
]


@pytest.mark.parametrize(("tell", "kind"), FOUND, ids=[f"{kind}-{tell.__name__.strip('<>')}" for tell, kind in FOUND])
def test_an_anomaly_is_found_and_nothing_beside_it(tell, kind):
    assert kinds(tell()) == [kind]


def test_each_kind_has_a_history():
    assert {kind for _, kind in FOUND} == set(ANOMALIES)


def test_nothing_is_found_where_all_is_well():
    assert kinds(good()) == []
    assert kinds(transformed((11, 1), (12, 2), committed=2)) == []
    assert kinds(transformed((11, 1), committed=1)) == []


def test_what_is_unknown_may_have_happened_or_not():
    story = Story()
    story.send(("a", 1, None), outcome=INFO)
    story.transaction(("a", 2, 1), ("a", 3, 2), outcome=INFO)
    story.transaction(("a", 4, 4), ("b", 5, 0), outcome=INFO)
    story.send(("a", 6, 6))
    story.poll(("a", 4, 4), ("a", 6, 6), ("b", 0, 5))
    assert kinds(story) == []


def test_part_of_a_send_counts_when_it_was_acknowledged():
    story = Story()
    story.send(("a", 1, 0), ("a", 2, None), outcome=INFO)
    story.send(("a", 3, 5))
    story.poll(("a", 5, 3))
    assert kinds(story) == ["lost-write"]


def test_aborted_records_are_for_those_who_read_everything():
    story = Story()
    story.transaction(("a", 1, 0), outcome=FAIL)
    story.poll(("a", 0, 1), committed=False)
    assert kinds(story) == []


def test_the_open_are_not_in_the_way_of_those_who_read_everything():
    story = past_open()
    (poll,) = story.operations[1].polls
    poll.committed = False
    assert kinds(story) == []


def test_a_transaction_of_unknown_outcome_may_have_been_over_long_ago():
    story = past_open()
    story.operations[2].outcome = INFO
    assert kinds(story) == []


@pytest.mark.parametrize("tell", [backwards, twice, skipped])
def test_who_was_moved_goes_on_elsewhere(tell):
    story = tell()
    story.operations[-1].polls[0].moved = "before"
    assert kinds(story) == []


def test_who_is_moved_while_it_polls_may_be_given_anything():
    story = good()
    story.poll(("a", 1, 3), ("a", 0, 1), reader="s", moved=DURING)
    story.poll(("a", 0, 1), reader="s")
    assert kinds(story) == []


def test_writing_by_turns_is_allowed():
    """Adya's G0: 1 before 2 in a, 4 before 3 in b."""
    story = Story()
    first = story.transaction(("a", 1, 0), ("b", 3, 1))
    story.transaction(("a", 2, 1), ("b", 4, 0), process="q")
    story.poll(("a", 0, 1), ("a", 1, 2), ("b", 0, 4), ("b", 1, 3))
    verdict = judge(story.history())
    assert verdict.clean
    assert verdict.allowed == {"G0": 1, "G1c with writes": 0}
    assert first.outcome == "ok"


def test_a_circle_that_needs_a_write_edge_is_allowed():
    """The second writes after the first in a, and the first reads the second's write in b."""
    story = Story()
    story.transaction(("a", 2, 1), ("b", 3, 0), process="q")
    story.transaction(("a", 1, 0), polls=[during([("b", 0, 3)], "p")])
    story.poll(("a", 0, 1), ("a", 1, 2))
    verdict = judge(story.history())
    assert verdict.clean
    assert verdict.allowed == {"G0": 0, "G1c with writes": 1}


def test_a_history_can_be_kept(tmp_path):
    story = transformed((11, 1), (12, 2), committed=2)
    story.stuck["a"] = "never mind"
    history = story.history()
    history.plan = {"seed": 7}
    history.events.append({"at": 1.5, "kind": "kill"})
    write(history, tmp_path / "history.jsonl")
    assert read(tmp_path / "history.jsonl") == history
