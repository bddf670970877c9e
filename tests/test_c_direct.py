"""The C backend's shims in C give what those in Python give, and leave to these what they do not take."""

import numpy as np
import pytest

from corefw.dispatch.registry import registry

pytestmark = pytest.mark.skipif("c" not in registry.backends, reason="corefw_c is not installed")
F32, F64, I64, I32, U8, BOOL = map(np.dtype, ("f4", "f8", "i8", "i4", "u1", "?"))


def a(*shape, dtype=F32):
    """An array of numbers that differ."""
    return (np.arange(1, 1 + np.prod(shape, dtype=int)) % 251).astype(dtype).reshape(shape)


SEED, OFFSET = 67280421310721, 5
POSITIONS = np.array([1, 0, 1])
#: {op: arguments that the shim in C takes}
TAKEN = {
    "adjoint_matmul": [(a(3, 2), a(3, 4)), (a(5, 3, 2), a(5, 3, 4))],
    "arange_at": [(2, 3, 5, I64), (-1, -2, 4, I64), (0, 1, 0, I64), (0.1, 0.3, 7, F32), (1, 2, 4, F64)],
    "bmm": [(a(2, 3, 4), a(2, 4, 2)), (a(2, 3, 4, dtype=I64), a(2, 4, 2, dtype=I64))],
    "cast": [(a(2, 3), I64, True), (a(4, dtype=I64), F32, True), (a(), BOOL, True), (a(3), F32, True)],
    "cat": [([a(2, 3), a(1, 3)], 0), ([a(2, 3), a(2, 1)], -1), ([a(0, 3), a(2, 3)], 0)],
    "clone_in_order": [(a(2, 3).T, (0, 1)), (a(2, 3, 4)[:, ::2], (0, 1, 2))],
    "diagonal": [(a(3, 4), 0, 0, 1), (a(3, 4), 2, 0, 1), (a(3, 4), -2, 0, 1), (a(3, 2, 4).T, 1, 2, 0)],
    "equal_split": [(a(5, 2), 2, 0), (a(2, 5).T, 5, 0), (a(2, 3), 1, 1)],
    "expand": [(a(3, 1), (2, -1, 4)), (a(), (2, 2)), (a(2, 3).T, (3, 2)), (a(1), (1, 1, 5))],
    "eye_at": [(2, 3, F32), (3, 2, I64), (2, 2, BOOL), (0, 2, F64), (1, 1, U8)],
    "full_at": [((2, 3), 1.5, F32), ((), 7, I64), ((0,), 0.1, F64), ((4,), 3, F32)],
    "gather": [(a(2, 3), 1, np.array([[2, 0], [1, 1]])), (a(4), 0, np.array([3, 3]))],
    "index": [
        (a(4, 2), [np.array([[-1, 0], [2, 3]])]), (a(3, dtype=BOOL), [np.array([0, -3], I32)]),
        (a(3, 3), [POSITIONS, POSITIONS]), (a(3, 2, 4), [POSITIONS, np.array([-1, 1, 0])]),
        (a(2, 3, 2), [POSITIONS[:, None]] * 3), (a(3, 2), [POSITIONS[::2]]), (a(2, 2, 0), [POSITIONS, POSITIONS]),
    ],
    "index_select": [(a(3, 2), 0, POSITIONS), (a(3), 0, np.array([2], I32))],
    "integers_at": [((5,), SEED, OFFSET, -3, 10, I64), ((2, 2), 0, 1 << 63, 0, 2, F32)],
    "layer_normalization": [
        (a(4, 3), (3,), a(3), None, 1e-5), (a(2, 3, 4), (3, 4), a(3, 4), a(3, 4), 0.5),
        (a(3, dtype=F64), (3,), None, None, 0),
    ],
    "linear": [(a(2, 3), a(4, 3), None), (a(5, 2, 3), a(4, 3), a(4)), (a(3), a(4, 3), a(4))],
    "linspace_at": [(0.0, 1.0, 5, F32), (3.0, -1.0, 4, F64), (2.0, 5.0, 1, F32), (0.0, 1.0, 0, F32)],
    "matmul": [(a(2, 3), a(3, 4)), (a(3), a(3)), (a(2, 3), a(3)), (a(3), a(3, 2)), (a(3, 2).T, a(3, 4)[:, ::2])],
    "matmul_adjoint": [(a(2, 3), a(4, 3)), (a(2, 2, 3), a(2, 4, 3))],
    "mm": [(a(2, 3), a(3, 1)), (a(2, 3, dtype=F64), a(3, 1, dtype=F64)), (a(0, 3), a(3, 2)), (a(2, 0), a(0, 2))],
    "normal_at": [((5,), SEED, OFFSET, 0.0, 1.0, F32), ((2, 3), 0, 0, 3.0, 0.5, F64)],
    "permutation_at": [(6, SEED, OFFSET, I64), (0, 1, 1, I64)],
    "pick_rows": [(a(4, 3), np.array([[1, 1], [3, 0]]), -1, False)],
    "squeeze": [(a(1, 3, 1), None), (a(1, 3, 1).T, (0,)), (a(1, 1), (0, 1)), (a(), None), (a(2, 3), (0,))],
    "stack": [([a(2, 3), a(2, 3)], 0), ([a(2, 3), a(2, 3)], -1), ([a(), a()], 0)],
    "unbind": [(a(3, 2), 0), (a(3, 2).T, 1), (a(4), 0)],
    "uniform_at": [((5,), SEED, OFFSET, 0.0, 1.0, F32), ((2, 3), 0, (1 << 64) - 1, 0.0, 1.0, F64)],
    "unsqueeze": [(a(3, 2), 1), (a(3, 2).T, -1), (a(), 0), (a(3, 2)[:, ::2], 0)],
    "view_size": [(a(2, 3), (3, 2)), (a(2, 3), (-1,)), (a(), (1, 1)), (a(4), (2, -1, 2))],
    "zeros_at": [((2, 3), F32), ((), I64), ((0, 2), BOOL)],
}  # fmt: skip
#: {op: arguments that it leaves to the shim in Python, which computes or refuses}
LEFT = {
    "arange_at": [(0, 1, 5000, I64), (0, 1, 4, I32)],
    "bmm": [(a(2, 3, 4), a(1, 4, 2)), (a(2, 3), a(3, 2))],
    "cast": [(a(2, 3), F32, False), (a(2, 3).T, I64, True)],
    "cat": [([a(2, 3), a(2, 2)], 0), ([a(0), a(2, 3)], 0), ([a(2, 3).T, a(3, 2)], 0), ([a(2)], 1), ([], 0)],
    "diagonal": [(a(3, 4), 4, 0, 1)],
    "equal_split": [(a(5, 2), 0, 0), (a(0, 2), 1, 0)],
    "expand": [(a(3), (2,)), (a(3), (2, 4)), (a(2, 3), (3,)), (a(1), (0,))],
    "full_at": [((2,), 1, BOOL), ((2,), 1 << 70, F64), ((100, 100), 1.0, F32)],
    "gather": [(a(2, 3), 1, np.array([[3]])), (a(2, 3).T, 0, np.array([[1]]))],
    "index": [
        (a(3), [np.array([3])]), (a(3), [np.array([True, False, True])]), (a(3, 2), [POSITIONS, np.array([0, 1, 2])]),
        (a(3, 3), [POSITIONS, POSITIONS[:1]]), (a(3, 3), [None, POSITIONS]), (a(3), [POSITIONS, POSITIONS]),
        (a(3), []), (a(3, 3).T, [POSITIONS, POSITIONS]), (a(3, 3), [POSITIONS, POSITIONS.astype(I32)]),
        (a(3, 3), [np.arange(6)[::2], POSITIONS]), (a(3, 3), [POSITIONS, POSITIONS - 4]),
    ],
    "index_select": [(a(3, 2), 1, POSITIONS), (a(3), 0, np.array([5]))],
    "integers_at": [((5,), SEED, OFFSET, 0, 1 << 64, np.dtype("u8")), ((5,), 0, 0, 3, 3, I64)],
    "layer_normalization": [
        (a(4, 3), (4,), None, None, 0.1), (a(3, 4).T, (3,), None, None, 0.1), (a(4, 3), (3,), a(1), None, 0.1),
        (a(4, 3), (3,), None, a(3, dtype=F64), 0.1), (a(4, 3), (), None, None, 0.1),
    ],
    "linear": [(a(2, 3), a(4, 2), None), (a(2, 3), a(3), None)],
    "matmul": [
        (a(2, 3), a(2, 3)), (a(2, 3), a(3, 2, dtype=F64)), (a(2, 2, 3), a(3, 2)), (a(), a(2)), (a(40, 40), a(40, 40)),
    ],
    "mm": [(a(3), a(3))],
    "pick_rows": [(a(4, 3), np.array([4]), -1, False)],
    "stack": [([a(2), a(3)], 0)],
    "uniform_at": [
        ((5,), SEED, OFFSET, 2.0, 3.0, F32), ((-1,), 0, 0, 0.0, 1.0, F32), ((1 << 20,), 0, 0, 0.0, 1.0, F32),
    ],
    "squeeze": [(a(1, 3), (2,)), (a(1, 3), (-1,)), (a(1, 3), 0), (a(*[1] * 9), None)],
    "unsqueeze": [(a(2), 2)],
    "view_size": [(a(2, 3), (4,)), (a(2, 3).T, (6,)), (a(0, 3), (3, 0)), (a(4), (-1, -1)), (a(4), (-2,))],
    "zeros_at": [((-1,), F32), ((2.0,), F32)],
}  # fmt: skip


