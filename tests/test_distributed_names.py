"""Names of `corefw.distributed` that need no second rank, or look at the ranks from outside."""

import pdb

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw.distributed import checkpoint, fsdp, optim
from corefw.distributed.nn import functional
from corefw.profiler import profile
from tests.ranks import threads


def test_errors_are_kinds_of_each_other():
    for error in (dist.DistBackendError, dist.DistNetworkError, dist.DistStoreError):
        assert issubclass(error, dist.DistError) and issubclass(error, RuntimeError)
    assert issubclass(dist.QueueEmptyError, dist.DistStoreError)


def test_engines_by_name():
    threads.installed()
    assert dist.is_backend_available("threads") and dist.is_backend_available("THREADS")
    assert not dist.is_backend_available("nothing") and not dist.is_ucc_available() and not dist.is_xccl_available()
    assert dist.is_gloo_available()
    assert dist.is_mpi_available() == dist.is_backend_available("mpi")
    assert dist.is_nccl_available() == dist.is_backend_available("nccl")
    assert dist.get_default_backend_for_device(torch.device("cpu")) in dist.installed()
    assert dist.Backend("Gloo") == dist.Backend.GLOO == "gloo" and isinstance(dist.Backend("x"), str)
    with pytest.raises(ValueError, match="string-ish"):
        dist.Backend(3)
    with pytest.raises(NotImplementedError, match=r"Backend\.register_backend\('mine'\).*Writing an engine"):
        dist.Backend.register_backend("mine", None)
    with pytest.raises(AttributeError, match="gloo is PyTorch's own engine"):
        dist.ProcessGroupGloo


def test_complex_reductions():
    assert dist.supports_complex(dist.ReduceOp.SUM) and not dist.supports_complex(dist.ReduceOp.MAX)
    assert dist.reduce_op is dist.ReduceOp and functional.ReduceOp is dist.ReduceOp
    assert functional.Function is torch.autograd.Function and functional.group is dist.group


def test_where_a_process_is(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert dist.get_node_local_rank() == 3
    monkeypatch.delenv("LOCAL_RANK")
    for name in ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"):
        monkeypatch.delenv(name, raising=False)
    assert dist.get_node_local_rank(5) == 5
    with pytest.raises(RuntimeError, match="fallback_rank"):
        dist.get_node_local_rank()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    assert dist.is_torchelastic_launched()
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    assert not dist.is_torchelastic_launched()


def test_how_much_is_checked(monkeypatch):
    monkeypatch.delenv("COREFW_DISTRIBUTED_DEBUG", raising=False)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "INFO")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.INFO
    monkeypatch.setenv("COREFW_DISTRIBUTED_DEBUG", "off")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.OFF


def test_the_debugger_is_opened_in_one_rank(monkeypatch):
    opened = []
    monkeypatch.setattr(
        pdb.Pdb, "set_trace", lambda self, frame: opened.append((dist.get_rank(), frame.f_code.co_name))
    )

    def stops(rank):
        for _ in range(3):
            dist.breakpoint(rank=1, skip=2, timeout_s=9)

    threads.run(2, stops)
    assert opened == [(1, "stops")]


def test_collectives_have_names_in_the_profiler():
    def named(rank):
        with profile() as found, dist.record_comm("of the first layer"):
            dist.all_reduce(torch.ones(2))
        return {event.key for event in found.key_averages()}

    assert {"of the first layer", "collective_all_reduce"} <= threads.run(1, named)[0]


def test_the_group_of_all_shrinks():
    """Of those that are left, ranks are counted anew."""

    def shrinking(rank):
        if rank == 0:
            return None
        smaller = dist.shrink_group([0])
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert dist.group.WORLD is smaller and dist.get_process_group_ranks(smaller) == [0, 1]
        return dist.get_rank(), dist.get_world_size(), tensor.item()

    assert threads.run(3, shrinking) == [None, (0, 2, 2.0), (1, 2, 2.0)]


