"""`find_contours`: the outlines of regions in masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import BOOL, INT32, UINT8, dtype_name
from penstock.operators.postprocessing._rows import Rows, RowsOperator, Tables, firsts_of
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples
from penstock.schema.libraries import OPENCV

_MODES = {"external": "RETR_EXTERNAL", "list": "RETR_LIST"}
_APPROXIMATIONS = {"none": "CHAIN_APPROX_NONE", "simple": "CHAIN_APPROX_SIMPLE"}


def masks(layout: str = "") -> ExampleSamples:
    """Return masks with a ring and a bar."""

    def make(index: int) -> np.ndarray:
        y, x = np.indices(((40, 40), (30, 30), (20, 50))[index % 3])
        distance = np.hypot(y - 10, x - 12)
        ring = (distance < 8) & (distance > 3 + index % 3)
        return (255 * (ring | ((abs(x - 24) < 3) & (y > 4 + index % 3)))).astype(np.uint8)

    return ExampleSamples(make, "HW")


def _large_mask(layout: str = "") -> ExampleSamples:
    """Return a mask as large as the photographs in the documentation."""
    return ExampleSamples(lambda index: masks().make(0).repeat(4, axis=0).repeat(6, axis=1)[:160, :240].copy(), "HW")


@register_operator
class FindContours(RowsOperator):
    """Finds the outlines of the regions in masks, as polygons.

    Returns polygons, INT32 of shape (polygons, 3): the number of each polygon, and start and end of its vertices; and vertices, INT32 of
    shape (vertices, 2): x and y of pixels on the outline. :func:`segmentation.select_masks` accepts polygons of this form. OpenCV finds
    the outlines on the CPU; on a GPU, masks are copied to the host and results back.

    >>> polygons, vertices = fn.find_contours(probabilities > 0.3)
    """

    schema = Schema(
        name="FindContours",
        inputs=(
            Input(
                "masks",
                ("HW", "HWC", "CHW"),
                doc="UINT8 or BOOL, of one channel: what is not 0 is in a region; pixels that share a corner are connected.",
                example=masks,
            ),
        ),
        arguments=(
            Argument(
                "approximation",
                "string",
                "simple",
                "`simple`: without vertices inside straight parts; `none`: each pixel of an outline is a vertex.",
                choices=tuple(_APPROXIMATIONS),
            ),
            Argument(
                "max_contours",
                "int32",
                0,
                "The largest number of polygons, in the order in which they are found; 0: all.",
                example=1,
            ),
            Argument(
                "mode",
                "string",
                "external",
                "`external`: outer outlines of regions that are not inside another one's hole; `list`: all, those of holes as well.",
                choices=tuple(_MODES),
            ),
        ),
        outputs=2,
        needs=(OPENCV,),
        examples=(Example(layout="HW"),),
        shown=(Example(inputs=(_large_mask,), layout="HW"),),
        equivalents=(Equivalent("cv2.findContours", "Returns a list of arrays, and a hierarchy."),),
    )

    def setup(self) -> None:
        for name, known in (("mode", _MODES), ("approximation", _APPROXIMATIONS)):
            if self.args[name] not in known:
                raise ValueError(f"`{name}` must be one of {', '.join(known)}. Got: {self.args[name]!r}")
        if self.args["max_contours"] < 0:
            raise ValueError(f"`max_contours` must be 0 or more. Got: {self.args['max_contours']}")

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype not in (BOOL, UINT8):
            raise RuntimeError(f"Masks must be UINT8 or BOOL, got {dtype_name(batch.dtype)}: compare with a threshold")
        return [OutputSpec(INT32, "", 2), OutputSpec(INT32, "", 2)]

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Rows]:
        layout = self.input_layout(samples.workspace)
        images = samples.of(samples.workspace.inputs[0].samples)
        found: list[list[np.ndarray]] = [[] for _ in images]

        def find(number: int) -> None:
            found[number] = self._outlines(images[number], layout)

        samples.workspace.parallel(find, len(images), [mask.size for mask in images])
        plans = _as_polygons(found)
        return plans.shapes(), plans

    def _outlines(self, mask: np.ndarray, layout: str) -> list[np.ndarray]:
        """Return the outlines in a mask, int32 of shape (vertices, 1, 2)."""
        from penstock.kernels.cpu.opencv import opencv

        if "C" in layout:
            if mask.shape[layout.index("C")] != 1:
                raise ValueError(f"Masks must have one channel. Got: shape {list(mask.shape)}")
            mask = mask.reshape([extent for extent, letter in zip(mask.shape, layout) if letter != "C"])
        if not mask.size:
            return []
        cv2 = opencv()
        contours, _ = cv2.findContours(
            np.ascontiguousarray(mask).view(np.uint8),
            getattr(cv2, _MODES[self.args["mode"]]),
            getattr(cv2, _APPROXIMATIONS[self.args["approximation"]]),
        )
        return list(contours[: self.args["max_contours"] or None])


def _as_polygons(found: Sequence[Sequence[np.ndarray]]) -> Rows:
    """Return the polygons and vertices of all samples, from the outlines of each."""
    outlines = [outline for own in found for outline in own]
    polygon_counts = np.fromiter(map(len, found), np.int64, len(found))
    sizes = np.fromiter(map(len, outlines), np.int64, len(outlines))
    vertices = np.concatenate([np.empty((0, 1, 2), np.int32), *outlines]).reshape(-1, 2)
    # Polygons and vertices are numbered from 0 in each sample.
    firsts, ends = firsts_of(polygon_counts), firsts_of(sizes)
    vertices_before = ends[firsts[:-1]].repeat(polygon_counts)
    polygons = np.empty((len(outlines), 3), np.int32)
    polygons[:, 0] = np.arange(len(outlines)) - firsts[:-1].repeat(polygon_counts)
    polygons[:, 1] = ends[:-1] - vertices_before
    polygons[:, 2] = ends[1:] - vertices_before
    return Rows([polygons, vertices], np.column_stack([polygon_counts, np.diff(ends[firsts])]))
