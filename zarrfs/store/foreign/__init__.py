"""Files of other formats as stores: references to the chunks in them, made once and kept.

`kinds` tells which format a file has, `translate` is the program that makes references of it,
`kept` runs that program and keeps what it made, `store` serves it while the file stays as it is.
"""
