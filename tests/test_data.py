"""Data sets, samplers, collation and the loader with its workers."""

import collections
import os
import time
from itertools import chain

import numpy as np
import pytest

import corefw as torch
from corefw.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.tensor(index * index), index


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, 11, step))


class Failing(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 2:
            raise KeyError("sample two is broken")
        return index


class Dying(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        os._exit(3)


class Slow(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(30)


class Seeded(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return float(torch.rand(1)), float(np.random.rand()), get_worker_info().id


def numbers(loader):
    return [batch.tolist() if hasattr(batch, "tolist") else batch for batch in loader]


def test_tensor_dataset_batches_in_order():
    data = TensorDataset(torch.arange(5), torch.arange(5) * 2)
    loader = DataLoader(data, batch_size=2)
    assert [(x.tolist(), y.tolist()) for x, y in loader] == [([0, 1], [0, 2]), ([2, 3], [4, 6]), ([4], [8])]
    assert len(loader) == 3 and len(DataLoader(data, batch_size=2, drop_last=True)) == 2
    with pytest.raises(AssertionError):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_shuffle_draws_each_sample_once_and_anew():
    torch.manual_seed(0)
    loader = DataLoader(range(20), batch_size=5, shuffle=True)
    first, second = list(chain(*numbers(loader))), list(chain(*numbers(loader)))
    assert sorted(first) == sorted(second) == list(range(20)) and first != second
    torch.manual_seed(0)
    assert list(chain(*numbers(loader))) == first


def test_combinations_of_datasets():
    both = ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in range(5)] == [0, 1, 2, 10, 11] and both[-1] == 11
    with pytest.raises(IndexError):
        both[5]
    assert list(ChainDataset([Stream(), Stream()])) == [*range(11), *range(11)]
    assert Subset([5, 6, 7], [2, 0])[1] == 5
    assert StackDataset([1, 2], [3, 4])[1] == (2, 4) and StackDataset(a=[1, 2])[0] == {"a": 1}
    assert len(Squares() + Squares()) == 20


def test_random_split():
    parts = random_split(range(10), [7, 3], generator=torch.Generator().manual_seed(1))
    assert sorted([*parts[0], *parts[1]]) == list(range(10))
    assert [len(p) for p in random_split(range(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ValueError):
        random_split(range(10), [1, 2])


def test_samplers():
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert (
        sorted(RandomSampler(range(4), num_samples=6)) != [0, 1, 2, 3]
        and len(list(RandomSampler(range(4), num_samples=6))) == 6
    )
    assert sorted(SubsetRandomSampler([4, 2])) == [2, 4]
    torch.manual_seed(0)
    counts = collections.Counter(WeightedRandomSampler([0.0, 3.0, 1.0], 4000))
    assert counts[0] == 0 and 2.6 < counts[1] / counts[2] < 3.4
    for wrong in (lambda: BatchSampler(range(3), 0, False), lambda: RandomSampler(range(3), num_samples=-1)):
        with pytest.raises(ValueError):
            wrong()


Pair = collections.namedtuple("Pair", ["a", "b"])


def test_collation_keeps_structure():
    assert default_collate([1, 2]).dtype == torch.int64
    assert default_collate([1.0, 2.0]).dtype == torch.float64
    assert default_collate(["x", "y"]) == ["x", "y"]
    assert default_collate([np.ones(2, "f4"), np.zeros(2, "f4")]).shape == (2, 2)
    collated = default_collate([{"a": Pair(1, [2, 3])}, {"a": Pair(4, [5, 6])}])
    assert isinstance(collated["a"], Pair) and collated["a"].b[1].tolist() == [3, 6]
    with pytest.raises(TypeError):
        default_collate([object()])
    with pytest.raises(RuntimeError):
        default_collate([[1], [1, 2]])


def test_dataiter_has_the_old_next():
    iterator = iter(DataLoader(Squares(), batch_size=4))
    squares, indices = iterator.next()
    assert squares.tolist() == [0, 1, 4, 9] and indices.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_give_the_same_batches(context):
    loader = DataLoader(Squares(), batch_size=3, num_workers=2, multiprocessing_context=context)
    assert [x.tolist() for x, _ in loader] == [x.tolist() for x, _ in DataLoader(Squares(), batch_size=3)]


def test_workers_share_a_stream():
    batches = numbers(DataLoader(Stream(), batch_size=2, num_workers=2))
    assert sorted(chain(*batches)) == list(range(11))
    assert numbers(DataLoader(Stream(), batch_size=4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert numbers(DataLoader(Stream(), batch_size=4, drop_last=True))[-1] == [4, 5, 6, 7]


def test_a_workers_error_comes_with_its_traceback():
    with pytest.raises(KeyError) as error:
        list(DataLoader(Failing(), batch_size=1, num_workers=1))
    assert (
        "worker process 0" in str(error.value)
        and "sample two is broken" in str(error.value)
        and "__getitem__" in str(error.value)
    )


def test_a_workers_death_is_noticed():
    with pytest.raises(RuntimeError, match=r"exited unexpectedly"):
        list(DataLoader(Dying(), num_workers=1))


def test_a_slow_worker_times_out():
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=1))


def test_workers_have_seeds_of_their_own_and_repeat():
    def epoch():
        torch.manual_seed(5)
        return [tuple(float(v) for v in batch) for batch in DataLoader(Seeded(), batch_size=1, num_workers=2)]

    first = epoch()
    assert first == epoch()
    assert {w for _, _, w in first} == {0.0, 1.0}
    assert len({r for r, _, _ in first}) == 4 and len({n for _, n, _ in first}) == 4


def _mark(number):
    os.environ["MARK"] = str(number)


class Marks(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return int(os.environ["MARK"]), os.getpid()


def test_worker_init_and_persistence():
    loader = DataLoader(Marks(), num_workers=2, worker_init_fn=_mark, persistent_workers=True)
    first = [(int(m), int(p)) for m, p in loader]
    second = [(int(m), int(p)) for m, p in loader]
    assert {m for m, _ in first} == {0, 1}
    assert {p for _, p in first} == {p for _, p in second}
    loader._workers.close()


def test_an_epoch_may_be_left_early():
    loader = DataLoader(Squares(), num_workers=2, persistent_workers=True)
    next(iter(loader))
    assert [i.item() for _, i in loader] == list(range(10))
    loader._workers.close()


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"shuffle": True, "sampler": [1]},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
    ],
)
def test_contradicting_options_are_refused(options):
    with pytest.raises(ValueError):
        DataLoader(range(3), **options)


def test_default_convert_makes_tensors_of_arrays_only():
    converted = default_convert({"a": np.ones(2), "b": [1, "x"], "c": Pair(np.float32(2), None)})
    assert converted["a"].dtype == torch.float64 and converted["b"] == [1, "x"]
    assert converted["c"].a.item() == 2 and converted["c"].b is None


def test_a_sampler_of_ones_own():
    class Backwards(Sampler):
        def __init__(self, data):
            self.data = data

        def __iter__(self):
            return reversed(range(len(self.data)))

        def __len__(self):
            return len(self.data)

    data = [10, 11, 12]
    assert numbers(DataLoader(data, batch_size=3, sampler=Backwards(data))) == [[12, 11, 10]]
    assert list(SequentialSampler(data)) == [0, 1, 2]
    with pytest.raises(NotImplementedError):
        iter(Sampler())
