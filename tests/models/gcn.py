"""A graph convolutional network over a dense adjacency matrix (Kipf & Welling, 2016)."""

import numpy as np

from tests.models import fit

NODES, FEATURES, CLASSES = 30, 8, 3
STEPS, FACTOR = 30, 0.3


def build(torch, dropout=0.2):
    nn, F = torch.nn, torch.nn.functional

    class GraphConvolution(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(in_features, out_features))
            self.bias = nn.Parameter(torch.zeros(out_features))
            nn.init.xavier_uniform_(self.weight)

        def forward(self, x, adjacency):
            return torch.mm(adjacency, torch.mm(x, self.weight)) + self.bias

    class GCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.gc1 = GraphConvolution(FEATURES, 16)
            self.gc2 = GraphConvolution(16, CLASSES)

        def forward(self, x, edges):
            adjacency = torch.zeros(len(x), len(x), dtype=x.dtype)
            adjacency[edges[0], edges[1]] = 1
            adjacency = torch.maximum(adjacency, adjacency.T) + torch.eye(len(x), dtype=x.dtype)
            scale = adjacency.sum(1).rsqrt()
            adjacency = scale[:, None] * adjacency * scale
            x = F.dropout(F.relu(self.gc1(x, adjacency)), dropout, training=self.training)
            return F.log_softmax(self.gc2(x, adjacency), dim=1)

    return GCN()


def arrays(rng):
    """Features, edges mostly within communities, communities, and which nodes' communities are told."""
    community = np.arange(NODES) % CLASSES
    within = community[:, None] == community
    edges = np.argwhere(np.triu(rng.random((NODES, NODES)) < np.where(within, 0.4, 0.03), 1)).T
    features = rng.standard_normal((NODES, FEATURES)).astype(np.float32)
    return features, edges, community, np.arange(NODES) < NODES // 2


def evaluate(torch, model, features, edges, community, told):
    output = model(features, edges)
    return torch.nn.functional.nll_loss(output[told], community[told]), output


def train(torch, model, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=5e-4)
    return fit(torch, model, evaluate, optimizer, batch)
