"""SECURITY.md promises nothing that no test shows."""

import ast
import functools
import re
from pathlib import Path

from zarrfs import bounds

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises() -> list[str]:
    """The lines of the threat model, each with what is indented below it."""
    text = (ROOT / "SECURITY.md").read_text()
    model = text.partition("## What is defended")[2].partition("## What is not defended")[0]
    return re.findall(r"^- .*(?:\n  .*)*", model, re.MULTILINE)


@functools.cache
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


def bounds_table() -> list[list[str]]:
    """The cells of each row of the table of bounds."""
    table = (ROOT / "SECURITY.md").read_text().partition("## What is bounded by what")[2]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    assert all(len(row) == 4 for row in rows)
    return rows[1:]


def test_each_bound_names_its_tests():
    """Each row that names a limit of the code does; all that rows name exist."""
    untested, missing = [], []
    for what, _, by, tests in bounds_table():
        named = TEST.findall(tests)
        if any(hasattr(bounds, name) for name in re.findall(r"`(\w+)`", by)) and not named:
            untested.append(what)
        missing += [f"{path}::{name}" for path, name in named if name not in functions(path)]
    assert (untested, missing) == ([], [])


def test_every_bound_is_in_the_table():
    table = (ROOT / "SECURITY.md").read_text().partition("## What is bounded by what")[2]
    named = [name for name in vars(bounds) if name.isupper() and not name.startswith("_")]
    assert len(named) > 10
    in_code = " ".join(by for _, _, by, _ in bounds_table())
    assert [name for name in named if f"`{name}`" not in in_code] == []
    # Nothing in it is a name that the code had once.
    limits = re.findall(r"`([A-Za-z_]+)`", in_code)
    assert [name for name in limits if not hasattr(bounds, name) and name != "MOST_CHUNKS"] == []
    sizes = {
        "64 MiB": bounds.LARGEST_DOCUMENT,
        "256 MiB": bounds.LARGEST_PARSED,
        "16 MiB": bounds.LARGEST_ELEMENT,
        "512 MiB": bounds.LARGEST_OBJECTS,
        "512 MiB once": bounds.LARGEST_UNPACKED,
        "1 GiB": bounds.LARGEST_CONTENTS,
        "128 MiB": bounds.LARGEST_REFERENCES,
        "2 GiB": bounds.LARGEST_PARSED_REFERENCES,
    }
    units = {"MiB": 1 << 20, "GiB": 1 << 30}
    for text, size in sizes.items():
        number, unit = text.split()[:2]
        assert int(number) * units[unit] == size
        assert text in table
