"""Stores: where the processes of a job leave words for each other before they are joined."""

from corefw.distributed.stores.file_store import FileStore
from corefw.distributed.stores.store import HashStore, PrefixStore, Store
from corefw.distributed.stores.tcp_store import TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
