"""What a process says that cannot be a broker: one line, and a code that is not 0."""

import subprocess
import sys

import pytest


@pytest.fixture
def serve(tmp_path):
    """Runs a broker on ``tmp_path`` that is expected to give up; its last line and its exit code."""

    def serve():
        process = subprocess.run(
            [sys.executable, "-m", "barnabas", "serve", "--port", "0", "--log-dirs", str(tmp_path)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return process.stderr.strip().splitlines()[-1], process.returncode

    return serve


def test_a_metadata_log_that_cannot_be_read(tmp_path, serve):
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text("no JSON")
    line, code = serve()
    assert code == 1
    assert "Can't start" in line
    assert "quorum-state" in line


def test_a_directory_of_another_cluster(tmp_path, serve):
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=aaaaaaaaaaaaaaaaaaaaaa\nnode.id=7\n")
    line, code = serve()
    assert code == 1
    assert "Can't start" in line
