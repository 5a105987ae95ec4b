"""Puts small faults into the modules that data depend on, and sees whether the tests notice.

Each mutation is made alone, in a copy of the repository, and the tests that concern its module
run until the first one fails. Usage, from the root of the repository:

    python -m tests.mutants [--count N] [--seed S] [PATH…]

``PATH`` begins the names of the modules to mutate; without any, all of `CONCERNED`. The same
seed takes the same mutations, as long as the modules stay the same. It prints a line for each
mutation: killed, survived, or timeout (a test that hangs notices, too). A survivor is either a
fault that no test notices, or a change that changes nothing; somebody has to look.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = ("zarrfs", "tests", "docs", "share", "systemd", "pyproject.toml", "README.md", ".ci")

_JOURNAL = ("tests/faults/test_journal_entries.py", "tests/faults/test_journal.py")
_WRITING = (
    "tests/unit/test_dirty_objects.py",
    "tests/fs/test_write_faults.py",
    "tests/fs/test_write_counts.py",
    "tests/fs/test_write_together.py",
    "tests/fs/test_gathered_writes.py",
    "tests/fs/test_write_coherence.py",
    "tests/fs/test_flusher.py",
    "tests/model/test_write_machine.py",
)

# The tests that concern the modules below a path; the longest path that fits counts.
CONCERNED = {
    "zarrfs/cache/write/journal/": (*_JOURNAL, "tests/fs/test_resizing.py"),
    "zarrfs/cache/write/restoring.py": _JOURNAL,
    "zarrfs/fs/replay.py": (*_JOURNAL, "tests/fs/test_resizing.py"),
    "zarrfs/cache/write/growth.py": ("tests/fs/test_resizing.py", *_JOURNAL),
    "zarrfs/cache/write/": (*_WRITING, *_JOURNAL),
    "zarrfs/fs/files/": ("tests/fs", "tests/model/test_write_machine.py"),
    "zarrfs/array/chunk_writer.py": (
        "tests/unit/test_write_chunks.py",
        "tests/unit/test_write_shards.py",
        *_WRITING,
    ),
    "zarrfs/array/shards/shard_writer.py": ("tests/unit/test_write_shards.py", *_WRITING),
    "zarrfs/store/local/local_writer.py": (
        "tests/store/local_writing",
        "tests/store/test_every_writable_store.py",
        "tests/store/test_leftovers.py",
    ),
}

_COMPARISONS = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.BitAnd: "|", ast.BitOr: "&", ast.Mult: "+"}


class Mutation(NamedTuple):
    """``old`` at ``start`` of a module's text becomes ``new``; positions are of bytes."""

    module: str
    line: int
    start: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split())[:60] for text in (self.old, self.new))
        return f"{self.module}:{self.line}: {old} → {new}"


def mutations(module: str) -> list[Mutation]:
    """Every mutation of a module, in the order of its text."""
    data = (ROOT / module).read_bytes()
    lines = data.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def span(first: ast.AST, last: ast.AST | None = None) -> tuple[int, int]:
        last = last or first
        return (
            starts[first.lineno - 1] + first.col_offset,
            starts[last.end_lineno - 1] + last.end_col_offset,
        )

    def changed(start: int, stop: int, new: str) -> Mutation:
        line = data[:start].count(b"\n") + 1
        return Mutation(module, line, start, data[start:stop].decode(), new)

    def text(node: ast.AST) -> str:
        start, stop = span(node)
        return data[start:stop].decode()

    def between(left: ast.expr, right: ast.expr, new: str) -> Mutation:
        """Put another operator between two operands."""
        start, stop = span(left)[1], span(right)[0]
        operator = data[start:stop].decode()
        # Brackets around an operand stay.
        before = operator[: len(operator) - len(operator.lstrip(") \n"))]
        after = operator[len(operator.rstrip("( \n")) :]
        return changed(start, stop, f"{before or ' '}{new}{after or ' '}")

    def of_node(node: ast.AST) -> Iterator[Mutation]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield between(left, right, _COMPARISONS[type(operator)])
            case ast.BoolOp(op=operator, values=[first, second, *_]):
                yield between(first, second, "or" if isinstance(operator, ast.And) else "and")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield changed(*span(node), f"({text(operand)})")
            case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
                yield changed(*span(test), f"not ({text(test)})")
            case ast.IfExp(test=test):
                yield changed(*span(test), f"(not ({text(test)}))")
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
                yield between(left, right, _ARITHMETIC[type(operator)])
            case ast.Constant(value=bool(value)):
                yield changed(*span(node), str(not value))
            case ast.Constant(value=int(value)) if type(value) is int:
                yield changed(*span(node), str(value + 1))
            case ast.Expr(value=ast.Call() as call) if not text(call).startswith("log."):
                yield changed(*span(node), "pass")
            case ast.AugAssign(target=target, op=operator, value=value):
                sign = {ast.Add: "-=", ast.Sub: "+=", ast.BitOr: "&="}.get(type(operator))
                if sign is not None:
                    yield changed(*span(node), f"{text(target)} {sign} {text(value)}")
            case ast.Raise() | ast.Delete():
                yield changed(*span(node), "pass")
            case ast.Continue():
                yield changed(*span(node), "break")
            case ast.Break():
                yield changed(*span(node), "continue")
            case ast.Assign(targets=[ast.Attribute() as target]) if text(target).startswith(
                "self."
            ):
                yield changed(*span(node), "pass")

    def walk(node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from walk(node.value)
            return
        yield from of_node(node)
        for name, value in ast.iter_fields(node):
            # Types, and what only `@` says, do nothing.
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.Assert):
                    yield from walk(child)

    found = walk(ast.parse(data))
    return sorted((one for one in found if one.old != one.new), key=lambda one: one[2:])


