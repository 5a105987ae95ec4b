"""Snapshots of Icechunk repositories as stores."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.store.conftest import SECRET
from zarrfs.errors import (
    NodeNotFound,
    StoreAccessDenied,
    StoreError,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
    UsageError,
    ZarrfsError,
)
from zarrfs.store.base import ANY, ByteRange
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.icechunk import metadata_files
from zarrfs.store.remote.icechunk.links import Link, Version, link_of
from zarrfs.store.wrappers.retry import RetryConfig

icechunk = pytest.importorskip("icechunk", reason="these tests need icechunk")

RNG = np.random.default_rng(1)
DATA = RNG.integers(0, 1 << 30, (40, 30), dtype=np.int32)
LARGE = RNG.integers(0, 256, 3 << 20, dtype=np.uint8)


@dataclass
class Repository:
    """A repository whose snapshot ``first`` is tagged v1, and ``second`` is the tip of main."""

    place: str
    repository: Any
    first: str
    second: str


def fill(storage: Any, place: str) -> Repository:
    icechunk.set_logs_filter("off")
    repository = icechunk.Repository.create(storage)
    session = repository.writable_session("main")
    root = zarr.group(session.store)
    root.create_array("deep/a", data=DATA, chunks=(10, 10))
    root.create_array("large", data=LARGE, chunks=LARGE.shape, compressors=None)
    root.create_array("point", data=np.float64(3), chunks=())
    first = session.commit("first")
    repository.create_tag("v1", first)
    session = repository.writable_session("main")
    zarr.open_group(session.store)["deep/a"][:5] = -1
    second = session.commit("second")
    repository.create_branch("feature.x-y", first)
    return Repository(place, repository, first, second)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    path = tmp_path_factory.mktemp("icechunk") / "repository"
    return fill(icechunk.local_filesystem_storage(str(path)), str(path))


@pytest.fixture
def fresh(tmp_path: Path) -> Repository:
    """A repository to damage."""
    path = tmp_path / "repository"
    return fill(icechunk.local_filesystem_storage(str(path)), str(path))


@pytest.fixture
def opened(local: Repository, quick: RetryConfig):
    store = open_store(f"icechunk://{local.place}", StoreConfig(retry=quick))
    yield store
    store.close()


def stored(repository: Repository, snapshot: str, key: str) -> bytes:
    """The object as zarr-python reads it from icechunk."""
    import asyncio

    from zarr.core.buffer import default_buffer_prototype

    store = repository.repository.readonly_session(snapshot_id=snapshot).store
    found = asyncio.run(store.get(key, default_buffer_prototype()))
    return found.to_bytes()


@pytest.mark.parametrize(
    ("source", "link"),
    [
        ("icechunk:///data/repo", Link("/data/repo", None, "")),
        ("icechunk::/data/repo", Link("/data/repo", None, "")),
        ("icechunk://data/repo", Link("data/repo", None, "")),
        ("icechunk::s3://bucket/repo", Link("s3://bucket/repo", None, "")),
        ("icechunk://a/b::s3://bucket/repo", Link("s3://bucket/repo", None, "a/b")),
        (
            "icechunk://@branch.x%2Fy.z/a::s3://bucket/repo",
            Link("s3://bucket/repo", Version("branch", "x/y.z"), "a"),
        ),
        ("icechunk://@tag.v1.2::r", Link("r", Version("tag", "v1.2"), "")),
        ("icechunk://@ABC/a::r", Link("r", Version("snapshot", "ABC"), "a")),
        ("s3://bucket/repo/|icechunk:", Link("s3://bucket/repo/", None, "")),
        (
            "file:///data/repo/|icechunk:@tag.v1/a/b/|zarr3:",
            Link("file:///data/repo/", Version("tag", "v1"), "a/b"),
        ),
        ("/data/cells.zarr", None),
        ("zip://x::s3://bucket/icechunk", None),
    ],
)
def test_sources_that_name_a_snapshot(source: str, link: Link | None):
    assert link_of(source) == link
    if link is not None:
        assert link_of(link.url) == link


@pytest.mark.parametrize(
    "source", ["icechunk://@tag.v1", "icechunk://@::r", "icechunk://@tag.::r", "icechunk://@a.b::r"]
)
def test_malformed_links(source: str):
    with pytest.raises(UsageError, match=r"write (branch|icechunk)"):
        link_of(source)


def test_a_file_of_such_a_name_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("icechunk:a").mkdir()
    Path("repo|icechunk:").mkdir()
    for name in ("icechunk:a", "repo|icechunk:"):
        assert link_of(name) is None
        assert open_store(name, StoreConfig()).local_path == str(tmp_path / name)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        (None, "second"),
        (Version("branch", "main"), "second"),
        (Version("branch", "feature.x-y"), "first"),
        (Version("tag", "v1"), "first"),
    ],
)
def test_versions(local: Repository, version: Version | None, kind: str):
    config = StoreConfig(version=version)
    snapshot = getattr(local, kind)
    url = f"icechunk://@{snapshot}::{local.place}"
    for source, chosen in (
        (f"icechunk://{local.place}", config),
        (Link(local.place, version, "").url, StoreConfig()),
        (url, StoreConfig()),
    ):
        store = open_store(source, chosen)
        assert store.url == url
        key = "deep/a/c/0/0"
        assert bytes(store.get(key, limit=10**6).data) == stored(local, snapshot, key)
        store.close()


def test_objects_are_those_that_icechunk_has(local: Repository, opened):
    keys = ["zarr.json", "deep/zarr.json", "deep/a/zarr.json", "deep/a/c/3/2", "large/c/0"]
    for key in [*keys, "point/c"]:
        expected = stored(local, local.second, key)
        blob = opened.get(key, limit=len(expected))
        assert bytes(blob.data) == expected
        assert blob.info == opened.info(key)
        assert blob.info.size == len(expected)
    many = opened.get_many([*keys, "deep/a/c/9/9", keys[0]], limit=10**8)
    sizes = [blob and len(blob.data) for blob in many]
    assert sizes == [len(stored(local, local.second, key)) for key in keys] + [None, sizes[0]]


def test_ranges(opened):
    data, n = LARGE.tobytes(), LARGE.size
    expected = {
        ByteRange(0, n): data,
        ByteRange(n - 1, 1): data[-1:],
        ByteRange(n - 5, 100): data[-5:],
        ByteRange(n, 5): b"",
        ByteRange(3, 0): b"",
        ByteRange(-7, 3): data[-7:-4],
        ByteRange(-n - 10, 15): data[:5],
    }
    for wanted, part in expected.items():
        (blob,) = opened.get_ranges("large/c/0", [wanted])
        assert (bytes(blob.data), blob.info.size) == (part, n)
    blobs = opened.get_ranges("large/c/0", list(expected))
    assert [bytes(blob.data) for blob in blobs] == list(expected.values())
    assert opened.get_ranges("large/c/0", []) == []


def test_an_object_above_the_limit_is_refused(opened):
    with pytest.raises(StoreError, match="more than the 100 allowed"):
        opened.get("large/c/0", limit=100)


def test_listings_tell_objects_from_directories(opened):
    assert sorted(opened.list_dir("")) == ["deep/", "large/", "point/", "zarr.json"]
    assert sorted(opened.list_dir("deep/a")) == ["c/", "zarr.json"]
    assert sorted(opened.list_dir("deep/a/c")) == ["0/", "1/", "2/", "3/"]
    assert sorted(opened.list_dir("deep/a/c/1")) == ["0", "1", "2"]
    assert sorted(opened.list_dir("point")) == ["c", "zarr.json"]
    for nothing in ("none", "deep/a/c/1/1", "deep/a/c/8"):
        assert list(opened.list_dir(nothing)) == []


def test_a_path_in_the_snapshot(opening, local: Repository):
    store = opening(f"icechunk://deep/a::{local.place}", StoreConfig())
    assert store.info("zarr.json") is not None
    assert store.info("c/0/0") is not None
    assert store.info("deep/a/zarr.json") is None


def test_a_commit_changes_nothing(opening, fresh: Repository, opened, quick: RetryConfig):
    store = opening(f"icechunk://{fresh.place}", StoreConfig(retry=quick))
    before = bytes(store.get("deep/a/c/0/0", limit=10**6).data)
    session = fresh.repository.writable_session("main")
    zarr.open_group(session.store)["deep/a"][:] = 0
    session.commit("third")
    assert bytes(store.get("deep/a/c/0/0", limit=10**6).data) == before
    # A chunk that was not read before the commit.
    later = stored(fresh, fresh.second, "deep/a/c/3/2")
    assert bytes(store.get("deep/a/c/3/2", limit=10**6).data) == later


def test_nothing_can_be_written(opened):
    assert opened.read_only == "a snapshot never changes"
    assert opened.traits.immutable
    with pytest.raises(StoreReadOnly):
        opened.put("zarr.json", [b"{}"], expected=ANY)
    with pytest.raises(StoreReadOnly):
        opened.delete("zarr.json", expected=ANY)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (Version("branch", "man"), "no branch 'man'; its branches are: feature.x-y, main"),
        (Version("tag", "v2"), "no tag 'v2'; its tags are: v1"),
        (Version("snapshot", "1CECHNKREP0F1RSTCMTX"), "no snapshot '1CECHNKREP0F1RSTCMTX'"),
        (Version("snapshot", "man"), "no snapshot 'man'"),
    ],
)
def test_a_mistyped_version(local: Repository, version: Version, text: str):
    with pytest.raises(NodeNotFound, match=r"icechunk://@.*it has") as caught:
        open_store(f"icechunk://{local.place}", StoreConfig(version=version))
    assert str(caught.value).endswith(text)


def test_no_repository(tmp_path: Path):
    with pytest.raises(NodeNotFound, match="no Icechunk repository"):
        open_store(f"icechunk://{tmp_path}", StoreConfig())
    with pytest.raises(NodeNotFound, match="no directory"):
        open_store(f"icechunk://{tmp_path}/none", StoreConfig())
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(NodeNotFound, match="no directory"):
        open_store(f"icechunk://{tmp_path}/file", StoreConfig())
    assert sorted(os.listdir(tmp_path)) == ["file"]


def test_options_that_do_not_fit(local: Repository, tmp_path: Path):
    version = Version("tag", "v1")
    with pytest.raises(UsageError, match="already says which version"):
        open_store(f"icechunk://@tag.v1::{local.place}", StoreConfig(version=version))
    with pytest.raises(UsageError, match="not an Icechunk repository"):
        open_store(str(tmp_path), StoreConfig(version=version))
    with pytest.raises(UsageError, match="no storage options"):
        open_store(f"icechunk://{local.place}", StoreConfig(storage_options={"key": SECRET}))
    with pytest.raises(UsageError, match="directories and s3://"):
        open_store("icechunk::https://example.org/repo", StoreConfig())


@pytest.mark.parametrize("part", ["snapshots", "manifests", "chunks", "tip"])
@pytest.mark.parametrize(
    "how",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: RNG.bytes(len(data)),
        lambda data: data[:10] + RNG.bytes(len(data) - 10),
        None,
    ],
    ids=["empty", "half", "other", "other inside", "missing"],
)
def test_a_damaged_repository_is_one_error(
    fresh: Repository, quick: RetryConfig, part: str, how: Callable[[bytes], bytes] | None
):
    place = Path(fresh.place)
    # Where branches are: in the second version of the format all are in one file.
    tips = [*place.glob("refs/branch.main/*"), *place.glob("repo")]
    for file in tips if part == "tip" else list((place / part).iterdir()):
        if how is None:
            file.unlink()
        else:
            file.write_bytes(how(file.read_bytes()))
    answers = [_answer(lambda: open_store(f"icechunk://{fresh.place}", StoreConfig(retry=quick)))]
    if not isinstance(answers[0], ZarrfsError):
        store = answers.pop()
        answers.append(_answer(lambda: store.get("large/c/0", limit=LARGE.size)))
        answers.append(_answer(lambda: list(store.list_dir("deep/a/c"))))
        store.close()
    errors = [answer for answer in answers if isinstance(answer, ZarrfsError)]
    assert not any("\n" in str(error) for error in errors)
    if part == "chunks" and how is not None:
        # Icechunk has no checksums of chunks, only their sizes; the codecs of an array may have.
        return
    assert errors
    # A chunk that cannot be read must not seem to be missing, which reads as the fill value.
    assert None not in answers


def _answer(ask: Callable[[], Any]) -> Any:
    """What it returns, or its error."""
    try:
        return ask()
    except ZarrfsError as error:
        return error


def _bomb(file: Path, blocks: int = 1 << 15) -> None:
    """Have a file of a repository decode to 128 KiB for each block of 4 bytes."""
    block = (128 << 10 << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    file.write_bytes(file.read_bytes()[:39] + bytes.fromhex("28b52ffd0058") + block * blocks)


def test_a_manifest_that_decodes_to_much_more_is_refused(
    opening, fresh: Repository, quick: RetryConfig
):
    for manifest in (Path(fresh.place) / "manifests").iterdir():
        _bomb(manifest)
    store = opening(f"icechunk://{fresh.place}", StoreConfig(retry=quick))
    assert list(store.list_dir("deep")) == ["zarr.json", "a/"]
    assert store.info("large/zarr.json").size
    for _ in range(2):
        with pytest.raises(StoreError, match="bytes of memory that are allowed"):
            store.get("large/c/0", limit=LARGE.size)
    with pytest.raises(StoreError, match="bytes of memory that are allowed"):
        list(store.list_dir("deep/a/c"))


@pytest.mark.parametrize("form", [dict, str])
def test_forms_of_the_description_of_a_snapshot(
    opening, local: Repository, quick: RetryConfig, monkeypatch: pytest.MonkeyPatch, form: type
):
    """It is JSON before icechunk 2, and parsed since then; the argument ``pretty`` is gone."""
    inspect = icechunk.Repository.inspect_snapshot_async

    async def other(self, snapshot_id):
        found = await inspect(self, snapshot_id)
        found = json.loads(found) if isinstance(found, str) else found
        return found if form is dict else json.dumps(found)

    monkeypatch.setattr(icechunk.Repository, "inspect_snapshot_async", other)
    store = opening(f"icechunk://{local.place}", StoreConfig(retry=quick))
    key = "deep/a/c/1/1"
    assert store.get(key, limit=LARGE.size).data == stored(local, local.second, key)


def test_a_snapshot_that_decodes_to_much_more_is_refused(fresh: Repository, quick: RetryConfig):
    _bomb(Path(fresh.place) / "snapshots" / fresh.second)
    with pytest.raises(StoreError, match="bytes of memory that are allowed"):
        open_store(f"icechunk://{fresh.place}", StoreConfig(retry=quick))
    open_store(f"icechunk://@tag.v1::{fresh.place}", StoreConfig(retry=quick)).close()


@pytest.mark.parametrize("name", ["config.yaml", "refs/branch.main/ref.json"])
def test_a_small_file_that_is_large_is_refused(fresh: Repository, quick: RetryConfig, name: str):
    place = Path(fresh.place) / name
    if not place.parent.is_dir():
        pytest.skip("a version of the format without this file")
    place.write_bytes(b" " * (2 << 20))
    with pytest.raises(StoreError, match=f"{name} has 2097152 bytes"):
        open_store(f"icechunk://{fresh.place}", StoreConfig(retry=quick))


def test_all_manifests_together_are_bounded(
    opening, local: Repository, quick: RetryConfig, monkeypatch: pytest.MonkeyPatch
):
    """Each of these takes as much as one block of its compression can hold."""
    monkeypatch.setattr(metadata_files, "LARGEST_MANIFESTS", 200 << 10)
    store = opening(f"icechunk://{local.place}", StoreConfig(retry=quick))
    assert store.info("large/c/0").size == LARGE.size
    with pytest.raises(StoreError, match="bytes of memory that are allowed"):
        store.info("deep/a/c/0/0")
    assert store.info("large/c/0").size == LARGE.size


def test_links_that_lead_out_are_refused(fresh: Repository, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"not to be read")
    chunks = Path(fresh.place) / "chunks"
    (chunks / "inside").symlink_to(next(chunks.iterdir()))
    open_store(f"icechunk://{fresh.place}", StoreConfig()).close()
    (chunks / "outside").symlink_to(secret)
    with pytest.raises(StoreAccessDenied, match="leads out of the source"):
        open_store(f"icechunk://{fresh.place}", StoreConfig())
    open_store(f"icechunk://{fresh.place}", StoreConfig(follow_symlinks=True)).close()


def test_a_pipe_does_not_hang(fresh: Repository):
    os.mkfifo(Path(fresh.place) / "chunks" / "pipe")
    with pytest.raises(StoreAccessDenied, match="neither file nor directory"):
        open_store(f"icechunk://{fresh.place}", StoreConfig())
    for snapshot in list((Path(fresh.place) / "snapshots").iterdir()):
        snapshot.unlink()
        os.mkfifo(snapshot)
    with pytest.raises(StoreError, match="not a regular file"):
        open_store(f"icechunk://{fresh.place}", StoreConfig(follow_symlinks=True))


def test_virtual_chunks_are_refused(opening, tmp_path: Path, quick: RetryConfig):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(bytes(100))
    prefix = f"file://{outside}/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(str(outside)))
    )
    place = tmp_path / "repository"
    repository = icechunk.Repository.create(
        icechunk.local_filesystem_storage(str(place)),
        config,
        authorize_virtual_chunk_access={
            # None in its first version.
            prefix: getattr(icechunk.credentials, "LocalFileSystemAccess", None)
        },
    )
    repository.save_config()
    session = repository.writable_session("main")
    zarr.create_array(
        session.store, name="a", shape=(200,), chunks=(100,), dtype="u1", filters=None
    )
    session.store.set_virtual_ref("a/c/0", f"{prefix}file", offset=0, length=100)
    session.commit("virtual")
    store = opening(f"icechunk://{place}", StoreConfig(retry=quick))
    assert store.info("a/c/0").size == 100
    with pytest.raises(StoreError, match=r"a/c/0: .*virtual"):
        store.get("a/c/0", limit=1000)


def _s3(endpoint: str, bucket: str) -> Any:
    return icechunk.s3_storage(
        bucket=bucket,
        prefix="some/repository",
        region="us-east-1",
        endpoint_url=endpoint,
        allow_http=True,
        force_path_style=True,
        access_key_id="someone",
        secret_access_key=SECRET,
    )


def test_a_bucket(s3_endpoint, s3_bucket, s3_options, quick, monkeypatch):
    name, client = s3_bucket
    repository = fill(_s3(s3_endpoint, name), f"s3://{name}/some/repository")
    source = f"icechunk://@tag.v1::{repository.place}"
    url = f"icechunk://@{repository.first}::{repository.place}"
    for options in (s3_options, {"s3": s3_options}):
        store = open_store(source, StoreConfig(storage_options=options, retry=quick))
        assert store.url == url
        assert bytes(store.get("large/c/0", limit=10**8).data) == LARGE.tobytes()
        assert SECRET not in repr(store.url)
        store.close()
    # Credentials that s3fs finds by itself.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    store = open_store(source, StoreConfig(retry=quick))
    assert bytes(store.get("large/c/0", limit=10**8).data) == LARGE.tobytes()
    # An object that is gone is an error, not a missing chunk.
    for entry in client.list_objects_v2(Bucket=name, Prefix="some/repository/chunks/")["Contents"]:
        client.delete_object(Bucket=name, Key=entry["Key"])
    with pytest.raises(StoreError, match="large/c/0"):
        store.get("large/c/0", limit=10**8)
    store.close()


def test_a_bucket_that_cannot_be_reached(s3_options, quick):
    options = {**s3_options, "endpoint_url": "http://127.0.0.1:1"}
    brief = quick._replace(deadline_s=1.5)
    with pytest.raises((StoreUnavailable, StoreTimeout)) as caught:
        open_store("icechunk::s3://bucket/repo", StoreConfig(storage_options=options, retry=brief))
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
