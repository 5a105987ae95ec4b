"""Reads ``zarr.json`` of any kind with ``zarr_metadata``.

That package is the Zarr developers' own model of the specification. It reads a document after
known harmless deviations have been corrected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from zarr_metadata import MetadataValidationError
from zarr_metadata.model import (
    UNSET,
    ZarrV3ArrayMetadata,
    ZarrV3GroupMetadata,
    repair_node_metadata_v3,
)

from zarrfs.bounds import shown
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.metadata.lenient import corrected
from zarrfs.format.metadata.members import ArrayMembers, plain


def array_members(value: Mapping[str, Any], document: str) -> ArrayMembers:
    """The members of an array's document. Raises MetadataError, UnsupportedError."""
    with _reading(document):
        model = ZarrV3ArrayMetadata.from_json(_corrected(value))
    _check_understood(model.must_understand_fields, document)
    if model.storage_transformers:
        raise UnsupportedError(
            document, f"unknown storage transformer {model.storage_transformers[0].name!r}"
        )
    return ArrayMembers(
        shape=tuple(model.shape),
        data_type=plain(model.data_type.json),
        fill_value=plain(model.fill_value),
        codecs=[plain(codec.json) for codec in model.codecs],
        chunk_grid=plain(model.chunk_grid.json),
        chunk_key_encoding=plain(model.chunk_key_encoding.json),
        grid_name=model.chunk_grid.name,
        grid_configuration=plain(model.chunk_grid.configuration) or {},
        dimension_names=() if model.dimension_names is UNSET else tuple(model.dimension_names),
    )


def corrected_group(value: Mapping[str, Any], document: str) -> Mapping[str, Any]:
    """A group's document without deviations. Raises MetadataError, UnsupportedError."""
    fixed = _corrected(value)
    with _reading(document):
        model = ZarrV3GroupMetadata.from_json(fixed)
    _check_understood(model.must_understand_fields, document)
    return fixed


def deviations(value: Any) -> list[str]:
    """Where a document deviates from the specification, whether it is served or not."""
    if not isinstance(value, Mapping):
        return []
    model = ZarrV3GroupMetadata if value.get("node_type") == "group" else ZarrV3ArrayMetadata
    try:
        # Attributes belong to the user, and may have any value.
        model.from_json({**value, "attributes": {}})
    except MetadataValidationError as error:
        return texts(error)
    return []


def texts(error: BaseException | None) -> list[str]:
    """All causes of a MetadataError; empty if the model did not cause it."""
    if not isinstance(error, MetadataValidationError):
        return []
    found = []
    for problem in error.problems:
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem.loc)
        message = shown(problem.message)
        found.append(f"{where.lstrip('.')}: {message}" if where else message)
    return found


def _corrected(value: Mapping[str, Any]) -> Mapping[str, Any]:
    repaired, _ = repair_node_metadata_v3(dict(value))
    # Attributes may have any value. Some writers put a bare NaN in them, which the model refuses.
    return {**corrected(repaired), "attributes": {}}  # type: ignore[arg-type]


@contextmanager
def _reading(document: str) -> Iterator[None]:
    try:
        yield
    except MetadataValidationError as error:
        first, *others = texts(error)
        more = f" (and {len(others)} more)" if others else ""
        raise MetadataError(document, f"{first}{more}") from error


def _check_understood(fields: Mapping[str, Any], document: str) -> None:
    for name in fields:
        raise UnsupportedError(document, f"unknown member {name!r} that must be understood")
