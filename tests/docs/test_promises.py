"""Each promise in docs/promises.md is shown by tests that exist, one of them of its name."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| (?P<promise>[^|]+) \| [^|]+ \| (?P<tests>`tests/[^|]+) \|$", re.MULTILINE)

ROWS = {
    row["promise"]: re.findall(r"`([^`]+)`", row["tests"])
    for row in _ROW.finditer((ROOT / "docs" / "promises.md").read_text(encoding="utf-8"))
}


@cache
def _tests_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
    return frozenset(name for name in names if name.startswith("test_"))


def test_all_rows_are_read():
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(table) - 1 >= 9


@pytest.mark.parametrize("promise", ROWS)
def test_promise(promise):
    shown = set()
    for place in ROWS[promise]:
        path, _, name = place.partition("::")
        found = _tests_in(ROOT / path)
        assert name in found if name else found, place
        shown |= {name} if name else found
    named = f"test_{re.sub(r'[^a-z]+', '_', promise.lower())}"
    assert any(name.startswith(named) for name in shown), f"no {named} in {ROWS[promise]}"
