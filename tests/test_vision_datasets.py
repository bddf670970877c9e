"""Image data sets in the published formats: read, downloaded, refused."""

import functools
import gzip
import hashlib
import http.server
import io
import os
import pickle
import struct
import sys
import tarfile
import threading

import numpy as np
import pytest

import corefw
from corefw.vision import datasets, transforms
from corefw.vision.datasets.cifar import read_batch
from corefw.vision.datasets.download import CorruptedError, DownloadError, check_integrity, fetch
from corefw.vision.datasets.mnist import read_idx
from tests.pictures import Image, idx, md5, random_pixels

MNIST_ARRAYS = {
    "train-images-idx3-ubyte": random_pixels(5, 28, 28, seed=1),
    "train-labels-idx1-ubyte": np.array([5, 0, 4, 1, 9], np.uint8),
    "t10k-images-idx3-ubyte": random_pixels(3, 28, 28, seed=2),
    "t10k-labels-idx1-ubyte": np.array([7, 2, 1], np.uint8),
}


@pytest.fixture
def mnist_mirror(tmp_path):
    """A folder with the four compressed files, and their list as a data set publishes it."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for name, array in MNIST_ARRAYS.items():
        (mirror / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
    return mirror, [(f"{name}.gz", md5(mirror / f"{name}.gz")) for name in MNIST_ARRAYS]


def local(base, mirrors, resources):
    return type(base.__name__, (base,), {"mirrors": mirrors, "resources": resources})


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """The address of a web server of the temporary folder."""
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/"
        served.shutdown()
        thread.join()


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files(tmp_path, dtype, suffix):
    array = (random_pixels(2, 3, 4) / 2).astype(dtype)
    stored = idx(array)
    (tmp_path / f"file{suffix}").write_bytes(gzip.compress(stored) if suffix else stored)
    read = read_idx(tmp_path / f"file{suffix}")
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype and read.flags.writeable


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b + b"0", lambda b: b"PK" + b, lambda b: b"", lambda b: b[:9]]
)
def test_damaged_idx_files_are_refused(tmp_path, damage):
    stored = idx(random_pixels(2, 3))
    (tmp_path / "file").write_bytes(damage(stored))
    with pytest.raises(CorruptedError, match="file"):
        read_idx(tmp_path / "file")
    (tmp_path / "file.gz").write_bytes(gzip.compress(stored)[:-4])
    with pytest.raises(CorruptedError, match="gzip"):
        read_idx(tmp_path / "file.gz")


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "KMNIST"])
@pytest.mark.parametrize("compressed", [False, True])
def test_mnist_family(tmp_path, name, compressed):
    raw = tmp_path / name / "raw"
    raw.mkdir(parents=True)
    for file, array in MNIST_ARRAYS.items():
        stored = idx(array)
        (raw / (f"{file}.gz" if compressed else file)).write_bytes(gzip.compress(stored) if compressed else stored)
    kind = getattr(datasets, name)
    train, test = (
        kind(tmp_path),
        kind(str(tmp_path), train=False, transform=transforms.ToTensor(), target_transform=str),
    )
    assert (len(train), len(test)) == (5, 3)
    assert train.data.dtype == corefw.uint8 and train.targets.tolist() == [5, 0, 4, 1, 9]
    image, target = train[2]
    assert image.mode == "L" and image.size == (28, 28) and target == 4
    np.testing.assert_array_equal(np.asarray(image), MNIST_ARRAYS["train-images-idx3-ubyte"][2])
    image, target = test[0]
    assert tuple(image.shape) == (1, 28, 28) and target == "7"
    np.testing.assert_allclose(image.numpy()[0] * 255, MNIST_ARRAYS["t10k-images-idx3-ubyte"][0], rtol=1e-6)
    assert len(train.classes) == 10 and train.class_to_idx[train.classes[9]] == 9
    assert repr(test) == (
        f"Dataset {name}\n    Number of datapoints: 3\n    Root location: {tmp_path}\n    Split: Test\n"
        "    StandardTransform\nTransform: ToTensor()\nTarget transform: <class 'str'>"
    )
    assert sorted(len(digest) for _, digest in kind.resources) == [32] * 4
    loader = corefw.utils.data.DataLoader(test, batch_size=2)
    assert [tuple(images.shape) for images, _ in loader] == [(2, 1, 28, 28), (1, 1, 28, 28)]


def test_mnist_missing_says_so(tmp_path):
    with pytest.raises(RuntimeError, match=r"Dataset not found: .*You can use download=True to download it"):
        datasets.MNIST(tmp_path)


def test_mnist_labels_must_fit_the_images(tmp_path):
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for file, array in MNIST_ARRAYS.items():
        (raw / file).write_bytes(idx(array[:2] if file == "train-labels-idx1-ubyte" else array))
    with pytest.raises(CorruptedError, match="5 train images, but 2 labels"):
        datasets.MNIST(tmp_path)


def test_mnist_download_from_a_folder(tmp_path, mnist_mirror):
    mirror, resources = mnist_mirror
    kind = local(datasets.MNIST, ["file:///nowhere/at/all/", mirror.as_uri() + "/"], resources)
    train = kind(tmp_path / "root", download=True)
    assert train.targets.tolist() == [5, 0, 4, 1, 9]
    raw = tmp_path / "root" / "MNIST" / "raw"
    assert sorted(os.listdir(raw)) == sorted([*MNIST_ARRAYS, *(f"{name}.gz" for name in MNIST_ARRAYS)])
    for path in mirror.iterdir():
        path.unlink()
    assert len(kind(tmp_path / "root", train=False, download=True)) == 3  # nothing is fetched again


def test_mnist_download_from_a_server(tmp_path, mnist_mirror, server):
    _, resources = mnist_mirror
    kind = local(datasets.KMNIST, [server + "lost/", server + "mirror/"], resources)
    assert len(kind(tmp_path / "root", download=True)) == 5


def test_a_failed_download_leaves_nothing_and_says_what_to_do(tmp_path, mnist_mirror):
    mirror, resources = mnist_mirror
    wrong = [(name, "0" * 32) for name, _ in resources]
    kind = local(datasets.MNIST, [mirror.as_uri() + "/", "file:///nowhere/at/all/"], wrong)
    with pytest.raises(DownloadError) as caught:
        kind(tmp_path / "root", download=True)
    text = str(caught.value)
    raw = tmp_path / "root" / "MNIST" / "raw"
    assert f"{mirror.as_uri()}/train-images-idx3-ubyte.gz: its MD5 sum is" in text
    assert "file:///nowhere/at/all/" in text and str(raw / "train-images-idx3-ubyte.gz") in text
    assert "Without a network" in text and isinstance(caught.value, RuntimeError)
    assert os.listdir(raw) == []


def test_fetch_keeps_a_good_file_and_replaces_a_bad_one(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"right")
    target.write_bytes(b"wrong")
    fetch([source.as_uri()], str(target), md5(source))
    assert target.read_bytes() == b"right" and check_integrity(target, md5(source))
    source.unlink()
    fetch([source.as_uri()], str(target), md5(target))
    assert not check_integrity(source) and not check_integrity(target, "0" * 32)


class Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings, which is what the published batches hold."""

    dispatch = {**pickle._Pickler.dispatch}

    def save_string(self, value):
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch[bytes] = save_string


