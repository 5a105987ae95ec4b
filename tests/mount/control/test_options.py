"""Mount options: what is understood, and what is said of the rest."""

import math

import pytest

from zarrfs.daemon.options.configs import configs, store_config
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.options.options import MountOptions
from zarrfs.errors import UsageError


def test_defaults():
    assert parse_options([]) == MountOptions()


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("memory=16M", "memory", 16 << 20),
        ("memory=1.5g", "memory", 3 << 29),
        ("memory=2GiB", "memory", 2 << 30),
        ("memory=33554432", "memory", 32 << 20),
        ("byteorder=BIG", "byteorder", "big"),
        ("order=f", "order", "F"),
        ("fill_missing=false", "fill_missing", False),
        ("fill_missing", "fill_missing", True),
        ("rw", "rw", True),
        ("rw,ro", "rw", False),
        ("ro,rw", "rw", True),
        ("store_fill", "store_fill", True),
        ("rw,allow_remove", "allow_remove", True),
        ("hide=npy", "hide", ("npy",)),
        ("hide=npy,chunks", "hide", ("chunks", "npy")),
        ("ro,hide=chunks,shards,npy,memory=16M", "hide", ("chunks", "shards", "npy")),
        ("hide=chunks,shards,npy,memory=16M", "memory", 16 << 20),
        (r"hide=chunks\,npy,rw", "hide", ("chunks", "npy")),
        ("hide=", "hide", ()),
        ("flush_delay=0.5", "flush_delay", 0.5),
        ("zarr_format=2", "zarr_format", 2),
        ("path=/images//raw/", "path", "images/raw"),
        (r"path=a\,b,rw", "path", "a,b"),
        ("consolidated=never", "consolidated", "never"),
        ("xattr", "xattr", True),
        ("immutable", "immutable", True),
        ("immutable=no", "immutable", False),
        ("umask=027", "umask", 0o027),
        ("uid=0", "uid", 0),
        ("recheck=never", "recheck", math.inf),
        ("recheck=always", "recheck", 0.0),
        ("recheck=2.5", "recheck", 2.5),
        ("timeout=7", "timeout", 7.0),
        (r"fsname=a\,b", "fsname", "a,b"),
        ("fsname=a=b", "fsname", "a=b"),
        ("log_level=Debug", "log_level", "debug"),
        ("log_file=/x", "log_file", "/x"),
        ("spill=none", "spill", None),
        ("spill=/x/none", "spill", "/x/none"),
        ("order=C,order=F", "order", "F"),
    ],
)
def test_values(text, name, value):
    assert getattr(parse_options([text]), name) == value


def test_several():
    options = parse_options(["order=F,memory=64M", "ro", " immutable ,,"])
    assert (options.order, options.memory, options.immutable) == ("F", 64 << 20, True)


IGNORED = """
ro defaults _netdev nofail noauto user users nouser dev nodev suid nosuid exec noexec noatime
relatime default_permissions x-systemd.automount x-systemd.device-timeout=5 X-mount.mkdir comment=a
"""


@pytest.mark.parametrize("text", IGNORED.split())
def test_ignored(text):
    assert parse_options([text]) == MountOptions()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("zarr_format=4", "option zarr_format: '4' is not one of 1, 2, 3"),
        ("flush_delay=0", "option flush_delay: '0' is not a number of seconds above 0"),
        ("memroy=1G", "unknown option 'memroy'; did you mean memory?"),
        ("xyzzy", "unknown option 'xyzzy'"),
        ("memory", "option memory needs a value: memory=SIZE"),
        ("memory=lots", "option memory: 'lots' is not a size such as 512M or 4G"),
        ("memory=1M", "option memory: '1M' is less than the 16M needed"),
        ("memory=-1G", "option memory: '-1G' is not a size such as 512M or 4G"),
        ("order=X", "option order: 'X' is not one of C, F"),
        ("fill_missing=maybe", "option fill_missing: 'maybe' is neither true nor false"),
        ("umask=9", "option umask: '9' is not an octal mask such as 027"),
        ("uid=-1", "option uid: '-1' is not a number from 0 up"),
        ("uid=4294967295", "option uid: '4294967295' is not a user or group number"),
        ("loaders=0", "option loaders: '0' is not a number from 1 up"),
        ("timeout=0", "option timeout: '0' is not a number of seconds above 0"),
        ("timeout=nan", "option timeout: 'nan' is not a number of seconds above 0"),
        (
            "recheck=often",
            "option recheck: 'often' is neither a number of seconds nor always nor never",
        ),
        ("log_file=", "option log_file: '' is empty"),
        ("rw,resize,region=0:2", "options resize and region exclude each other"),
        ("region=0:10,:,5,x", "unknown option 'x'"),
        (
            "region=0:10:2",
            "option region: '0:10:2' is not of the form START:STOP or INDEX of each axis: 0:10,:,5",
        ),
        ("consolidated=yes", "option consolidated: 'yes' is not one of auto, never, only"),
        ("rw,consolidated=only", "options rw and consolidated=only exclude each other"),
        ("path=a,assume_metadata=b", "options path and assume_metadata exclude each other"),
        ("path=../a", "option path: '../a' is not a path below the source, such as images/raw"),
        ("rw,immutable", "options rw and immutable exclude each other"),
        (
            "resize",
            "option resize needs rw",
        ),
        ("allow_remove", "option allow_remove needs rw"),
        ("hide=bin", "option hide: 'bin' is not a list of chunks, shards, npy"),
        ("chunks", "unknown option 'chunks'"),
        ("hide=npy,rw,shards", "unknown option 'shards'"),
        (
            "rw,resize,fill_missing=false",
            "options resize and fill_missing=false exclude each other",
        ),
        (
            "allow_other,allow_root",
            "options allow_other and allow_root exclude each other",
        ),
    ],
)
def test_refused(text, says):
    with pytest.raises(UsageError) as caught:
        parse_options([text])
    assert str(caught.value) == says


def test_immutable_means_never_asking_again():
    told = configs(parse_options(["immutable"]), source="a", local=True)
    assert told.filesystem.recheck == math.inf
    assert told.filesystem.attribute_seconds == told.presentation.missing_seconds == 86400
    assert store_config(parse_options(["immutable"]), {}).requests.immutable


def test_deadlines_reach_the_store():
    retry = store_config(parse_options(["timeout=9"]), {}).retry
    assert retry.deadline_s == 9.0


def test_secrets_are_not_shown():
    options = parse_options([])
    assert "hunter2" not in repr(store_config(options, {"secret": "hunter2"}))
    assert "hunter2" not in str(configs(options, source="a", local=False).shown)


def test_remote_sources_are_read_further_ahead():
    options = parse_options([])
    assert configs(options, source="a", local=True).tuning.read_ahead_kb == 1024
    assert configs(options, source="a", local=False).tuning.read_ahead_kb == 4096
