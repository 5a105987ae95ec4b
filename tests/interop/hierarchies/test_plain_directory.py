"""A directory of data of any kind as one tree: stores as directories of views, other files too."""

import json
import os
import struct
import zipfile
from contextlib import closing
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

from tests.interop.foreign.netcdf import write_file, write_references
from tests.interop.served_files import MountedFiles
from zarrfs import bounds
from zarrfs.errors import EntryNotFound, NotADirectory, ReadOnly, StoreAccessDenied, StoreError
from zarrfs.store.base import ByteRange
from zarrfs.store.local import beneath
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import StoreConfig, open_found
from zarrfs.store.plain_directory import PlainDirectory

pytestmark = pytest.mark.timeout(180)

NUMBERS = np.arange(35, dtype="<i4").reshape(5, 7)


@pytest.fixture
def data(tmp_path):
    """Zarr of both versions, a zip, NetCDF, references, and what is none of these."""
    root = tmp_path / "data"
    (root / "deep/er").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "readme.txt").write_text("hello\n")
    (root / "deep/er/numbers.bin").write_bytes(bytes(range(256)) * 1000)
    (root / "table.json").write_text('{"no": "references"}')
    for version in (2, 3):
        zarr.create_array(
            root / f"deep/v{version}.zarr", data=NUMBERS, chunks=(2, 3), zarr_format=version
        )
    group = zarr.open_group(root / "group.zarr", mode="w")
    group.create_array("a", data=NUMBERS)
    with zipfile.ZipFile(root / "packed.zip", "w") as file:
        for path in (root / "deep/v3.zarr").rglob("*"):
            file.write(path, path.relative_to(root / "deep"))
    with zipfile.ZipFile(root / "text.zip", "w") as file:
        file.writestr("a.txt", "text")
    write_file(root / "weather.nc")
    write_references(root / "weather.nc", root / "weather.json")
    return root


@pytest.fixture
def opened(data, mount):
    config = StoreConfig()
    return mount(PlainDirectory(LocalStore(data), partial(open_found, config=config)))


ALL = [
    "deep", "empty", "group.zarr", "packed.zip", "readme.txt", "table.json", "text.zip",
    "weather.json", "weather.nc",
]  # fmt: skip
STORES = ("deep/v2.zarr", "deep/v3.zarr", "group.zarr/a", "packed.zip")


def test_all_is_listed(opened):
    assert [name for name in opened.ls() if name != ".zarrfs"] == ALL
    assert opened.ls("deep") == ["er", "v2.zarr", "v3.zarr"]
    assert opened.ls("empty") == []
    assert opened.ls("group.zarr") == ["zarr.json", "a"]
    kinds = {entry.name: entry.attributes.is_directory for entry in opened.entries()}
    assert [name for name in ALL if not kinds[name]] == ["readme.txt", "table.json", "text.zip"]


@pytest.mark.parametrize("path", STORES)
def test_stores_are_directories_of_views(opened, path):
    assert opened.read(f"{path}/array.bin") == NUMBERS.tobytes()
    assert "chunks" in opened.ls(path)
    assert opened.errors() == []


@pytest.mark.parametrize("name", ["weather.nc", "weather.json"])
def test_files_of_other_formats_too(opened, data, name):
    with h5py.File(data / "weather.nc") as file:
        expected = file["temperature"][()].tobytes()
    assert opened.read(f"{name}/temperature/array.bin") == expected
    assert {"deep", "humidity"} <= set(opened.ls(f"{name}/model"))


@pytest.mark.parametrize("path", ["readme.txt", "table.json", "text.zip", "deep/er/numbers.bin"])
def test_other_files_are_passed_through(opened, data, path):
    stored = (data / path).read_bytes()
    assert opened.read(path) == stored
    assert opened.stat(path).size == len(stored)
    assert opened.stat(path).mtime_ns == (data / path).stat().st_mtime_ns
    assert opened.open(path).read(3, 5) == stored[3:8]
    with pytest.raises(NotADirectory):
        opened.ls(path)
    with pytest.raises(ReadOnly):
        opened.open(path, write=True)


def noted(mount, data):
    """A mount of a directory, and a list of what it opens."""
    asked = []

    def open_one(fd, shown, **others):
        asked.append(os.path.basename(shown))
        return open_found(fd, shown, StoreConfig(), **others)

    return mount(PlainDirectory(LocalStore(data), open_one)), asked


