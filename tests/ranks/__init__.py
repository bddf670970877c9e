"""What several ranks do together, as functions of (rank, size) that each of them calls.

`tests/test_distributed.py` runs every one on threads, and on the processes of an MPI launcher by `python -m
tests.ranks`.
"""
