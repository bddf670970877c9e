"""What layers, data loaders and programs draw with PyTorch's random numbers, beside PyTorch."""

import numpy as np
import pytest

import corefw
from tests.parity import import_torch

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True"),  # PyTorch's, of its own Transformer
]


@pytest.fixture(autouse=True)
def as_pytorch():
    with corefw.random.use("mt19937"):
        yield


def compare(torch, program, rtol=0.0, atol=0.0):
    """Run a program on both and compare the arrays that it gives, and the number that is drawn next."""
    results = []
    for library in (corefw, torch):
        library.manual_seed(2**33 + 11)
        made = [np.asarray(x.detach() if hasattr(x, "detach") else x) for x in program(library)]
        results.append([*made, library.rand(1).numpy()])
    assert len(results[0]) == len(results[1])
    for made, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(made, wanted, rtol, atol)


LAYERS = (
    ("Linear", (7, 5), {}),
    ("Bilinear", (3, 4, 5), {}),
    ("Conv1d", (4, 6, 3), {}),
    ("Conv2d", (4, 6, 3), {"groups": 2}),
    ("Conv3d", (4, 6, 3), {}),
    ("ConvTranspose1d", (4, 6, 3), {}),
    ("ConvTranspose2d", (4, 6, 3), {}),
    ("ConvTranspose3d", (4, 6, 3), {}),
    ("Embedding", (10, 6), {"padding_idx": 2}),
    ("EmbeddingBag", (10, 6), {}),
    ("BatchNorm1d", (3,), {}),
    ("BatchNorm2d", (3,), {}),
    ("BatchNorm3d", (3,), {}),
    ("SyncBatchNorm", (3,), {}),
    ("InstanceNorm1d", (3,), {"affine": True}),
    ("InstanceNorm2d", (3,), {"affine": True}),
    ("InstanceNorm3d", (3,), {"affine": True}),
    ("LayerNorm", ((4, 5),), {}),
    ("GroupNorm", (2, 4), {}),
    ("RMSNorm", (5,), {}),
    ("PReLU", (3,), {}),
    ("RNN", (4, 6, 2), {"bidirectional": True}),
    ("LSTM", (4, 6, 2), {"proj_size": 3}),
    ("GRU", (4, 6), {}),
    ("RNNCell", (4, 6), {}),
    ("LSTMCell", (4, 6), {}),
    ("GRUCell", (4, 6), {}),
    ("MultiheadAttention", (8, 2), {}),
    ("MultiheadAttention", (8, 2), {"kdim": 4, "vdim": 5, "add_bias_kv": True}),
    ("TransformerEncoderLayer", (8, 2, 16), {}),
    ("TransformerDecoderLayer", (8, 2, 16), {}),
    ("Transformer", (8, 2, 2, 2, 16), {}),
    ("AdaptiveLogSoftmaxWithLoss", (32, 20, [5, 10]), {}),
    ("LinearCrossEntropyLoss", (8, 5), {}),
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "arguments", "options"), LAYERS)
def test_layers_begin_as_pytorchs(name, arguments, options, dtype):
    def state(torch):
        layer = getattr(torch.nn, name)(*arguments, **options, dtype=getattr(torch, dtype))
        return layer.state_dict().values()

    if not hasattr(corefw.nn, name):
        pytest.fail(f"corefw.nn has no {name}")
    compare(import_torch(), state)


def test_no_layer_with_parameters_is_left_out():
    torch = import_torch()
    listed = {name for name, _, _ in LAYERS}
    missed = []
    for name, layer in vars(torch.nn).items():
        if isinstance(layer, type) and issubclass(layer, torch.nn.Module) and name not in listed:
            for arguments in ((), (4,), (4, 4), (4, 4, 4)):
                try:
                    parameters = list(layer(*arguments).parameters())
                except Exception:
                    continue
                missed += [name] if parameters else []
                break
    assert [name for name in missed if not name.startswith(("Lazy", "RNNBase"))] == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("uniform_", {}),
        ("normal_", {}),
        ("trunc_normal_", {}),
        ("trunc_normal_", {"std": 0.02}),
        ("trunc_normal_", {"mean": 0.5, "std": 0.3, "a": 1.05, "b": 2.0}),
        ("xavier_uniform_", {}),
        ("xavier_normal_", {}),
        ("kaiming_uniform_", {"a": 5**0.5}),
        ("kaiming_normal_", {"nonlinearity": "relu", "mode": "fan_out"}),
        ("sparse_", {"sparsity": 0.3}),
        ("orthogonal_", {}),
    ],
)
def test_initialisers(name, options):
    def program(torch):
        yield getattr(torch.nn.init, name)(torch.empty(6, 20), **options)
        yield getattr(torch.nn.init, name)(torch.empty(5, 3), **options)

    compare(import_torch(), program, atol=1e-6 if name == "orthogonal_" else 0)


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_dropouts(p):
    x = np.random.default_rng(0).standard_normal((3, 4, 5, 6)).astype(np.float32)

    def program(torch):
        functional, input = torch.nn.functional, torch.tensor(x)
        for inplace in (False, True):
            for name in ("dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"):
                yield getattr(functional, name)(input.clone(), p, training=True, inplace=inplace)
        yield functional.dropout1d(input[0], p)
        yield functional.dropout3d(input[None], p)
        yield functional.dropout(input.permute(2, 0, 3, 1), p)
        yield functional.dropout(input.to(memory_format=torch.channels_last), p)
        yield functional.dropout(input[:, ::2], p)
        yield torch.nn.Sequential(torch.nn.Dropout(p), torch.nn.Dropout2d(p), torch.nn.AlphaDropout(p))(input)

    compare(import_torch(), program)


