"""docs/how-to/kafka-tools.md names the tools that there are, and scripts of them are written."""

import re
from pathlib import Path

from barnabas.cli import main
from barnabas.cli.kafka_tools import table

PAGE = Path(__file__).parents[2] / "docs/how-to/kafka-tools.md"


def test_the_page_has_each_tool() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])]
    assert sorted(named) == sorted(table.MODULES)


def test_scripts_are_written_with_a_suffix_or_without(tmp_path: Path) -> None:
    for suffix in (".sh", ""):
        written = table.install(tmp_path / "bin", suffix)
        assert {path.name for path in written} >= {f"kafka-{tool}{suffix}" for tool in table.MODULES}
        assert all(path.stat().st_mode & 0o111 for path in written)


def test_install_says_what_it_wrote_and_takes_no_option_for_a_directory(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["kafka", "install", "bin"]) == 0
    assert capsys.readouterr().out.split() == [f"bin/{path.name}" for path in table.install(tmp_path / "bin", ".sh")]
    assert main(["kafka", "install", "--help"]) == 0
    assert main(["kafka", "install", "--force"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]
