"""HDF5 files in the manner of other programs, beside those of `hdf5_files`."""

import h5py
import netCDF4
import numpy as np

from .hdf5_files import NOISE, NUMBERS, OPTIONS, RANDOM, low, noted, plist, written


@noted(sequences="are sequences")
def netcdf4(file, folder):
    path = folder / "netcdf4.nc"
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("t", None)
        made.createDimension("x", 7)
        made.createDimension("lonely", 3)  # a scale that is no variable
        colours = made.createEnumType("u1", "colour", {"red": 0, "blue": 7})
        pairs = made.createCompoundType(np.dtype([("a", "i2"), ("b", "f8")]), "pair")
        numbers = made.createVLType("i4", "numbers")
        group = made.createGroup("g/deep")
        for where, kind in ((made, "f4"), (group, ">i8")):
            endian = "big" if kind[0] == ">" else "native"
            packed = {"zlib": True, "shuffle": True, "fletcher32": True}
            data = where.createVariable("data", kind, ("t", "x"), endian=endian, **packed)
            data[:5] = RANDOM.integers(0, 99, (5, 7))
            data[9] = 3
        made.createVariable("paint", colours, ("x",), fill_value=7)[:4] = 0
        made.createVariable("both", pairs, ("x",))[:] = np.zeros(7, pairs.dtype)
        made.createVariable("sequences", numbers, ("lonely",))[0] = np.array([1, 2], "i4")
        made.createVariable("words", str, ("t",))[:3] = np.array(["a", "", "ü"], object)
        made.createVariable("letters", "S1", ("t", "x"))[:2] = np.full((2, 7), b"q")
        unfilled = made.createVariable("unfilled", "i2", ("x",), fill_value=False)
        unfilled[2] = 5
        made.createVariable("scalar", "f8", ())[...] = 2.5
    return path


@noted(cell="references")
def matlab(file, folder):
    file["#refs#/a"] = NUMBERS
    file["text"] = np.frombuffer("häßlich".encode("utf-16-le"), "u2").reshape(-1, 1)
    file["text"].attrs["MATLAB_class"] = np.bytes_("char")
    file["cell"] = np.array([[file["#refs#/a"].ref]], dtype=h5py.ref_dtype)
    file["nothing"] = np.array([0, 0], "u8")
    file["nothing"].attrs["MATLAB_empty"] = np.uint8(1)
    file["struct/field"], file["logical"] = np.ones((3, 1)), np.ones((2, 2), "u1")
    kind = np.dtype([("real", "f8"), ("imag", "f8")])
    file.create_dataset("complex", data=np.ones((3, 2), kind), chunks=(2, 2), compression="gzip")


@written
def anndata(file, folder):
    for part, kind in {"data": "f4", "indices": "i4", "indptr": "i8"}.items():
        data = RANDOM.integers(0, 9, 40).astype(kind)
        file.create_dataset(f"X/{part}", data=data, chunks=(11,), compression="gzip")
    file["X"].attrs["encoding-type"], file["X"].attrs["shape"] = "csr_matrix", [5, 9]
    file["obs/_index"] = np.array(["cell 1", "cell 2"], object)
    file["obs/kind/codes"], file["obs/kind/categories"] = np.array([0, 1], "i1"), ["B", "T"]
    file["obs/good"] = np.array([True, False])
    file["uns/empty"] = np.zeros((0, 3), "f4")


@written
def scales(file, folder):
    file["x"], file["t"] = np.arange(6.0), np.arange(4.0)
    file["data"] = NUMBERS
    for axis, name in enumerate(("t", "x")):
        file[name].make_scale(f"the {name} axis")
        file["data"].dims[axis].attach_scale(file[name])
    file["data"].dims[0].label = "time"
    file["alone"] = np.arange(3)
    file["alone"].make_scale("")


@written
def paged(file, folder):
    for number in range(20):
        file.create_dataset(f"g{number % 3}/x{number}", data=NOISE + number, chunks=(13, 20))
    del file["g0/x0"]


@written
def concurrent_readers(file, folder):
    made = file.create_dataset("x", (0, 6), "i4", chunks=(2, 6), maxshape=(None, 6))
    file.swmr_mode = True
    for rows in range(1, 8):
        made.resize((rows, 6))
        made[rows - 1] = rows
        made.flush()


@written
def many_chunks(file, folder):
    # More than fit into one page of an index.
    shape = (1100, 50)
    indexes = {"fixed": None, "extensible": (None, 50), "tree": (None, None), "wide": (1100, None)}
    for name, most in indexes.items():
        options = {"chunks": (1, 50), "maxshape": most, "compression": "gzip"}
        made = file.create_dataset(name, shape, "u1", **options)
        made[:60] = 1
        made[1000:] = RANDOM.integers(0, 255, (100, 50))
    for axis in range(3):
        most = tuple(None if axis == other else 9 for other in range(3))
        made = file.create_dataset(f"axis{axis}", (7, 5, 4), "i2", chunks=(3, 2, 1), maxshape=most)
        made[...] = RANDOM.integers(0, 999, (7, 5, 4))


@written
def nbit(file, folder):
    short = h5py.h5t.STD_I32LE.copy()
    short.set_precision(20)
    for name, order in {"little": h5py.h5t.ORDER_LE, "big": h5py.h5t.ORDER_BE}.items():
        kind = short.copy()
        kind.set_order(order)
        made = plist((2, 3))
        made.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_OPTIONAL)
        low(file, name, (4, 6), kind, made, NUMBERS.astype("i4" if name == "little" else ">i4"))


@written
def small_floats(file, folder):
    file["half"], file["half_big"] = NUMBERS.astype("f2"), NUMBERS.astype(">f2")
    brain = h5py.h5t.IEEE_F32LE.copy()
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_size(2)
    brain.set_ebias(127)
    low(file, "brain", (4, 6), brain, plist(), NUMBERS.astype("f4"))


@noted(**{"l\ufffdnk": "a name that is not UTF-8"})
def odd_names(file, folder):
    for name in ("a b", "a.b", "ü", "x" * 200, "tab\there", "*?[", "c", "chunks", "array.bin"):
        file[f"g/{name}"] = NUMBERS
    # Several nodes of names.
    for number in range(40):
        file[f"many/{number}"] = number
    made = plist()
    made.set_layout(h5py.h5d.COMPACT)
    for name, how in {"gr\xf6\xdfe": plist(), "l\xe4nge": made}.items():
        latin = name.encode("latin-1")
        space = h5py.h5s.create_simple((4, 6))
        h5py.h5d.create(file.id, latin, h5py.h5t.STD_I32LE, space, how).write(
            h5py.h5s.ALL, h5py.h5s.ALL, NUMBERS
        )
    file.id.links.create_soft(b"l\xe4nk", b"/many/1")
    number = h5py.h5s.create(h5py.h5s.SCALAR)
    h5py.h5a.create(file.id, b"\xe4", h5py.h5t.STD_I32LE, number).write(np.array(1, "i4"))


OPTIONS |= {
    "matlab": {"userblock_size": 512},
    "paged": {"fs_strategy": "page", "fs_page_size": 4096},
    "concurrent_readers": {"libver": "latest"},
    "many_chunks": {"libver": "latest"},
}
