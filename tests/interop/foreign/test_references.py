"""Files of other formats, through references to the chunks in them."""

import base64
import json
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import fsspec
import h5py
import numpy as np
import pytest

from docs.format_support.samples import v2
from tests.conftest import run_python
from tests.interop.data_types import FILLS
from tests.interop.documents import array_bytes, chunk_keys, sharding, zstd
from tests.interop.peers import WRITERS
from tests.interop.served_files import DirectFiles, MountedFiles, ServedFiles
from tests.interop.serving import check_served
from tests.interop.spec import Spec
from zarrfs.errors import ChunkError, StoreError, StoreUnavailable
from zarrfs.store.base import ByteRange
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.references.document import ReferencesError, filled_in

from . import netcdf
from .netcdf import VARIABLES, write_file, write_references, write_v3_references


@dataclass(frozen=True)
class Referenced:
    """A NetCDF4 file and the references to it."""

    file: Path
    references: Path


@pytest.fixture(scope="module")
def referenced(tmp_path_factory: pytest.TempPathFactory) -> Referenced:
    directory = tmp_path_factory.mktemp("netcdf")
    found = Referenced(directory / "weather.nc", directory / "weather.json")
    write_file(found.file)
    write_references(found.file, found.references)
    return found


def check_variables(files: ServedFiles, file: Path) -> None:
    """Every variable against what the HDF5 library reads."""
    with h5py.File(file) as opened:
        for path in VARIABLES:
            dataset: Any = opened[path]
            elements = np.asarray(dataset[()])
            little = elements.astype(elements.dtype.newbyteorder("<"))
            assert files.read(f"{path}/array.bin") == little.tobytes(), path
            document = json.loads(files.read(f"{path}/.zarray"))
            assert document["dtype"] == elements.dtype.str, path
            assert document["chunks"] == list(dataset.chunks or dataset.shape), path
    assert json.loads(files.read(".zattrs"))["title"] == "Weather"
    assert json.loads(files.read("temperature/.zattrs"))["units"] == "K"


def test_the_file_is_what_it_should_be(referenced: Referenced) -> None:
    """Or the tests below would show less than they say."""
    with h5py.File(referenced.file) as file:
        assert file["temperature"].chunks == (2, 5, 4)
        assert file["temperature"].compression == "gzip"
        assert file["temperature"].shuffle
        assert file["pressure"].dtype == ">i2"
        assert file["elevation"].chunks is None
    stored = json.loads(referenced.references.read_text())["refs"]
    assert "pressure/0.0" in stored
    assert not [key for key in stored if key.startswith("never_written/0")]


SOURCES: dict[str, Callable[[Path], tuple[str, dict[str, object]]]] = {
    "path": lambda path: (f"reference::{path}", {}),
    "url": lambda path: (f"reference::file://{path}", {}),
    "options": lambda path: ("reference://", {"fo": str(path), "remote_protocol": "file"}),
    "cached": lambda path: (
        f"reference::simplecache::file://{path}",
        {"simplecache": {"cache_storage": str(path.parent / "cache")}},
    ),
}
"""How a user names references: as a source, and with storage options."""


@pytest.mark.parametrize("source", SOURCES)
def test_netcdf(
    source: str, referenced: Referenced, open_direct: Callable[..., DirectFiles]
) -> None:
    url, options = SOURCES[source](referenced.references)
    check_variables(open_direct(url, storage_options=options), referenced.file)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine is deprecated")
@pytest.mark.parametrize("name", netcdf.WRITERS)
def test_as_writers_write_by_default(
    name: str, tmp_path: Path, open_direct: Callable[..., DirectFiles]
) -> None:
    """Small chunks are inlined then, as coordinates are."""
    file = tmp_path / "weather.nc"
    write_file(file)
    netcdf.WRITERS[name](file, tmp_path / name)
    files = open_direct(f"reference::{tmp_path / name}")
    # VirtualiZarr's have the root group alone.
    variables = [v for v in VARIABLES if "/" not in v or name.startswith("kerchunk")]
    shown = [name for name in files.names("") if not name.startswith(".")]
    assert shown == sorted({variable.partition("/")[0] for variable in variables})
    with h5py.File(file) as opened:
        for path in variables:
            elements = np.asarray(cast(Any, opened[path])[()])
            little = elements.astype(elements.dtype.newbyteorder("<"))
            assert files.read(f"{path}/array.bin") == little.tobytes(), path


