"""TensorStore's open options, and the options of zarrfs that correspond to them.

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

    name : TensorStore's name. With ``option``, it is also accepted as a mount option.
    option : the mount option that corresponds to it, which is also the field of
        `zarrfs.library.source.SourceOptions` if that has one of this name; empty: none.
    command : the command that corresponds to it; empty: none.
    note : a remark for the table.
    read : converts the text of a value to a value of ``option``; raises `ValueError`. None: as
        ``option`` does.
    """

    name: str
    option: str = ""
    command: str = ""
    note: str = ""
    read: Callable[[str], Any] | None = None


def _recheck(at_open: float) -> Callable[[str], float]:
    """Reads seconds; ``at_open`` for "open"."""
    words = {"true": 0.0, "false": math.inf, "open": at_open}

    def read(text: str) -> float:
        if (found := words.get(text.lower())) is not None:
            return found
        try:
            return values.recheck(text)
        except ValueError:
            raise ValueError("is neither true, false, open nor a number of seconds") from None

    return read


COUNTERPARTS: tuple[Counterpart, ...] = (
    Counterpart("open", command="zarrfs mount", note="A mount opens an existing array or group."),
    Counterpart("create", command="zarrfs create", note="It fails if the array exists."),
    Counterpart("open, create", command="zarrfs create --exist-ok"),
    Counterpart("create, delete_existing", command="zarrfs create --overwrite"),
    Counterpart(
        "assume_metadata",
        option="assume_metadata",
        note="A file with the metadata document. zarrfs does not read that of the source.",
    ),
    Counterpart(
        "assume_cached_metadata",
        option="assume_metadata",
        note="The same, because zarrfs never reads metadata again that it assumes.",
    ),
    Counterpart(
        "recheck_cached_metadata",
        option="recheck_metadata",
        note="With false and open, a mount keeps the metadata that it read first. With true or "
        "an age in seconds, it may read them again when a program looks up a name.",
        read=_recheck(math.inf),
    ),
    Counterpart(
        "recheck_cached_data",
        option="recheck",
        note="true, false, open, or an age in seconds. A mount checks when a program opens a "
        "file, so true and open mean the same. The library checks at each read.",
        read=_recheck(0.0),
    ),
    Counterpart("fill_missing_data_reads", option="fill_missing"),
    Counterpart("store_data_equal_to_fill_value", option="store_fill"),
    Counterpart(
        "cache_pool",
        option="memory",
        note="The total_bytes_limit of TensorStore's context. In zarrfs it bounds all memory, "
        "including changes that are not stored and chunks that are being decoded.",
    ),
    Counterpart(
        "data_copy_concurrency",
        option="loaders",
        note="The limit of TensorStore's context. In zarrfs one thread fetches and decodes, so "
        "it also stands for the concurrency of requests to the store (file_io_concurrency, "
        "s3_request_concurrency and others).",
    ),
)
"""In the order in which people meet them."""
