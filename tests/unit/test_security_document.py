"""SECURITY.md promises nothing that no test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises() -> list[str]:
    """The lines of the threat model, each with what is indented below it."""
    text = (ROOT / "SECURITY.md").read_text()
    model = text.partition("## What is defended")[2].partition("## What is not defended")[0]
    return re.findall(r"^- .*(?:\n  .*)*", model, re.MULTILINE)


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_every_line_names_its_tests():
    assert len(promises()) > 20
    assert [line for line in promises() if not TEST.search(line)] == []


def test_the_tests_exist():
    missing = [
        f"{path}::{name}"
        for line in promises()
        for path, name in TEST.findall(line)
        if name not in functions(path)
    ]
    assert missing == []
