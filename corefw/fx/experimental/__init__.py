"""Where libraries look for PyTorch's other ways to trace, none of which is here."""
