"""Creating an array where a path or a URL says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.making.create import IfExists, Outcome, create_array, new_documents
from zarrfs.format.making.new_array import NewArray
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.open import StoreConfig, create_store


def create(
    target: str,
    array: NewArray,
    *,
    storage_options: Mapping[str, object],
    if_exists: IfExists = IfExists.FAIL,
) -> tuple[Outcome, ArrayMetadata]:
    """Creates an array at ``target``: a directory that need not exist, or a URL.

    storage_options : given to fsspec as they are; never shown.

    Returns what was done, and the metadata of the array that exists now. Raises as
    `zarrfs.array.making.create.create_array`, before it changes anything if there can be no such
    array.
    """
    new_documents(array)
    with closing(create_store(target, StoreConfig(storage_options))) as store:
        outcome = create_array(store, "", array, if_exists)
        metadata = Hierarchy(store).root().metadata
        assert isinstance(metadata, ArrayMetadata)
        return outcome, metadata
