"""What deletion explains in the history of a topic whose oldest records are deleted."""

import pytest

from tests.history.conftest import Story
from tests.simulation.expiring import KEY, unexplained


def read_past(*offsets, moved="", before=()):
    """A transaction of these offsets is open while the records at 4 and 6 are read, as the first or after others."""
    story = Story()
    story.send(*((KEY, 100 + each, each) for each in (*before, 4, 6)))
    if before:
        story.poll(*((KEY, each, 100 + each) for each in before), moved="before")
    story.poll((KEY, 4, 104), (KEY, 6, 106), moved=moved)
    story.transaction(*((KEY, each, each) for each in offsets), process="t")
    return [each.kind for each in unexplained(story.history())]


@pytest.mark.parametrize("offsets", [(3,), (2, 3, 7)])
def test_an_open_transaction_whose_records_were_deleted_may_be_unknown(offsets):
    assert read_past(*offsets, moved="before") == []


@pytest.mark.parametrize(
    ("offsets", "position"),
    [((3,), {}), ((3,), {"before": (1,)}), ((5,), {"moved": "before"}), ((2, 5), {"moved": "before"})],
)
def test_a_reader_does_not_pass_an_open_transaction_whose_records_are_there(offsets, position):
    assert set(read_past(*offsets, **position)) == {"past-open-transaction"}


def test_what_is_below_the_position_was_deleted():
    assert read_past(0, before=(1,)) == []
