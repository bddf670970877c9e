"""Differential fuzzing: the fuzzer finds planted faults, and what it once found stays mended."""

import contextlib
import io
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import corefw
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.registry import registry
from corefw.testing import oracle_available
from tests.fuzzing import documented, run
from tests.fuzzing.batches import Found, differs, grown, run_batch, shrunk
from tests.fuzzing.closeness import near
from tests.fuzzing.compare import Difference
from tests.fuzzing.generators import FAMILIES
from tests.fuzzing.generators.creation import FUNCTIONS, LIKE
from tests.fuzzing.generators.declared import ops as drawable_ops
from tests.fuzzing.generators.rows import table
from tests.fuzzing.programs import Leaf, Program, Ref, Step, from_json, to_json
from tests.fuzzing.run import CORPUS, frameworks
from tests.fuzzing.runs import MISSING, Corefw, Picture, Raised, run_in_scope
from tests.fuzzing.source import source
from tests.fuzzing.workers import UNSEEN

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(CORPUS.glob("*.json"))


# -- what was found stays mended ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("against", ["numpy", pytest.param("torch", marks=pytest.mark.oracle)])
def test_corpus(path, against):
    if against == "torch" and not oracle_available():
        pytest.skip("PyTorch is not installed")
    program, about = from_json(path.read_text())
    assert about["about"]
    sides = frameworks(against)
    for pair in pairwise(sides):
        difference, _ = differs(program, pair)
        assert difference is None, f"{about['about']}\n{difference}\n{source(program)}"


@pytest.mark.slow
def test_a_minute_of_programs():
    """The command finds nothing in the programs of seed 0, as many as a minute allows."""
    command = [sys.executable, ROOT / "scripts" / "fuzz", "--seconds", "60", "--programs", "20000", "--seed", "0"]
    done = subprocess.run([*command, "--against", "numpy"], capture_output=True, text=True, timeout=300)
    assert done.returncode == (0 if len(frameworks("numpy")) > 1 else 2), done.stdout[-6000:] + done.stderr[-2000:]


# -- planted faults are found ------------------------------------------------------------------------------------------
def wrong_at_the_end(a, b):
    """A difference whose last element is wrong, as a vector loop's that forgets what is left over."""
    result = np.subtract(a, b)
    if result.size > 2:
        result[(-1,) * result.ndim] += 1
    return result


def wrong_sign(gradient, output):
    """A gradient of tanh with the wrong sign where it is steep."""
    result = gradient * (1 - output * output)
    return np.where(np.abs(output) < 0.5, -result, result).astype(result.dtype)


@contextlib.contextmanager
def planted(op, function):
    """A backend whose one kernel is wrong."""
    floating = frozenset((corefw.float32, corefw.float64))
    kernels = {"cpu": [Kernel(op, function, floating)]}
    registry.add_backend(Backend("planted", "1", ("cpu",), kernels, priority=-7))
    try:
        yield Corefw("planted", "numpy")
    finally:
        for offers in registry.kernels.values():
            offers[:] = [offer for offer in offers if offer[0].name != "planted"]
        registry.backends.pop("planted", None)
        registry.forget()


@pytest.mark.parametrize(
    ("op", "function", "family", "kind"),
    [("sub", wrong_at_the_end, "views", "values"), ("tanh_backward", wrong_sign, "layers", "gradient")],
)
def test_a_planted_kernel_is_found_and_shrunk(op, function, family, kind):
    with planted(op, function) as wrong:
        sides = [Corefw("numpy"), wrong]
        end, found, first = time.monotonic() + 30, None, 0
        while found is None and time.monotonic() < end:
            batch = run_batch(family, 0, range(first, first + 40), sides)
            found, first = next((f for f in batch.found if f.difference.kind == kind), None), first + 40
        assert found is not None, f"{first} programs did not meet the wrong {op}"
        small = shrunk(found, sides)
        assert small.difference.kind == kind
        assert small.program.steps <= 3, source(small.program)
        assert op.partition("_")[0] in source(small.program) or "-" in source(small.program)


FATAL = """
import os, sys, time
sys.path.insert(0, {root!r})
import corefw
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.registry import registry
from tests.fuzzing import run, workers
from tests.fuzzing.runs import Corefw

def fatal(input):
    {fault}

workers.PATIENCE, workers.ALONE = 2.0, 0.5
registry.add_backend(Backend("planted", "1", ("cpu",), {{"cpu": [Kernel("floor", fatal)]}}, priority=-7))
run.frameworks = lambda against: [Corefw("numpy"), Corefw("planted")]
sys.exit(run.main(["--only", "promotion", "--programs", "200", "--seconds", "60", "--against", "numpy"]))
"""


@pytest.mark.parametrize(("kind", "fault"), [("crash", "os.abort()"), ("hang", "time.sleep(60)")])
def test_a_kernel_that_ends_the_process_is_named(kind, fault):
    code = FATAL.format(root=str(ROOT), fault=fault)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"== 1. {kind}, planted and planted, " in done.stdout
    assert "floor" in done.stdout.partition("== 1.")[2].splitlines()[0]
    ran = int(done.stdout.rpartition(" programs on ")[0].rsplit("\n", 1)[-1])
    assert ran > 180, "the programs behind the one that ended the process were not run"


