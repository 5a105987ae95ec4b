"""What the tests of the pure layers share."""

from collections.abc import Callable
from typing import Any

import pytest

from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.v3 import parse_node


def array_document(**members: Any) -> dict[str, Any]:
    """A small valid v3 array document with some members replaced; None removes one."""
    document: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [5, 7],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    document.update(members)
    return document


@pytest.fixture
def document() -> Callable[..., dict[str, Any]]:
    return array_document


@pytest.fixture
def parse() -> Callable[..., ArrayMetadata]:
    """Parses the small array document with some members replaced."""

    def parse_array(**members: Any) -> ArrayMetadata:
        node = parse_node(array_document(**members))
        assert isinstance(node, ArrayMetadata)
        return node

    return parse_array
