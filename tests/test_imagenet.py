"""The data set ImageNet: small archives in the published form are unpacked, and read again without them."""

import io
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

import corefw
from corefw.vision import datasets
from corefw.vision.datasets import imagenet
from tests.pictures import Image, md5

WORDS = {"n01": "cat, house cat", "n02": "dog", "n09": "animal"}
TRAIN = {"n01": 2, "n02": 3}
VAL = ["n02", "n01", "n02"]


def picture(shade):
    file = io.BytesIO()
    Image.new("RGB", (2, 2), (shade, shade, shade)).save(file, "JPEG")
    return file.getvalue()


def archive(members, mode="w"):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def development_kit():
    """The classes and those that contain them, which have children, numbered in another order than their names."""
    fields = ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children")
    rows = [(1, "n02", WORDS["n02"], "", 0), (2, "n01", WORDS["n01"], "", 0), (3, "n09", WORDS["n09"], "", 2)]
    synsets = np.array(rows, dtype=[(name, object) for name in fields]).reshape(-1, 1)
    meta = io.BytesIO()
    savemat(meta, {"synsets": synsets})
    truth = "".join(f"{1 if wnid == 'n02' else 2}\n" for wnid in VAL)
    data = "ILSVRC2012_devkit_t12/data"
    return archive(
        {f"{data}/meta.mat": meta.getvalue(), f"{data}/ILSVRC2012_validation_ground_truth.txt": truth.encode()}, "w:gz"
    )


@pytest.fixture
def root(tmp_path, monkeypatch):
    train = {f"{w}.tar": archive({f"{w}_{i}.JPEG": picture(40 * i) for i in range(n)}) for w, n in TRAIN.items()}
    val = {f"ILSVRC2012_val_{i:08}.JPEG": picture(i) for i in (3, 1, 2)}
    contents = {"train": archive(train), "val": archive(val), "devkit": development_kit()}
    published = {}
    for part, content in contents.items():
        path = tmp_path / imagenet.ARCHIVES[part][0]
        path.write_bytes(content)
        published[part] = (path.name, md5(path))
    monkeypatch.setattr(imagenet, "ARCHIVES", published)
    return tmp_path


def test_archives_are_unpacked_once(root):
    data = datasets.ImageNet(root)
    assert data.wnids == ["n01", "n02"] and data.classes == [("cat", "house cat"), ("dog",)]
    assert data.class_to_idx == {"cat": 0, "house cat": 0, "dog": 1} and data.wnid_to_idx == {"n01": 0, "n02": 1}
    assert data.targets == [0, 0, 1, 1, 1] and len(data) == 5
    image, target = data[4]
    assert abs(image.getpixel((0, 0))[0] - 80) < 3 and target == 1
    held_out = datasets.ImageNet(root, split="val", transform=lambda image: image.size)
    assert [path[-13:] for path, _ in held_out.samples] == ["00000002.JPEG", "00000001.JPEG", "00000003.JPEG"]
    assert held_out.targets == [0, 1, 1] and held_out[0] == ((2, 2), 0) and "Split: val" in repr(held_out)
    for name, _ in imagenet.ARCHIVES.values():
        (root / name).unlink()
    assert datasets.ImageNet(root, "val").targets == held_out.targets
    assert sorted(path.name for path in root.iterdir()) == ["meta.bin", "train", "val"]


def test_what_is_missing_or_damaged_is_told(root):
    with pytest.raises(ValueError, match="Valid values"):
        datasets.ImageNet(root, split="test")
    train = root / imagenet.ARCHIVES["train"][0]
    train.write_bytes(train.read_bytes() + b"more")
    with pytest.raises(RuntimeError, match=r"image-net\.org"):
        datasets.ImageNet(root)
    corefw.save(({"n01": ("cat",)}, ["n01"] * 4), root / "meta.bin")
    with pytest.raises(RuntimeError, match="4 classes are told, 3 images came"):
        datasets.ImageNet(root, "val")
    assert not (root / "val").exists()
