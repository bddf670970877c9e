"""Plans run in C: prepared calls of kernels, one after the other, without Python."""
