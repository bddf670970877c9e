"""The simulation of many ranks: its arithmetic against closed forms."""

import pytest

from benchmarks.distributed.simulation import (
    MB,
    Layer,
    Network,
    Profile,
    best_bucket,
    candidates,
    gather,
    halving,
    in_parts,
    memory,
    replicated,
    ring,
    tree,
)

NET = Network("test", alpha=0.5, bandwidth=100.0)
SLOW = Network("slow", alpha=0.5, bandwidth=1.0)
BUSY = Network("busy", alpha=0.5, bandwidth=100.0, busy=1.0)
#: two layers of 100 and 200 bytes, 1 + 2 seconds forward and 10 + 20 backward
TWO = Profile([Layer("a", "", 100, 1.0, 10.0), Layer("b", "", 200, 2.0, 20.0)], optimizer=4.0, other=3.0, states=600)
EACH = (1,)  # a bucket for each layer


def test_collectives():
    assert ring(400, 4, NET) == pytest.approx(6 * 0.5 + 6 * 1.0)
    assert tree(400, 4, NET) == pytest.approx(4 * (0.5 + 4.0)) and tree(400, 5, NET) == pytest.approx(6 * (0.5 + 4.0))
    assert halving(400, 4, NET) == pytest.approx(4 * 0.5 + 6.0)
    assert gather(400, 4, NET) == pytest.approx(2 * 0.5 + 3.0)
    assert ring(400, 2, NET) == halving(400, 2, NET) and ring(0, 2, NET) == tree(0, 2, NET) == 1.0
    # Rings lose to trees where there are many ranks, trees to rings where there are many bytes.
    assert ring(1, 4096, NET) > tree(1, 4096, NET) and ring(10**6, 8, NET) < tree(10**6, 8, NET)


def test_replicated():
    assert TWO.seconds == 40 and TWO.nbytes == 300 and TWO.times(2).seconds == 80
    # One bucket: nothing overlaps.
    assert replicated(TWO, 2, NET, (300,), ring) == pytest.approx(40 + ring(300, 2, NET))
    # A bucket each: the last layer's goes on under the first layer's backward.
    assert replicated(TWO, 2, NET, EACH, ring) == pytest.approx(40 + ring(100, 2, NET))
    # A slow network: all but the last layer's backward is hidden under it.
    slow = ring(200, 2, SLOW) + ring(100, 2, SLOW)
    assert replicated(TWO, 2, SLOW, EACH, ring) == pytest.approx(3 + 20 + slow + 7)
    # A processor that does all itself: nothing is hidden.
    assert replicated(TWO, 2, BUSY, EACH, ring) == pytest.approx(40 + ring(200, 2, NET) + ring(100, 2, NET))
    # A bucket is on its way when it has its size: here both layers are in one, and the first limit is for one bucket.
    assert replicated(TWO, 2, NET, (201,), ring) == replicated(TWO, 2, NET, (300,), ring)
    assert replicated(TWO, 2, NET, (200, 999), ring) == replicated(TWO, 2, NET, EACH, ring)


def test_in_parts():
    # One unit: gathered, kept until the backward, averaged at its end; each rank steps its part.
    assert in_parts(TWO, 2, NET) == pytest.approx(40 + 2 * gather(300, 2, NET) - 2)
    # Units of their own and a model around them, which comes first and last.
    units = Profile(
        [Layer("first", "", 100, 1.0, 10.0), Layer("b", "b", 200, 2.0, 20.0), Layer("last", "", 100, 1.0, 10.0)]
    )
    g, root = gather(200, 2, NET), gather(200, 2, NET)
    # b is gathered under the first layer's forward and the last one's backward, and averaged under the first's.
    assert in_parts(units, 2, NET) == pytest.approx(root + max(1, g) + 2 + 1 + max(10, g) + 20 + 10 + root)
    # A slow network: what is computed hides under what is sent.
    s = gather(200, 2, SLOW)
    assert in_parts(units, 2, SLOW) == pytest.approx(s + s + 2 + 1 + s + 20 + s + s)
    # A processor that does all itself: gathering three times and averaging twice.
    assert in_parts(units, 2, BUSY) == pytest.approx(44 + 5 * g)


def test_memory():
    whole, parts = memory(TWO, 4)
    assert whole == 3 * 300 + 600 and parts == (2 * 300 + 600) / 4 + 300
    units = Profile(
        [Layer("a", "a", 10, 0, 0), Layer("b", "b", 20, 0, 0), Layer("c", "c", 30, 0, 0), Layer("d", "", 5, 0, 0)]
    )
    assert memory(units, 2)[1] == 65 + 20 + 30 + 5


def test_buckets():
    layers = [Layer(str(i), "", MB, 0.01, 0.02) for i in range(16)]
    profile = Profile(layers)
    assert candidates(profile)[0] == MB // 16 and candidates(profile)[-1] == 16 * MB
    # Messages that cost their bytes alone go early; those that cost a second each go together.
    assert best_bucket(profile, [8], Network("bytes", 0.0, 100 * MB))[0] == MB
    assert best_bucket(profile, [8], Network("messages", 1.0, 1e15)) == (16 * MB, 1.0)
    chosen, regret = best_bucket(profile, [2, 64, 4096], Network("both", 1e-4, 200 * MB))
    assert MB <= chosen <= 16 * MB and 1 <= regret < 2
