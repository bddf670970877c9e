"""Threads, forked processes, and memory that is given back."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from corefw.dtypes import dtype
from corefw.tensor import Tensor
from corefw.testing.behaviour import behaviour
from corefw.testing.comparison import host
from corefw.testing.conform.outcomes import NotRunError
from corefw.testing.samples import to_tensor
from corefw.testing.targets import Target

_SECONDS = 60  # for a forked process


def _work(x: Tensor) -> Tensor:
    """A little of everything: products, reductions, elementwise ops, and their gradients."""
    x = x.detach().requires_grad_()
    y = (x @ x.T).softmax(-1).exp() * 0.5
    (y.sum(0).cumsum(0).sum() + x.tanh().mean()).backward()
    assert x.grad is not None
    return x.grad


def _inputs(target: Target, d: dtype, count: int) -> list[Tensor]:
    rng = np.random.default_rng(0)
    return [to_tensor(rng.standard_normal((48, 40)).astype(d.numpy), target.device) for _ in range(count)]


@behaviour("processes")
def threads(target: Target, d: dtype) -> None:
    """Eight threads that compute at once get what one gets."""
    inputs = _inputs(target, d, 8)
    wanted = [host(_work(x)).copy() for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            for found, expected in zip(pool.map(_work, inputs), wanted, strict=True):
                np.testing.assert_allclose(host(found), expected, 1e-5, 1e-6)


@behaviour("processes")
def fork(target: Target, d: dtype) -> None:
    """A forked process computes what its parent does; after it the parent still does."""
    if target.device != "cpu":
        raise NotRunError("a forked process cannot use its parent's device")
    if not hasattr(os, "fork"):
        raise NotRunError("this system has no fork")
    (x,) = _inputs(target, d, 1)
    wanted = host(_work(x)).copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of kernels' threads: it is what is tested
        child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(_SECONDS)
            status = 0 if np.allclose(host(_work(x)), wanted, 1e-5, 1e-6) else 2
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = {1: "raised", 2: "computed something else"}.get(status, f"ended with {status}, or hung")
    assert status == 0, f"a forked process {said}"
    np.testing.assert_allclose(host(_work(x)), wanted, 1e-5, 1e-6)


def _resident() -> int:
    """The bytes of this process that lie in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@behaviour("processes")
def leaks(target: Target, d: dtype) -> None:
    """What is computed again and again needs no more memory."""
    if not sys.platform.startswith("linux"):
        raise NotRunError("the memory of a process can be read on Linux only")
    (x,) = _inputs(target, d, 1)
    big = to_tensor(np.ones((256, 1024), d.numpy), target.device)

    def use(times: int) -> int:
        for _ in range(times):
            _work(x)
            (big + 1).sum()
        gc.collect()
        return _resident()

    use(30)
    before = use(10)
    grown = use(100) - before
    assert grown < 20 * big.array.nbytes, (
        f"100 steps, each of results of 1 MiB, left {grown / 2**20:.1f} MiB more in use"
    )