def test_a_process_that_dies_only_once_does_not_end_the_run(monkeypatch):
    first = Found(Difference("hang", ("c", "c"), 0, "?", UNSEEN), Program(()), "views", 0)
    again = Found(Difference("hang", ("c", "c"), 0, "floor", "c: hang"), Program(()), "views", 0)
    session = run.Session([Corefw("numpy")], 0, ["views"])
    dead = SimpleNamespace(task=("batch", "views", [0]), replace=lambda: (0, 0, "hang"))
    for found, counted in ((first, 0), (again, 1)):
        monkeypatch.setattr(run, "fatal", lambda *arguments, found=found: found)
        dead.task = ("batch", "views", [0])
        session._replace(dead)
        assert session.fatal == counted
    assert len(session.found) == 2


def test_a_worker_ends_while_another_holds_its_connection():
    code = """
import sys
sys.path.insert(0, {root!r})
from tests.fuzzing.runs import Corefw
from tests.fuzzing.workers import Worker

first, second = (Worker([Corefw("numpy")], 0) for _ in range(2))
first.close()
second.close()
print("ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", code.format(root=str(ROOT))], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "ended\n", done.stderr


# -- programs are data -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", FAMILIES)
def test_programs_are_reproducible_and_survive_a_file(family):
    guide = Corefw("numpy")
    for number in range(20):
        with guide.scope, np.errstate(all="ignore"):
            program, again = (grown(family, 3, number, guide).program() for _ in range(2))
        assert repr(program) == repr(again)
        assert repr(from_json(to_json(program, about="x"))[0]) == repr(program)


@pytest.mark.parametrize("family", FAMILIES)
def test_printed_programs_do_what_the_programs_do(family):
    guide, compared = Corefw("numpy"), 0
    for number in range(30):
        with guide.scope, np.errstate(all="ignore"):
            builder = grown(family, 5, number, guide)
        program = builder.program()
        if any(isinstance(p, Raised) for p in builder.run.pictures) or any("op:" in str(e) for e in program.entries):
            continue  # a printed program ends where an error is raised
        names: dict = {}
        with guide.scope, np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            corefw.manual_seed(0)
            exec(source(program), names)
        for at, (wanted, entry) in enumerate(zip(builder.run.finals, program.entries)):
            if isinstance(wanted, Picture) and f"v{at}" in names:
                found = guide.picture(names[f"v{at}"])
                assert found.dtype == wanted.dtype, entry
                assert found.array.shape == wanted.array.shape, entry
                assert near(found.array, wanted.array, found.dtype, 0), source(program)
                compared += 1
    assert compared > 20


def test_entries_that_depend_on_a_dropped_one_go_with_it():
    leaf = Leaf("float32", (2,), (1.0, 2.0))
    program = Program(
        (leaf, leaf, Step("neg", (Ref(0),)), Step("add", (Ref(1), Ref(1))), Step("mul", (Ref(2), Ref(3))))
    )
    assert program.without({0}).entries == (leaf, Step("add", (Ref(0), Ref(0))))
    assert program.without({3}).entries == (leaf, leaf, Step("neg", (Ref(0),)))


# -- what is fuzzed ----------------------------------------------------------------------------------------------------
#: ops that programs reach through others: parts of random functions, of casts, of reductions and of optimizers
PARTS = ("_at", "_step")
INNER = {
    *(
        "bernoulli_from",
        "poisson_from",
        "binomial_from",
        "standard_gamma",
        "standard_gamma_grad",
        "sample_dirichlet",
        "dirichlet_grad",
        "cast",
        "independent",
        "index_reduce_",
        "masked_dropout",
        "masked_dropout_backward",
        "distribute",
    ),
    *("total_norm", "unique_values", "select_backward"),
}


def test_every_op_is_drawn():
    """A new op is fuzzed without more ado, by its declaration or its row."""
    reached = {op.name for op, _ in drawable_ops()} | {case.op for case, _ in table()}
    reached |= {name.strip(".").replace(".", "_") for name in (*FUNCTIONS, *LIKE)}
    ops = {op.name for op in registry.declared.values() if not op.name.startswith(("empty", "new_empty"))}
    ops -= {op.name for op in registry.declared.values() if op.family in ("collective", "mersenne")}
    assert {name for name in ops - reached if not name.endswith(PARTS)} == INNER


def test_documented_differences_name_ops():
    named = documented.FACTORS | documented.RANDOM | documented.COMPARISONS | documented.TIES
    named |= documented.THEIR_GRADIENTS | documented.CONSTANT | documented.UNCOUNTED | documented.CONJUGATES
    named |= documented.IDENTITIES | documented.PRODUCTS
    spellings = ("{}", "{}_", "linalg_{}", "special_{}")
    assert {n for n in named if registry.declared.keys().isdisjoint(form.format(n) for form in spellings)} == set()


def test_errors_are_compared():
    """One side's error is a difference, both sides' is none; what follows from what is missing is missing."""
    program = Program((Leaf("float32", (2,), (1.0,)), Step("reshape", (Ref(0), (3,))), Step("neg", (Ref(1),))))
    run = run_in_scope(program, Corefw("numpy"))
    assert isinstance(run.pictures[1], Raised) and run.pictures[2] is MISSING
    assert differs(program, [Corefw("numpy"), Corefw("numpy")])[0] is None
    with planted("neg", np.negative) as other:
        other.private = None
        longer = Program((*program.entries[:1], Step("op:neg", (Ref(0),))))
        difference, _ = differs(longer, [Corefw("numpy"), other])
    assert difference is not None and difference.kind == "raises"
