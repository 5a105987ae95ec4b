"""Puts a mutation into a process that has imported its module."""

from __future__ import annotations

import ast
import gc
from types import CodeType, FunctionType

from tests.mutants.mutations import ROOT, Mutation


def function_around(mutation: Mutation, source: bytes) -> tuple[str, ...] | None:
    """The function or method whose body has the mutation, as names and numbers from the module on.

    None: it is in no body, so that only a new process would see it. Each part is ``name:number``,
    where ``number`` counts those of the same name before it.
    """
    nodes: list[ast.stmt] = ast.parse(source).body
    names: list[str] = []
    seen: dict[str, int] = {}
    at = mutation.line
    position = 0
    while position < len(nodes):
        node = nodes[position]
        position += 1
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        number = seen.get(node.name, 0)
        seen[node.name] = number + 1
        assert node.end_lineno is not None
        if not node.lineno <= at <= node.end_lineno:
            continue
        names.append(f"{node.name}:{number}")
        if isinstance(node, ast.ClassDef):
            nodes, position, seen = node.body, 0, {}
            continue
        return tuple(names) if node.body[0].lineno <= at else None
    return None


def _code(module: CodeType, path: tuple[str, ...]) -> CodeType:
    code = module
    for part in path:
        name, number = part.rsplit(":", 1)
        inner = [one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name]
        code = inner[int(number)]
    return code


def swap(mutation: Mutation) -> bool:
    """Give the functions that have been imported the mutated code; False where that cannot be."""
    path = ROOT / mutation.module
    source = path.read_bytes()
    around = function_around(mutation, source)
    if around is None:
        return False
    old = _code(compile(source, str(path), "exec"), around)
    new = _code(compile(mutation.applied(source), str(path), "exec"), around)
    if old.co_freevars != new.co_freevars:
        return False
    found = [
        one
        for one in gc.get_objects()
        if isinstance(one, FunctionType)
        and one.__code__.co_filename == str(path)
        and one.__code__.co_qualname == old.co_qualname
        and one.__code__.co_firstlineno == old.co_firstlineno
    ]
    for function in found:
        function.__code__ = new
    return bool(found)
