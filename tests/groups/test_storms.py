"""Hundreds of members of a classic group that join, leave and are restarted at once."""

from typing import Any

import pytest

from tests.groups.classic_walker import Client, Walker


class Crowd(Walker):
    """Many clients that behave correctly most of the time."""

    def __init__(self, world: Any, clients: list[Client]) -> None:
        super().__init__(world)
        self.clients = clients

    @property
    def generations(self) -> int:
        return len(self.chosen)

    def check_rest(self) -> None:
        self.settle(self.clients)
        self.check_log()


def crowd(world: Any, members: int, static: int = 0) -> Crowd:
    return Crowd(world, [Client(f"m{n}", f"i{n}" if n < static else None) for n in range(members)])


@pytest.mark.parametrize("delay_ms", [0, 3000])
def test_500_members_that_come_at_once_are_one_group_soon(world, delay_ms):
    world.command(f"config group.initial.rebalance.delay.ms={delay_ms}")
    many = crowd(world, 500)
    many.check_rest()
    # Without a delay the first member may have been alone for a moment.
    assert many.generations <= (1 if delay_ms else 2)
    assert len(many.responses) <= 500 * 3 + many.generations * 500


def test_half_of_them_leave_while_others_come(world):
    many = crowd(world, 200)
    many.check_rest()
    before = many.generations
    leaving, staying = many.clients[::2], many.clients[1::2]
    coming = [Client(f"n{n}") for n in range(100)]
    for goes, stays, comes in zip(leaving, staying, coming, strict=True):
        many.leave(goes)
        many.proceed(stays)
        many.proceed(comes)
    many.clients = staying + coming
    many.check_rest()
    assert many.generations <= before + 3


def test_all_static_members_are_started_again_one_by_one(world):
    many = crowd(world, 100, static=100)
    many.check_rest()
    before = many.generations
    for client in many.clients:
        client.forget()
        many.proceed(client)
    many.check_rest()
    assert many.generations == before, "a static member that comes back moves nobody"


def test_all_members_are_started_again_while_they_join(world):
    many = crowd(world, 100, static=50)
    for client in many.clients:
        many.proceed(client)
    for client in many.clients:
        client.forget()
        many.proceed(client)
    many.check_rest()


def test_most_of_them_die_at_once(world):
    many = crowd(world, 200)
    many.check_rest()
    many.clients = many.clients[::10]
    many.check_rest()
    (group,) = world.coordinator.list_groups()
    assert len(world.coordinator.describe(group.group_id).members) == 20
