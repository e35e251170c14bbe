"""``kafka-metadata-shell``: shows a snapshot, or a segment of the metadata log, as a tree of directories and files.

Knows nothing of what the tree holds. The commands and their output are those of Apache Kafka's ``MetadataShell``;
without a command it reads them from standard input.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NoReturn

from barnabas.cli.kafka_tools.metadata_tree import Directory, Node, tree_of
from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.quorum.client import CommittedBatch
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.quorum.record_batches import decode_batches
from barnabas.errors import KafkaError, MalformedMessage

PROMPT: Final = ">> "
HELP: Final = {
    "cat": "Show the contents of metadata files.",
    "cd": "Set the current working directory.",
    "exit": "Exit the metadata shell.",
    "find": "Search for nodes in the directory hierarchy.",
    "help": "Display this help message.",
    "ls": "List metadata nodes.",
    "pwd": "Print the current working directory.",
    "quit": "Exit the metadata shell.",
    "tree": "Show the contents of metadata nodes in a tree structure.",
}
COMMANDS: Final = ("cat", "find", "ls", "tree")
"""Those that the arguments of a call may name; the others are for the lines of standard input."""
NEED_TARGETS: Final = ("cat", "tree")

Found = tuple[str, Node]
"""A node with the last part of its path."""


class _Parser(argparse.ArgumentParser):
    """Apache Kafka's tool exits with 1 where Python's parser would with 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.format_usage()}{self.prog}: error: {message}\n")


