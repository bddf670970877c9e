"""Saving and loading: PyTorch's checkpoint files in both directions, and safetensors files."""

from corefw.serialization.checkpoint import DEFAULT_PROTOCOL, File, get_unsafe_globals_in_checkpoint, load, save
from corefw.serialization.locations import MapLocation
from corefw.serialization.safetensors import load_file, save_file
from corefw.serialization.safety import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

#: PyTorch's names of the types of arguments
MAP_LOCATION = MapLocation
FILE_LIKE = File

__all__ = [
    "DEFAULT_PROTOCOL",
    "MAP_LOCATION",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "load_file",
    "safe_globals",
    "save",
    "save_file",
]
