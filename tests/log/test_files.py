"""Files on disk and in memory behave alike."""

import contextlib
import errno
import os
import subprocess
import sys
import threading

import pytest

from barnabas.log import files
from barnabas.log.files import DiskFiles, MemoryFiles


def test_a_file_is_appended_to_and_read_anywhere(place):
    file = place.files.create(f"{place.path}/a")
    file.write(b"hello ")
    file.write(memoryview(b"world"))
    assert file.size() == 11
    assert file.pread(5, 6) == b"world"
    assert file.pread(100, 6) == b"world"
    assert file.pread(5, 11) == b""
    file.truncate(5)
    file.write(bytearray(b"!"))
    file.fsync()
    file.syncer()()
    assert place.files.read(f"{place.path}/a") == b"hello!"


def test_a_closed_file_is_reopened(place):
    file = place.files.create(f"{place.path}/a")
    file.write(b"one")
    file.close()
    file.close()
    file.write(b"two")
    assert file.pread(6, 0) == b"onetwo"


def test_creating_replaces(place):
    place.files.create(f"{place.path}/a").write(b"old")
    place.files.create(f"{place.path}/a").write(b"n")
    assert place.files.read(f"{place.path}/a") == b"n"


def test_missing_files(place):
    missing = f"{place.path}/missing"
    for call in (place.files.read, place.files.sizes, place.files.list, place.files.modified_ms):
        with pytest.raises(FileNotFoundError):
            call(missing)
    with pytest.raises(FileNotFoundError):
        place.files.open(missing).pread(1, 0)
    with pytest.raises(FileNotFoundError):
        place.files.rename(missing, f"{place.path}/b")
    with pytest.raises(FileNotFoundError):
        place.files.create(f"{missing}/a")
    place.files.delete(missing)
    place.files.delete_tree(missing)
    assert not place.files.exists(missing)


def test_what_is_gone_is_deleted(place):
    place.files.delete(f"{place.path}/nothing")
    place.files.delete(f"{place.path}/nowhere/nothing")  # a file that is deleted later than its topic
    place.files.delete_tree(f"{place.path}/nowhere")


def test_directories(place):
    files, root = place
    files.makedirs(f"{root}/x/y")
    files.makedirs(f"{root}/x/y")
    files.create(f"{root}/x/y/f").write(b"12")
    files.create(f"{root}/x/g").write(b"3")
    assert sorted(files.list(f"{root}/x")) == ["g", "y"]
    assert files.sizes(f"{root}/x") == {"g": 1}
    files.rename(f"{root}/x", f"{root}/z")
    assert not files.exists(f"{root}/x")
    assert files.read(f"{root}/z/y/f") == b"12"
    files.fsync_path(f"{root}/z")
    files.delete_tree(f"{root}/z")
    assert files.list(root) == []


def test_setting_the_modification_time(place):
    files, path = place.files, f"{place.path}/a"
    files.create(path).write(b"a")
    files.set_modified_ms(path, 1_700_000_000_123)
    assert files.modified_ms(path) == 1_700_000_000_123
    files.rename(path, f"{place.path}/b")
    assert files.modified_ms(f"{place.path}/b") == 1_700_000_000_123
    with pytest.raises(FileNotFoundError) as raised:
        files.set_modified_ms(path, 1)
    assert raised.value.filename == path


def test_renaming_replaces(place):
    files, root = place
    files.create(f"{root}/a").write(b"a")
    files.create(f"{root}/b").write(b"b")
    files.rename(f"{root}/a", f"{root}/b")
    assert files.read(f"{root}/b") == b"a"
    assert files.list(root) == ["b"]


def test_an_open_file_survives_its_deletion(place):
    file = place.files.create(f"{place.path}/a")
    file.write(b"still here")
    place.files.delete(f"{place.path}/a")
    assert file.pread(10, 0) == b"still here"


@pytest.mark.parametrize("sync", [True, False])
def test_writing_atomically(place, sync):
    for data in (b"first, and long", b"second", b""):
        place.files.write_atomically(f"{place.path}/a", data, sync=sync)
        assert place.files.read(f"{place.path}/a") == data
    assert place.files.list(place.path) == ["a"]


def test_a_lock_is_held_once(place):
    held = place.files.lock(f"{place.path}/.lock")
    assert held is not None
    assert place.files.lock(f"{place.path}/.lock") is None
    held.close()
    again = place.files.lock(f"{place.path}/.lock")
    assert again is not None
    again.close()


def test_a_lock_keeps_other_processes_out(tmp_path):
    path = tmp_path / ".lock"
    held = DiskFiles().lock(str(path))
    program = f"from barnabas.log.files import DiskFiles; print(DiskFiles().lock({str(path)!r}))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "None"
    held.close()


def test_space(place):
    total, usable = place.files.space(place.path)
    assert total >= usable


