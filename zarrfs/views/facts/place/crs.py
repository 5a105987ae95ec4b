"""Kinds of coordinate reference systems."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["geographic", "projected"]

# From EPSG's registry, version 11.022: systems of two axes. The numbers alone do not tell the kind.
_GEOGRAPHIC = (
    "3819-3821 3824 3889 3906 4001-4016 4018-4025 4027-4036 4041-4047 4052-4055 4075 4081 "
    "4120-4216 4218-4326 4463 4470 4475 4483 4490 4555 4558 4600-4646 4657-4765 4801-4811 "
    "4813-4821 4823-4824 4901-4904 5013 5132 5228-5233 5246 5252 5264 5324 5340 5354 5360 5365 "
    "5371 5373 5381 5393 5451 5464 5467 5489 5524-5527 5546 5561 5593 5681 5886 6135 6207 6311 "
    "6318 6322 6325 6365 6668 6706 6783 6881-6883 6892 6894 6980 6983 6987 6990 7035 7037 7039 "
    "7041 7073 7084 7086 7088 7133 7136 7139 7373 7683 7686 7798 7844 7881 7886 8042-8043 8086 "
    "8232 8237 8240 8246 8249 8252 8255 8351 8427-8428 8431 8449 8545 8685 8694 8699 8818 8860 "
    "8888 8900 8902 8907 8949 8972-9000 9003 9006 9009 9012 9014 9017 9019 9053-9069 9072 9075 "
    "9140 9148 9153 9184 9248 9251 9253 9294 9299 9309 9333 9364 9372 9380-9384 9403 9453 9470 "
    "9474-9475 9547 9696 9702 9739 9755-9758 9763 9777 9779 9782 9784 9866 9871 9939 9964 9969 "
    "9974 9990 10158 10175 10178 10185 10191 10196 10204 10209 10214 10219 10224 10229 10237 "
    "10249 10252 10256 10260 10265 10268 10272 10277 10284 10299 10305 10307 10310 10312 10328 "
    "10345-10346 10414 10468 10475 10571 10606 10623 10628 10671 10673 20033 20041 20046 "
)
_PROJECTED = (
    "2000-3816 3825-3854 3857-3885 3890-3893 3907-3997 4026 4037-4038 4048-4051 4056-4071 "
    "4082-4096 4217 4390-4439 4455-4457 4462 4467 4471 4474 4484-4489 4491-4554 4559-4589 "
    "4647-4656 4766-4800 4812 4822 4826-4880 5014-5130 5167-5188 5221-5225 5234-5235 5243 5247 "
    "5253-5259 5266-5316 5320-5321 5325-5331 5337 5343-5349 5355-5357 5361-5362 5367 5382-5389 "
    "5396 5456-5463 5466 5469-5482 5490 5513-5523 5530-5539 5550-5552 5559 5562-5589 5596 "
    "5623-5627 5629-5680 5682-5685 5700 5825 5836-5842 5844 5858 5875-5880 5887-5940 6050-6129 "
    "6141 6200-6204 6210-6307 6312-6316 6328-6348 6350-6356 6362 6366-6637 6646 6669-6692 6703 "
    "6707-6738 6784-6870 6875-6880 6884-6887 6915 6922-6925 6931-6933 6956-6966 6984 6991-7007 "
    "7057-7070 7074-7082 7109-7132 7142-7370 7374-7376 7528-7645 7692-7696 7755-7787 7791-7795 "
    "7799-7805 7825-7831 7845-7878 7882-7883 7887 7899 7991-8036 8044-8045 8058-8083 8088 "
    "8090-8226 8311-8348 8352-8353 8379-8395 8433 8441 8455-8540 8677-8682 8686-8687 8692-8693 "
    "8826-8840 8857-8859 8903 8908-8910 8950-8951 9039-9040 9141 9149-9150 9154-9159 9191-9222 "
    "9249-9250 9252 9254 9265 9271-9273 9284-9285 9295-9297 9300 9311 9354-9360 9367 9373 9377 "
    "9387 9391 9404-9407 9456 9473 9476-9498 9549 9674 9678-9680 9697-9699 9709 9712-9713 9716 "
    "9741 9748-9749 9761 9766 9793-9865 9869 9874-9880 9895 9943 9945-9947 9967 9972 9977 10160 "
    "10183 10188 10194 10199 10207 10212 10217 10222 10227 10235 10240 10250 10254 10258 10262 "
    "10266 10270 10275 10280 10285-10291 10306 10314-10317 10329 10448-10465 10471 10477-10481 "
    "10516 10592-10603 10622 10626 10632 10665 10674 10731-11118 20002 20004-20032 20042 "
    "20047-32766 "
)
_CODE = re.compile(r"EPSG:(\d{4,5})", re.ASCII | re.IGNORECASE)
_LAST_CODE = re.compile(
    r"(?:AUTHORITY|ID)\[\s*\"EPSG\"\s*,\s*\"?(\d{4,5})\"?\s*\]\s*\]\s*$", re.ASCII
)

# The first letters of well-known text, and what they say.
_HEADS: Mapping[str, Kind] = {
    "GEOGCS": "geographic", "GEOGCR": "geographic", "PROJCS": "projected", "PROJCR": "projected",
}  # fmt: skip
_PROJJSON: Mapping[str, Kind] = {
    "GeographicCRS": "geographic", "GeodeticCRS": "geographic", "ProjectedCRS": "projected",
}  # fmt: skip


class Epsg(NamedTuple):
    number: int
    kind: Kind


def kind_of(crs: str) -> Kind | None:
    """The kind of a coordinate reference system; None if it is another, or not known."""
    if (said := _HEADS.get(crs[:6].upper())) is not None:
        return said
    found = epsg(crs)
    return None if found is None else found.kind


def epsg(crs: str) -> Epsg | None:
    """The code of a system of two axes, from well-known text, PROJJSON or ``EPSG:4326``."""
    if crs.startswith("{"):
        return _epsg_of_projjson(crs)
    if match := _CODE.fullmatch(crs.strip()):
        number = int(match[1])
        kind = _kind_of_number(number)
        return None if kind is None else Epsg(number, kind)
    if crs.upper() == "OGC:CRS84":
        return Epsg(4326, "geographic")
    # The last code is that of the whole system; earlier codes are those of its parts.
    match = _LAST_CODE.search(crs)
    said = _HEADS.get(crs[:6].upper())
    if match is None or said is None:
        return None
    number = int(match[1])
    kind = _kind_of_number(number)
    # A code of three axes, whose text has the same head, has no kind here.
    return Epsg(number, said) if kind == said else None


def _epsg_of_projjson(text: str) -> Epsg | None:
    """https://proj.org/en/stable/specifications/projjson.html."""
    try:
        said = json.loads(text)
        found = epsg(f"{said['id']['authority']}:{said['id']['code']}")
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return (
        found if found is not None and found.kind == _PROJJSON.get(str(said.get("type"))) else None
    )


