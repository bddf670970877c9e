"""Tests of CUDA graphs: capturing, and comparing what replays give."""

import corefw as torch


def captured(function, **options):
    """A graph of `function`, and what that returned."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):
        result = function()
    return graph, result


def bits(tensor):
    """The bytes of the elements."""
    return tensor.detach().cpu().array.tobytes()
