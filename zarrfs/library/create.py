"""Creating an array where a path or a URL says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.making.create import IfExists, Outcome, create_array, new_documents
from zarrfs.format.making.new_array import NewArray
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.open import StoreConfig, create_store


@dataclass(frozen=True, slots=True)
class CreateOptions:
    """Where and how an array is created.

    storage_options : given to fsspec as they are; never shown.
    if_exists : what to do where an array is already.
    """

    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    if_exists: IfExists = IfExists.FAIL


@dataclass(frozen=True, slots=True)
class Created:
    """The array that exists now."""

    outcome: Outcome
    metadata: ArrayMetadata


def create(target: str, array: NewArray, options: CreateOptions) -> Created:
    """Creates an array at ``target``: a directory that need not exist, or a URL.

    Raises as `zarrfs.array.making.create.create_array`; nothing was changed before where what is
    asked for is no array.
    """
    new_documents(array)
    with closing(create_store(target, StoreConfig(options.storage_options))) as store:
        outcome = create_array(store, "", array, options.if_exists)
        metadata = Hierarchy(store).root().metadata
        assert isinstance(metadata, ArrayMetadata)
        return Created(outcome, metadata)
