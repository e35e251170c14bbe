"""``barnabas reassign``, with the options and the output of kafka-reassign-partitions.

Knows nothing of the broker's internals; it uses an admin client.
"""

import functools
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from barnabas.cli import reassignments
from barnabas.cli.client import Cluster, bootstrap_option_named, check_code, cluster_options
from barnabas.cli.reassignments import Directories, Ongoing, Partition, Replica, Replicas, Wanted, name_of, names_of
from barnabas.cluster.controller.placement import place
from barnabas.cluster.image.image import BrokerImage
from barnabas.errors import KafkaError

POLL_S = 0.2

EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
PERIODICALLY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)
NO_RACKS = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment "
    "without rack information."
)


@click.command()
@click.option("--generate", "action", flag_value="generate", help="Propose new replicas for topics.")
@click.option("--execute", "action", flag_value="execute", help="Start the reassignment of the file.")
@click.option("--verify", "action", flag_value="verify", help="Show the progress; when complete, remove the throttles.")
@click.option("--cancel", "action", flag_value="cancel", help="Cancel the reassignment of the file.")
@click.option("--list", "action", flag_value="list", help="List all partitions that are being reassigned.")
@click.option("--reassignment-json-file", "file", metavar="FILE", help="The partitions and their new replicas.")
@click.option("--topics-to-move-json-file", "topics_file", metavar="FILE", help="The topics, with --generate.")
@click.option("--broker-list", "brokers", metavar="ID[,...]", help="The brokers to move to, with --generate.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore racks, with --generate.")
@click.option(
    "--replication-factor", "factor", type=click.IntRange(1), metavar="N",
    help="The number of replicas, with --generate. By default as many as there are.",
)  # fmt: skip
@click.option("--throttle", type=int, help="The bytes per second between brokers, with --execute.")
@click.option(
    "--replica-alter-log-dirs-throttle", "log_dirs_throttle", type=int,
    help="The bytes per second between log directories, with --execute.",
)  # fmt: skip
@click.option("--timeout", type=int, help="How long --execute waits for moves between directories to begin, in ms.")
@click.option(
    "--additional", is_flag=True, help="Execute although other reassignments are in progress, or change their throttle."
)
@click.option("--preserve-throttles", is_flag=True, help="Do not remove the throttles.")
@click.option(
    "--disallow-replication-factor-change", is_flag=True, help="Refuse a change of the number of replicas (KIP-860)."
)
@click.option("--wait", is_flag=True, help="Wait until the reassignment is complete, with --verify.")
@functools.partial(cluster_options, bootstrap=bootstrap_option_named("--bootstrap-server"))
def reassign(cluster: Cluster, action: str | None, **given: Any) -> None:
    """Move partitions to other brokers and log directories.

    \b
    barnabas reassign --generate --topics-to-move-json-file topics.json --broker-list 1,2,3
    barnabas reassign --execute --reassignment-json-file moves.json --throttle 10000000
    barnabas reassign --verify --reassignment-json-file moves.json --wait
    """
    if action is None:
        raise click.UsageError(
            f"Command must include exactly one action: {', '.join(f'--{name}' for name in _ACTIONS)}"
        )
    run, needed, allowed = _ACTIONS[action]
    for name in needed:
        if given[name] is None:
            raise click.UsageError(f'Missing required argument "[{_OPTIONS[name]}]"')
    for name, option in _OPTIONS.items():
        if given[name] not in (None, False) and name not in (*needed, *allowed):
            raise click.UsageError(f'Option "[{option}]" can\'t be used with action "[{action}]"')
    with cluster.admin() as admin:
        run(admin, **{name: given[name] for name in (*needed, *allowed)})


# ------------------------------------------------------------------ generate


def _generate(admin: Any, topics_file: str, brokers: str, disable_rack_aware: bool, factor: int | None) -> None:
    topics = [str(each.get("topic")) for each in reassignments.read_json(topics_file, "topics")]
    try:
        wanted = [int(broker) for broker in brokers.split(",")]
    except ValueError:
        raise click.UsageError(f"--broker-list is {brokers!r}, but must be like 1,2,3") from None
    _check_no_duplicates("Broker list", list(map(str, wanted)))
    _check_no_duplicates("List of topics to reassign", topics)
    current = reassignments.replicas_of(admin, topics)
    racks = {broker: rack for broker, rack in reassignments.broker_racks(admin).items() if broker in wanted}
    if disable_rack_aware:
        racks = dict.fromkeys(racks)
    elif 0 < sum(rack is None for rack in racks.values()) < len(racks):
        raise click.ClickException(NO_RACKS)
    click.echo(f"Current partition replica assignment\n{_json_of(admin, current)}\n")
    proposed = reassignments.reassignment_json(_proposed(current, racks, factor), {})
    click.echo(f"Proposed partition reassignment configuration\n{proposed}")


