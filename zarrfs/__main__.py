"""``python -m zarrfs`` is the command ``zarrfs``."""

from zarrfs.cli.main import main

main()
