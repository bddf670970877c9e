"""The graph that is recorded of computations: modes, nodes, views and in-place changes."""