def test_nothing_is_opened_before_somebody_looks_into_it(data, mount):
    m, asked = noted(mount, data)
    for entry in m.entries():
        m.stat(entry.name)
    assert asked == []
    m.ls("weather.nc")
    m.read("weather.nc/elevation/array.bin")
    assert asked == ["weather.nc"]


def test_a_store_that_cannot_be_opened_says_so_and_no_other_suffers(data, mount):
    (data / "broken.nc").write_bytes(b"CDF\x01" + b"\xff" * 500)
    m, asked = noted(mount, data)
    for _ in range(3):
        assert m.ls("broken.nc") == ["zarrfs-note.txt"]
        assert b"no references to its chunks can be made" in m.read("broken.nc/zarrfs-note.txt")
        with pytest.raises(EntryNotFound):
            m.stat("broken.nc/zarr.json")
        with pytest.raises(StoreError, match="no references to its chunks can be made"):
            m.stat("broken.nc/an_array")
    # Some take minutes to fail.
    assert asked == ["broken.nc"]
    assert [key for key, _ in m.errors()] == ["broken.nc"]
    assert m.read("packed.zip/array.bin") == NUMBERS.tobytes()


@pytest.mark.parametrize("size", [10, 100_000])
def test_references_in_parquet_say_how_they_are_served(data, opened, size):
    (data / "refs.parq/a").mkdir(parents=True)
    (data / "refs.parq/a/refs.0.parq").write_bytes(b"PAR1")
    document = {"metadata": {"a/.zattrs": {"long": "x" * size}}, "record_size": 1000}
    (data / "refs.parq/.zmetadata").write_text(json.dumps(document))
    assert sorted(opened.ls("refs.parq")) == [".zmetadata", "a", "zarrfs-note.txt"]
    assert b"is the source of the mount" in opened.read("refs.parq/zarrfs-note.txt")
    assert opened.read("refs.parq/a/refs.0.parq") == b"PAR1"
    assert [key for key, _ in opened.errors()] == ["refs.parq"]
    assert "zarrfs-note.txt" not in opened.ls("deep")


def test_files_are_what_they_are_now(opened, data):
    assert opened.read("readme.txt") == b"hello\n"
    (data / "readme.txt").write_text("longer than it was\n")
    (data / "new.txt").write_text("new")
    assert opened.read("readme.txt") == b"longer than it was\n"
    assert opened.stat("readme.txt").fresh_seconds <= 1
    assert opened.read("new.txt") == b"new"
    assert "new.txt" in opened.ls()
    (data / "readme.txt").unlink()
    with pytest.raises(EntryNotFound):
        opened.read("readme.txt")
    assert "readme.txt" not in opened.ls()


def test_reload_keeps_what_is_open(opened):
    before = opened.stat("weather.nc/elevation/array.bin").inode
    file = opened.open("weather.nc/elevation/array.bin")
    opened.loop.run(opened.fs.reload)
    assert len(file.read(0, 16)) == 16
    assert opened.stat("weather.nc/elevation/array.bin").inode == before


def test_a_zip_file_with_a_large_table_of_contents_is_no_store(data, opened, monkeypatch):
    """It is looked at within the bound that holds for a zip file as the source."""
    with zipfile.ZipFile(data / "many.zip", "w") as file:
        file.writestr("zarr.json", "{}")
        for number in range(200):
            file.writestr(f"{number}", "")
    with monkeypatch.context() as bounded:
        bounded.setattr(bounds, "LARGEST_CONTENTS", 64 << 10)
        assert not opened.stat("many.zip").is_directory
    os.utime(data / "many.zip", (1, 1))
    assert opened.store.entry("many.zip").form == "store"


class TestLinks:
    def test_within_the_directory_they_are_what_they_lead_to(self, data, opened):
        (data / "link.txt").symlink_to("deep/er/numbers.bin")
        (data / "link.zarr").symlink_to(data / "deep/v3.zarr")
        (data / "link.nc").symlink_to("weather.nc")
        assert opened.stat("link.txt").size == 256000
        assert opened.read("link.zarr/array.bin") == NUMBERS.tobytes()
        assert "temperature" in opened.ls("link.nc")

    def test_out_of_it_they_are_refused_with_the_option_named(self, data, tmp_path, opened):
        (tmp_path / "secret").write_text("secret")
        (tmp_path / "other").mkdir()
        (data / "out").symlink_to(tmp_path / "secret")
        (data / "out.zip").symlink_to(tmp_path / "secret")
        (data / "aside").symlink_to(tmp_path / "other")
        assert {"out", "out.zip", "aside"} <= set(opened.ls())
        for name in ("out", "out.zip", "aside"):
            with pytest.raises(StoreError, match="-o follow_symlinks"):
                opened.stat(name)

    def test_broken_ones_are_refused_with_the_reason(self, data, opened):
        (data / "broken").symlink_to("nowhere")
        assert "broken" in opened.ls()
        with pytest.raises(StoreError, match="has no target"):
            opened.stat("broken")


