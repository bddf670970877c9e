"""CUDA graphs: what was captured is replayed with new random numbers and steps, on memory of its own, and what cannot
be captured is refused."""

import gc
from functools import partial

import numpy as np
import pytest

pytest.importorskip("cupy")

import corefw as torch
from corefw.dispatch.registry import registry
from corefw.errors import CaptureError
from corefw_cupy import random
from tests.emulation import capture, compiler, launches, memory, queue
from tests.graphs import bits, captured

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="no C++ compiler")

nn, optim = torch.nn, torch.optim
BEFORE, REPLAYS = 2, 10  # steps
on_device = partial(torch.tensor, device="cuda")


# -- training ---------------------------------------------------------------------------------------------------------
def tensor_rate(parameters, make, **options):
    return make(parameters, lr=on_device(0.01), **options)


OPTIMIZERS = {
    "SGD": partial(optim.SGD, lr=0.1),
    "SGD with momentum": partial(optim.SGD, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "SGD with a rate there": partial(tensor_rate, make=optim.SGD, momentum=0.9, nesterov=True),
    "Adam": partial(optim.Adam, lr=0.01, capturable=True),
    "AdamW": partial(optim.AdamW, lr=0.01, capturable=True, amsgrad=True),
    "AdamW with a rate there": partial(tensor_rate, make=optim.AdamW, capturable=True, weight_decay=0.1),
    "Adadelta with a rate there": partial(tensor_rate, make=optim.Adadelta, capturable=True),
    "Adamax": partial(optim.Adamax, lr=0.01, capturable=True),
    "NAdam": partial(optim.NAdam, lr=0.01, capturable=True),
    "NAdam with a rate there": partial(tensor_rate, make=optim.NAdam, capturable=True, decoupled_weight_decay=True),
    "RAdam with a rate there": partial(tensor_rate, make=optim.RAdam, capturable=True, betas=(0.9, 0.6)),
    "RMSprop with a rate there": partial(tensor_rate, make=optim.RMSprop, capturable=True, momentum=0.9, centered=True),
}


class Training:
    """A small network with dropout, its optimizer, and batches."""

    def __init__(self, optimizer):
        torch.manual_seed(1)
        layers = nn.Linear(5, 7), nn.ReLU(), nn.Dropout(0.3), nn.Linear(7, 3)
        self.network = nn.Sequential(*layers).to("cuda")
        self.optimizer = optimizer(self.network.parameters())
        self.schedule = optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        rng = np.random.default_rng(0)
        self.batches = [
            (torch.tensor(rng.standard_normal((4, 5)).astype("f4")), torch.tensor(rng.integers(0, 3, 4)))
            for _ in range(BEFORE + REPLAYS)
        ]
        self.x, self.y = (part.to("cuda") for part in self.batches[0])

    def step(self):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.network(self.x), self.y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        return loss

    def run(self, step, batches, scheduled):
        """Step on batches; the losses."""
        losses = []
        for x, y in batches:
            self.x.copy_(x)
            self.y.copy_(y)
            losses.append(step().item())
            if scheduled:
                self.schedule.step()
        return losses

    def state(self):
        """The bits of all parameters and states."""
        states = [v for s in self.optimizer.state.values() for v in s.values()]
        return [bits(tensor) for tensor in (*self.network.parameters(), *states)]


def trained(name, graphed):
    """The losses, and the bits of all parameters and states, of some steps, of which the later ones may be replayed."""
    training = Training(OPTIMIZERS[name])
    scheduled = "rate" in name
    losses = training.run(training.step, training.batches[:BEFORE], scheduled)
    step = training.step
    if graphed:
        before = [*map(bits, training.network.parameters())]
        graph, loss = captured(training.step)
        assert [*map(bits, training.network.parameters())] == before, "a capture does nothing"

        def step():
            graph.replay()
            return loss

    return losses + training.run(step, training.batches[BEFORE:], scheduled), training.state()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_replays_are_steps(cuda, name):
    assert trained(name, graphed=True) == trained(name, graphed=False)


def baked(write):
    """A generator's state that is written in the first replay only."""
    written = set()

    def once(self, *arguments):
        if self not in written:
            written.add(self)
            write(self, *arguments)

    return once


def test_random_numbers_that_repeat_themselves_show(cuda, monkeypatch):
    kind = type(cuda.new_generator_state())
    monkeypatch.setattr(kind, "write", baked(kind.write))
    assert trained("SGD", graphed=True) != trained("SGD", graphed=False)


def test_counts_of_steps_on_the_host_show(cuda, monkeypatch):
    """Were they not refused, each replay would take the same step."""
    monkeypatch.setitem(OPTIMIZERS, "Adam", partial(optim.Adam, lr=0.01))
    wanted = trained("Adam", graphed=False)
    with pytest.raises(CaptureError, match="instance of Adam but param_groups' capturable is False"):
        trained("Adam", graphed=True)
    monkeypatch.setattr(optim.Adam, "refuse_capture", lambda *arguments: None)
    assert trained("Adam", graphed=True) != wanted


@pytest.mark.parametrize("optimizer", [OPTIMIZERS["Adam"], OPTIMIZERS["SGD with momentum"]])
def test_state_that_would_begin_anew_is_refused(cuda, optimizer):
    training = Training(optimizer)
    with pytest.raises(CaptureError, match="step once before"):
        captured(training.step)
    assert training.run(training.step, training.batches[:1], False)


@pytest.mark.parametrize("name", ["Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad"])
def test_optimizers_that_count_on_the_host_are_refused(cuda, name):
    training = Training(getattr(optim, name))
    training.step()
    with pytest.raises(CaptureError, match=f"an instance of {name}"):
        captured(training.step)


def test_counts_of_steps_are_saved_and_loaded(cuda):
    training, other = Training(OPTIMIZERS["Adam"]), Training(OPTIMIZERS["Adam"])
    training.step()
    saved = training.optimizer.state_dict()
    assert saved["state"][0]["step"].device.type == "cuda"
    other.optimizer.load_state_dict(saved)
    counts = [state["step"] for state in other.optimizer.state.values()]
    assert {(count.device.type, count.item()) for count in counts} == {("cuda", 1.0)}


def test_capturable_changes_nothing_where_there_are_no_graphs():
    parameters = [nn.Parameter(torch.ones(3)) for _ in range(2)]
    for parameter, capturable in zip(parameters, (True, False)):
        optimizer = optim.Adam([parameter], lr=torch.tensor(0.1), capturable=capturable)
        for _ in range(2):
            parameter.grad = torch.arange(3.0)
            optimizer.step()
    assert torch.equal(*parameters) and optimizer.state[parameters[1]]["step"].device.type == "cpu"


# -- random numbers ---------------------------------------------------------------------------------------------------
DRAWS = {
    "dropout": lambda: nn.functional.dropout(torch.ones(37, device="cuda"), 0.4),
    "rand": lambda: torch.rand(5, device="cuda"),
    "randn": lambda: torch.randn(2, 3, dtype=torch.float64, device="cuda"),
    "randint": lambda: torch.randint(0, 100, (9,), device="cuda"),
    "randperm": lambda: torch.randperm(50, device="cuda"),
    "bernoulli_": lambda: torch.empty(11, device="cuda").bernoulli_(0.5),
    "geometric_": lambda: torch.empty(4, device="cuda").geometric_(0.3),
    "two": lambda: torch.cat([torch.rand(3, device="cuda"), torch.rand(6, device="cuda")]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_replays_draw_what_calls_would(cuda, name):
    draw = DRAWS[name]
    torch.manual_seed(7)
    wanted = [(bits(draw()), bits(torch.rand(2, device="cuda"))) for _ in range(4)]
    torch.manual_seed(8)
    graph, drawn = captured(draw)
    torch.manual_seed(7)
    for numbers, between in wanted:
        graph.replay()
        assert (bits(drawn), bits(torch.rand(2, device="cuda"))) == (numbers, between)


def test_a_generator_of_ones_own(cuda):
    generator = torch.Generator("cuda")
    draw = partial(torch.rand, 6, device="cuda", generator=generator)
    with pytest.raises(CaptureError, match=r"uniform_at: each replay would draw the same numbers.*register_generator"):
        captured(draw)
    generator.manual_seed(3)
    wanted = [bits(draw()) for _ in range(3)]
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        drawn = draw()
    generator.manual_seed(3)
    for numbers in wanted:
        graph.replay()
        assert bits(drawn) == numbers


def test_a_generator_is_not_asked_for_its_state_while_a_graph_draws_from_it(cuda):
    generator = torch.Generator("cuda")
    before = generator.get_state()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    for method, arguments in (("manual_seed", (1,)), ("get_state", ()), ("set_state", (before,)), ("get_offset", ())):
        with pytest.raises(CaptureError, match=f"Generator.{method}: not possible"), torch.cuda.graph(graph):
            getattr(generator, method)(*arguments)
        assert torch.equal(generator.get_state(), before)


def test_a_state_that_is_used_outside_of_the_capture_is_refused(cuda):
    with pytest.raises(CaptureError, match="by a thread while another one captures"):
        random.place(cuda.cuda, cuda.new_generator_state(), 0)


# -- memory -----------------------------------------------------------------------------------------------------------
def chain():
    x = torch.arange(8.0, device="cuda")
    return ((x + 1) * 3).exp_().log_() - 0.25


def wanted_of_chain():
    return torch.tensor([(i + 1) * 3 - 0.25 for i in range(8)])


def test_memory_of_a_graph_is_its_own(cuda):
    captured(chain)  # makes the numbers that are kept, and lets go of those of other tests
    torch.cuda.synchronize()
    gc.collect()
    before = torch.cuda.memory_allocated()
    graph, result = captured(chain)
    own = {block.address for block in graph.pool().memory.blocks}
    assert result.array.data.mem.ptr in own
    others = [torch.full((8,), 9.0, device="cuda") for _ in range(50)]
    assert not own & {other.array.data.mem.ptr for other in others}
    graph.replay()
    assert torch.allclose(result.cpu(), wanted_of_chain())
    assert all(other.tolist() == [9.0] * 8 for other in others)
    assert torch.cuda.memory_allocated() > before
    del others, result
    graph.reset()
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    with pytest.raises(CaptureError, match="without a preceding successful capture"):
        graph.replay()


def test_memory_of_other_arrays_is_not_the_graphs(cuda, monkeypatch):
    """What a graph allocates among all other arrays is given to the next one that asks."""
    monkeypatch.setattr(memory.Pool, "malloc", lambda self, size: memory.allocate(size))
    monkeypatch.setattr(queue, "DEFERRED", False)  # so that no work is left over
    graph, _ = captured(chain)
    with pytest.raises(RuntimeError, match="was captured with memory that has been given back"):
        graph.replay()


def test_numbers_stay_although_they_are_forgotten(cuda):
    x = torch.arange(3.0, device="cuda")
    graph, result = captured(lambda: x * 0.15625 + 0.0)
    registry.forget()
    torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(torch.float32)
    from corefw.dispatch import runtime

    runtime._constant.cache_clear()
    gc.collect()
    graph.replay()
    assert result.tolist() == [0.0, 0.15625, 0.3125]
    assert (x * 0.15625).tolist() == result.tolist(), "a number that a capture was the first to need"


def test_numbers_of_a_capture_serve_others(cuda):
    x = torch.ones(3, device="cuda")
    graph, _ = captured(lambda: x * 0.3125)
    assert (x * 0.3125).tolist() == [0.3125] * 3
    del graph
    gc.collect()
    assert (x * 0.3125).tolist() == [0.3125] * 3


def test_graphs_share_a_pool(cuda):
    pool = torch.cuda.graph_pool_handle()
    first, a = captured(chain, pool=pool)
    held = pool.memory.total_bytes()
    del a
    second, b = captured(chain, pool=first.pool())
    assert pool.memory.total_bytes() == held and second.pool() is pool
    first.replay()
    second.replay()
    assert torch.allclose(b.cpu(), wanted_of_chain())


def test_memory_used_on_another_stream_is_kept(cuda):
    other = torch.cuda.Stream()

    def forked():
        x = torch.full((4,), 2.0, device="cuda")
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            y = x * 3
        x.record_stream(other)
        del x
        torch.cuda.current_stream().wait_stream(other)
        return y + 1

    graph, result = captured(forked)
    graph.replay()
    assert result.tolist() == [7.0] * 4


def test_pinned_memory_is_read_in_each_replay(cuda):
    host = torch.tensor([1.0, 2.0]).pin_memory()
    graph, result = captured(lambda: host.to("cuda", non_blocking=True) * 2)
    for first in (3.0, 5.0):
        host[0] = first
        graph.replay()
        assert result.tolist() == [2 * first, 4.0]


# -- what is refused --------------------------------------------------------------------------------------------------
def marked():
    event = torch.cuda.Event()
    event.record()
    return event


REFUSED = {
    "item": (lambda x: x.sum().item(), "a copy to the host"),
    "cpu": (lambda x: x.cpu(), "a copy to the host"),
    "condition": (lambda x: bool((x > 0).all()), "a copy to the host"),
    "print": (repr, "a copy to the host"),
    "multinomial": (lambda x: x.multinomial(1), "a copy to the host"),
    "upload": (lambda x: torch.tensor([1.0, 2.0], device="cuda"), "a copy from the host"),
    "assigned": (lambda x: x.copy_(torch.eye(2)), "a copy from the host"),
    "indexed": (lambda x: x[[1, 0]], "a copy from the host"),
    "synchronize": (lambda x: torch.cuda.synchronize(), "synchronize"),
    "stream": (lambda x: torch.cuda.current_stream().synchronize(), r"Stream\.synchronize"),
    "stream query": (lambda x: torch.cuda.current_stream().query(), r"Stream\.query"),
    "event": (lambda x: marked().synchronize(), r"Event\.synchronize"),
    "event query": (lambda x: marked().query(), r"Event\.query"),
    "empty_cache": (lambda x: torch.cuda.empty_cache(), "empty_cache"),
    "nonzero": (lambda x: x.nonzero(), r"nonzero: a result whose shape depends on elements"),
    "masked": (lambda x: x[x > 0], "a result whose shape depends on elements"),
    "unique": (lambda x: x.unique(), "a result whose shape depends on elements"),
    "inverse": (lambda x: torch.linalg.inv(x), r"linalg_inv: a call of cuSOLVER and cuBLAS"),
    "decomposition": (lambda x: torch.linalg.qr(x), r"\w+: a call of cuSOLVER"),
    "transform": (lambda x: torch.fft.fft(x), r"fft_\w+: a call of cuFFT"),
    "other device": (lambda x: x.to("cuda:1"), "a copy to another device"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_is_refused(cuda, name):
    function, message = REFUSED[name]
    x = torch.eye(2, device="cuda")
    state = torch.cuda.get_rng_state()
    with pytest.raises(CaptureError, match=f"{message}.* is not possible while a graph is captured: "):
        captured(lambda: (torch.rand(2, device="cuda"), function(x)))
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert (x + 1).tolist() == [[2.0, 1.0], [1.0, 2.0]], "the thread gives work as before"
    function(x)
    graph, result = captured(lambda: x + 2)  # on the same stream
    graph.replay()
    assert result.tolist() == [[3.0, 2.0], [2.0, 3.0]]


def test_a_graph_that_the_driver_calls_invalid(cuda):
    """What we do not see is found at the end of the capture."""
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(2, device="cuda")
    with pytest.raises(CaptureError, match="the graph is invalid"), torch.cuda.graph(graph):
        other = torch.cuda.Stream()
        other.wait_stream(torch.cuda.current_stream())  # and is not waited for
        with torch.cuda.stream(other):
            x + 1
    with pytest.raises(CaptureError, match="without a preceding successful capture"):
        graph.replay()
    assert captured(lambda: x + 1, stream=torch.cuda.Stream())[1].shape == (2,)


def test_work_of_the_default_stream_breaks_a_capture(cuda):
    x = torch.ones(2, device="cuda")
    broken = torch.cuda.graph(torch.cuda.CUDAGraph())
    wrong = torch.cuda.stream(torch.cuda.default_stream())
    with pytest.raises(RuntimeError, match="cudaErrorStreamCaptureImplicit"), broken, wrong:
        x + 1


def test_captures_are_on_other_streams_than_the_default_one(cuda):
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(CaptureError, match="not the default one"):
        graph.capture_begin()
    with pytest.raises(CaptureError, match="no capture has begun"):
        graph.capture_end()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        assert torch.cuda.is_current_stream_capturing()
        graph.capture_end()
    with pytest.raises(CaptureError, match="captured already: call reset"), torch.cuda.graph(graph):
        pass
    graph.replay()


def test_one_capture_at_a_time(cuda):
    with pytest.raises(CaptureError, match="is being captured already"):
        captured(lambda: torch.cuda.CUDAGraph().capture_begin())
    assert captured(chain)


def test_modes(cuda):
    for mode in ("global", "thread_local", "relaxed"):
        captured(chain, capture_error_mode=mode)
    with pytest.raises(ValueError, match="capture_error_mode: expected one of global"):
        captured(chain, capture_error_mode="strict")


def test_captures_launch_nothing_and_replays_do(cuda):
    x = torch.zeros(3, device="cuda")
    graph, _ = captured(lambda: x.add_(1))
    assert x.tolist() == [0.0] * 3
    with launches.counted() as counted:
        graph.replay()
        graph.replay()
    assert x.tolist() == [2.0] * 3 and not counted


def test_devices_without_graphs_say_so():
    runtime = registry.runtime("cpu")
    for ask in (runtime.new_graph, runtime.new_graph_pool, runtime.new_generator_state, runtime.capture_stream):
        with pytest.raises(RuntimeError, match="device 'cpu' has no graphs: its work cannot be captured and replayed"):
            ask()
    assert not runtime.is_capturing()


def test_the_emulated_driver_forbids_what_cuda_does(cuda):
    stream = torch.cuda.Stream()
    own = stream.queue
    for wrong in (own.synchronize, lambda: own.done, cuda.driver.deviceSynchronize):
        own.begin_capture()
        with pytest.raises(capture.CudaRuntimeError, match="not permitted when stream is capturing"):
            wrong()
        with pytest.raises(capture.CudaRuntimeError, match="due to a previous error"):
            own.end_capture()
    own.begin_capture()
    event = stream.record_event()
    own.end_capture()
    with pytest.raises(capture.CudaRuntimeError, match="cudaErrorCapturedEvent"):
        torch.cuda.Stream().wait_event(event)
