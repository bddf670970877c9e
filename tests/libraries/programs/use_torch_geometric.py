"""Graph networks: a dozen convolutions with gradients, sparse matrices, batches, pooling and training, node kinds."""

import tempfile

import torch
import torch.nn.functional as F
from common import fill, numbers, report
from torch_geometric import nn as gnn
from torch_geometric import transforms
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.utils import degree, scatter, softmax, subgraph, to_dense_adj, to_dense_batch, to_undirected

edges = to_undirected(torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2, 4], [1, 2, 3, 4, 5, 0, 3, 5, 1]]))
x, found = numbers(6, 5), {}


def mlp(before, after):
    return torch.nn.Sequential(torch.nn.Linear(before, after), torch.nn.ReLU(), torch.nn.Linear(after, after))


layers = {
    "gcn": gnn.GCNConv(5, 4),
    "gat": gnn.GATConv(5, 4, heads=2),
    "gatv2": gnn.GATv2Conv(5, 4, heads=2),
    "gin": gnn.GINConv(mlp(5, 4)),
    "graph": gnn.GraphConv(5, 4),
    "sage": gnn.SAGEConv(5, 4),
    "sage_max": gnn.SAGEConv(5, 4, aggr="max"),
    "sage_several": gnn.SAGEConv(5, 4, aggr=["mean", "std", "softmax", "median"]),
    "transformer": gnn.TransformerConv(5, 4, heads=2),
    "cheb": gnn.ChebConv(5, 4, 3),
    "edge": gnn.EdgeConv(mlp(10, 4)),
    "tag": gnn.TAGConv(5, 4),
}
for name, layer in layers.items():
    inputs = x.clone().requires_grad_()
    result = fill(layer)(inputs, edges)
    result.pow(2).sum().backward()
    found[name] = [result.flatten()[::5].tolist(), inputs.grad.flatten()[::7].tolist()]
adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (6, 6)).coalesce()
found["by_positions"] = layers["gcn"](x, adjacency.t())
found["by_rows"] = [layers[name](x, adjacency.to_sparse_csr()).tolist() for name in ("gcn", "sage", "sage_max")]

graphs = [
    Data(
        x=numbers(n, 5, seed=n), edge_index=to_undirected(torch.tensor([[0, 1, 2], [1, 2, 3]])), y=torch.tensor([n % 2])
    )
    for n in range(4, 12)
]


class Net(torch.nn.Module):
    """A network of graphs."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.pool = gnn.GCNConv(5, 8), gnn.BatchNorm(8), gnn.TopKPooling(8, 0.5)
        self.second, self.graph_norm, self.last = gnn.GraphConv(8, 8), gnn.GraphNorm(8), torch.nn.Linear(24, 2)

    def forward(self, x, edge_index, batch):
        x = F.relu(self.norm(self.first(x, edge_index)))
        x, edge_index, _, batch, _, _ = self.pool(x, edge_index, None, batch)
        x = F.relu(self.graph_norm(self.second(x, edge_index), batch))
        pools = (gnn.global_mean_pool, gnn.global_max_pool, gnn.global_add_pool)
        return self.last(torch.cat([pool(x, batch) for pool in pools], 1))


net, losses = fill(Net()), []
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for _ in range(3):
    for batch in DataLoader(graphs, batch_size=4):
        loss = F.cross_entropy(net(batch.x, batch.edge_index, batch.batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
together = Batch.from_data_list(graphs)
with tempfile.NamedTemporaryFile() as file:
    torch.save(together, file.name)
    found["saved"] = repr(torch.load(file.name, weights_only=False))
dense, mask = to_dense_batch(together.x, together.batch)
prepare = transforms.Compose([transforms.NormalizeFeatures(), transforms.AddSelfLoops()])
found["prepared"] = [part.tolist() for part in (lambda d: (d.x, d.edge_index))(prepare(Data(x.abs(), edges)))]
found["scattered"] = [
    scatter(x, torch.tensor([0, 1, 1, 2, 0, 2]), reduce=kind).tolist() for kind in ("sum", "mean", "max", "min", "mul")
]
kinds = HeteroData()
kinds["a"].x, kinds["b"].x = numbers(4, 3), numbers(5, 2)
kinds["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 1, 3, 4]])
kinds["b", "from", "a"].edge_index = torch.tensor([[0, 1, 3, 4], [0, 1, 2, 3]])
parts = {("a", "to", "b"): gnn.SAGEConv((3, 2), 4), ("b", "from", "a"): gnn.SAGEConv((2, 3), 4)}
of_kinds = fill(gnn.HeteroConv(parts))(kinds.x_dict, kinds.edge_index_dict)
report(
    **found, losses=losses, ptr=together.ptr, dense=dense.flatten()[::11], mask=mask, of_kinds=of_kinds["a"],
    adjacency=to_dense_adj(together.edge_index, together.batch).sum((1, 2)), degree=degree(edges[0]),
    soft=softmax(together.x[:, 0], together.batch), part=subgraph([0, 1, 2, 3], edges)[0],
    models=[fill(kind(5, 8, 3, 2, jk="cat"))(x, edges).tolist() for kind in (gnn.GAT, gnn.GraphSAGE, gnn.GIN)],
    relations=fill(gnn.RGCNConv(5, 4, 3, num_bases=2))(x, edges, torch.arange(edges.shape[1]) % 3),
)  # fmt: skip
