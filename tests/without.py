"""A plugin of pytest for environments that lack some of the tests' own dependencies.

``-p tests.without`` skips each test that imports one of the packages in ``ZARRFS_WITHOUT`` (names
with commas between), and says why. A package that is missing and not named there is an error.
"""

import os
import sys
from importlib.abc import MetaPathFinder

import pytest

# Names to import that are not those of their packages.
_MODULES = {"netcdf4": "netCDF4", "msgpack-python": "msgpack", "cfgrib": "cfgrib"}


class Absent(MetaPathFinder):
    """Skips whatever imports one of ``packages``."""

    def __init__(self, packages: list[str]) -> None:
        self._names = {
            _MODULES.get(package.lower(), package.lower().replace("-", "_")): package
            for package in packages
        }

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        package = self._names.get(name.partition(".")[0])
        if package is not None:
            pytest.skip(f"{package} has no build for this Python", allow_module_level=True)


def pytest_configure() -> None:
    packages = [name for name in os.environ.get("ZARRFS_WITHOUT", "").split(",") if name]
    if packages:
        sys.meta_path.insert(0, Absent(packages))
