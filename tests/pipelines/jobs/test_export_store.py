"""An export's batches are written to a directory exactly once, with a failure at each step."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.pipelines.jobs.exporting.claims import Claim, claim, noted_partitions
from barnabas.pipelines.jobs.exporting.files import LocalFiles
from barnabas.pipelines.jobs.exporting.layout import Layout
from barnabas.pipelines.jobs.exporting.merging import Limits
from barnabas.pipelines.jobs.exporting.store import Store

LAYOUT = Layout("1f0c99aa-0000-4000-8000-000000000000", ".txt")
LIMITS = Limits(target_bytes=12, wait_seconds=60)
SCHEMA, ANOTHER = "a schema", "another schema"


class Killed(BaseException):
    """A kill, which no code catches."""


class Faulty(LocalFiles):
    """Files whose process is killed before, or in the middle of, its n-th change."""

    def __init__(self, root: Path, changes: int, *, looked: Callable[[], None] = lambda: None) -> None:
        super().__init__(root)
        self.left, self.looked = changes, looked

    def spend(self) -> None:
        self.looked()
        if self.left == 0:
            raise Killed
        self.left -= 1

    def write(self, path: str, text: str) -> None:
        self.spend()
        super().write(path, text)

    def move(self, source: str, target: str) -> None:
        self.spend()
        assert not (self.root / target).exists()
        super().move(source, target)

    def delete(self, path: str) -> None:
        self.spend()
        for entry in self.list(path)[:1]:
            (self.root / entry.path).unlink()  # files of a directory are deleted one by one
        self.spend()
        super().delete(path)

    def join(self, sources: Sequence[str], target: str, first: bytes = b"") -> None:
        self.spend()
        super().join(sources[:1], target, first)
        self.spend()
        super().join(sources, target, first)


def test_a_file_that_goes_while_files_are_listed_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")  # found, and no more there when it is looked at
    assert [entry.path for entry in LocalFiles(tmp_path).list("")] == ["there"]


def visible(root: Path) -> list[str]:
    """Returns every record that a reader of the directory finds."""
    files = [path for path in root.rglob("*.txt") if "_barnabas" not in path.parts]
    return sorted(itertools.chain.from_iterable(path.read_text().splitlines() for path in files))


def held(root: Path) -> list[str]:
    files = (root / LAYOUT.held).rglob("*.part")
    return sorted(itertools.chain.from_iterable(path.read_text().splitlines() for path in files))


def records(batch: int) -> dict[str, list[str]]:
    """Returns the records of a batch, by directory; some of them are large."""
    return {
        f"date={day}": [f"{batch}.{day}.{n}" + "x" * (30 if (batch, day) == (2, 1) else 0) for n in range(2)]
        for day in range(1 + batch % 3)
    }


def a_store(files: LocalFiles, limits: Limits = LIMITS, schema: str = SCHEMA, now: float = 0.0) -> Store:
    def merge(parts: Sequence[str], below: str, schema: str) -> str:
        assert schema in (SCHEMA, ANOTHER)
        files.join(parts, f"{below}/merged.txt")
        return f"{below}/merged.txt"

    return Store(files, LAYOUT, limits, merge, now=lambda: now)


def stage_of(files: LocalFiles, batch: int, schema: str = SCHEMA) -> Callable[[str], str]:
    def stage(below: str) -> str:
        for leaf, lines in records(batch).items():
            for number, line in enumerate(lines):
                files.write(f"{below}/{leaf}/part-{number}.txt", f"{line}\n")
        return schema

    return stage


def all_records(batches: int) -> list[str]:
    return sorted(line for batch in range(batches) for lines in records(batch).values() for line in lines)


def export(files: LocalFiles, after: int, batches: int, done: Callable[[int], None]) -> None:
    """Runs batches as Spark does: from the last one that was committed, each committed when it is done."""
    store = a_store(files)
    for batch in range(after, batches):
        store.add(batch, stage_of(files, batch))
        store.publish()
        done(batch)
    store.publish(all_of_them=True)


def test_every_kill_is_recovered_from(tmp_path: Path) -> None:
    for changes in itertools.count():
        root, noted = tmp_path / str(changes), [-1]
        root.mkdir()
        try:
            export(Faulty(root, changes), 0, 5, noted.append)
        except Killed:
            export(LocalFiles(root), noted[-1] + 1, 5, noted.append)
        else:
            break
        assert visible(root) == all_records(5), f"killed at change {changes}"
        assert not held(root)
    assert changes > 60
    assert visible(root) == all_records(5)


def test_two_kills_are_recovered_from(tmp_path: Path) -> None:
    """The second kill is during the recovery from the first."""
    for number, (first, second) in enumerate(itertools.product(range(0, 90, 8), (0, 1, 3, 7))):
        root, noted = tmp_path / str(number), [-1]
        root.mkdir()
        for changes in (first, second, 10_000):
            try:
                export(Faulty(root, changes), noted[-1] + 1, 5, noted.append)
            except Killed:
                continue
        assert visible(root) == all_records(5), f"killed at changes {first} and {second}"


def test_readers_never_see_a_record_twice_nor_miss_one_that_was_there(tmp_path: Path) -> None:
    seen: list[str] = []

    def look() -> None:
        now = visible(tmp_path)
        assert len(now) == len(set(now))
        assert set(seen) <= set(now)
        seen[:] = now

    export(Faulty(tmp_path, 10_000, looked=look), 0, 6, lambda batch: None)
    assert seen[0] != visible(tmp_path)[0] or len(seen) <= len(visible(tmp_path))
    assert visible(tmp_path) == all_records(6)


def test_what_fails_without_a_kill_is_gone_on_with_by_the_same_store(tmp_path: Path) -> None:
    """A full disk while parts are moved; then there is space again, and the job publishes everything at its end."""
    for changes in range(4, 40):
        root = tmp_path / str(changes)
        files = Faulty(root, changes)
        store, done = a_store(files), 0
        try:
            for batch in range(3):
                store.add(batch, stage_of(files, batch))
                done = batch + 1
        except Killed:
            files.left = 10_000
            store.publish(all_of_them=True)
            for batch in range(done, 3):
                store.add(batch, stage_of(files, batch))
        files.left = 10_000
        store.publish(all_of_them=True)
        assert visible(root) == all_records(3), f"failed at change {changes}"


@pytest.fixture
def files(tmp_path: Path) -> Iterator[LocalFiles]:
    yield LocalFiles(tmp_path)


def test_a_batch_that_is_there_is_not_written_again(files: LocalFiles) -> None:
    a_store(files).add(3, stage_of(files, 3))

    def never(below: str) -> str:
        raise AssertionError(below)

    again = a_store(files)
    assert again.add(3, never) is False
    again.publish(all_of_them=True)
    assert a_store(files).add(3, never) is False
    assert visible(files.root) == sorted(itertools.chain.from_iterable(records(3).values()))


def test_an_old_checkpoint_is_refused(files: LocalFiles) -> None:
    a_store(files).add(3, stage_of(files, 3))
    with pytest.raises(ValueError, match=r"cannot export batch 2 to .*: batch 3 is there already"):
        a_store(files).add(2, stage_of(files, 2))


def test_parts_wait_until_they_are_many_or_old(files: LocalFiles) -> None:
    store = a_store(files, Limits(target_bytes=10_000, wait_seconds=60))
    store.add(1, stage_of(files, 1))
    assert (store.publish(), visible(files.root)) == (0, [])
    late = max(part.since for part in store.held()) + 61
    assert a_store(files, Limits(10_000, 60), now=late).publish() == 2
    assert visible(files.root) == sorted(itertools.chain.from_iterable(records(1).values()))
    assert [path.name for path in sorted(files.root.glob("date=*/*"))] == [
        "part-1f0c99aa-0000000001-0000.txt",
        "part-1f0c99aa-0000000001-0002.txt",
    ]


def test_parts_of_two_schemas_are_not_merged(files: LocalFiles) -> None:
    store = a_store(files, Limits(10_000, 60))
    store.add(0, stage_of(files, 0))
    store.add(3, stage_of(files, 3, ANOTHER))
    assert store.publish(all_of_them=True) == 2
    assert visible(files.root) == sorted(records(0)["date=0"] + records(3)["date=0"])


def test_what_is_exported_there_already_is_noted(files: LocalFiles) -> None:
    mine, other = LAYOUT, LAYOUT._replace(export="5d41402a-0000-4000-8000-000000000000")
    claim(files, mine, Claim("parquet", ("topic", "date"), {"orders": 4, "payments": 1}))
    claim(files, mine, Claim("parquet", ("topic", "date"), {"orders": 6, "payments": 1}))
    claim(files, other, Claim("parquet", ("topic", "date"), {"refunds": 2}))
    assert noted_partitions(files) == {"orders": 6, "payments": 1, "refunds": 2}
    with pytest.raises(ValueError, match=f"holds an export of orders with another checkpoint .{mine.home}."):
        claim(files, other, Claim("parquet", ("topic", "date"), {"orders": 6, "refunds": 2}))
    with pytest.raises(ValueError, match="in parquet by topic, date, but this one is in parquet by date"):
        claim(files, mine, Claim("parquet", ("date",), {"orders": 6}))
    with pytest.raises(ValueError, match="but this one is in delta by topic, date"):
        claim(files, mine, Claim("delta", ("topic", "date"), {"orders": 6}))