INLINED = {"text": "abc!", "bytes": "base64:" + base64.b64encode(b"\0\xff\1\2").decode()}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("form", INLINED)
def test_an_inlined_chunk(
    form: str, version: int, tmp_path: Path, open_direct: Callable[..., DirectFiles]
) -> None:
    refs = {".zarray": json.dumps(v2("|u1", shape=[4], chunks=[4])), "0": INLINED[form]}
    document = {"version": 1, "refs": refs} if version else refs
    (tmp_path / "a.json").write_text(json.dumps(document))
    files = open_direct(f"reference::{tmp_path / 'a.json'}")
    assert files.read("array.bin") == (b"abc!" if form == "text" else b"\0\xff\1\2")
    assert files.read("chunks/0") == files.read("array.bin")


@pytest.mark.parametrize("bad", ["base64:AAA", "base64:\u00e9"])
def test_an_inlined_chunk_that_is_damaged_is_no_passing_failure(bad: str, tmp_path: Path) -> None:
    """Trying it again would take seconds, and change nothing."""
    (tmp_path / "a.json").write_text(json.dumps({"0": bad}))
    url = f"reference::{tmp_path / 'a.json'}"
    with (
        closing(open_store(url, StoreConfig())) as store,
        pytest.raises(StoreError, match="base64") as caught,
    ):
        store.get("0", limit=100)
    assert not isinstance(caught.value, StoreUnavailable)


def test_a_reference_to_a_file_that_is_gone_is_an_error(
    tmp_path: Path, open_direct: Callable[..., DirectFiles]
) -> None:
    """And no chunk that was never written."""
    gone = str(tmp_path / "gone.nc")
    refs = {".zarray": json.dumps(v2("|u1", shape=[8], chunks=[4])), "0": [gone, 0, 4], "1": [gone]}
    (tmp_path / "a.json").write_text(json.dumps(refs))
    files = open_direct(f"reference::{tmp_path / 'a.json'}")
    for chunk in ("0", "1"):
        with pytest.raises(ChunkError, match=r"gone\.nc, which does not exist"):
            files.read(f"chunks/{chunk}")


def test_references_that_lead_to_several_kinds_of_places(
    tmp_path: Path, open_direct: Callable[..., DirectFiles]
) -> None:
    (tmp_path / "b").write_bytes(b"0123")
    fsspec.filesystem("memory").pipe_file("/parts", b"4567")
    refs = {
        ".zarray": json.dumps(v2("|u1", shape=[8], chunks=[4])),
        "0": [str(tmp_path / "b"), 0, 4],
        "1": ["memory://parts", 0, 4],
    }
    (tmp_path / "a.json").write_text(json.dumps(refs))
    assert open_direct(f"reference::{tmp_path / 'a.json'}").read("array.bin") == b"01234567"


def test_parquet_without_its_packages_names_the_extra(tmp_path: Path) -> None:
    references = tmp_path / "a.parq"
    references.mkdir()
    (references / ".zmetadata").write_text('{"metadata": {".zgroup": {}}, "record_size": 10}')
    program = (
        "import sys; sys.modules['pandas'] = None\n"
        "from zarrfs.store.open import StoreConfig, open_store\n"
        "open_store(sys.argv[1], StoreConfig())"
    )
    done = run_python("-c", program, f"reference::{references}")
    assert "UsageError" in done.stderr
    assert "references in Parquet need a package, in a checkout of" in done.stderr
    assert "pip install '.[parquet]'" in done.stderr


def test_one_variable(referenced: Referenced, open_direct: Callable[..., DirectFiles]) -> None:
    files = open_direct("reference://pressure", storage_options={"fo": str(referenced.references)})
    with h5py.File(referenced.file) as file:
        assert files.read("array.bin") == file["pressure"][()].astype("<i2").tobytes()


@pytest.mark.mount
@pytest.mark.parametrize("source", ["path", "options"])
def test_netcdf_mounted(
    source: str, referenced: Referenced, mount_daemon: Callable[..., Any]
) -> None:
    url, options = SOURCES[source](referenced.references)
    typed = [f"--storage-option={name}={value}" for name, value in options.items()]
    daemon = mount_daemon(url, command=(sys.executable, "-m", "zarrfs", "mount", *typed))
    check_variables(MountedFiles(daemon.path), referenced.file)