class TestPermissions:
    @pytest.mark.parametrize(("mode", "others"), [(0o640, 0), (0o644, 4), (0o600, 0), (0o755, 5)])
    def test_others_may_no_more_than_below(self, data, opened, mode, others):
        (data / "readme.txt").chmod(mode)
        shown = opened.stat("readme.txt").mode
        assert shown & 0o007 == others
        assert shown & 0o222 == 0
        assert shown & 0o400

    def test_of_directories_and_stores(self, data, opened):
        (data / "deep").chmod(0o700)
        (data / "weather.nc").chmod(0o600)
        assert opened.stat("deep").mode == 0o500
        assert opened.stat("weather.nc").mode & 0o077 == 0
        opened.ls("weather.nc")
        assert opened.stat("weather.nc").mode & 0o077 == 0

    def test_of_another_group(self, data, opened, monkeypatch):
        monkeypatch.setattr(beneath.os, "getegid", lambda: 12345)
        (data / "readme.txt").chmod(0o640)
        assert opened.stat("readme.txt").mode & 0o070 == 0

    def test_of_a_group_that_is_kept_out(self, data, opened, monkeypatch):
        """Members of another group are others in the mount."""
        (data / "deep").chmod(0o705)
        assert opened.stat("deep").mode == 0o505
        monkeypatch.setattr(beneath.os, "getegid", lambda: 12345)
        assert opened.stat("deep").mode == 0o500

    @pytest.mark.parametrize(
        ("group", "user", "mask", "shown"),
        [(0, 4, 4, 0o400), (4, 0, 4, 0o400), (4, 4, 0, 0o400), (4, 4, 4, 0o444)],
        ids=["the group is denied", "a user is denied", "all are", "none is"],
    )
    def test_of_access_control_lists(self, data, opened, group, user, mask, shown):
        """Their mask is what the mode has of the group, and a user may have less than others."""
        entries = [(1, 6, -1), (2, user, 1234), (4, group, -1), (16, mask, -1), (32, 4, -1)]
        acl = b"".join(struct.pack("<HHi", *entry) for entry in entries)
        os.setxattr(data / "readme.txt", "system.posix_acl_access", struct.pack("<I", 2) + acl)
        assert opened.stat("readme.txt").mode == shown
        # The objects of an array have no mode of their own in the mount.
        chunk = data / "deep/v3.zarr/c/0/0"
        os.setxattr(chunk, "system.posix_acl_access", struct.pack("<I", 2) + acl)
        with closing(LocalStore(data)) as store:
            store.guard_objects()
            if shown == 0o444:
                assert store.info("deep/v3.zarr/c/0/0") is not None
            else:
                with pytest.raises(StoreAccessDenied):
                    store.info("deep/v3.zarr/c/0/0")

    @pytest.mark.parametrize(
        ("mode", "shown"), [(0o644, 0o555), (0o640, 0o550), (0o600, 0o500), (0o604, 0o505)]
    )
    def test_whoever_may_read_a_store_may_enter_it(self, data, opened, mode, shown):
        for name in ("weather.nc", "packed.zip"):
            (data / name).chmod(mode)
            assert opened.stat(name).mode == shown
            opened.ls(name)
            assert opened.stat(name).mode == shown

    @pytest.mark.parametrize("name", ["weather.nc", "deep/v3.zarr", "deep"])
    def test_permissions_revoked_below_are_revoked(self, data, opened, name):
        opened.ls(name)
        assert opened.stat(name).mode & 0o005 == 0o005
        (data / name).chmod(0o700)
        assert opened.stat(name).mode == 0o500
        assert opened.stat(name).fresh_seconds <= 1

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
    def test_what_may_not_be_read_any_more_is_not_read(self, data, opened):
        opened.read("weather.nc/elevation/array.bin")
        (data / "weather.nc").chmod(0)
        with pytest.raises(StoreError):
            opened.read("weather.nc/temperature/array.bin")

    def test_another_file_in_its_place_is_not_read(self, data, opened):
        opened.read("packed.zip/array.bin")
        (data / "packed.zip").rename(data / "moved.zip")
        with pytest.raises(StoreError, match="was changed since it was mounted"):
            opened.store.get("packed.zip/zarr.json", limit=1000)
        write_file(data / "packed.zip")
        with pytest.raises(StoreError, match="was changed since it was mounted"):
            opened.store.get("packed.zip/zarr.json", limit=1000)


