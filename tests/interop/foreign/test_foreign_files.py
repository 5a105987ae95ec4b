"""NetCDF, HDF5, TIFF, GRIB files and files of references, mounted as they are."""

import io
import json
import os
import re
import resource
import struct
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, cast
from unittest import mock

import eccodes
import h5py
import netCDF4
import numcodecs
import numpy as np
import pytest
import tifffile
import xarray
from scipy.io import netcdf_file

import zarrfs
from tests.cli.in_process import in_process
from tests.fuzz.mutate import mutated_bytes
from tests.interop.served_files import MountedFiles
from zarrfs.errors import DecodeError, StoreError, UnsupportedError, UsageError
from zarrfs.format.codec import ChunkSpec
from zarrfs.format.codecs.grib import GribCodec
from zarrfs.format.registry import find_data_type
from zarrfs.library.header import header as zarrfs_header
from zarrfs.library.source import SourceOptions
from zarrfs.library.transfer.flat_form import FlatForm
from zarrfs.store.foreign import tiff
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.views.facts.gather import gather
from zarrfs.views.facts.missing import missing_values

from .netcdf import VARIABLES, write_file

pytestmark = pytest.mark.timeout(300)

RANDOM = np.random.default_rng(5)


def check_netcdf4(files, path):
    with h5py.File(path) as opened:
        for name in VARIABLES:
            elements = np.asarray(cast(Any, opened[name])[()])
            little = elements.astype(elements.dtype.newbyteorder("<"))
            assert files.read(f"{name}/array.bin") == little.tobytes(), name


