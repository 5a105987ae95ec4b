"""Which files are open: what each call costs does not depend on how many there are."""

from unittest.mock import Mock

from zarrfs.fs.coherence.kernel_pages import OpenPlaces
from zarrfs.fs.nodes.place import Place


def test_a_place_is_open_as_long_as_one_of_its_handles():
    places, node, other = OpenPlaces(), Mock(), Mock()
    first, second, third = Place(node, 11, 1), Place(node, 12, 2), Place(other, 21, 1)
    places.opened(first, (), writable=False)
    places.opened(first, (), writable=True)
    places.opened(second, (), writable=True)
    places.opened(third, (), writable=False)
    assert set(places.of(node)) == {first, second}
    assert set(places.of(other)) == {third}
    assert set(places.writable_inodes) == {11, 12}
    places.closed(first, (), writable=True)
    assert set(places.of(node)) == {first, second}
    assert set(places.writable_inodes) == {12}
    places.closed(first, (), writable=False)
    assert set(places.of(node)) == {second}
    places.closed(second, (), writable=True)
    places.closed(third, (), writable=False)
    assert not set(places.of(node)) | set(places.of(other)) | set(places.writable_inodes)
    # A node of which nothing is open is not kept.
    assert not places._by_node
