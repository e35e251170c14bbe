"""Packages of npm, installed once and kept. Knows nothing of their use."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

RELEASE = "2.2.4"


def installed(package: str = "kafkajs", release: str = RELEASE) -> Path:
    """Returns the folder of a package's modules, installed by npm the first time; skips the test if that fails."""
    named = os.environ.get("BARNABAS_COMPAT_CACHE")
    cache = Path(named) if named else Path.home() / ".cache" / "barnabas-compat"
    home = cache / f"npm-{package.replace('/', '-')}-{release}"
    npm = shutil.which("npm")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not home.exists():
        if npm is None:
            pytest.skip("npm is not installed")
        cache.mkdir(parents=True, exist_ok=True)
        install(npm, f"{package}@{release}", home)
    return home / "node_modules"


def install(npm: str, package: str, home: Path) -> None:
    """Installs into a temporary folder, which becomes ``home`` when complete: several workers may do so at once."""
    folder = Path(tempfile.mkdtemp(prefix="npm-", dir=home.parent))
    try:
        options = ["--prefix", str(folder), "--no-audit", "--no-fund", "--silent", "--ignore-scripts"]
        done = subprocess.run(
            [npm, "install", *options, package], capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            pytest.skip(f"npm could not fetch {package}: {done.stderr.strip()[-300:]}")
        with contextlib.suppress(OSError):  # another worker was first
            folder.rename(home)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