class TestFoundReferences:
    """A document that the user did not name may be anyone's."""

    def refer(self, data, url, size=8):
        refs = {
            ".zgroup": '{"zarr_format": 2}',
            "a/.zarray": json.dumps(
                {"zarr_format": 2, "shape": [size], "chunks": [size], "dtype": "|u1", "order": "C",
                 "compressor": None, "filters": None, "fill_value": 0}
            ),
            "a/0": [url, 0, size],
        }  # fmt: skip
        (data / "found.json").write_text(json.dumps({"version": 1, "refs": refs}))

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("{outside}/private", "outside of the directory"),
            ("file://{outside}/private", "outside of the directory"),
            ("local://{outside}/private", "outside of the directory"),
            ("{data}/../outside/private", "outside of the directory"),
            ("{data}/link", "leads out of the store"),
            ("http://127.0.0.1:9/a", "must not name http:// places"),
            ("s3://bucket/a", "must not name s3:// places"),
            ("simplecache::file://{outside}/private", "must not name|outside of the directory"),
        ],
    )
    def test_lead_nowhere_else(self, data, opened, tmp_path, url, words):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "private").write_bytes(b"private!")
        (data / "link").symlink_to(outside / "private")
        self.refer(data, url.format(outside=outside, data=data))
        with pytest.raises(StoreError, match=words):
            opened.store.get("found.json/a/0", limit=100)

    def test_lead_to_files_of_the_same_directory(self, data, opened):
        (data / "own").write_bytes(b"elements")
        self.refer(data, f"file://{data}/own")
        assert opened.read("found.json/a/array.bin") == b"elements"

    @pytest.mark.skipif(os.geteuid() != 0, reason="to be several users takes root")
    @pytest.mark.parametrize("way", ["file", "directory", "link", "chunk"])
    def test_show_others_nothing_that_they_may_not_read(self, data, tmp_path, way):
        """Through the rights of root, with `-o allow_other`."""
        secret = data / "secret"
        secret.mkdir(0o700 if way == "directory" else 0o755)
        (secret / "private").write_bytes(b"private!")
        (secret / "private").chmod(0o600 if way != "directory" else 0o644)
        key = "found.json/a/0"
        if way == "link":
            key = "own"
            (data / "own").symlink_to("secret/private")
            os.chown(data / "own", 12345, 12345, follow_symlinks=False)
        elif way == "chunk":
            key = "deep/v3.zarr/c/0/0"
            (data / key).unlink()
            (data / key).symlink_to(secret / "private")
            os.chown(data / key, 12345, 12345, follow_symlinks=False)
        else:
            self.refer(data, f"file://{secret}/private")
            os.chown(data / "found.json", 12345, 12345)
        open_one = partial(open_found, config=StoreConfig())
        local = LocalStore(data)
        local.show_to_others()
        with closing(PlainDirectory(local, open_one, others=True)) as plain:
            with pytest.raises(StoreError, match="not all of its readers may read"):
                plain.get(key, limit=100)
            # Its owner may show it.
            os.chown(secret, 12345, 12345)
            os.chown(secret / "private", 12345, 12345)
            blob = plain.get(key, limit=100)
            assert blob is not None
            assert blob.data == b"private!"


