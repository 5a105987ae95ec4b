"""HDF5 files with what HDF5 can have: each function writes one."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np

RANDOM = np.random.default_rng(17)
NUMBERS = np.arange(24, dtype="i4").reshape(4, 6)
NOISE = RANDOM.integers(0, 2**31, (50, 41), dtype="i4")
SMOOTH = (np.arange(50 * 41).reshape(50, 41) // 7).astype("i4")

Write = Callable[[Any, Path], object]
FILES: dict[str, Write] = {}
NOTED: dict[str, dict[str, str]] = {}
"""By file, the datasets that are not served, and words of the reason."""
OPTIONS: dict[str, dict[str, Any]] = {
    "latest": {"libver": "latest"},
    "superblock_earliest": {"libver": "earliest"},
    "userblock": {"userblock_size": 1024},
}
"""By file, how h5py opens it."""


def written(function: Write) -> Write:
    FILES[function.__name__] = function
    return function


def noted(**reasons: str) -> Callable[[Write], Write]:
    def add(function: Write) -> Write:
        NOTED[function.__name__] = reasons
        return written(function)

    return add


def low(file, name, shape, dtype, plist, data=None, space=None):
    """A dataset by the functions of the C library."""
    space = space or h5py.h5s.create_simple(shape)
    kind = dtype if isinstance(dtype, h5py.h5t.TypeID) else h5py.h5t.py_create(np.dtype(dtype))
    made = h5py.h5d.create(file.id, name.encode(), kind, space, plist)
    if data is not None:
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data))
    return made


def plist(chunks=None):
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        made.set_chunk(chunks)
    return made


# --- layouts --------------------------------------------------------------------


@written
def contiguous(file, folder):
    file["x"], file["scalar"], file["big_endian"] = NUMBERS, np.float32(2.5), NUMBERS.astype(">i4")
    file.create_dataset("never_written", (5, 6), "f8", fillvalue=7.5)
    file.create_dataset("no_elements", (0, 4), "i2")
    file.create_dataset("grows", data=NUMBERS[:, :0], maxshape=(None, None), chunks=(4, 4))


@written
def contiguous_in_pieces(file, folder):
    file["even"] = np.arange(3 << 21, dtype="u4").reshape(-1, 1 << 10)
    file["odd"] = np.arange((3 << 21) + 777 * 1031, dtype="u4")[: 6007 * 1031].reshape(-1, 1031)


@written
def compact(file, folder):
    made = plist()
    made.set_layout(h5py.h5d.COMPACT)
    low(file, "x", (4, 6), "i4", made, NUMBERS)
    low(file, "big_endian", (4, 6), ">i2", made, NUMBERS.astype(">i2"))
    low(file, "large", (8000,), "u1", made, np.arange(8000).astype("u1"))


@written
def external(file, folder):
    names = [(f"{folder}/a.raw", 8, 40), (f"{folder}/b.raw", 0, 56)]
    file.create_dataset("x", shape=(4, 6), dtype="i4", external=names)[...] = NUMBERS
    big = [(f"{folder}/big.raw", 0, NOISE.nbytes * 4)]
    file.create_dataset("big", shape=(200, 41), dtype="i4", external=big)[:50] = NOISE
    (folder / "big.raw").write_bytes(np.tile(NOISE, (4, 1)).tobytes())


@written
def virtual(file, folder):
    for number in range(3):
        with h5py.File(folder / f"source{number}.h5", "w") as source:
            source.create_dataset("g/x", data=NOISE + number, chunks=(13, 8), compression="gzip")
    layout = h5py.VirtualLayout((3, 50, 41), "i4", maxshape=(None, 50, 41))
    for number in range(3):
        layout[number] = h5py.VirtualSource(f"source{number}.h5", "g/x", (50, 41))
    file.create_virtual_dataset("x", layout, fillvalue=-3)
    file["own"] = SMOOTH
    layout = h5py.VirtualLayout((60, 41), ">f4")
    layout[:50] = h5py.VirtualSource(".", "own", (50, 41))
    file.create_virtual_dataset("partly", layout, fillvalue=1.5)


@written
def chunked(file, folder):
    file.create_dataset("plain", data=NOISE, chunks=(7, 9))
    file.create_dataset("one", data=NOISE, chunks=(50, 41))
    file.create_dataset("larger", data=NUMBERS, chunks=(4, 6), maxshape=(None, None))
    file.create_dataset("big_endian", data=NOISE.astype(">i4"), chunks=(7, 9), compression="gzip")


@written
def partly_written(file, folder):
    for name, fill in {"ints": 5, "default": None}.items():
        made = file.create_dataset(name, (50, 41), "i4", chunks=(7, 9), fillvalue=fill)
        made[20:30, 5:20] = NOISE[20:30, 5:20]
    made = file.create_dataset(
        "nan", (50, 41), "f8", chunks=(7, 9), compression="gzip", fillvalue=np.nan
    )
    made[45:, 40:] = 1


@written
def fill_times(file, folder):
    for when in ("FILL_TIME_ALLOC", "FILL_TIME_NEVER", "FILL_TIME_IFSET"):
        for alloc in ("ALLOC_TIME_EARLY", "ALLOC_TIME_LATE", "ALLOC_TIME_INCR"):
            for chunks in ((7, 9), None):
                if not chunks and alloc == "ALLOC_TIME_INCR":
                    continue
                made = plist(chunks)
                made.set_fill_time(getattr(h5py.h5d, when))
                made.set_alloc_time(getattr(h5py.h5d, alloc))
                made.set_fill_value(np.array(77, "i4"))
                name = f"{when}_{alloc}_{'chunked' if chunks else 'contiguous'}"
                dataset = h5py.Dataset(low(file, name, (50, 41), "i4", made))
                if chunks:
                    dataset[:10, :10] = 3


@written
def unlimited(file, folder):
    made = file.create_dataset("x", (3, 4), "i2", chunks=(2, 3), maxshape=(None, None))
    made[...] = NUMBERS[:3, :4]
    made.resize((9, 5))
    made[8] = 9
    made.resize((5, 5))
    made = file.create_dataset("one", (3, 4), "i2", chunks=(2, 3), maxshape=(None, 4), fillvalue=4)
    made.resize((20, 4))
    made[19] = 1


# --- filters --------------------------------------------------------------------


@written
def filters(file, folder):
    for data, name in ((NOISE, "noise"), (SMOOTH, "smooth"), (SMOOTH.astype("f8"), "floats")):
        options: dict[str, dict[str, Any]] = {
            "gzip": {"compression": "gzip"},
            "gzip_shuffle": {"compression": "gzip", "shuffle": True},
            "shuffle": {"shuffle": True},
            "lzf": {"compression": "lzf"},
            "lzf_shuffle": {"compression": "lzf", "shuffle": True},
            "szip": {"compression": "szip"},
            "fletcher32": {"fletcher32": True},
            "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
            "lzf_all": {"compression": "lzf", "shuffle": True, "fletcher32": True},
        }
        if name != "floats":
            options["scaleoffset"] = {"scaleoffset": 0}
        for filtered, option in options.items():
            file.create_dataset(f"{name}_{filtered}", data=data, chunks=(7, 9), **option)
    # The shuffle filter comes after a checksum of four bytes.
    made = plist((4, 6))
    made.set_fletcher32()
    made.set_shuffle()
    made.set_deflate(6)
    low(file, "checksum_first", (8, 12), "f8", made, RANDOM.random((8, 12)))
    for size in (1, 2, 3, 5, 8, 13):
        data = RANDOM.integers(0, 255, (size, 7)).astype("u1")
        file.create_dataset(f"odd{size}", data=data, chunks=(size, 3), fletcher32=True)


@written
def lzf(file, folder):
    file.create_dataset("x", data=NOISE, chunks=(7, 9), compression="lzf")
    file.create_dataset("y", data=SMOOTH, chunks=(7, 9), compression="lzf", shuffle=True)


@written
def plugins(file, folder):
    made = {
        "lz4": hdf5plugin.LZ4(),
        "bitshuffle": hdf5plugin.Bitshuffle(),
        "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        "blosc": hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE),
        "blosc_zstd": hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
        "blosc2": hdf5plugin.Blosc2(),
        "bzip2": hdf5plugin.BZip2(),
        "zstd": hdf5plugin.Zstd(),
    }
    for name, option in made.items():
        for kind, data in {"noise": NOISE, "smooth": SMOOTH}.items():
            file.create_dataset(f"{name}_{kind}", data=data, chunks=(13, 20), **option)


@written
def masks(file, folder):
    for name, mask in {"first": 1, "second": 2, "both": 3, "mixed": None}.items():
        data = file.create_dataset(
            name, (28, 9), "i4", chunks=(7, 9), compression="gzip", shuffle=True
        )
        data[...] = SMOOTH[:28, :9]
        for number in range(4):
            chosen = (number if mask is None else mask) & 3
            chunk = np.ascontiguousarray(NOISE[7 * number : 7 * number + 7, :9])
            raw = chunk.tobytes()
            if not chosen & 1:
                raw = np.frombuffer(raw, "u1").reshape(-1, 4).T.tobytes()
            if not chosen & 2:
                import zlib

                raw = zlib.compress(raw)
            data.id.write_direct_chunk((7 * number, 0), raw, chosen)


# --- types ----------------------------------------------------------------------


@written
def numbers(file, folder):
    for kind in ("i1", "u1", "<i2", ">i2", "<u4", ">u8", "<f2", ">f4", "<f8", ">f8", "<c8", ">c16"):
        data = RANDOM.integers(0, 100, (9, 5)).astype(kind)
        name = kind.replace("<", "little").replace(">", "big")
        file.create_dataset(name, data=data, chunks=(4, 4), compression="gzip", shuffle=True)
        file[f"{name}_contiguous"] = data
    file["bool"] = RANDOM.integers(0, 2, (9, 5)).astype(bool)
    file.create_dataset("bool_chunked", data=np.ones((9, 5), bool), chunks=(4, 4), fillvalue=True)
    colours = h5py.enum_dtype({"red": 1, "blue": 300}, "i2")
    file.create_dataset("enum", data=np.array([1, 300, 1]), dtype=colours)


@written
def odd_numbers(file, folder):
    short = h5py.h5t.STD_I32LE.copy()
    short.set_precision(20)
    short.set_offset(4)
    low(file, "bits", (4, 6), short, plist(), NUMBERS)
    low(file, "chunked_bits", (4, 6), short, plist((2, 3)), NUMBERS)


@written
def bit_fields(file, folder):
    for name, kind in {"B16LE": h5py.h5t.STD_B16LE, "B32BE": h5py.h5t.STD_B32BE}.items():
        for suffix, made in {"": plist(), "_chunked": plist((2, 3)), "_lzf": plist((2, 3))}.items():
            if suffix == "_lzf":
                made.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_OPTIONAL)
            data = NUMBERS.astype(f">u{kind.get_size()}")
            low(file, name + suffix, (4, 6), kind, made).write(
                h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=kind
            )
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 2)
    kind.insert(b"bits", 0, h5py.h5t.STD_B16LE)
    low(file, "compound", (24,), kind, plist(), NUMBERS.ravel().astype([("bits", "u2")]))


@written
def times(file, folder):
    data = np.array(["2020-01-01", "NaT", "1950-03-04"], "M8[s]")
    file.create_dataset("x", data=data.astype(h5py.opaque_dtype(data.dtype)))
    steps = np.array([1, -5], "m8[ms]")
    file.create_dataset("d", data=steps.astype(h5py.opaque_dtype(steps.dtype)))


@written
def opaque(file, folder):
    file["x"] = np.array([b"abc", b"d\0\xff"], "V3")
    kind = h5py.h5t.create(h5py.h5t.OPAQUE, 3)
    kind.set_tag(b"a tag")
    for name, made in {"tagged": plist(), "tagged_lzf": plist((1,))}.items():
        if name == "tagged_lzf":
            made.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_OPTIONAL)
        low(file, name, (2,), kind, made).write(
            h5py.h5s.ALL, h5py.h5s.ALL, file["x"][()], mtype=kind
        )
    file.create_dataset("chunked", data=np.array([b"abc", b"d\0\xff"] * 9, "V3"), chunks=(4,))


@written
def fixed_text(file, folder):
    file["x"], file["scalar"] = np.array([b"ab", b"", b"cdef"]), np.bytes_("hi")
    file["utf8"] = np.array(["é".encode(), b"a"], h5py.string_dtype(length=3))
    for name, pad in {"space": h5py.h5t.STR_SPACEPAD, "null": h5py.h5t.STR_NULLTERM}.items():
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(5)
        kind.set_strpad(pad)
        made = low(file, name, (2,), kind, plist())
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab\0xy", b"c"], "V5"), mtype=kind)


@written
def compounds(file, folder):
    kind = np.dtype([("i", "<i4"), ("f", "<f8"), ("t", "S3")])
    data = np.array([(1, 2.5, b"ab"), (-4, np.nan, b"xyz")] * 9, kind)
    file["x"] = data
    file.create_dataset("chunked", data=data, chunks=(5,), compression="gzip", shuffle=True)
    gaps = np.dtype([("a", "i1"), ("b", "<f8"), ("c", "i1")], align=True)
    file["gaps"] = np.array([(1, 2, 3), (4, 5, 6)], gaps)
    mixed = np.dtype([("a", ">i4"), ("b", "<f8"), ("n", [("p", ">u2"), ("q", "?")])])
    file["mixed"] = np.array([(1, 2, (3, True)), (4, 5, (6, False))], mixed)


@written
def arrays(file, folder):
    kind = np.dtype(("<i4", (2, 3)))
    data = RANDOM.integers(0, 99, (5, 2, 3)).astype("i4")
    file.create_dataset("x", (5,), kind)[...] = data
    file.create_dataset("chunked", (5,), kind, chunks=(2,), compression="gzip")[...] = data
    array = h5py.h5t.array_create(h5py.h5t.STD_I32LE, (2, 3))
    fill = np.arange(6, dtype="i4")
    for name, made in {"filled": plist(), "chunks_filled": plist((2,))}.items():
        # h5py has no function for the fill value of such elements.
        set_fill_value = ctypes.CDLL(h5py.h5p.__file__).H5Pset_fill_value
        set_fill_value(*(ctypes.c_int64(one.id) for one in (made, array)), fill.ctypes)
        low(file, name, (5,), array, made)


@written
def text(file, folder):
    file["scalar"], file["empty"] = "hi", ""
    file.create_dataset("one", data=["hi"], dtype=h5py.string_dtype())
    words = np.array([f"wörd {i}" * (i % 4) for i in range(300)], object)
    file.create_dataset("x", data=words, dtype=h5py.string_dtype())
    file.create_dataset("ascii", data=[b"a", b"bc"], dtype=h5py.string_dtype("ascii"))
    file.create_dataset(
        "chunked", data=words.reshape(20, 15), dtype=h5py.string_dtype(), chunks=(7, 4)
    )
    file.create_dataset("many", data=np.tile(words, 40), dtype=h5py.string_dtype())
    file.create_dataset("partly", (9,), h5py.string_dtype(), chunks=(4,))[2] = "x"
    file.create_dataset("never", (3, 3), h5py.string_dtype())
    kind, made = h5py.h5t.py_create(h5py.string_dtype(), logical=True), plist()
    made.set_layout(h5py.h5d.COMPACT)
    h5py.Dataset(low(file, "compact", (20, 15), kind, made))[...] = words.reshape(20, 15)


# --- links ----------------------------------------------------------------------


@written
def links(file, folder):
    with h5py.File(folder / "other.h5", "w") as other:
        other["g/x"] = NUMBERS
        other["back"] = h5py.ExternalLink("links.h5", "/g/x")
        other["soft"] = h5py.SoftLink("g/x")
    file["g/x"] = NUMBERS
    file["hard"], file["h"] = file["g/x"], file["g"]
    file["soft"], file["g/relative"] = h5py.SoftLink("/g/x"), h5py.SoftLink("x")
    file["soft_group"] = h5py.SoftLink("h")
    file["through"] = h5py.SoftLink("/outside/x")
    file["external"] = h5py.ExternalLink("other.h5", "/g/x")
    file["outside"] = h5py.ExternalLink("other.h5", "g")
    file["there_and_back"] = h5py.ExternalLink("other.h5", "back")
    file["external_soft"] = h5py.ExternalLink("other.h5", "soft")


@written
def superblock_earliest(file, folder):
    chunked(file.create_group("chunked"), folder)
    numbers(file.create_group("numbers"), folder)


@written
def latest(file, folder):
    for function in (chunked, partly_written, unlimited):
        function(file.create_group(function.__name__), folder)
    made = plist((7, 9))
    made.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    low(file, "implicit", (50, 41), "i4", made, NOISE)
    for number in range(50):  # a group in the newer form
        file[f"many/{number}"] = number


@written
def userblock(file, folder):
    for function in (contiguous, partly_written):
        function(file.create_group(function.__name__), folder)


@written
def attributes(file, folder):
    file["x"] = NUMBERS
    file["x"].attrs["_FillValue"] = np.int32(5)
    file["x"].attrs["long"] = "x" * 5000
    file["x"].attrs["list"] = np.arange(3.5)
    file["x"].attrs["texts"] = ["a", "b"]
    file["x"].attrs["reference"] = file["x"].ref
    file["x"].attrs["nothing"] = h5py.Empty("f4")
    h5py.h5a.create(file["x"].id, b"NAME", h5py.h5t.UNIX_D32LE, h5py.h5s.create(h5py.h5s.SCALAR))
    file["x"].attrs["long_double"] = np.longdouble(1.5)


# --- what is not served ---------------------------------------------------------


@noted(x="references")
def references(file, folder):
    file["y"] = NUMBERS
    file["x"] = np.array([file["y"].ref], dtype=h5py.ref_dtype)


@noted(x="sequences")
def sequences(file, folder):
    made = file.create_dataset("x", (2,), dtype=h5py.vlen_dtype("i4"))
    made[0], made[1] = [1, 2], [3]


@noted(x="no fixed size", y="is an array")
def compounds_with_others(file, folder):
    kind = [("i", "i4"), ("s", h5py.string_dtype())]
    file["x"] = np.array([(1, "ab"), (2, "c")], dtype=kind)
    file["y"] = np.zeros(2, [("i", "i4"), ("a", "f4", (2,))])
    file["z"] = NUMBERS


@noted(x="float128", y="null dataspace")
def long_double(file, folder):
    file["x"] = np.ones(3, np.longdouble)
    file["y"] = h5py.Empty("f4")


@noted(x="has 5 bytes, not 96", masked="has 5 bytes, not 96")
def chunks_of_a_wrong_size(file, folder):
    """HDF5 itself reads whatever is in its memory behind them."""
    for name, how, mask in (("x", {}, 0), ("masked", {"compression": "gzip"}, 1)):
        made = file.create_dataset(name, (4, 6), "i4", chunks=(4, 6), **how)
        made.id.write_direct_chunk((0, 0), b"short", mask)


@noted(
    gone="does not exist", loop="lead to each other", up="a group that it is in",
    no_file="No such file", outside="not below", raw="not below", device="not a file",
    **{"g/itself": "a group that it is in"},
)  # fmt: skip
def broken_links(file, folder):
    file["g/x"] = NUMBERS
    file["gone"] = h5py.SoftLink("/nowhere")
    file["loop"], file["loop2"] = h5py.SoftLink("/loop2"), h5py.SoftLink("/loop")
    file["g/itself"] = file["g"]
    file["up"] = file["/"]
    file["no_file"] = h5py.ExternalLink("nothing.h5", "/x")
    with h5py.File(folder.parent / "outside.h5", "w") as other:
        other["x"] = NUMBERS
    file["outside"] = h5py.ExternalLink("../outside.h5", "/x")
    made = file.create_dataset("raw", (4,), "i4", external=[(f"{folder.parent}/raw", 0, 16)])
    made[...] = 1
    (folder / "device").mkdir()
    file["device"] = h5py.ExternalLink("device", "/x")


NOTED["broken_links"] |= {"loop2": "lead to each other"}


@noted(missing="No such file", short="ends before", nothing="does not exist", secret="not below")
def broken_sources(file, folder):
    layout = h5py.VirtualLayout((4, 6), "i4")
    layout[...] = h5py.VirtualSource("nothing.h5", "x", (4, 6))
    file.create_virtual_dataset("missing", layout)
    file.create_dataset("short", (4, 6), "i4", external=[(f"{folder}/short.raw", 0, 96)])
    (folder / "short.raw").write_bytes(bytes(10))
    with h5py.File(folder / "source.h5", "w") as other:
        other["x"] = NUMBERS
        name = f"{folder.parent}/secret"
        other.create_dataset("secret", (4, 6), "i4", external=[(name, 0, 96)])[...] = NUMBERS
    layout = h5py.VirtualLayout((4, 6), "i4")
    layout[...] = h5py.VirtualSource("source.h5", "y", (4, 6))
    file.create_virtual_dataset("nothing", layout)
    layout = h5py.VirtualLayout((4, 6), "i4")
    layout[...] = h5py.VirtualSource("source.h5", "secret", (4, 6))
    file.create_virtual_dataset("secret", layout)


@noted(x="HDF5 filter 32777")
def unknown_filter(file, folder):
    made = plist((2, 3))
    made.set_filter(32777, h5py.h5z.FLAG_OPTIONAL, (1,))
    low(file, "x", (4, 6), "i4", made)
    file["y"] = NUMBERS


def write(name: str, folder: Path) -> Path:
    folder.mkdir()
    path = folder / f"{name}.h5"
    hdf5plugin.register(force=True)
    with h5py.File(path, "w", **OPTIONS.get(name, {})) as file:
        other = FILES[name](file, folder)
    return other if isinstance(other, Path) else path
