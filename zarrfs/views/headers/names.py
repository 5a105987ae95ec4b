"""Names of files, from the names of nodes and of sources."""

from __future__ import annotations

import re

ARRAY = "array"
"""The files of an array are called this, and an extension, if not after the array."""

# Sources have these for their format, not for their contents.
_SUFFIXES = re.compile(
    r"(\.(ome|zarr|ozx|zip|tar|nc|nc4|cdf|h5|hdf5|tiff?|gri?b2?|json|parquet))+$", re.IGNORECASE
)
# Header files give the name of the file with the elements in ASCII; spaces and % mean patterns of
# names in some.
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]", re.ASCII)
# With the longest extension, below the 255 bytes that file systems take.
_LONGEST = 200


def node_name(url: str, path: str) -> str:
    """The last part of the path of a node, or of the URL of its source."""
    return (path or url.rstrip("/")).rpartition("/")[2]


def file_stem(name: str) -> str:
    """The files of a node of this name are called this, and an extension.

    ``raw`` of ``raw`` and of ``raw.ome.zarr``; ``array`` if nothing is left.
    """
    kept = _UNSAFE.sub("_", _SUFFIXES.sub("", name))[:_LONGEST]
    # A dot would hide the file, and programs take a dash for an option.
    kept = re.sub(r"^[.-]", "_", kept)
    return kept if kept.strip("_.") else ARRAY
