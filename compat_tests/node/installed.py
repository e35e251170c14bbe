"""kafkajs, installed by npm. Knows nothing of what it is used for."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RELEASE = "2.2.4"


def installed() -> Path:
    """Returns the folder that kafkajs was installed into, by npm, the first time; skips where it cannot be had."""
    named = os.environ.get("BARNABAS_COMPAT_CACHE")
    home = (Path(named) if named else Path.home() / ".cache" / "barnabas-compat") / f"kafkajs-{RELEASE}"
    npm = shutil.which("npm")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (home / "complete").exists():
        if npm is None:
            pytest.skip("npm is not installed")
        home.mkdir(parents=True, exist_ok=True)
        options = ["--prefix", str(home), "--no-audit", "--no-fund", "--silent", "--ignore-scripts"]
        done = subprocess.run(
            [npm, "install", *options, f"kafkajs@{RELEASE}"], capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            pytest.skip(f"npm could not fetch kafkajs: {done.stderr.strip()[-300:]}")
        (home / "complete").touch()
    return home / "node_modules"