@pytest.fixture(scope="module")
def kernels():
    """The backend's kernels by op."""
    return {kernel.op: kernel.function for kernel in registry.backends["c"].kernels["cpu"]}


def outcome(function, arguments):
    """What a call gives, to be compared: all facts of its arrays, or the class of what it raises."""
    try:
        found = function(*arguments)
    except Exception as error:
        return type(error)
    arrays = found if isinstance(found, list | tuple) else [found]
    return [(x.shape, x.strides if x.size else (), x.dtype, x.tobytes(), x.flags.writeable) for x in arrays]


def cases(table):
    return [pytest.param(op, arguments, id=f"{op}-{i}") for op in table for i, arguments in enumerate(table[op])]


def in_c_alone(kernel):
    """The kernel with a shim in Python that refuses all."""
    from corefw_c import arrays, direct

    def refuse(*arguments, **options):
        raise AssertionError("left to the shim in Python")

    return direct.python_function(arrays._best(), "with_direct_call")((refuse, *kernel.__self__[1:]))


@pytest.mark.parametrize(("op", "arguments"), cases(TAKEN))
def test_a_shim_in_c_gives_what_the_one_in_python_gives(kernels, op, arguments):
    function = in_c_alone(kernels[op])
    assert outcome(function, arguments) == outcome(kernels[op].__self__[0], arguments)


