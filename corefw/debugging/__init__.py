"""Finding faults of kernels inside of real programs."""
