"""Classes for chains of operators that are computed sample by sample, and only the parts that are needed.

Operators that can be part of a chain are derived from :class:`ChainOperator`. Once shapes are inferred, each operator makes a
:class:`Stage` for each sample, of one of four kinds:

- a :class:`Placement` moves elements: crops, slices, flips and padding;
- a :class:`Sampling` computes new pixels from several: resizing, warping;
- a :class:`PointwiseMap` changes values: casts, colours, arithmetic;
- a :class:`Store` ends the chain with another order of dimensions: a transposition, `crop_mirror_normalize`.

A stage knows on which part of its input a part of its output depends, and can compute parts. That is enough for one engine to run any
chain: it determines the needed regions backwards from the output, and then computes only these, forwards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.core.arrays import MAX_RANK
from penstock.core.chains import Chain, StageRecords
from penstock.data_types import numpy_dtype
from penstock.kernels.windows import Region
from penstock.schema.operator import Operator
from penstock.schema.outputs import Shape
from penstock.schema.plans import Plan, Plans, State
from penstock.schema.workspace import Sample, Workspace
from penstock.tensors.batch import kind_of
from penstock.tensors.places import places_of_samples

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.files import Files, Scratch


class NotFusable(Exception):
    """A sample must be computed step by step; the message says, in a few words, which samples this affects."""


@dataclass(frozen=True)
class Pixels:
    """A part of an array: ``array[i]`` is the element at position ``origin + i`` of the whole."""

    array: np.ndarray
    origin: tuple[int, ...]

    def part(self, region: Region) -> np.ndarray:
        """Return a view of a region; the region must lie within this part."""
        pairs = zip(region.anchor, region.extents, self.origin)
        return self.array[tuple(slice(a - o, a - o + e) for a, e, o in pairs)]

    def contiguous(self, region: Region) -> np.ndarray:
        """Return a region as a contiguous array; the region must lie within this part."""
        return np.ascontiguousarray(self.part(region))

    def seen_from(self, anchor: tuple[int, ...]) -> Pixels:
        """Return the same elements, with positions relative to ``anchor``."""
        return Pixels(self.array, tuple(o - a for o, a in zip(self.origin, anchor)))


class Stage:
    """The work of an operator on one sample.

    Attributes:
        shape: the shape of the whole output.
    """

    # Whether `compute` accepts strided views as targets; otherwise, targets are contiguous.
    writes_views = False
    # Whether a part of the output costs as much as the whole; then the whole is computed.
    is_whole = False
    # The parameters of the compiled code that decodes a JPEG and then computes this stage; see
    # `_decode_and_resample_cpu.py`. None: there is no such code for the stage.
    decoding_parameters: np.ndarray | None = None
    shape: Shape

    def covers(self, window: Region) -> Region:
        """Return the part of the output that has to be computed to obtain ``window``."""
        return Region.whole(self.shape) if self.is_whole else window

    def reads(self, window: Region) -> Region:
        """Return the part of the input on which a part of the output, as returned by :meth:`covers`, depends."""
        return window

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        """Compute a part of the output on the CPU; the result must equal that of the operator's ``compute``.

        Args:
            sample: the sample in this step; its data may be absent.
            source: the input data, at least the part that :meth:`reads` returns.
            window: the part to compute, as returned by :meth:`covers`.
            target: an array with the extents of ``window``, to be filled.
        """
        raise NotImplementedError


class Placement(Stage):
    """A stage that moves elements: ``output[i] = input[anchor + i]``, reversed along mirrored axes, and a fill value outside the input.

    Attributes:
        anchor: the position in the input at which the output begins.
        shape_in: the input's shape.
        mirrored: whether each axis is mirrored.
        converts: whether the output has another type than the input.
    """

    anchor: tuple[int, ...]
    shape_in: Shape
    mirrored: tuple[bool, ...]
    converts: bool

    @property
    def is_inside(self) -> bool:
        """Whether the output lies within the input, so that nothing is filled."""
        return Region(self.anchor, self.shape).inside(self.shape_in)

    @property
    def is_view(self) -> bool:
        """Whether the output can be a view of the input."""
        return self.is_inside and not self.converts and not any(self.mirrored)

    def source_region(self, window: Region) -> Region:
        """Return the region of the input for a part of the output; it may lie partly outside the input."""
        starts = (
            base + (extent - start - size if mirrored else start)
            for base, extent, start, size, mirrored in zip(
                self.anchor, self.shape, window.anchor, window.extents, self.mirrored
            )
        )
        return Region(tuple(starts), window.extents)

    def reads(self, window: Region) -> Region:
        return _clipped(self.source_region(window), self.shape_in)


def _clipped(region: Region, shape: Shape) -> Region:
    inside, _ = region.overlap(shape)
    return Region(tuple(s.start for s in inside), tuple(s.stop - s.start for s in inside))


class Sampling(Stage):
    """A stage in which each output element is computed from several input elements, in the geometry of an image."""

    @property
    def reduction(self) -> float:
        """The smallest number of input rows or columns per output row or column; 1 if it is not known."""
        return 1.0

    def of_reduced(self, scale: int) -> Sampling | None:
        """Return a sampling that makes the same output from the image reduced by ``scale``; None if that is not possible."""
        return None

    def narrowed(self, placement: Placement) -> Sampling | None:
        """Return a sampling that computes only the part of this one's output that ``placement`` reads; None if that is not
        possible. ``placement`` must lie within the output.
        """
        return None

    def stored_by(self, store: Store) -> Stage | None:
        """Return a single stage that is equivalent to this one followed by ``store``; None if there is none."""
        return None

    def following(self, store: Store) -> Stage | None:
        """Return a single stage that is equivalent to ``store`` followed by this one; None if there is none."""
        return None


class PointwiseMap(Stage):
    """A stage in which each output element, or pixel, depends only on the corresponding one of the input."""


class Store(Stage):
    """A stage whose output has another order of dimensions.

    Attributes:
        permutation: for each output dimension, the corresponding input dimension.
    """

    permutation: tuple[int, ...]


class ChainOperator(Operator[State, Plan, Plans]):
    """Base class of operators that can be part of a chain: they have one output, and the data are the first input."""

    # Whether the operator's stages are placements.
    is_placement: bool = False
    # Whether :meth:`stage_records` describes most batches, so that the core can compute them without Python.
    launches: bool = False
    # Whether equal samples share plans, as with `plans_by_shape`, when the chain is computed sample by sample.
    shares_plans_in_chains: bool = False
    # The kinds of data that are computed step by step, as shown to users.
    step_by_step: tuple[str, ...] = ()

    # The last stages described, with their plans.
    _last_recorded: tuple[object, StageRecords | None] = (None, None)

    def joins_chain(self) -> bool:
        """Return whether the operator's arguments allow it to join a chain."""
        return True

    def recorded(self, workspace: Workspace[State, Plan, Plans]) -> StageRecords | None:
        """Return the result of :meth:`stage_records` for a batch; the last result is reused if the plans are the same."""
        plans, stage = self._last_recorded
        if plans is not workspace.plans:
            stage = self.stage_records(workspace)
            self._last_recorded = workspace.plans, stage
        return stage

    def stage_records(self, workspace: Workspace[State, Plan, Plans]) -> StageRecords | None:
        """Describe the stages of a batch; return None if the batch has to be computed sample by sample.

        Shapes have been inferred, and no sample has failed; data may be absent.
        """
        return None

    def compute_samples(self, workspace: Workspace[State, Plan, Plans], shapes: Sequence[Shape]) -> None:
        if not (self.launches and launch_chain([self], [workspace])):
            super().compute_samples(workspace, shapes)

    def stage_key(self, sample: Sample[State, Plan, Plans]) -> Hashable | None:
        """Return a key that is equal for samples with equal shapes and stages, as long as their plans exist; None if such a key is
        not known.
        """
        return id(sample.plan) if self.plans_by_shape or sample.plan is None else None

    def stage(self, sample: Sample[State, Plan, Plans]) -> Stage:
        """Return the stage for a sample, whose shapes have been inferred. The stage must not refer to the sample.

        Raises:
            NotFusable: the sample must be computed step by step.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `stage`")


class PixelSource(Operator[State, Plan, Plans]):
    """Base class of operators that produce images (H, W, C), and can also produce just a part of an image: the decoders."""

    def begins_chain(self) -> bool:
        """Return whether it pays off to decode as the first step of a chain."""
        return True

    def decode_into(self, sample: Sample[State, Plan, Plans], output: np.ndarray) -> None:
        """Decode a whole image into ``output``."""
        raise NotImplementedError

    @property
    def chooses_scale(self) -> bool:
        """Whether images are decoded at a reduced scale if a following resize permits that, although pixels then differ slightly."""
        return False

    def reductions(self, sample: Sample[State, Plan, Plans]) -> tuple[int, ...]:
        """Return the factors by which :meth:`decode_part` can reduce the rows and columns of a sample, the largest first."""
        return ()

    def decode_part(self, sample: Sample[State, Plan, Plans], part: Region, scale: int = 1) -> np.ndarray | None:
        """Decode a part (in H, W) of the result of :meth:`decode_into`, into memory that this thread reuses for its next image.

        Args:
            scale: 1, or one of :meth:`reductions`; in the latter case, ``part`` is a part of the reduced image, and is always decoded.

        Return None if the part has to be cut out of the whole image, or if that is faster.
        """
        return None

    def decode_parts_for(
        self,
        workspace: Workspace,
        parts: np.ndarray,
        targets: np.ndarray,
        work: Callable[[Files, int, np.ndarray, np.ndarray, Scratch], None],
        scales: np.ndarray,
    ) -> Sequence[int]:
        """Decode parts of the images of a batch, and run the stages of a chain on each, in compiled code.

        Args:
            workspace: the batch's workspace.
            parts: a row for each image: the anchor and the extents of the part, in H, W.
            targets: the addresses to which results are written.
            work: the function that each thread runs. Its arguments are the files, the limit on scans, the counter of files that threads
                have taken, the flags of decoded files, which it sets, and its scratch memory; see ``kernels/cpu/jpeg/files.py``. The region
                of a file may be larger than the part.
            scales: the factor by which each image is reduced, int64; its part is a part of the reduced image. See :meth:`reductions`.

        Returns:
            The positions of the images that are left, to be decoded one by one.
        """
        return range(workspace.batch_size)

    def run_chain(self, workspace: Workspace, chain: Chain, regions: np.ndarray) -> Sequence[int]:
        """Decode the images of a batch, and compute the samples of a chain from them, in compiled code.

        Args:
            workspace: the batch's workspace.
            chain: the chain to run.
            regions: the region of each image on which the chain's sample depends, of type :data:`~penstock.core.chains.REGION`.

        Returns:
            The positions of the samples that are left, to be computed one by one.
        """
        return range(workspace.batch_size)

    def decode_part_into(self, sample: Sample[State, Plan, Plans], part: Region, output: np.ndarray) -> bool:
        """Decode a part (in H, W) of the image directly into ``output``; return False if that is not possible."""
        return False


def launch_chain(operators: Sequence[ChainOperator], steps: Sequence[Workspace]) -> bool:
    """Compute a batch on the CPU in the core; return False if the core cannot compute it.

    Args:
        operators: the operators of a chain, or a single operator.
        steps: the workspaces of the operators; the first must have its input, and the last its output.
    """
    chain = plan_chain(operators, steps)
    return chain is not None and chain.run(steps[0].num_threads, steps[0].cores)


def plan_chain(operators: Sequence[ChainOperator], steps: Sequence[Workspace], in_memory: bool = True) -> Chain | None:
    """Describe a batch on the CPU as a chain that the core can run; return None if the core cannot compute it.

    Args:
        operators, steps: as in :func:`launch_chain`.
        in_memory: whether the input of the first step is in memory; otherwise, parts of it are passed to :meth:`Chain.run_sample`.
    """
    source, output = steps[0].inputs[0], steps[-1].outputs[0]
    dtype, rank, _ = kind_of(source)
    if not source.shapes or not 0 < rank <= MAX_RANK:
        return None
    stages: list[StageRecords] = []
    for operator, step in zip(operators, steps):
        if step.failures or step.plans is None or len(step.plans) != step.batch_size:
            return None
        stage = operator.recorded(step)
        if stage is None:
            return None
        stages.append(stage)
    sources, targets = places_of_samples(source) if in_memory else None, places_of_samples(output)
    if targets is None or (in_memory and sources is None):
        return None
    return Chain.of(sources, source.shape_array(), numpy_dtype(dtype).itemsize, stages, targets)
