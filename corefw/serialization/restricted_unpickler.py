"""The restricted unpickler: a pickle machine that makes tensors and plain containers, and nothing else."""

from __future__ import annotations

import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING  # Python 2's names
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from struct import error as struct_error
from struct import unpack
from sys import getsizeof
from typing import IO, Any

from corefw.nn.parameter import Parameter
from corefw.serialization.allowance import take
from corefw.serialization.rebuild import _rebuild_from_type_v2
from corefw.serialization.safety import BLOCKED, FOUND, checked_key, is_callable, user_globals
from corefw.serialization.storages import StorageType
from corefw.tensor import Tensor

#: what Python raises when a pickle's program makes no sense
_NONSENSE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError),
    *(AssertionError, NotImplementedError, struct_error),
)
_MARK = object()
_DICTS = (dict, OrderedDict, Counter)
_ITEM = 64  # about the bytes that an item takes in the copy of a container


def _room(argument: Any) -> int:
    """About how many bytes a function may take that copies its argument."""
    if isinstance(argument, str | bytes | bytearray):
        return len(argument)
    return _ITEM * len(argument) if isinstance(argument, list | tuple | dict | set | frozenset) else 0


def _container(made: Any) -> Any:
    """A new container, whose memory is asked for: one byte of a pickle makes one of 216 bytes."""
    take(getsizeof(made), "the containers in the pickle")
    return made


