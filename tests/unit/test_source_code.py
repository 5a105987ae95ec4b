"""The source code itself: what it names of other packages, and where it starts programs."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

import zarrfs
from zarrfs.foreign import PRIVATE

ROOT = Path(zarrfs.__file__).parent
# Documented, in spite of their names.
PUBLIC = {"_asdict", "_replace", "_fields", "_exit"}
# Modules that may start programs: their commands come from `command`, or run no Python.
STARTERS = {
    "isolation/decoders.py", "fuse/unmount.py", "jobs/nursery.py",
}  # fmt: skip
# Modules that name the interpreter; `installation` looks at the permissions of its file.
NAMERS = {"isolation/interpreter.py", "daemon/system/installation.py"}
STARTING = ("subprocess", "multiprocessing", "pty")
CALLS = ("exec", "spawn", "posix_spawn", "popen", "system", "open_process", "run_process")


@cache
def sources() -> list[tuple[str, Sequence[ast.AST]]]:
    """Each module, and all nodes of its syntax tree."""
    return [
        (str(path.relative_to(ROOT)), tuple(ast.walk(ast.parse(path.read_text()))))
        for path in ROOT.rglob("*.py")
    ]


def test_the_code_uses_no_private_name_that_is_not_listed():
    """A private name that zarrfs uses and does not define is somebody else's."""
    defined: set[str] = set()
    used: dict[str, set[str]] = defaultdict(set)
    for file, nodes in sources():
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    defined.add(node.name)
                case ast.Name(ctx=ast.Store()):
                    defined.add(node.id)
                case ast.Attribute(ctx=ast.Store(), value=ast.Name("self" | "cls" | "other")):
                    defined.add(node.attr)
                case ast.Attribute():
                    used[node.attr].add(file)
                case ast.ImportFrom(module=str(module)) if not module.startswith("zarrfs"):
                    for name in [*module.split("."), *(alias.name for alias in node.names)]:
                        used[name].add(file)
    private = {name for name in used if name.startswith("_") and not name.startswith("__")}
    listed = {name for one in PRIVATE for name in (*one.module.split("."), *one.path.split("."))}
    assert {name: used[name] for name in private - defined - listed - PUBLIC} == {}


def test_the_code_uses_no_private_name_of_a_module_that_is_not_listed():
    """Whatever zarrfs itself calls by the same name."""
    listed = {(one.module.partition(".")[0], one.path) for one in PRIVATE}
    assert {
        (file, *used)
        for file, nodes in sources()
        for used in uses(nodes)
        if used not in listed and used[1] not in PUBLIC
    } == set()


def uses(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Private names that are looked up in modules of others, each with the package's name."""
    modules: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Import():
                for alias in node.names:
                    modules[alias.asname or alias.name.partition(".")[0]] = alias.name
            case ast.ImportFrom(module=str(module), level=0):
                modules |= {alias.asname or alias.name: module for alias in node.names}
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Name("import_module"), args=[ast.Constant(str(module))]),
            ):
                modules[name] = module
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(name), attr=attribute):
                pass
            case ast.Call(
                func=ast.Name("getattr" | "setattr" | "hasattr"),
                args=[ast.Name(name), ast.Constant(str(attribute)), *_],
            ):
                pass
            case _:
                continue
        package = modules.get(name, "zarrfs").partition(".")[0]
        if package != "zarrfs" and attribute.startswith("_") and not attribute.endswith("__"):
            yield package, attribute


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import zfpy\nzfpy._decompress(b'')", [("zfpy", "_decompress")]),
        ("import a.b as c\nc._d", [("a", "_d")]),
        ("from a.b import C\nC._d", [("a", "_d")]),
        ("c = import_module('a.b')\nc._d", [("a", "_d")]),
        ("import a\nsetattr(a, '_d', 1)", [("a", "_d")]),
        ("import a\na.d, a.__doc__", []),
        ("from zarrfs.a import b\nb._d", []),
    ],
    ids=str,
)
def test_private_names_are_found(code, found):
    assert list(uses([*ast.walk(ast.parse(code))])) == found


def names_in(nodes):
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def modules_in(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_one_place_starts_interpreters():
    """No other module names the interpreter, an option of it, or a way to start a program."""
    for name, nodes in sources():
        strings = {
            node.value
            for node in nodes
            if isinstance(node, ast.List | ast.Tuple)
            for node in node.elts
            if isinstance(node, ast.Constant)
        }
        assert name in NAMERS or "executable" not in set(names_in(nodes)), name
        assert name == "isolation/interpreter.py" or not strings & {"-I", "python", "python3"}, name


def test_few_modules_start_programs():
    for name, nodes in sources():
        # `multiprocessing.synchronize` makes a lock, and starts nothing.
        modules = {each for each in modules_in(nodes) if each != "multiprocessing.synchronize"}
        starts = [each for each in modules if each.partition(".")[0] in STARTING]
        called = {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and node.attr.startswith(CALLS)
            if isinstance(node.value, ast.Name) and node.value.id in ("os", "trio")
        }
        assert name in STARTERS or not starts, (name, starts)
        assert name in STARTERS or not called, (name, called)