def test_buckets_are_public():
    seen = []

    def watching(rank):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))

        def hook(state, bucket):
            seen.append((type(bucket), bucket.index(), bucket.is_last(), [g.shape for g in bucket.gradients()]))
            return ddp_comm_hooks.default_hooks.allreduce_hook(None, bucket)

        model.register_comm_hook(None, hook)
        model(torch.ones(1, 2)).sum().backward()

    from corefw.distributed.algorithms import ddp_comm_hooks

    threads.run(1, watching)
    assert seen == [(dist.GradBucket, 0, True, [(1,), (1, 2)])]
    assert callable(ddp_comm_hooks.default_hooks.bf16_compress_wrapper(ddp_comm_hooks.default_hooks.allreduce_hook))


def test_what_an_engine_does_not_take_is_told_with_rank_and_shapes():
    class Picky(threads.ThreadsCommunicator):
        def all_reduce(self, array, operation):
            raise ValueError("no numbers of this kind")

        def broadcast(self, array, root):
            raise TypeError("no arrays of this kind")

    def asking(rank):
        dist.group.WORLD.any_communicator().__class__ = Picky
        told = rf"rank {rank} of 2: all_reduce #1 of group 0 \(\[2, 3\] torch.float32, sum\): .*no numbers of this kind"
        with pytest.raises(ValueError, match=told):
            dist.all_reduce(torch.ones(2, 3))
        with pytest.raises(
            TypeError, match=rf"rank {rank} of 2: broadcast #2 .*\(\[1\] torch.float32, 0\): .*of this kind"
        ):
            dist.broadcast(torch.ones(1), 0)

    threads.run(2, asking)


def test_options_of_states():
    assert not fsdp.LocalOptimStateDictConfig().offload_to_cpu and fsdp.ShardedOptimStateDictConfig().offload_to_cpu
    assert isinstance(fsdp.LocalStateDictConfig(), fsdp.StateDictConfig)
    assert isinstance(fsdp.FullOptimStateDictConfig(), fsdp.OptimStateDictConfig)
    with pytest.raises(NotImplementedError, match="LocalOptimStateDictConfig"):
        fsdp.LocalOptimStateDictConfig(offload_to_cpu=True)
    with pytest.raises(NotImplementedError, match="keep_low_precision_grads"):
        fsdp.MixedPrecision(keep_low_precision_grads=True)
    assert not fsdp.CPUOffload().offload_params and fsdp.BackwardPrefetch.BACKWARD_PRE is not None
    with pytest.raises(NotImplementedError, match="parts lie on the device"):
        fsdp.CPUOffloadPolicy()
    assert isinstance(fsdp.OffloadPolicy(), fsdp.OffloadPolicy)


def test_settings_and_handles():
    def asked(rank):
        model = fsdp.FullyShardedDataParallel(torch.nn.Linear(2, 2))
        settings = fsdp.FullyShardedDataParallel.get_state_dict_type(model)
        layer = fsdp.fully_shard(torch.nn.Linear(2, 2))
        handle = layer.unshard(async_op=True)
        handle.wait()
        shape = tuple(layer.weight.shape)
        layer.reshard()
        return isinstance(settings, fsdp.StateDictSettings), isinstance(handle, fsdp.UnshardHandle), shape

    assert threads.run(2, asked) == [(True, True, (2, 2))] * 2


def test_planners_cannot_be_changed(tmp_path):
    with pytest.raises(NotImplementedError, match="Mine: planners cannot be changed"):
        type("Mine", (checkpoint.DefaultSavePlanner,), {"__module__": "mine"})
    with pytest.raises(NotImplementedError, match="flatten_state_dict"):
        checkpoint.DefaultLoadPlanner(flatten_state_dict=False)
    with pytest.raises(TypeError, match="planner must be a DefaultSavePlanner"):
        checkpoint.save({}, checkpoint_id=tmp_path, planner=checkpoint.DefaultLoadPlanner())
    with pytest.raises(NotImplementedError, match="async_stager"):
        checkpoint.async_save({}, checkpoint_id=tmp_path, async_stager=1)
    with pytest.raises(NotImplementedError, match="use_collectives"):
        checkpoint.save({}, checkpoint_id=tmp_path, use_collectives=False)


def test_missing_names_are_told_from_refused_ones():
    for module in (dist, checkpoint, fsdp, optim):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            module.nonsense
