"""Positions that are written to while a kernel reads them: refused or used, but never read twice."""

import os
import subprocess
import sys

import pytest

import corefw as torch
from corefw.dispatch.registry import registry

torch.zeros(1)

#: what reads positions from `i` (int64), `j` (its twin), `m` (a mask) or finds places in `v` (int64)
READERS = {
    "index": "x[i]",
    "index of dimensions": "table[i, j]",
    "index from an outer dimension": "wide[:, i]",
    "index_select": "x.index_select(0, i)",
    "gather": "torch.gather(x, 0, i)",
    "gather across": "torch.gather(table, 0, i.view(-1, 10))",
    "take": "torch.take(x, i)",
    "take_along_dim": "torch.take_along_dim(x, i, 0)",
    "embedding": "F.embedding(i, rows)",
    "embedding's gradient": "F.embedding(i, weights).sum().backward()",
    "scatter_": "x.scatter_(0, i, y)",
    "scatter_ of a number": "x.scatter_(0, i, 1.0)",
    "scatter_add_": "x.scatter_add_(0, i, y)",
    "scatter_reduce_": "x.scatter_reduce_(0, i, y, 'amax')",
    "index_put_": "x.index_put_((i,), y)",
    "index_put_ of sums": "x.index_put_((i,), y, accumulate=True)",
    "index_put_ of dimensions": "table.index_put_((i, j), y)",
    "index_add_": "x.index_add_(0, i, y)",
    "index_copy_": "x.index_copy_(0, i, y)",
    "index_fill_": "x.index_fill_(0, i, 1.0)",
    "put_": "x.put_(i, y)",
    "cross_entropy": "F.cross_entropy(scores, i)",
    "cross_entropy's gradient": "F.cross_entropy(learned, i).backward()",
    "nll_loss": "F.nll_loss(scores, i, torch.ones(10))",
    "nll_loss's gradient": "F.nll_loss(learned, i, torch.ones(10)).backward()",
    "max_unpool1d": "F.max_unpool1d(y.view(1, 1, -1), i.view(1, 1, -1), 2)",
    "max_pool's gradient": "ops.max_pool_backward(y.view(1, 1, -1), i.view(1, 1, -1), (1, 1, 50))",
    "repeat_interleave": "torch.repeat_interleave(y[:100], i[:100].clamp(0, 3))",
    "searchsorted with a sorter": "torch.searchsorted(y, x, sorter=i)",
    "bincount": "torch.bincount(i.clamp(0, 9))",
    "masked_select": "y.masked_select(m)",
    "masked_scatter_": "y.masked_scatter_(m, y.clone())",
    "masks as indices": "y[m]",
    "assignment to masks": "y.__setitem__(m, y[0])",
    "nonzero": "m.nonzero()",
    "argmax": "v.argmax()",
    "max along strides": "v.view(-1, 10).max(0)",
    "unique": "v.unique()",
    "sort": "v.sort()",
    "topk": "v.topk(3)",
    "median": "v.median()",
}

#: a process of its own writes, as no lock of Python's keeps it waiting
PROGRAM = """
import mmap, os, time, warnings
import numpy

warnings.simplefilter("ignore")
readers = {readers!r}
n = 30000
shared = mmap.mmap(-1, 3 * 8 * n + n + 1)
places, other, values = (numpy.frombuffer(shared, numpy.int64, n, 8 * n * k) for k in range(3))
mask, stop = (numpy.frombuffer(shared, bool, size, start) for size, start in ((n, 24 * n), (1, 25 * n)))
parent = os.getpid()
if not os.fork():
    at = numpy.array([5, n // 2, n - 5])
    while not stop[0] and os.getppid() == parent:
        for wrong in (10**12, -10**12):
            places[at] = other[at] = wrong
            values[at] = 7
            mask[at[0] : at[1]] ^= True
            places[at] = other[at] = values[at] = 0
    os._exit(0)

import corefw as torch, corefw.nn.functional as F
from corefw.dispatch.declare import ops

x, y, table, rows, wide = torch.zeros(50), torch.ones(n), torch.zeros(50, 50), torch.zeros(50, 3), torch.zeros(4, 50)
scores, learned = torch.zeros(n, 10), torch.zeros(n, 10, requires_grad=True)
weights = torch.zeros(50, 3, requires_grad=True)
i, j, v, m = map(torch.from_numpy, (places, other, values, mask))
torch.set_num_threads(2)
try:
    with torch.backend("c"):
        for name, reader in readers.items():
            print(name, flush=True)
            run, until = compile(reader, name, "eval"), time.monotonic() + {seconds}
            while time.monotonic() < until:
                try:
                    eval(run)
                except (IndexError, RuntimeError, ValueError):
                    pass
finally:
    stop[0] = True
"""


@pytest.mark.skipif("c" not in registry.backends or not hasattr(os, "fork"), reason="its kernels share memory")
def test_positions_are_read_once():
    program = PROGRAM.replace("{readers!r}", repr(READERS)).replace("{seconds}", "0.04")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}: {done.stderr[-2000:]}"