def python2_pickle(value):
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def cifar_files(kind):
    """The files of a small data set in CIFAR's form."""
    labels = b"labels" if kind is datasets.CIFAR10 else b"fine_labels"
    files = {
        name: python2_pickle({b"data": random_pixels(4, 3072, seed=i), labels: [i, 1, 2, 3], b"batch_label": b"one"})
        for i, (name, _) in enumerate(kind.train_list + kind.test_list)
    }
    return files | {
        kind.meta["filename"]: python2_pickle({kind.meta["key"].encode(): [b"cat", b"dog", b"eel", b"fly"]})
    }


def local_cifar(base, folder):
    """The data set with the sums of small files, and its archive in `folder`."""
    files = cifar_files(base)
    with tarfile.open(folder / base.filename, "w:gz") as archive:
        for name, stored in [*((f"{base.base_folder}/{n}", s) for n, s in files.items()), ("../outside", b"!")]:
            member = tarfile.TarInfo(name)
            member.size = len(stored)
            archive.addfile(member, io.BytesIO(stored))
    sums = {name: hashlib.md5(stored).hexdigest() for name, stored in files.items()}
    fields = {
        "url": (folder / base.filename).as_uri(),
        "tgz_md5": md5(folder / base.filename),
        "train_list": [[name, sums[name]] for name, _ in base.train_list],
        "test_list": [[name, sums[name]] for name, _ in base.test_list],
        "meta": {**base.meta, "md5": sums[base.meta["filename"]]},
    }
    return type(base.__name__, (base,), fields)


