"""How much memory CuPy's pools hold and give out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from corefw_cupy.graphs import GraphPool


class MemoryUse:
    """Statistics of CuPy's pools, with maxima, which the pools do not keep.

    A hook sees every allocation and release of the thread that loaded the backend; `statistics` corrects what other
    threads did in between.
    """

    def __init__(self, cupy: Any, graph_pools: Iterable[GraphPool]):
        self.cupy, self.graph_pools = cupy, graph_pools
        self.pool = cupy.get_default_memory_pool()
        self.used = used = defaultdict[int, int](int)
        self.most_used = most_used = defaultdict[int, int](int)
        self.most_reserved: dict[int, int] = {}
        use = self

        class Hook(cupy.cuda.MemoryHook):
            """Counts bytes; what could not be given has the address 0.

            Every op passes here, and to gather keywords takes time: the arguments have CuPy's names.
            """

            name = "corefw"

            def malloc_postprocess(self, device_id, size, mem_size, mem_ptr, pmem_id):
                if mem_ptr:
                    used[device_id] = now = used[device_id] + mem_size
                    if now > most_used[device_id]:
                        most_used[device_id] = now

            def alloc_postprocess(self, **allocation):
                if allocation["mem_ptr"]:
                    use.reserved(allocation["device_id"])

            def free_postprocess(self, device_id, mem_size, mem_ptr, pmem_id):
                used[device_id] -= mem_size

        self.hook = Hook()
        self.hook.__enter__()  # for the life of the process

    def reserved(self, index: int) -> None:
        """Note how many bytes the pool holds after it took more."""
        self.most_reserved[index] = max(self.most_reserved.get(index, 0), self._total(index))

    def _total(self, index: int) -> int:
        with self.cupy.cuda.Device(index):
            return sum(pool.total_bytes() for pool in self._pools())

    def _pools(self) -> list[Any]:
        """The pool of all arrays, and those of graphs."""
        return [self.pool, *(pool.memory for pool in self.graph_pools)]

    def statistics(self, index: int) -> dict[str, int]:
        """Bytes allocated and reserved, now and at most."""
        with self.cupy.cuda.Device(index):
            allocated = sum(pool.used_bytes() for pool in self._pools())
        reserved = self._total(index)
        self.used[index], self.most_used[index] = allocated, max(self.most_used[index], allocated)
        self.reserved(index)
        return {
            "allocated": allocated,
            "max_allocated": self.most_used[index],
            "reserved": reserved,
            "max_reserved": self.most_reserved[index],
        }

    def reset(self, index: int) -> None:
        """Let the maxima be what is in use now."""
        now = self.statistics(index)
        self.most_used[index], self.most_reserved[index] = now["allocated"], now["reserved"]

    def release(self) -> None:
        """Give all memory that is not in use back to the system."""
        for index in range(self.cupy.cuda.runtime.getDeviceCount()):
            with self.cupy.cuda.Device(index):
                self.pool.free_all_blocks()
        self.cupy.get_default_pinned_memory_pool().free_all_blocks()
