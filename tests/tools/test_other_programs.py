"""Programs of Debian open an array by the name of a file, with nothing else said."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_program, run
from tests.tools.samples import ORDERS, values

NUMBERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
# GDAL before 3.7 has no int8, and before 3.5 no integers of 64 bits.
OF_GDAL = ("u1", "i2", "u2", "i4", "u4", "f4", "f8")


@pytest.fixture(params=ORDERS)
def shown(request, mounts):
    """``shown(code, rank, file)``: the path of a file, and what it must hold as the file has it."""

    def of(code: str, rank: int, file: str) -> tuple[Path, np.ndarray]:
        data = values(code, rank)
        node = mounts[request.param] / f"{code}_{rank}"
        if request.param == "C":
            return node / file, data
        return node / file.replace("array", node.name, 1), data.T

    return of


@pytest.mark.parametrize("file", ["array.bin", "array.vrt", "array.nc", "array.fits"])
def test_gdal(file, shown, tmp_path):
    """Of an array of three axes the slowest one is that of the bands."""
    need_program("gdal_translate")
    if file in ("array.nc", "array.fits"):
        driver = {"array.nc": "netCDF", "array.fits": "FITS"}[file]
        if driver.encode() not in run("gdalinfo", "--formats"):
            pytest.skip(f"this GDAL has no driver {driver}")
    for code in OF_GDAL:
        for rank in (2, 3):
            if (file, code) in {("array.fits", "u4"), ("array.fits", "u2")}:
                continue  # GDAL reads these as signed numbers or as floats
            path, expected = shown(code, rank, file)
            raw = tmp_path / "raw"
            run("gdal_translate", "-q", "-of", "ENVI", path, raw)
            found = np.fromfile(raw, expected.dtype.newbyteorder("<")).reshape(expected.shape)
            if file in ("array.nc", "array.fits"):
                # GDAL keeps the first line of these at the bottom.
                found = found if np.array_equal(found, expected) else found[..., ::-1, :]
            np.testing.assert_array_equal(found, expected, err_msg=f"{path}")


def test_gdal_reads_the_pages_of_a_tiff(shown, tmp_path):
    need_program("gdal_translate")
    for code in OF_GDAL:
        path, expected = shown(code, 3, "array.tif")
        for page in (0, 2, len(expected) - 1):
            raw = tmp_path / "raw"
            run("gdal_translate", "-q", "-of", "ENVI", f"GTIFF_DIR:{page + 1}:{path}", raw)
            found = np.fromfile(raw, expected.dtype.newbyteorder("<"))
            np.testing.assert_array_equal(found.reshape(expected.shape[1:]), expected[page])


def test_h5dump(shown, tmp_path):
    need_program("h5dump")
    for code in NUMBERS:
        for rank in (1, 2, 3, 4):
            path, expected = shown(code, rank, "array.h5")
            run("h5dump", "-d", f"/{code}_{rank}", "-b", "LE", "-o", tmp_path / "raw", path)
            found = np.fromfile(tmp_path / "raw", expected.dtype.newbyteorder("<"))
            np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("file", ["array.h5", "array.nc"])
def test_ncdump(file, shown):
    need_program("ncdump")
    for code in ("u1", "i2", "u4", "i8", "f8"):
        path, expected = shown(code, 3, file)
        text = run("ncdump", "-p", "9,17", "-v", f"{code}_3", path).decode()
        assert re.search(r"title = \"a sample\"", text)
        numbers = text.rpartition("=")[2].rpartition(";")[0].split(",")
        found = np.array([float(n) if code == "f8" else int(n) for n in numbers])
        np.testing.assert_array_equal(found.astype(expected.dtype), expected.reshape(-1))


@pytest.mark.parametrize("file", ["array.nhdr", "array.nrrd"])
def test_teem(file, shown):
    unu = need_program("teem-unu")
    for code in NUMBERS:
        for rank in (1, 2, 3, 4):
            path, expected = shown(code, rank, file)
            # It finds the elements beside the header where it is started.
            raw = run("env", "-C", path.parent, unu, "save", "-f", "nrrd", "-e", "raw",
                      "-en", "little", "-i", path.name)  # fmt: skip
            raw = raw[len(raw) - expected.nbytes :]
            found = np.frombuffer(raw, expected.dtype.newbyteorder("<")).reshape(expected.shape)
            np.testing.assert_array_equal(found, expected)


def test_imagemagick(shown):
    convert = "magick" if os.path.exists("/usr/bin/magick") else "/usr/bin/convert"
    need_program(convert)
    for code in ("u1", "u2"):
        for rank in (2, 3):
            path, expected = shown(code, rank, "array.tif")
            depth = 8 * expected.dtype.itemsize
            raw = run(convert, "-depth", depth, "-endian", "LSB", path, "-depth", depth, "gray:-")
            found = np.frombuffer(raw, expected.dtype.newbyteorder("<"))
            np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("file", ["array.tif"])
def test_vips(file, shown, tmp_path):
    need_program("vips")
    for code in ("u1", "u2", "i2", "u4", "f4"):
        path, expected = shown(code, 3, file)
        run("vips", "rawsave", f"{path}[n=-1]", tmp_path / "raw")
        found = np.fromfile(tmp_path / "raw", expected.dtype.newbyteorder("="))
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("program", ["sox", "ffmpeg"])
def test_sound(program, shown, tmp_path):
    need_program(program)
    kinds = {"i2": ("s16le", "signed-integer", 16), "f4": ("f32le", "floating-point", 32)}
    for code, (name, encoding, bits) in kinds.items():
        path, expected = shown(code, 1, "array.wav")
        if code == "f4" and program == "sox":
            continue  # it cuts what is beyond -1 and 1
        if program == "sox":
            raw = run("sox", "-D", path, "-t", "raw", "-e", encoding, "-b", bits, "-")
        else:
            raw = run("ffmpeg", "-v", "error", "-i", path, "-f", name, "-c:a", f"pcm_{name}", "-")
        found = np.frombuffer(raw, expected.dtype.newbyteorder("<"))
        np.testing.assert_array_equal(found, expected)


def test_video(mounted, tmp_path):
    need_program("ffmpeg")
    group = zarr.create_group(tmp_path / "g.zarr")
    for code in ("u1", "u2"):
        data = values(code, 3)
        group.create_array(code, data=data, chunks=(4, 4, 4), attributes={"frame_rate": 10})
    mount = mounted(tmp_path / "g.zarr", "views=y4m")
    for code, name in {"u1": "gray", "u2": "gray16le"}.items():
        path = mount / code / "array.y4m"
        raw = run("ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", name, "-")
        found = np.frombuffer(raw, f"<{code}").reshape(values(code, 3).shape)
        np.testing.assert_array_equal(found, values(code, 3))


def test_octave(shown, tmp_path):
    """It has the fastest axis of an HDF5 file first."""
    need_program("octave")
    for code in ("u1", "i2", "u4", "f4", "f8"):
        path, expected = shown(code, 3, "array.h5")
        script = (
            f"s = load('-hdf5', '{path}'); a = s.{code}_3; disp(size(a));"
            f"f = fopen('{tmp_path}/raw', 'w'); fwrite(f, a, 'double'); fclose(f);"
        )
        said = run("octave", "--no-gui", "--quiet", "--eval", script).decode().split()
        found = np.fromfile(tmp_path / "raw")
        assert [int(n) for n in said] == list(expected.shape[::-1])
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_gdl(shown, tmp_path):
    """Debian builds it without HDF5."""
    need_program("gdl")
    for code in ("u1", "u2"):
        path, expected = shown(code, 2, "array.tif")
        raw = f"openw, o, '{tmp_path}/raw', /get_lun & writeu, o, a & close, o"
        script = f"a = read_tiff('{path}') & {raw}"
        run("gdl", "-quiet", "-e", script)
        found = np.fromfile(tmp_path / "raw", expected.dtype.newbyteorder("<"))
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_nifti_tool(shown):
    need_program("nifti_tool")
    for code in ("u1", "i2", "f4", "f8"):
        path, expected = shown(code, 3, "array.nii")
        x, y, z = 2, 7, 4
        said = run("nifti_tool", "-quiet", "-disp_ci", x, y, z, 0, 0, 0, 0, "-infiles", path)
        assert float(said.split()[-1]) == float(expected[z, y, x])
