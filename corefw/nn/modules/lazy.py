"""Lazy layers: the sizes of their inputs follow from the first call, which makes ordinary layers of them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from corefw.nn.modules.linear import Linear
from corefw.nn.modules.module import Module
from corefw.nn.modules.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from corefw.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from corefw.shapes import Size

if TYPE_CHECKING:
    _Base = Module
else:
    _Base = object


class LazyModuleMixin(_Base):
    """What makes a layer lazy: its `initialize_parameters`, given what the layer is first called with, materializes the
    uninitialized parameters and buffers; then the layer is one of the class `cls_to_become`, if there is one.

    >>> import corefw as torch
    >>> layer = torch.nn.LazyLinear(3)
    >>> isinstance(layer, LazyModuleMixin), layer.weight
    (True, <UninitializedParameter>)
    >>> layer(torch.zeros(2, 4)).shape, layer
    (torch.Size([2, 3]), Linear(in_features=4, out_features=3, bias=True))
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Materialize what is uninitialized, by the arguments of the first call; every lazy class defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, chain(self._parameters.values(), self._buffers.values())))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with no_recording():
            self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        if self.cls_to_become is None:
            return super().__call__(*args, **kwargs)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        return self(*args, **kwargs)

    def _load_own(self, state, prefix: str, assign: bool, missing: list[str], errors: list[str]) -> set[str]:
        for name, own in self._own_state():
            given = state.get(prefix + name)
            if is_lazy(own) and given is not None and not is_lazy(given):
                own.materialize(given.shape)
        return super()._load_own(state, prefix, assign, missing, errors)


class _LazyLayer(LazyModuleMixin):
    """A lazy layer of the package: it becomes one of its last base, the layer that is not lazy."""

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        layer = cls.__bases__[-1]
        if issubclass(layer, Module) and not issubclass(layer, LazyModuleMixin):
            cls.cls_to_become = layer


class LazyLinear(_LazyLayer, Linear):
    """`Linear` whose `in_features` is the size of the first input's last dimension.

    Args:
        out_features: size of the output's.
        bias: whether to add one.
    """

    weight: Any
    bias: Any

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, once there are any."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        """Take the number of features from an input."""
        if not self.has_uninitialized_params():  # a state was loaded
            self.in_features = self.weight.shape[-1]
            return
        self.in_features = input.shape[-1]
        self.weight.materialize((self.out_features, self.in_features))
        if self.bias is not None:
            self.bias.materialize((self.out_features,))
        self.reset_parameters()


# -- convolutions -----------------------------------------------------------------------------------------------------
class _LazyConvolution(_LazyLayer):
    """A convolution whose `in_channels` follow from the first input."""

    dimensions: int
    kernel_size: tuple[int, ...]
    in_channels: int
    groups: int
    transposed: bool
    weight: Any

    def _wait(self, out_channels: int, bias: bool, device, dtype) -> None:
        """Let the parameters wait for the input."""
        if out_channels % self.groups:
            raise ValueError("out_channels must be divisible by groups")
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, once there are any."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input, *args, **kwargs) -> None:
        """Take the number of channels from an input."""
        n = self.dimensions
        if input.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of "
                f"size: {Size(input.shape)}"
            )
        self.in_channels = input.shape[-n - 1]
        if not self.has_uninitialized_params():  # a state was loaded
            return
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyDirect(_LazyConvolution):
    def __init__(
        self, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._wait(out_channels, bias, device, dtype)


class _LazyTransposed(_LazyConvolution):
    def __init__(
        self, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True,
        dilation=1, padding_mode: str = "zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._wait(out_channels, bias, device, dtype)


class LazyConv1d(_LazyDirect, Conv1d):
    """`Conv1d` whose `in_channels` follow from the first input."""


class LazyConv2d(_LazyDirect, Conv2d):
    """`Conv2d` whose `in_channels` follow from the first input."""


class LazyConv3d(_LazyDirect, Conv3d):
    """`Conv3d` whose `in_channels` follow from the first input."""


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """`ConvTranspose1d` whose `in_channels` follow from the first input."""


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """`ConvTranspose2d` whose `in_channels` follow from the first input."""


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """`ConvTranspose3d` whose `in_channels` follow from the first input."""


# -- normalisations ---------------------------------------------------------------------------------------------------
class _LazyNorm(_LazyLayer):
    """A normalisation whose `num_features` follow from the first input."""

    dimensions: Any
    num_features: int
    weight: Any
    running_mean: Any
    running_var: Any

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device=None, dtype=None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__(0, eps, momentum, False, False, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = ops.zeros((), device=device, dtype=dtypes.int64)

    def reset_parameters(self) -> None:
        """Set the parameters and statistics to their first values, once there are any."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input) -> None:
        """Take the number of features from an input."""
        self._check_input_dim(input)
        lone = self._takes_single_samples and input.ndim == self.dimensions[0]
        self.num_features = input.shape[0 if lone else 1]
        if not self.has_uninitialized_params():  # a state was loaded, or there is none
            return
        for waiting in chain(self._parameters.values(), self._buffers.values()):
            if is_lazy(waiting):
                waiting.materialize((self.num_features,))
        self.reset_parameters()

    _takes_single_samples = False


class _LazyInstanceNorm(_LazyNorm):
    _takes_single_samples = True


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` whose `num_features` follow from the first input."""


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` whose `num_features` follow from the first input."""


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` whose `num_features` follow from the first input."""


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """`InstanceNorm1d` whose `num_features` follow from the first input."""


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """`InstanceNorm2d` whose `num_features` follow from the first input."""


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """`InstanceNorm3d` whose `num_features` follow from the first input."""