def metadata_shell(arguments: Sequence[str]) -> int:
    """``kafka-metadata-shell``."""
    parser = _Parser("kafka-metadata-shell", description="The Apache Kafka metadata shell", allow_abbrev=False)
    parser.add_argument("--snapshot", "-s", required=True, type=Path, help="The metadata snapshot file to read.")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="The command to run.")
    try:
        given = parser.parse_args(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        shell = Shell(read(given.snapshot))
    except (OSError, KafkaError, MalformedMessage, MetadataLogError) as error:
        sys.stderr.write(f"Unexpected error: {error}\n")
        return 1
    if not given.command:
        shell.follow(sys.stdin.isatty())
    elif given.command[0] in COMMANDS:
        _print(shell.run(given.command))
    else:
        choices = ", ".join(f"'{each}'" for each in COMMANDS)
        sys.stdout.write(f"invalid choice: '{given.command[0]}' (choose from {choices})\n")
    return 0


def read(path: Path) -> Directory:
    """Returns the tree of a snapshot's image, or of that after a segment which begins with the log.

    :raises OSError: the file cannot be read
    :raises KafkaError, MalformedMessage: it is damaged
    :raises MetadataLogError: its records need others before them
    """
    loader = MetadataLoader()
    loader.committed(
        [CommittedBatch.of(each) for each in decode_batches(path.read_bytes()) if not each.batch.is_control]
    )
    return tree_of(loader.image, loader.last_timestamp)


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


class Shell:
    """The commands, over a tree; relative paths begin at :attr:`directory`."""

    def __init__(self, root: Directory) -> None:
        self.root = root
        self.directory: list[str] = []
        self._commands: dict[str, Callable[[Sequence[str]], Iterator[str]]] = {
            "cat": self._cat, "cd": self._cd, "find": self._find, "help": self._help, "ls": self._ls, "pwd": self._pwd,
            "tree": self._tree,
        }  # fmt: skip

    def follow(self, is_terminal: bool) -> None:
        """Runs the commands of standard input, up to its end or ``exit``."""
        if is_terminal:
            import readline  # noqa: F401 - lines can be edited
        sys.stdout.write("[ Kafka Metadata Shell ]\n")
        while True:
            try:
                words = shlex.split(input(PROMPT))
            except EOFError:
                return
            except ValueError as error:
                sys.stdout.write(f"{error}\n")
                continue
            if words and words[0] in ("exit", "quit"):
                return
            if words:
                _print(self.run(words))

    def run(self, words: Sequence[str]) -> Iterator[str]:
        """Yields the lines of a command's output."""
        name, *targets = words
        command = self._commands.get(name)
        if command is None:
            yield f"Unknown command: {name}. Type help for a list."
        elif name in NEED_TARGETS and not targets:
            yield "too few arguments"
        else:
            yield from command(targets)

    # ------------------------------------------------------------ commands

    def _cat(self, targets: Sequence[str]) -> Iterator[str]:
        for target in targets:
            found = self._visit(target)
            if not found:
                yield f"cat: {target}: No such file or directory."
            for _, node in found:
                yield node if isinstance(node, str) else f"cat: {target}: Is a directory"

    def _tree(self, targets: Sequence[str]) -> Iterator[str]:
        for target in targets:
            found = self._visit(target)
            if not found:
                yield f"tree: {target}: No such file or directory."
            for _, node in found:
                yield from _printed(node, "")

    def _find(self, targets: Sequence[str]) -> Iterator[str]:
        for target in targets or ["."]:
            found = self._visit(target)
            if not found:
                yield f"find: {target}: no such file or directory."
            for _, node in found:
                yield from _paths(target, node)

    def _ls(self, targets: Sequence[str]) -> Iterator[str]:
        files, directories = list[str](), list[tuple[str, Directory]]()
        for target in targets or ["."]:
            found = self._visit(target)
            if not found:
                yield f"ls: {target}: no such file or directory."
            for name, node in found:
                if isinstance(node, str):
                    files.append(name)
                else:
                    directories.append((name, node))
        yield from files
        has_names, is_first = bool(files) or len(directories) > 1, not files
        for name, directory in directories:
            if has_names and directory:
                yield f"{name}:" if is_first else f"\n{name}:"
            is_first = is_first and not has_names
            yield from sorted(directory)

    def _cd(self, targets: Sequence[str]) -> Iterator[str]:
        target = targets[0] if targets else "/"
        found = self._visit(target)
        if len(found) != 1:
            yield f"cd: {target}: no such file or directory."
        elif isinstance(found[0][1], str):
            yield f"cd: {target}: not a directory."
        else:
            self.directory = self._parts(target)

    def _pwd(self, targets: Sequence[str]) -> Iterator[str]:
        yield "/" + "/".join(self.directory)

    def _help(self, targets: Sequence[str]) -> Iterator[str]:
        yield "Welcome to the Apache Kafka metadata shell."
        yield ""
        for name, text in HELP.items():
            yield f"{name:<8}{text}"

    # ------------------------------------------------------------ paths

    def _parts(self, path: str) -> list[str]:
        parts = [] if path.startswith("/") else list(self.directory)
        for part in path.split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        return parts

    def _visit(self, path: str) -> list[Found]:
        """Returns the nodes of a path, in which ``*``, ``?`` and ``{a,b}`` stand for names."""
        found: list[Found] = [("/", self.root)]
        for part in self._parts(path):
            found = list(chain.from_iterable(_children(node, part) for _, node in found))
        return found


def _children(node: Node, part: str) -> Iterator[Found]:
    if isinstance(node, str):
        return
    if not set(part) & set("*?{"):
        if part in node:
            yield part, node[part]
        return
    matches = re.compile(_pattern(part)).fullmatch
    yield from ((name, node[name]) for name in sorted(node) if matches(name))


def _pattern(part: str) -> str:
    """Returns the regular expression of a glob."""
    words, is_open = "", False
    for char in part:
        if char == "{" and not is_open:
            words, is_open = f"{words}(?:", True
        elif char == "}" and is_open:
            words, is_open = f"{words})", False
        elif char == "," and is_open:
            words += "|"
        else:
            words += {"*": ".*", "?": "."}.get(char) or re.escape(char)
    return words if not is_open else re.escape(part)


def _printed(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, str):
        yield indent + node
        return
    for name in sorted(node):
        yield f"{indent}{name}:"
        yield from _printed(node[name], f"{indent}  ")


def _paths(path: str, node: Node) -> Iterator[str]:
    yield path
    if not isinstance(node, str):
        for name in sorted(node):
            yield from _paths(f"{path}{name}" if path == "/" else f"{path}/{name}", node[name])
