"""The CuPy backend on a machine without a GPU, as the device "emulated".

The arrays are CuPy's own class over host memory, and the kernels are the CUDA sources, compiled as C++ over
emulator.h. What CuPy computes with NVIDIA's libraries or kernels of its own, NumPy computes here.
"""
