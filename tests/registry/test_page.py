"""The page about the registry does as it says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "schema-registry.md"


def test_the_test_of_the_page_passes(tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "test_orders.py").write_text(block)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "1 passed" in result.stdout, result.stdout + result.stderr
