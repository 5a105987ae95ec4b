"""All levels of an image in one file, through the kernel."""

import mmap
import os
from pathlib import Path

import numpy as np
import pytest
import tifffile

from tests.conftest import Mounter
from tests.images import make_image

pytestmark = pytest.mark.timeout(120)

OME = "image.ome.tif"


def test_levels_through_reads_and_mappings(mounted: Mounter, tmp_path: Path) -> None:
    levels = make_image(tmp_path / "i", "cyx", (2, 600, 500), (1, 256, 256))
    file = mounted(tmp_path / "i") / OME
    for _ in range(2):
        with tifffile.TiffFile(file) as found:
            for level, expected in zip(found.series[0].levels, levels, strict=True):
                np.testing.assert_array_equal(level.asarray(), expected)
            (start, *_) = found.pages[1].dataoffsets
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as m:
        assert m[start : start + 512] == levels[0][1, 0, :256].tobytes()


def test_writing_in_place(mounted: Mounter, tmp_path: Path) -> None:
    levels = make_image(tmp_path / "i", "yx", (600, 500), (256, 256), levels=2)
    mount = mounted(tmp_path / "i", "rw")
    with tifffile.TiffFile(mount / OME) as found:
        starts = [level.pages[0].dataoffsets[0] for level in found.series[0].levels]
    flat = [np.memmap(mount / str(n) / "array.bin", "<u2", "r", shape=a.shape)
            for n, a in enumerate(levels)]  # fmt: skip
    assert all(map(np.array_equal, flat, levels))
    fd = os.open(mount / OME, os.O_RDWR)
    for start, level in zip(starts, levels, strict=True):
        assert os.pwrite(fd, b"\7\0" * 256, start) == 512
        level[0, :256] = 7
    os.fsync(fd)
    # Mappings that were made before, and the file itself.
    for known, level in zip(flat, levels, strict=True):
        np.testing.assert_array_equal(known, level)
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"abc", 4)
    os.close(fd)
    with tifffile.TiffFile(mount / OME) as found:
        for level, expected in zip(found.series[0].levels, levels, strict=True):
            np.testing.assert_array_equal(level.asarray(), expected)
    # And the other way round.
    with open(mount / "1" / "array.bin", "r+b") as file:
        file.write(b"\1\0")
    levels[1][0, 0] = 1
    with tifffile.TiffFile(mount / OME) as found:
        np.testing.assert_array_equal(found.series[0].levels[1].asarray(), levels[1])
