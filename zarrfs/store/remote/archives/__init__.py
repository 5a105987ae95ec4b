"""Archives as stores: `ArchiveReader` reads members of zip and tar files that may be replaced.

The readers check the table of contents against the limits of `zarrfs.bounds` while they read it,
because its author may be hostile.
"""
