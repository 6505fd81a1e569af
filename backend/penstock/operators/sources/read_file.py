"""`io.file.read`: reads files whose paths are data of the pipeline."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT8, UINT8, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.tolerance import ON_ERROR


@register_operator
class ReadFile(Operator[None, np.ndarray]):
    """Returns the contents of files. Each sample of the input holds the path of a file, in UTF-8.

    >>> paths = fn.external_source(lambda: [np.frombuffer(b"photo.jpg", np.uint8)])
    >>> images = fn.decoders.image(fn.io.file.read(paths))  # doctest: +SKIP
    """

    schema = Schema(
        name="io__file__Read",
        devices=("cpu",),
        inputs=(
            Input(
                "filepaths",
                device="cpu",
                doc="Paths of files: the bytes of UTF-8 text, uint8 of shape (n,).",
                path=True,
            ),
        ),
        arguments=(
            Argument("dont_use_mmap", "bool", False, "Accepted for compatibility."),
            ON_ERROR,
            Argument("use_o_direct", "bool", False, "Accepted for compatibility."),
        ),
        fn="io.file.read",
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        paths = workspace.inputs[0]
        if len(paths) and paths.dtype not in (UINT8, INT8):
            raise ValueError(f"Unexpected input data type: paths are text as uint8, got {dtype_name(paths.dtype)}")
        return [OutputSpec(UINT8, "", 1)]

    def infer(self, sample: Sample[None, np.ndarray]) -> tuple[int, ...]:
        # Read the file during shape inference, since its size is certain only after reading.
        sample.plan = self.files.read(_path(sample.inputs[0]))
        return sample.plan.shape

    def compute(self, sample: Sample[None, np.ndarray]) -> None:
        sample.outputs[0][:] = sample.plan


def _path(characters: np.ndarray) -> str:
    """Return the path that a sample holds, up to the first zero byte."""
    return characters.tobytes().partition(b"\0")[0].decode("utf-8", "surrogateescape")
