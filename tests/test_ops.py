"""Every property of every op, on every backend: one test per row of corefw/testing/cases, property and target, and per
behaviour."""

from corefw.testing.conformance import test_op
from tests import loopback

loopback.install()

__all__ = ["test_op"]
