"""Processes that step by themselves and average their parameters from time to time."""

from corefw.distributed.algorithms.model_averaging import averagers

__all__ = ["averagers"]
