"""The test that holds every op to every property; run by its module name, with `corefw.testing.plugin`."""


def test_op(corefw_check):
    """One property of one row on one target."""
    corefw_check()
