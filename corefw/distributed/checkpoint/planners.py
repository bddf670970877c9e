"""What a program may say of how a checkpoint is written and read."""

from __future__ import annotations

from typing import Any


class _Planner:
    """A planner whose methods are not called: what is written and read follows from the state dict."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ != __name__:
            raise NotImplementedError(
                f"{cls.__name__}: planners cannot be changed, since there are no plans: what is written and read "
                "follows from the state dict; rename, leave out or convert entries there"
            )


def _refuse(name: str, **given: bool) -> None:
    if wrong := [option for option, is_wrong in given.items() if is_wrong]:
        raise NotImplementedError(f"{name}: {', '.join(wrong)} cannot be changed; leave it out")


class DefaultSavePlanner(_Planner):
    """Nested dicts become paths with dots, and what all processes have is written once, by the first.

    Args:
        flatten_state_dict, flatten_sharded_tensors: must be True.
        dedup_replicated_tensors, enable_plan_caching: without effect.
        dedup_save_to_lowest_rank: as it is in any case.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ):  # fmt: skip
        _refuse("DefaultSavePlanner", flatten_state_dict=not flatten_state_dict)


class DefaultLoadPlanner(_Planner):
    """Nested dicts become paths with dots.

    Args:
        flatten_state_dict, flatten_sharded_tensors: must be True.
        allow_partial_load: whether what the checkpoint lacks stays as it is; else it is an error.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ):
        _refuse("DefaultLoadPlanner", flatten_state_dict=not flatten_state_dict)
        self.allow_partial_load = allow_partial_load


def checked(what: str, planner: Any, kind: type[_Planner]) -> None:
    """Raise TypeError if something else was given as a planner."""
    if planner is not None and not isinstance(planner, kind):
        raise TypeError(f"distributed.checkpoint.{what}: planner must be a {kind.__name__}, but got {planner!r}")