@pytest.mark.parametrize("name, batches", [("CIFAR10", 5), ("CIFAR100", 1)])
def test_cifar(tmp_path, name, batches):
    (tmp_path / "mirror").mkdir()
    kind, root = local_cifar(getattr(datasets, name), tmp_path / "mirror"), tmp_path / "root"
    with pytest.raises(RuntimeError, match=r"Dataset not found or corrupted.*download=True"):
        kind(root)
    train = kind(root, download=True)
    assert len(train) == 4 * batches and train.data.shape == (4 * batches, 32, 32, 3)
    test = kind(root, train=False, transform=transforms.PILToTensor(), target_transform=lambda t: -t)
    image, target = test[1]
    np.testing.assert_array_equal(image.numpy(), random_pixels(4, 3072, seed=batches)[1].reshape(3, 32, 32))
    assert target == -1 and test.targets == [batches, 1, 2, 3]
    assert train.classes == ["cat", "dog", "eel", "fly"] and train.class_to_idx["eel"] == 2
    image, target = train[0]
    assert image.mode == "RGB" and image.size == (32, 32) and target == 0
    assert not (tmp_path / "outside").exists()
    damaged = root / kind.base_folder / kind.test_list[0][0]
    damaged.write_bytes(b"damaged")
    with pytest.raises(RuntimeError, match=f"lacks {damaged.name}"):
        kind(root)
    assert len(kind(root, train=False, download=True)) == 4  # unpacked again from the archive that is there