def _kind_of_number(number: int) -> Kind | None:
    for kind, ranges in _ranges().items():
        at = bisect_right(ranges, (number, 1 << 20)) - 1
        if at >= 0 and number <= ranges[at][1]:
            return kind
    return None


@cache
def _ranges() -> dict[Kind, list[tuple[int, int]]]:
    return {"geographic": _parse(_GEOGRAPHIC), "projected": _parse(_PROJECTED)}


def _parse(text: str) -> list[tuple[int, int]]:
    pairs = [part.partition("-") for part in text.split()]
    return [(int(first), int(last or first)) for first, _, last in pairs]


def well_known_text(crs: str) -> str:
    """The system as well-known text, for programs without EPSG's registry; empty if unknown.

    WGS 84, its zones of UTM and Web Mercator are the known codes.
    """
    if "[" in crs and not crs.startswith("{"):
        return crs
    found = epsg(crs)
    if found is None:
        return ""
    if found.number in _KNOWN:
        return _KNOWN[found.number]
    zone = found.number % 100
    if found.number // 100 not in (326, 327) or not 1 <= zone <= 60:
        return ""
    south = found.number // 100 == 327
    return (
        f'PROJCS["WGS 84 / UTM zone {zone}{"S" if south else "N"}",{_WGS_84},'
        'PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],'
        f'PARAMETER["central_meridian",{zone * 6 - 183}],PARAMETER["scale_factor",0.9996],'
        f'PARAMETER["false_easting",500000],PARAMETER["false_northing",{10**7 if south else 0}],'
        'UNIT["metre",1,AUTHORITY["EPSG","9001"]],AXIS["Easting",EAST],AXIS["Northing",NORTH],'
        f'AUTHORITY["EPSG","{found.number}"]]'
    )


_WGS_84 = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,'
    'AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,'
    'AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],'
    'AUTHORITY["EPSG","4326"]]'
)
_KNOWN = {
    4326: _WGS_84,
    3857: f'PROJCS["WGS 84 / Pseudo-Mercator",{_WGS_84},PROJECTION["Mercator_1SP"],'
    'PARAMETER["central_meridian",0],PARAMETER["scale_factor",1],PARAMETER["false_easting",0],'
    'PARAMETER["false_northing",0],UNIT["metre",1,AUTHORITY["EPSG","9001"]],AXIS["Easting",EAST],'
    'AXIS["Northing",NORTH],EXTENSION["PROJ4","+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 '
    '+x_0=0 +y_0=0 +k=1 +units=m +nadgrids=@null +wktext +no_defs"],AUTHORITY["EPSG","3857"]]',
}