def _check_no_duplicates(what: str, items: Sequence[str]) -> None:
    twice = sorted({item for item in items if items.count(item) > 1})
    if twice:
        raise click.ClickException(f"{what} contains duplicate entries: {', '.join(twice)}")


def _proposed(current: Replicas, racks: Mapping[int, str | None], factor: int | None) -> dict[Partition, Sequence[int]]:
    """Returns new replicas for each topic, by default as many as its first partition has."""
    images = {broker: BrokerImage(broker, 0, b"", {}, rack, fenced=False) for broker, rack in racks.items()}
    proposed: dict[Partition, Sequence[int]] = {}
    for topic in sorted({topic for topic, _ in current}):
        counts = [len(replicas) for (name, _), replicas in sorted(current.items()) if name == topic]
        try:
            placed = place(images, len(counts), factor or counts[0], random.Random())
        except KafkaError as error:
            raise click.ClickException(str(error)) from None
        proposed.update({(topic, index): replicas for index, replicas in enumerate(placed)})
    return proposed


def _json_of(admin: Any, replicas: Replicas) -> str:
    """Returns replicas and their log directories as a ``--reassignment-json-file``."""
    wanted = [(*partition, broker) for partition, brokers in replicas.items() for broker in brokers]
    found = reassignments.log_dirs_of(admin, wanted)
    log_dirs = {replica: each.current for replica, each in found.items() if each.current is not None}
    return reassignments.reassignment_json(replicas, log_dirs)


# ------------------------------------------------------------------ execute


