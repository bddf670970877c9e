"""A store that one process serves to all others over the network."""

from __future__ import annotations

import errno
import socket
import struct
import threading
import time
import weakref
from contextlib import suppress
from datetime import timedelta
from typing import Any

from corefw.distributed.errors import DistError, DistNetworkError, DistStoreError, QueueEmptyError
from corefw.distributed.stores.frames import packed, unpacked
from corefw.distributed.stores.store import Store
from corefw.distributed.stores.table import COMMANDS, Deadline, Table

_GREETING = b"corefw store 1\n"  # both sides begin with it, so that strangers are sent away
_SLACK = 5.0  # seconds for which an answer may be late before the connection counts as lost
_WAITING = 2048  # connections that may wait to be taken
_PAUSE = 0.05  # seconds between two attempts to reach the server
_INIT = "init/"  # the key that counts the processes
_ERRORS: dict[bytes, type[Exception]] = {b"late": DistStoreError, b"empty": QueueEmptyError, b"wrong": ValueError}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TIME = struct.Struct("<d")


class _Connection:
    """Frames over a socket."""

    def __init__(self, link: socket.socket):
        self._link = link
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def greet(self) -> bool:
        """Whether the other side is one of us."""
        self._link.sendall(_GREETING)
        return self._read(len(_GREETING)) == _GREETING

    def send(self, *fields: bytes) -> None:
        """A frame goes out."""
        self._link.sendall(packed(fields))

    def receive(self) -> list[bytes]:
        """The next frame; EOFError if the other side is gone."""
        return unpacked(self._read)

    def _read(self, count: int) -> bytes:
        parts = []
        while count:
            if not (part := self._link.recv(min(count, 1 << 20))):
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def patience(self, seconds: float | None) -> None:
        """How long to wait for the other side."""
        self._link.settimeout(seconds)

    def close(self) -> None:
        """No more."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._link.close()


class _Server:
    """Answers the commands of all processes, each connection in a thread.

    Args:
        listening: a socket that listens.
    """

    by_port: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()

    def __init__(self, listening: socket.socket):
        self.port = listening.getsockname()[1]
        table, links = Table(), weakref.WeakSet[_Connection]()
        self._finish = weakref.finalize(self, _close, listening, links)
        self._finish.atexit = False  # the others may still ask while this process ends
        threading.Thread(target=_accept, args=(listening, table, links), daemon=True, name="corefw store").start()


def _close(listening: socket.socket, links: weakref.WeakSet[_Connection]) -> None:
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    for link in list(links):
        link.close()


def _accept(listening: socket.socket, table: Table, links: weakref.WeakSet[_Connection]) -> None:
    with suppress(OSError):  # closed
        while True:
            link = _Connection(listening.accept()[0])
            links.add(link)
            threading.Thread(target=_serve, args=(link, table), daemon=True, name="corefw store").start()


def _serve(link: _Connection, table: Table) -> None:
    """Answer one process until it goes, or sends what no process of ours would."""
    try:
        link.patience(_SLACK)
        if not link.greet():
            return
        link.patience(None)
        while True:
            command, seconds, *fields = link.receive()
            if (name := command.decode(errors="replace")) not in COMMANDS:
                return
            link.send(*_answer(table, name, tuple(fields), _TIME.unpack(seconds)[0]))
    except (OSError, EOFError, ValueError, struct.error):
        pass
    finally:
        link.close()


def _answer(table: Table, command: str, fields: tuple[bytes, ...], timeout: float) -> list[bytes]:
    """What a command returns, after the word that says how it went."""
    try:
        return [b"done", *table.run(command, fields, timeout)]
    except (DistError, ValueError, TypeError) as error:
        word = next((word for word, kind in _ERRORS.items() if type(error) is kind), b"wrong")
        return [word, str(error).encode()]


class TCPStore(Store):
    """A store that one process serves to the others.

    Args:
        host_name: the host of the process that serves it. If that is this host's loopback, others cannot reach it.
        port: where it listens; with 0 the server takes a free one, see `port`.
        world_size: how many processes use it, the serving one included.
        is_master: whether this process serves it.
        timeout: how long to wait for the server, for the others, and for keys.
        wait_for_workers: whether the server waits until all processes are connected.
        multi_tenant: whether stores of this process with one port share a server.
        master_listen_fd: a socket that listens already, for the server.
        use_libuv: accepted for PyTorch's sake.

    Attributes: ``host``; ``port``.

    Raises:
        DistNetworkError: the port is taken, or the server cannot be reached in time.
        DistStoreError: the others did not come in time.

    >>> import corefw as torch
    >>> server = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True)
    >>> client = torch.distributed.TCPStore("127.0.0.1", server.port)
    >>> client.set("name", "value")
    >>> server.get("name")
    b'value'
    """

    libuvBackend = False

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.set_timeout(timeout)
        self.host, self._lock = host_name, threading.Lock()
        deadline = Deadline(timeout.total_seconds())
        self._server = _served(host_name, port, multi_tenant, master_listen_fd) if is_master else None
        self.port = self._server.port if self._server else port
        self._link = self._connected(deadline)
        weakref.finalize(self, self._link.close).atexit = False
        joined = self.add(_INIT, 1)
        if is_master and wait_for_workers and world_size is not None:
            while joined < world_size:
                if not deadline.left():
                    raise DistStoreError(
                        f"Timed out after {timeout.total_seconds():g} seconds waiting for clients. "
                        f"{joined}/{world_size} clients joined."
                    )
                time.sleep(_PAUSE)
                joined = self.add(_INIT, 0)

    def _connected(self, deadline: Deadline) -> _Connection:
        """A connection to the server, once it listens."""
        while True:
            try:
                link = _Connection(socket.create_connection((self.host, self.port), max(deadline.left(), _PAUSE)))
                try:
                    if link.greet():
                        return link
                except (OSError, EOFError):
                    link.close()
                    raise
                link.close()
                raise ValueError("another kind of server answers")
            except (OSError, EOFError, ValueError) as error:
                if not deadline.left() or isinstance(error, ValueError):
                    raise DistNetworkError(
                        f"TCPStore: no store can be reached at {self.host}:{self.port} ({error}); rank 0 serves it, "
                        "with is_master=True, and MASTER_ADDR and MASTER_PORT name it"
                    ) from error
                time.sleep(_PAUSE)

    def _do(self, command: str, fields: tuple[bytes, ...], timeout: float) -> list[bytes]:
        with self._lock:
            try:
                self._link.patience(timeout + _SLACK)
                self._link.send(command.encode(), _TIME.pack(timeout), *fields)
                word, *answer = self._link.receive()
            except (OSError, EOFError) as error:
                self._link.close()
                raise DistNetworkError(
                    f"TCPStore: the server at {self.host}:{self.port} is gone ({error or 'it closed the connection'}): "
                    "its process ended before the others"
                ) from error
        if word != b"done":
            raise _ERRORS[word](answer[0].decode(errors="replace"))
        return answer

    def list_keys(self) -> list[str]:
        """The keys that are there, but for the store's own."""
        return [key for key in super().list_keys() if key != _INIT]

    def clone(self) -> TCPStore:
        """Another connection to the same server."""
        made = TCPStore(self.host, self.port, timeout=self.timeout)
        made._server = self._server
        made.add(_INIT, -1)
        return made

    def __repr__(self) -> str:
        return f"TCPStore({self.host!r}, {self.port}{', is_master=True' if self._server else ''})"


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens: on all of this host's addresses, or on its loopback alone."""
    if host in _LOOPBACK:
        family: Any = socket.AF_INET6 if host == "::1" else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_WAITING)
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=_WAITING, dualstack_ipv6=True)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
    return socket.create_server(("", port), backlog=_WAITING)  # no IPv6 here


def _served(host: str, port: int, multi_tenant: bool, descriptor: int | None) -> _Server:
    """The server of a store of this process: on the loopback alone, if that is the host."""
    if multi_tenant and (found := _Server.by_port.get(port)):
        return found
    try:
        listening = _listening(host, port) if descriptor is None else socket.socket(fileno=descriptor)
    except OSError as error:
        raise DistNetworkError(f"TCPStore: the server cannot listen on port {port}: {error}") from error
    made = _Server(listening)
    if multi_tenant:
        _Server.by_port[made.port] = made
    return made
