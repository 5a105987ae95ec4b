"""Small faults that a careless programmer may make, found in the text of a module."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

# The modules that data depend on.
MODULES = (
    "zarrfs/array/",
    "zarrfs/cache/read/",
    "zarrfs/cache/write/",
    "zarrfs/format/codecs/",
    "zarrfs/format/metadata/",
    "zarrfs/fs/files/",
    "zarrfs/fs/replay.py",
    "zarrfs/store/local/",
    "zarrfs/views/elements/",
    "zarrfs/views/slabs/",
)

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

    def applied(self, source: bytes) -> bytes:
        """The module's text with the mutation."""
        stop = self.start + len(self.old.encode())
        return source[: self.start] + self.new.encode() + source[stop:]

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
            case ast.Expr(value=ast.Await()):
                yield changed(*span(node), "pass")
            case (
                ast.With(items=[ast.withitem(optional_vars=None)])
                | ast.AsyncWith(items=[ast.withitem(optional_vars=None)])
            ):
                yield changed(span(node)[0], span(node.items[0].context_expr)[1], "if True")
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


def modules(chosen: list[str]) -> list[str]:
    """Those below the chosen paths, of all that data depend on."""
    found = {
        str(path.relative_to(ROOT))
        for name in MODULES
        for path in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))
    }
    return sorted(name for name in found if not chosen or name.startswith(tuple(chosen)))
