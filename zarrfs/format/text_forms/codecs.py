"""Codec chains in short form: ``zstd:3``, ``blosc:lz4,5,shuffle``, ``gzip``, ``crc32c``.

Commas separate both the codecs and the arguments after a codec's colon. A word that the codec
accepts as its next argument is one; any other word is the next codec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zarrfs import bounds

Read = Callable[[str], Any]
"""Raises ValueError for a text that is no such argument."""


def parse_codecs(text: str) -> list[Any]:
    """Names and objects, in encoding order, for completion by `zarrfs.format.codec_chain`.

    text : JSON (one codec, or a list of them), the short form, or ``none``.

    Raises ValueError.
    """
    text = text.strip()
    if text[:1] in ("[", "{", '"'):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ValueError(f"codecs are not JSON: {bounds.why_not_json(text, error)}") from error
        return value if isinstance(value, list) else [value]
    return [] if text in ("", "none") else _short(text)


def _short(text: str) -> list[Any]:
    chain: list[Any] = []
    expected: Sequence[tuple[str, Read]] = ()
    for item in text.split(","):
        word = item.strip()
        if chain and ":" not in word and _argument(chain[-1], expected, word):
            continue
        name, colon, first = word.partition(":")
        if not name:
            raise ValueError(f"codecs {text!r}: a codec has no name")
        chain.append({"name": name})
        expected = _ARGUMENTS.get(name, ()) if colon else ()
        if colon:
            chain[-1]["configuration"] = {}
            if first and not _argument(chain[-1], expected, first):
                raise ValueError(f"codec {name}: {first!r} is none of its arguments")
    return chain


def _argument(codec: dict[str, Any], expected: Sequence[tuple[str, Read]], word: str) -> bool:
    """Add ``word`` to ``codec`` if it is the codec's next argument; returns whether it is."""
    if "configuration" not in codec:
        return False
    given = codec["configuration"]
    name, equals, value = word.partition("=")
    if equals:
        given[name.strip()] = _any(value)
        return True
    if codec["name"] == "transpose":
        return _axis(given, word)
    # By position, for the first member that has no value yet.
    for member, read in expected:
        if member in given:
            continue
        try:
            given[member] = read(word)
        except ValueError:
            return False
        return True
    return False


def _axis(given: dict[str, Any], word: str) -> bool:
    if word in ("C", "F") and "order" not in given:
        given["order"] = word
        return True
    if not word.isdigit() or isinstance(given.get("order"), str):
        return False
    given.setdefault("order", []).append(int(word))
    return True


def _any(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _one_of(*words: str) -> Read:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return read


def _flag(text: str) -> bool:
    return bool(_one_of("true", "false")(text) == "true")


_LEVEL = (("level", int),)
_ARGUMENTS: Mapping[str, Sequence[tuple[str, Read]]] = {
    "bytes": (("endian", _one_of("little", "big")),),
    "gzip": _LEVEL,
    "zlib": _LEVEL,
    "bz2": _LEVEL,
    "zstd": (*_LEVEL, ("checksum", _flag)),
    "blosc": (
        ("cname", _one_of("lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy")),
        ("clevel", int),
        ("shuffle", _one_of("noshuffle", "shuffle", "bitshuffle")),
        ("blocksize", int),
        ("typesize", int),
    ),
    "bitround": (("keepbits", int),),
}
"""Arguments by position; every codec takes ``name=value`` too."""
