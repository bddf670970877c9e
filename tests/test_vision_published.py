"""Data sets of published files, small ones in the same form: read, fetched from a folder, unpacked, refused."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import numpy as np
import pytest

from corefw.vision import datasets, transforms
from corefw.vision.datasets.download import CorruptedError, DownloadError, unpack
from corefw.vision.datasets.published import Published
from tests.pictures import Image, idx, md5, random_pixels


def coded(pixels, format="JPEG"):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format)
    return file.getvalue()


def picture(seed=0):
    return coded(random_pixels(6, 5, 3, seed=seed))


def write(folder, files):
    for name, stored in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stored.encode() if isinstance(stored, str) else stored)


def tar(path, files):
    with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as archive:
        for name, stored in files.items():
            member = tarfile.TarInfo(name)
            stored = stored.encode() if isinstance(stored, str) else stored
            member.size = len(stored)
            archive.addfile(member, io.BytesIO(stored))
    return path


def local(kind, mirror, **fields):
    """The data set with the sums of the files in `mirror`, which it fetches."""
    published = tuple(
        Published((mirror / file.name).as_uri(), md5(mirror / file.name), file.unpacked)
        if (mirror / file.name).exists()
        else file
        for file in kind.published
    )
    return type(kind.__name__, (kind,), {"published": published, **fields})


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror"
    folder.mkdir()
    return folder


def mat(path, **variables):
    pytest.importorskip("scipy.io", reason="SciPy writes MATLAB's files").savemat(path, variables)


def test_svhn(tmp_path, mirror):
    pixels = random_pixels(32, 32, 3, 4)
    mat(mirror / "test_32x32.mat", X=pixels, y=np.array([[10], [1], [2], [9]], np.uint8))
    kind = local(datasets.SVHN, mirror)
    with pytest.raises(RuntimeError, match=r"lacks test_32x32.mat .*download=True"):
        kind(tmp_path / "root", "test")
    found = kind(tmp_path / "root", "test", download=True)
    assert found.labels.tolist() == [0, 1, 2, 9] and found.data.shape == (4, 3, 32, 32) and len(found) == 4
    image, target = found[3]
    np.testing.assert_array_equal(np.asarray(image), pixels[..., 3])
    assert target == 9 and "Split: test" in repr(found)
    assert kind(tmp_path / "root", "test", target_transform=str)[1][1] == "1"


def stl10_files():
    images = random_pixels(5, 3, 96, 96)
    files = {"fold_indices.txt": "\n".join(["0 2"] * 9 + ["4"]), "class_names.txt": "airplane\nbird\n"}
    for part, count in (("train", 5), ("test", 2), ("unlabeled", 3)):
        files[f"{part}_X.bin"] = images[:count].tobytes()
        if part != "unlabeled":
            files[f"{part}_y.bin"] = bytes(range(1, count + 1))
    return images, {f"stl10_binary/{name}": stored for name, stored in files.items()}


def test_stl10(tmp_path, mirror):
    images, files = stl10_files()
    tar(mirror / "stl10_binary.tar.gz", files)
    root = tmp_path / "root"
    kind = local(datasets.STL10, mirror)
    train = kind(root, download=True)
    assert train.labels.tolist() == [0, 1, 2, 3, 4] and train.classes == ["airplane", "bird"]
    np.testing.assert_array_equal(np.asarray(train[1][0]), images[1].transpose(2, 1, 0))
    assert kind(root, folds=9).labels.tolist() == [4] and kind(root, folds=0).labels.tolist() == [0, 2]
    assert kind(root, "train+unlabeled").labels.tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
    assert len(kind(root, "unlabeled")) == 3 and kind(root, "test")[1][1] == 1
    for split, folds in (("all", None), ("train", 10), ("train", "a")):
        with pytest.raises(ValueError, match=r"alue|type"):
            kind(root, split, folds)
    (root / "stl10_binary" / "test_y.bin").write_bytes(b"\1")
    with pytest.raises(CorruptedError, match="2 test images, but 1 labels"):
        kind(root, "test")


def test_usps(tmp_path, mirror):
    rows = [[1, *np.linspace(-1, 1, 256)], [10, *np.full(256, 0.0)]]
    text = "\n".join(" ".join([str(label), *(f"{i}:{v}" for i, v in enumerate(row, 1))]) for label, *row in rows)
    (mirror / "usps.t.bz2").write_bytes(bz2.compress(text.encode()))
    (mirror / "usps.bz2").write_bytes(b"damaged")
    kind = local(datasets.USPS, mirror)
    found = kind(tmp_path / "root", train=False, download=True)
    assert found.targets == [0, 9] and found.data.shape == (2, 16, 16) and found[0][0].mode == "L"
    assert found.data[0, 0, 0] == 0 and found.data[0, -1, -1] == 255 and found.data[1].min() == 127
    with pytest.raises(CorruptedError, match="no list of images"):
        kind(tmp_path / "root", download=True)


def test_emnist(tmp_path, mirror):
    images = random_pixels(3, 28, 28)
    with zipfile.ZipFile(mirror / "gzip.zip", "w") as archive:
        archive.writestr("../outside", b"!")
        for split in ("letters", "digits"):
            for part in ("train", "test"):
                archive.writestr(f"gzip/emnist-{split}-{part}-images-idx3-ubyte.gz", gzip.compress(idx(images)))
                labels = np.array([1, 2, 9], np.uint8)
                archive.writestr(f"gzip/emnist-{split}-{part}-labels-idx1-ubyte.gz", gzip.compress(idx(labels)))
    fields = {"url": (mirror / "gzip.zip").as_uri(), "md5": md5(mirror / "gzip.zip")}
    kind = type("EMNIST", (datasets.EMNIST,), fields)
    with pytest.raises(RuntimeError, match="emnist-letters-train"):
        kind(tmp_path / "root", "letters")
    found = kind(tmp_path / "root", "letters", download=True)
    assert [found.classes[target] for _, target in (found[0], found[2])] == ["a", "i"] and len(found.classes) == 27
    np.testing.assert_array_equal(np.asarray(found[1][0]), images[1])
    assert len(kind(tmp_path / "root", split="digits", train=False)) == 3
    assert not (tmp_path / "root" / "EMNIST" / "outside").exists()
    sizes = {split: len(names) for split, names in kind.classes_split_dict.items()}
    assert sizes == {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 27, "digits": 10, "mnist": 10}


def test_qmnist(tmp_path, mirror):
    images, labels = random_pixels(4, 28, 28), np.arange(32, dtype=np.int32).reshape(4, 8)
    resources = {}
    for part, files in datasets.QMNIST.resources.items():
        pair = zip(files, (images, labels), strict=True)
        resources[part] = []
        for (name, _), array in pair:
            (mirror / name).write_bytes((lzma if name.endswith("xz") else gzip).compress(idx(array)))
            resources[part].append((name, md5(mirror / name)))
    kind = type("QMNIST", (datasets.QMNIST,), {"mirrors": [mirror.as_uri() + "/"], "resources": resources})
    with pytest.raises(RuntimeError, match="download=True"):
        kind(tmp_path, "nist")
    for what in ("train", "test", "nist"):
        found = kind(tmp_path, what, download=True)
        assert found[2][1] == 16 and found.extra_repr() == f"Split: {what}"
        np.testing.assert_array_equal(np.asarray(found[3][0]), images[3])
    assert kind(tmp_path, train=False, compat=False)[1][1].tolist() == list(range(8, 16))
    assert (len(kind(tmp_path, "test10k")), len(kind(tmp_path, "test50k"))) == (4, 0)


def test_caltech101(tmp_path, mirror):
    objects = {
        f"101_ObjectCategories/{name}/image_{number:04d}.jpg": picture(number)
        for name, count in (("BACKGROUND_Google", 1), ("Faces", 2), ("ant", 1))
        for number in range(1, count + 1)
    }
    tar(mirror / "a.tar.gz", objects)
    outline = io.BytesIO()
    pytest.importorskip("scipy.io", reason="SciPy reads outlines").savemat(outline, {"obj_contour": np.eye(2)})
    tar(mirror / "b.tar", {"Annotations/Faces_2/annotation_0002.mat": outline.getvalue()})
    outer = {"101_ObjectCategories.tar.gz": "a.tar.gz", "Annotations.tar": "b.tar"}
    with zipfile.ZipFile(mirror / "caltech-101.zip", "w") as archive:
        for name, file in outer.items():
            archive.write(mirror / file, f"caltech-101/{name}")
    kind = local(datasets.Caltech101, mirror)
    found = kind(tmp_path, ["category", "annotation"], download=True)
    assert found.categories == ["Faces", "ant"] and found.y == [0, 0, 1] and len(found) == 3
    image, (category, contour) = found[1]
    assert image.size == (5, 6) and category == 0 and contour.tolist() == [[1, 0], [0, 1]]
    assert kind(tmp_path, target_transform=str)[2][1] == "1"
    with pytest.raises(ValueError, match="target_type"):
        kind(tmp_path, "outline")


def test_food101(tmp_path, mirror):
    listed = {"pizza": ["pizza/1", "pizza/2"], "apple_pie": ["apple_pie/7"]}
    files = {"food-101/meta/train.json": json.dumps(listed), "food-101/meta/test.json": "{}"}
    files |= {f"food-101/images/{name}.jpg": picture() for names in listed.values() for name in names}
    tar(mirror / "food-101.tar.gz", files)
    found = local(datasets.Food101, mirror)(tmp_path, download=True, transform=transforms.ToTensor())
    assert found.classes == ["apple_pie", "pizza"] and [found[i][1] for i in range(3)] == [1, 1, 0]
    assert found[2][0].shape == (3, 6, 5) and "split=train" in repr(found)
    assert len(local(datasets.Food101, mirror)(tmp_path, "test")) == 0


def test_flowers102(tmp_path, mirror):
    tar(mirror / "102flowers.tgz", {f"jpg/image_{number:05d}.jpg": picture(number) for number in (1, 2, 3)})
    mat(mirror / "imagelabels.mat", labels=np.array([[77, 1, 102]]))
    mat(mirror / "setid.mat", trnid=np.array([[3, 1]]), valid=np.array([[2]]), tstid=np.array([[1]]))
    kind = local(datasets.Flowers102, mirror)
    found = kind(tmp_path, download=True)
    assert [target for _, target in (found[0], found[1])] == [101, 76] and found[0][0].mode == "RGB"
    assert [kind(tmp_path, split)[0][1] for split in ("val", "test")] == [0, 76]
    (tmp_path / "flowers-102" / "setid.mat").write_bytes(b"damaged")
    with pytest.raises(RuntimeError, match=r"lacks setid.mat as published"):
        kind(tmp_path)


def test_oxford_pets(tmp_path, mirror):
    tar(mirror / "images.tar.gz", {"images/great_dane_2.jpg": picture(), "images/Sphynx_1.jpg": picture()})
    lists = {"annotations/trainval.txt": "great_dane_2 1 2 1\nSphynx_1 2 1 2\n", "annotations/test.txt": ""}
    trimap = {"annotations/trimaps/great_dane_2.png": coded(np.full((6, 5), 3, np.uint8), "PNG")}
    tar(mirror / "annotations.tar.gz", lists | trimap)
    kind = local(datasets.OxfordIIITPet, mirror)
    found = kind(tmp_path, target_types=["category", "binary-category", "segmentation"], download=True)
    assert found.classes == ["Great Dane", "Sphynx"] and found.class_to_idx["Sphynx"] == 1
    _, (category, binary, segmentation) = found[0]
    assert (category, found.bin_classes[binary]) == (0, "Dog") and np.asarray(segmentation).min() == 3
    both = kind(tmp_path, transforms=lambda image, target: (image.size, -target))
    assert (
        both[1] == ((5, 6), -1) and len(kind(tmp_path, "test")) == 0 and kind(tmp_path, target_types=[])[0][1] is None
    )


def test_celeba(tmp_path):
    names = [f"{number:06d}.jpg" for number in (1, 2, 3)]
    lists = {
        "list_eval_partition.txt": "\n".join(f"{name} {part}" for name, part in zip(names, (0, 1, 0), strict=True)),
        "identity_CelebA.txt": "\n".join(f"{name} {number}" for name, number in zip(names, (7, 8, 9), strict=True)),
        "list_bbox_celeba.txt": "3\nimage_id x_1 y_1 width height\n" + "\n".join(f"{n}  1 2  3 4" for n in names),
        "list_landmarks_align_celeba.txt": "3\nx y\n" + "\n".join(f"{name} 5 6" for name in names),
        "list_attr_celeba.txt": "3\nBald Young\n" + "\n".join(f"{name} -1  1" for name in names),
    }
    write(tmp_path / "celeba", lists | {f"img_align_celeba/{name}": picture() for name in names})
    with pytest.raises(DownloadError, match="by hand"):
        datasets.CelebA(tmp_path, download=True)
    kind = local(datasets.CelebA, tmp_path / "celeba")
    found = kind(tmp_path, target_type=["attr", "identity", "bbox", "landmarks"], download=True)
    image, (attributes, identity, box, landmarks) = found[1]
    assert image.size == (5, 6) and attributes.tolist() == [0, 1] and found.attr_names == ["Bald", "Young"]
    assert (int(identity), box.tolist(), landmarks.tolist()) == (9, [1, 2, 3, 4], [5, 6])
    assert [len(kind(tmp_path, split)) for split in ("train", "valid", "test", "all")] == [2, 1, 0, 3]
    assert kind(tmp_path, target_type=[])[0][1] is None and "Split: train" in repr(found)
    with pytest.raises(RuntimeError, match="target_type is empty"):
        kind(tmp_path, target_type=[], target_transform=str)


XML = """<annotation><folder>VOC2007</folder><size><width>5</width><height>6</height></size>
<object><name>dog</name><part><name>head</name></part><part><name>foot</name></part></object></annotation>"""


@pytest.mark.parametrize("year, image_set", [("2012", "train"), ("2011", "val"), ("2007", "test")])
def test_voc(tmp_path, mirror, year, image_set):
    key = "2007-test" if image_set == "test" else year
    archive = datasets.VOCDetection.archives[key]
    base = archive.unpacked
    files = {
        f"{base}/ImageSets/Segmentation/{image_set}.txt": "a_1\n",
        f"{base}/ImageSets/Main/{image_set}.txt": "a_1\nb_2\n",
        f"{base}/JPEGImages/a_1.jpg": picture(),
        f"{base}/JPEGImages/b_2.jpg": picture(),
        f"{base}/SegmentationClass/a_1.png": coded(np.full((6, 5), 255, np.uint8), "PNG"),
        f"{base}/Annotations/a_1.xml": XML,
        f"{base}/Annotations/b_2.xml": "<annotation><folder>VOC</folder></annotation>",
    }
    path = tar(mirror / archive.name, files)
    archives = {key: Published(path.as_uri(), md5(path), base)}
    for kind in (datasets.VOCSegmentation, datasets.VOCDetection):
        kind = type(kind.__name__, (kind,), {"archives": archives})
        found = kind(tmp_path, year, image_set, download=True)
        image, target = found[0]
        assert image.mode == "RGB" and image.size == (5, 6)
        if kind.__name__ == "VOCSegmentation":
            assert len(found) == 1 and np.asarray(target).max() == 255 and found.masks == found.targets
        else:
            told = target["annotation"]
            assert told["size"] == {"width": "5", "height": "6"} and told["object"][0]["name"] == "dog"
            assert told["object"][0]["part"] == [{"name": "head"}, {"name": "foot"}]
            assert found[1][1]["annotation"]["object"] == [] and len(found.annotations) == 2
    with pytest.raises(ValueError, match="image_set"):
        datasets.VOCDetection(tmp_path, "2012", "test")


def test_coco(tmp_path):
    told = {
        "images": [{"id": 9, "file_name": "b.jpg"}, {"id": 3, "file_name": "a.jpg"}],
        "annotations": [{"image_id": 9, "bbox": [1, 2, 3, 4], "category_id": 5, "caption": "a cat"}],
        "categories": [{"id": 5, "name": "cat"}],
    }
    write(tmp_path, {"a.jpg": picture(1), "b.jpg": picture(2), "told.json": json.dumps(told), "bad.json": "[1]"})
    found = datasets.CocoDetection(tmp_path, tmp_path / "told.json")
    assert found.ids == [3, 9] and found.categories[5]["name"] == "cat" and found[0][1] == []
    assert found[1][1][0]["bbox"] == [1, 2, 3, 4] and found[1][0].size == (5, 6)
    captions = datasets.CocoCaptions(str(tmp_path), tmp_path / "told.json", target_transform=len)
    assert [target for _, target in (captions[0], captions[1])] == [0, 1]
    assert datasets.CocoCaptions(tmp_path, tmp_path / "told.json")[1][1] == ["a cat"]
    with pytest.raises(ValueError, match="integer"):
        found[1.0]
    with pytest.raises(CorruptedError, match=r"bad.json"):
        datasets.CocoDetection(tmp_path, tmp_path / "bad.json")


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_hostile_archives_are_refused(tmp_path, name):
    (tmp_path / "into").mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("good", b"1")
        archive.writestr(name, b"!")
    for path in (tmp_path / "a.zip", tar(tmp_path / "a.tar", {"good": b"1", "../outside": b"!"})):
        with pytest.raises(CorruptedError, match="no archive to be unpacked"):
            unpack(str(path), str(tmp_path / "into"))
    (tmp_path / "damaged").write_bytes(b"damaged")
    with pytest.raises(CorruptedError, match="damaged"):
        unpack(str(tmp_path / "damaged"), str(tmp_path / "into"))
    assert list((tmp_path / "into").iterdir()) == [] and not (tmp_path / "outside").exists()
