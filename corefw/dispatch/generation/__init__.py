"""The generator: from an op's declaration to the source of its functions, compiled on their first call."""
