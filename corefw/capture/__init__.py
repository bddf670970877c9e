"""Capture: what a function computes, written down as a straight line of ops."""
