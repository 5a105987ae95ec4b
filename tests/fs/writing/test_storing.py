"""Who closes waits for what was written to the file before, and hears why it cannot be stored."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from zarrfs.errors import StoreFull
from zarrfs.fs.files.storing import Storing

ONE, TWO = 11, 12


class Store:
    """Stores when it is let: each call waits for `go_on`, and ends with the error it is given."""

    def __init__(self) -> None:
        self.calls = 0
        self._going_on: list[trio.Event] = []
        self._errors: list[Exception | None] = []

    async def __call__(self) -> None:
        number = self.calls
        self.calls += 1
        self._going_on.append(trio.Event())
        self._errors.append(None)
        await self._going_on[number].wait()
        if (error := self._errors[number]) is not None:
            raise error

    async def go_on(self, error: Exception | None = None) -> None:
        """Have the last call end, and all that wait for it."""
        self._errors[-1] = error
        self._going_on[-1].set()
        await wait_all_tasks_blocked()


class Task:
    """A call in a task of its own."""

    def __init__(self, nursery: trio.Nursery, call: Callable[[], Awaitable[object]]) -> None:
        self.over = False
        self.error: Exception | None = None
        self.scope = trio.CancelScope()
        nursery.start_soon(self._run, call)

    async def _run(self, call: Callable[[], Awaitable[object]]) -> None:
        with self.scope:
            try:
                await call()
            except StoreFull as error:
                self.error = error
        self.over = True


@pytest.fixture
def storing() -> Storing:
    return Storing()


@pytest.fixture
def store() -> Store:
    return Store()


def write(storing: Storing, inode: int) -> None:
    with storing.writing(inode):
        pass


async def begin(nursery: trio.Nursery, call: Callable[[], Awaitable[object]]) -> Task:
    task = Task(nursery, call)
    await wait_all_tasks_blocked()
    return task


async def test_closing_what_was_not_written_stores_nothing(storing, store, nursery):
    await storing.close(ONE, store)
    write(storing, TWO)
    await storing.close(ONE, store)
    assert store.calls == 0


async def test_closing_waits_for_who_stores_already(storing, store, nursery):
    write(storing, ONE)
    tasks = [await begin(nursery, lambda: storing.close(ONE, store)) for _ in range(3)]
    assert [task.over for task in tasks] == [False] * 3
    await store.go_on()
    assert [task.over for task in tasks] == [True] * 3
    assert store.calls == 1


async def test_closing_waits_for_what_was_written_while_others_stored(storing, store, nursery):
    write(storing, ONE)
    first = await begin(nursery, lambda: storing.close(ONE, store))
    write(storing, ONE)
    others = [await begin(nursery, lambda: storing.close(ONE, store)) for _ in range(3)]
    await store.go_on()
    assert first.over
    assert [task.over for task in others] == [False] * 3
    await store.go_on()
    assert [task.over for task in others] == [True] * 3
    assert store.calls == 2


async def test_what_was_written_while_others_stored_is_still_owed(storing, store, nursery):
    write(storing, ONE)
    await begin(nursery, lambda: storing.close(ONE, store))
    write(storing, TWO)
    await store.go_on()
    other = await begin(nursery, lambda: storing.close(TWO, store))
    assert not other.over
    await store.go_on()
    assert other.over


@pytest.mark.parametrize("call", ["close", "sync"])
async def test_a_write_that_runs_is_waited_for_and_stored(call, storing, store, nursery):
    ended = trio.Event()

    async def slow_write() -> None:
        with storing.writing(ONE):
            await ended.wait()

    await begin(nursery, slow_write)
    task = await begin(nursery, lambda: getattr(storing, call)(ONE, store))
    assert store.calls == 0
    ended.set()
    await wait_all_tasks_blocked()
    assert store.calls == 1
    assert not task.over
    await store.go_on()
    assert task.over


async def test_a_write_that_fails_may_have_changed_something(storing, store, nursery):
    with pytest.raises(StoreFull), storing.writing(ONE):
        raise StoreFull("c/0", "by this test")
    task = await begin(nursery, lambda: storing.close(ONE, store))
    assert not task.over
    await store.go_on()
    assert task.over


async def test_writes_that_begin_later_are_not_waited_for(storing, store, nursery):
    """Or one who writes all the time would hold up whoever closes."""
    first, second = trio.Event(), trio.Event()

    async def slow_write(ended: trio.Event) -> None:
        with storing.writing(ONE):
            await ended.wait()

    await begin(nursery, lambda: slow_write(first))
    tasks = [await begin(nursery, lambda: storing.close(ONE, store)) for _ in range(2)]
    await begin(nursery, lambda: slow_write(second))
    first.set()
    await wait_all_tasks_blocked()
    await store.go_on()
    assert [task.over for task in tasks] == [True] * 2
    second.set()


async def test_all_that_wait_hear_of_the_error_and_the_next_tries_again(storing, store, nursery):
    write(storing, ONE)
    tasks = [await begin(nursery, lambda: storing.close(ONE, store)) for _ in range(3)]
    await store.go_on(StoreFull("c/0", "by this test"))
    assert [type(task.error) for task in tasks] == [StoreFull] * 3
    assert store.calls == 1
    again = await begin(nursery, lambda: storing.close(ONE, store))
    await store.go_on()
    assert again.over
    assert again.error is None


async def test_the_error_of_an_earlier_turn_is_none_of_whose_writes_it_did_not_store(
    storing, store, nursery
):
    write(storing, ONE)
    first = await begin(nursery, lambda: storing.close(ONE, store))
    write(storing, TWO)
    second = await begin(nursery, lambda: storing.close(TWO, store))
    await store.go_on(StoreFull("c/0", "by this test"))
    assert isinstance(first.error, StoreFull)
    assert not second.over
    await store.go_on()
    assert second.over
    assert second.error is None


async def test_who_stores_is_cancelled_and_the_others_store_themselves(storing, store, nursery):
    write(storing, ONE)
    tasks = [await begin(nursery, lambda: storing.close(ONE, store)) for _ in range(3)]
    tasks[0].scope.cancel()
    await wait_all_tasks_blocked()
    assert store.calls == 2
    assert [task.over for task in tasks] == [True, False, False]
    await store.go_on()
    assert [task.over for task in tasks] == [True] * 3


async def test_sync_stores_also_what_nobody_has_told_of(storing, store, nursery):
    for calls in (1, 2):
        task = await begin(nursery, lambda: storing.sync(ONE, store))
        assert store.calls == calls
        await store.go_on()
        assert task.over


async def test_sync_through_another_file_stores_what_was_written(storing, store, nursery):
    write(storing, TWO)
    await begin(nursery, lambda: storing.sync(ONE, store))
    await store.go_on()
    await storing.close(TWO, store)
    assert store.calls == 1
