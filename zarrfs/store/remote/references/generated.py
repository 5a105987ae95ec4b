"""References that a document generates with ``gen``, for which fsspec runs Jinja without limits.

https://fsspec.github.io/kerchunk/spec.html

Here an expression is the name of a template or of a dimension, or an arithmetic expression of
integers and dimensions with ``+ - * // %`` and parentheses.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from zarrfs import bounds

_EXPRESSION = re.compile(r"\{\{(.*?)\}\}")
_LONGEST = 200  # characters of an expression
_MOST_EXPRESSIONS = 64  # of one key, URL, offset or length
_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

Names = Mapping[str, int | str]


def generated(gens: Any, templates: Mapping[str, str]) -> dict[str, list[Any]]:
    """All references that a document's ``gen`` generates. Raises ValueError."""
    if not isinstance(gens, list):
        raise ValueError("gen is not a list")
    found: dict[str, list[Any]] = {}
    room = bounds.LARGEST_REFERENCES
    left = bounds.MOST_GENERATED
    for gen in gens:
        if not isinstance(gen, dict) or not isinstance(gen.get("dimensions"), dict):
            raise ValueError("gen has an entry without dimensions")
        dimensions = {str(name): _steps(given) for name, given in gen["dimensions"].items()}
        left -= math.prod(map(len, dimensions.values()))
        if left < 0:
            raise bounds.OutOfBoundsError(f"gen makes more than {bounds.MOST_GENERATED} references")
        if ("offset" in gen) != ("length" in gen):
            raise ValueError("gen has an offset and no length, or a length and no offset")
        texts = [_template(gen.get(part)) for part in ("key", "url")]
        numbers = [_template(gen[part]) for part in ("offset", "length") if part in gen]
        for values in product(*dimensions.values()):
            names: Names = {**templates, **dict(zip(dimensions, values, strict=True))}
            key, url = (fill(names) for fill in texts)
            room -= len(key) + len(url)
            _check_room(room)
            found[key] = [url, *(int(fill(names)) for fill in numbers)]
    return found


def _check_room(left: int) -> None:
    if left < 0:
        raise bounds.OutOfBoundsError(
            f"the references of gen have more than {bounds.LARGEST_REFERENCES} bytes"
        )


def _steps(given: Any) -> Sequence[int]:
    """The values of one dimension, from a list, or from start, stop and step of a range."""
    if isinstance(given, dict):
        ends = _whole(given.get("start", 0)), _whole(given.get("stop"))
        steps = range(*ends, _whole(given.get("step", 1)))
        # The bounds may exceed what `len` supports.
        if steps and abs(steps[-1] - steps[0]) // abs(steps.step) >= bounds.MOST_GENERATED:
            raise bounds.OutOfBoundsError(f"gen makes more than {bounds.MOST_GENERATED} references")
        return steps
    if not isinstance(given, list):
        raise ValueError("gen has a dimension that is neither a list nor a range")
    return [_whole(value) for value in given]


def _whole(value: Any) -> int:
    if type(value) is not int or abs(value) > bounds.LARGEST_LENGTH:
        raise ValueError("gen has a dimension that is not a whole number")
    return value


def _template(text: Any) -> Callable[[Names], str]:
    """A function that fills in a text. Both this and that function raise ValueError."""
    if type(text) is int:
        text = str(_whole(text))
    if not isinstance(text, str):
        raise ValueError("gen has a key, URL, offset or length that is not text")
    if (count := text.count("{{")) > _MOST_EXPRESSIONS:
        raise bounds.OutOfBoundsError(
            f"gen has a key, URL, offset or length of {count} expressions"
        )
    # Text and expressions alternate.
    parts = [
        _expression(part) if at % 2 else part for at, part in enumerate(_EXPRESSION.split(text))
    ]

    def fill(names: Names) -> str:
        filled = [part if isinstance(part, str) else str(part(names)) for part in parts]
        _check_room(bounds.LARGEST_REFERENCES - sum(map(len, filled)))
        return "".join(filled)

    return fill


def _expression(text: str) -> Callable[[Names], int | str]:
    if len(text) > _LONGEST:
        raise ValueError(f"gen has an expression of {len(text)} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"gen: {text!r} is not an expression") from error
    if isinstance(tree, ast.Name):
        return _name(tree.id)
    return _number(tree, text)


def _name(name: str) -> Callable[[Names], int | str]:
    def look_up(names: Names) -> int | str:
        try:
            return names[name]
        except KeyError:
            raise ValueError(f"gen names an unknown template {name!r}") from None

    return look_up


def _number(tree: ast.expr, text: str) -> Callable[[Names], int]:
    match tree:
        case ast.Constant(value=int() as value) if type(value) is int:
            return lambda names: value
        case ast.Name(id=name):
            look_up = _name(name)

            def number(names: Names) -> int:
                if isinstance(value := look_up(names), str):
                    raise ValueError(f"gen: {name!r} in {text!r} is not a number")
                return value

            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            first, second = _number(left, text), _number(right, text)
            apply = _OPERATORS[type(op)]

            def calculate(names: Names) -> int:
                try:
                    value = apply(first(names), second(names))
                except ZeroDivisionError as error:
                    raise ValueError(f"gen: {text!r} divides by 0") from error
                if abs(value) > bounds.LARGEST_LENGTH:
                    raise ValueError(f"gen: {text!r} is larger than any file")
                return value

            return calculate
    raise ValueError(f"gen: {text!r} is not an expression of names, whole numbers and + - * // %")
