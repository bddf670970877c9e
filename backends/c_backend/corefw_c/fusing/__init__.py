"""Fusions compiled where they run: their source in C, the compiler, the files that it leaves for the next process."""
