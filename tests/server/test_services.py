"""Services start in order and stop in the reverse order, also after failures."""

import asyncio

import pytest

from barnabas.server.services import Services, Step


@pytest.fixture
def story():
    """The events, in order."""
    return []


@pytest.fixture
def step(story):
    """Returns a service that records its calls, and fails if the test says so."""

    def step(name, *, fails_to=()):
        def act(verb):
            async def act():
                story.append(f"{verb} {name}")
                if verb in fails_to:
                    raise OSError(f"cannot {verb} {name}")

            return act

        return Step(name, start=act("start"), stop=act("stop"))

    return step


def run(*actions):
    async def all_of_them():
        for action in actions:
            await action()

    asyncio.run(all_of_them())


def test_the_last_one_that_started_is_the_first_one_to_stop(step, story):
    services = Services()
    run(lambda: services.start([step("one"), step("two")]), services.stop, services.stop)
    assert story == ["start one", "start two", "stop two", "stop one"]


def test_a_start_that_fails_stops_what_has_started(step, story, caplog):
    services = Services()
    some = [step("one", fails_to=("stop",)), step("two"), step("three", fails_to=("start",)), step("four")]
    with pytest.raises(OSError, match="cannot start three"):
        run(lambda: services.start(some))
    assert story == ["start one", "start two", "start three", "stop two", "stop one"]
    assert "Cannot stop the one" in caplog.text
    run(services.stop)
    assert len(story) == 5


def test_a_stop_that_fails_keeps_no_other_from_stopping(step, story):
    services = Services()
    with pytest.raises(OSError, match="cannot stop two"):
        run(lambda: services.start([step("one"), step("two", fails_to=("stop",)), step("three")]), services.stop)
    assert story[3:] == ["stop three", "stop two", "stop one"]


def test_a_step_may_have_nothing_to_stop(story):
    async def start():
        story.append("start")

    services = Services()
    run(lambda: services.start([Step("one", start=start)]), services.stop)
    assert story == ["start"]
