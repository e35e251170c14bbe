"""Ports for the nodes of images. Knows nothing of the nodes."""

import socket
from contextlib import ExitStack

import pytest

NAMES = ("port", "broker", "controller", "secure")


@pytest.fixture
def ports() -> dict[str, str]:
    """Returns distinct free ports."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in NAMES]
        return {name: str(each.getsockname()[1]) for name, each in zip(NAMES, sockets, strict=True)}
