"""What is refused, with the reason that zarrfs gives."""

from __future__ import annotations

from collections.abc import Mapping

from zarrfs.errors import ZarrfsError
from zarrfs.format.registry import REFUSED_CODECS

from .samples import LITTLE, Json, Sample, parse, v2, v3


def reasons() -> Mapping[str, str]:
    """By what is refused. Raises AssertionError for something that is not."""
    return {name: _reason(sample) for name, sample in _samples().items()}


def _reason(sample: Sample) -> str:
    try:
        parse(sample.version, sample.text)
    except ZarrfsError as error:
        return str(error)
    raise AssertionError(f"zarrfs does not refuse {sample.text}")


def _samples() -> Mapping[str, Sample]:
    gzip: Json = {"name": "gzip", "configuration": {"level": 1}}
    sharding: Json = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [2, 3],
            "codecs": [LITTLE],
            "index_codecs": [LITTLE, gzip],
        },
    }
    expert = {"mode": "expert", "minbits": 1, "maxbits": 13, "maxprec": 19, "minexp": -2}
    zfp: Json = {"name": "zfp", "configuration": expert}
    field: Json = {"name": "a", "data_type": "string"}
    text: Json = {"name": "struct", "configuration": {"fields": [field]}}
    return {
        **{f"the codec `{name}`": Sample(3, _with_codec(name)) for name in REFUSED_CODECS},
        "a data type that nobody has registered": Sample(3, v3("novelty")),
        "a codec that nobody has registered": Sample(3, _with_codec("novelty")),
        "a chunk grid of another name": Sample(3, v3(chunk_grid={"name": "novelty"})),
        "a chunk key encoding of another name": Sample(3, v3(chunk_key_encoding="novelty")),
        "a storage transformer: none is defined": Sample(
            3, v3(storage_transformers=[{"name": "novelty"}])
        ),
        'an unknown member without `"must_understand": false`': Sample(3, v3(novelty=1)),
        "a shard index whose size depends on its content": Sample(3, v3(codecs=[sharding])),
        "zfp's expert mode": Sample(3, v3("float32", codecs=[zfp])),
        "a struct with a field of no fixed size": Sample(3, v3(text, fill_value={"a": ""})),
        "v2: objects that no codec stores": Sample(2, v2("|O", fill_value=None)),
        "v2: elements without bytes": Sample(2, v2("|S0", fill_value=None)),
        "an array that is larger than a file can be": Sample(3, v3(shape=[2**61, 2])),
        "more axes than numpy has": Sample(2, v2(shape=[1] * 33, chunks=[1] * 33)),
    }


def _with_codec(name: str) -> Json:
    return v3(codecs=[LITTLE, {"name": name, "configuration": {}}])
