"""`random_resized_crop`: a random window of each image, resized to a fixed size; the usual augmentation for
classifiers."""

from __future__ import annotations

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.kernels.random_crop import DEFAULT_AREA, DEFAULT_ASPECT_RATIO, RandomCrop
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, Spatial
from penstock.operators.image._resampling import stacks_of
from penstock.operators.image._resize_arguments import FILTER_ARGUMENTS, IMAGE_LAYOUTS
from penstock.operators.image._resizing import ResizingOperator
from penstock.schema import Argument, Equivalent, Input, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo
from penstock.schema.random_operator import RandomOperator


@register_operator
class RandomResizedCrop(RandomOperator[Spatial, ResamplePlan, ResamplePlans], ResizingOperator):
    """Cuts a window of random area and aspect ratio out of each image, and resizes it; the frames of a sequence share a window.

    This is the augmentation of Szegedy et al., "Going deeper with convolutions", 2015.

    >>> images = fn.random_resized_crop(images, size=[224, 224], random_area=[0.1, 1.0])  # doctest: +SKIP
    """

    schema = Schema(
        name="RandomResizedCrop",
        inputs=(Input("input", IMAGE_LAYOUTS, doc="Images of uint8, int16, uint16 or float."),),
        arguments=(
            *FILTER_ARGUMENTS,
            Argument("num_attempts", "int32", 10, "The largest number of windows to draw until one fits the image."),
            Argument("random_area", "float[]", DEFAULT_AREA, "Range of the window's area as a part of the image's."),
            Argument("random_aspect_ratio", "float[]", DEFAULT_ASPECT_RATIO, "Range of the window's width / height."),
            Argument(
                "size",
                "int32[]",
                None,
                "Output extents (height, width), or one for both; -1: as many as the image has.",
                required=True,
                example=[20, 14],
            ),
        ),
        random=True,
        stateful=True,
        shown=(on_photo(size=[120, 120]),),
        equivalents=(Equivalent("torchvision.transforms.v2.RandomResizedCrop", "It draws other numbers."),),
    )

    def setup(self) -> None:
        size = self.args["size"]
        if len(size) not in (1, 2) or min(size) < -1:
            raise RuntimeError(
                'Argument "size" expects either a single value or a list of 2 elements, none of them less than -1. '
                f"{size} given."
            )
        self._size = np.array([size * 2 if len(size) == 1 else size])
        area, ratio = self.args["random_area"], self.args["random_aspect_ratio"]
        self._crop = RandomCrop(area, ratio, self.args["num_attempts"])

    shares_plans_in_chains = False
    repeats_plans = False

    def run_batch(self, workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
        if workspace.device == "cpu" or not self._run_planned(workspace):
            super().run_batch(workspace)

    def _run_planned(self, workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> bool:
        """Compute a batch of images of integers on the GPU, planned in one call; return False if the batch is not supported."""
        images = workspace.inputs[0]
        if workspace.failures or workspace.owners is not None or not len(images):
            return False
        (spec,) = self.describe(workspace)
        shapes = images.shape_array()
        if spec.layout != "HWC" or numpy_dtype(images.dtype).kind not in "iu" or not shapes.all():
            return False
        from penstock.kernels.cpu.image_plans import plan_windows
        from penstock.kernels.cuda.resample import Normalized, resample_by_tables
        from penstock.kernels.cuda.taps import FilterTables, blank_tables, known_filters

        samples = Samples(self, workspace, range(len(images)))
        windows = self._crop.windows(*self.streams(workspace, samples.indices), shapes)
        filters, antialias = self.filters_by_growth(samples), bool(self.args["antialias"])
        rows, stacks, sizes = blank_tables(len(images)), np.empty((len(images), 4), np.int64), np.empty_like(shapes)
        counts = plan_windows(shapes, windows, self._size[0], filters, antialias, *known_filters(), rows, stacks, sizes)
        if not counts[0]:
            return False
        targets = workspace.allocate(list(map(tuple, sizes.tolist())), spec, 0)
        workspace.outputs = [targets]
        tables = FilterTables.of_rows(rows, *counts)
        resample_by_tables(stacks_of(images, stacks), targets.pointers(), numpy_dtype(spec.dtype), tables, Normalized())
        return True

    def plan_axes(
        self, samples: Samples[Spatial, ResamplePlan, ResamplePlans], extents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not extents.all():
            empty = extents[(extents == 0).any(axis=1)][0]
            raise RuntimeError(f"Cannot take a window of an empty image: its extents are {empty.tolist()}")
        windows = self._crop.windows(*self.streams(samples.workspace, samples.indices), extents)
        starts = windows[:, :2].astype(np.float64)
        sizes = np.where(self._size == -1, extents, self._size)
        return sizes, starts, starts + windows[:, 2:]