def test_the_classifier_of_the_tutorials(tmp_path, monkeypatch):
    """Data set, workers, the old ``next()`` and a small LeNet, as introductions to PyTorch write them."""
    torch, torchvision = corefw, corefw.vision
    monkeypatch.setattr(datasets, "CIFAR10", local_cifar(datasets.CIFAR10, tmp_path))
    torch.manual_seed(0)

    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))])
    root = str(tmp_path / "data")
    trainset = torchvision.datasets.CIFAR10(root=root, train=True, download=True, transform=transform)
    trainloader = torch.utils.data.DataLoader(trainset, batch_size=4, shuffle=True, num_workers=2)
    testset = torchvision.datasets.CIFAR10(root=root, train=False, download=True, transform=transform)
    testloader = torch.utils.data.DataLoader(testset, batch_size=4, shuffle=False, num_workers=2)
    dataiter = iter(trainloader)
    images, labels = dataiter.next()
    assert images.shape == (4, 3, 32, 32) and images.min() >= -1 and images.max() <= 1 and labels.dtype == torch.int64
    assert [batch[1].tolist() for batch in testloader] == [testset.targets]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, 6, 5)
            self.pool = torch.nn.MaxPool2d(2, 2)
            self.conv2 = torch.nn.Conv2d(6, 16, 5)
            self.fc1 = torch.nn.Linear(16 * 5 * 5, 120)
            self.fc2 = torch.nn.Linear(120, 10)

        def forward(self, x):
            x = self.pool(torch.relu(self.conv1(x)))
            x = self.pool(torch.relu(self.conv2(x)))
            return self.fc2(torch.relu(self.fc1(x.view(-1, 16 * 5 * 5))))

    net, criterion = Net(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


class Mischief:
    def __reduce__(self):
        return os.mkdir, ("mischief",)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_batch_that_would_run_something_is_refused(tmp_path, protocol, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "batch").write_bytes(pickle.dumps({"data": Mischief()}, protocol))
    with pytest.raises(CorruptedError, match=r"no business with .*mkdir"):
        read_batch(tmp_path / "batch")
    assert not (tmp_path / "mischief").exists()
    for stored in (b"", b"garbage", pickle.dumps([1])):
        (tmp_path / "batch").write_bytes(stored)
        with pytest.raises(CorruptedError, match="no batch"):
            read_batch(tmp_path / "batch")


def test_published_sums_are_sums():
    for kind in (datasets.CIFAR10, datasets.CIFAR100):
        sums = [kind.tgz_md5, kind.meta["md5"], *(digest for _, digest in kind.train_list + kind.test_list)]
        assert all(len(digest) == 32 and int(digest, 16) for digest in sums) and len(set(sums)) == len(sums)


@pytest.fixture
def photographs(tmp_path):
    for name, colour in [("dog/b.png", "red"), ("dog/deep/a.PNG", "lime"), ("cat/1.bmp", "blue"), ("cat/2.txt", None)]:
        path = tmp_path / "photographs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if colour is None:
            path.write_text("no image")
        else:
            Image.new("RGB", (4, 3), colour).save(path)
    return tmp_path / "photographs"


def test_image_folder(photographs):
    data = datasets.ImageFolder(photographs, transform=transforms.ToTensor())
    assert data.classes == ["cat", "dog"] and data.class_to_idx == {"cat": 0, "dog": 1}
    assert [os.path.basename(path) for path, _ in data.imgs] == ["1.bmp", "b.png", "a.PNG"]
    assert data.targets == [0, 1, 1] and data.samples is data.imgs
    assert [image.amax((1, 2)).tolist() for image, _ in data] == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert repr(data).splitlines()[:3] == [
        "Dataset ImageFolder",
        "    Number of datapoints: 3",
        f"    Root location: {photographs}",
    ]


def test_dataset_folder(photographs):
    data = datasets.DatasetFolder(
        photographs, os.path.getsize, is_valid_file=lambda path: path.endswith("txt"), allow_empty=True
    )
    assert [data[i] for i in range(len(data))] == [(8, 0)]
    with pytest.raises(FileNotFoundError, match=r"for the classes dog. Supported extensions are: .txt"):
        datasets.DatasetFolder(photographs, os.path.getsize, extensions=(".txt",))
    with pytest.raises(ValueError, match="cannot be None or not None at the same time"):
        datasets.DatasetFolder(photographs, os.path.getsize)
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(photographs / "cat")


def test_fake_data():
    data = datasets.FakeData(5, (3, 8, 6), num_classes=4, transform=transforms.ToTensor())
    corefw.manual_seed(3)
    expected = corefw.rand(2).tolist()
    corefw.manual_seed(3)
    first, again, other = data[0], data[0], data[1]
    assert corefw.rand(2).tolist() == expected  # the program's own numbers are not touched
    assert tuple(first[0].shape) == (3, 8, 6) and first[1] in range(4)
    assert bool((first[0] == again[0]).all()) and not bool((first[0] == other[0]).all())
    with pytest.raises(IndexError):
        data[5]


def test_digits_take_the_arguments_of_the_others():
    assert len(datasets.Digits("root", True, None, None, download=True)) == 1347


def test_missing_pillow_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'corefw\[images\]'"):
        datasets.FakeData()[0]
