"""Checks of the answers of worker processes. Each of them raises `BadAnswer`."""

from __future__ import annotations

from typing import Any

from zarrfs import errors
from zarrfs.errors import ChunkError, StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.jobs.job import BadAnswer
from zarrfs.store.base import Generation

Error = ChunkError | StoreError

_ERRORS: dict[str, type[Error]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, ChunkError | StoreError)
}
_LARGEST = 1 << 63


def items(value: Any, count: int | None = None) -> list[Any]:
    """A list, of ``count`` items if that is not None."""
    if not isinstance(value, list) or (count is not None and len(value) != count):
        raise BadAnswer(f"{value!r:.100} is not a list of {count} items")
    return value


def number(value: Any, least: int = 0, most: int = _LARGEST) -> int:
    """An integer from ``least`` to ``most``."""
    if type(value) is not int or not least <= value <= most:
        raise BadAnswer(f"{value!r:.100} is not a number from {least} to {most}")
    return value


def seconds(value: Any) -> float:
    """A duration in seconds."""
    if type(value) not in (int, float) or not 0 <= value <= _LARGEST:
        raise BadAnswer(f"{value!r:.100} is not a time")
    return float(value)


def index(value: Any, rank: int) -> Index:
    return tuple([number(each) for each in items(value, rank)])


def generation(value: Any) -> Generation | None:
    """The state of an object; None if there is no object."""
    if value is None:
        return None
    if any(not isinstance(each, int | str | None) for each in items(value)):
        raise BadAnswer(f"{value!r:.100} is not a state of an object")
    return tuple(value)


def error(value: Any) -> Error:
    """The error that was passed to `error_to_json`."""
    kind, key, reason = items(value, 3)
    if not (isinstance(kind, str) and isinstance(key, str) and isinstance(reason, str)):
        raise BadAnswer(f"{value!r:.100} is not an error")
    try:
        return _ERRORS[kind](key, reason)
    except KeyError:
        raise BadAnswer(f"{kind!r:.100} is not a kind of error") from None


def error_to_json(failure: Error) -> list[str]:
    """An error as JSON, of the nearest known kind."""
    kinds = [kind.__name__ for kind in type(failure).__mro__ if kind in _ERRORS.values()]
    return [kinds[0], failure.key, failure.reason]
