"""Which tests execute which lines of the modules to mutate, and how long each test takes.

A tracer of Python would take most of the time. So each function of these modules gets code that
also notes each statement that it begins.
"""

import ast
import builtins
import time
from collections.abc import Callable, Iterator

import pytest

from tests.mutants.mutations import ROOT
from tests.mutants.swap import Codes, functions_of, put_codes

_NOTE = "_mutants_note_{}"


class Coverage:
    """Notes what the tests of a session execute, in all threads of this process.

    lines : test → module → lines; all lines of a statement that was begun, without those of
        statements in it. seconds : test → seconds.
    """

    def __init__(self, modules: list[str]) -> None:
        self._begun: dict[str, set[int]] = {name: set() for name in modules}
        self._lines: dict[str, dict[int, list[int]]] = {}
        self.lines: dict[str, dict[str, list[int]]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def run(self, items: list[pytest.Item]) -> None:
        """Run the tests. Only in a process that ends after that: the functions stay changed."""
        for number, name in enumerate(self._begun):
            self._watch(name, number)
        for item, following in zip(items, [*items[1:], None], strict=True):
            for begun in self._begun.values():
                begun.clear()
            start = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self.seconds[item.nodeid] = round(time.monotonic() - start, 3)
            self.lines[item.nodeid] = {
                name: sorted(line for first in set(begun) for line in self._lines[name][first])
                for name, begun in self._begun.items()
                if begun
            }

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def _watch(self, name: str, number: int) -> None:
        path = ROOT / name
        note = _NOTE.format(number)
        add: Callable[[int], None] = self._begun[name].add
        setattr(builtins, note, add)
        tree = ast.parse(path.read_bytes())
        self._lines[name] = {
            statement.lineno: sorted(_own_lines(statement)) for statement in _statements(tree)
        }
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                function.body = [each for one in function.body for each in _noted(one, note)]
        put_codes(functions_of(path), Codes(compile(tree, str(path), "exec")))


def _noted(statement: ast.stmt, note: str) -> list[ast.stmt]:
    """A statement behind one that notes its line; the same with those that are in it."""
    # Functions in functions are reached by themselves, and classes in them have no statements.
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for holder in _holders(statement):
            for field, body in ast.iter_fields(holder):
                if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                    noted = [each for one in body for each in _noted(one, note)]
                    setattr(holder, field, noted)
    call = ast.parse(f"{note}({statement.lineno})").body[0]
    for node in ast.walk(call):
        ast.copy_location(node, statement)
    return [call, statement]


def _holders(statement: ast.stmt) -> list[ast.AST]:
    """What has lists of statements: the statement, its handlers of exceptions, and its cases."""
    inner = [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    return [statement, *inner]


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _own_lines(statement: ast.stmt) -> set[int]:
    def lines(one: ast.stmt) -> set[int]:
        assert one.end_lineno is not None
        return set(range(one.lineno, one.end_lineno + 1))

    inner = [lines(one) for one in _statements(statement) if one is not statement]
    return lines(statement).difference(*inner) | {statement.lineno}
