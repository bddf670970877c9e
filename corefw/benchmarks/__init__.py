"""What is measured to compare backends, with each other and with PyTorch: ops, training steps, and the cost of a call.

A row is a function that is given a module with PyTorch's API, makes its inputs there, and returns what is to be timed:
a function without arguments.
"""
