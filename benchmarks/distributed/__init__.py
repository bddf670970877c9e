"""Benchmarks of several processes: two ranks on this machine, with one thread each."""
