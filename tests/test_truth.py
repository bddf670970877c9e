"""Bool elements that other programs wrote: every byte other than 0 is True, and their memory stays shared."""

import numpy as np
import pytest

import corefw as torch

BYTES = np.array([0, 1, 7, 255, 0, 128, 2], np.uint8)
TRUTH = [False, True, True, True, False, True, True]

MAKERS = {
    "from_numpy": lambda memory: torch.from_numpy(memory.view(bool)),
    "as_tensor": lambda memory: torch.as_tensor(memory.view(bool)),
    "from_dlpack": lambda memory: torch.from_dlpack(memory.view(bool)),
    "frombuffer": lambda memory: torch.frombuffer(memory, dtype=torch.bool),
    "view": lambda memory: torch.from_numpy(memory).view(torch.bool),
}


@pytest.fixture(params=["numpy", "c"])
def backend(request):
    if request.param not in {b.name for b in torch.backends() if b.usable}:
        pytest.skip(f"backend {request.param} is not installed")
    with torch.backend(request.param):
        yield


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MAKERS.items()])
def test_every_byte_but_zero_is_true(make):
    b, proper = make(BYTES.copy()), torch.tensor(TRUTH)
    assert b.tolist() == TRUTH and [bool(element) for element in b] == TRUTH
    assert b.sum().item() == b.count_nonzero().item() == 5
    assert (~b).tolist() == b.logical_not().tolist() == [not t for t in TRUTH]
    assert (b == proper).all() and not (b != proper).any() and torch.equal(b, proper)
    assert not (b ^ proper).any() and (b & proper).tolist() == (b | proper).tolist() == TRUTH
    assert (b & b.flip(0)).tolist() == (proper & proper.flip(0)).tolist()
    for dtype in (torch.float16, torch.float32, torch.float64, torch.uint8, torch.int64):
        assert b.to(dtype).tolist() == [int(t) for t in TRUTH]
    assert (b + 0.5).tolist() == [t + 0.5 for t in TRUTH] and (b * 3).tolist() == [3 * t for t in TRUTH]
    assert b.cumsum(0).tolist() == np.cumsum(TRUTH).tolist()
    assert torch.arange(7)[b].tolist() == [1, 2, 3, 5, 6]
    assert torch.where(b, 1, 0).tolist() == [int(t) for t in TRUTH]
    assert b.sort(stable=True).indices.tolist() == [0, 4, 1, 2, 3, 5, 6]
    assert b.unique().tolist() == [False, True]
    c = b.clone()
    c ^= True
    assert c.tolist() == [not t for t in TRUTH]


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MAKERS.items()])
def test_memory_is_shared_and_keeps_its_bytes(make):
    memory = BYTES.copy()
    b = make(memory)
    assert (memory == BYTES).all()
    memory[0] = 9
    assert b.tolist() == [True, *TRUTH[1:]] and b.sum().item() == 6
    b[1] = False
    assert memory.tolist() == [9, 0, 7, 255, 0, 128, 2]
