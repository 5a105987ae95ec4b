"""Files in other formats: a header beside ``array.bin``, or header and elements in one file.

A format is a function. It takes a `described.Described`, which describes an array, and returns a
function that makes the bytes of a header (`form.Plan`). A format is pure: it reads no store and
opens no file. It raises `form.Inexpressible` with the reason if its format cannot represent the
array. `registry` lists the formats by their names.
"""
