"""Logs for TensorBoard: PyTorch's `SummaryWriter`, whose files the package tensorboardX writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NoReturn, Self

import numpy as np

from corefw import dtypes
from corefw.tensor import Tensor

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]  # noqa: F822, the first two are the package's


def _package() -> Any:
    try:
        return import_module("tensorboardX")
    except ImportError as error:
        raise ImportError(
            "utils.tensorboard writes its files with the package tensorboardX: pip install 'corefw[tensorboard]'"
        ) from error


def __getattr__(name: str) -> Any:
    """The package's classes that write files and records."""
    if name == "FileWriter":
        return _package().writer.FileWriter
    if name == "RecordWriter":
        return import_module(f"{_package().__name__}.record_writer").RecordWriter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _plain(value: Any) -> Any:
    """Tensors, and those in lists, tuples and dicts, as NumPy arrays of the content that they have now."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return np.array((value.float() if value.dtype is dtypes.bfloat16 else value).numpy())
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


class SummaryWriter:
    """Writes numbers, distributions, pictures and texts to a file that TensorBoard shows.

    Args:
        log_dir: the folder; by default one in ``runs``, named by the time and the machine.
        comment: what is added to the name of that folder.
        purge_step: where a run that was interrupted goes on: TensorBoard forgets what was written from there.
        max_queue: how many entries may wait to be written.
        flush_secs: after how many seconds they are written at the latest.
        filename_suffix: what is added to the name of the file.

    Raises:
        ImportError: the package tensorboardX is not installed.
    """

    def __init__(
        self, log_dir: str | None = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ):  # fmt: skip
        folder = None if log_dir is None else str(log_dir)
        self._writer = _package().SummaryWriter(
            folder, comment=comment, purge_step=purge_step, max_queue=max_queue, flush_secs=flush_secs,
            filename_suffix=filename_suffix,
        )  # fmt: skip
        self.log_dir, self.purge_step = self._writer.logdir, purge_step

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _add(self, kind: str, *arguments: Any, **options: Any) -> None:
        getattr(self._writer, f"add_{kind}")(*map(_plain, arguments), **_plain(options))

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write a number.

        Args:
            tag: what it is; slashes make groups.
            scalar_value: the number, or a tensor with one element.
            global_step: when it was so, the position on the axis.
            walltime: seconds since the epoch, if not now.
            new_style, double_precision: without effect; numbers are written in single precision.
        """
        self._add("scalar", tag, scalar_value, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write numbers that one diagram shows, each to a file in a folder of its own."""
        self._add("scalars", main_tag, dict(tag_scalar_dict), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: str = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write how values are distributed, over `bins`: "tensorflow" or a rule of `numpy.histogram`."""
        self._add("histogram", tag, values, global_step, bins, walltime, max_bins)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Any,
        bucket_counts: Any, global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write a distribution that is known by its counts: `bucket_limits` are the upper ends of the buckets."""
        found = (min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add("histogram_raw", tag, *found, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Write a picture of bytes, or of numbers between 0 and 1, whose dimensions `dataformats` names."""
        self._add("image", tag, img_tensor, global_step, walltime, dataformats)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Write pictures side by side."""
        self._add("images", tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW", labels: list[str] | None = None,
    ) -> None:  # fmt: skip
        """Write a picture with boxes (left, top, right, bottom) drawn in it."""
        where = (tag, img_tensor, box_tensor, global_step, walltime, dataformats, labels)
        self._add("image_with_boxes", *where, rescale=rescale)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write a figure of matplotlib, or a list of them, as a picture; `close` closes it."""
        self._add("figure", tag, figure, global_step, close, walltime)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Write films, (N, T, C, H, W), as animated pictures."""
        self._add("video", tag, vid_tensor, global_step, fps, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write a sound of numbers between -1 and 1."""
        self._add("audio", tag, snd_tensor, global_step, sample_rate, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text in Markdown."""
        self._add("text", tag, text_string, global_step, walltime)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None,
        tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Write points of a high dimension, (N, D), with a label and a picture each, for the projector."""
        self._add("embedding", mat, metadata, label_img, global_step, tag, metadata_header)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write a curve of precision over recall, of labels 0 and 1 and probabilities."""
        self._add("pr_curve", tag, labels, predictions, global_step, num_thresholds, weights, walltime)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
        config_dict: Mapping[str, Any] | None = None, global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write points in space, or triangles between them."""
        self._add("mesh", tag, vertices, colors, faces, config_dict, global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, list]]) -> None:
        """Write which numbers TensorBoard shows in which diagrams."""
        self._add("custom_scalars", layout)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Write that one diagram shows some numbers."""
        self._add("custom_scalars_multilinechart", tags, category, title)

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Write that a diagram shows three numbers: a value and the ends of its margin."""
        self._add("custom_scalars_marginchart", tags, category, title)

    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, list] | None = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Write a run's settings with its results, in a folder of its own.

        Raises:
            NotImplementedError: `hparam_domain_discrete` is given: the values that are possible are not written.
        """
        if hparam_domain_discrete:
            raise NotImplementedError("add_hparams: hparam_domain_discrete: which values are possible is not written")
        self._add("hparams", dict(hparam_dict), dict(metric_dict), run_name, global_step)

    def add_graph(self, model: Any, *arguments: Any, **options: Any) -> NoReturn:
        """Refused: a model is not captured as a graph; `autograd.graph.dot` draws what a call recorded."""
        raise NotImplementedError(
            "add_graph: a model is not captured as a graph here; torch.autograd.graph.dot(output) draws what a call "
            "has recorded"
        )

    def flush(self) -> None:
        """Write what waits: the package's thread is given the time to take it, and only `close` is sure that it did."""
        for writer in {self._writer.file_writer, *(self._writer.all_writers or {}).values()} - {None}:
            waiting = getattr(writer.event_writer, "_event_queue", None)
            while waiting is not None and not waiting.empty():
                time.sleep(0.001)
            time.sleep(0.01)
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