class Unpickler:
    """Reads one pickle from a file without importing anything or calling anything unknown.

    Allowed are tensors, parameters, storages, dtypes, devices, sizes, numbers, text, bytes and plain containers, and
    what the user has called safe. Text opcodes of protocol 0, extension codes and out-of-band buffers are refused.

    Args:
        file: a binary file at the beginning of the pickle; it is left at its end.
        persistent_load: makes a storage from what the pickle says of it.
        encoding: of text that Python 2 wrote.
    """

    def __init__(self, file: IO[bytes], persistent_load: Callable[[Any], Any], encoding: str = "utf-8"):
        self._file, self._persistent_load, self._encoding = file, persistent_load, encoding
        self._safe = user_globals()
        self._safe_ids = {id(value) for value in self._safe.values()}
        self._memo: dict[int, Any] = {}
        self._stack: list[Any] = []
        self._outside = False  # whether an error is the persistent load's, and passes as it is

    def load(self) -> Any:
        """The object; UnpicklingError if it holds what is not allowed, or is damaged."""
        stack, actions = self._stack, _ACTIONS
        try:
            while True:
                code = self._read(1)
                if code == pickle.STOP:
                    return stack.pop()
                action = actions.get(code)
                if action is None:
                    raise UnpicklingError(f"Unsupported operand {code[0]}")
                action(self, stack)
        except UnpicklingError:
            raise
        except _NONSENSE as error:
            if self._outside:
                raise
            raise UnpicklingError(f"the pickle is damaged: {type(error).__name__}: {error}") from error

    # -- reading --------------------------------------------------------------------------------------------------
    def _read(self, count: int) -> bytes:
        content = self._file.read(count) if count <= 65536 else self._read_long(count)
        if len(content) < count:
            raise EOFError("it ends too early")
        return content

    def _read_long(self, count: int) -> bytes:
        """Read in pieces: the count may lie, and memory is taken for what is there only."""
        pieces = []
        while count:
            piece = self._file.read(min(count, 1 << 20))
            if not piece:
                break
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def _number(self, layout: str, size: int) -> Any:
        return unpack(layout, self._read(size))[0]

    def _pop_to_mark(self) -> list:
        stack = self._stack
        for position in range(len(stack) - 1, -1, -1):
            if stack[position] is _MARK:
                items = stack[position + 1 :]
                del stack[position:]
                return items
        raise IndexError("no mark on the stack")

    # -- what a restricted load decides -----------------------------------------------------------------------------
    def find_global(self, module: str, name: str) -> Any:
        """What stands for a global; UnpicklingError for one that is not allowed."""
        module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        full = f"{module}.{name}"
        if module.partition(".")[0] in BLOCKED:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        found = FOUND.get((module, name))
        if found is None:
            found = self._safe.get(full)
        if found is None:
            shown = name if module == "builtins" else full
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{shown}])` or the "
                f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global if you trust "
                "this class/function."
            )
        return found

    def call(self, function: Any, arguments: Any) -> Any:
        """``function(*arguments)``, if it may be called."""
        if not self._may_call(function):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function!r:.200}")
        if type(arguments) is not tuple:
            raise TypeError("the arguments of a call are no tuple")
        if function is _rebuild_from_type_v2:  # calls its first argument
            called = arguments[0]
            if called is function or not self._may_call(called):
                raise UnpicklingError(f"Trying to call reduce for unrecognized function {called!r:.200}")
        if id(function) not in self._safe_ids:  # the user's own may need what they like
            take(sum(map(_room, arguments)), f"what the pickle asks of {function.__name__}")
        return function(*arguments)

    def _may_call(self, function: Any) -> bool:
        return is_callable(function) or id(function) in self._safe_ids

    def make(self, kind: Any, arguments: tuple) -> Any:
        """A new object of class `kind`, if it may be made."""
        if kind is Parameter:
            data, *rest = arguments
            if not isinstance(data, Tensor):
                raise TypeError("a Parameter is made of a Tensor")
            return Parameter(data, *rest)
        if is_callable(kind):
            return self.call(kind, arguments)
        if id(kind) in self._safe_ids and isinstance(kind, type):
            return kind.__new__(kind, *arguments)
        raise UnpicklingError(
            "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
            f"{kind!r:.200}"
        )

    def build(self, instance: Any, state: Any) -> None:
        """Give an object its state, if it may have one."""
        kind = type(instance)
        if id(kind) in self._safe_ids:
            if hasattr(instance, "__setstate__"):
                instance.__setstate__(state)
                return
            attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            instance.__dict__.update(attributes or {})
            for name, value in (slots or {}).items():
                setattr(instance, name, value)
        elif kind is OrderedDict or kind is Tensor or kind is Parameter:
            if type(state) is not dict or not all(type(name) is str and name != "_grad" for name in state):
                raise TypeError(f"the state of a {kind.__name__} is no dict of attributes")
            take(_room(state), f"the attributes of a {kind.__name__}")
            instance.__dict__.update(state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{kind}"
            )

    def persistent(self, identity: Any) -> Any:
        """The storage that `identity` describes."""
        if type(identity) is not tuple or not identity:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(identity)}")
        self._outside = True
        found = self._persistent_load(identity)
        self._outside = False
        return found

    def set_items(self, target: Any, items: list) -> None:
        """Put alternating keys and values into a dictionary."""
        if type(target) not in _DICTS:
            raise UnpicklingError(
                f"Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        if len(items) % 2:
            raise IndexError("a key without a value")
        for key, value in zip(items[::2], items[1::2]):
            target[checked_key(key)] = value

    def extend(self, target: Any, items: list) -> None:
        """Append to a list."""
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.extend(items)

    def text(self, content: bytes) -> Any:
        """A string that Python 2 wrote."""
        return content if self._encoding == "bytes" else content.decode(self._encoding)


class Skimmer(Unpickler):
    """Runs over a pickle without making anything: what it would be refused, and what storages it refers to.

    Attributes: ``refused`` full names of globals that are not allowed; ``identities`` what the pickle says of storages.
    """

    def __init__(self, file: IO[bytes], encoding: str = "utf-8"):
        super().__init__(file, lambda identity: None, encoding)
        self.refused: list[str] = []
        self.identities: list[Any] = []

    def find_global(self, module, name):
        try:
            found = super().find_global(module, name)
        except UnpicklingError:
            self.refused.append(f"{module}.{name}")
            return None
        return found if isinstance(found, StorageType) else None

    def call(self, function, arguments):
        return None

    make = build = call

    def set_items(self, target, items):
        pass

    def extend(self, target, items):
        pass

    def persistent(self, identity):
        self.identities.append(identity)
        return None


# -- one function per opcode ------------------------------------------------------------------------------------------
_ACTIONS: dict[bytes, Callable[[Unpickler, list], None]] = {}


def _on(*codes: bytes) -> Callable[[Callable], Callable]:
    def register(action: Callable) -> Callable:
        _ACTIONS.update(dict.fromkeys(codes, action))
        return action

    return register


def _pushing(code: bytes, value: Callable[[Unpickler], Any]) -> None:
    _ACTIONS[code] = lambda machine, stack: stack.append(value(machine))


_pushing(pickle.MARK, lambda m: _MARK)
_pushing(pickle.NONE, lambda m: None)
_pushing(pickle.NEWTRUE, lambda m: True)
_pushing(pickle.NEWFALSE, lambda m: False)
_pushing(pickle.EMPTY_TUPLE, lambda m: ())
_pushing(pickle.EMPTY_LIST, lambda m: _container([]))
_pushing(pickle.EMPTY_DICT, lambda m: _container({}))
_pushing(pickle.EMPTY_SET, lambda m: _container(set()))
_pushing(pickle.BININT, lambda m: m._number("<i", 4))
_pushing(pickle.BININT1, lambda m: m._number("<B", 1))
_pushing(pickle.BININT2, lambda m: m._number("<H", 2))
_pushing(pickle.BINFLOAT, lambda m: m._number(">d", 8))
_pushing(pickle.LONG1, lambda m: pickle.decode_long(m._read(m._number("<B", 1))))
_pushing(pickle.LONG4, lambda m: pickle.decode_long(m._read(m._number("<I", 4))))
_pushing(pickle.SHORT_BINUNICODE, lambda m: str(m._read(m._number("<B", 1)), "utf-8", "surrogatepass"))
_pushing(pickle.BINUNICODE, lambda m: str(m._read(m._number("<I", 4)), "utf-8", "surrogatepass"))
_pushing(pickle.BINUNICODE8, lambda m: str(m._read(m._number("<Q", 8)), "utf-8", "surrogatepass"))
_pushing(pickle.SHORT_BINBYTES, lambda m: m._read(m._number("<B", 1)))
_pushing(pickle.BINBYTES, lambda m: m._read(m._number("<I", 4)))
_pushing(pickle.BINBYTES8, lambda m: m._read(m._number("<Q", 8)))
_pushing(pickle.BYTEARRAY8, lambda m: bytearray(m._read(m._number("<Q", 8))))
_pushing(pickle.SHORT_BINSTRING, lambda m: m.text(m._read(m._number("<B", 1))))
_pushing(pickle.BINSTRING, lambda m: m.text(m._read(m._number("<I", 4))))
_pushing(pickle.BINGET, lambda m: m._memo[m._number("<B", 1)])
_pushing(pickle.LONG_BINGET, lambda m: m._memo[m._number("<I", 4)])
_pushing(pickle.TUPLE, lambda m: _container(tuple(m._pop_to_mark())))
_pushing(pickle.LIST, lambda m: _container(m._pop_to_mark()))
_pushing(pickle.FROZENSET, lambda m: _container(frozenset(map(checked_key, m._pop_to_mark()))))
_pushing(pickle.BINPERSID, lambda m: m.persistent(m._stack.pop()))


@_on(pickle.PROTO)
def _protocol(machine, stack):
    version = machine._number("<B", 1)
    if not 2 <= version <= pickle.HIGHEST_PROTOCOL:
        raise UnpicklingError(f"unsupported pickle protocol: {version}")


@_on(pickle.FRAME)
def _frame(machine, stack):
    machine._read(8)  # its length, of no use here


def _short_tuple(count: int) -> Callable:
    def action(machine, stack):
        if len(stack) < count:
            raise IndexError("too few items for a tuple")
        stack[-count:] = [_container(tuple(stack[-count:]))]

    return action


_ACTIONS.update(zip((pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3), map(_short_tuple, (1, 2, 3))))


@_on(pickle.POP)
def _pop(machine, stack):
    stack.pop()


@_on(pickle.POP_MARK)
def _pop_mark(machine, stack):
    machine._pop_to_mark()


@_on(pickle.BINPUT)
def _put(machine, stack):
    machine._memo[machine._number("<B", 1)] = stack[-1]


@_on(pickle.LONG_BINPUT)
def _long_put(machine, stack):
    machine._memo[machine._number("<I", 4)] = stack[-1]


@_on(pickle.MEMOIZE)
def _memoize(machine, stack):
    machine._memo[len(machine._memo)] = stack[-1]


@_on(pickle.GLOBAL)
def _global(machine, stack):
    module, name = (machine._file.readline(1000)[:-1].decode("utf-8") for _ in range(2))
    stack.append(machine.find_global(module, name))


@_on(pickle.STACK_GLOBAL)
def _stack_global(machine, stack):
    name, module = stack.pop(), stack.pop()
    if type(name) is not str or type(module) is not str:
        raise TypeError("STACK_GLOBAL requires str")
    stack.append(machine.find_global(module, name))


@_on(pickle.REDUCE)
def _reduce(machine, stack):
    arguments, function = stack.pop(), stack.pop()
    stack.append(machine.call(function, arguments))


@_on(pickle.NEWOBJ)
def _new_object(machine, stack):
    arguments, kind = stack.pop(), stack.pop()
    stack.append(machine.make(kind, arguments))


@_on(pickle.BUILD)
def _build(machine, stack):
    state = stack.pop()
    machine.build(stack[-1], state)


@_on(pickle.APPEND)
def _append(machine, stack):
    item = stack.pop()
    machine.extend(stack[-1], [item])


@_on(pickle.APPENDS)
def _appends(machine, stack):
    items = machine._pop_to_mark()
    machine.extend(stack[-1], items)


@_on(pickle.SETITEM)
def _set_item(machine, stack):
    value, key = stack.pop(), stack.pop()
    machine.set_items(stack[-1], [key, value])


@_on(pickle.SETITEMS)
def _set_items(machine, stack):
    items = machine._pop_to_mark()
    machine.set_items(stack[-1], items)


@_on(pickle.ADDITEMS)
def _add_items(machine, stack):
    items = machine._pop_to_mark()
    if type(stack[-1]) is not set:
        raise UnpicklingError(f"Can only add to sets, but got {type(stack[-1])}")
    stack[-1].update(map(checked_key, items))
