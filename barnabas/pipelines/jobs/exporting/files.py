"""The files of one directory, on this machine or wherever Hadoop's file systems reach: list, move, join, delete.

Knows nothing of what is in them. Paths are relative to the directory, with slashes; a move is atomic where the file
system's rename is (POSIX, HDFS; an object store copies).
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

HIDDEN = (".", "_")
"""Names that readers of data sets leave out: Spark, Hive, pyarrow."""


class Entry(NamedTuple):
    """A file; `modified` in seconds since the epoch."""

    path: str
    size: int
    modified: float


class Files(Protocol):
    """A directory of files."""

    def uri(self, path: str) -> str:
        """What Spark calls this path."""

    def list(self, path: str) -> list[Entry]:
        """All files below it, however deep, in order of their paths, but for hidden ones; none if there is no such
        directory."""

    def read(self, path: str) -> str | None:
        """The text of a small file; None if it is not there."""

    def write(self, path: str, text: str) -> None:
        """Put a small file there, in full or not at all."""

    def move(self, source: str, target: str) -> None:
        """Rename a file into a directory that may not be there yet; nothing else of that name may be there."""

    def delete(self, path: str) -> None:
        """Take away a file, or a directory with all that is in it; it may be gone already."""

    def join(self, sources: Sequence[str], target: str, first: bytes = b"") -> None:
        """Write a file of `first` and then the bytes of these files, in their order."""


def files_at(location: str, spark: Any) -> Files:
    """The directory `location`: a path, a ``file:`` URI, or a URI of any file system that Spark knows."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        path = unquote(parts.path) if parts.scheme else location
        return LocalFiles(Path(path).absolute())
    return HadoopFiles(spark, location)


class LocalFiles:
    """A directory that this machine sees (and each that runs tasks of Spark's must see it under the same path)."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def uri(self, path: str) -> str:
        return f"file://{(self.root / path).as_posix()}"  # Hadoop would take per cent signs as they are

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
                        continue  # an export or Spark's checkpoint beside it moves and deletes files meanwhile
                    yield Entry(found.relative_to(self.root).as_posix(), about.st_size, about.st_mtime)

    def size(self, path: str) -> int:
        """Of one file."""
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
    """A directory of HDFS, S3A, ABFS and the like, by the file system that Spark itself writes with.

    Bytes stay in the Java virtual machine: only names and small texts come over.
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
            raise OSError(f"{self.uri(source)} could not be renamed to {self.uri(target)}")

    def delete(self, path: str) -> None:
        self._files.delete(self._at(path), True)

    def join(self, sources: Sequence[str], target: str, first: bytes = b"") -> None:
        with contextlib.closing(self._files.create(self._at(target), True)) as joined:
            joined.write(bytearray(first))
            for source in sources:
                with contextlib.closing(self._files.open(self._at(source))) as part:
                    self._java.org.apache.hadoop.io.IOUtils.copyBytes(part, joined, 1 << 20, False)