def _execute(
    admin: Any,
    file: str,
    throttle: int | None,
    log_dirs_throttle: int | None,
    timeout: int | None,
    additional: bool,
    disallow_replication_factor_change: bool,
) -> None:
    wanted = reassignments.read_reassignment(file)
    ongoing = reassignments.ongoing_reassignments(admin)
    if ongoing and not additional:
        raise click.ClickException(EXISTING)
    live = reassignments.broker_racks(admin)
    for broker in (broker for replicas in wanted.partitions.values() for broker in replicas):
        if broker not in live:
            raise click.ClickException(f"Unknown broker id {broker}")
    all_current = reassignments.replicas_of(admin, {topic for topic, _ in wanted.partitions})
    missing = [partition for partition in wanted.partitions if partition not in all_current]
    if missing:
        raise click.ClickException(f"Unable to find partition: {', '.join(map(name_of, missing))}")
    current = {partition: all_current[partition] for partition in wanted.partitions}
    click.echo(
        f"Current partition replica assignment\n\n{_json_of(admin, current)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    _throttle(admin, wanted, ongoing, current, throttle, log_dirs_throttle)
    errors = reassignments.alter_reassignments(
        admin, dict(wanted.partitions), may_change_factor=not disallow_replication_factor_change
    )
    if errors:
        lines = "\n".join(f"{name_of(partition)}: {message}" for partition, message in sorted(errors.items()))
        click.echo(f"Error reassigning partition(s):\n{lines}")
        raise click.exceptions.Exit(1)
    click.echo(f"Successfully started partition reassignment{_s(wanted.partitions)} for {names_of(wanted.partitions)}")
    if wanted.log_dirs:
        _move(admin, wanted.log_dirs, 10_000 if timeout is None else timeout)


def _throttle(
    admin: Any,
    wanted: Wanted,
    ongoing: Mapping[Partition, Ongoing],
    current: Replicas,
    throttle: int | None,
    log_dirs_throttle: int | None,
) -> None:
    if throttle is None and log_dirs_throttle is None:
        return
    click.echo(PERIODICALLY)
    if throttle is not None:
        moves = reassignments.moves_of(ongoing, wanted.partitions, current)
        reassignments.alter_topic_throttles(admin, reassignments.throttled_replicas(moves))
        brokers = {broker for move in moves.values() for broker in move.sources | move.destinations}
        rates = {reassignments.LEADER_RATE: str(throttle), reassignments.FOLLOWER_RATE: str(throttle)}
        reassignments.alter_broker_throttles(admin, brokers, rates)
        click.echo(f"The inter-broker throttle limit was set to {throttle} B/s")
    if log_dirs_throttle is not None:
        brokers = {broker for _, _, broker in wanted.log_dirs}
        reassignments.alter_broker_throttles(admin, brokers, {reassignments.LOG_DIR_RATE: str(log_dirs_throttle)})
        click.echo(f"The replica-alter-dir throttle limit was set to {log_dirs_throttle} B/s")


def _move(admin: Any, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    """Asks the brokers to move replicas to directories; retries while a replica does not exist yet."""
    deadline = time.monotonic() + timeout_ms / 1000
    pending = dict(wanted)
    while True:
        pending = _refused_moves(admin, pending)
        if not pending:
            return
        if time.monotonic() > deadline:
            raise click.ClickException(
                f"Timed out before log directory move{_s(pending)} could be started for: "
                f"{','.join(map(_replica_name, sorted(pending)))}"
            )
        time.sleep(POLL_S)


def _refused_moves(admin: Any, wanted: Mapping[Replica, str]) -> dict[Replica, str]:
    results = admin.alter_replica_log_dirs(dict(sorted(wanted.items())))
    refused = {tuple(replica) for replica, result in results.items() if result.errno}
    for (topic, partition, broker), directory in sorted(wanted.items()):
        if (topic, partition, broker) not in refused:
            click.echo(
                f"Successfully started moving log directory to {directory} for replica {topic}-{partition} with broker "
                f"{broker}"
            )
    return {replica: directory for replica, directory in wanted.items() if replica in refused}


# ------------------------------------------------------------------ verify


def _verify(admin: Any, file: str, preserve_throttles: bool, wait: bool) -> None:
    wanted = reassignments.read_reassignment(file)
    if wait:
        _wait(admin, wanted)
    ongoing = reassignments.ongoing_reassignments(admin)
    click.echo("Status of partition reassignment:")
    current = _replicas_now(admin, wanted)
    for partition, replicas in sorted(wanted.partitions.items()):
        click.echo(_state(partition, replicas, current.get(partition, []), is_ongoing=partition in ongoing))
    moves = reassignments.log_dirs_of(admin, wanted.log_dirs)
    states = [_move_state(replica, target, moves.get(replica)) for replica, target in sorted(wanted.log_dirs.items())]
    click.echo("\n".join(text for text, _ in states))
    if not ongoing and not any(is_moving for _, is_moving in states) and not preserve_throttles:
        _clear_throttles(admin, wanted)


def _replicas_now(admin: Any, wanted: Wanted) -> dict[Partition, list[int]]:
    existing = set(admin.list_topics())
    topics = {topic for topic, _ in wanted.partitions} & existing
    return reassignments.replicas_of(admin, topics) if topics else {}


def _state(partition: Partition, target: Sequence[int], current: Sequence[int], *, is_ongoing: bool) -> str:
    if is_ongoing:
        return f"Reassignment of partition {name_of(partition)} is still in progress."
    if list(current) == list(target):
        return f"Reassignment of partition {name_of(partition)} is completed."
    return (
        f"There is no active reassignment of partition {name_of(partition)}, but replica set is {_ids(current)} rather "
        f"than {_ids(target)}."
    )


def _move_state(replica: Replica, target: str, found: Directories | None) -> tuple[str, bool]:
    """Returns the state of the move of a replica, and whether it is in progress."""
    topic, index, broker = replica
    this = f"Partition {topic}-{index}"
    if found is None:
        return (
            f"{this} is not found in any live log dir on broker {broker}. There is likely an offline log directory on "
            "the broker.",
            False,
        )
    if found.future == target:
        return f"Reassignment of replica {_replica_name(replica)} is still in progress.", True
    if found.future is not None:
        return f"{this} on broker {broker} is being moved to log dir {found.future} instead of {target}.", True
    if found.current == target:
        return f"Reassignment of replica {_replica_name(replica)} completed successfully.", False
    return f"{this} on broker {broker} is not being moved from log dir {found.current} to {target}.", False


def _wait(admin: Any, wanted: Wanted) -> None:
    """Waits until no reassignment of the file is in progress, and shows how many partitions are complete."""
    from rich.console import Console
    from rich.progress import Progress

    total = len(wanted.partitions) + len(wanted.log_dirs)
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("Reassigning", total=total)
        while True:
            ongoing = wanted.partitions.keys() & reassignments.ongoing_reassignments(admin).keys()
            moves = reassignments.log_dirs_of(admin, wanted.log_dirs) if wanted.log_dirs else {}
            moving = [replica for replica, each in moves.items() if each.future is not None]
            progress.update(task, completed=total - len(ongoing) - len(moving))
            if not ongoing and not moving:
                return
            time.sleep(POLL_S)


def _clear_throttles(admin: Any, wanted: Wanted) -> None:
    assigned = {broker for replicas in wanted.partitions.values() for broker in replicas}
    brokers = sorted(assigned | reassignments.broker_racks(admin).keys())
    click.echo(f"Clearing broker-level throttles on broker{_s(brokers)} {_ids(brokers)}")
    reassignments.alter_broker_throttles(admin, brokers, dict.fromkeys(reassignments.BROKER_THROTTLES))
    topics = sorted({topic for topic, _ in wanted.partitions})
    click.echo(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    reassignments.alter_topic_throttles(
        admin, {topic: dict.fromkeys(reassignments.TOPIC_THROTTLES) for topic in topics}
    )


# ------------------------------------------------------------------ cancel, list


def _cancel(admin: Any, file: str, preserve_throttles: bool) -> None:
    wanted = reassignments.read_reassignment(file)
    active = wanted.partitions.keys() & reassignments.ongoing_reassignments(admin).keys()
    if active:
        errors = reassignments.alter_reassignments(admin, dict.fromkeys(active))
        if errors:
            lines = "\n".join(f"{name_of(partition)}: {message}" for partition, message in sorted(errors.items()))
            click.echo(f"Error cancelling partition reassignment{_s(errors)} for:\n{lines}")
            raise click.exceptions.Exit(1)
        click.echo(f"Successfully cancelled partition reassignment{_s(active)} for: {names_of(active)}")
    else:
        click.echo("None of the specified partition reassignments are active.")
    found = reassignments.log_dirs_of(admin, wanted.log_dirs) if wanted.log_dirs else {}
    moving = {replica: each.current for replica, each in found.items() if each.future and each.current}
    if moving:
        for result in admin.alter_replica_log_dirs(dict(sorted(moving.items()))).values():
            check_code(result.errno)
    else:
        click.echo("None of the specified partition moves are active.")
    if not preserve_throttles:
        _clear_throttles(admin, wanted)


def _list(admin: Any) -> None:
    ongoing = reassignments.ongoing_reassignments(admin)
    if not ongoing:
        click.echo("No partition reassignments found.")
        return
    click.echo("Current partition reassignments:")
    for partition, each in sorted(ongoing.items()):
        adding = f" adding: {_ids(each.adding)}." if each.adding else ""
        removing = f" removing: {_ids(each.removing)}." if each.removing else ""
        click.echo(f"{name_of(partition)}: replicas: {_ids(each.replicas)}.{adding}{removing}")


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def _replica_name(replica: Replica) -> str:
    return "-".join(map(str, replica))


def _s(items: Any) -> str:
    return "" if len(items) == 1 else "s"


_OPTIONS = {
    "file": "reassignment-json-file",
    "topics_file": "topics-to-move-json-file",
    "brokers": "broker-list",
    "disable_rack_aware": "disable-rack-aware",
    "factor": "replication-factor",
    "throttle": "throttle",
    "log_dirs_throttle": "replica-alter-log-dirs-throttle",
    "timeout": "timeout",
    "additional": "additional",
    "preserve_throttles": "preserve-throttles",
    "disallow_replication_factor_change": "disallow-replication-factor-change",
    "wait": "wait",
}

_EXECUTE = ("throttle", "log_dirs_throttle", "timeout", "additional", "disallow_replication_factor_change")

#: Each action with the options that it needs, and those that it allows.
_ACTIONS: dict[str, tuple[Callable[..., None], tuple[str, ...], tuple[str, ...]]] = {
    "generate": (_generate, ("topics_file", "brokers"), ("disable_rack_aware", "factor")),
    "execute": (_execute, ("file",), _EXECUTE),
    "verify": (_verify, ("file",), ("preserve_throttles", "wait")),
    "cancel": (_cancel, ("file",), ("preserve_throttles",)),
    "list": (_list, (), ()),
}
