"""``barnabas replay``: sends the requests of a recording again, and compares the answers.

Knows nothing of how they are sent and compared.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import click

from barnabas.cli.client import config_option, read_properties
from barnabas.clock import SystemClock
from barnabas.config.validators import ConfigError
from barnabas.diagnosis import Address
from barnabas.errors import KafkaError
from barnabas.faults.subjects import fields_of
from barnabas.proxy.connecting import connect_by
from barnabas.replay.comparing import Difference
from barnabas.replay.player import Counts, Found, Player, Settings
from barnabas.replay.recorded import Event, RecordingError, read_recording
from barnabas.wire.frames import api_name, requests

DIFFERENT = 1


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--bootstrap-server", required=True, metavar="HOST:PORT", help="A broker of the cluster.")
@config_option
@click.option("--spacing", is_flag=True, help="Send requests at the recorded times. Default: as fast as possible.")
@click.option("--ignore", "ignored", multiple=True, metavar="NAME",
              help="Do not compare fields of this name, or answers of this API; may be repeated.")  # fmt: skip
@click.option("--patience", default=30.0, show_default=True, metavar="SECONDS",
              help="How much later than recorded a response may arrive.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each response that differs.")
def replay(
    file: str,
    bootstrap_server: str,
    command_config: str | None,
    spacing: bool,
    ignored: tuple[str, ...],
    patience: float,
    as_json: bool,
) -> int:
    """Send the requests of a recording again, and compare the answers with the recorded ones.

    FILE is of barnabas proxy --record. Ids, epochs and offsets of the recording become those of this cluster; times and
    addresses are not compared. The exit code is 1 if an answer differs.

    \b
    barnabas replay traffic.jsonl --bootstrap-server localhost:9092
    barnabas replay traffic.jsonl --bootstrap-server localhost:9092 --spacing --ignore error_message
    """
    properties = read_properties(command_config) if command_config else {}
    settings = Settings(spacing, patience, names_of(ignored))
    shown = Shown(as_json=as_json)

    def events() -> Iterator[Event]:
        with Path(file).open(encoding="utf-8") as lines:
            yield from read_recording(lines, file)

    async def play() -> Counts:
        connect = connect_by(properties, asyncio.get_running_loop(), Random())
        player = Player(events, Address.parse(bootstrap_server), connect, SystemClock(), settings, shown.show)
        await player.play()
        return player.counts

    try:
        counts = asyncio.run(play())
    except (OSError, ConfigError, KafkaError, RecordingError) as error:
        raise click.ClickException(str(error)) from None
    if not as_json:
        click.echo(summary(counts, shown.count))
    return DIFFERENT if shown.count else 0


def names_of(ignored: tuple[str, ...]) -> frozenset[str]:
    """Returns the names of --ignore. :raises click.UsageError: no answer has such a field, and there is no such API"""
    known = {field.name for request in requests().values() for field in fields_of(request.response)}
    known.update(map(api_name, requests().values()))
    for name in ignored:
        if name not in known:
            raise click.UsageError(f"--ignore: there is no field and no API {name!r}")
    return frozenset(ignored)


class Shown:
    """Prints differences; of responses that differ in the same way, only the first one in full."""

    def __init__(self, *, as_json: bool) -> None:
        self.count = 0
        self._as_json = as_json
        self._first: dict[str, str] = {}

    def show(self, found: Found) -> None:
        """Prints the differences of an answer."""
        self.count += 1
        if self._as_json:
            click.echo(json.dumps({"what": found.what, "differences": list(map(plain, found.differences))}))
            return
        lines = [f"{each.path} is {each.replayed!r}, was {each.recorded!r}" for each in found.differences]
        first = self._first.setdefault("\n".join(lines), found.what)
        for line in lines if first == found.what else [f"the same {len(lines)} as {first}"]:
            click.echo(f"{found.what}: {line}")


def plain(difference: Difference) -> dict[str, Any]:
    """Returns a difference as a JSON object."""
    return {"field": difference.path, "recorded": repr(difference.recorded), "replayed": repr(difference.replayed)}


def summary(counts: Counts, differing: int) -> str:
    """Returns a one-line summary of the replay."""
    words = [f"{counts.requests} requests sent, {counts.compared} answers compared, {differing} differ"]
    if counts.refused:
        words.append(f"{counts.refused} that a coordinator had refused were not sent")
    if counts.passing:
        words.append(f"{counts.passing} had retriable errors in the recording, and succeed now")
    if counts.withheld:
        words.append(f"{counts.withheld} requests with logins or secrets were left out")
    return "; ".join(words)
