"""Requests that come at nearly the same time are computed together."""

import asyncio
from collections.abc import Callable
from contextlib import suppress


class Batcher:
    """Gathers items until there are enough of them or the first has waited long enough, and computes them in a thread.

    Args:
        compute: the results of a list of items, in their order.
        most: items in one batch.
        patience: seconds that the first item of a batch waits for others.
    """

    def __init__(self, compute: Callable[[list], list], most: int = 32, patience: float = 0.005):
        self.compute, self.most, self.patience = compute, most, patience
        self.waiting: list[tuple[object, asyncio.Future]] = []
        self.came, self.full = asyncio.Event(), asyncio.Event()
        self.items, self.batches, self.largest = 0, 0, 0

    async def ask(self, item: object):
        """The result of an item, when its batch was computed."""
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append((item, answer))
        self.came.set()
        if len(self.waiting) >= self.most:
            self.full.set()
        return await answer

    async def work(self) -> None:
        """Compute one batch after the other, until cancelled."""
        while True:
            await self.came.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.full.wait(), self.patience)
            batch, self.waiting = self.waiting[: self.most], self.waiting[self.most :]
            if not self.waiting:
                self.came.clear()
            if len(self.waiting) < self.most:
                self.full.clear()
            await self._answer(batch)

    async def _answer(self, batch: list[tuple[object, asyncio.Future]]) -> None:
        self.items, self.batches = self.items + len(batch), self.batches + 1
        self.largest = max(self.largest, len(batch))
        try:
            results = await asyncio.to_thread(self.compute, [item for item, _ in batch])
        except Exception as error:  # those who asked are told, and the next batch is computed
            results = [error] * len(batch)
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():  # who asked has gone
                continue
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)