@pytest.mark.parametrize(("op", "arguments"), cases(LEFT))
def test_what_a_shim_in_c_does_not_take_is_left_to_the_one_in_python(kernels, op, arguments):
    with pytest.raises(AssertionError, match="left to"):
        in_c_alone(kernels[op])(*arguments)
    assert outcome(kernels[op], arguments) == outcome(kernels[op].__self__[0], arguments)


DRAWN = [
    pytest.param(op, arguments, id=f"{op}-{i}")
    for op in ("uniform_at", "normal_at", "integers_at")
    for i, arguments in enumerate(TAKEN[op])
]


@pytest.mark.parametrize(("op", "arguments"), DRAWN)
def test_numbers_are_drawn_into_an_array(kernels, op, arguments):
    shape, dtype = arguments[0], arguments[-1]
    out = np.ones(shape, dtype)
    assert in_c_alone(kernels[op])(*arguments, out=out) is out
    assert out.tobytes() == kernels[op](*arguments).tobytes()


@pytest.mark.parametrize(("op", "arguments"), DRAWN)
def test_numbers_for_other_arrays_are_left_to_the_shim_in_python(kernels, op, arguments):
    shape, dtype = arguments[0], arguments[-1]
    gaps, fixed, expected = np.ones((*shape, 2), dtype)[..., 0], np.ones(shape, dtype), kernels[op](*arguments)
    fixed.flags.writeable = False
    for out in (gaps, fixed, np.ones((7, *shape), dtype), np.ones(shape, "u2")):
        with pytest.raises(AssertionError, match="left to"):
            in_c_alone(kernels[op])(*arguments, out=out)
    kernels[op](*arguments, out=gaps)
    assert gaps.tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="read-only"):
        kernels[op](*arguments, out=fixed)
    assert (fixed == 1).all()


