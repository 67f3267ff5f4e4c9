"""While several applications call, none has more than a few calls under way."""

from __future__ import annotations

import asyncio

import pytest

from o2pl.serving.fair_turns import FairTurns

MANY, FEW = 1, 2


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_many_calls_of_one_do_not_keep_another_waiting() -> None:
    async def run() -> None:
        clock = Clock()
        turns = FairTurns(at_once=3, clock=clock)
        await turns.begin(FEW)
        begun: list[int] = []
        order = [asyncio.create_task(_begun(turns, MANY, begun, k)) for k in range(10)]
        await asyncio.sleep(0)
        assert begun == [0, 1, 2]
        await asyncio.wait_for(turns.begin(FEW), 5)  # it is not behind those that wait
        turns.end(MANY)
        await asyncio.sleep(0)
        assert begun == [0, 1, 2, 3]  # the first that came
        clock.now += 5  # the other one calls no more
        turns.end(MANY)
        await asyncio.gather(*order)
        assert begun == list(range(10))

    asyncio.run(run())


def test_an_application_that_calls_alone_is_not_held_back() -> None:
    async def run() -> None:
        turns = FairTurns(at_once=3, clock=Clock())
        begun: list[int] = []
        await asyncio.gather(*(_begun(turns, MANY, begun, k) for k in range(50)))
        assert len(begun) == 50

    asyncio.run(run())


def test_calls_that_are_given_up_take_no_turn() -> None:
    async def run() -> None:
        turns = FairTurns(at_once=1, clock=Clock())
        await turns.begin(FEW)
        begun: list[int] = []
        waiting = [asyncio.create_task(_begun(turns, MANY, begun, k)) for k in range(4)]
        await asyncio.sleep(0)
        waiting[1].cancel()  # while it waits
        turns.end(MANY)  # the third one's turn
        waiting[2].cancel()  # before it could begin
        await asyncio.sleep(0)
        await asyncio.wait_for(waiting[3], 5)
        assert begun == [0, 3]
        for given_up in waiting[1:3]:
            with pytest.raises(asyncio.CancelledError):
                await given_up

    asyncio.run(run())


async def _begun(turns: FairTurns, application: int, begun: list[int], number: int) -> None:
    await turns.begin(application)
    begun.append(number)
