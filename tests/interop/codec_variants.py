"""Variants of the members of codecs: for each valid one, others that may mean the same."""

from typing import Any

from docs.format_support.samples import LITTLE, Json

ABSENT: Any = object()
"""A member that is not there."""

_GZIP: Json = {"name": "gzip", "configuration": {"level": 1}}
_ZSTD: Json = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
_BLOSC: Json = {
    "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0
}  # fmt: skip
_SHARDS: Json = {
    "chunk_shape": [1, 3],
    "codecs": [LITTLE],
    "index_codecs": [LITTLE, {"name": "crc32c"}],
    "index_location": "end",
}
_TRANSPOSE: Json = {"name": "transpose", "configuration": {"order": [1, 0]}}


def _configured(name: str, *configurations: Any) -> list[Json]:
    return [
        {"name": name} if c is ABSENT else {"name": name, "configuration": c}
        for c in configurations
    ]


def _changed(whole: Json, **changes: Any) -> list[Json]:
    """One configuration for each changed value, and one without each member."""
    found = [{k: v for k, v in whole.items() if k != name} for name in whole]
    for name, values in changes.items():
        found += [{**whole, name: value} for value in values]
    return [*found, {**whole, "other": 1}]


BYTES_OF_INT8 = (
    ["bytes"], [{"name": "bytes", "configuration": {}}],
    [{"name": "bytes", "configuration": None}],
    [{"name": "bytes", "configuration": {"endian": None}}],
    [{"name": "bytes", "configuration": {"endian": "little"}}],
    [{"name": "bytes", "configuration": {"endian": "big"}}],
    [{"name": "bytes", "must_understand": True}], [{"name": "bytes", "other": 1}], [], None,
)  # fmt: skip

V3_CODECS: list[tuple[list[Any], list[Any]]] = [
    (
        [LITTLE],
        [
            [c]
            for c in _configured(
                "bytes",
                ABSENT,
                None,
                {},
                {"endian": None},
                {"endian": "Little"},
                {"endian": "LITTLE"},
                {"endian": "<"},
                {"endian": "native"},
                {"endian": "little", "other": 1},
            )
        ]
        + [
            ["bytes"],
            [{**LITTLE, "must_understand": True}],
            [{**LITTLE, "must_understand": False}],
            [{**LITTLE, "other": 1}],
            [{"name": "endian", "configuration": {"endian": "little"}}],
            [],
            LITTLE,
            [[LITTLE]],
            [LITTLE, None],
            [LITTLE, {"name": "novelty", "must_understand": False}],
            [LITTLE, {"name": "novelty", "configuration": {}, "must_understand": False}],
            [{"name": "identity"}, LITTLE],
            [{"name": "null"}, LITTLE],
            [{"id": "bytes", "endian": "little"}],
            [{"name": "bytes", "endian": "little"}],
        ],
    ),
    (
        [LITTLE, _GZIP],
        [
            [LITTLE, c]
            for c in _configured(
                "gzip",
                ABSENT,
                None,
                {},
                {"level": None},
                {"level": 1.0},
                {"level": -1},
                {"level": 10},
                {"level": "1"},
                {"level": True},
                {"level": 0},
                {"level": 1, "other": 1},
                {"level": 1, "id": "gzip"},
            )
        ]
        + [[LITTLE, "gzip"], ["bytes", "gzip"]],
    ),
    (
        [LITTLE, _ZSTD],
        [
            [LITTLE, c]
            for c in _configured(
                "zstd",
                ABSENT,
                None,
                {},
                {"level": 1},
                {"checksum": False},
                {"level": None},
                {"level": 1.0, "checksum": False},
                {"level": 1, "checksum": None},
                {"level": 1, "checksum": 0},
                {"level": 99, "checksum": False},
                {"level": -5, "checksum": True},
                {"level": 1, "checksum": False, "other": 1},
            )
        ]
        + [[LITTLE, "zstd"]],
    ),
    (
        [LITTLE, {"name": "crc32c"}],
        [[LITTLE, c] for c in _configured("crc32c", None, {}, {"other": 1}, {"location": "end"})]
        + [[LITTLE, "crc32c"], [LITTLE, {"name": "crc32c", "must_understand": True}]],
    ),
    (
        [LITTLE, {"name": "blosc", "configuration": _BLOSC}],
        [
            [LITTLE, c]
            for c in _configured(
                "blosc",
                ABSENT,
                None,
                {},
                *_changed(
                    _BLOSC,
                    cname=("LZ4", "zstd", None, "novelty"),
                    clevel=(5.0, "5", None, 10, -1, 0),
                    shuffle=(0, 1, 2, -1, None, "noshuffle", "bitshuffle", "Shuffle", "none"),
                    typesize=(None, 0, 4.0, 1, 256, "4", -1),
                    blocksize=(None, 0.0, -1, 64, "0"),
                    nthreads=(1,),
                    id=("blosc",),
                ),
            )
        ],
    ),
    (
        [_TRANSPOSE, LITTLE],
        [
            [c, LITTLE]
            for c in _configured(
                "transpose",
                {"order": "F"},
                {"order": [1.0, 0.0]},
                {"order": [-1, 0]},
                {"order": ["1", "0"]},
                {"order": [1, 0], "other": 1},
                {"order": None},
                {},
            )
        ],
    ),
    (
        [{"name": "transpose", "configuration": {"order": [0, 1]}}, LITTLE],
        [[c, LITTLE] for c in _configured("transpose", {"order": "C"}, {"order": []})],
    ),
    (
        [{"name": "sharding_indexed", "configuration": _SHARDS}],
        [
            [c]
            for c in _configured(
                "sharding_indexed",
                *_changed(
                    _SHARDS,
                    chunk_shape=([1.0, 3.0], ["1", "3"], [2, 3], [1]),
                    codecs=(["bytes"], [{"name": "bytes"}], None, []),
                    index_codecs=(
                        ["bytes", "crc32c"],
                        [{"name": "bytes"}, {"name": "crc32c"}],
                        [LITTLE, "crc32c"],
                        None,
                        [],
                    ),
                    index_location=(None, "End", "END"),
                ),
            )
        ],
    ),
]

