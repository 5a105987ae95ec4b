"""Elements one after another, as a numpy dtype lays them out: what v2 and v1 store.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html

Where `BytesCodec` has one byte order for everything, the fields of a v2 record have
each their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.format.codec import ChunkSpec
from zarrfs.format.codecs.bytes import BoundBytes


@dataclass(frozen=True, slots=True)
class NumpyBytesCodec:
    """``stored`` differs from the type in memory in byte order alone."""

    stored: np.dtype[Any]

    def bind(self, spec: ChunkSpec) -> BoundBytes:
        return BoundBytes.of(spec, self.stored)
