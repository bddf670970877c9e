"""The older name of the state dicts of `hub`."""

from corefw.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
