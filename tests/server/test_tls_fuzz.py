"""Malformed clients of a TLS listener: broken, truncated, slow, huge and missing handshakes only cost their connection.

Everything is drawn from one seed. A refused client has one line in the log; one that disconnects has at most one.
"""

import asyncio
import gc
import logging
import random
import resource
import ssl
import struct
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from barnabas.config import BrokerConfig
from barnabas.server.server import Server
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from tests.raw import framed
from tests.security.tls.stores import inline

AT_ONCE = 20
ASK = framed(ApiVersionsRequest(client_software_name="fuzz", client_software_version="1"), 4)
HANDSHAKE, ALERT, CHANGE_CIPHER_SPEC, APPLICATION = 22, 21, 20, 23
MOST_GROWTH = 24 << 20
"""The maximum growth of the process after the first clients, in bytes: caches of the allocator and of OpenSSL."""


def configs(directory, authority):
    return BrokerConfig.from_properties(
        {
            "log.dirs": str(directory),
            "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.name.mutual.ssl.client.auth": "required",
            **inline(authority, authority.issue_cert("127.0.0.1")),
        }
    )


def record(kind, data, version=b"\3\3"):
    return bytes([kind]) + version + struct.pack(">H", len(data)) + data


# ---------------------------------------------------------------- who is turned away, without leaving first


def plain_text(chance):
    """Returns HTTP, Kafka without TLS, or other bytes that do not begin like TLS."""
    noise = bytes([chance.choice([0, 1, 2, 24, 80, 255])]) + chance.randbytes(chance.randint(20, 400))
    return chance.choice([b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", ASK * 3, b"\0\0\0\x2a" + bytes(60), noise])


def huge_hello(chance):
    """Returns a message of up to 16 MiB, larger than a handshake may be."""
    said = b"\1" + struct.pack(">I", chance.randint(300_000, 0xFFFFFF))[1:]
    piece = chance.randbytes(1 << 14)
    return record(HANDSHAKE, said + piece[4:]) + record(HANDSHAKE, piece) * 20


def not_a_hello(chance):
    """Returns a TLS record with which no handshake begins."""
    first = record(chance.choice([APPLICATION, CHANGE_CIPHER_SPEC]), chance.randbytes(chance.randint(1, 300)))
    return first + record(HANDSHAKE, b"\2\0\0\4abcd")


def oversized_record(chance):
    """Returns a record that is too long."""
    return record(HANDSHAKE, chance.randbytes(chance.randint(20_000, 65_535)))


TURNED_AWAY = (plain_text, huge_hello, not_a_hello, oversized_record)


async def is_turned_away(streams, chance):
    """Sends the bytes, sometimes in pieces, and waits until the broker closes."""
    reader, writer = streams
    await in_pieces(writer, chance.choice(TURNED_AWAY)(chance), chance)
    while await reader.read(1 << 16):
        pass
    return True


# ---------------------------------------------------------------- who begins well


def flip(data, chance):
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 3, 20])):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def cut(data, chance):
    return data[: chance.randrange(len(data))]


def twice(data, chance):
    return data * 2


def other_version(data, chance):
    """Changes the version of the record, or the one in the message."""
    at = chance.choice([1, 2, 9, 10])
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def between(data, chance):
    """Inserts records of the wrong type, sometimes many."""
    kind = chance.choice([ALERT, CHANGE_CIPHER_SPEC, APPLICATION, HANDSHAKE, 0, 99])
    inserted = record(kind, chance.choice([b"", b"\1", b"\1\0", b"\2\50", chance.randbytes(100)]))
    return inserted * chance.choice([1, 2, 500]) + data


def untouched(data, chance):
    return data


BENT = (flip, flip, cut, cut, twice, other_version, between, untouched)