@pytest.mark.parametrize("sharded", [False, True])
def test_references_to_a_v3_store(
    sharded: bool, tmp_path: Path, open_direct: Callable[..., DirectFiles]
) -> None:
    codecs = [array_bytes(), zstd()]
    spec = Spec(
        "int32",
        FILLS["int32"][3],
        shape=(19, 23),
        stored=(8, 6),
        inner=(4, 3) if sharded else (8, 6),
        keys=chunk_keys("default", "/"),
        codecs=(sharding((4, 3), codecs),) if sharded else tuple(codecs),
    )
    data = spec.data(seed=1)
    store = tmp_path / "store"
    WRITERS["tensorstore"](store, spec, data)
    references = tmp_path / "store.json"
    write_v3_references(store, tmp_path / "blob", references)
    check_served(open_direct(f"reference::{references}"), spec, data)


def test_generated_references_are_those_of_jinja(tmp_path: Path) -> None:
    """fsspec makes them with ``simple_templates=False`` only, and else leaves them out."""
    (tmp_path / "data").write_bytes(bytes(range(200)))
    gens = [
        {"key": "c/{{i}}.{{j}}", "url": "{{u}}/data", "offset": "{{(i * 3 + j) * 10 % 100}}",
         "length": "{{ 4 // 2 }}", "dimensions": {"i": {"stop": 3}, "j": [0, 2]}},
        {"key": "whole{{i - 1}}", "url": "{{ u }}/data", "dimensions": {"i": {"start": 1, "stop": 9,
         "step": 4}}},
    ]  # fmt: skip
    document = {"version": 1, "templates": {"u": f"file://{tmp_path}"}, "refs": {}, "gen": gens}
    expected = fsspec.filesystem(
        "reference", fo=document, simple_templates=False, skip_instance_cache=True
    ).references
    assert len(expected) == 8
    assert filled_in(document)["refs"] == expected
    (tmp_path / "references.json").write_text(json.dumps(document))
    store = open_store(f"reference::file://{tmp_path}/references.json", StoreConfig())
    blob = store.get("c/1.2", limit=100)
    assert blob is not None
    assert bytes(blob.data) == bytes([50, 51])
    store.close()


@pytest.mark.parametrize("expression", [
    "9 ** 9", "'x' * 9", "i.real", "i()", "[i]", "i if i else 1", "x", "u * 2",
    "9223372036854775807 + 1", "1 // (i - i)", "True", "1.5", "-" * 100 + "1",
    "(" * 90 + "1" + ")" * 90, "", "i" * 300, "\0",
])  # fmt: skip
def test_expressions_that_are_not_calculated(expression: str) -> None:
    gen = {"key": "c{{" + expression + "}}", "url": "x", "dimensions": {"i": {"stop": 2}}}
    if expression.startswith("("):
        assert filled_in({"refs": {}, "gen": [gen]})["refs"].keys() == {"c1"}
        return
    with pytest.raises(ReferencesError):
        filled_in({"templates": {"u": "x"}, "refs": {}, "gen": [gen]})


@pytest.mark.parametrize(
    "value",
    [[None, 0, 32], [], [None], ["file.nc", 0], ["file.nc", -1, 32], ["file.nc", 0, -1], None, 5,
     ["file.nc", 0, 1.5], ["file.nc", None, None], ["file.nc", 0, 32, 0]],
)  # fmt: skip
def test_what_is_no_reference_is_an_error(value: Any, tmp_path: Path) -> None:
    """It does not read as a chunk that was never written."""
    (tmp_path / "file.nc").write_bytes(bytes(100))
    references = {".zgroup": "{}", "a/0": value, "a/1": [f"file://{tmp_path}/file.nc", 0, 32]}
    document = tmp_path / "references.json"
    document.write_text(json.dumps({"version": 1, "refs": references}))
    with closing(open_store(f"reference::{document}", StoreConfig())) as store:
        blob = store.get("a/1", limit=100)
        assert blob is not None
        assert blob.data == bytes(32)
        assert store.get("a/2", limit=100) is None
        for ask in (
            lambda: store.get("a/0", limit=100),
            lambda: store.get_ranges("a/0", [ByteRange(0, 8)]),
            lambda: store.info("a/0"),
        ):
            with pytest.raises(StoreError, match="have no place for it"):
                ask()
