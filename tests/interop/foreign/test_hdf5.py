"""Every dataset of HDF5 files is what h5py reads, or has a note."""

import json
from contextlib import closing
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

import zarrfs
from tests.cli.in_process import in_process
from tests.interop.served_files import MountedFiles
from zarrfs.errors import StoreError, StoreTooLarge
from zarrfs.library.checking.check import CheckConfig, check_source
from zarrfs.store.base import ByteRange
from zarrfs.store.foreign.hdf5_dataset import is_dimension_only
from zarrfs.store.open import StoreConfig, open_store

from . import hdf5_written_by  # noqa: F401 - adds to FILES
from .hdf5_files import FILES, NOTED, write

pytestmark = pytest.mark.timeout(120)


def datasets(file):
    """All datasets by path, through links of all kinds, but dimensions without a variable."""
    found = {}

    def visit(group, at, above):
        for name in group:
            path = f"{at}{name if isinstance(name, str) else name.decode(errors='replace')}"
            try:
                thing = group[name]
            except (KeyError, OSError, RuntimeError):
                found[path] = None
                continue
            if isinstance(thing, h5py.Dataset):
                if not is_dimension_only(thing):
                    found[path] = thing
            elif isinstance(thing, h5py.Group):
                place = h5py.h5o.get_info(thing.id).addr
                if place in above:
                    found[path] = None
                else:
                    visit(thing, f"{path}/", (*above, place))

    visit(file, "", (h5py.h5o.get_info(file.id).addr,))
    return found


def expected(dataset):
    kind = dataset.id.get_type()
    if kind.get_class() in (h5py.h5t.BITFIELD, h5py.h5t.OPAQUE):
        elements = np.empty(dataset.shape, dataset.dtype)
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, elements, mtype=kind)
        return elements
    elements = np.asarray(dataset[()])
    if dataset.dtype.kind == "O":
        decoded = np.asarray(dataset.asstr()[()], object)
        return [str(value) for value in decoded.reshape(-1)]
    return elements


def little(dtype):
    if dtype.names is not None:
        return np.dtype([(name, little(dtype[name])) for name in dtype.names])
    return np.dtype(dtype.newbyteorder("<").str)


def check(files, path: Path) -> None:
    """The files hold what h5py reads of each dataset, or a note where one is expected."""
    reasons = NOTED.get(path.stem, {})
    with h5py.File(path) as file:
        for name, dataset in datasets(file).items():
            if name in reasons:
                assert reasons[name] in files.read(f"{name}/zarrfs-note.txt").decode()
                continue
            assert dataset is not None, name
            wanted = expected(dataset)
            if isinstance(wanted, list):
                lines = files.read(f"{name}/array.jsonl").decode().splitlines()
                assert [json.loads(line) for line in lines] == wanted, name
            else:
                found = files.read(f"{name}/array.bin")
                assert found == wanted.astype(little(wanted.dtype)).tobytes(), name


@pytest.mark.parametrize("name", FILES)
def test_every_dataset_is_what_h5py_reads(name, tmp_path, open_direct):
    path = write(name, tmp_path / "folder")
    check(open_direct(path), path)


def test_no_dataset_is_hidden_by_a_document(tmp_path, open_direct):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("zarr.json", "g/zarr.json", "g/.zarray"):
            file[name] = [len(name)]
    files = open_direct(tmp_path / "a.h5")
    for name in ("_zarr.json", "g/_zarr.json", "g/_zarray"):
        assert files.read(f"{name}/array.bin")[0] == len(name) - (name != "g/_zarray")


@pytest.mark.parametrize("name", ["broken_links", "broken_sources"])
def test_links_lead_nowhere_else(name, tmp_path, open_direct):
    path = write(name, tmp_path / "folder")
    files = open_direct(path)
    outside = [dataset for dataset, reason in NOTED[name].items() if reason == "not below"]
    assert outside
    for dataset in outside:
        assert files.names(dataset) == ["zarr.json", "zarrfs-note.txt"]


