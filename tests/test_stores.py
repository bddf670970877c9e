"""Stores: what every kind answers, also to several threads at once, and what the served one refuses."""

import gc
import os
import socket
import struct
import sys
import threading
import time
from datetime import timedelta

import pytest

import corefw.distributed as dist
from corefw.distributed.stores import frames

SHORT = timedelta(seconds=0.05)


def tcp(path):
    return dist.TCPStore("127.0.0.1", 0, is_master=True)


KINDS = {
    "hash": lambda path: dist.HashStore(),
    "prefix": lambda path: dist.PrefixStore("a", dist.PrefixStore("b", dist.HashStore())),
    "file": lambda path: dist.FileStore(str(path / "store"), 1),
    "tcp": tcp,
    "prefix over tcp": lambda path: dist.PrefixStore("a", tcp(path)),
}


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    return KINDS[request.param](tmp_path)


def test_keys_and_values(store):
    assert isinstance(store, dist.Store)
    own = store.num_keys()
    store.set("a", "text")
    store.set("b", b"\xff\0")
    assert (store.get("a"), store.get("b"), store.num_keys()) == (b"text", b"\xff\0", own + 2)
    assert store.check([]) and store.check(["a", "b"]) and not store.check(["a", "c"])
    assert (store.add("n", 2), store.add("n", -5), store.get("n")) == (2, -3, b"-3")
    store.append("b", "1")
    store.append("c", "2")
    assert (store.get("b"), store.get("c")) == (b"\xff\x001", b"2")
    store.multi_set(["x", "y"], ["1", b""])
    assert store.multi_get(["y", "x"]) == [b"", b"1"]
    assert (store.delete_key("x"), store.delete_key("x"), store.check(["x"])) == (True, False, False)
    assert sorted(store.list_keys()) == ["a", "b", "c", "n", "y"]
    assert store.has_extended_api()


def test_compare_and_set(store):
    assert store.compare_set("key", "other", "new") == b"other" and not store.check(["key"])
    assert store.compare_set("key", "", "first") == b"first"
    assert store.compare_set("key", "other", "new") == b"first"
    assert store.compare_set("key", "first", "second") == store.get("key") == b"second"


def test_queues(store):
    store.queue_push("q", "1")
    store.queue_push("q", b"2")
    assert (store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q", False), store.queue_len("q")) == (
        2, b"1", b"2", 0,
    )  # fmt: skip
    with pytest.raises(dist.QueueEmptyError, match="empty"):
        store.queue_pop("q", block=False)
    store.set_timeout(SHORT)
    with pytest.raises(dist.DistStoreError, match="wait timeout"):
        store.queue_pop("q")


def test_what_does_not_come_in_time(store):
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    with pytest.raises(dist.DistStoreError, match=r"wait timeout after 50ms, keys: .*missing"):
        store.get("missing")
    start = time.monotonic()
    with pytest.raises(dist.DistStoreError):
        store.wait(["missing"], timedelta(seconds=0.01))
    assert time.monotonic() - start < 2
    store.set("there", "")
    store.wait(["there"])


def test_wrong_arguments(store):
    store.set("word", "x")
    with pytest.raises(ValueError, match="not a number"):
        store.add("word", 1)
    with pytest.raises(ValueError, match="2 keys, but 1 values"):
        store.multi_set(["a", "b"], ["1"])
    with pytest.raises(TypeError, match="str or bytes, but got int"):
        store.set("a", 1)
    with pytest.raises(TypeError, match="timedelta"):
        store.set_timeout(1)
    assert store.get("word") == b"x"


