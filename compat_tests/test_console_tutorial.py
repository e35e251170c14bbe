"""The tutorial of the console as pasted: its commands, its program, and each of its addresses.

Knows the page only as a reader does, except that the ports differ: another broker may use those of the page.
"""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from compat_tests.test_documents import ROOT, blocks, commands, shapes

PAGE = "docs/tutorial/console.md"
NOT_HERE = ("pip install", "barnabas serve", "barnabas console")
NAMED = {"console": "127.0.0.1:8080", "schema-registry": "127.0.0.1:8081", "PLAINTEXT": "127.0.0.1:9092"}

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, str]]:
    """Starts a broker as on the page, at free ports; yields the real ones by the page's."""
    free = [f"--override=barnabas.{each}.listener=127.0.0.1:0" for each in ("console", "schema.registry")]
    command = [sys.executable, "-m", "barnabas", "serve", "--dev", "--console", "--schema-registry", "--port", "0"]
    with subprocess.Popen([*command, *free], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = dict(re.findall(r"(\S+) at http://(\S+?)(?:;|$)", line))
            found |= dict(re.findall(r"(PLAINTEXT)://([\d.:]+)", line))
            yield {address: found[name] for name, address in NAMED.items()}
        finally:
            process.terminate()
            process.wait(timeout=30)


class Reader:
    """A reader who types, pastes and clicks as on the page."""

    def __init__(self, home: Path, ports: dict[str, str]) -> None:
        self.home, self.ports = home, ports
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        shim = home / "barnabas"
        shim.write_text(
            '#!/bin/sh\nverb=$1; shift\n[ "$verb" = schemas ] || set -- --bootstrap-server "$BOOTSTRAP" "$@"\n'
            f'exec {sys.executable} -m barnabas $verb "$@"\n'
        )
        shim.chmod(0o755)

    def here(self, text: str) -> str:
        """Returns text of the page with the ports of this broker, and without pauses for readers."""
        text = text.replace("time.sleep(0.1)", "time.sleep(0)")
        for named, address in self.ports.items():
            text = text.replace(named, address)
        return text

    def type(self, command: str, printed: list[str]) -> None:
        environment = {
            **os.environ,
            "PATH": f"{self.home}{os.pathsep}{os.environ['PATH']}",
            "BOOTSTRAP": self.ports[NAMED["PLAINTEXT"]],
            "SCHEMA_REGISTRY_URL": f"http://{self.ports[NAMED['schema-registry']]}",
        }
        ran = subprocess.run(["bash", "-o", "pipefail", "-c", self.here(command)], env=environment, cwd=self.home,
                             capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        if printed and printed != ["…"]:
            (found,), (wanted,) = shapes(ran.stdout.splitlines()), shapes(printed)
            assert re.fullmatch(re.escape(wanted).replace("…", ".*"), found), f"{command}: {found!r}"

    def paste(self, program: str) -> None:
        command = [sys.executable, "-W", "ignore", "-c", self.here(program)]
        ran = subprocess.run(command, cwd=self.home, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr

    def open(self, address: str, **form: str) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        with self.opener.open(self.here(address), data, timeout=30) as answer:
            text: str = answer.read().decode()
            return text


@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="curl is not installed")
def test_the_tutorial_of_the_console(ports: dict[str, str], tmp_path: Path) -> None:
    reader = Reader(tmp_path, ports)
    program = ""
    for kind, body in blocks(PAGE):
        if kind == "python":
            program = body
            reader.paste(body)
            continue
        for command, printed in commands(body):
            if not command.startswith(NOT_HERE):
                reader.type(command, printed)
    page = (ROOT / PAGE).read_text()
    shown = {address: reader.open(address) for address in re.findall(r"\]\((http://127\.0\.0\.1:8080\S*)\)", page)}
    assert len(shown) == 8
    assert "tea" in shown["http://127.0.0.1:8080/topics/orders/records/0/0"]
    assert "What changes" in shown["http://127.0.0.1:8080/groups/kitchen/reset?target=earliest"]

    (script,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    faults = "http://127.0.0.1:8080/faults"
    (token, *_) = re.findall(r'name="csrf" value="(\w+)"', shown[faults])
    assert "NOT_LEADER_OR_FOLLOWER" in reader.open(faults, csrf=token, action="set", script=script)
    reader.paste(program)
    assert "What they did" in reader.open(faults)
    ends = re.findall(r"Offsets 0 to (\d+)", "".join(
        reader.open(f"http://127.0.0.1:8080/topics/orders/records?partition={each}") for each in range(3)
    ))  # fmt: skip
    assert sum(map(int, ends)) == 200
