"""A fake container: the image's files in a scratch directory, and a process that uses these paths.

Knows nothing of what the scripts do. Each absolute path of the image is moved below the scratch directory, in the
image's scripts and in those that a library copies into the container.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCKER = Path(__file__).parents[2] / "docker"
ROOTFS = DOCKER / "rootfs"
#: The beginnings of absolute paths in scripts, except those of the machine's own programs.
PATHS = re.compile(r"(?<![\w./}])/(?=(?:etc|opt|bitnami|var|mnt|tmp|usr/sbin|testcontainers\w*|tc-start)\b)")
START_SECONDS = 30.0


class Container:
    """One container: its files, its process, and its log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process: subprocess.Popen[bytes] | None = None
        self.log = root / "log"
        self.environment: dict[str, str] = {}
        for source in sorted(path for path in ROOTFS.rglob("*") if path.is_file()):
            self.put("/" + source.relative_to(ROOTFS).as_posix(), source.read_text(), source.stat().st_mode & 0o777)
        program = f'if [ "$1" = image-properties ]; then set -- "$@" --root "{root}"; fi\n'
        program += f'exec "{sys.executable}" -m barnabas "$@"\n'
        self.put("/usr/bin/barnabas", "#!/bin/bash\n" + program, 0o755, moved=False)
        path = {"PYTHONPATH": os.pathsep.join(filter(None, (str(DOCKER.parent), os.environ.get("PYTHONPATH"))))}
        laid_out = [DOCKER / "layout", root]
        subprocess.run(laid_out, env={**os.environ, **path}, check=True, timeout=60, stdout=subprocess.DEVNULL)

    def moved(self, text: str) -> str:
        """Returns the text with each path of the image in the scratch directory."""
        return PATHS.sub(f"{self.root}/", text)

    def put(self, path: str, text: str, mode: int, *, moved: bool = True) -> None:
        """Puts a file into the container, as ``docker cp`` does."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        copied = file.with_name(file.name + ".copied")
        copied.write_text(self.moved(text) if moved else text)
        copied.chmod(mode)
        copied.rename(file)

    def start(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        """Starts the container with its command, which may wait for a file that is copied into it."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "CLUSTER_"))}
        environment |= {name: self.moved(value) for name, value in variables.items()}
        environment |= {"PATH": f"{self.root}/usr/bin:/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "HOME": str(self.root)}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(DOCKER.parent), environment.get("PYTHONPATH"))))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash" if word == "sh" else self.moved(word) for word in command],  # as in the image
                cwd=self.root / "home/appuser",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.environment = environment

    def wait_for(self, pattern: str) -> None:
        """Waits for a line of the log, as a wait strategy does."""
        deadline = time.monotonic() + START_SECONDS
        while not re.search(pattern, self.logged()):
            assert self.process is not None and self.process.poll() is None, self.logged()
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.02)

    def logged(self) -> str:
        return self.log.read_text(errors="replace")

    def run(self, *command: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Runs a command in the container, as ``docker exec`` does."""
        return subprocess.run(
            [self.moved(word) for word in command],
            env=self.environment,
            cwd=self.root / "home/appuser",
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def stop(self) -> int:
        """Ends the container's process, as ``docker stop`` does, and returns its exit code."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGTERM)
        return self.process.wait(START_SECONDS)
