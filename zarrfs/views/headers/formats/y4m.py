"""YUV4MPEG2, uncompressed video of grey images: https://wiki.multimedia.cx/index.php/YUV4MPEG2.

ffmpeg, mplayer and x264 read it. A few bytes precede each image.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from zarrfs.views.facts.text import number
from zarrfs.views.facts.units import seconds
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan
from zarrfs.views.records import Records

_RATES = ("frame_rate", "framerate", "fps", "frames_per_second")
_DEFAULT_RATE = 25.0
_MARK = b"FRAME\n"
_LARGEST_DENOMINATOR = 10**6


def y4m(array: Described) -> Plan:
    """Images of one channel in the order of time; numbers of 16 bits are little-endian."""
    colour = array.check("YUV4MPEG2", 3, 3)
    if array.facts.colours.kind not in ("", "MINISBLACK"):
        raise Inexpressible("its images are grey, and 0 is black")
    rates = [number(array.attributes.get(name)) for name in _RATES]
    if array.axes[0].role != "time" and rates == [None] * len(rates):
        raise Inexpressible("a video has an attribute frame_rate, or a first axis named t")
    return partial(_form, array, colour, _rate(array, rates))


def _rate(array: Described, rates: list[float | None]) -> Fraction:
    """Images per second."""
    time = array.axes[0]
    unit = seconds(time.unit)
    if time.spacing is not None and unit is not None:
        rates = [*rates, 1 / (time.size * unit)]
    found = next((rate for rate in rates if rate is not None and 1e-5 <= rate <= 1e6), None)
    rate = _DEFAULT_RATE if found is None else found
    if rate < 1:
        # The interval is the number that is given, such as an hour.
        return 1 / Fraction(1 / rate).limit_denominator(_LARGEST_DENOMINATOR)
    return Fraction(rate).limit_denominator(_LARGEST_DENOMINATOR)


def _form(array: Described, colour: str, rate: Fraction) -> Form:
    count, height, width = array.shape
    header = (
        f"YUV4MPEG2 W{width} H{height} F{rate.numerator}:{rate.denominator} Ip A1:1 "
        f"C{colour} XCOLORRANGE=FULL\n"
    )
    return Form(
        header.encode("ascii"),
        array.layout._replace(byteorder="little"),
        records=Records(_MARK, array.nbytes // count, count),
    )