@pytest.mark.mount
@pytest.mark.skipif(os.geteuid() != 0, reason="needs -o allow_other")
def test_root_shows_others_nothing_of_its_own(data, mount_daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "private").write_bytes(b"private!")
    TestFoundReferences().refer(data, f"file://{tmp_path}/private")
    daemon = mount_daemon(data, "allow_other", quiet=False)
    with pytest.raises(OSError, match=r"Input/output error|Permission denied"):
        (Path(daemon.path) / "found.json/a/array.bin").read_bytes()
    assert MountedFiles(daemon.path).read("deep/v3.zarr/array.bin") == NUMBERS.tobytes()
    assert (Path(daemon.path) / "weather.nc").stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize(
    ("closed", "key", "refused"),
    [
        ("deep/v3.zarr/c/0/0", "deep/v3.zarr/c/0/0", True),
        ("deep/v3.zarr/c/0", "deep/v3.zarr/c/0/0", True),
        ("deep/v3.zarr/c", "deep/v3.zarr/c/0/0", True),
        ("deep/v2.zarr/0.0", "deep/v2.zarr/0.0", True),
        ("deep/v3.zarr/zarr.json", "deep/v3.zarr/zarr.json", True),
        ("deep/v2.zarr/.zattrs", "deep/v2.zarr/.zattrs", True),
        # The mount shows these modes, and the kernel keeps others out.
        ("deep/v3.zarr", "deep/v3.zarr/c/0/0", False),
        ("deep", "deep/v3.zarr/c/0/0", False),
        (".", "deep/v3.zarr/c/0/0", False),
    ],
)
def test_objects_of_a_store_need_the_rights_that_its_directory_gives(data, closed, key, refused):
    (data / "deep/v2.zarr/.zattrs").touch()
    (data / closed).chmod(0o700)
    (data / "deep/v3.zarr/c/0/0").chmod(0o600 if not refused else 0o644)
    if closed.endswith(("0.0", "0/0")):
        (data / closed).chmod(0o600)
    store = LocalStore(data)
    store.guard_objects()
    with closing(PlainDirectory(store, partial(open_found, config=StoreConfig()))) as plain:
        reads = [
            lambda: plain.get(key, limit=10**6),
            lambda: plain.get_ranges(key, [ByteRange(0, 1)]),
            lambda: plain.info(key),
            lambda: list(plain.get_many([key, key], limit=10**6))[1],
        ]
        for read in reads:
            if not refused:
                assert not isinstance(read(), StoreError | None)
                continue
            try:
                error = read()
            except StoreError as raised:
                error = raised
            assert isinstance(error, StoreAccessDenied)
            assert "may not be read by all who may enter" in error.reason
        # Nothing keeps a file back that has its own mode in the mount.
        assert plain.files.get_ranges(key, [ByteRange(0, 1)])


@pytest.mark.mount
@pytest.mark.skipif(os.geteuid() != 0, reason="needs -o allow_other")
@pytest.mark.parametrize("way", ["mode", "link"])
@pytest.mark.parametrize("workers", [0, 2])
def test_chunks_that_others_may_not_read(mount_daemon, tmp_path, monkeypatch, way, workers):
    """Root mounts for all, with and without processes beside the daemon that read for it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "data"
    zarr.create_array(root / "a.zarr", data=np.full((64, 2**16), 7, "u1"), chunks=(1, 2**16))
    chunk = root / "a.zarr/c/33/0"
    (root / "note.txt").write_text("private")
    (root / "note.txt").chmod(0o600)
    if way == "mode":
        chunk.chmod(0o600)
    else:
        private = tmp_path / "data/private"
        chunk.rename(private)
        private.chmod(0o600)
        chunk.symlink_to("../../../private")
        os.chown(chunk, 12345, 12345, follow_symlinks=False)
    daemon = mount_daemon(root, f"allow_other,workers={workers}", quiet=False)
    shown = Path(daemon.path) / "a.zarr/array.bin"
    with shown.open("rb", buffering=0) as file:
        with pytest.raises(OSError, match=r"Input/output error|Permission denied"):
            file.readall()
        assert os.pread(file.fileno(), 2**16, 0) == b"\7" * 2**16
    assert (Path(daemon.path) / "note.txt").read_text() == "private"


@pytest.mark.mount
def test_mounted(data, mount_daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (data / "private.txt").write_text("private")
    (data / "private.txt").chmod(0o600)
    daemon = mount_daemon(data)
    files = MountedFiles(daemon.path)
    names = files.names("")
    assert sorted(names) == sorted([".zarrfs", "private.txt", *ALL])
    for path in STORES:
        assert files.read(f"{path}/array.bin") == NUMBERS.tobytes()
    for path in ("readme.txt", "deep/er/numbers.bin"):
        assert files.read(path) == (data / path).read_bytes()
    assert (Path(daemon.path) / "private.txt").stat().st_mode & 0o777 == 0o400
    with h5py.File(data / "weather.nc") as file:
        expected = file["elevation"][()].astype("<f8").tobytes()
    assert files.read("weather.nc/elevation/array.bin") == expected
    shown = json.loads(files.read(".zarrfs/config.json"))
    assert shown["source"] == str(data)
    with pytest.raises(OSError, match="Read-only"):
        (Path(daemon.path) / "readme.txt").write_text("no")
