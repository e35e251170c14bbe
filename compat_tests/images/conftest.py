"""Ports for the nodes of images. Knows nothing of what is started on them."""

import socket
from contextlib import ExitStack

import pytest

NAMES = ("port", "broker", "controller", "secure")


@pytest.fixture
def ports() -> dict[str, str]:
    """Ports that were free a moment ago, each another."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in NAMES]
        return {name: str(each.getsockname()[1]) for name, each in zip(NAMES, sockets, strict=True)}
