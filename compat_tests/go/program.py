"""The program of this folder, built with the installed go. Knows nothing of the program's purpose."""

import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD_SECONDS = 600
"""The timeout for fetching and compiling the modules the first time, on a loaded machine."""


def go(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["go", *arguments], cwd=HERE, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )


def built() -> Path:
    """Returns the program, built the first time and after each change of its source or a module; skips without go."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    source = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.go")) + sorted(HERE.glob("go.*")))
    named = os.environ.get("BARNABAS_COMPAT_CACHE")
    home = Path(named) if named else Path.home() / ".cache" / "barnabas-compat"
    program = home / f"franz-go-{sha256(source).hexdigest()[:12]}"
    if not program.exists():
        fetched = go("mod", "download")
        if fetched.returncode:
            pytest.skip(f"go could not fetch franz-go: {fetched.stderr.strip()[-300:]}")
        home.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(f".{os.getpid()}")
        built = go("build", "-o", str(unfinished), ".")
        assert built.returncode == 0, built.stderr
        unfinished.replace(program)
    return program
