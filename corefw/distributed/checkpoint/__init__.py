"""Checkpoints that several processes write and read together."""

from corefw.distributed.checkpoint import state_dict
from corefw.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from corefw.distributed.checkpoint.planners import DefaultLoadPlanner, DefaultSavePlanner
from corefw.distributed.checkpoint.saving import async_save, load_state_dict, save_state_dict
from corefw.distributed.checkpoint.storage import (
    CheckpointException,
    FileSystemReader,
    FileSystemWriter,
    load,
    save,
)
from corefw.refusals import refusing

__getattr__ = refusing(__name__)

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "TensorStorageMetadata",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
    "state_dict",
]
