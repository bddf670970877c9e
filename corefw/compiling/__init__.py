"""What stands behind `compile`: calls of kernels written down while they run, and run again without the frontend."""
