"""Checkpoints that several processes write and read together."""

from corefw.distributed.checkpoint import state_dict
from corefw.distributed.checkpoint.storage import (
    CheckpointException,
    FileSystemReader,
    FileSystemWriter,
    load,
    save,
)

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "load", "save", "state_dict"]
