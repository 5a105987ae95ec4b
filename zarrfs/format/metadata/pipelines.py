"""Makes codec pipelines from their JSON in v3 metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zarrfs import bounds
from zarrfs.errors import reason_of
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import CodecKind, find_codec
from zarrfs.format.unserved import UnservedError


def parse_pipeline(codecs: Sequence[Any]) -> CodecPipeline:
    """Configure codecs from their JSON, in encoding order.

    Raises UnservedError for an unknown codec, ValueError for a malformed codec or an invalid
    order.
    """
    bounds.check_count(len(codecs), bounds.MOST_CODECS, "codecs")
    configured = []
    for value in codecs:
        match value:
            case str(name):
                configuration: Any = {}
            case {"name": str(name)}:
                configuration = value.get("configuration") or {}
            case _:
                raise ValueError(f"{bounds.shown(repr(value))} is not a codec")
        if (found := find_codec(name)) is None:
            raise UnservedError(f"unknown codec {name!r}")
        configured.append((found[0], _configure(name, found[1], configuration)))
    return in_order(configured)


def _configure(name: str, make: Callable[..., Any], configuration: Any) -> Any:
    if not isinstance(configuration, Mapping):
        raise ValueError(f"codec {name!r}: the configuration is not an object")
    members = {member: frozen(item) for member, item in configuration.items()}
    for member in ("codecs", "index_codecs"):
        if isinstance(members.get(member), tuple):
            members[member] = parse_pipeline(members[member])
    try:
        return make(**members)
    except (UnservedError, bounds.OutOfBoundsError):
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"codec {name!r}: {reason_of(error)}") from error


def in_order(codecs: Sequence[tuple[CodecKind, Any]]) -> CodecPipeline:
    """The pipeline of configured codecs. Raises ValueError for an invalid order."""
    kinds = [kind for kind, _ in codecs]
    if kinds.count("array -> bytes") != 1:
        raise ValueError("expected exactly one array -> bytes codec")
    middle = kinds.index("array -> bytes")
    if "bytes -> bytes" in kinds[:middle] or "array -> array" in kinds[middle:]:
        raise ValueError("codecs must go from array to array, then to bytes, then bytes to bytes")
    made = [codec for _, codec in codecs]
    return CodecPipeline(tuple(made[:middle]), made[middle], tuple(made[middle + 1 :]))


def frozen(value: Any) -> Any:
    """JSON with tuples in place of lists, so that codecs can be compared and hashed."""
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in value)
    if isinstance(value, Mapping):
        return {key: frozen(item) for key, item in value.items()}
    return value