def written(function, value):
    """What a kernel with ``out=`` leaves there, or the class of what it raises."""
    out = np.full((2, 3), -1, F32)
    found = outcome(lambda: function(out, value, out=out), ())
    return found, out.tolist()


@pytest.mark.parametrize(("op", "value"), [*(("copy", v) for v in (a(2, 3), a(3), a(), a(2, 1))), ("fill", a())])
def test_elements_are_overwritten_in_c(kernels, op, value):
    assert written(in_c_alone(kernels[op]), value) == written(kernels[op].__self__[0], value)


REFUSED = [*(("copy", v) for v in (a(2), a(1, 2, 3), a(3, 2).T, a(2, 3, dtype=F64))), ("fill", a(1))]


@pytest.mark.parametrize(("op", "value"), REFUSED)
def test_other_elements_are_overwritten_in_python(kernels, op, value):
    assert written(in_c_alone(kernels[op]), value)[0] is AssertionError
    assert written(kernels[op], value) == written(kernels[op].__self__[0], value)


def test_what_is_overwritten_by_its_own_memory_is_left_to_numpy(kernels):
    memory = a(6)
    with pytest.raises(AssertionError, match="left to"):
        in_c_alone(kernels["copy"])(memory[1:], memory[:-1], out=memory[1:])
    kernels["copy"](memory[1:], memory[:-1], out=memory[1:])
    assert memory.tolist() == [1, 1, 2, 3, 4, 5]


def test_every_shim_in_c_is_tested(kernels):
    in_c = {
        op
        for op, function in kernels.items()
        if getattr(function, "__name__", "") == "kernel" and hasattr(function, "__self__")
    }
    assert in_c == {*TAKEN, "copy", "fill"}


@pytest.mark.parametrize("wrong", [(), (1,), (None,) * 7, (a(2), "x"), ([1], [2]), ((2,), "f4"), (a(2), (1 << 80,))])
def test_objects_of_other_kinds_are_left_to_the_shim_in_python(kernels, wrong):
    for op in TAKEN:
        with pytest.raises(AssertionError, match="left to"):
            in_c_alone(kernels[op])(*wrong)


def test_a_read_only_array_has_read_only_views(kernels):
    array = a(4)
    array.flags.writeable = False
    for op, *arguments in (("view_size", (2, 2)), ("expand", (2, 4)), ("unsqueeze", 0), ("diagonal", 0, 0, 1)):
        shown = in_c_alone(kernels[op])(array.reshape(2, 2) if op == "diagonal" else array, *arguments)
        assert not shown.flags.writeable and np.shares_memory(shown, array)


def test_views_keep_the_memory_alive(kernels):
    parts = in_c_alone(kernels["unbind"])(a(3, 1000) * 1, 0)
    assert [part[0] for part in parts] == [1.0, 1001 % 251, 2001 % 251]
