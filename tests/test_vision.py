"""Image data sets in the published formats, transforms against plain references, and pictures as files."""

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
from corefw.vision.transforms import InterpolationMode
from corefw.vision.transforms import functional as F
from corefw.vision.utils import make_grid, save_image

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: no images")


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def pixels(image):
    """An image's numbers, (H, W) or (H, W, C) of Pillow's and (..., H, W) of tensors, as (..., H, W)."""
    if isinstance(image, corefw.Tensor):
        return image.numpy()
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def random_pixels(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def both(channels=3, height=6, width=9):
    """The same image as Pillow's and as a tensor."""
    array = random_pixels(height, width, channels)
    image = Image.fromarray(array[:, :, 0] if channels == 1 else array)
    return image, corefw.from_numpy(array.transpose(2, 0, 1).copy())


# -- data sets ---------------------------------------------------------------------------------------------------------


def idx(array):
    codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
    header = struct.pack(f">HBB{array.ndim}I", 0, codes[array.dtype.str[1:]], array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


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


# -- transforms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "transform",
    [
        F.hflip,
        F.vflip,
        lambda x: F.crop(x, 1, 2, 3, 4),
        lambda x: F.crop(x, -2, -1, 5, 20),
        lambda x: F.center_crop(x, 3),
        lambda x: F.center_crop(x, (4, 12)),
        lambda x: F.pad(x, 2, fill=7),
        lambda x: F.pad(x, [1, 2, 3, 0], padding_mode="edge"),
        lambda x: F.pad(x, (1, 2), padding_mode="reflect"),
        lambda x: F.pad(x, [2], padding_mode="symmetric"),
        lambda x: F.pad(x, [-1, 2, 0, -2]),
        lambda x: F.rotate(x, 180),
        lambda x: F.resize(x, (3, 5), InterpolationMode.NEAREST_EXACT),
    ],
)
def test_kinds_of_images_agree_exactly(transform, channels):
    image, tensor = both(channels)
    np.testing.assert_array_equal(pixels(transform(image)), pixels(transform(tensor)))


@pytest.mark.parametrize(
    "transform, tolerance",
    [
        (lambda x: F.resize(x, (3, 5)), 1),
        (lambda x: F.resize(x, (13, 20)), 1),
        (lambda x: F.resize(x, 12, InterpolationMode.BICUBIC), 20),  # Pillow cuts off between rows and columns
        (lambda x: F.resized_crop(x, 1, 1, 4, 5, (8, 8)), 1),
        (lambda x: F.rgb_to_grayscale(x), 1),
        (lambda x: F.rgb_to_grayscale(x, 3), 1),
        (lambda x: F.adjust_brightness(x, 1.4), 1),
        (lambda x: F.adjust_contrast(x, 0.6), 2),
        (lambda x: F.adjust_saturation(x, 1.7), 2),
        (lambda x: F.adjust_hue(x, 0.2), 12),
    ],
)
def test_kinds_of_images_agree_in_steps_of_brightness(transform, tolerance):
    image, tensor = both()
    difference = pixels(transform(image)).astype(int) - pixels(transform(tensor))
    assert np.abs(difference).max() <= tolerance


def test_padding_is_numpys():
    _, tensor = both()
    for mode in ("constant", "edge", "reflect", "symmetric"):
        wanted = np.pad(tensor.numpy(), ((0, 0), (2, 4), (1, 3)), mode=mode)
        np.testing.assert_array_equal(F.pad(tensor, [1, 2, 3, 4], padding_mode=mode).numpy(), wanted)


def naive_bilinear(image, height, width):
    """Resized without smoothing, a pixel at a time."""
    old_height, old_width = image.shape
    result = np.zeros((height, width))
    for i, j in np.ndindex(height, width):
        y = max((i + 0.5) * old_height / height - 0.5, 0)
        x = max((j + 0.5) * old_width / width - 0.5, 0)
        top, left = int(y), int(x)
        below, right = min(top + 1, old_height - 1), min(left + 1, old_width - 1)
        upper = image[top, left] * (1 - x + left) + image[top, right] * (x - left)
        lower = image[below, left] * (1 - x + left) + image[below, right] * (x - left)
        result[i, j] = upper * (1 - y + top) + lower * (y - top)
    return result


@pytest.mark.parametrize("size", [(3, 4), (11, 5), (12, 30)])
def test_resize_without_smoothing(size):
    image = np.random.default_rng(0).random((6, 9))
    resized = F.resize(corefw.from_numpy(image)[None], size, antialias=False)
    np.testing.assert_allclose(resized.numpy()[0], naive_bilinear(image, *size), rtol=1e-12)


def test_resize_by_whole_factors_averages_and_repeats():
    image = np.arange(24.0).reshape(1, 4, 6)
    near = F.resize(corefw.from_numpy(image), (8, 12), InterpolationMode.NEAREST).numpy()
    np.testing.assert_array_equal(near, image.repeat(2, 1).repeat(2, 2))
    half = F.resize(corefw.from_numpy(image), (2, 3)).numpy()
    assert half.mean() == pytest.approx(image.mean()) and np.all(np.diff(half) > 0)


@pytest.mark.parametrize(
    "size, max_size, wanted", [(4, None, (4, 8)), (20, 30, (15, 30)), ([5], None, (5, 10)), ((7, 3), None, (7, 3))]
)
def test_size_of_resize(size, max_size, wanted):
    for image in both(3, 10, 20):
        assert tuple(F.get_dimensions(transforms.Resize(size, max_size=max_size)(image))[1:]) == wanted
        turned = F.resize(F.rotate(image, 90, expand=True), size, max_size=max_size)
        assert tuple(F.get_dimensions(turned)[1:]) == (wanted if isinstance(size, tuple) else wanted[::-1])


def test_resize_is_differentiable():
    image = corefw.rand(1, 4, 4, requires_grad=True)
    F.resize(image, (2, 2)).sum().backward()
    assert float(image.grad.sum()) == pytest.approx(4)


@pytest.mark.parametrize("quarter", [0, 1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_rotation_by_quarters(quarter, mode):
    array = random_pixels(3, 7, 7)
    tensor = corefw.from_numpy(array)
    rotated = F.rotate(tensor, 90 * quarter, InterpolationMode(mode))
    np.testing.assert_array_equal(rotated.numpy(), np.rot90(array, quarter, (1, 2)))
    wide = corefw.from_numpy(random_pixels(3, 6, 8))
    expanded = F.rotate(wide, 90 * quarter, InterpolationMode(mode), expand=True)
    np.testing.assert_array_equal(expanded.numpy(), np.rot90(wide.numpy(), quarter, (1, 2)))


def test_rotation_by_any_angle():
    image, tensor = both(3, 21, 21)
    turned, wanted = pixels(F.rotate(tensor, 33.0, fill=[9.0])), pixels(F.rotate(image, 33.0, fill=9))
    assert (turned == wanted).mean() > 0.97
    middle = F.rotate(tensor, 33.0, center=[10.5, 10.5])
    np.testing.assert_array_equal(middle.numpy(), F.rotate(tensor, 33.0).numpy())
    assert tuple(F.rotate(tensor, 45.0, expand=True).shape) == (3, 31, 31)


def test_to_tensor_and_back():
    for mode in ("1", "L", "LA", "P", "I", "F", "RGB", "YCbCr", "RGBA", "CMYK"):
        image = Image.fromarray(random_pixels(4, 5, 3)).convert("L" if mode == "LA" else "RGB").convert(mode)
        tensor = F.to_tensor(image)
        assert tuple(tensor.shape) == (len(image.getbands()), 4, 5)
        assert tensor.dtype == (corefw.int32 if mode == "I" else corefw.float32)
        scale = {"1": 1, "I": 1, "F": 1}.get(mode, 255)
        np.testing.assert_allclose(tensor.numpy() * scale, pixels(image), rtol=1e-6)
        if mode in ("L", "LA", "RGB", "RGBA"):
            assert F.to_pil_image(tensor) == image == F.to_pil_image(F.pil_to_tensor(image))
    array = random_pixels(4, 5, 3)
    np.testing.assert_array_equal(F.to_tensor(array.astype(np.float32)).numpy(), array.transpose(2, 0, 1))
    corefw.set_default_dtype(corefw.float64)
    try:
        assert F.to_tensor(array).dtype == corefw.float64
    finally:
        corefw.set_default_dtype(corefw.float32)


def test_modes_of_images():
    modes = {np.uint8: "L", np.int16: "I;16", np.int32: "I"}
    for dtype, mode in modes.items():
        array = np.arange(6, dtype=dtype).reshape(2, 3)
        image = F.to_pil_image(array)
        assert image.mode == mode
        np.testing.assert_array_equal(np.asarray(image), array)
    assert F.to_pil_image(np.ones((2, 3, 1), np.float32), "F").mode == "F"
    assert F.to_pil_image(random_pixels(2, 3, 3), "HSV").mode == "HSV"
    assert F.to_pil_image(random_pixels(2, 3, 4), "CMYK").mode == "CMYK"


@pytest.mark.parametrize("old, new", [("uint8", "int16"), ("uint8", "int64"), ("int16", "int32"), ("uint8", "float32")])
def test_convert_image_dtype_and_back(old, new):
    old, new = getattr(corefw, old), getattr(corefw, new)
    image = corefw.arange(128).to(old)
    there = transforms.ConvertImageDtype(new)(image)
    assert there.dtype == new
    np.testing.assert_array_equal(F.convert_image_dtype(there, old).numpy(), image.numpy())


def test_convert_image_dtype_limits():
    assert F.convert_image_dtype(corefw.tensor([0.0, 1.0]), corefw.uint8).tolist() == [0, 255]
    assert F.convert_image_dtype(corefw.tensor([255], dtype=corefw.uint8)).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(corefw.ones(1), corefw.int32)


def test_normalize():
    image = corefw.rand(2, 3, 4, 5)
    mean, std = [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    wanted = (image.numpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    np.testing.assert_allclose(transforms.Normalize(mean, std)(image).numpy(), wanted, rtol=1e-5, atol=1e-7)
    assert transforms.Normalize(mean, std, inplace=True)(image) is image
    np.testing.assert_allclose(image.numpy(), wanted, rtol=1e-5, atol=1e-7)


def test_hue_goes_round_and_colours_keep_their_value():
    tensor = corefw.rand(3, 5, 6)
    turned = F.adjust_hue(tensor, 0.5)
    np.testing.assert_allclose(turned.numpy().max(0), tensor.numpy().max(0), rtol=1e-5)
    np.testing.assert_allclose(F.adjust_hue(turned, 0.5).numpy(), tensor.numpy(), atol=1e-5)
    red = corefw.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
    np.testing.assert_allclose(F.adjust_hue(red, 1 / 3).numpy().ravel(), [0, 1, 0], atol=1e-6)


RANDOM = {
    "RandomCrop": transforms.RandomCrop(4, padding=2),
    "RandomCrop needed": transforms.RandomCrop((20, 4), pad_if_needed=True, padding_mode="symmetric"),
    "RandomResizedCrop": transforms.RandomResizedCrop((5, 7)),
    "RandomHorizontalFlip": transforms.RandomHorizontalFlip(),
    "RandomVerticalFlip": transforms.RandomVerticalFlip(),
    "RandomRotation": transforms.RandomRotation(40),
    "RandomRotation fill": transforms.RandomRotation((10, 50), InterpolationMode.BILINEAR, True, (1, 2), (1, 2, 3)),
    "ColorJitter": transforms.ColorJitter(0.5, 0.5, 0.5, 0.2),
    "RandomGrayscale": transforms.RandomGrayscale(0.5),
    "RandomApply": transforms.RandomApply([transforms.Grayscale(3)]),
    "RandomChoice": transforms.RandomChoice([transforms.Pad(1), transforms.Pad(2), transforms.Grayscale()]),
    "RandomOrder": transforms.RandomOrder(
        [transforms.Pad(1), transforms.CenterCrop(4), transforms.RandomVerticalFlip()]
    ),
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("kind", [0, 1], ids=["pillow", "tensor"])
def test_a_seed_repeats(name, kind):
    image, transform = both(3, 12, 10)[kind], RANDOM[name]
    corefw.manual_seed(5)
    first = [pixels(transform(image)).tolist() for _ in range(12)]
    corefw.manual_seed(5)
    assert [pixels(transform(image)).tolist() for _ in range(12)] == first
    assert any(result != first[0] for result in first), "chance has no hand in it"
    assert type(transform(image)) is type(image)


def test_random_erasing():
    image = corefw.ones(3, 20, 30)
    corefw.manual_seed(0)
    erased = transforms.RandomErasing(p=1, value=(2, 3, 4))(image)
    rectangle = erased.numpy()[0] == 2
    rows, columns = rectangle.any(1).sum(), rectangle.any(0).sum()
    assert rectangle.sum() == rows * columns and 0.01 < rectangle.mean() < 0.4 and 0.2 < rows / columns < 4
    assert (erased.numpy()[:, rectangle].T == [2, 3, 4]).all() and bool((image == 1).all())
    assert transforms.RandomErasing(p=1, value="random", inplace=True)(image) is image and bool((image != 1).any())
    assert transforms.RandomErasing(p=0)(image) is image
    with pytest.raises(TypeError):
        transforms.RandomErasing(p=1)(both()[0])


def test_chance_is_fair():
    corefw.manual_seed(0)
    image = corefw.tensor([[[0, 1]]])
    flipped = sum(int(transforms.RandomHorizontalFlip(0.3)(image)[0, 0, 0]) for _ in range(1000))
    assert 240 < flipped < 360
    choice = transforms.RandomChoice([lambda x: 0, lambda x: 1, lambda x: 2], p=[1, 0, 3])
    counts = np.bincount([choice(None) for _ in range(1000)], minlength=3)
    assert counts[1] == 0 and 180 < counts[0] < 320
    places = {transforms.RandomCrop.get_params(corefw.zeros(1, 4, 5), (3, 3))[:2] for _ in range(200)}
    assert places == {(i, j) for i in range(2) for j in range(3)}
    for _ in range(100):
        top, left, height, width = transforms.RandomResizedCrop.get_params(
            corefw.zeros(1, 40, 30), (0.2, 0.5), (0.5, 2)
        )
        assert 0 <= top <= 40 - height and 0 <= left <= 30 - width and 0.18 < height * width / 1200 < 0.53


def test_compose_applies_in_order():
    steps = transforms.Compose([transforms.Lambda(lambda x: x + 1), transforms.Lambda(lambda x: x * 2)])
    assert steps(3) == 8
    model = corefw.nn.Sequential(transforms.CenterCrop(2), transforms.Normalize([0.0], [2.0]))
    assert model(corefw.ones(1, 4, 4)).tolist() == [[[0.5, 0.5], [0.5, 0.5]]]


@pytest.mark.parametrize(
    "transform, text",
    [
        (transforms.ToTensor(), "ToTensor()"),
        (transforms.ToPILImage("L"), "ToPILImage(mode=L)"),
        (transforms.ConvertImageDtype(corefw.float32), "ConvertImageDtype()"),
        (transforms.Normalize([0.5], (2,)), "Normalize(mean=[0.5], std=(2,))"),
        (transforms.Resize(4), "Resize(size=4, interpolation=bilinear, max_size=None, antialias=True)"),
        (transforms.CenterCrop(4), "CenterCrop(size=(4, 4))"),
        (transforms.Pad(2), "Pad(padding=2, fill=0, padding_mode=constant)"),
        (transforms.RandomCrop([4]), "RandomCrop(size=(4, 4), padding=None)"),
        (
            transforms.RandomResizedCrop(4),
            "RandomResizedCrop(size=(4, 4), scale=(0.08, 1.0), ratio=(0.75, 1.3333), "
            "interpolation=bilinear, antialias=True)",
        ),
        (transforms.RandomHorizontalFlip(), "RandomHorizontalFlip(p=0.5)"),
        (
            transforms.RandomRotation(3),
            "RandomRotation(degrees=[-3.0, 3.0], interpolation=nearest, expand=False, fill=0)",
        ),
        (
            transforms.ColorJitter(0.5, (0.5, 2)),
            "ColorJitter(brightness=(0.5, 1.5), contrast=(0.5, 2.0), saturation=None, hue=None)",
        ),
        (
            transforms.RandomErasing(),
            "RandomErasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False)",
        ),
        (transforms.RandomApply([transforms.ToTensor()]), "RandomApply(\n    p=0.5\n    ToTensor()\n)"),
        (
            transforms.RandomChoice([transforms.Grayscale()]),
            "RandomChoice(\n    Grayscale(num_output_channels=1)\n)(p=None)",
        ),
        (transforms.Compose([]), "Compose(\n)"),
    ],
)
def test_texts(transform, text):
    assert repr(transform) == text
    assert repr(pickle.loads(pickle.dumps(transform))) == text


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: transforms.Resize("a" * 3), ValueError),
        (lambda: transforms.Resize(2.5), TypeError),
        (lambda: transforms.Resize(5, interpolation=99), TypeError),
        (lambda: transforms.RandomCrop((1, 2, 3)), ValueError),
        (lambda: transforms.RandomCrop(9)(corefw.zeros(1, 4, 4)), ValueError),
        (lambda: transforms.Pad("x"), TypeError),
        (lambda: transforms.Pad((1, 2, 3)), ValueError),
        (lambda: transforms.Pad(1, padding_mode="wrap"), ValueError),
        (lambda: transforms.Lambda(3), TypeError),
        (lambda: transforms.ColorJitter(-1), ValueError),
        (lambda: transforms.ColorJitter(hue=0.7), ValueError),
        (lambda: transforms.RandomRotation(-1), ValueError),
        (lambda: transforms.RandomErasing(p=2), ValueError),
        (lambda: transforms.RandomErasing(value="other"), ValueError),
        (lambda: transforms.RandomChoice(3), TypeError),
        (lambda: transforms.ToTensor()(corefw.zeros(1)), TypeError),
        (lambda: transforms.ToTensor()(np.zeros(3)), ValueError),
        (lambda: transforms.PILToTensor()(np.zeros((3, 3))), TypeError),
        (lambda: transforms.ToPILImage()([1]), TypeError),
        (lambda: transforms.ToPILImage()(corefw.zeros(5, 2, 2)), ValueError),
        (lambda: transforms.ToPILImage("RGB")(corefw.zeros(1, 2, 2)), ValueError),
        (lambda: transforms.Normalize([0.0], [0.0])(corefw.zeros(1, 2, 2)), ValueError),
        (lambda: transforms.Normalize([0.0], [1.0])(corefw.zeros(2, 2)), ValueError),
        (lambda: transforms.Normalize([0], [1])(corefw.zeros(1, 2, 2, dtype=corefw.uint8)), TypeError),
        (lambda: transforms.Grayscale(2)(corefw.zeros(3, 2, 2)), ValueError),
        (lambda: transforms.Grayscale()(corefw.zeros(2, 2, 2)), TypeError),
        (lambda: F.hflip([1, 2]), TypeError),
        (lambda: F.adjust_hue(corefw.zeros(3, 2, 2), 0.6), ValueError),
        (lambda: F.resize(corefw.zeros(1, 4, 4), 2, InterpolationMode.LANCZOS), ValueError),
        (lambda: datasets.VisionDataset("r", transforms=len, transform=len), ValueError),
    ],
)
def test_mistakes_have_torchvisions_types(make, error):
    with pytest.raises(error):
        make()


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_grid_puts_images_in_their_places():
    images = corefw.rand(5, 3, 4, 6)
    grid = make_grid(images, nrow=3, padding=1, pad_value=0.5).numpy()
    assert grid.shape == (3, 2 * 5 + 1, 3 * 7 + 1)
    for index, image in enumerate(images.numpy()):
        top, left = index // 3 * 5 + 1, index % 3 * 7 + 1
        np.testing.assert_array_equal(grid[:, top : top + 4, left : left + 6], image)
        grid[:, top : top + 4, left : left + 6] = 0.5
    assert (grid == 0.5).all()


def test_grid_of_few_and_of_grey_images():
    assert tuple(make_grid(corefw.rand(4, 5)).shape) == (3, 4, 5)
    assert tuple(make_grid([corefw.rand(1, 4, 5)] * 2).shape) == (3, 8, 16)
    for wrong in ("image", [1, 2]):
        with pytest.raises(TypeError, match="tensor or list of tensors expected"):
            make_grid(wrong)


def test_grid_normalises():
    images = corefw.tensor([[0.0, 2.0], [4.0, 8.0]]).view(2, 1, 1, 2)
    whole, each = (make_grid(images, padding=0, normalize=True, scale_each=each).numpy()[0] for each in (False, True))
    np.testing.assert_allclose(whole, [[0, 0.25, 0.5, 1]])
    np.testing.assert_allclose(each, [[0, 1, 0, 1]])
    clipped = make_grid(images, padding=0, normalize=True, value_range=(2, 4)).numpy()[0]
    np.testing.assert_allclose(clipped, [[0, 0, 1, 1]])
    assert images.max() == 8


def test_save_image(tmp_path):
    image = corefw.rand(3, 5, 7)
    path = tmp_path / "picture.png"
    save_image(image, path)
    np.testing.assert_array_equal(pixels(Image.open(path)), (image.numpy() * 255 + 0.5).astype(np.uint8))
    stream = io.BytesIO()
    save_image([image] * 3, stream, format="png", nrow=2)
    assert Image.open(stream).size == (20, 16)


def test_a_picture_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")
    with pytest.raises((OSError, ValueError, KeyError)):
        save_image(corefw.rand(3, 5, 7), path, format="no such format")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["picture.png"]
    with pytest.raises(ValueError, match="unknown file extension"):
        save_image(corefw.rand(3, 5, 7), tmp_path / "picture.nothing")
