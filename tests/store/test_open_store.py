"""Which store a source is, and what is said where it is none."""

import sys
import zipfile
from contextlib import closing

import fsspec
import pytest

from tests.conftest import run_python
from zarrfs.errors import NodeNotFound, UsageError
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.redact import Redactor, shown_url


@pytest.mark.parametrize("form", ["{}", "file://{}", "local://{}", "FILE://{}", "{}/"])
def test_a_directory_is_a_local_store(opening, tmp_path, form):
    store = opening(form.format(tmp_path), StoreConfig())
    assert isinstance(store, LocalStore)
    assert store.local_path == str(tmp_path)
    assert store.url == f"file://{tmp_path}"
    assert store.traits.near


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zip::x").mkdir()
    (tmp_path / "a::b").mkdir()
    for name in (".", "zip::x", "a::b"):
        store = open_store(name, StoreConfig())
        assert isinstance(store, LocalStore)
        store.close()


def test_a_directory_may_be_called_zip(opening, tmp_path):
    (tmp_path / "x.zip").mkdir()
    store = opening(str(tmp_path / "x.zip"), StoreConfig())
    assert isinstance(store, LocalStore)


@pytest.mark.parametrize("name", ["X.ZIP", "a b.zip"])
def test_a_zip_file_is_opened(tmp_path, name):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("x", b"abc")
    for form in ("{}", "file://{}"):
        store = open_store(form.format(tmp_path / name), StoreConfig())
        assert store.get("x", limit=3).data == b"abc"
        assert store.local_path is None
        store.close()


def test_what_is_not_there(tmp_path):
    (tmp_path / "file").touch()
    for source in (tmp_path / "none", tmp_path / "file", tmp_path / "none.zip"):
        with pytest.raises(NodeNotFound, match=source.name):
            open_store(str(source), StoreConfig())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "names no store"),
        ("a\0b", "names no store"),
        ("nonsense://host/x", "unknown protocol 'nonsense'"),
        ("s3:///x", "names no bucket"),
        ("http://", "names no host"),
        ("https:///path", "names no host"),
        ("zip://x", "names no archive"),
        ("tar://", "names no archive"),
    ],
)
def test_a_malformed_source(source, message):
    with pytest.raises(UsageError, match=message):
        open_store(source, StoreConfig())


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("s3://bucket/x", r"pip install '\.\[s3\]'"),
        ("gs://bucket/x", r"pip install '\.\[gcs\]'"),
        ("az://container/x", r"pip install '\.\[azure\]'"),
        ("https://host/x", r"pip install '\.\[http\]'"),
        ("zip://::s3://bucket/x.zip", r"pip install '\.\[s3\]'"),
        ("sftp://host/x", "paramiko"),
    ],
)
def test_a_missing_package_is_told(monkeypatch, url, advice):
    known = fsspec.get_filesystem_class

    def without_packages(protocol: str) -> object:
        if protocol in ("file", "zip"):
            return known(protocol)
        raise ImportError("not here")

    for module in ("fsspec", "fsspec.core", "fsspec.registry"):
        monkeypatch.setattr(sys.modules[module], "get_filesystem_class", without_packages)
    with pytest.raises(UsageError, match=advice):
        open_store(url, StoreConfig())


def test_a_local_store_does_not_import_fsspec(tmp_path):
    code = (
        "import sys; from zarrfs.store.open import *; "
        f"open_store({str(tmp_path)!r}, StoreConfig()); print('fsspec' in sys.modules)"
    )
    done = run_python("-c", code, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/x", "s3://bucket/x"),
        ("https://me:pw@host/x?sig=1#f", "https://host/x"),
        ("https://me@host/x", "https://host/x"),
        ("zip://a::https://me:p@w@host/x.zip?t=1", "zip://a::https://host/x.zip"),
        ("simplecache::https://me:pw@host/x", "simplecache::https://host/x"),
        ("sftp://me:p%2Fw@host:22/x", "sftp://host:22/x"),
    ],
)
def test_a_shown_url_has_no_credentials(url, shown):
    assert shown_url(url) == shown


def test_texts_are_redacted():
    redact = Redactor({"secret": "s3cr3t", "more": {"header": ["Bearer abc"]}, "n": 5, "x": "ab"})
    text = "s3cr3t at https://me:pw@host/x?sig=s3cr3t', or\nBearer abc; ab"
    assert redact(text) == "*** at https://host/x', or ***; ab"


class TestOneFolderInAnArchive:
    """As many archives are made: of a directory, not of what is in it."""

    def archive(self, tmp_path, *names):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as file:
            for name in names:
                file.writestr(name, name)
        return path

    @pytest.mark.parametrize("source", ["{}", "zip://::file://{}", "zip::file://{}"])
    def test_is_the_store(self, tmp_path, source):
        path = self.archive(tmp_path, "b.zarr/zarr.json", "b.zarr/c/0")
        with closing(open_store(source.format(path), StoreConfig())) as store:
            assert bytes(store.get("zarr.json", limit=99).data) == b"b.zarr/zarr.json"
            assert sorted(store.list_dir("")) == ["c/", "zarr.json"]
            assert "b.zarr" in store.url

    def test_in_another_folder(self, tmp_path):
        path = self.archive(tmp_path, "x/y/.zarray", "x/y/0", "__MACOSX/x/._y")
        with closing(open_store(str(path), StoreConfig())) as store:
            assert sorted(store.list_dir("")) == [".zarray", "0"]

    @pytest.mark.parametrize("names", [
        (".zgroup", "a/.zarray"), ("a/.zarray", "b/.zarray"), ("zarr.json", "a/zarr.json"),
        (".zarray", "0/0"), (),
    ])  # fmt: skip
    def test_what_has_more_at_the_top_is_served_as_it_is(self, tmp_path, names):
        with closing(open_store(str(self.archive(tmp_path, *names)), StoreConfig())) as store:
            found = {name.partition("/")[0] for name in names}
            assert {name.rstrip("/") for name in store.list_dir("")} == found

    def test_a_path_in_the_archive_is_taken_at_its_word(self, tmp_path):
        path = self.archive(tmp_path, "x/y/z/0")
        with closing(open_store(f"zip://x::file://{path}", StoreConfig())) as store:
            assert list(store.list_dir("")) == ["y/"]


def test_a_package_opens_urls_of_its_scheme(tmp_path, monkeypatch):
    """As its entry point says, with the settings of this source."""
    (tmp_path / "acme_store.py").write_text(
        "from zarrfs.store.local.local import LocalStore\n"
        "def opened(url, config):\n"
        "    return LocalStore(config.storage_options['root'] + url.removeprefix('acme:/'))\n"
    )
    info = tmp_path / "acme_store-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-store\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[zarrfs.stores]\nacme = acme_store:opened\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"abc")
    monkeypatch.syspath_prepend(tmp_path)
    with closing(open_store("acme://data", StoreConfig({"root": str(tmp_path)}))) as store:
        assert store.get("a", limit=9).data == b"abc"
    with pytest.raises(UsageError, match="protocol"):
        open_store("other://data", StoreConfig())