async def in_pieces(writer, data, chance):
    """Sends the bytes at once, in some pieces, or byte by byte."""
    size = chance.choice([len(data), len(data), max(1, len(data) // 7), 1 if len(data) < 2000 else 500])
    for at in range(0, len(data), max(1, size)):
        writer.write(data[at : at + size])
        await writer.drain()
        await asyncio.sleep(0)


async def bends_a_flight(streams, chance, context):
    """Does a handshake with one damaged flight, or damaged bytes after it, and disconnects."""
    reader, writer = streams
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    bent = chance.randint(0, 2)
    for flight in range(bent + 1):
        is_done = True
        try:
            tls.do_handshake()
            tls.write(chance.choice([ASK, chance.randbytes(50), b"\x7f" * 8]))
        except ssl.SSLWantReadError:
            is_done = False
        data = outgoing.read()
        if flight == bent or is_done:
            await in_pieces(writer, chance.choice(BENT)(data, chance) if data else data, chance)
            break
        await in_pieces(writer, data, chance)
        answer = await reader.read(1 << 16)
        if not answer:
            return True
        incoming.write(answer)
    writer.write_eof()
    while await reader.read(1 << 16):
        pass
    return False


async def a_stranger(ports, seed, contexts):
    """Returns the client's port, and whether the broker refused it."""
    chance = random.Random(seed)
    streams = await asyncio.open_connection("127.0.0.1", chance.choice(ports))
    own, is_refused = streams[1].get_extra_info("sockname")[1], False
    try:
        if chance.random() < 0.3:
            is_refused = await is_turned_away(streams, chance)
        else:
            is_refused = await bends_a_flight(streams, chance, chance.choice(contexts))
    except ssl.SSLError:
        pass  # the client's own library refuses the response to the damaged flight
    except OSError:
        pass  # the broker has closed while more was sent
    finally:
        streams[1].close()
    return own, is_refused


async def is_served(port, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
    writer.write(ASK)
    assert await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
    writer.close()


def contexts_of(authority):
    """Returns contexts of clients with different versions, some with a certificate, one with a large first flight."""
    contexts = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for shows in (False, True):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.maximum_version = version
            authority.configure_trust(context)
            if shows:
                authority.issue_cert("client.example.org").configure_cert(context)
            contexts.append(context)
    contexts[-1].set_alpn_protocols(["x" * 250] * 200)
    return contexts


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def strangers(directory, total, logged):
    """Returns the growth of the process, and the CPU seconds of each quarter."""
    authority = trustme.CA()
    contexts = contexts_of(authority)
    server = Server(configs(directory, authority))
    await server.start()
    try:
        listeners = server.listeners[1:]
        ports = [each.port for each in listeners]
        spent, sizes, began = [], [], time.process_time()
        for first in range(0, total, AT_ONCE):
            seeds = range(first, first + AT_ONCE)
            seen = await asyncio.gather(*(a_stranger(ports, seed, contexts) for seed in seeds))
            async with asyncio.timeout(30):
                while any(each.connections for each in listeners):
                    await asyncio.sleep(0)
            check_lines(seen, logged)
            if (first + AT_ONCE) % (total // 4) < AT_ONCE:
                spent.append(time.process_time() - began)
                began = time.process_time()
                gc.collect()
                sizes.append(resident())
                await is_served(ports[0], authority)
                logged.clear()
        return sizes[-1] - sizes[0], spent
    finally:
        await server.stop()


def check_lines(seen, logged):
    """Checks for one line for each refused client, at most one for each that disconnected, and no other lines.

    The port of a client may be reused by another one.
    """
    lines = Counter(each.args[1] for each in logged if each.args and len(each.args) >= 2)
    assert len(logged) == sum(lines.values())
    strangers_at, refused_at = (
        Counter(port for port, _ in seen),
        Counter(port for port, is_refused in seen if is_refused),
    )
    for port, count in strangers_at.items():
        assert refused_at[port] <= lines[port] <= count
    assert not {each.levelname for each in logged} - {"INFO", "WARNING"}
    logged.clear()


@contextmanager
def records_of_the_server():
    """Yields the list of the records that the server logs.

    pytest would keep all of them until the test ends, which would count as growth. It adds its handlers to loggers that
    do not propagate when the call of the test begins, so this has to begin later.
    """
    logger, records = logging.getLogger("barnabas.server"), []
    before = logger.level, logger.propagate, logger.handlers
    handler = logging.Handler(logging.INFO)
    handler.emit = records.append
    logger.setLevel(logging.INFO)
    logger.propagate, logger.handlers = False, [handler]
    try:
        yield records
    finally:
        logger.setLevel(before[0])
        logger.propagate, logger.handlers = before[1:]


@pytest.mark.parametrize("total", [400, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_handshakes_over_a_socket(tmp_path, total):
    """Memory and time stay constant, and a valid client is served afterwards."""
    with records_of_the_server() as logged:
        growth, spent = asyncio.run(strangers(tmp_path, total, logged))
    assert growth < MOST_GROWTH
    if total >= 10_000:  # the CPU time of a few is too noisy
        assert max(spent[1:]) < 3 * min(spent), "each quarter costs about the same"