class TestNetcdf:
    def test_every_variable_of_netcdf4(self, tmp_path, open_direct):
        write_file(tmp_path / "weather.nc")
        files = open_direct(tmp_path / "weather.nc")
        check_netcdf4(files, tmp_path / "weather.nc")
        assert json.loads(files.read("zarr.json"))["attributes"]["title"] == "Weather"

    def test_whatever_its_name_and_through_a_link(self, tmp_path, open_direct):
        write_file(tmp_path / "data")
        (tmp_path / "link").symlink_to("data")
        check_netcdf4(open_direct(tmp_path / "link"), tmp_path / "data")

    def test_hdf5_behind_a_user_block(self, tmp_path, open_direct):
        values = RANDOM.normal(size=(7, 9)).astype("f4")
        with h5py.File(tmp_path / "a.h5", "w", userblock_size=1024) as file:
            file.create_dataset("g/x", data=values, chunks=(4, 4), compression="gzip", shuffle=True)
        assert open_direct(tmp_path / "a.h5").read("g/x/array.bin") == values.tobytes()

    def test_netcdf3(self, tmp_path, open_direct):
        values = {"a": np.arange(15, dtype="f4").reshape(3, 5), "b": np.arange(5, dtype="i2")}
        with netcdf_file(tmp_path / "old.nc", "w") as file:
            file.createDimension("t", None)
            file.createDimension("x", 5)
            file.createVariable("a", "f4", ("t", "x"))[:] = values["a"]
            file.createVariable("b", "i2", ("x",))[:] = values["b"]
        files = open_direct(tmp_path / "old.nc")
        for name, expected in values.items():
            assert files.read(f"{name}/array.bin") == expected.tobytes()

    @pytest.mark.mount
    @pytest.mark.filterwarnings("ignore:Object at .* is not recognized")
    @pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC"])
    def test_attributes_keep_their_types(self, form, tmp_path, mount_daemon):
        """Of those of ``scale_factor`` and ``add_offset`` readers make the type of values."""
        kinds = ["i1", "i2", "i4", "f4", "f8"]
        kinds += ["u1", "u2", "u4", "i8", "u8"] * (form == "NETCDF4")
        said = {f"of_{kind}": np.array([1, 2], kind) for kind in kinds}
        said |= {"scale_factor": np.float32(0.1), "add_offset": np.float32("nan")}
        said |= {"valid_range": np.array([0.0, 100.0]), "long": np.arange(1025, dtype="i2")}
        with netCDF4.Dataset(tmp_path / "a.nc", "w", format=form) as file:
            file.createDimension("x", 5)
            file.createVariable("a", "i2", ("x",)).setncatts(said)
            file.setncatts(said)
        daemon = mount_daemon(tmp_path / "a.nc")
        with netCDF4.Dataset(Path(daemon.path) / "group.h5") as file:
            for node in (file, file["a"]):
                for name, value in said.items():
                    found = np.array(node.getncattr(name))
                    assert found.dtype == value.dtype, name
                    assert np.array_equal(found, value, equal_nan=True), name
        with xarray.open_zarr(daemon.path, consolidated=False, mask_and_scale=False) as dataset:
            dataset.to_netcdf(tmp_path / "again.nc", format=form)

    @pytest.mark.mount
    def test_mounted(self, tmp_path, mount_daemon, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        write_file(tmp_path / "weather.nc")
        daemon = mount_daemon(tmp_path / "weather.nc")
        check_netcdf4(MountedFiles(daemon.path), tmp_path / "weather.nc")
        shown = json.loads((Path(daemon.path) / ".zarrfs/config.json").read_text())
        assert shown["source"] == f"file://{tmp_path}/weather.nc"
        assert len(list((tmp_path / "cache/zarrfs/references").iterdir())) == 1


IMAGE = RANDOM.integers(0, 60000, (100, 70)).astype("u2")
STACK = RANDOM.integers(0, 255, (3, 50, 40)).astype("u1")
TIFFS: dict[str, tuple[np.ndarray[Any, Any], dict[str, Any]]] = {
    "contiguous": (IMAGE, {}),
    "big-endian": (IMAGE, {"byteorder": ">", "tile": (32, 32)}),
    "BigTIFF": (IMAGE, {"bigtiff": True, "tile": (32, 32), "compression": "zlib"}),
    "strips": (IMAGE, {"rowsperstrip": 25, "compression": "zlib"}),
    "strips of which the last is shorter": (IMAGE, {"rowsperstrip": 16, "compression": "zlib"}),
    "strips without compression": (IMAGE, {"rowsperstrip": 16}),
    "big-endian strips": (IMAGE, {"byteorder": ">", "rowsperstrip": 16, "compression": "zlib"}),
    "pages": (STACK, {"photometric": "minisblack", "rowsperstrip": 16, "compression": "zlib"}),
    "colours": (
        RANDOM.integers(0, 255, (33, 20, 3)).astype("u1"),
        {"photometric": "rgb", "rowsperstrip": 8, "compression": "zlib"},
    ),
    "floats": (RANDOM.normal(size=(64, 64)).astype("f4"), {"tile": (16, 16)}),
    "strips in LZMA": (IMAGE, {"rowsperstrip": 16, "compression": "lzma"}),
    "strips of planes": (
        RANDOM.integers(0, 255, (2, 3, 33, 20)).astype("u1"),
        {"photometric": "rgb", "planarconfig": "separate", "rowsperstrip": 8},
    ),
}


class TestTiff:
    @pytest.mark.parametrize("name", TIFFS)
    def test_one_image_is_the_root(self, name, tmp_path, open_direct):
        image, options = TIFFS[name]
        tifffile.imwrite(tmp_path / "a.tif", image, **options)
        files = open_direct(tmp_path / "a.tif")
        assert files.read("array.bin") == tifffile.imread(tmp_path / "a.tif").tobytes()
        assert files.read("array.bin") == image.tobytes()

    @pytest.mark.parametrize("compression", [None, "zlib"])
    def test_levels_of_strips(self, compression, tmp_path, open_direct):
        """The last strip of a page is shorter, and what is not compressed lies in one piece."""
        levels = [STACK, STACK[:, ::2, ::2], STACK[:, ::4, ::4]]
        with tifffile.TiffWriter(tmp_path / "a.tif") as file:
            for level in levels:
                options = {"rowsperstrip": 8, "compression": compression, "subifds": 2}
                if level is not STACK:
                    options |= {"subifds": None, "subfiletype": 1}
                file.write(level, photometric="minisblack", **options)
        files = open_direct(tmp_path / "a.tif")
        for number, level in enumerate(levels):
            assert files.read(f"{number}/array.bin") == level.tobytes()
        assert json.loads(files.read(".zattrs"))["multiscales"]

    @pytest.mark.parametrize("rows", [25, 16])
    def test_only_the_value_that_the_file_names_is_missing(self, tmp_path, rows):
        for no_data in (None, 7):
            tags = [] if no_data is None else [(42113, "s", 0, str(no_data), True)]
            path = tmp_path / f"{no_data}.tif"
            tifffile.imwrite(path, IMAGE, rowsperstrip=rows, compression="zlib", extratags=tags)
            header = zarrfs_header(str(path), FlatForm("vrt"), SourceOptions())
            assert (b"<NoDataValue>7<" in header) == (no_data == 7)
            assert (b"NoData" in header) == (no_data == 7)
            # Whatever the last strip.
            with zarrfs.open_array(str(path)) as array:
                assert array.metadata.dimension_names == ("Y", "X")

    @pytest.mark.parametrize(("dtype", "text", "missing", "rows"), [
        ("u1", "-9999", None, 25), ("u1", "nan", None, 16), ("u2", "1.5", None, 16),
        ("u1", "255.0", 255, 25), ("f4", "-3.4028234663852886e+38", np.finfo("f4").min, 25),
        ("f4", "-3.4028234663852886e+38", np.finfo("f4").min, 16), ("f4", "1e300", None, 25),
        ("f4", "none", None, 16), ("c8", "7", None, 16),
    ])  # fmt: skip
    def test_a_value_that_no_element_can_have_marks_none(
        self, dtype, text, missing, rows, tmp_path
    ):
        path, tags = tmp_path / "a.tif", [(42113, "s", 0, text, True)]
        tifffile.imwrite(path, IMAGE.astype(dtype), rowsperstrip=rows, extratags=tags)
        with zarrfs.open_array(str(path)) as array:
            assert missing_values(array.metadata) == (() if missing is None else (missing,))
            assert array.metadata.layout.fill == np.array(missing or 0, dtype).tobytes()

    @pytest.mark.parametrize(
        ("tags", "point", "transform"),
        [
            ({33550: (10, 20, 0), 33922: (0, 0, 0, 5e5, 4.6e6, 0)}, 1, (5e5, 10, 0, 4.6e6, 0, -20)),
            ({33550: (10, 20, 0), 33922: (1, 2, 0, 10, 40, 0)}, 2, (-5, 10, 0, 90, 0, -20)),
            ({33550: (10, -20, 0), 33922: (0,) * 6}, 1, (0, 10, 0, 0, 0, -20)),
            ({34264: (1, 2, 0, 3, 4, 5, 0, 6, *(0,) * 7, 1)}, 1, (3, 1, 2, 6, 4, 5)),
            ({33922: (0, 0, 0, 1, 2, 0, 9, 9, 0, 3, 4, 0)}, 1, None),
            ({33550: (10,), 33922: (0, 0, 0, 5e5, 4.6e6, 0)}, 1, None),
            ({33550: (np.nan, 20, 0), 33922: (0, 0, 0, 5e5, 4.6e6, 0)}, 1, None),
        ],
    )
    @pytest.mark.parametrize("rows", [25, 16])
    def test_geotiff_says_the_place(self, rows, tags, point, transform, tmp_path):
        """Of the first image; a smaller level has larger pixels."""
        keys = (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, point, 3072, 0, 1, 32633)
        more = [(code, "d", len(value), value, True) for code, value in tags.items()]
        more.append((34735, "H", len(keys), keys, True))
        with tifffile.TiffWriter(tmp_path / "a.tif") as file:
            said = {"rowsperstrip": rows, "photometric": "minisblack"}
            file.write(IMAGE, subifds=1, extratags=more, **said)
            file.write(IMAGE[::2, ::2], subfiletype=1, **said)
        for level, times in (("0", 1), ("1", 2)):
            with zarrfs.open_array(str(tmp_path / "a.tif"), path=level) as array:
                place = gather(array.metadata).georeference
            assert place.crs == "EPSG:32633"
            wanted = transform and np.multiply(transform, (1, times, times) * 2)
            assert place.transform == (None if wanted is None else pytest.approx(tuple(wanted)))
            assert place.nodes == (point == 2)

    @pytest.mark.parametrize("rows", [25, 16])
    @pytest.mark.parametrize(
        ("photometric", "samples", "shown"),
        [
            *((name, 0, name) for name in ("miniswhite", "minisblack", "palette")),
            *((name, 3, name) for name in ("miniswhite", "minisblack", "rgb", "cielab")),
            *((name, 4, name) for name in ("minisblack", "rgb", "separated")),
            ("cfa", 0, "minisblack"),
            ("icclab", 3, None),
        ],
    )
    def test_colours_are_those_of_the_file(self, photometric, samples, shown, rows, tmp_path):
        path, kwargs = tmp_path / "a.tif", {}
        bits = 16 if rows == 25 else 8  # some programs write palettes of 8 bits
        palette = RANDOM.integers(0, 2**bits, (3, 256)).astype("u2")
        if photometric == "palette":
            kwargs["colormap"] = palette
        image = IMAGE.astype("u1")
        if samples:
            image = np.stack([image] * samples, -1)
            kwargs["planarconfig"] = "contig"
        tifffile.imwrite(path, image, photometric=photometric, rowsperstrip=rows, **kwargs)
        if shown is None:
            with pytest.raises(UnsupportedError, match="ICCLAB"):
                zarrfs_header(str(path), FlatForm("tif"), SourceOptions())
            return
        with_table = zarrfs_header(str(path), FlatForm("vrt"), SourceOptions())
        entries = re.findall(r'<Entry c1="(\d+)" c2="(\d+)" c3="(\d+)"', with_table.decode())
        inverted = [[value] * 3 for value in range(255, -1, -1)]
        tables = {"palette": (palette >> (bits - 8)).T.tolist(), "miniswhite": inverted}
        table = [] if samples else tables.get(photometric, [])
        assert [list(map(int, entry)) for entry in entries] == table
        header = zarrfs_header(str(path), FlatForm("tif"), SourceOptions())
        with tifffile.TiffFile(io.BytesIO(header)) as file, tifffile.TiffFile(path) as original:
            page, other = file.pages.first, original.pages.first
            assert page.photometric.name == shown.upper()
            assert page.shaped == other.shaped
            assert page.extrasamples == other.extrasamples
            assert np.array_equal(page.colormap, other.colormap)

    def test_a_file_changed_in_place_whose_mtime_is_reset(self, tmp_path, monkeypatch):
        """As rsync -t --inplace and cp -p do; the chunks then lie in the same places, or not."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        path = tmp_path / "a.tif"

        def write(image):
            tifffile.imwrite(tmp_path / "new.tif", image, photometric="minisblack", metadata=None)
            with open(path, "r+b" if path.exists() else "wb") as file:
                file.write((tmp_path / "new.tif").read_bytes())
            os.utime(path, (10**9, 10**9))

        def read(store):
            blob = store.get("0.0", limit=1 << 20)
            seen.append(blob.info.generation)
            return bytes(blob.data)

        seen: list[Any] = []
        write(IMAGE)
        with closing(open_store(str(path), StoreConfig())) as store:
            assert read(store) == IMAGE.tobytes()
            path.chmod(0o600)
            assert read(store) == IMAGE.tobytes()
            write(IMAGE[::-1])
            assert read(store) == IMAGE[::-1].tobytes()
            assert len(set(seen)) == 3
            write(IMAGE.T.astype("i2"))
            with pytest.raises(StoreError, match="was changed"):
                read(store)
        with zarrfs.open_array(str(path)) as array:
            assert np.array_equal(array[...], IMAGE.T.astype("i2"))

    def test_pages_with_palettes_of_their_own_have_none_together(self, tmp_path):
        with tifffile.TiffWriter(tmp_path / "a.tif") as file:
            for step in (80, 85):
                palette = (np.arange(768) * step).astype("u2").reshape(3, 256)
                file.write(STACK[0], photometric="palette", colormap=palette, metadata=None)
        with pytest.raises(UnsupportedError, match="with all colours"):
            zarrfs_header(str(tmp_path / "a.tif"), FlatForm("tif"), SourceOptions())

    @pytest.mark.parametrize(
        ("tag", "dtype", "value", "kept"),
        [
            ("ColorMap", "H", [1] * 765, None),
            ("ColorMap", "H", [1] * 3 * 4096, None),
            ("ColorMap", "I", [1] * 768, None),
            ("ColorMap", "s", b"x" * 767, None),
            ("ExtraSamples", "s", b"ab", None),
            ("ExtraSamples", "f", float("nan"), [0]),
            ("ExtraSamples", "H", 9, [0]),
            ("ExtraSamples", "H", [1] * 9, None),
            ("PhotometricInterpretation", "H", 9999, "UNKNOWN"),
            ("PhotometricInterpretation", "H", [2, 2], "UNKNOWN"),
        ],
    )
    def test_damaged_colours_hide_no_elements(self, tag, dtype, value, kept, tmp_path):
        path = tmp_path / "a.tif"
        image, said = np.stack([IMAGE.astype("u1")] * 4, -1), {"photometric": "rgb"}
        if tag == "ColorMap":
            said = {"photometric": "palette", "colormap": np.ones((3, 256), "u2")}
            image = image[..., 0]
        tifffile.imwrite(path, image, metadata=None, **said)
        with tifffile.TiffFile(path, mode="r+") as file:
            file.pages[0].tags[tag].overwrite(value, dtype=dtype)
        with zarrfs.open_array(str(path)) as array:
            assert np.array_equal(array[...], image)
            assert array.metadata.attributes.get(tag) == kept

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (
                {"ome": True, "metadata": {
                    "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5, "PhysicalSizeYUnit": "mm",
                    "PhysicalSizeZ": 2.0, "TimeIncrement": 3.0, "TimeIncrementUnit": "ms",
                }},
                {"t": (3, "ms"), "z": (2, "µm"), "y": (0.5, "mm"), "x": (0.25, "µm")},
            ),
            (
                {"imagej": True, "resolution": (1 / 0.25, 1 / 0.5), "metadata": {
                    "spacing": 2.5, "unit": "\\u00B5m", "finterval": 0.5,
                }},
                {"t": (0.5, "s"), "z": (2.5, "µm"), "y": (0.5, "µm"), "x": (0.25, "µm")},
            ),
            (
                {"imagej": True, "resolution": (1 / 0.25, 1 / 0.5), "metadata": {
                    "spacing": 0.1, "unit": "mm", "yunit": "\\u212B", "zunit": "\\u00b5m",
                    "finterval": 2, "tunit": "min",
                }},
                {"t": (2, "min"), "z": (0.1, "µm"), "y": (0.5, "\u212b"), "x": (0.25, "mm")},
            ),
            ({"imagej": True, "resolution": (300, 300), "metadata": {"unit": "pixel"}}, {}),
            ({"imagej": True, "metadata": {"finterval": 10**400}}, {}),
            ({"ome": True, "metadata": {"PhysicalSizeX": 10**400, "PhysicalSizeY": 1e308}}, {}),
            ({"ome": True, "metadata": {"PhysicalSizeZ": 0.1}}, {"z": (0.1, "µm")}),
            ({"ome": True, "metadata": {"PhysicalSizeX": 2, "PhysicalSizeXUnit": "pixel"}}, {}),
            ({"ome": True, "metadata": {"PhysicalSizeX": 0, "PhysicalSizeY": -1.0}}, {}),
        ],
        ids=[
            "OME", "ImageJ", "units of ImageJ", "pixels of ImageJ", "huge number of ImageJ",
            "huge numbers of OME", "no rounding", "pixels of OME", "nonsense",
        ],
    )  # fmt: skip
    def test_sizes_of_elements(self, said, expected, tmp_path):
        data = np.arange(2 * 3 * 32 * 48, dtype="u2").reshape(2, 3, 32, 48)
        said["metadata"]["axes"] = "TZYX"
        tifffile.imwrite(tmp_path / "a.tif", data, **said)
        with zarrfs.open_array(tmp_path / "a.tif") as array:
            axes = gather(array.metadata).axes
        found = {a.name.lower(): (a.spacing, a.unit) for a in axes if a.spacing is not None}
        assert found == expected

    def test_no_description_hides_the_image(self, tmp_path):
        deep = "<a>" * 3000 + "</a>" * 3000
        text = tifffile.OmeXml()
        text.addimage("u2", STACK[0].shape, (1, 1, 1, *STACK[0].shape, 1), axes="YX")
        said = text.tostring().replace("</OME>", f"{deep}</OME>")
        tifffile.imwrite(tmp_path / "a.tif", STACK[0], description=said, metadata=None)
        with zarrfs.open_array(tmp_path / "a.tif") as array:
            assert np.array_equal(array[...], STACK[0])

    def test_descriptions_of_many_images_are_read_once(self, tmp_path, monkeypatch):
        with tifffile.TiffWriter(tmp_path / "a.tif", ome=True) as file:
            for _ in range(5):
                file.write(STACK[0], metadata={"PhysicalSizeX": 2.0})
        read = mock.Mock(wraps=tifffile.xml2dict)
        monkeypatch.setattr("tifffile.xml2dict", read)
        tiff.references(str(tmp_path / "a.tif"))
        assert read.call_count == 1

    def test_sizes_of_levels_and_of_several_images(self, tmp_path):
        with tifffile.TiffWriter(tmp_path / "a.tif", ome=True) as file:
            for size in (0.5, 4.0):
                sizes = {f"PhysicalSize{axis}": size for axis in "XY"}
                options = {"tile": (16, 16), "metadata": {"axes": "YX", **sizes}}
                file.write(STACK[0], subifds=1, **options)
                file.write(STACK[0][::2, ::2], subfiletype=1, tile=(16, 16))
        for image, size in enumerate((0.5, 4.0)):
            for level in range(2):
                with zarrfs.open_array(tmp_path / "a.tif", path=f"{image}/{level}") as array:
                    axes = gather(array.metadata).axes
                    whole = STACK[0].shape
                    assert [a.spacing for a in axes] == pytest.approx(
                        [size * a / b for a, b in zip(whole, array.shape, strict=True)]
                    )

    def test_colours_of_fewer_pixels(self, tmp_path, open_direct):
        colours = TIFFS["colours"][0]
        tifffile.imwrite(tmp_path / "a.tif", colours, photometric="ycbcr")
        with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as file:
            file.pages[0].tags["YCbCrSubSampling"].overwrite((2, 2))
        with pytest.raises(StoreError, match="fewer pixels"):
            open_direct(tmp_path / "a.tif")

    def test_pages_that_are_not_there_are_no_zeros(self, tmp_path, open_direct):
        tifffile.imwrite(tmp_path / "a.ome.tif", STACK, ome=True, metadata={"axes": "TYX"})
        with tifffile.TiffFile(tmp_path / "a.ome.tif") as file:
            described = file.ome_metadata.encode()
        tifffile.imwrite(tmp_path / "a.ome.tif", STACK[0], description=described, metadata=None)
        with pytest.raises(StoreError, match="in other files, or missing"):
            open_direct(tmp_path / "a.ome.tif")

    def test_every_image_is_served_or_noted(self, tmp_path, open_direct):
        with tifffile.TiffWriter(tmp_path / "a.tif") as file:
            file.write(IMAGE, tile=(32, 32))
            file.write(STACK[1], tile=(16, 16))
            file.write(STACK[0], tile=(16, 16), compression="zlib", predictor=True)
        files = open_direct(tmp_path / "a.tif")
        assert files.read("0/array.bin") == IMAGE.tobytes()
        assert files.read("1/array.bin") == STACK[1].tobytes()
        assert "zarrfs-note.txt" in files.names("2")
        checked = in_process("check", tmp_path / "a.tif")
        assert (checked.status, checked.stdout.count("2/")) == (1, 1)

    @pytest.mark.parametrize(
        ("compression", "tag", "reason"),
        [
            (None, "StripOffsets", "a strip or tile has no place in"),
            ("zlib", "StripByteCounts", "no bytes in the file"),
            (None, "RowsPerStrip", "its strips have no rows"),
        ],
    )
    def test_an_empty_strip_is_no_zeros(self, tmp_path, open_direct, compression, tag, reason):
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, IMAGE, compression=compression)
        with tifffile.TiffFile(path, mode="r+") as file:
            file.pages[0].tags[tag].overwrite(0)
        with pytest.raises(StoreError, match=reason):
            open_direct(path)

    @pytest.mark.parametrize("no_data", ["", "7", "nan"])
    @pytest.mark.parametrize("rows", [25, 16])
    def test_absent_strips_are_the_value_for_missing(self, rows, no_data, tmp_path, open_direct):
        path = tmp_path / "a.tif"
        tags = [(42113, "s", 0, no_data, True)] if no_data else []
        image = IMAGE.astype("f4")
        tifffile.imwrite(path, image, rowsperstrip=rows, compression="zlib", extratags=tags)
        with tifffile.TiffFile(path, mode="r+") as file:
            for name in ("StripOffsets", "StripByteCounts"):
                tag = file.pages[0].tags[name]
                tag.overwrite([0 if at == 1 else value for at, value in enumerate(tag.value)])
        expected = tifffile.imread(path)
        assert expected[rows, 0] == float(no_data or 0) or no_data == "nan"
        assert open_direct(path).read("array.bin") == expected.tobytes()

    @pytest.mark.parametrize("rows", [25, 16])
    @pytest.mark.parametrize(
        ("tag", "value", "reason"), [(266, 2, "fillorder LSB2MSB"), (258, 12, "12 bits")]
    )
    def test_bits_in_another_order_or_number(self, rows, tag, value, reason, tmp_path, open_direct):
        """As tifffile reads them, or a reason why not."""
        path = tmp_path / "a.tif"
        other = [(65000, 3, 1, value, True)]
        tifffile.imwrite(path, IMAGE, rowsperstrip=rows, extratags=other)
        data = path.read_bytes()
        if tag == 258:
            data = data.replace(*(struct.pack("<HHIHH", 258, 3, 1, n, 0) for n in (16, value)))
        data = data.replace(*(struct.pack("<HHIHH", n, 3, 1, value, 0) for n in (65000, tag)))
        path.write_bytes(data)
        with pytest.raises(StoreError, match=reason):
            open_direct(path)

    def test_tiles_in_zstd(self, tmp_path, open_direct):
        tiles = IMAGE[:96, :64].reshape(3, 32, 2, 32).swapaxes(1, 2).reshape(6, 32, 32)
        encoded = (bytes(numcodecs.Zstd().encode(tile.copy())) for tile in tiles)
        shape = {"shape": (96, 64), "dtype": "u2", "tile": (32, 32)}
        tifffile.imwrite(tmp_path / "a.tif", encoded, compression="zstd", **shape)
        assert open_direct(tmp_path / "a.tif").read("array.bin") == IMAGE[:96, :64].tobytes()

    def test_what_is_not_served_has_its_name(self, tmp_path, open_direct):
        tifffile.imwrite(tmp_path / "a.tif", IMAGE)
        with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as file:
            file.pages[0].tags["Compression"].overwrite(2)
        with pytest.raises(StoreError, match="made: compression CCITTRLE is not served"):
            open_direct(tmp_path / "a.tif")
        tifffile.imwrite(tmp_path / "b.tif", IMAGE, compression="zlib", predictor=True)
        with pytest.raises(StoreError, match="made: predictor DELTA is not served"):
            open_direct(tmp_path / "b.tif")


def write_grib(path, messages):
    """Messages of 2 m temperatures."""
    with open(path, "wb") as file:
        for values in messages:
            handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            try:
                eccodes.codes_set(handle, "shortName", "2t")
                eccodes.codes_set(handle, "bitsPerValue", 24)
                if np.isnan(values).any():
                    eccodes.codes_set(handle, "bitmapPresent", 1)
                    eccodes.codes_set(handle, "missingValue", 9999)
                eccodes.codes_set_values(handle, np.nan_to_num(values, nan=9999))
                eccodes.codes_write(handle, file)
            finally:
                eccodes.codes_release(handle)


GRIDS: dict[str, dict[str, int]] = {
    "regular_ll_sfc_grib": {},
    "regular_gg_sfc_grib": {},
    "reduced_gg_sfc_grib": {},
    "rotated_ll_sfc_grib": {},
    "sh_ml_grib": {},
    "polar_stereographic_sfc_grib": {},
    "regular_ll_pl_grib": {"jPointsAreConsecutive": 1},
}


def write_sample(path, name, **keys):
    """Append a message; its values, and the shape that they are served with."""
    handle = eccodes.codes_grib_new_from_samples(name)
    try:
        for key, value in keys.items():
            eccodes.codes_set(handle, key, value)
        with open(path, "ab") as file:
            eccodes.codes_write(handle, file)
        values = eccodes.codes_get_array(handle, "values")
        rows, columns = (eccodes.codes_get(handle, key) if "sh_" not in name else 0
                         for key in ("Ny", "Nx"))  # fmt: skip
        shape = (columns, rows) if keys else (rows, columns)
        return values, shape if rows * columns == values.size else (values.size,)
    finally:
        eccodes.codes_release(handle)


NORMAL = np.random.default_rng(1).normal(size=496)


def write_field(path, keys, values):
    """A file of one message; a handle of it."""
    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    eccodes.codes_set(handle, "bitsPerValue", 12)
    for key, value in keys.items():
        eccodes.codes_set(handle, key, value)
    eccodes.codes_set_values(handle, values)
    path.write_bytes(eccodes.codes_get_message(handle))
    return handle


def ordered(file, name, mode):
    """Append a message of which points lie in the order of a scanning mode; values and axes.

    The values are 1000 longitudes and 1 latitude.
    """
    handle = eccodes.codes_grib_new_from_samples(name)
    ends = "latitudeOf{}GridPoint", "longitudeOf{}GridPoint"
    try:
        rows, columns = (eccodes.codes_get(handle, key) for key in ("Ny", "Nx"))
        if name.startswith("polar"):
            for key in ("DxInMetres", "DyInMetres"):
                eccodes.codes_set(handle, key, 50_000)
        axes = [
            eccodes.codes_get_array(handle, key).reshape(rows, columns)[at]
            for key, at in (("latitudes", (slice(None), 0)), ("longitudes", 0))
        ]
        for number, turned in enumerate((mode & 64, mode & 128)):
            if turned:
                axes[number] = axes[number][::-1]
                if not name.startswith("polar"):
                    first, last = (ends[number].format(end) for end in ("First", "Last"))
                    old = eccodes.codes_get(handle, first)
                    eccodes.codes_set(handle, first, eccodes.codes_get(handle, last))
                    eccodes.codes_set(handle, last, old)
        values = axes[0][:, None] + 1000 * axes[1]
        values = values.T if mode & 32 else values
        stored = values.copy()
        if mode & 16:
            stored[1::2] = values[1::2, ::-1]
        eccodes.codes_set(handle, "scanningMode", mode)
        eccodes.codes_set(handle, "bitsPerValue", 24)
        eccodes.codes_set_values(handle, stored.ravel())
        eccodes.codes_write(handle, file)
        return values, dict(zip(("latitude", "longitude"), axes, strict=True))
    finally:
        eccodes.codes_release(handle)


def sections(message):
    """The sections of a message of edition 2."""
    found, at = [message[:16]], 16
    while message[at : at + 4] != b"7777":
        length = int.from_bytes(message[at : at + 4], "big")
        found.append(message[at : at + length])
        at += length
    return [*found, message[at:]]


class TestGrib:
    def test_every_message_is_a_group(self, tmp_path, open_direct):
        messages = [250 + RANDOM.normal(size=496) for _ in range(2)]
        messages[1][3:9] = np.nan
        write_grib(tmp_path / "a.grib", messages)
        files = open_direct(tmp_path / "a.grib")
        assert [name for name in files.names("") if not name.startswith(".")] == ["0", "1"]
        for number, values in enumerate(messages):
            found = np.frombuffer(files.read(f"{number}/t2m/array.bin"))
            assert np.allclose(found, values, atol=1e-3, equal_nan=True)
            latitudes = np.frombuffer(files.read(f"{number}/latitude/array.bin"))
            assert latitudes[:2].tolist() == [60, 58]

    @pytest.mark.parametrize("edition", [1, 2])
    def test_every_grid_and_edition(self, edition, tmp_path, open_direct):
        path = tmp_path / "a.grib"
        written = [write_sample(path, f"{grid}{edition}", **keys) for grid, keys in GRIDS.items()]
        files = open_direct(path)
        assert [name for name in files.names("") if not name.startswith(".")] == list("0123456")
        for number, (values, shape) in enumerate(written):
            (name,) = (n for n in files.names(str(number)) if n in {"t", "unknown", "2t", "t2m"})
            assert files.read(f"{number}/{name}/array.bin") == values.tobytes()
            document = json.loads(files.read(f"{number}/{name}/.zarray"))
            assert tuple(document["shape"]) == shape

    @pytest.mark.parametrize(
        ("grid", "modes"),
        [
            ("regular_ll_pl", range(0, 256, 16)),
            ("regular_gg_sfc", range(16, 256, 32)),
            ("polar_stereographic_sfc", range(16, 256, 32)),
        ],
    )
    def test_values_lie_where_their_coordinates_are(self, grid, modes, tmp_path, open_direct):
        """In each order of points. If ecCodes gives places in another order, they are left out."""
        written = []
        with open(tmp_path / "a.grib", "wb") as file:
            for mode in modes:
                values, places = ordered(file, f"{grid}_grib2", mode)
                polar, by_columns = grid.startswith("polar"), mode & 32
                known = mode & 224 == 64 if polar else not by_columns or "_gg_" not in grid
                written.append((values, places, known))
        files = open_direct(tmp_path / "a.grib")
        for number, (values, places, known) in enumerate(written):
            at = f"{number:0{len(str(len(written) - 1))}}"
            (name,) = (n for n in files.names(at) if n in {"t", "unknown", "2t", "t2m"})
            assert json.loads(files.read(f"{at}/{name}/.zarray"))["shape"] == list(values.shape)
            found = np.frombuffer(files.read(f"{at}/{name}/array.bin")).reshape(values.shape)
            assert np.allclose(found, values, atol=0.1)
            assert {"latitude", "longitude"} & {*files.names(at)} == ({*places} if known else set())
            for name, place in places.items() if known and not polar else ():
                found = np.frombuffer(files.read(f"{at}/{name}/array.bin"))
                assert np.allclose(found, place, atol=0.01)

    @pytest.mark.parametrize("packing", ["grid_simple", "grid_ieee", "grid_ccsds"])
    def test_a_point_of_9999_is_not_missing(self, packing, tmp_path, open_direct):
        """ecCodes gives that number for missing points, unless it is told another."""
        values = 9000 + np.arange(496.0) * 4
        keys = {"packingType": packing, "missingValue": 1e30, "bitmapPresent": 1}
        values[[3, 8]] = 9999, 1e30
        write_field(tmp_path / "a.grib", keys, values)
        files = open_direct(tmp_path / "a.grib")
        found = np.frombuffer(files.read("0/t/array.bin"))
        assert np.allclose(found, np.where(values == 1e30, np.nan, values), atol=1, equal_nan=True)

    def test_points_that_are_missing_without_a_bitmap(self, tmp_path, open_direct):
        """Complex packing has numbers of its own for them."""
        keys = {"packingType": "grid_complex", "bitsPerValue": 4}
        handle = write_field(tmp_path / "a.grib", keys, NORMAL)
        before = eccodes.codes_get_array(handle, "values")
        eccodes.codes_set(handle, "missingValueManagementUsed", 1)
        message = eccodes.codes_get_message(handle)
        (tmp_path / "a.grib").write_bytes(message)
        handle = eccodes.codes_new_from_message(message)
        assert not eccodes.codes_get(handle, "bitmapPresent")
        missing = eccodes.codes_get_array(handle, "values") == 9999
        assert missing.any()
        assert not missing.all()
        found = np.frombuffer(open_direct(tmp_path / "a.grib").read("0/t/array.bin"))
        assert np.array_equal(found, np.where(missing, np.nan, before), equal_nan=True)

    def test_fields_that_share_a_message(self, tmp_path, open_direct):
        parts = []
        for level in (3, 5):
            handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            eccodes.codes_set(handle, "level", level)
            eccodes.codes_set_values(handle, np.arange(496.0) + level)
            parts.append(sections(eccodes.codes_get_message(handle)))
            eccodes.codes_release(handle)
        first, second = parts
        data = b"".join(first[:-1] + [part for part in second[1:-1] if part[4] >= 3]) + b"7777"
        data = data[:8] + len(data).to_bytes(8, "big") + data[16:]
        (tmp_path / "a.grib").write_bytes(data)
        files = open_direct(tmp_path / "a.grib")
        assert [name for name in files.names("") if not name.startswith(".")] == ["0", "1"]
        for number, level in enumerate((3, 5)):
            (name,) = (n for n in files.names(str(number)) if n in {"t", "unknown", "2t", "t2m"})
            found = np.frombuffer(files.read(f"{number}/{name}/array.bin"))
            assert np.allclose(found, np.arange(496.0) + level, atol=1e-2)

    def test_damaged_messages_have_notes(self, tmp_path, open_direct):
        write_sample(tmp_path / "a.grib", "regular_ll_sfc_grib1")
        whole = (tmp_path / "a.grib").read_bytes()
        bad = whole[:7] + b"\x07" + whole[8:]
        (tmp_path / "a.grib").write_bytes(whole + b"junk" + bad + whole + whole[:100])
        files = open_direct(tmp_path / "a.grib")
        notes = {}
        for name in "0123":
            if "zarrfs-note.txt" in files.names(name):
                notes[name] = files.read(f"{name}/zarrfs-note.txt").decode()
        assert list(notes) == ["1", "3"]
        assert "of edition 7" in notes["1"]
        assert "the file ends in it" in notes["3"]
        checked = in_process("check", tmp_path / "a.grib")
        assert (checked.status, checked.stdout.count("the file ends in it")) == (1, 1)

    def test_a_damaged_message_is_an_error(self, tmp_path, open_direct):
        write_grib(tmp_path / "a.grib", [np.arange(496.0)])
        with closing(open_store(str(tmp_path / "a.grib"), StoreConfig())) as store:
            data = bytes(store.get("0/t2m/0.0", limit=1 << 20).data)
            document = json.loads(store.get("0/t2m/.zarray", limit=1 << 20).data)
        (tmp_path / "b.zarr").mkdir()
        (tmp_path / "b.zarr/.zarray").write_text(json.dumps(document))
        for damaged in (b"", b"GRIB", data[: len(data) // 2], b"x" * len(data)):
            (tmp_path / "b.zarr/0.0").write_bytes(damaged)
            with pytest.raises(Exception, match=r"0\.0: "):
                open_direct(tmp_path / "b.zarr").read("array.bin")


def open_and_close(path, directory):
    with closing(open_store(str(path), StoreConfig(references=str(directory)))) as store:
        return sorted(store.list_dir(""))


class TestKept:
    def test_references_are_made_once_for_each_state_of_the_file(self, tmp_path, monkeypatch):
        path, kept = tmp_path / "a.h5", tmp_path / "kept"
        with h5py.File(path, "w") as file:
            file["x"] = [1, 2]
        assert "x/" in open_and_close(path, kept)
        with monkeypatch.context() as patch:
            patch.setattr("zarrfs.store.foreign.kept._PROGRAM", "no_program")
            assert "x/" in open_and_close(path, kept)
            # Other programs may make others.
            patch.setattr("zarrfs.store.foreign.kept.edition", lambda: "another")
            with pytest.raises(StoreError, match="no references to its chunks can be made"):
                open_and_close(path, kept)
        with h5py.File(path, "a") as file:
            file["z"] = [3]
        assert {"x/", "z/"} <= set(open_and_close(path, kept))

    def test_references_that_another_file_has_outdated_are_made_once(self, tmp_path, monkeypatch):
        """Also if the new ones are shorter."""
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x"] = h5py.ExternalLink("b.h5", "/x")
        for count in (100_000, 1, 10_000):
            with h5py.File(tmp_path / "b.h5", "w") as file:
                file["x"] = np.zeros(count)
            assert "x/" in open_and_close(tmp_path / "a.h5", tmp_path / "kept")
            with monkeypatch.context() as patch:
                patch.setattr("zarrfs.store.foreign.kept._PROGRAM", "no_program")
                assert "x/" in open_and_close(tmp_path / "a.h5", tmp_path / "kept")

    def test_only_the_user_reads_them(self, tmp_path):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x"] = [1, 2]
        open_and_close(tmp_path / "a.h5", tmp_path / "kept")
        kept = [tmp_path / "kept", *(tmp_path / "kept").rglob("*")]
        assert {path.stat().st_mode & 0o077 for path in kept} == {0}

    def test_where_they_cannot_be_kept_they_are_made_all_the_same(self, tmp_path):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x"] = [1, 2]
        (tmp_path / "kept").write_text("no directory")
        assert "x/" in open_and_close(tmp_path / "a.h5", tmp_path / "kept")

    def test_some_go_when_they_are_too_many(self, tmp_path, monkeypatch):
        monkeypatch.setattr("zarrfs.store.foreign.kept._MOST_KEPT_BYTES", 16 << 10)
        for name in "abcdef":
            with h5py.File(tmp_path / name, "w") as file:
                file[name] = [1]
            open_and_close(tmp_path / name, tmp_path / "kept")
        kept = (tmp_path / "kept").rglob("*")
        assert 0 < sum(path.stat().st_size for path in kept if path.is_file()) <= 16 << 10


class TestErrors:
    def test_a_file_that_changes_while_it_is_served(self, tmp_path):
        """Its chunks may lie elsewhere by then: what is read would be other bytes."""
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x"] = [1, 2]
        with closing(open_store(str(tmp_path / "a.h5"), StoreConfig())) as store:
            assert store.get("x/c/0", limit=100) is not None
            with h5py.File(tmp_path / "a.h5", "a") as file:
                file["y"] = [3]
            with pytest.raises(StoreError, match="was changed since it was mounted"):
                store.get("x/c/0", limit=100)

    @pytest.mark.parametrize(("head", "extra"), [
        (b"\x89HDF\r\n\x1a\n", "netcdf"), (b"GRIB", "grib"),
        (b"II*\0", "tiff"),
    ])  # fmt: skip
    def test_a_missing_package_names_the_extra(self, head, extra, tmp_path, monkeypatch):
        for package in ("h5py", "eccodes", "tifffile"):
            (tmp_path / f"{package}.py").write_text("raise ImportError('is not installed')")
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "a").write_bytes(head + bytes(100))
        with pytest.raises(UsageError, match=rf"pip install '\.\[{extra}\]'") as caught:
            open_store(str(tmp_path / "a"), StoreConfig())
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("head", [b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"GRIB", b"II*\0"])
    def test_a_damaged_file_is_told_in_one_line(self, head, tmp_path):
        (tmp_path / "a").write_bytes(head + b"\xff" * 500)
        with pytest.raises(StoreError, match="no references to its chunks can be made") as caught:
            open_store(str(tmp_path / "a"), StoreConfig())
        assert "\n" not in str(caught.value)

    def test_what_would_exhaust_the_memory_ends_in_its_own_process(self, tmp_path):
        """2 kB that are 10⁹ strings: they are read in chunks, when somebody asks for them."""
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("s", (10**9,), h5py.string_dtype(), chunks=(1000,))
            file["x"] = [1, 2]
        assert (tmp_path / "a.h5").stat().st_size < 5000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with closing(open_store(str(tmp_path / "a.h5"), StoreConfig())) as store:
            assert {"x/", "s/"} <= set(store.list_dir(""))
            assert len(store.get("s/c/999999", limit=1 << 20).data) == 4 + 4 * 1000
        # In KiB.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10

    def test_another_file_is_no_source(self, tmp_path):
        (tmp_path / "a.txt").write_text("{ hello }")
        with pytest.raises(Exception, match=r"[Nn]ot a directory"):
            open_store(str(tmp_path / "a.txt"), StoreConfig())


def test_damaged_messages_of_grib_are_errors_of_their_chunk(tmp_path):
    """The library that decodes them runs elsewhere, so that its crash would be one, too."""
    write_grib(tmp_path / "a.grib", [np.arange(496.0)])
    message = (tmp_path / "a.grib").read_bytes()
    codec = GribCodec("values").bind(ChunkSpec((496,), find_data_type("float64"), bytes(8)))
    assert np.array_equal(codec.decode(message), np.arange(496.0))
    chosen = Random(1)
    outcomes = set()
    for _ in range(150):
        try:
            assert codec.decode(mutated_bytes(chosen, message)).shape == (496,)
            outcomes.add("decoded")
        except DecodeError:
            outcomes.add("refused")
    assert outcomes == {"decoded", "refused"}
    with pytest.raises(DecodeError, match="at most"):
        codec.decode(bytes(codec.encoded.maximum + 1))