def test_a_short_write_is_continued(tmp_path, monkeypatch):
    file = DiskFiles().create(f"{tmp_path}/a")
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, memoryview(data)[:3]))
    file.write(b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_short_read_is_continued(tmp_path, monkeypatch):
    file = DiskFiles().create(f"{tmp_path}/a")
    file.write(b"0123456789")
    pread = os.pread
    monkeypatch.setattr(files, "pread", lambda fd, size, at: pread(fd, min(size, 3), at))
    assert file.pread(9, 1) == b"123456789"
    assert file.pread(20, 1) == b"123456789"


def test_files_share_few_descriptors(tmp_path):
    files = DiskFiles(max_open=5)
    handles = [files.create(f"{tmp_path}/{number}") for number in range(50)]
    assert files.open_count <= 5
    for number, handle in enumerate(handles):
        handle.write(b"%d" % number)
        assert files.open_count <= 5
    assert [handle.pread(9, 0) for handle in handles] == [b"%d" % number for number in range(50)]


def test_files_in_use_keep_their_descriptors(tmp_path):
    files = DiskFiles(max_open=4)
    busy = files.create(f"{tmp_path}/busy")
    opened = []
    for number in range(40):
        files.create(f"{tmp_path}/{number}")
        busy.write(b"x")
        opened.append(busy in files._open)
    assert opened == [True] * 40


def test_a_syncer_works_after_its_file_is_closed(tmp_path):
    file = DiskFiles().create(f"{tmp_path}/a")
    sync = file.syncer()
    file.close()
    (tmp_path / "a").unlink()
    sync()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_a_failure_names_the_file():
    """Calls on a descriptor fail without naming the file."""
    file = DiskFiles().open("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'") as caught:
        file.write(b"x")
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match=r"'/dev/full'"):
        file.truncate(10)
    with pytest.raises(OSError, match=r"'/dev/full'"):
        file.fsync()
    file.close()


# ------------------------------------------------------------ the page cache


def test_what_was_just_written_is_cached(place):
    file = place.files.create(f"{place.path}/f")
    file.write(bytes(10_000))
    assert file.is_cached(10_000, 0)
    assert file.is_cached(1, 9_999)


@pytest.mark.parametrize(
    ("error", "is_cached"),
    [(errno.EAGAIN, False), (errno.EOPNOTSUPP, True), (errno.EIO, True)],
)
def test_the_kernel_says_what_is_cached(tmp_path, monkeypatch, error, is_cached):
    """A file system without this information is read as if everything were cached."""
    reads = []

    def preadv(fd, buffers, at, flags):
        reads.append((at, flags))
        raise OSError(error, os.strerror(error))

    file = DiskFiles().create(f"{tmp_path}/f")
    monkeypatch.setattr(os, "preadv", preadv)
    assert file.is_cached(100, 50) is is_cached
    assert reads == [(149, os.RWF_NOWAIT)]


def test_a_system_without_the_flag(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_NOWAIT", None)
    assert DiskFiles().create(f"{tmp_path}/f").is_cached(100, 0)


@pytest.mark.parametrize("size", [1, 1000, 2_500_000, 9_000_000])
def test_loading(tmp_path, monkeypatch, size):
    """All bytes are read, up to the end of the file."""
    path, read = f"{tmp_path}/f", []
    (tmp_path / "f").write_bytes(bytes(3_000_000))
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at: read.append((at, preadv(fd, buffers, at))) or read[-1][1])
    DiskFiles().load(path, size, 10)
    end = 10
    for at, count in read:
        assert at == end
        end += count
    assert end == min(10 + size, 3_000_000)


def test_loading_a_deleted_file(place):
    with pytest.raises(FileNotFoundError):
        DiskFiles().load(f"{place.path}/missing", 10, 0)


def test_a_file_that_goes_while_its_directory_is_read(tmp_path, monkeypatch):
    for name in ("kept", "renamed.tmp"):
        (tmp_path / name).write_bytes(b"12")
    scandir = os.scandir

    @contextlib.contextmanager
    def read_and_changed(path):
        with scandir(path) as entries:
            found = list(entries)
        for entry in found:
            entry.is_file()  # it is known by now
        (tmp_path / "renamed.tmp").unlink()
        yield found

    monkeypatch.setattr(os, "scandir", read_and_changed)
    assert DiskFiles().sizes(str(tmp_path)) == {"kept": 2}


def test_files_in_memory_are_used_by_two_threads_at_once():
    """The background thread deletes directories while the event loop renames, lists and measures others."""
    memory, stops, interval, errors = MemoryFiles(), threading.Event(), sys.getswitchinterval(), []
    for index in range(300):
        memory.makedirs(f"/data/topic-{index}")

    def in_background():
        try:
            while not stops.is_set():
                memory.makedirs("/data/kept")
                memory.create("/data/kept/file")
                memory.makedirs("/data/deleted/inside")
                memory.delete("/data/kept/file")
                memory.delete_tree("/data/deleted")
        except Exception as error:
            errors.append(error)

    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=in_background)
    thread.start()
    try:
        for index in range(300):
            memory.rename(f"/data/topic-{index}", f"/data/topic-{index}-renamed")
            memory.makedirs("/data/kept")
            assert set(memory.sizes("/data/kept")) <= {"file"}
            assert "kept" in memory.list("/data")
            memory.delete_tree(f"/data/topic-{index}-renamed")
    finally:
        stops.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert errors == []
    assert set(memory.list("/data")) <= {"kept", "deleted"}
