"""TensorStore's open options under their own names, and what they are here.

https://google.github.io/tensorstore/driver/zarr3/index.html,
https://google.github.io/tensorstore/context.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zarrfs.daemon.options import option_values as values


@dataclass(frozen=True, slots=True)
class Counterpart:
    """One row of the table.

    name : TensorStore's; a mount option too where there is ``read``.
    option : the mount option that it is another name of; empty: none.
    library : the field of `zarrfs.library.source.SourceOptions`; empty: none.
    command : what else does it.
    note : what is to be known.
    read : from the text of a value to that of ``option``; raises `ValueError`.
    """

    name: str
    option: str = ""
    library: str = ""
    command: str = ""
    note: str = ""
    read: Callable[[str], Any] | None = None


def _recheck_data(text: str) -> float:
    """Seconds; a mount is asked to look when a file is opened, and never while it is open."""
    return 0.0 if text.lower() == "open" else _recheck(text)


def _recheck_metadata(text: str) -> float:
    """Seconds; what was read when the mount began is what it opened."""
    return math.inf if text.lower() == "open" else _recheck(text)


def _recheck(text: str) -> float:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return 0.0 if lowered == "true" else math.inf
    try:
        return values.recheck(text)
    except ValueError:
        raise ValueError("is neither true, false, open nor a number of seconds") from None


COUNTERPARTS: tuple[Counterpart, ...] = (
    Counterpart("open", command="zarrfs mount", note="A mount opens what is there."),
    Counterpart("create", command="zarrfs create", note="It fails where an array is."),
    Counterpart("open, create", command="zarrfs create --exist-ok"),
    Counterpart("create, delete_existing", command="zarrfs create --overwrite"),
    Counterpart(
        "assume_metadata",
        option="assume_metadata",
        library="assume_metadata",
        note="A file that holds the document: the source has none, or another one.",
        read=values.path,
    ),
    Counterpart(
        "assume_cached_metadata",
        option="assume_metadata",
        library="assume_metadata",
        note="The same: metadata that are assumed are never looked for.",
        read=values.path,
    ),
    Counterpart(
        "recheck_cached_metadata",
        option="recheck_metadata",
        note="false and open: as they were when the mount first looked; true or an age in "
        "seconds: looked at again when a name is looked up.",
        read=_recheck_metadata,
    ),
    Counterpart(
        "recheck_cached_data",
        option="recheck",
        library="recheck",
        note="true, false, open, or an age in seconds. A mount looks when a file is opened, so "
        "true and open are the same there; the library looks at each read.",
        read=_recheck_data,
    ),
    Counterpart(
        "fill_missing_data_reads",
        option="fill_missing",
        library="fill_missing",
        read=values.flag,
    ),
    Counterpart(
        "store_data_equal_to_fill_value",
        option="store_fill",
        library="store_fill",
        read=values.flag,
    ),
    Counterpart(
        "cache_pool",
        option="memory",
        library="memory",
        note="Of TensorStore's context, its total_bytes_limit. Here it bounds all memory, "
        "changes that are not stored and chunks that are being decoded included.",
        read=values.memory,
    ),
    Counterpart(
        "data_copy_concurrency",
        option="loaders",
        library="loaders",
        note="Of TensorStore's context, its limit. Here one thread fetches and decodes, so it "
        "stands for the concurrency of the store's requests (file_io_concurrency, "
        "s3_request_concurrency and others) as well.",
        read=values.count,
    ),
)
"""In the order in which people meet them."""
