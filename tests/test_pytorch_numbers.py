"""PyTorch's random numbers: `corefw.random.use("mt19937")`, against numbers that PyTorch gave and, where it is
installed, against PyTorch itself."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import corefw
import corefw.nn.functional as F
from corefw.utils.data import DataLoader, Dataset
from tests import pytorch_numbers
from tests.parity import import_torch

ENGINE = "mt19937"
# Numbers of the C library's functions in float64: another version of it may round the last bit in another way.
_ROUNDED = ("randn", "normal", "exponential", "cauchy", "log_normal")


@pytest.fixture
def as_pytorch():
    with corefw.random.use(ENGINE):
        yield


def agree(name, made, wanted):
    assert made.dtype == wanted.dtype and made.shape == wanted.shape, name
    if name.split()[0] in _ROUNDED and made.dtype in (np.float64, np.complex128):
        np.testing.assert_allclose(made, wanted, 4 * np.finfo(np.float64).eps, 1e-300, err_msg=name)
    else:
        assert made.tobytes() == wanted.tobytes(), name


# -- numbers ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", pytorch_numbers.SEEDS)
def test_numbers_are_those_that_pytorch_gave(as_pytorch, seed):
    known = np.load(pytorch_numbers.FIXTURE)[str(seed)].tobytes()
    for name, array in pytorch_numbers.numbers(corefw, seed).items():
        wanted, known = known[: array.nbytes], known[array.nbytes :]
        if name == "state" and sys.byteorder == "little":  # but for the number that waits, of the C library's functions
            agree(name, array[:5024], np.frombuffer(wanted, np.uint8)[:5024])
        else:
            agree(name, array, np.frombuffer(wanted, array.dtype).reshape(array.shape))
    assert known == b""


@pytest.mark.oracle
@pytest.mark.parametrize("seed", [3, 2**64 - 1])
def test_numbers_are_pytorchs(as_pytorch, seed):
    torch = import_torch()
    for pattern in (0, 1):  # the two sets of calls
        wanted = _numbers(torch, seed, pattern)
        for name, array in _numbers(corefw, seed, pattern).items():
            agree(name, array, wanted[name])


def _numbers(torch, seed, pattern):
    generator = torch.Generator().manual_seed(seed)
    made = {name: t.clone() for name, t in pytorch_numbers.calls(torch, pattern, generator)}
    return {name: (t.float() if t.dtype is torch.bfloat16 else t).numpy() for name, t in made.items()}


@pytest.mark.parametrize(
    ("seed", "draw", "wanted"),
    [  # as pages print them
        (0, lambda: corefw.rand(5), [0.4963, 0.7682, 0.0885, 0.1320, 0.3074]),
        (42, lambda: corefw.randn(3), [0.3367, 0.1288, 0.2345]),
        (0, lambda: corefw.randperm(5), [4, 0, 1, 3, 2]),
        (0, lambda: corefw.nn.Linear(2, 1).weight[0], [-0.0053, 0.3793]),
    ],
)
def test_what_pages_print(as_pytorch, seed, draw, wanted):
    corefw.manual_seed(seed)
    np.testing.assert_allclose(draw().detach().numpy(), wanted, atol=6e-5)


def test_a_second_normal_number_waits(as_pytorch):
    corefw.manual_seed(5)
    pair = corefw.randn(2)
    corefw.manual_seed(5)
    assert [corefw.randn(()).item(), corefw.randn(()).item()] == pair.tolist()
    corefw.manual_seed(5)
    first, state = corefw.randn(()), corefw.get_rng_state()
    corefw.rand(9)
    corefw.set_rng_state(state)
    assert corefw.stack([first, corefw.randn(())]).tolist() == pair.tolist()


def test_no_numbers_take_no_words(as_pytorch):
    before = corefw.manual_seed(1).get_state()
    for empty in (corefw.rand(0), corefw.randn(0, 3), corefw.randperm(0), corefw.randperm(1), corefw.randint(5, (0,))):
        assert empty.numel() <= 1
    F.dropout(corefw.ones(3), 1.0)
    assert corefw.equal(corefw.get_rng_state(), before)


def test_dropout_is_noise_over_the_probability(as_pytorch):
    corefw.manual_seed(3)
    x = corefw.rand(4, 25, requires_grad=True)
    corefw.manual_seed(9)
    noise = corefw.empty(4, 25).bernoulli_(1 - 0.1) / (1 - 0.1)
    corefw.manual_seed(9)
    dropped = F.dropout(x, 0.1)
    dropped.sum().backward()
    assert corefw.equal(dropped, x * noise) and corefw.equal(x.grad, noise)
    corefw.manual_seed(9)
    assert corefw.equal(F.dropout(x.detach().clone(), 0.1, inplace=True), dropped)


# -- engines ----------------------------------------------------------------------------------------------------------
def test_philox_is_what_it_was_after_a_block():
    corefw.manual_seed(0)
    whole = corefw.rand(8)
    corefw.manual_seed(0)
    first = corefw.rand(4)
    with corefw.random.use(ENGINE):
        assert corefw.initial_seed() == 0 and corefw.default_generator.engine == ENGINE
        assert corefw.rand(4).tolist() != first.tolist()
        with corefw.random.use("philox"):
            assert corefw.equal(corefw.rand(4), first)
        corefw.manual_seed(1)
    assert corefw.default_generator.engine == "philox" and corefw.initial_seed() == 0
    assert corefw.cat([first, corefw.rand(4)]).tolist() == whole.tolist()


def test_philox_numbers_are_those_of_the_specification():
    corefw.manual_seed(0)
    assert [x.hex() for x in corefw.rand(2, dtype=corefw.float64).tolist()] == [
        "0x1.c2d38b1acc4fdp-1",
        "0x1.3601b7b178af5p-1",
    ]


def test_generators_keep_their_engine():
    philox = corefw.Generator().manual_seed(3)
    with corefw.random.use(ENGINE):
        twister = corefw.Generator().manual_seed(3)
        inside = [corefw.rand(3, generator=g).tolist() for g in (philox, twister)]
        assert isinstance(twister, corefw.Generator) and twister.device.type == "cpu"
        assert pickle.loads(pickle.dumps(philox)).engine == copy.copy(philox).engine == "philox"
    assert inside[0] != inside[1]
    outside = [corefw.rand(3, generator=g.manual_seed(3)).tolist() for g in (philox, twister)]
    assert inside == outside
    assert corefw.Generator().engine == "philox"


def test_chosen_for_good_and_back():
    try:
        corefw.random.use(ENGINE)
        corefw.manual_seed(0)
        assert corefw.rand(1).item() == pytest.approx(0.4963, abs=1e-4)
    finally:
        corefw.random.use("philox")
    corefw.manual_seed(0)
    assert corefw.rand(1).item() == pytest.approx(0.3990, abs=1e-4)


def test_the_same_engine_again_goes_on(as_pytorch):
    corefw.manual_seed(0)
    whole = corefw.rand(4).tolist()
    corefw.manual_seed(0)
    first = corefw.rand(2).tolist()
    corefw.random.use(ENGINE)
    assert first + corefw.rand(2).tolist() == whole


def test_an_unknown_engine():
    with pytest.raises(ValueError, match=r"philox.*mt19937"):
        corefw.random.use("pcg64")


def test_copies_go_on_alike(as_pytorch):
    generator = corefw.Generator().manual_seed(2**40 + 5)
    corefw.randn(3, generator=generator)
    copies = [generator.clone_state(), pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)]
    copies.append(corefw.Generator())
    copies[-1].set_state(generator.get_state())
    wanted = corefw.randn(700, generator=generator), corefw.randn(1, generator=generator)
    for other in copies:
        assert other.initial_seed() == 2**40 + 5
        made = corefw.randn(700, generator=other), corefw.randn(1, generator=other)
        assert all(map(corefw.equal, made, wanted))


def test_states_are_told_apart(as_pytorch):
    state = corefw.get_rng_state()
    assert state.shape == (5056,) and state.dtype is corefw.uint8
    with pytest.raises(RuntimeError, match=r"size 5056 but found .* 16.*philox"):
        corefw.Generator().set_state(corefw.zeros(16, dtype=corefw.uint8))
    with pytest.raises(RuntimeError, match="mt19937"):
        corefw.Generator().set_state(corefw.zeros(5056, dtype=corefw.uint8))
    for call in (corefw.default_generator.get_offset, lambda: corefw.default_generator.set_offset(1)):
        with pytest.raises(RuntimeError, match="does not use offset"):
            call()
    with corefw.random.use("philox"), pytest.raises(RuntimeError, match="5056"):
        corefw.set_rng_state(state)


def test_fork_rng(as_pytorch):
    corefw.manual_seed(4)
    wanted = corefw.rand(3)
    corefw.manual_seed(4)
    with corefw.random.fork_rng():
        corefw.manual_seed(7)
        corefw.randn(3)
    assert corefw.equal(corefw.rand(3), wanted)


def test_threads_share_a_generator_without_losing_words(as_pytorch):
    generator = corefw.Generator().manual_seed(0)
    found: list[float] = []

    def work():
        for _ in range(50):
            found.extend(corefw.rand(20, generator=generator).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    generator.manual_seed(0)
    assert sorted(found) == sorted(corefw.rand(4000, generator=generator).tolist())


def test_vmap(as_pytorch):
    def shifted(x):
        return x + corefw.rand(2)

    same = corefw.vmap(shifted, randomness="same")(corefw.zeros(3, 2))
    assert corefw.equal(same[0], same[2])
    with pytest.raises(RuntimeError, match=r"MT19937.*randomness='same'"):
        corefw.vmap(shifted, randomness="different")(corefw.zeros(3, 2))
    with pytest.raises(RuntimeError, match="randomness error mode"):
        corefw.vmap(shifted)(corefw.zeros(3, 2))


WEIGHTS = corefw.tensor([[0.1, 0.2, 0.3, 0.4] * 5] * 3)
FROM_EXAMPLES = {
    "rand_like": corefw.rand_like,
    "randint_like": lambda x: corefw.randint_like(x, 100),
    "normal_": lambda x: x.clone().normal_(),
    "normal_, few": lambda x: x[:5].clone().normal_(),
    "log_normal_": lambda x: x.clone().log_normal_(),
    "exponential_": lambda x: x.clone().exponential_(),
    "cauchy_": lambda x: x.clone().cauchy_(),
    "geometric_": lambda x: x.clone().geometric_(0.1),
    "randperm": lambda x: corefw.randperm(9) + 0 * x[0],
    "bernoulli": corefw.bernoulli,
    "bernoulli_": lambda x: x.clone().bernoulli_(0.5),
    "dropout": lambda x: corefw.nn.functional.dropout(x),
    "dropout in place": lambda x: corefw.nn.functional.dropout(x.clone(), inplace=True),
    "native_dropout": lambda x: corefw.native_dropout(x, 0.5)[1],
    "alpha_dropout": lambda x: corefw.nn.functional.alpha_dropout(x, training=True),
    "multinomial": lambda x: corefw.multinomial(x, 7),
    "multinomial with replacement": lambda x: corefw.multinomial(x, 7, replacement=True),
    "in another order of memory": lambda x: corefw.rand_like(x.reshape(4, 5).t()),
}


@pytest.mark.parametrize("name", FROM_EXAMPLES)
def test_all_examples_of_vmap_have_the_numbers_of_one(as_pytorch, name):
    draw = FROM_EXAMPLES[name]
    corefw.manual_seed(0)
    one, after = draw(WEIGHTS[0]), corefw.rand(2)
    corefw.manual_seed(0)
    found = corefw.vmap(draw, randomness="same")(WEIGHTS)
    assert len(found) == 3 and all(corefw.equal(example, one) for example in found)
    assert corefw.equal(corefw.rand(2), after)
    with pytest.raises(RuntimeError, match=r"MT19937.*randomness='same'"):
        corefw.vmap(draw, randomness="different")(WEIGHTS)


def test_other_devices_have_philox(as_pytorch):
    assert corefw.Generator("meta").engine == "philox"
    assert corefw.rand(3, device="meta").shape == (3,)


# -- programs ---------------------------------------------------------------------------------------------------------
_PROGRAM = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
print(torch.rand(2))
loader = DataLoader(TensorDataset(torch.arange(6)), batch_size=6, shuffle=True)
print(next(iter(loader))[0])
"""


def test_the_command_line(tmp_path):
    program = tmp_path / "tutorial.py"
    program.write_text(_PROGRAM)
    command = [sys.executable, "-m", "corefw", "run"]
    made = [
        subprocess.run([*command, *options, program], capture_output=True, text=True, check=True).stdout
        for options in ((), ("--pytorch-random",))
    ]
    assert made[0].splitlines()[0] == "tensor([0.3990, 0.8805])"
    assert made[1].splitlines() == ["tensor([0.4963, 0.7682])", "tensor([5, 0, 3, 2, 1, 4])"]


class Drawn(Dataset):
    """Random numbers of the worker that is asked."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return corefw.rand(1)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_have_the_engine(as_pytorch, start):
    generator = corefw.Generator().manual_seed(3)
    made = [
        x.item() for x in DataLoader(Drawn(), None, num_workers=1, multiprocessing_context=start, generator=generator)
    ]
    seed = corefw.empty((), dtype=corefw.int64).random_(generator=generator.manual_seed(3)).item()
    assert made == corefw.rand(3, generator=generator.manual_seed(seed)).tolist()
