"""What the tests of the pure layers share."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fs import documents
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.v3 import parse_node


def array_document(**members: Any) -> dict[str, Any]:
    """A small valid v3 array document with some members replaced."""
    return json.loads(documents.array_document((5, 7), (2, 3), fill_value=0)) | members


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


@pytest.fixture
def array(parse):
    """``array(names, data_type, **members)``: metadata of an array of axes of 3, 4, … elements."""

    def of(names="yx", data_type="int16", shape=None, **members):
        shape = list(range(3, 3 + len(names))) if shape is None else shape
        grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
        given = {"fill_value": 0, "dimension_names": list(names), **members}
        return parse(shape=shape, data_type=data_type, chunk_grid=grid, **given)

    return of
