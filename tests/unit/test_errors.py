"""Errors that are kept keep nothing else."""

from __future__ import annotations

import gc
import weakref

import pytest

from zarrfs.errors import ChunkError, DecodeError, StoreError


class Memory:
    """Whoever has it in use has a frame that knows it."""


@pytest.fixture
def uncollected():
    gc.disable()
    yield
    gc.enable()


def decode(memory):
    raise DecodeError(f"{type(memory).__name__} cannot be decoded")


def store(memory):
    try:
        decode(memory)
    except DecodeError as error:
        raise ChunkError("c/0", str(error)) from error


def clean_up(memory):
    try:
        store(memory)
    except ChunkError:
        raise StoreError("c/0", "is stuck")  # noqa: B904 - only its context tells of the other


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("work", [decode, store, clean_up])
def test_an_error_without_frames_keeps_no_memory(work):
    memory = Memory()
    there = weakref.ref(memory)
    kept = []
    try:
        work(memory)
    except (DecodeError, ChunkError, StoreError) as error:
        kept.append(error.without_frames())
    del memory
    assert there() is None
    with pytest.raises(type(kept[0])):
        raise kept[0]
