"""Private names of other packages that are listed are there, and each can be missing."""

import importlib
import zlib
from pathlib import Path

import fsspec
import pyfuse3
import pytest

from zarrfs import foreign
from zarrfs.foreign import PRIVATE, Private
from zarrfs.format.codec import ChunkSpec, SizeBound
from zarrfs.format.codecs import native
from zarrfs.format.codecs.gzip import DeflateCodec
from zarrfs.format.codecs.zfp import ZfpCodec
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.unserved import UnservedError
from zarrfs.store.remote.http_service import HttpService
from zarrfs.store.remote.plain_reader import PlainReader
from zarrfs.store.remote.readers import locate
from zarrfs.store.remote.requests import RequestConfig


@pytest.mark.parametrize("private", PRIVATE, ids=lambda private: f"{private.module}:{private.path}")
def test_it_is_there_in_the_version_that_is_tested(private):
    assert private.there


def test_names_that_are_no_attributes_are_there_in_the_version_that_is_tested():
    # The text of a log record of replies to programs that are gone; functions of the library.
    assert b"fuse_reply" in Path(pyfuse3.__file__).read_bytes()
    deflate = importlib.import_module(foreign.DEFLATE_LIBRARY.module)
    assert b"libdeflate_gzip_decompress_ex" in Path(str(deflate.__file__)).read_bytes()
    # To close connections when the store is closed.
    http = importlib.import_module("fsspec.implementations.http")
    assert "_session" in http.HTTPFileSystem.__init__.__code__.co_names


def test_a_name_that_is_not_there():
    def there(module: str, path: str) -> bool:
        return Private(module, path).there

    assert there("fsspec", "AbstractFileSystem.cat_file")
    assert not there("fsspec", "AbstractFileSystem._no_such_method")
    assert not there("no_such_package", "name")


def test_without_it_streams_without_a_header_are_not_served(missing):
    spec = ChunkSpec((4, 4), CORE_DATA_TYPES["float32"], bytes(4))
    codecs = [ZfpCodec("reversible", None, has_header) for has_header in (True, False)]
    for codec in codecs:
        codec.bind(spec)
    missing(foreign.ZFPY_DECOMPRESS)
    codecs[0].bind(spec)
    with pytest.raises(UnservedError, match="header"):
        codecs[1].bind(spec)


@pytest.fixture
def missing(monkeypatch):
    """``missing(private)``: as if the installed package did not have it."""
    gone: set[Private] = set()
    there = foreign._is_there
    monkeypatch.setattr(foreign, "_is_there", lambda one: one not in gone and there(one))
    return gone.add


def located(options: dict[str, object]):
    return locate("s3://bucket/a", options, RequestConfig())


@pytest.mark.parametrize("private", [foreign.S3FS_CALL, foreign.S3FS_ARGUMENTS])
def test_without_it_s3_is_read_as_any_other_file_system(missing, private):
    options = {"anon": True, "skip_instance_cache": True}
    assert not isinstance(located(options).reader, PlainReader)
    missing(private)
    location = located(options)
    assert isinstance(location.reader, PlainReader)
    assert "s3fs" in location.writer


def test_without_it_ranges_are_fetched_one_after_the_other(missing, tmp_path):
    from zarrfs.store.base import ByteRange

    class Asynchronous(fsspec.get_filesystem_class("file")):
        """As a file system of another package that has no ``_cat_file`` any more."""

        async_impl = True

    (tmp_path / "x").write_bytes(bytes(range(100)))
    reader = PlainReader(Asynchronous(skip_instance_cache=True), RequestConfig())
    missing(foreign.FSSPEC_CAT_FILE)
    ranges = [ByteRange(10, 5), ByteRange(90, 5)]
    info = reader.info(str(tmp_path / "x"))
    assert info is not None
    blobs = reader.get_ranges(str(tmp_path / "x"), ranges)
    assert [bytes(blob.data) for blob in blobs] == [bytes(range(10, 15)), bytes(range(90, 95))]


def test_without_a_session_there_is_nothing_to_close():
    class NoSession:
        loop = None

    HttpService(NoSession(), RequestConfig()).close()


@pytest.mark.parametrize("error", [ImportError, OSError, AttributeError])
def test_without_its_library_deflate_decodes_itself(monkeypatch, error):
    def nothing(_: str):
        raise error

    data = bytes(1000)
    codec = DeflateCodec("gzip").bind(SizeBound(len(data), exact=True))
    encoded = zlib.compress(data, wbits=31)
    native.libdeflate.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(importlib, "import_module", nothing)
        assert native.libdeflate() is None
        assert bytes(codec.decode(encoded, None)) == data
    native.libdeflate.cache_clear()
    assert native.libdeflate() is not None
