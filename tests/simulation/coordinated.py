"""A client of a simulation with a coordinator, that of its group or of its transactions.

Knows nothing of its requests.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.errors import KafkaError
from barnabas.wire.message import Request
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.simulation.clients import GIVE_UP_S, PAUSE_S, Client, check

GROUPS, TRANSACTIONS = 0, 1
"""Types of coordinators in FindCoordinator."""


class CoordinatedClient(Client):
    """A client that sends requests to the coordinator of a key."""

    coordinator_type: int
    coordinator_key: str
    coordinator = -1

    async def insist(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Repeats a request until there is a response without a retriable error.

        :raises KafkaError: the error of the response, or that of the last attempt after a long time
        """
        give_up = self.loop.now + GIVE_UP_S
        while True:
            try:
                return await send()
            except KafkaError as error:
                if not error.retriable or self.loop.now > give_up:
                    raise
                await self.pause(PAUSE_S / 2)

    async def ask_coordinator(self, request: Request, error_of: Callable[[Any], int]) -> Any:
        """Returns a response without an error. :raises KafkaError: there is none"""
        try:
            if self.coordinator < 0:
                found = FindCoordinatorRequest(key_type=self.coordinator_type, coordinator_keys=[self.coordinator_key])
                place = (await self.ask(self.random.choice(self.brokers), found)).coordinators[0]
                check(place.error_code)
                self.coordinator = place.node_id
            answer = await self.ask(self.coordinator, request)
            check(error_of(answer))
        except KafkaError as error:
            if error.retriable:
                self.coordinator = -1
            raise
        return answer


def top_error(answer: Any) -> int:
    """Returns the error at the top of a response."""
    return int(answer.error_code)
