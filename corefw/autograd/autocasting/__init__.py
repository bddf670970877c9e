"""Casting of ops: what `amp.autocast` is made of."""
