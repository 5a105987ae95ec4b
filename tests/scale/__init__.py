"""Many arrays, names, handles and processes on one mount, for long: does anything of it stay?

``python -m tests.scale`` makes the store, mounts it for writing, and has processes work on it. It
prints the daemon's memory, descriptors and threads at the start, with all names and handles known,
after each tenth of the work and at the end, and fails where one of them grows or a byte is wrong.
"""
