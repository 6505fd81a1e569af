"""`image_patches`: images as the patches that a vision transformer takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, INT32, INT64, UINT8, dtype_name
from penstock.operators.image._normalizing import NORMALIZING_ARGUMENTS, checked_table, factors_of
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples, on_photo, pictures


@dataclass(frozen=True)
class _Grid:
    """Patches of a sample: in time, downwards and to the right, and the channels."""

    times: int
    rows: int
    columns: int
    channels: int

    @property
    def count(self) -> int:
        return self.times * self.rows * self.columns


def _squares(layout: str = "") -> ExampleSamples:
    return pictures("HWC", H=(16, 24, 8), W=(24, 16, 8))


@register_operator
class ImagePatches(Operator[None, _Grid]):
    """Computes ``(x / divisor - mean) / std`` of images or videos of uint8, and lays them out as patches.

    Returns the patches, float32 of shape (patches, values), and how many there are in time, downwards and to the right:
    INT64 of shape (3,). With `length`, patches are padded to it with 0, and there is a third output, INT32 of shape
    (length,): 1 for patches, 0 for padding.

    >>> patches, grid = fn.image_patches(images, patch=14, merge=2, temporal=2, mean=[0.5] * 3, std=[0.5] * 3)
    """

    schema = Schema(
        name="ImagePatches",
        inputs=(
            Input("images", ("HWC", "FHWC"), doc="Images or videos of uint8, of whole patches.", example=_squares),
        ),
        arguments=(
            Argument("channels_last", "bool", False, "Order the values of a patch as HWC, not CFHW."),
            Argument("length", "int32", 0, "Number of patches to return; 0: as many as there are."),
            Argument("merge", "int32", 1, "Order the patches in squares with this many on a side; 1: row by row."),
            *NORMALIZING_ARGUMENTS,
            Argument("patch", "int32", None, "Height and width of a patch.", required=True, example=4),
            Argument(
                "temporal", "int32", 1, "Frames in a patch; the image, or the last frame, is repeated for missing ones."
            ),
        ),
        exempt={"sequences": "the patches of a video are of several frames"},
        outputs=lambda arguments: 3 if arguments.get("length") else 2,
        examples=(
            Example({"patch": 4, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]}),
            Example({"patch": 4, "merge": 2, "temporal": 2}),
            Example({"patch": 8, "channels_last": True, "length": 10}),
        ),
        shown=(on_photo(patch=16),),
    )

    plans_by_shape = True

    def setup(self) -> None:
        for name in ("patch", "merge", "temporal"):
            if self.args[name] < 1:
                raise ValueError(f"`{name}` is at least 1. Got: {self.args[name]}")
        if self.args["channels_last"] and self.args["temporal"] > 1:
            raise ValueError("`channels_last` is for patches of one frame: `temporal` is 1")
        settings = [self.args[argument.name] for argument in NORMALIZING_ARGUMENTS]
        self._table = checked_table(*settings)
        self._factors = factors_of(self._table, *settings)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(f"Images must be of uint8. Got: {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, "", 2), OutputSpec(INT64, "", 1), OutputSpec(INT32, "", 1)][: 2 + self._pads]

    @property
    def _pads(self) -> bool:
        return bool(self.args["length"])

    def infer(self, sample: Sample[None, _Grid]) -> list[tuple[int, ...]]:
        *frames, height, width, channels = sample.shapes[0]
        patch, merge, temporal = (self.args[name] for name in ("patch", "merge", "temporal"))
        side = patch * merge
        if height % side or width % side or not height * width:
            raise ValueError(
                f"An image of {width} x {height} pixels is not of whole patches: its sides are multiples of {side}"
            )
        if len(self._table) not in (1, channels):
            raise ValueError(f"`mean` and `std` have {len(self._table)} values, but the image has {channels} channels")
        grid = _Grid(math.ceil((frames[0] if frames else 1) / temporal), height // patch, width // patch, channels)
        sample.plan = grid
        length = self.args["length"] or grid.count
        if grid.count > length:
            raise ValueError(f"The image has {grid.count} patches: more than `length`, {length}")
        shapes: list[tuple[int, ...]] = [(length, channels * temporal * patch * patch), (3,)]
        return [*shapes, (length,)] if self._pads else shapes

    def compute(self, sample: Sample[None, _Grid]) -> None:
        from penstock.operators.image._pieces_cpu import fill_patches

        grid, image = sample.plan, np.ascontiguousarray(sample.inputs[0])
        frames = image if image.ndim == 4 else image[None]
        patches = sample.outputs[0]
        fill_patches(
            frames,
            self._table,
            self._factors,
            self.args["patch"],
            self.args["merge"],
            self.args["temporal"],
            self.args["channels_last"],
            patches[: grid.count].reshape(-1),
        )
        patches[grid.count :] = 0
        for output, told in zip(sample.outputs[1:], self._told(grid)):
            output[...] = told

    def _told(self, grid: _Grid) -> list[np.ndarray]:
        """The outputs other than the patches."""
        extents = np.array([grid.times, grid.rows, grid.columns])
        return [extents, (np.arange(self.args["length"]) < grid.count).astype(np.int32)][: 1 + self._pads]

    def compute_batch(self, workspace: Workspace[None, _Grid]) -> None:
        from penstock.kernels.cuda.launch import locate_all, upload
        from penstock.kernels.cuda.window import WindowCopy, copy_windows
        from penstock.operators.image._pieces_cuda import Patches, fill_patches

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        jobs = [
            Patches(source if len(source.shape) == 4 else source.reshape(1, *source.shape), target, sample.plan.count)
            for sample, source, target in zip(samples, sources, targets)
        ]
        shape = (self.args[name] for name in ("patch", "merge", "temporal", "channels_last"))
        fill_patches(jobs, self._table, *shape)
        for told, output in zip(zip(*(self._told(sample.plan) for sample in samples)), workspace.outputs[1:]):
            copies = zip(upload(told), locate_all(output, samples))
            copy_windows([WindowCopy(own, target) for own, target in copies])