def test_a_link_out_of_the_folder_is_no_nearer_scale(tmp_path, open_direct):
    """Nobody follows it to see whether it leads to one."""
    (tmp_path / "folder").mkdir()
    with h5py.File(tmp_path / "outside.h5", "w") as file:
        file["x"] = np.arange(3)
        file["x"].make_scale("x")
    with h5py.File(tmp_path / "folder/a.h5", "w") as file:
        file["g/x"] = file["g/h/v"] = np.arange(3)
        file["g/x"].make_scale("x")
        file["g/h/v"].dims[0].attach_scale(file["g/x"])
        file["g/h/x"] = h5py.ExternalLink("../outside.h5", "/x")
    files = open_direct(tmp_path / "folder/a.h5")
    assert b"not below" in files.read("g/h/x/zarrfs-note.txt")
    assert json.loads(files.read("g/h/v/zarr.json"))["dimension_names"] == ["x"]


def test_paths_of_raw_data_begin_at_the_folder_of_the_dataset_that_is_read(tmp_path, open_direct):
    """Not at that of a file which a virtual dataset is made of: HDF5 does it so."""
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    for size in (2, 2000):
        (tmp_path / f"secret{size}").write_bytes(bytes(8 * size))
        (folder / f"raw{size}").symlink_to(tmp_path / f"secret{size}")
        (folder / f"below/raw{size}").write_bytes(np.arange(2 * size, dtype="i4").tobytes())
        with h5py.File(folder / f"below/{size}.h5", "w") as file:
            raw = [(f"raw{size}", 0, 8 * size)]
            file.create_dataset("x", (2, size), "i4", external=raw)
        with h5py.File(folder / "a.h5", "a") as file:
            file[f"link{size}"] = h5py.ExternalLink(f"below/{size}.h5", "/x")
            layout = h5py.VirtualLayout((2, size), "i4")
            layout[...] = h5py.VirtualSource(f"below/{size}.h5", "x", (2, size))
            file.create_virtual_dataset(f"virtual{size}", layout)
    files = open_direct(folder / "a.h5")
    for size in (2, 2000):
        raw = (folder / f"below/raw{size}").read_bytes()
        assert files.read(f"link{size}/array.bin") == raw
        assert "not below" in files.read(f"virtual{size}/zarrfs-note.txt").decode()


@pytest.mark.mount
def test_mounted_in_a_directory(tmp_path, mounted):
    folder = tmp_path / "all"
    folder.mkdir()
    for name in ("lzf", "text", "references"):
        write(name, folder / name)
    place = mounted(folder, quiet=False)
    for name in ("lzf", "text", "references"):
        check(MountedFiles(place / name / f"{name}.h5"), folder / name / f"{name}.h5")
    errors = json.loads((place / ".zarrfs/stats.json").read_text())["errors"]
    assert [error["key"] for error in errors["last"]] == ["references/references.h5/x"]


@pytest.mark.mount
def test_a_directory_mount_follows_no_links_to_other_files(tmp_path, mounted):
    folder = tmp_path / "all"
    folder.mkdir()
    for name in ("links", "virtual", "external"):
        write(name, folder / name)
    place = mounted(folder, quiet=False)
    for noted in ("links/links.h5/external", "virtual/virtual.h5/x", "external/external.h5/x"):
        note = (place / noted / "zarrfs-note.txt").read_text()
        assert "mount the file itself, not a directory" in note
    for served in ("links/links.h5/soft", "virtual/virtual.h5/partly"):
        assert (place / served / "array.bin").stat().st_size


@pytest.mark.parametrize("name", NOTED)
def test_the_check_finds_what_is_not_served(name, tmp_path):
    path = write(name, tmp_path / "folder")
    found = []
    totals = check_source(str(path), CheckConfig(found=found.append))
    assert totals.problems == len(NOTED[name])
    assert {finding.key.removesuffix("/zarr.json") for finding in found if not finding.is_note} == (
        set(NOTED[name])
    )


def test_the_commands_say_what_is_not_served(tmp_path):
    path = write("references", tmp_path / "folder")
    checked = in_process("check", path)
    assert checked.status == 1
    assert "x/zarr.json: its elements are references" in checked.stdout
    assert "its elements are references" in in_process("info", path).stdout


def test_boxes_are_read_in_part_and_listed(tmp_path):
    path = write("lzf", tmp_path / "folder")
    with closing(open_store(str(path), StoreConfig())) as store:
        whole = store.get("x/c/1/2", limit=1 << 20)
        assert whole.info.size == len(whole.data) == 7 * 9 * 4
        parts = store.get_ranges("x/c/1/2", [ByteRange(8, 4), ByteRange(-4, 4)])
        assert [bytes(part.data) for part in parts] == [whole.data[8:12], whole.data[-4:]]
        assert store.info("x/c/1/2").size == 252
        for key in ("x/c/8/0", "x/c/01/2", "x/c/1", "x/c/-1/0"):
            assert store.get(key, limit=1 << 20) is None
            assert store.info(key) is None
        assert list(store.list_dir("x")) == ["zarr.json", "c/"]
        assert list(store.list_dir("x/c")) == [f"{i}/" for i in range(8)]
        assert list(store.list_dir("x/c/7")) == [str(i) for i in range(5)]
        with pytest.raises(StoreTooLarge):
            store.get("x/c/1/2", limit=100)


