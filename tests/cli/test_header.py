"""``zarrfs header``, and ``zarrfs export`` to files of other formats."""

import h5py
import numpy as np
import pytest
import tifffile
import zarr

from tests.cli.in_process import in_process

DATA = (np.arange(3 * 50 * 70) % 65521).astype("u2").reshape(3, 50, 70)


@pytest.fixture
def source(tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array(
        "a", data=DATA, chunks=(2, 16, 33), dimension_names=("z", "y", "x"),
        attributes={"dimension_units": ["2 um", "500 nm", "500 nm"]},
    )  # fmt: skip
    group.create_array("c", shape=(3, 4), chunks=(3, 4), dtype="complex64")
    return tmp_path / "g.zarr"


def test_the_header_of_a_file_of_ones_own(source):
    done = in_process(
        "header", "--format", "mhd", "--path", "a", "--data-file", "brain.raw", source
    )
    assert done.status == 0
    assert "DimSize = 70 50 3\n" in done.stdout
    assert "ElementSpacing = 500 500 2\n" in done.stdout
    assert done.stdout.endswith("ElementDataFile = brain.raw\n")


def test_the_header_of_the_other_order_and_byte_order(source):
    options = ("--order", "F", "--byteorder", "big")
    done = in_process("header", "--format", "nhdr", *options, source / "a")
    assert "sizes: 3 50 70\n" in done.stdout
    assert "endian: big\n" in done.stdout


def test_what_a_format_cannot_express_is_told(source):
    done = in_process("header", "--format", "nhdr", "--path", "c", source)
    assert (done.status, done.stdout) == (1, "")
    assert "NRRD has no complex64" in done.stderr
    done = in_process("header", "--format", "mhd", "--data-file", "a\nb", source / "a")
    assert done.status == 2


EXPORTS = {
    "a.npy": np.load,
    "a.tif": tifffile.imread,
    "a.TIFF": tifffile.imread,
    "a.h5": lambda path: h5py.File(path)["a"][...],
    "a.nc": lambda path: h5py.File(path)["a"][...],
    "a.bin": lambda path: np.fromfile(path, "<u2").reshape(DATA.shape),
    "a": lambda path: np.fromfile(path, "<u2").reshape(DATA.shape),
    "a.fits": lambda path: (
        np.frombuffer(path.read_bytes()[2880 : 2880 + DATA.nbytes], ">u2") ^ 0x8000
    ).reshape(DATA.shape),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_the_name_of_the_file_says_the_format(name, source, tmp_path):
    done = in_process("export", "--path", "a", source, tmp_path / name)
    assert (done.status, done.stderr) == (0, "")
    np.testing.assert_array_equal(EXPORTS[name](tmp_path / name), DATA)


def test_a_part_is_where_it_was(source, tmp_path):
    target = tmp_path / "a.h5"
    region = ("--region", "1,10:20,5:", "--path", "a")
    assert in_process("export", *region, "--byteorder", "big", source, target).status == 0
    with h5py.File(target) as file:
        np.testing.assert_array_equal(file["a"][...], DATA[1, 10:20, 5:])
        assert file["a"].dtype == ">u2"
        assert file["y"][0] == 5000
        assert file["x"][:2].tolist() == [2500, 3000]


def test_the_option_says_more_than_the_name(source, tmp_path):
    in_process("export", "--path", "a", "--format", "bin", source, tmp_path / "a.tif")
    assert (tmp_path / "a.tif").read_bytes() == DATA.tobytes()
    in_process("export", "--path", "a", "--format", "nrrd", source, tmp_path / "a.x")
    assert (tmp_path / "a.x").read_bytes().startswith(b"NRRD0004\n")


@pytest.mark.parametrize("name", ["a.nhdr", "a.mhd", "a.hdr", "a.vrt", "a.xmf"])
def test_a_header_alone_is_no_export(name, source, tmp_path):
    done = in_process("export", "--path", "a", source, tmp_path / name)
    assert done.status == 2
    assert "zarrfs header" in done.stderr
    assert not (tmp_path / name).exists()


def test_what_cannot_be_expressed_leaves_no_file(source, tmp_path):
    done = in_process("export", "--path", "c", source, tmp_path / "c.nrrd")
    assert done.status == 1
    assert "NRRD has no complex64" in done.stderr
    assert not (tmp_path / "c.nrrd").exists()


def test_the_blocks_of_fits_are_whole(source, tmp_path):
    done = in_process("export", "--path", "a", "--format", "fits", source, tmp_path / "a.fits")
    assert done.status == 0
    assert (tmp_path / "a.fits").stat().st_size % 2880 == 0
