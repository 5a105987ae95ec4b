"""Archives whose table of contents was made to take memory or time, or to mislead."""

import io
import struct
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.traced import traced
from zarrfs import bounds
from zarrfs.errors import StoreError, StoreUnavailable, UsageError
from zarrfs.store.base import ByteRange
from zarrfs.store.open import StoreConfig, open_store

MOST = 64 << 20
"""Bytes that opening may take; each of the archives here took gigabytes, or minutes."""


@pytest.fixture
def config(quick) -> StoreConfig:
    return StoreConfig(retry=quick)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Bounds that small archives exceed."""
    monkeypatch.setattr(bounds, "LARGEST_CONTENTS", 8 << 20)
    monkeypatch.setattr(bounds, "LARGEST_UNPACKED", 8 << 20)


def refused(url: str, config: StoreConfig) -> str:
    """Why it is; in little memory."""
    with traced() as peak, pytest.raises(StoreError) as caught:
        open_store(url, config)
    assert peak() < MOST
    return str(caught.value)


def zip_of(path: Path, names: list[str], data: bytes = b"x") -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), data)
    return f"zip://::file://{path}"


def header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    """One header block, of any size; a negative one as GNU tar has it, in base 256."""
    info = tarfile.TarInfo(name)
    info.type = kind
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    plain = 0 <= size < 8**11
    field = b"%011o\0" % size if plain else (size % 256**12).to_bytes(12, "big")
    raw[124:136] = field if size < 8**11 else b"\x80" + field[1:]
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def tar_of(path: Path, data: bytes) -> str:
    path.write_bytes(data + bytes(1024))
    return f"tar://::file://{path}"


def test_many_members_of_a_zip_file(tmp_path, config):
    url = zip_of(tmp_path / "a.zip", [f"c/{number}" for number in range(9000)])
    assert "table of contents takes more than" in refused(url, config)


def test_a_zip_file_whose_table_of_contents_is_of_zeros(tmp_path, config):
    """A file that takes no room on disk, all of which its end says to be the table."""
    path = tmp_path / "a.zip"
    size = 1 << 32
    end64 = struct.pack("<IQ2H2I4Q", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, size, 0)
    locator = struct.pack("<IIQI", 0x07064B50, 0, size, 1)
    end = struct.pack("<I4H2IH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    with path.open("wb") as file:
        file.seek(size)
        file.write(end64 + locator + end)
    assert "table of contents needs 4294967296 bytes" in refused(f"zip://::file://{path}", config)


@pytest.mark.parametrize("name", ["a/" * 30_000 + "b", "x" * 5000, "/" * 200 + "b"])
def test_long_and_deep_names_in_a_zip_file(tmp_path, config, name):
    assert "a member's name" in refused(zip_of(tmp_path / "a.zip", [name]), config)


def test_deep_names_take_what_their_directories_take(tmp_path, config):
    names = ["/".join([f"{number}" + "d" * 20] * 100) for number in range(100)]
    url = zip_of(tmp_path / "a.zip", names)
    assert "table of contents takes more than" in refused(url, config)


def test_members_of_a_zip_file_that_overlap(tmp_path, config):
    path = tmp_path / "a.zip"
    url = zip_of(path, ["one", "two"], b"x" * 100)
    raw = bytearray(path.read_bytes())
    entry = raw.find(b"PK\1\2")
    struct.pack_into("<2I", raw, entry + 20, 150, 150)
    path.write_bytes(raw)
    assert "overlaps another" in refused(url, config)


def test_of_members_of_one_name_the_last_is_there(opening, tmp_path, config, recwarn):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", b"old")
        archive.writestr("x", b"new")
        archive.writestr("d/x", b"")
        archive.writestr("d", b"in the way")
    store = opening(f"zip://::file://{path}", config)
    assert store.get("x", limit=10).data == b"new"
    assert list(store.list_dir("")) == ["d/", "x"]


def test_names_that_lead_out_or_nowhere(opening, tmp_path, config):
    names = ["../x", "a/../../x", "/x", "./y", "a//z", "..", ".", "//"]
    store = opening(zip_of(tmp_path / "a.zip", [*names, "zarr.json"]), config)
    assert list(store.list_dir("")) == ["a/", "y", "zarr.json"]
    assert list(store.list_dir("a")) == ["z"]
    assert store.get("y", limit=10).data == b"x"
    assert store.get("x", limit=10) is None


def test_many_members_of_a_tar_file(tmp_path, config):
    data = b"".join(header(f"c/{number}") for number in range(9000))
    assert "table of contents takes more than" in refused(tar_of(tmp_path / "a.tar", data), config)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
@pytest.mark.parametrize("size", [1 << 32, -1024, -(1 << 40)])
def test_headers_of_a_tar_file_of_absurd_sizes(tmp_path, config, kind, size):
    path = tmp_path / "a.tar"
    url = tar_of(path, header("x", size, kind))
    with path.open("r+b") as file:
        file.truncate(5 << 30)  # takes no room on disk
    said = refused(url, config)
    assert "table of contents" in said or "negative" in said


def test_a_member_of_a_tar_file_that_leads_back(tmp_path, config):
    data = header("a") + header("b", -512)
    said = refused(tar_of(tmp_path / "a.tar", data), config)
    assert "negative size" in said


def test_a_compressed_tar_file_is_not_unpacked_without_end(tmp_path, config):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for number in range(2):
            info = tarfile.TarInfo(f"c/{number}")
            info.size = 9 << 20
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    assert "decompresses to more than" in refused(f"tar://::file://{path}", config)


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_compressed_tar_file(opening, tmp_path, config, ending):
    path = tmp_path / f"a.tar.{ending}"
    with tarfile.open(path, f"w:{ending}") as archive:
        for name in ("./c/0", "./zarr.json"):
            info = tarfile.TarInfo(name)
            info.size = 5
            archive.addfile(info, io.BytesIO(b"01234"))
    store = opening(f"tar://::file://{path}", config)
    assert store.get("c/0", limit=10).data == b"01234"
    assert store.get_ranges("c/0", [ByteRange(1, 2)])[0].data == b"12"


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_compressed_tar_file_that_breaks_off_is_not_asked_for_again(tmp_path, ending):
    path = tmp_path / f"a.tar.{ending}"
    with tarfile.open(path, f"w:{ending}") as archive:
        info = tarfile.TarInfo("x")
        info.size = 5000
        archive.addfile(info, io.BytesIO(bytes(range(250)) * 20))
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"damaged" * 100, whole[:20] + bytes(100)):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="the archive: ") as caught:
            open_store(f"tar://::file://{path}", StoreConfig())
        assert not isinstance(caught.value, StoreUnavailable)


def test_links_of_a_tar_file(opening, tmp_path, config):
    """A hard link is the file before it; no other link is followed, least of all one to itself."""
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("x")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
        for name, kind, target in (
            ("hard", tarfile.LNKTYPE, "x"),
            ("self", tarfile.SYMTYPE, "self"),
            ("out", tarfile.SYMTYPE, "/etc/passwd"),
            ("none", tarfile.LNKTYPE, "y"),
        ):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            archive.addfile(link)
    store = opening(f"tar://::file://{tmp_path}/a.tar", config)
    assert store.get("hard", limit=10).data == b"abc"
    for name in ("self", "out", "none"):
        with pytest.raises(StoreError, match="link"):
            store.get(name, limit=10)


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip"])
def test_members_that_are_read_at_the_same_time(tmp_path, config, ending):
    """All threads share one file and its position."""
    members = {f"{n}": np.full(50_000, n, "u1").tobytes() for n in range(16)}
    path = tmp_path / f"a.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz" if ending == "tar.gz" else "w") as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    protocol = "zip" if ending == "zip" else "tar"
    store = open_store(f"{protocol}://::file://{path}", config)
    wrong = []

    def read(first: int) -> None:
        for at in range(40):
            name = f"{(first + at * 5) % 16}"
            if bytes(store.get(name, limit=1 << 20).data) != members[name]:
                wrong.append(name)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(read, range(6)))
    store.close()
    assert wrong == []


ELSEWHERE = {
    "libarchive": ("libarchive://::file://{}", {}, "only zip and tar archives"),
    "libarchive in short": ("libarchive::{}", {}, "only zip and tar archives"),
    "cached": ("simplecache::zip://a::file://{}", {}, "must be the first link"),
    "in a zip file": ("zip://::zip://a::file://{}", {}, "must be the first link"),
    "in a tar file": ("tar://::zip://a::file://{}", {}, "must be the first link"),
    "references in it": ("reference::zip://a::file://{}", {}, "must be the first link"),
    "references by an option": (
        "reference://", {"fo": "zip://a::file://{}"}, "must be the first link"
    ),
    "references by its protocol": (
        "reference://", {"fo": "a", "target_protocol": "zip"}, "must be the first link"
    ),
    "its file by an option": ("zip://", {"fo": "zip://a::file://{}"}, "must be the first link"),
}  # fmt: skip


@pytest.fixture(scope="module")
def bomb(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bomb") / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a", bytes(64 << 20))
    return path


@pytest.mark.parametrize("where", ELSEWHERE)
def test_archives_that_nothing_would_bound(where, bomb, config):
    """fsspec would decompress the member, of 64 MiB in 300 kB."""
    url, options, words = ELSEWHERE[where]
    options = {name: value.format(bomb) for name, value in options.items()}
    with pytest.raises(UsageError, match=words):
        open_store(url.format(bomb), config._replace(storage_options=options))
