"""Lists, moves, joins and deletes the files of one directory, on this machine or in a file system of Hadoop's.

Knows nothing of their content. Paths are relative to the directory, with slashes. A move is atomic where the file
system's rename is: POSIX and HDFS, but not object stores, which copy.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

HIDDEN = (".", "_")
"""First characters of names that readers of data sets (Spark, Hive, pyarrow) ignore."""


class Entry(NamedTuple):
    """A file that was listed."""

    path: str
    size: int  #: bytes
    modified: float  #: seconds since the epoch


class Files(Protocol):
    """A directory of files."""

    def uri(self, path: str) -> str:
        """Returns the URI by which Spark knows this path."""

    def list(self, path: str) -> list[Entry]:
        """Returns all files at any depth below this directory, sorted by path, without hidden ones.

        Returns none if there is no such directory.
        """

    def size(self, path: str) -> int:
        """Returns the size of one file in bytes."""

    def read(self, path: str) -> str | None:
        """Returns the text of a small file, or None if there is no such file."""

    def write(self, path: str, text: str) -> None:
        """Writes a small file, completely or not at all."""

    def move(self, source: str, target: str) -> None:
        """Renames a file and makes the target's directory; no file of the target's name may exist."""

    def delete(self, path: str) -> None:
        """Deletes a file, or a directory with all its content; does nothing if there is none."""

    def join(self, sources: Sequence[str], target: str, first: bytes = b"") -> None:
        """Writes a file that consists of `first` and then the bytes of these files, in their order."""


def files_at(location: str, spark: Any) -> Files:
    """Opens a directory, given as a path, a ``file:`` URI, or a URI of any file system that Spark knows."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        path = unquote(parts.path) if parts.scheme else location
        return LocalFiles(Path(path).absolute())
    return HadoopFiles(spark, location)


class LocalFiles:
    """A directory of this machine; every machine that runs Spark tasks must see it under the same path."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def uri(self, path: str) -> str:
        return f"file://{(self.root / path).as_posix()}"  # not percent-encoded: Hadoop does not decode

    def list(self, path: str) -> list[Entry]:
        return sorted(self._found(self.root / path))

    def _found(self, directory: Path) -> Iterator[Entry]:
        for folder, names, files in os.walk(directory):
            names[:] = [name for name in names if not name.startswith(HIDDEN)]
            for name in files:
                if not name.startswith(HIDDEN):
                    found = Path(folder, name)
                    try:
                        about = found.stat()
                    except FileNotFoundError:
                        continue  # another export or Spark's checkpoint has moved or deleted it meanwhile
                    yield Entry(found.relative_to(self.root).as_posix(), about.st_size, about.st_mtime)

    def size(self, path: str) -> int:
        return (self.root / path).stat().st_size

    def read(self, path: str) -> str | None:
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"_{target.name}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)

    def move(self, source: str, target: str) -> None:
        (self.root / target).parent.mkdir(parents=True, exist_ok=True)
        (self.root / source).rename(self.root / target)

    def delete(self, path: str) -> None:
        found = self.root / path
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)

    def join(self, sources: Sequence[str], target: str, first: bytes = b"") -> None:
        (self.root / target).parent.mkdir(parents=True, exist_ok=True)
        with (self.root / target).open("wb") as joined:
            joined.write(first)
            for source in sources:
                with (self.root / source).open("rb") as part:
                    shutil.copyfileobj(part, joined, 1 << 20)


class HadoopFiles:
    """A directory of HDFS, S3A, ABFS and the like, through the Hadoop file system that Spark writes with.

    The bytes of files stay in the JVM; only names and small texts are transferred to Python.
    """

    def __init__(self, spark: Any, root: str) -> None:
        self.root = root.rstrip("/")
        self._java = spark._jvm
        self._path = self._java.org.apache.hadoop.fs.Path
        self._settings = spark._jsc.hadoopConfiguration()
        self._files = self._path(self.root).getFileSystem(self._settings)
        self._whole_root = self._files.makeQualified(self._path(self.root)).toString().rstrip("/")

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}"

    def _at(self, path: str) -> Any:
        return self._path(self.uri(path))

    def list(self, path: str) -> list[Entry]:
        return sorted(self._found(self._at(path)))

    def _found(self, directory: Any) -> Iterator[Entry]:
        if not self._files.exists(directory):
            return
        for status in self._files.listStatus(directory):
            if status.getPath().getName().startswith(HIDDEN):
                continue
            if status.isDirectory():
                yield from self._found(status.getPath())
            else:
                whole = self._files.makeQualified(status.getPath()).toString()
                relative = whole.removeprefix(f"{self._whole_root}/")
                yield Entry(relative, status.getLen(), status.getModificationTime() / 1000)

    def size(self, path: str) -> int:
        return int(self._files.getFileStatus(self._at(path)).getLen())

    def read(self, path: str) -> str | None:
        if not self._files.exists(self._at(path)):
            return None
        with contextlib.closing(self._files.open(self._at(path))) as stream:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))

    def write(self, path: str, text: str) -> None:
        folder, _, name = path.rpartition("/")
        unfinished = f"{folder}/_{name}" if folder else f"_{name}"
        with contextlib.closing(self._files.create(self._at(unfinished), True)) as stream:
            stream.write(bytearray(text, "utf-8"))
        self.delete(path)
        self.move(unfinished, path)

    def move(self, source: str, target: str) -> None:
        self._files.mkdirs(self._at(target).getParent())
        if not self._files.rename(self._at(source), self._at(target)):
            raise OSError(f"{self.uri(source)} cannot be renamed to {self.uri(target)}")

    def delete(self, path: str) -> None:
        self._files.delete(self._at(path), True)

    def join(self, sources: Sequence[str], target: str, first: bytes = b"") -> None:
        with contextlib.closing(self._files.create(self._at(target), True)) as joined:
            joined.write(bytearray(first))
            for source in sources:
                with contextlib.closing(self._files.open(self._at(source))) as part:
                    self._java.org.apache.hadoop.io.IOUtils.copyBytes(part, joined, 1 << 20, False)
