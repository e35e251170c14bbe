"""``meta.properties``: the cluster and node that a log directory belongs to, and the directory's id.

Knows nothing of what else is in the directory. The file has version 1, as Apache Kafka writes it in KRaft mode
(KIP-631, KIP-858)::

    version=1
    cluster.id=EEW8mcVARWKGkGgikykpgw
    node.id=1
    directory.id=nVflAZdBIhFINRkTIXgx2g
"""

from typing import NamedTuple

from barnabas.log.files import Files
from barnabas.uuids import uuid_of, uuid_text

FILE_NAME = "meta.properties"


class MetaProperties(NamedTuple):
    """The content of the file."""

    cluster_id: str
    node_id: int
    directory_id: bytes


class InvalidMetaProperties(Exception):
    """The file cannot be parsed."""


def read(files: Files, directory: str) -> MetaProperties | None:
    """Returns the content of ``meta.properties`` in ``directory``; None when the file is missing.

    :raises InvalidMetaProperties: the file cannot be parsed
    :raises OSError: the file cannot be read
    """
    path = f"{directory}/{FILE_NAME}"
    try:
        lines = files.read(path).decode("latin-1").splitlines()
    except FileNotFoundError:
        return None
    entries = {}
    for line in lines:
        if not line.lstrip().startswith(("#", "!")) and "=" in line:
            name, value = line.split("=", 1)
            entries[name.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    if entries.get("version") != "1":
        raise InvalidMetaProperties(f"{path} has version {entries.get('version', 'none')}; only version 1 is supported")
    try:
        directory_id = uuid_of(entries["directory.id"]) if "directory.id" in entries else bytes(16)
        return MetaProperties(entries["cluster.id"], int(entries["node.id"]), directory_id)
    except (KeyError, ValueError) as error:
        raise InvalidMetaProperties(f"{path} cannot be parsed: {error}") from None


def write(files: Files, directory: str, properties: MetaProperties) -> None:
    """Writes the file and fsyncs it.

    :raises OSError: the file cannot be written
    """
    text = (
        f"version=1\ncluster.id={properties.cluster_id}\nnode.id={properties.node_id}\n"
        f"directory.id={uuid_text(properties.directory_id)}\n"
    )
    files.write_atomically(f"{directory}/{FILE_NAME}", text.encode(), sync=True)
