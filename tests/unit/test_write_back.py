"""Which changes are known to who stores them, and for how long."""

from __future__ import annotations

from contextlib import closing

from zarrfs.cache.stats import Stats
from zarrfs.cache.write.write_back import Changes, WriteBack
from zarrfs.memory.budget import MemoryBudget

MIB = 1 << 20


class Counted(Changes):
    """Changes of so many bytes; without bytes they are stored."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def dirty_bytes(self) -> int:
        return self.size

    @property
    def clean(self) -> bool:
        return not self.size

    def flush_older(self, limit: float) -> None:
        pass


def test_retired_changes_are_forgotten_as_soon_as_they_are_stored():
    # Longer than this test takes: nothing happens by itself.
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats())) as write_back:
        first, second = Counted(3), Counted(5)
        for changes in first, second:
            write_back.register(changes)
        write_back.retire(first)
        assert write_back.dirty_bytes == 8
        first.size = 0
        # Whatever is retired is looked at again then.
        write_back.retire(second)
        first.size = 100
        assert write_back.dirty_bytes == 5


def test_memory_for_objects_being_stored_can_change():
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats())) as write_back:
        write_back.resize(3 * MIB, 2 * MIB)
        assert write_back.budget.total == 3 * MIB
        assert write_back.room_for_parts == 2 * MIB
