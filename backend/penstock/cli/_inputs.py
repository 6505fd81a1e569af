"""Files as a pipeline's inputs: from command-line arguments to batches."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from penstock.data_types import UINT8, numpy_dtype
from penstock.errors import PenstockError, did_you_mean
from penstock.pipeline import Pipeline
from penstock.runtime.sources import Source
from penstock.serving.probing import TensorInfo, declared_inputs, source_steps
from penstock.tensors import TensorListCPU


class InputError(PenstockError, ValueError):
    """Raised if files do not fit the pipeline's inputs."""


def read_inputs(pipeline: Pipeline, input_paths: Sequence[str]) -> dict[str, TensorListCPU]:
    """Return one batch for each input of a pipeline; empty if the pipeline has no inputs. See :class:`InputFiles`."""
    return next(InputFiles(pipeline, input_paths, pipeline.max_batch_size or 1).batches(cycle=False), {})


class InputFiles:
    """Batches for a pipeline, read from files into memory.

    Args:
        pipeline: the pipeline, which must not have run yet.
        input_paths: files and folders, each as ``PATH`` or ``NAME=PATH``.
        max_samples: the largest number of samples to read.

    Raises:
        InputError: a file does not exist, does not fit its input, or is for an input that the pipeline does not have.
    """

    def __init__(self, pipeline: Pipeline, input_paths: Sequence[str], max_samples: int) -> None:
        declared = {info.name: info for info in declared_inputs(pipeline) if info.name in fed_by_hand(pipeline)}
        paths: dict[str, list[Path]] = {}
        for text in input_paths:
            name, path = _split_name(text, declared)
            paths.setdefault(name, []).extend(_files(path))
        missing = [name for name in declared if name not in paths]
        if missing:
            raise InputError(f"No file is given for {', '.join(map(repr, missing))}: add {missing[0]}=FILE")
        self._batch_size = pipeline.max_batch_size or 1
        self._layouts = {name: declared[name].layout or None for name in paths}
        self.count = min([max_samples, *map(len, paths.values())])
        self._samples = {
            name: [_read(path, declared[name]) for path in found[: self.count]] for name, found in paths.items()
        }

    @property
    def names(self) -> list[str]:
        """The names of the inputs that have files."""
        return list(self._samples)

    def samples(self) -> list[dict[str, np.ndarray]]:
        """Return the samples in order, each as a dictionary from inputs to arrays."""
        return [{name: samples[index] for name, samples in self._samples.items()} for index in range(self.count)]

    def batches(self, cycle: bool) -> Iterator[dict[str, TensorListCPU]]:
        """Yield one batch for each input at a time, by the input's name; with ``cycle``, repeat the samples endlessly, in full batches."""
        if not self._samples:
            return
        order: Iterator[int] = itertools.cycle(range(self.count)) if cycle else iter(range(self.count))
        while indices := list(itertools.islice(order, self._batch_size)):
            yield {
                name: TensorListCPU([samples[index] for index in indices], self._layouts[name])
                for name, samples in self._samples.items()
            }


def fed_by_hand(pipeline: Pipeline) -> list[str]:
    """Return the names of the pipeline's inputs that have no callback."""
    return [op.name for op in source_steps(pipeline) if not isinstance(op.payload, Source)]


def _split_name(text: str, inputs: Collection[str]) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    # A path may itself contain an equals sign.
    if equals and not Path(text).exists():
        if name not in inputs:
            known = ", ".join(inputs) or "none"
            raise InputError(f"The pipeline has no input '{name}'.{did_you_mean(name, inputs)} Its inputs are: {known}")
        return name, Path(path)
    if len(inputs) != 1:
        if not inputs:
            raise InputError(f"'{text}' matches no input: the pipeline has none")
        raise InputError(
            f"The pipeline has the inputs {', '.join(inputs)}: name the one for '{text}', as in {next(iter(inputs))}={text}"
        )
    return next(iter(inputs)), Path(text)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        inside = ((file, file.relative_to(path).parts) for file in path.rglob("*"))
        found = sorted(
            file for file, parts in inside if file.is_file() and not any(part.startswith(".") for part in parts)
        )
        if not found:
            raise InputError(f"There is no file in '{path}' or its subfolders")
        return found
    if not path.is_file():
        raise InputError(f"'{path}' is not a file or folder")
    return [path]


def _read(path: Path, info: TensorInfo) -> np.ndarray:
    """Return the sample in a file: an array (NPY), the file's bytes for an input of encoded data, or the pixels of an
    image."""
    if path.suffix == ".npy":
        sample: np.ndarray = np.load(path, allow_pickle=False)
        return sample
    if info.dtype in (None, UINT8) and (info.dims is None or len(info.dims) == 1):
        return np.fromfile(path, np.uint8)
    if info.dims is not None and len(info.dims) == 3:
        return _pixels(path, info)
    raise InputError(
        f"'{path}' is not an .npy file, which the input '{info.name}' needs: it takes arrays, not encoded data"
    )


def _pixels(path: Path, info: TensorInfo) -> np.ndarray:
    from PIL import Image

    try:
        pixels = np.asarray(Image.open(path).convert("RGB"))
    except OSError as error:
        raise InputError(f"'{path}' is neither an .npy file nor an image: {error}") from error
    pixels = pixels.transpose(2, 0, 1) if info.layout == "CHW" else pixels
    return np.ascontiguousarray(pixels, None if info.dtype is None else numpy_dtype(info.dtype))
