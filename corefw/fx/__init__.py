"""Graphs of programs: tracing modules and functions, reading and changing what they do, and running it again.

>>> import corefw as torch
>>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()))
>>> [node.op for node in traced.graph.nodes]
['placeholder', 'call_module', 'call_module', 'output']
"""

from corefw.fx import immutable_collections, traceback
from corefw.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from corefw.fx.graph import CodeGen, Graph
from corefw.fx.graph_module import GraphModule
from corefw.fx.interpreter import Interpreter, Transformer
from corefw.fx.node import Node, has_side_effect, map_arg
from corefw.fx.proxy import Proxy
from corefw.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "traceback",
    "wrap",
]