@pytest.mark.parametrize("kind", ["hash", "file", "tcp"])
def test_threads_see_each_other(kind, tmp_path):
    first = KINDS[kind](tmp_path)
    others = {
        "hash": lambda: first,
        "file": lambda: dist.FileStore(str(tmp_path / "store")),
        "tcp": lambda: dist.TCPStore("127.0.0.1", first.port),
    }[kind]
    found = []

    def work():
        own = others()
        for _ in range(20):
            own.add("count", 1)
        found.append(own.get("word"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    first.set("word", "here")
    for thread in threads:
        thread.join(10)
    assert found == [b"here"] * 4 and first.get("count") == b"80"


def test_files_outlive_a_torn_write_and_go_with_their_last_process(tmp_path):
    path = tmp_path / "store"
    first, second = (dist.FileStore(str(path), 2) for _ in range(2))
    first.set("a", "1")
    with open(path, "ab") as file:
        file.write(struct.pack("<II", 3, 3) + b"set")  # a process ended in the middle
    assert second.get("a") == b"1" and second.add("n", 1) == 1 and first.get("n") == b"1"
    del first
    gc.collect()
    assert path.exists() and second.num_keys() == 2
    del second
    gc.collect()
    assert not path.exists()
    (tmp_path / "other").write_bytes(b"\1\0\0\0\4\0\0\0evil")
    with pytest.raises(ValueError, match="not the file of a store"):
        dist.FileStore(str(tmp_path / "other"))


def test_servers(tmp_path):
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)
    assert (server.host, server.num_keys()) == ("127.0.0.1", 1) and server.port > 0
    server.set("a", "1")
    assert server.clone().get("a") == b"1" and server.num_keys() == 2
    with pytest.raises(dist.DistNetworkError, match=f"cannot listen on port {server.port}"):
        dist.TCPStore("127.0.0.1", server.port, is_master=True)
    again = dist.TCPStore("127.0.0.1", server.port, is_master=True, multi_tenant=True)
    assert again.get("a") == b"1"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        handed = dist.TCPStore("127.0.0.1", 0, is_master=True, master_listen_fd=os.dup(listening.fileno()))
        assert handed.port == listening.getsockname()[1] and handed.add("n", 1) == 1


@pytest.mark.parametrize("has_both", [True, False])
def test_servers_for_other_hosts_listen_everywhere(monkeypatch, has_both):
    if not has_both:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    name = socket.gethostname()
    server = dist.TCPStore(name, 0, is_master=True)
    assert dist.TCPStore("127.0.0.1", server.port).add("n", 1) == 1 and server.get("n") == b"1"
    with pytest.raises(dist.DistNetworkError, match="cannot listen"):
        dist.TCPStore(name, server.port, is_master=True, timeout=SHORT)


def test_waiting_for_workers():
    with pytest.raises(dist.DistStoreError, match=r"1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, SHORT)
    server = dist.TCPStore("127.0.0.1", 0, 2, True, SHORT, wait_for_workers=False)
    dist.TCPStore("127.0.0.1", server.port, 2).set("a", "1")
    assert server.get("a") == b"1"


def test_a_server_that_is_not_there_or_goes():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        free = listening.getsockname()[1]
    with pytest.raises(dist.DistNetworkError, match=rf"no store can be reached at 127\.0\.0\.1:{free}"):
        dist.TCPStore("127.0.0.1", free, timeout=SHORT)
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    client = dist.TCPStore("127.0.0.1", server.port)
    del server
    gc.collect()
    with pytest.raises(dist.DistNetworkError, match="is gone"):
        client.get("a")


HOSTILE = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "many fields": b"corefw store 1\n" + struct.pack("<I", 0xFFFFFFFF),
    "a large field": b"corefw store 1\n" + struct.pack("<II", 3, 0xFFFFFFFF),
    "large fields": b"corefw store 1\n" + struct.pack("<II", 2, frames.SIZE + 1),
    "no command": b"corefw store 1\n" + frames.packed([]),
    "an unknown command": b"corefw store 1\n" + frames.packed([b"__init__", struct.pack("<d", 1.0)]),
    "a private name": b"corefw store 1\n" + frames.packed([b"answer", struct.pack("<d", 1.0), b"get"]),
    "no timeout": b"corefw store 1\n" + frames.packed([b"get", b"x", b"y"]),
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE)
def test_strangers_are_sent_away(sent):
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with socket.create_connection(("127.0.0.1", server.port), 5) as link:
        link.sendall(sent)
        received = b""
        while part := link.recv(100):
            received += part
    assert received in (b"", b"corefw store 1\n")
    server.set("a", "1")
    assert server.get("a") == b"1"


def test_wrong_numbers_of_fields_are_told():
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(ValueError, match="argument"):
        server._ask("set", b"a")
    with pytest.raises(ValueError, match="at most"):
        server.multi_set(["a"] * frames.FIELDS, ["b"] * frames.FIELDS)
    with pytest.raises(ValueError, match=f"{frames.SIZE + 1} bytes"):
        frames.packed([b"x" * (frames.SIZE + 1)])
    assert server.add("a", 1) == 1


# -- addresses --------------------------------------------------------------------------------------------------------
def test_addresses(tmp_path, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path / 'meet'}?rank=1&world_size=3"))
    assert isinstance(store, dist.FileStore) and (rank, size) == (1, 3)
    store, rank, size = next(dist.rendezvous("tcp://127.0.0.1:0", 0, 1, timeout=SHORT))
    assert isinstance(store, dist.TCPStore) and (rank, size, store.timeout) == (0, 1, SHORT)
    with pytest.raises(ValueError, match="variable RANK expected"):
        next(dist.rendezvous("env://"))
    with pytest.raises(ValueError, match="variable MASTER_ADDR expected"):
        next(dist.rendezvous("env://", 0, 1))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "0")
    assert next(dist.rendezvous("env://?rank=0&world_size=1"))[1:] == (0, 1)
    for url, told in (("tcp://127.0.0.1", "port number"), ("tcp://a:1", "rank"), ("file:///a?rank=1", "world_size")):
        with pytest.raises(ValueError, match=f"{told}.* missing"):
            next(dist.rendezvous(url))


def test_addresses_of_ones_own(monkeypatch):
    monkeypatch.setattr(sys.modules[dist.rendezvous.__module__], "_handlers", {})
    with pytest.raises(RuntimeError, match="No rendezvous handler for mine://"):
        next(dist.rendezvous("mine://"))

    def handler(url, **keywords):
        yield dist.HashStore(), *keywords.values()

    dist.register_rendezvous_handler("mine", handler)
    assert next(dist.rendezvous("mine://", 2, 4))[1:] == (2, 4)
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler("mine", handler)
