"""PyTorch's question about the processor."""

from corefw.processor import cpuinfo


def get_cpu_capability() -> str:
    """The widest vector instructions of the processor, by PyTorch's names: "AVX512", "AVX2", "DEFAULT" for others.

    >>> import corefw as torch
    >>> torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    True
    """
    there = cpuinfo("flags").split()
    return "AVX512" if "avx512f" in there else "AVX2" if "avx2" in there else "DEFAULT"
