"""The conformance kit: what an op or a backend must satisfy, usable by any plugin author."""

from corefw.testing.cases import Case

__all__ = ["Case"]
