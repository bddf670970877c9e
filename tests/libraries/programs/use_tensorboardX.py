"""Scalars, histograms and pictures as event files, read back."""

import tempfile
from pathlib import Path

from common import numbers, report
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event

with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for step in range(3):
            writer.add_scalar("loss", numbers(3)[step], step)
        writer.add_histogram("weights", numbers(100), 0)
        writer.add_image("picture", numbers(3, 8, 8).abs(), 0)
        writer.add_embedding(numbers(4, 3), ["a", "b", "c", "d"])
    content = next(Path(folder).glob("events*")).read_bytes()
scalars, tags, position = [], set(), 0
while position < len(content):  # a record: its length in 8 bytes, their check, the data, its check
    length = int.from_bytes(content[position : position + 8], "little")
    event = Event.FromString(content[position + 12 : position + 12 + length])
    tags |= {value.tag for value in event.summary.value}
    scalars += [value.simple_value for value in event.summary.value if value.HasField("simple_value")]
    position += length + 16
report(scalars=scalars, tags=sorted(tags))