def tests_of(module: str) -> tuple[str, ...]:
    """The tests that concern a module."""
    fitting = [path for path in CONCERNED if module.startswith(path)]
    return CONCERNED[max(fitting, key=len)]


def modules(chosen: list[str]) -> list[str]:
    """Those below the chosen paths, of all that data depend on."""
    found = {
        str(path.relative_to(ROOT))
        for concerned in CONCERNED
        for path in ([ROOT / concerned] if concerned.endswith(".py") else [])
        + sorted((ROOT / concerned).rglob("*.py") if concerned.endswith("/") else [])
        if path.exists()
    }
    return sorted(name for name in found if not chosen or name.startswith(tuple(chosen)))


class Copy:
    """A copy of the repository in which one module at a time is another one."""

    def __init__(self, place: Path, timeout: float) -> None:
        self._place = place
        self._timeout = timeout
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.svg")
                shutil.copytree(source, place / name, symlinks=True, ignore=ignored)
            elif source.exists():
                shutil.copy(source, place / name)

    def result(self, mutation: Mutation) -> str:
        """What becomes of a mutation."""
        path = self._place / mutation.module
        good = path.read_bytes()
        stop = mutation.start + len(mutation.old.encode())
        bad = good[: mutation.start] + mutation.new.encode() + good[stop:]
        try:
            compile(bad, mutation.module, "exec")
        except SyntaxError:
            return "no program"
        try:
            path.write_bytes(bad)
            return self.run(tests_of(mutation.module))
        finally:
            path.write_bytes(good)

    def run(self, tests: tuple[str, ...]) -> str:
        """What the tests say."""
        existing = [test for test in tests if (self._place / test).exists()]
        options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "-o", "timeout=60"]
        command = [sys.executable, "-B", "-m", "pytest", *options, *existing]
        environment = {**os.environ, "PYTHONPATH": str(self._place), "ZARRFS_SOAK": "1"}
        with subprocess.Popen(
            command,
            cwd=self._place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                status = process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                return "timeout"
        return "survived" if status == 0 else "killed"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20, help="how many mutations")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one of them")
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    names = modules(arguments.paths)
    every = [mutation for name in names for mutation in mutations(name)]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    print(f"{len(chosen)} of {len(every)} mutations of {len(names)} modules", flush=True)
    results: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="zarrfs-mutants-") as place:
        copy = Copy(Path(place), arguments.timeout)
        for tests in {tests_of(mutation.module) for mutation in chosen}:
            if copy.run(tests) != "survived":
                sys.exit(f"these tests fail without any mutation: {' '.join(tests)}")
        for mutation in chosen:
            begun = time.monotonic()
            result = copy.result(mutation)
            results[result] = results.get(result, 0) + 1
            print(f"{result:<10} {time.monotonic() - begun:4.0f} s  {mutation}", flush=True)
    print(", ".join(f"{result}: {count}" for result, count in sorted(results.items())))


if __name__ == "__main__":
    main()
