"""Detects the format of a file by its first bytes."""

from __future__ import annotations

import os
from typing import NamedTuple

from zarrfs.store.local.local_errors import store_error


class Kind(NamedTuple):
    """A format for which references can be made.

    shown : the name shown to users.
    extra : the extra of zarrfs that installs the packages for reading it.
    """

    name: str
    shown: str
    extra: str


_HDF5 = Kind("hdf5", "an HDF5 or NetCDF-4 file", "netcdf")
_NETCDF3 = Kind("netcdf3", "a NetCDF file", "netcdf")
_TIFF = Kind("tiff", "a TIFF file", "tiff")
_GRIB = Kind("grib", "a GRIB file", "grib")
REFERENCES = Kind("references", "a file of references", "")

CHANGED = "was changed since it was mounted: mount it again"

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# An HDF5 file may begin with a user block of 512 bytes or a larger power of two.
_HDF5_USER_BLOCKS = tuple(512 << n for n in range(12))
_MAGIC = {
    _HDF5_MAGIC: _HDF5,
    b"CDF\x01": _NETCDF3,
    b"CDF\x02": _NETCDF3,
    b"CDF\x05": _NETCDF3,
    b"II*\0": _TIFF,
    b"MM\0*": _TIFF,
    b"II+\0": _TIFF,
    b"MM\0+": _TIFF,
    b"GRIB": _GRIB,
}
ZIP_ENDINGS = (".zip", ".ozx")
"""How the names of zip files end; ``.ozx`` is OME-Zarr's."""

_OF_REFERENCES = (b'"refs"', b'".zgroup"', b'".zarray"', b'"zarr.json"')
_HEAD = 1 << 12


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """Differs between files, and between states of a file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def exact_state_of(status: os.stat_result) -> tuple[int, ...]:
    """`state_of`, and the ctime.

    It differs also where a file was changed in place and its mtime reset (rsync -t, cp -p), and
    where only its permissions or links have changed.
    """
    return *state_of(status), status.st_ctime_ns


def kind_of(path: str) -> Kind | None:
    """The format of a file; None if it is unknown. Raises StoreError if it cannot be read."""
    try:
        # O_NONBLOCK: opening a FIFO must not block.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            head = os.pread(fd, _HEAD, 0)
            for magic, kind in _MAGIC.items():
                if head.startswith(magic):
                    return kind
            if any(os.pread(fd, 8, at) == _HDF5_MAGIC for at in _HDF5_USER_BLOCKS):
                return _HDF5
        finally:
            os.close(fd)
    except OSError as error:
        raise store_error(path, error) from error
    if head.lstrip()[:1] == b"{" and any(word in head for word in _OF_REFERENCES):
        return REFERENCES
    return None


def is_parquet_references(path: str) -> bool:
    """Whether a directory holds references in Parquet, as kerchunk and VirtualiZarr write them."""
    document = os.path.join(path, ".zmetadata")
    try:
        if not os.path.isfile(document) or os.path.lexists(os.path.join(path, ".zgroup")):
            return False
        with open(document, "rb") as file:
            # The member may stand at either end.
            ends = file.read(_HEAD)
            file.seek(max(os.path.getsize(document) - _HEAD, 0))
            return b'"record_size"' in ends + file.read(_HEAD)
    except OSError:
        return False
