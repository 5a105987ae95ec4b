"""Elements one after another, in the layout of a numpy dtype, as v2 and v1 store them.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html

`BytesCodec` has one byte order for the whole element; each field of a v2 record has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.format.codec import ChunkSpec
from zarrfs.format.codecs.bytes import BoundBytes


@dataclass(frozen=True, slots=True)
class NumpyBytesCodec:
    """``stored`` differs from the type in memory only in byte order."""

    stored: np.dtype[Any]

    def bind(self, spec: ChunkSpec) -> BoundBytes:
        return BoundBytes.of(spec, self.stored)
