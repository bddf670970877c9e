"""Dispatch: the op registry, the generated hot path, runtimes, plugins and modes."""
