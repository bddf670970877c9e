"""Convolutions by NVIDIA's cuDNN, where it is installed with its Python frontend (nvidia-cudnn-frontend).

A convolution is a graph of one operation, for which cuDNN finds a plan once; what it has none for is left to our own
functions.
"""

from __future__ import annotations

import logging
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from corefw.dispatch.settings import settings
from corefw_cupy.convolution_geometry import Layout, layout
from corefw_cupy.cuda import Cuda

_log = logging.getLogger(__name__)
TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}
FORWARD, TRANSPOSED, WEIGHT = "conv_fprop", "conv_dgrad", "conv_wgrad"  # the operations, by their names in the frontend
#: what the frontend calls the two factors of each
FACTORS = {FORWARD: ("image", "weight"), TRANSPOSED: ("loss", "filter"), WEIGHT: ("image", "loss")}
LOWER_PRECISION = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")


def frontend(xp) -> Any:
    """The module `cudnn` for arrays of CuPy, None where it or the library is missing."""
    if not isinstance(xp, ModuleType):  # what stands in for CuPy has no memory that cuDNN could read
        return None
    try:
        import cudnn

        cudnn.backend_version()
    except Exception as error:  # whatever an installation that is not whole raises: there is no cuDNN then
        _log.info("cuDNN is not used: %s: %s", type(error).__name__, error)
        return None
    return cudnn


def image_like(array: Layout) -> tuple[list[int], list[int]]:
    """The sizes and strides of an array, with a height of 1 where there is only a width."""
    (*shape, size), (*strides, step) = array.shape, array.strides
    if len(shape) == 2:
        shape, strides = [*shape, 1], [*strides, size * step]
    return [*shape, size], [*strides, step]


def _readable(array) -> bool:
    """Whether cuDNN may read an array where it lies: addresses are multiples of 16, strides positive."""
    return array.data.ptr % 16 == 0 and min(array.strides) > 0


def _both(options: tuple[int, ...], missing: int) -> list[int]:
    """Options for height and width."""
    return [missing, *options] if len(options) == 1 else list(options)


class Cudnn:
    """Plans for convolutions.

    Attributes: ``module`` the frontend, imported when first needed; without it there is no plan for anything.
    """

    def __init__(self, cuda: Cuda):
        self.cuda = cuda
        self.plans: dict[tuple, tuple | None] = {}
        self.handles: dict[int, Any] = {}

    @cached_property
    def module(self) -> Any:
        return frontend(self.cuda.xp)

    def __call__(self, operation: str, factors: tuple, out, stride, padding, dilation) -> bool:
        """Fill `out`, and say so; False if there is no plan for that."""
        library = settings.library
        if self.module is None or out.dtype.name not in TYPES or not library["enabled"]:
            return False
        factors = tuple([a if _readable(a) else self.cuda.copying.dense(a) for a in factors])
        layouts = tuple([layout(a) for a in (*factors, out)])
        device = self.cuda.xp.cuda.runtime.getDevice()
        precise = out.dtype == np.float32 and not library["allow_tf32"]
        deterministic = settings.deterministic or library["deterministic"]
        key = (device, operation, out.dtype.name, layouts, stride, padding, dilation, precise, deterministic)
        if key not in self.plans:
            try:
                self.plans[key] = self._plan(*key)
            except Exception as error:  # of the frontend, whose kinds differ by version: cuDNN has no plan
                _log.warning("cuDNN has no plan for %s of %s %s: %s", operation, out.dtype, layouts, error)
                self.plans[key] = None
        plan = self.plans[key]
        if plan is None:
            return False
        graph, names, bytes_needed = plan
        workspace = self.cuda.empty((max(bytes_needed, 1),), np.uint8)
        addresses = [a.data.ptr for a in (*factors, out)]
        graph.execute(dict(zip(names, addresses, strict=True)), workspace.data.ptr, handle=self._handle(device))
        return True

    def _handle(self, device: int):
        """The handle of a device, on its current stream."""
        if device not in self.handles:
            self.handles[device] = self.module.create_handle()
        handle = self.handles[device]
        self.module.set_stream(handle=handle, stream=self.cuda.xp.cuda.get_current_stream().ptr)
        return handle

    def _plan(self, device, operation, dtype, layouts, stride, padding, dilation, precise, deterministic):
        """A graph that is ready to run, the numbers of its tensors, and the bytes of its workspace."""
        cudnn, kind = self.module, getattr(self.module.data_type, TYPES[dtype])
        types = {"io_data_type": kind, "intermediate_data_type": kind, "compute_data_type": cudnn.data_type.FLOAT}
        graph = cudnn.pygraph(handle=self._handle(device), **types)
        *inputs, (sizes, strides) = map(image_like, layouts)
        factors = [graph.tensor(dim=dim, stride=steps, data_type=kind) for dim, steps in inputs]
        steps = {"padding": _both(padding, 0), "stride": _both(stride, 1), "dilation": _both(dilation, 1)}
        result = getattr(graph, operation)(**dict(zip(FACTORS[operation], factors, strict=True)), **steps)
        result.set_output(True).set_dim(sizes).set_stride(strides).set_data_type(kind)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        unwanted = (LOWER_PRECISION if precise else ()) + (("NONDETERMINISTIC",) if deterministic else ())
        graph.deselect_numeric_notes([getattr(cudnn.numerical_note, note) for note in unwanted])
        graph.check_support()
        graph.build_plans()
        return graph, [tensor.get_uid() for tensor in (*factors, result)], graph.get_workspace_size()
