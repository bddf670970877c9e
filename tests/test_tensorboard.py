"""Logs for TensorBoard, read back by their published format: framed records with checksums, of protocol buffers."""

import struct
import sys

import numpy as np
import pytest

import corefw as torch

POLYNOMIAL = 0x82F63B78  # of CRC-32C


def checksum(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ POLYNOMIAL * (crc & 1)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        body = data[12 : 12 + length]
        assert struct.unpack("<I", data[8:12]) == (checksum(data[:8]),)
        assert struct.unpack("<I", data[12 + length : 16 + length]) == (checksum(body),)
        yield body
        data = data[16 + length :]


def varint(data):
    value = shift = 0
    for i, byte in enumerate(data):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, data[i + 1 :]
    raise AssertionError("a number without end")


def fields(data):
    """The fields of a message by number: integers, floats and bytes."""
    found = {}
    while data:
        key, data = varint(data)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, data = varint(data)
        elif kind == 2:
            length, data = varint(data)
            value, data = data[:length], data[length:]
        else:
            size, code = (8, "<d") if kind == 1 else (4, "<f")
            (value,), data = struct.unpack(code, data[:size]), data[size:]
        found.setdefault(number, []).append(value)
    return found


def written(folder):
    """[(step, tag, fields of the value)] of all events with a summary."""
    (path,) = folder.glob("events*")
    for event in map(fields, records(path)):
        for value in fields(event[5][0]).get(1, []) if 5 in event else []:
            parts = fields(value)
            yield event.get(2, [0])[0], parts[1][0].decode(), parts


@pytest.fixture
def writer(tmp_path):
    pytest.importorskip("tensorboardX")
    with torch.utils.tensorboard.SummaryWriter(tmp_path / "log") as writer:
        yield writer


def test_numbers_and_distributions(writer, tmp_path):
    for step, loss in enumerate((0.5, torch.tensor(0.25), torch.tensor([0.125], dtype=torch.bfloat16))):
        writer.add_scalar("loss/train", loss, step)
    values = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    writer.add_histogram("weights", values, 3)
    writer.add_histogram_raw("raw", 0.0, 1.0, 2, 1.0, 1.0, [0.5, 1.0], [1, 1], 4)
    writer.add_text("note", "some *text*", 5)
    writer.flush()
    writer.close()
    found = [*written(tmp_path / "log")]
    assert [(step, parts[2][0]) for step, tag, parts in found if tag == "loss/train"] == [
        (0, 0.5),
        (1, 0.25),
        (2, 0.125),
    ]
    ((step, _, parts),) = (row for row in found if row[1] == "weights")
    histogram = fields(parts[5][0])
    assert step == 3 and [histogram[n][0] for n in (1, 2, 3, 4, 5)] == [1, 4, 3, 7, 21]
    assert {tag for _, tag, _ in found} > {"raw"} and any(tag.startswith("note") for _, tag, _ in found)
    assert writer.get_logdir() == str(tmp_path / "log")


def test_pictures(writer, tmp_path):
    image = pytest.importorskip("PIL.Image")
    writer.add_image("picture", torch.full((3, 4, 5), 0.5), 1)
    writer.add_images("pictures", torch.zeros(2, 3, 4, 5), 1)
    writer.add_image_with_boxes("boxes", torch.zeros(3, 8, 8), torch.tensor([[1.0, 1.0, 4.0, 4.0]]))
    writer.close()
    shown = {tag: fields(parts[4][0]) for _, tag, parts in written(tmp_path / "log")}
    assert [shown["picture"][n][0] for n in (1, 2)] == [4, 5] and shown["pictures"][2] == [10]
    (tmp_path / "one.png").write_bytes(shown["picture"][4][0])
    assert np.asarray(image.open(tmp_path / "one.png"))[0, 0].tolist() == [127] * 3


def test_several_at_once(writer, tmp_path):
    writer.add_scalars("rates", {"a": torch.tensor(1.0), "b": 2.0}, 7)
    writer.add_hparams({"rate": 0.5, "name": "adam"}, {"accuracy": torch.tensor(0.75)}, run_name="run")
    writer.add_pr_curve("curve", torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.7, 0.9]))
    writer.add_custom_scalars({"all": {"rates": ["Multiline", ["rates"]]}})
    writer.add_mesh("points", torch.zeros(1, 2, 3))
    writer.close()
    folders = {path.parent.relative_to(tmp_path / "log").as_posix() for path in (tmp_path / "log").rglob("events*")}
    assert {"rates/a", "rates/b", "run"} <= folders
    ((step, _, parts),) = written(tmp_path / "log" / "rates" / "b")
    assert (step, parts[2]) == (7, [2.0])
    with pytest.raises(NotImplementedError, match="hparam_domain_discrete"):
        writer.add_hparams({}, {}, {"rate": [1, 2]})
    with pytest.raises(NotImplementedError, match="captured"):
        writer.add_graph(torch.nn.Linear(1, 1))


def test_classes_of_files_are_the_packages():
    package = pytest.importorskip("tensorboardX")
    assert torch.utils.tensorboard.FileWriter is package.writer.FileWriter
    assert torch.utils.tensorboard.RecordWriter.__name__ == "RecordWriter"


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"corefw\[tensorboard\]"):
        torch.utils.tensorboard.SummaryWriter(tmp_path)


def test_checksums_and_files_of_tensorboard(writer, tmp_path):
    assert checksum(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    writer.add_scalar("loss", torch.tensor(2.0), 1)
    writer.close()
    log = reader.EventAccumulator(str(tmp_path / "log")).Reload()
    assert [(event.step, event.value) for event in log.Scalars("loss")] == [(1, 2.0)]
