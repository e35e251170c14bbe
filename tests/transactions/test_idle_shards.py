"""A shard looks at its transactional ids regularly, and has no timer while it has none."""

DAY_S = 86_400


def test_a_shard_without_ids_has_no_timer(world, monkeypatch):
    clock, timers = world.clock, []
    call_later = clock.call_later
    monkeypatch.setattr(clock, "call_later", lambda delay, *call: timers.append(delay) or call_later(delay, *call))

    def timers_of_a_day():
        timers.clear()
        clock.advance(DAY_S)
        return len(timers)

    world.command("config transactional.id.expiration.ms=12h")
    assert timers_of_a_day() == 0
    world.command("init a")
    assert timers_of_a_day() > 100
    assert world.command("list") == "log: t is gone"
    timers_of_a_day()
    assert timers_of_a_day() == 0
