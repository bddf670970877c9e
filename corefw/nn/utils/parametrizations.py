"""Parametrizations that are asked for most: weight and spectral normalisation, orthogonal matrices."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.convolution import _ConvTransposeNd
from corefw.nn.modules.module import Module
from corefw.nn.utils import parametrize
from corefw.tensor import Tensor


def lengths(tensor: Tensor, dim: int | None) -> Tensor:
    """The 2-norms over all dimensions but `dim`, kept with size 1; over all for None and -1."""
    if dim is None or dim == -1:
        return tensor.norm()
    others = [i for i in range(tensor.ndim) if i != dim % tensor.ndim]
    return ops.linalg_vector_norm(tensor, 2, others, True) if others else tensor.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / lengths(weight_v, self.dim))

    def right_inverse(self, weight):
        return lengths(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Train the length and the direction of a weight apart, ``g * v / |v|`` (Salimans and Kingma 2016).

    Args:
        module: what has the weight.
        name: its name.
        dim: the dimension along which each slice has a length of its own; None for one length.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape, layer.parametrizations.weight.original1.shape
    (torch.Size([40, 1]), torch.Size([40, 20]))
    """
    _check(module, name)
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def _check(module: Module, name: str) -> None:
    if not isinstance(getattr(module, name, None), Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")


class PowerIteration:
    """The greatest singular value of a matrix, to which the vectors u and v come nearer with each iteration."""

    @staticmethod
    def matrix(weight: Tensor, dim: int) -> Tensor:
        """The weight with `dim` first and all others behind."""
        return weight.movedim(dim, 0).flatten(1)

    @staticmethod
    def start(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        """Random unit vectors."""
        return tuple(  # type: ignore[return-value]
            normalized(ops.randn((size,), dtype=matrix.dtype, device=matrix.device), eps) for size in matrix.shape
        )

    @staticmethod
    def improve(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
        """Iterate `count` times, in place."""
        with no_recording():
            for _ in range(count):
                u.copy_(normalized(ops.mv(matrix, v), eps))
                v.copy_(normalized(ops.mv(matrix.mH, u), eps))


def normalized(vector: Tensor, eps: float) -> Tensor:
    """A vector over its length, or over `eps` if that is more."""
    return vector / vector.norm().clamp_min(eps)


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim % weight.ndim, eps
        if weight.ndim > 1:
            matrix = PowerIteration.matrix(weight.detach(), self.dim)
            u, v = PowerIteration.start(matrix, eps)
            PowerIteration.improve(matrix, u, v, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight):
        if weight.ndim == 1:
            return normalized(weight, self.eps)
        matrix = PowerIteration.matrix(weight, self.dim)
        if self.training:
            PowerIteration.improve(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # the next call changes them
        return weight / ops.vdot(u, ops.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its greatest singular value (Miyato et al. 2018), found by power iteration while training.

    Args:
        module: what has the weight.
        name: its name.
        n_power_iterations: how many iterations each call in training mode makes.
        eps: what a length is at least, by which is divided.
        dim: the dimension of the rows; None for 1 of transposed convolutions and 0 of all else.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
    >>> 0.8 < torch.linalg.matrix_norm(layer.weight, 2).item() < 1.2
    True
    """
    _check(module, name)
    weight = getattr(module, name)
    parametrization = _SpectralNorm(weight, n_power_iterations, rows_dim(module) if dim is None else dim, eps)
    return parametrize.register_parametrization(module, name, parametrization)


def rows_dim(module: Module) -> int:
    """The dimension of a weight that holds the outputs."""
    return 1 if isinstance(module, _ConvTransposeNd) else 0


def _orthogonal_near(A: Tensor) -> Tensor:
    """The Q of a QR decomposition, with signs that give A itself where that is orthogonal."""
    Q, R = ops.linalg_qr(A)
    return Q * R.diagonal(0, -2, -1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    def __init__(self, orthogonal_map: str, use_trivialization: bool):
        super().__init__()
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)
        self.trivialized = use_trivialization

    def forward(self, X):
        transposed = X.shape[-2] < X.shape[-1]
        X = X.mT if transposed else X
        n, k = X.shape[-2:]
        if self.orthogonal_map == "householder":
            A = X.tril(-1)
            tau = 2 / (1 + (A * A.conj()).sum(-2))
            Q = ops.linalg_householder_product(A, tau) * X.diagonal(0, -2, -1).detach().sgn().unsqueeze(-2)
        else:
            A = X.tril()
            if n != k:
                A = ops.cat([A, A.new_zeros((*A.shape[:-1], n - k))], -1)
            A = A - A.mH
            if self.orthogonal_map == "matrix_exp":
                Q = ops.linalg_matrix_exp(A)
            else:
                eye = ops.eye(n, dtype=A.dtype, device=A.device)
                Q = ops.linalg_solve(eye - A * 0.5, eye + A * 0.5)
            Q = Q[..., :k]
        if self.trivialized and self.base is not None:
            Q = self.base.matmul(Q)
        return Q.mT if transposed else Q

    def right_inverse(self, Q):
        transposed = Q.shape[-2] < Q.shape[-1]
        Q = Q.mT if transposed else Q
        n, k = Q.shape[-2:]
        if self.trivialized:
            more = ops.randn((*Q.shape[:-1], n - k), dtype=Q.dtype, device=Q.device)
            self.base = _orthogonal_near(Q if n == k else ops.cat([Q, more], -1))
            A = -ops.eye(n, k, dtype=Q.dtype, device=Q.device).expand(Q.shape)  # which is mapped to the identity
        elif self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        else:
            A, tau = ops.geqrf(Q)
            signs = A.diagonal(0, -2, -1).sgn()
            signs = ops.where(tau == 0, -signs, signs)
            A = A.tril(-1) + signs.unsqueeze(-2) * ops.eye(n, k, dtype=Q.dtype, device=Q.device)
        return A.mT.clone() if transposed else A.clone()


_MAPS = ("matrix_exp", "cayley", "householder")


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal: its columns, or its rows where there are fewer, are orthonormal.

    Args:
        module: what has the weight.
        name: its name, of a tensor with two dimensions or more; the last two are the matrices.
        orthogonal_map: "matrix_exp" (of a skew-Hermitian matrix), "cayley" or "householder" (reflections); None for the
            first of square weights and the last of others.
        use_trivialization: whether the map begins at the weight as it is (Lezcano-Casado 2019); needed to set it.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 4))
    >>> torch.allclose(layer.weight.T @ layer.weight, torch.eye(2), atol=1e-5)
    True
    """
    _check(module, name)
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("The householder parametrization does not support complex tensors.")
    parametrization = _Orthogonal(orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)
