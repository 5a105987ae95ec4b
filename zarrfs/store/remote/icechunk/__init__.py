"""Snapshots of Icechunk repositories, read through the package ``icechunk``.

`links` parses the sources that name a snapshot, `repository` finds the snapshot and `service` reads
the objects in it.
"""
