"""Files in other formats: a header beside ``array.bin``, or header and elements in one file.

A format is a function from `described.Described`, which says what an array is, to what makes
the bytes of a header (`form.Plan`). It is pure: it reads no store and opens no file. It raises
`form.Inexpressible` with the reason where its format has no place for the array. `registry`
lists the formats by their names.
"""