NUMCODECS: dict[str, tuple[str, Json, Json]] = {
    name: (kind, configuration, {"name": f"numcodecs.{name}"})
    for name, (kind, configuration) in {
        "adler32": ("bytes", {}),
        "astype": ("array", {"encode_dtype": "<i8", "decode_dtype": "<i4"}),
        "blosc": ("bytes", {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        "bz2": ("bytes", {"level": 1}),
        "crc32": ("bytes", {}),
        "crc32c": ("bytes", {}),
        "delta": ("array", {"dtype": "<i4", "astype": "<i4"}),
        "fixedscaleoffset": (
            "array", {"offset": 0, "scale": 1, "dtype": "<i4", "astype": "<i4"}
        ),
        "fletcher32": ("bytes", {}),
        "gzip": ("bytes", {"level": 1}),
        "jenkins_lookup3": ("bytes", {"initval": 0, "prefix": None}),
        "lz4": ("bytes", {"acceleration": 1}),
        "lzma": ("bytes", {"format": 1, "check": -1, "preset": None, "filters": None}),
        "shuffle": ("bytes", {"elementsize": 4}),
        "zlib": ("bytes", {"level": 1}),
        "zstd": ("bytes", {"level": 1, "checksum": False}),
    }.items()
}  # fmt: skip

_V2_BLOSC: Json = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
V2_COMPRESSORS: list[tuple[Json, list[Any]]] = [
    (
        {"id": "zlib", "level": 1},
        [
            {"id": "zlib"}, {"id": "zlib", "level": None}, {"id": "zlib", "level": 1.0},
            {"id": "zlib", "level": "1"}, {"id": "zlib", "level": 99}, {"id": "zlib", "level": -1},
            {"id": "zlib", "level": 1, "other": 1}, {"id": "ZLIB", "level": 1}, "zlib",
            [{"id": "zlib", "level": 1}], {"name": "zlib", "level": 1},
            {"id": "zlib", "configuration": {"level": 1}}, {"id": "numcodecs.zlib", "level": 1},
        ],
    ),
    (
        {"id": "gzip", "level": 1},
        [{"id": "gzip"}, {"id": "gzip", "level": None}, {"id": "gzip", "level": 1.0}],
    ),
    ({"id": "bz2", "level": 1}, [{"id": "bz2"}, {"id": "bz2", "level": 1.0}]),
    (
        {"id": "zstd", "level": 1},
        [
            {"id": "zstd"}, {"id": "zstd", "level": 1, "checksum": False},
            {"id": "zstd", "level": 1, "checksum": True}, {"id": "zstd", "level": None},
            {"id": "zstd", "level": 1, "checksum": None}, {"id": "zstd", "level": 1.0},
            {"id": "zstd", "level": 1, "other": 1},
        ],
    ),
    (
        _V2_BLOSC,
        _changed(
            _V2_BLOSC,
            cname=("LZ4", "zstd", None),
            clevel=(5.0, "5", None, 10),
            shuffle=(0, -1, 2, 3, None, True, "shuffle", "noshuffle"),
            blocksize=(None, 0.0, -1),
            typesize=(4, None, 0, 1),
            nthreads=(1,),
        )[1:],
    ),
    (
        {"id": "lz4", "acceleration": 1},
        [{"id": "lz4"}, {"id": "lz4", "acceleration": None}, {"id": "lz4", "acceleration": 0}],
    ),
    (
        {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
        [{"id": "lzma"}, {"id": "lzma", "preset": 1}, {"id": "lzma", "format": 1.0}],
    ),
]  # fmt: skip
V2_FILTERS: list[tuple[Json, list[Any]]] = [
    (
        {"id": "delta", "dtype": "<i4", "astype": "<i4"},
        [
            [{"id": "delta", "dtype": "<i4"}], {"id": "delta", "dtype": "<i4"},
            [{"id": "delta", "dtype": "int32"}], [{"id": "delta", "dtype": "<i4", "astype": None}],
            [{"id": "delta"}],
        ],
    ),
    (
        {"id": "shuffle", "elementsize": 4},
        [[{"id": "shuffle"}], [{"id": "shuffle", "elementsize": 4.0}],
         [{"id": "shuffle", "elementsize": None}]],
    ),
    (
        {"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<i4", "astype": "<i4"},
        [[{"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<i4"}],
         [{"id": "fixedscaleoffset", "offset": 0.0, "scale": 1.0, "dtype": "i4"}]],
    ),
    ({"id": "fletcher32"}, [[{"id": "fletcher32", "other": 1}], [{"id": "fletcher32"}]]),
]  # fmt: skip