def test_data_in_other_files_are_those_that_were_translated(tmp_path):
    path = write("virtual", tmp_path / "folder")
    config = StoreConfig(references=str(tmp_path / "kept"))

    def first(store):
        return np.frombuffer(store.get("x/c/0/0/0", limit=1 << 20).data, "<i4")[0]

    with closing(open_store(str(path), config)) as store:
        before = first(store)
        with h5py.File(tmp_path / "folder/source0.h5", "a") as file:
            file["g/x"][0, 0] = before + 1
        with pytest.raises(StoreError, match=r"source0\.h5 was changed since it was mounted"):
            first(store)
    with closing(open_store(str(path), config)) as store:
        assert first(store) == before + 1


def test_fill_values_and_attributes(tmp_path):
    path = write("attributes", tmp_path / "folder")
    with zarrfs.open_array(str(path), path="x") as array:
        assert array.fill_value == 0
        assert array.attributes["_FillValue"] == 5
        assert array.attributes["long"] == "x" * 5000
        assert array.attributes["list"] == [0.0, 1.0, 2.0, 3.0]
        assert array.attributes["texts"] == ["a", "b"]
        assert array.attributes["long_double"] == "1.5"
        assert array.dimension_names == ("phony_dim_0", "phony_dim_1")
    path = write("partly_written", tmp_path / "other")
    with zarrfs.open_array(str(path), path="ints") as array:
        assert array.fill_value == 5
        assert "_FillValue" not in array.attributes


def test_dimensions_of_netcdf_are_names_of_axes(tmp_path, open_direct):
    """In the group that has them, and those below; one without a variable is no array."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        model = file.createGroup("model")
        deep = model.createGroup("deep")
        for group, name in ((file, "time"), (model, "x"), (model, "edge"), (deep, "x")):
            group.createDimension(name, 4)
        model.createVariable("x", "f4", ("x",))
        model.createVariable("outside", "f4", ("x", "edge"))
        deep.createVariable("wind", "f4", ("time", "edge", "x"))
        deep.createVariable("edge", "f4", ("edge",))
    with h5py.File(tmp_path / "a.nc", "a") as file:
        for name in ("far", "model/deep/near"):
            file[name] = np.zeros((4, 4))
            file[name].dims[0].attach_scale(file["model/x"])
        file["model/deep/near"].dims[1].attach_scale(file["model/deep/x"])
        file["stored"] = [1, 2]
        file["stored"].make_scale("This is a netCDF dimension but not a netCDF variable")
    files = open_direct(tmp_path / "a.nc")
    found = {}
    for name in ("model/x", "model/outside", "model/deep/wind", "far", "model/deep/near"):
        found[name] = json.loads(files.read(f"{name}/zarr.json"))["dimension_names"]
    assert found == {
        "model/x": ["x"],
        "model/outside": ["x", "edge"],
        "model/deep/wind": ["time", "edge", "x"],
        # Another array may be called so there.
        "far": ["model/x", "phony_dim_1"],
        "model/deep/near": ["model/x", "x"],
    }
    assert "time" not in files.names("")
    # What has elements is not left out.
    assert files.read("stored/array.bin") == np.array([1, 2]).tobytes()
    assert "edge" not in files.names("model")


def test_without_hdf5plugin_its_filters_are_noted(tmp_path, open_direct, monkeypatch):
    path = write("plugins", tmp_path / "folder")
    (tmp_path / "hdf5plugin.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    files = open_direct(path)
    for name in ("lz4", "bitshuffle", "blosc2"):
        note = files.read(f"{name}_noise/zarrfs-note.txt").decode()
        assert "see the package hdf5plugin" in note
    with h5py.File(path) as file:
        for name in ("blosc", "zstd", "bzip2"):
            smooth = file[f"{name}_smooth"][()].tobytes()
            assert files.read(f"{name}_smooth/array.bin") == smooth
