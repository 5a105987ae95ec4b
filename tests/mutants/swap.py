"""Puts other code into the functions of a module that a process has imported."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.mutations import ROOT, Mutation

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Codes:
    """The code of each function of a module, by name and first line."""

    def __init__(self, module: CodeType) -> None:
        self._codes: dict[tuple[str, int], CodeType] = {}
        self._add(module)

    def _add(self, code: CodeType) -> None:
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                # Several of these may begin in one line.
                if not inner.co_name.startswith("<"):
                    self._codes[inner.co_qualname, inner.co_firstlineno] = inner
                self._add(inner)

    def like(self, old: CodeType) -> CodeType | None:
        return self._codes.get((old.co_qualname, old.co_firstlineno))


def functions_of(path: Path) -> list[FunctionType]:
    """The functions of a module that has been imported, those in other functions included."""
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(path)
    ]


def put_codes(functions: list[FunctionType], codes: Codes) -> None:
    for function in functions:
        if (code := codes.like(function.__code__)) is not None:
            function.__code__ = code


def function_around(mutation: Mutation, tree: ast.Module) -> _Function | None:
    """The outermost function or method whose body has the mutation.

    None: it is in no body, so that only a new process would see it.
    """
    for node in _outermost(tree.body):
        assert node.end_lineno is not None
        if node.body[0].lineno <= mutation.line <= node.end_lineno:
            return node
    return None


def _outermost(nodes: list[ast.stmt]) -> Iterator[_Function]:
    for node in nodes:
        if isinstance(node, _Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _outermost(node.body)


def swap(mutation: Mutation) -> bool:
    """Give the functions that have been imported the mutated code; False where that cannot be."""
    path = ROOT / mutation.module
    source = path.read_bytes()
    around = function_around(mutation, ast.parse(source))
    if around is None:
        return False
    first = min([around.lineno, *(one.lineno for one in around.decorator_list)])
    functions = [
        one
        for one in functions_of(path)
        if one.__code__.co_name == around.name and one.__code__.co_firstlineno == first
    ]
    if not functions:
        return False
    old = functions[0].__code__
    new = _mutated(mutation, source, old, around)
    if new is None:
        return False
    for function in functions:
        function.__code__ = new
    return True


def _mutated(
    mutation: Mutation, source: bytes, old: CodeType, around: _Function
) -> CodeType | None:
    tree = ast.parse(mutation.applied(source))
    for node in ast.walk(tree):
        if isinstance(node, _Function) and node.lineno == around.lineno:
            # What refers to an outer name no more must keep its place for it, as for `super`.
            kept = "".join(f"\n    {name}" for name in old.co_freevars)
            if kept:
                node.body += ast.parse(f"if False:{kept}").body
                ast.fix_missing_locations(node)
    new = Codes(compile(tree, old.co_filename, "exec")).like(old)
    return new if new is not None and new.co_freevars == old.co_freevars else None
