"""`pooled_patches`: which patches of overlapping crops are pooled into each token."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT32, INT64
from penstock.kernels.pooled_patches import Crops, pooled
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples, on_photo, pictures


def _canvases(layout: str = "") -> ExampleSamples:
    return pictures("HWC", H=(16, 8, 24), W=(24, 16, 8))


@register_operator
class PooledPatches(Operator):
    """Finds the patches that Molmo 2 pools into each token, from a canvas's shape alone.

    Patches are cut from a picture of the whole image and from overlapping crops of the canvas. Returns the indices of each
    token's patches, INT32 of shape (tokens, patches), padded with -1: patches of the whole image are numbered first, then
    those of all crops. The second output, INT64 of shape (4,), contains the number of rows and columns of tokens of the whole
    image, and those of the canvas.

    >>> indices, grid = fn.pooled_patches(canvases, crop=378, patch=14, margins=[4, 4], pool=[2, 2])
    """

    schema = Schema(
        name="PooledPatches",
        devices=("cpu",),
        inputs=(
            Input(
                "canvases",
                ("HWC",),
                device="any",
                doc="Images of any type, on CPU or GPU; only their shapes are used.",
                example=_canvases,
            ),
        ),
        arguments=(
            Argument("crop", "int32", None, "Side of a crop, and of the whole, in pixels.", required=True, example=8),
            Argument(
                "margins",
                "int32[]",
                [0, 0],
                "Patches at the start and at the end of a crop that belong to its neighbour, if there is one.",
            ),
            Argument("patch", "int32", None, "Side of a patch in pixels.", required=True, example=2),
            Argument("pool", "int32[]", [1, 1], "Rows and columns of patches that become one token."),
        ),
        outputs=2,
        exempt={"sequences": "crops are of one image"},
        examples=(Example({"crop": 8, "patch": 2, "pool": [2, 3]}, (_canvases,)),),
        shown=(on_photo(crop=80, patch=16, pool=[2, 2]),),
    )

    plans_by_shape = True

    def setup(self) -> None:
        crop, patch, margins, pool = (self.args[name] for name in ("crop", "patch", "margins", "pool"))
        if patch < 1 or len(pool) != 2 or min(pool) < 1 or len(margins) != 2 or min(margins) < 0:
            raise ValueError(
                "`patch` and the two numbers of `pool` must be positive, and the two numbers of `margins` not negative"
            )
        self._crops = Crops(crop // patch, margins[0], margins[1], (pool[0], pool[1]))
        if self._crops.window < 1:
            raise ValueError(f"`margins` leave no patches of a crop of {self._crops.patches}. Got: {list(margins)}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [OutputSpec(INT32, "", 2), OutputSpec(INT64, "", 1)]

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        crops, patch = self._crops, self.args["patch"]
        rows, columns = (extent // patch for extent in sample.shapes[0][:2])
        if (
            min(rows, columns) < crops.patches
            or (rows - crops.patches) % crops.window
            or ((columns - crops.patches) % crops.window)
        ):
            raise ValueError(
                f"A canvas of {columns} x {rows} patches cannot be divided into whole crops of {crops.patches}, {crops.window} apart"
            )
        whole, canvas = crops.tokens(crops.patches, crops.patches), crops.tokens(rows, columns)
        sample.plan = rows, columns, (*whole, *canvas)
        return [(whole[0] * whole[1] + canvas[0] * canvas[1], crops.pool[0] * crops.pool[1]), (4,)]

    def compute(self, sample: Sample) -> None:
        crops, (rows, columns, grid) = self._crops, sample.plan
        own = np.arange(crops.patches**2, dtype=np.int32).reshape(crops.patches, crops.patches)
        whole = pooled(own, crops.pool)
        sample.outputs[0][: len(whole)] = whole
        sample.outputs[0][len(whole) :] = pooled(crops.numbers(rows, columns) + own.size, crops.pool)
        sample.outputs[1][...] = grid
