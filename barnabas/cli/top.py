"""``barnabas top``: shows rates, lag and slow requests of brokers live in the terminal.

Knows nothing of how they are counted. It reads ``/metrics`` of one or more brokers.
"""

import sys
import time
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas.cli.output import show_json, show_table
from barnabas.cli.top_figures import Between, Row, Scrape, summed

if TYPE_CHECKING:
    from rich.console import Group

TIMEOUT_S: Final = 10

TABLES: Final = {
    "topics": "Topics, a second",
    "clients": "Clients, a second",
    "groups": "Lag of groups",
    "requests": "Slowest requests",
}


@click.command()
@click.option(
    "--url",
    "urls",
    metavar="URL",
    multiple=True,
    default=["http://127.0.0.1:9308"],
    show_default=True,
    help="A broker's barnabas.metrics.listener; may be given several times.",
)
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=2.0, show_default=True, help="Seconds between two scrapes."
)
@click.option("--rows", type=click.IntRange(min=1), default=10, show_default=True, help="The most rows of a table.")
@click.option("--once", is_flag=True, help="Print the figures of one interval, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all rows; without --once an object per line.")
def top(urls: Sequence[str], interval: float, rows: int, once: bool, as_json: bool) -> None:
    """Show the rates of topics and clients, the lag of groups, and the slowest requests of brokers, live.

    The brokers have to serve their metrics: `barnabas serve --metrics`.

    \b
    barnabas top
    barnabas top --url http://127.0.0.1:9308 --url http://127.0.0.1:9309
    barnabas top --once --json | jq .groups
    """
    before = scrape(urls)
    if once:
        time.sleep(interval)
        figures = Between(before, scrape(urls)).figures()
        if as_json:
            show_json(figures)
        else:
            show(figures, rows)
    elif as_json:
        follow(urls, before, interval)
    else:
        watch(urls, before, interval, rows)


def scrape(urls: Sequence[str]) -> Scrape:
    """Returns the samples of all brokers. :raises ClickException: one of them does not respond"""
    texts = []
    for url in urls:
        address = (url if "://" in url else f"http://{url}").rstrip("/").removesuffix("/metrics") + "/metrics"
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as response:
                texts.append(response.read().decode())
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise click.ClickException(
                f"Cannot read {address}: {reason}. Brokers show metrics where barnabas.metrics.listener says."
            ) from None
    try:
        return summed(time.monotonic(), texts)
    except ModuleNotFoundError as error:
        raise click.ClickException(f"This needs {error.name}: pip install 'barnabas[cli,metrics]'") from None
    except ValueError as error:
        raise click.ClickException(f"These are no metrics: {error}") from None


def follow(urls: Sequence[str], before: Scrape, interval: float) -> None:
    """Prints a JSON object for each interval, until the user stops it."""
    import json

    while True:
        time.sleep(interval)
        after = scrape(urls)
        click.echo(json.dumps(Between(before, after).figures()))
        sys.stdout.flush()
        before = after


def watch(urls: Sequence[str], before: Scrape, interval: float, rows: int) -> None:
    """Shows each interval in place of the previous one, until the user stops it."""
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            after = scrape(urls)
            live.update(screen(Between(before, after).figures(), rows), refresh=True)
            before = after


def show(figures: Row, rows: int) -> None:
    """Prints the figures once."""
    click.echo(headline(figures["brokers"]))
    for name, title in TABLES.items():
        found = [{key: readable(key, value) for key, value in row.items()} for row in figures[name][:rows]]
        click.echo()
        show_table(found, list(found[0]) if found else [], title=title)


def screen(figures: Row, rows: int) -> "Group":
    """Returns the figures as a rich renderable."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    drawn: list[Any] = [Text(headline(figures["brokers"]), style="bold")]
    for name, title in TABLES.items():
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, expand=True)
        found = figures[name][:rows]
        for column in found[0] if found else ():
            is_name = isinstance(found[0][column], str)
            table.add_column(
                column.replace("_", " ").upper(), justify="left" if is_name else "right", ratio=2 if is_name else 1
            )
        for row in found:
            table.add_row(*(Text(readable(key, value)) for key, value in row.items()))
        drawn.append(table if found else Text(f"{title}: none", style="dim"))
    return Group(*drawn)


def headline(brokers: Row) -> str:
    return (
        f"{brokers['requests']:,.0f} requests/s  {brokers['messages_in']:,.0f} records/s  "
        f"in {size(brokers['bytes_in'])}/s  out {size(brokers['bytes_out'])}/s  "
        f"{brokers['connections']} connections  CPU {brokers['cpu_percent']:.0f} %  "
        f"memory {size(brokers['memory_bytes'])}  loop {brokers['loop_lag_ms']:.0f} ms late"
        + (f"  {brokers['under_replicated']} under-replicated" if brokers["under_replicated"] else "")
    )


def readable(key: str, value: Any) -> str:
    """Returns a figure as readable text."""
    if value is None:
        return "-"
    if key.startswith("bytes"):
        return size(value)
    return value if isinstance(value, str) else f"{value:,}"


def size(count: float) -> str:
    """Returns a number of bytes with its unit: 1.5 MiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
