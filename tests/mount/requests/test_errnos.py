"""The table of errnos is complete."""

import errno
import importlib
import inspect
import pkgutil

import pytest

import zarrfs
from zarrfs import errors
from zarrfs.fuse.errnos import ERRNOS, errno_of

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, Exception)
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_an_errno(kind):
    assert errno_of(kind.__new__(kind)) in errno.errorcode


def test_no_error_is_listed_with_the_errno_of_its_base():
    for kind, number in ERRNOS.items():
        assert number not in [ERRNOS.get(base) for base in kind.__mro__[1:]], kind


def test_no_error_means_not_implemented():
    """After ENOSYS the kernel never asks again, for any file."""
    assert errno.ENOSYS not in ERRNOS.values()


def test_errors_defined_elsewhere_have_an_errno():
    for module in pkgutil.walk_packages(zarrfs.__path__, "zarrfs."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = set(), [errors.ZarrfsError]
    while waiting:
        kind = waiting.pop()
        found.add(kind)
        waiting.extend(kind.__subclasses__())
    assert len(found) > len(CLASSES)
    for kind in found:
        assert errno_of(kind.__new__(kind)) is not None


def test_the_most_specific_class_decides():
    class Special(errors.StoreAccessDenied):
        pass

    assert errno_of(Special("k", "r")) == errno.EACCES
    assert errno_of(errors.StoreError("k", "r")) == errno.EIO
    assert errno_of(ZeroDivisionError()) is None
