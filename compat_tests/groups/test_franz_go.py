"""franz-go in groups of the newer kinds: members of a consumer group, a share group, its admin; skipped without go."""

import json
import subprocess

import pytest

from compat_tests.go.program import BUILD_SECONDS, built
from compat_tests.running import Running

from .members import Group

pytestmark = [pytest.mark.xdist_group("go"), pytest.mark.timeout(BUILD_SECONDS + 120)]
VALUES = {str(n) for n in range(20)}


def test_franz_go(quick: Running, topic: str) -> None:
    program = built()
    Group(quick.bootstrap, f"{topic}-share").configure(share_auto_offset_reset="earliest")
    command = [str(program), quick.bootstrap, topic, "newer"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["heard"].keys() == VALUES
    assert (seen["shares"], seen["assignor"], seen["listed"], seen["committed"]) == ([2, 2], "uniform", True, 20)
    assert seen["taken"] == dict.fromkeys(VALUES, 2)
    assert seen["emptied"] == ["Empty", "Empty"]
    assert seen["starts"]["0"] == 2
    assert seen["deleted"] == ["-consumer", "-share"]
