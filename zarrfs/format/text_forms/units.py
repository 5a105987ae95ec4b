"""Units of axes: a factor and a base unit, as TensorStore writes them.

https://google.github.io/tensorstore/schema.html#json-Unit
"""

from __future__ import annotations

import math
import re

_UNIT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)?\s*(.*)", re.ASCII)


def read_unit(text: str) -> str:
    """``4nm`` and ``4 nm`` as ``4 nm``, ``1nm`` as ``nm``. Raises ValueError."""
    match = _UNIT.fullmatch(" ".join(text.split()))
    assert match is not None
    factor = 1.0 if match[1] is None else float(match[1])
    if not 0 < factor < math.inf:
        raise ValueError(f"{text!r} is not a unit: its factor must be above 0")
    if factor == 1 and match[2]:
        return match[2]
    return f"{factor:g} {match[2]}".rstrip()
