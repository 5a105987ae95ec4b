"""WAVE sound: one axis of samples, or frames of channels, and a rate in the attributes.

https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html
"""

from __future__ import annotations

import struct
from functools import partial

from zarrfs.views.facts.text import number
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan

_FLOAT = 3
_RATES = ("sample_rate", "sampling_rate", "samplerate", "sampling_frequency", "fs")
_MOST_CHANNELS = 64
_LARGEST = 2**32 - 1


def wav(array: Described) -> Plan:
    """Samples of at most 4 GiB, little-endian."""
    kind = int(array.check("WAVE", 1, 2))
    channels = array.shape[1] if len(array.shape) == 2 else 1
    if channels > _MOST_CHANNELS:
        raise Inexpressible(f"WAVE takes at most {_MOST_CHANNELS} channels")
    rates = [number(array.attributes.get(name)) for name in _RATES]
    rate = next((round(rate) for rate in rates if rate is not None and 1 <= rate < 2**31), None)
    if rate is None:
        raise Inexpressible("a sound has an attribute sample_rate")
    if array.nbytes > _LARGEST - 100 or rate * channels * array.data_type.item_size > _LARGEST:
        raise Inexpressible("WAVE takes at most 4 GiB")
    return partial(_form, array, kind, channels, rate)


def _form(array: Described, kind: int, channels: int, rate: int) -> Form:
    item = array.data_type.item_size
    frame = channels * item
    about = struct.pack("<HHIIHH", kind, channels, rate, rate * frame, frame, item * 8)
    fact = b""
    if kind == _FLOAT:
        about += b"\0\0"
        fact = b"fact" + struct.pack("<II", 4, array.nbytes // frame)
    padding = array.nbytes % 2
    chunks = b"fmt " + struct.pack("<I", len(about)) + about + fact
    chunks += b"data" + struct.pack("<I", array.nbytes)
    size = 4 + len(chunks) + array.nbytes + padding
    header = b"RIFF" + struct.pack("<I", size) + b"WAVE" + chunks
    return Form(header, array.layout._replace(byteorder="little"), bytes(padding))
