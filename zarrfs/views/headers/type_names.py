"""The names of plain numbers in the formats.

A row begins with the kind and bytes of a number, as `Described.code` has them. A dash: the format
has no such numbers, or programs do not read them. VTK crashes on MetaImage's integers of 64 bits.
``mono16`` is an extension of ffmpeg. FITS has the number of bits, negative for floats.
"""

from __future__ import annotations

_TABLE = """
    ENVI NIfTI MRC FITS TIFF OME-TIFF       GDAL     MetaImage  NRRD   XDMF   WAVE YUV4MPEG2
b1  1    2     -   8    1    uint8          Byte     MET_UCHAR  uint8  UChar  -    -
u1  1    2     -   8    1    uint8          Byte     MET_UCHAR  uint8  UChar  1    mono
i1  -    256   0   8    2    int8           -        MET_CHAR   int8   Char   -    -
u2  12   512   6   16   1    uint16         UInt16   MET_USHORT uint16 UShort -    mono16
i2  2    4     1   16   2    int16          Int16    MET_SHORT  int16  Short  1    -
u4  13   768   -   32   1    uint32         UInt32   MET_UINT   uint32 UInt   -    -
i4  3    8     -   32   2    int32          Int32    MET_INT    int32  Int    1    -
u8  15   1280  -   64   1    -              UInt64   -          uint64 -      -    -
i8  14   1024  -   64   2    -              Int64    -          int64  Int    -    -
f2  -    -     12  -    3    -              -        -          -      -      -    -
f4  4    16    2   -32  3    float          Float32  MET_FLOAT  float  Float  3    -
f8  5    64    -   -64  3    double         Float64  MET_DOUBLE double Float  3    -
c8  6    32    4   -    6    complex        CFloat32 -          -      -      -    -
c16 9    1792  -   -    6    double-complex CFloat64 -          -      -      -    -
"""
_FORMATS, *_ROWS = (line.split() for line in _TABLE.strip().splitlines())

TYPE_NAMES = {
    name: {row[0]: row[number] for row in _ROWS if row[number] != "-"}
    for number, name in enumerate(_FORMATS, 1)
}
"""For each format, the names by kind and bytes."""
