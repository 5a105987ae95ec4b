"""How long the event loop is held by one thing."""

import trio

from zarrfs.fs.loop.loop_times import LoopTimes


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_task_that_blocks_holds_the_loop():
    clock = Clock()
    times = LoopTimes(clock)

    async def tasks() -> None:
        trio.lowlevel.add_instrument(times)
        await trio.lowlevel.checkpoint()
        clock.now += 3.0
        await trio.sleep(0.001)
        clock.now += 2.0
        await trio.sleep(0.001)

    trio.run(tasks)
    assert (times.longest, times.long) == (3.0, 2)


def test_looking_for_requests_in_between_divides_the_time():
    clock = Clock()
    times = LoopTimes(clock)
    for seconds in (0.01, 0.03, 0.02):
        times.begin()
        clock.now += seconds
        times.end()
        clock.now += 7.0
    times.end()  # without a beginning
    assert round(times.longest, 9) == 0.03
    assert times.long == 1
    assert times.snapshot() == {"longest_held_seconds": 0.03, "held_over_20_ms": 1}