@pytest.mark.parametrize("first", [False, True])
def test_dropout_inside_of_layers(first):
    x = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)

    def program(torch):
        nn, input = torch.nn, torch.tensor(x)
        yield nn.functional.scaled_dot_product_attention(input, input, input, dropout_p=0.2, is_causal=first)
        for name in ("RNN", "LSTM", "GRU"):
            yield getattr(nn, name)(6, 4, 3, dropout=0.3, batch_first=first)(input)[0]
        attention = nn.MultiheadAttention(6, 2, dropout=0.3, batch_first=first)
        yield attention(input, input, input)[0]
        yield attention(input, input, input, need_weights=False)[0]
        yield nn.Transformer(6, 2, 1, 1, 8, dropout=0.3, batch_first=first)(input, input)

    compare(import_torch(), program, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_orders_of_data(given, workers):
    def program(torch):
        data = torch.utils.data
        generator = torch.Generator().manual_seed(5) if given else None
        parts = data.random_split(range(50), [20, 30], generator)
        yield from ([*part] for part in parts)
        loader = data.DataLoader(range(50), 8, shuffle=True, num_workers=workers, generator=generator)
        for _ in range(2):
            yield np.concatenate([batch.numpy() for batch in loader])
        yield [*data.RandomSampler(range(20), True, 45, generator)]
        yield [*data.RandomSampler(range(20), False, 45, generator)]
        yield [*data.SubsetRandomSampler(range(20), generator)]
        yield [*data.WeightedRandomSampler([0.1, 0.2, 0.7], 20, generator=generator)]

    compare(import_torch(), program)


@pytest.mark.parametrize(
    ("name", "parameters", "tolerance"),
    [
        ("Normal", (0.5, 2.0), 0),
        ("Uniform", (0.5, 2.0), 0),
        ("Exponential", (2.0,), 0),
        ("Cauchy", (0.5, 2.0), 0),
        ("Bernoulli", (0.3,), 0),
        ("Geometric", (0.3,), 0),
        ("LogNormal", (0.5, 0.4), 1e-6),
        ("Laplace", (0.5, 2.0), 1e-6),
        ("Weibull", (1.5, 2.0), 1e-6),
    ],
)
def test_distributions(name, parameters, tolerance):
    def program(torch):
        yield getattr(torch.distributions, name)(*(torch.full((20,), x) for x in parameters)).sample((3,))
        yield torch.distributions.Categorical(torch.tensor([0.1, 0.2, 0.7])).sample((9,))

    compare(import_torch(), program, rtol=tolerance)


def test_states_go_both_ways():
    torch = import_torch()
    torch.manual_seed(3)
    torch.randn(3), torch.rand(700)
    corefw.set_rng_state(corefw.from_numpy(torch.get_rng_state().numpy()))
    assert corefw.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()
    assert corefw.randn(5).tolist() == torch.randn(5).tolist() and corefw.initial_seed() == 3
    torch.set_rng_state(torch.from_numpy(corefw.get_rng_state().numpy()))
    assert corefw.randn(40).tolist() == torch.randn(40).tolist()


def test_losses_of_a_training_program():
    def program(torch):
        nn, data = torch.nn, torch.utils.data
        x = torch.randn(96, 8)
        y = (x[:, :3].sum(1) > 0).long()
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            for inputs, targets in data.DataLoader(data.TensorDataset(x, y), batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), targets)
                loss.backward()
                optimizer.step()
                yield loss

    compare(import_torch(), program, rtol=2e-5)
