"""The mount option ``views``."""

import pytest

from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.errors import UsageError


@pytest.mark.parametrize(
    ("text", "views", "rw"),
    [
        ("", ("default",), False),
        ("views=none", (), False),
        ("views=all", ("all",), False),
        ("views=npy", ("npy",), False),
        ("views=npy,h5,bin.hdr,rw", ("npy", "h5", "bin.hdr"), True),
        ("rw,views=default,tif", ("default", "tif"), True),
        ("views=npy\\,nii,rw", ("npy", "nii"), True),
        ("views=npy,views=h5", ("h5",), False),
    ],
)
def test_names_are_separated_as_options_are(text, views, rw):
    options = parse_options([text])
    assert (options.views, options.rw) == (views, rw)


@pytest.mark.parametrize("text", ["views=", "views=no-such", "views=npy\\,no-such", "views"])
def test_what_is_no_view_is_refused(text):
    with pytest.raises(UsageError, match="views"):
        parse_options([text])


def test_a_format_without_views_is_no_option():
    with pytest.raises(UsageError, match="unknown option 'npy'"):
        parse_options(["rw,npy"])
