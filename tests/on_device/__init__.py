"""How `scripts/gpu` runs tests on a device: in several processes, followed from outside, with a summary."""
