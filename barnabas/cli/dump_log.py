"""``barnabas dump-log``: prints the contents of files in a log directory, one line per row.

Knows nothing of the layouts, and needs no broker. It only reads, so the files may be those of a running broker.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.extras import is_missing
from barnabas.wire.plain import as_printable, text_or_hex

if TYPE_CHECKING:
    from barnabas.cli.dumping.rows import Row

DECODER_OPTIONS = {
    "offsets": "--offsets-decoder",
    "transactions": "--transaction-log-decoder",
    "metadata": "--cluster-metadata-decoder",
    "shares": "--share-group-state-decoder",
}
TOPICS = {
    "offsets": "__consumer_offsets",
    "transactions": "__transaction_state",
    "metadata": "__cluster_metadata",
    "shares": "__share_group_state",
}


def _decoder_option(name: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    text = f"Decode the records as those of {TOPICS[name]}."
    return click.option(DECODER_OPTIONS[name], "decoder", flag_value=name, help=text)


@click.command("dump-log")
@click.argument("paths", nargs=-1, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--files", help="The files, separated by commas, as in kafka-dump-log.")
@click.option("--print-data", "--print-data-log", "print_data", is_flag=True, help="Print keys, values and headers.")
@click.option("--deep", "--deep-iteration", "deep", is_flag=True, help="Print the records of each batch.")
@_decoder_option("offsets")
@_decoder_option("transactions")
@_decoder_option("metadata")
@_decoder_option("shares")
@click.option("--max-messages", type=click.IntRange(1), help="Stop after this many records of a log.")
@click.option("--max-bytes", type=click.IntRange(1), help="Stop after this many bytes of a log.")
@click.option("--show-secrets", is_flag=True, help="Print SCRAM credentials and passwords of metadata records.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
def dump_log(
    paths: tuple[Path, ...],
    files: str | None,
    print_data: bool,
    deep: bool,
    decoder: str | None,
    max_messages: int | None,
    max_bytes: int | None,
    show_secrets: bool,
    as_json: bool,
) -> int:
    """Print the contents of segments, indexes, snapshots and checkpoints, or of all files in a directory.

    With --print-data, the records of internal topics are decoded. The name of the directory selects the decoder, unless
    a decoder option is given. Damage is printed where it is found, and the exit code is 1.

    \b
    barnabas dump-log data/orders-0/00000000000000000000.log --print-data
    barnabas dump-log data/__consumer_offsets-3 --print-data | grep billing
    """
    wanted = [*paths, *(Path(name) for name in (files or "").split(",") if name)]
    if not wanted:
        raise click.UsageError("There is no file to show.")
    try:
        from barnabas.cli.dumping import logs
    except ModuleNotFoundError as error:
        raise is_missing(error) from None
    options = logs.Options(
        deep or print_data or decoder is not None, print_data, decoder, max_messages, max_bytes, show_secrets
    )
    is_damaged = False
    try:
        for path in _files(wanted):
            for row in _rows_of(path, options):
                is_damaged |= row.is_damage
                click.echo(as_line(row, path) if as_json else as_text(row))
    except BrokenPipeError:
        raise  # such as ``| head``; click handles it
    except OSError as error:
        raise click.ClickException(str(error)) from None
    return int(is_damaged)


def _files(wanted: list[Path]) -> Iterator[Path]:
    from barnabas.cli.dumping.files import files_in

    for path in wanted:
        if path.is_dir():
            yield from files_in(path)
        else:
            yield path


def _rows_of(path: Path, options: Any) -> "Iterator[Row]":
    from barnabas.cli.dumping.files import LOG_LIKE, decoder_of, kind_of, rows
    from barnabas.cli.dumping.rows import Row, Source

    kind = kind_of(path)
    if kind is None:
        raise click.ClickException(f"{path} is not a file of a log directory, by its name")
    if kind in LOG_LIKE and options.print_data and options.decoder is None:
        options = options._replace(decoder=decoder_of(path))
    with Source(path) as source:
        yield Row("file", {"path": str(path), "type": kind, "size": source.size})
        yield from rows(source, kind, options)


# ---------------------------------------------------------------- output


def as_text(row: "Row") -> str:
    """Returns ``kind name=value name=value``: text in quotes, other bytes in hexadecimal, ``-`` for None."""
    words = [f"{name}={_word(value)}" for name, value in row.fields.items()]
    return f"{'  ' * row.depth}{row.kind} {' '.join(words)}".rstrip()


def _word(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        text = as_printable(value)
        return f"0x{value.hex()}" if text is None else json.dumps(text, ensure_ascii=False)
    if isinstance(value, str):
        return value if value and value.isascii() and not set(value) & set(' "\\=\n\t\r') else json.dumps(value)
    if isinstance(value, dict | list):
        return json.dumps(_for_json(value), ensure_ascii=False, separators=(",", ":"))
    return str(value)


def as_line(row: "Row", path: Path) -> str:
    """Returns the row as a JSON object on one line. Bytes that are not text become ``{"hex": …}``."""
    return json.dumps({"kind": row.kind, "file": str(path), **_for_json(row.fields)}, ensure_ascii=False)


def _for_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return text_or_hex(value)
    if isinstance(value, dict):
        return {str(name): _for_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_for_json(each) for each in value]
    return value
