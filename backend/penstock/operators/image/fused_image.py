"""Chains of operators on images, computed strip by strip: an optional decoder, geometric and pointwise operators, a store."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.core.chains import Chain, array_part
from penstock.data_types import numpy_dtype
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region
from penstock.schema import Operator, Sample, Schema, Workspace, register_operator
from penstock.schema.fused import ComputeSample, FirstStepFailed, FusedOperator
from penstock.schema.image_chain import (
    ChainOperator,
    NotFusable,
    Pixels,
    PixelSource,
    Placement,
    Sampling,
    Stage,
    Store,
    launch_chain,
    plan_chain,
)
from penstock.schema.pointwise import PointwiseOperator
from penstock.tensors import TensorList
from penstock.tensors.places import places_of_samples

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.files import Files, Scratch

_MAX_CACHED = 256
_MIN_REDUCTION_LEFT = 1.5
"""Images are decoded at a smaller scale only if the resize still reduces them by at least this factor; with less, results
differ visibly (docs/decisions/decode-reduced-jpegs-on-request.md).
"""
_STRIP = 1 << 20
"""Bytes that one stage passes to the next at a time: smaller strips fit the caches better, but need more calls."""


@dataclass(frozen=True)
class _Link:
    """A stage of a chain, possibly composed of several operators.

    Attributes:
        stage: the stage itself.
        step: the position of the stage's last operator in the chain.
        dtype: the dtype of the stage's output.
    """

    stage: Stage
    step: int
    dtype: np.dtype


@dataclass(frozen=True)
class _Links:
    """The links of a chain.

    Attributes:
        links: the links, in order.
        scale: the factor by which the decoder reduces the image; 1: not at all.
    """

    links: list[_Link]
    scale: int


@dataclass(frozen=True)
class _Strip:
    """A part of a segment's output, and the data that it depends on.

    Attributes:
        wanted: the part of the segment's output.
        windows: for each stage, the part of its output that ``wanted`` depends on.
    """

    wanted: Region
    windows: tuple[Region, ...]


@dataclass(frozen=True)
class _Segment:
    """Stages whose results pass from one to the next strip by strip.

    Attributes:
        links: the stages.
        window: the part of the last stage's output to compute.
        part_read: the part of the first stage's input that ``window`` depends on.
        strips: the strips, in order.
        scale: the factor by which the decoder reduces the image; 1 in all segments but the first.
    """

    links: tuple[_Link, ...]
    window: Region
    part_read: Region
    strips: tuple[_Strip, ...]
    scale: int = 1


@dataclass
class _Buffers:
    """Buffers that each thread reuses, one for each purpose."""

    pieces: dict[tuple[str, int], ThreadBuffers] = field(default_factory=dict)

    def array(self, use: str, number: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return this thread's buffer for a purpose, uninitialized; ``number`` distinguishes several for the same purpose."""
        piece = self.pieces.get((use, number))
        if piece is None:
            piece = self.pieces.setdefault((use, number), ThreadBuffers())
        return piece.array(shape, dtype)


@register_operator
class FusedImage(FusedOperator):
    """Decodes only the region of each image that the output depends on, and runs the chain on it while it is in the
    cache.

    The operators' own kernels compute the results, which therefore equal those of separate operators bit for bit.
    Intermediate images are never materialized as a whole.
    """

    schema = Schema(name="_fused__Image", devices=("cpu",), fuses=(), hidden=True)

    def setup(self) -> None:
        self._buffers = _Buffers()
        # Keys contain the ids of the steps' plans; values hold the plans, so that an id is not reused.
        self._known: dict[tuple[object, ...], tuple[list[object], tuple[_Segment, ...]]] = {}

    def bind(self, payload: object) -> None:
        super().bind(payload)
        first = self.operators[0]
        self._source = first if isinstance(first, PixelSource) else None
        self._chained = [operator for operator in self.operators if isinstance(operator, ChainOperator)]
        # A chain that only copies windows needs no launch, as decoders write the windows directly.
        computes = self._source is None or not all(operator.is_placement for operator in self._chained)
        chooses_scale = self._source is not None and self._source.chooses_scale
        self._launches = computes and not chooses_scale and all(operator.launches for operator in self._chained)
        if not self._launches:
            for operator in self._chained:
                # Samples of equal shapes share a plan, and segments are cached by plan.
                operator.plans_by_shape |= operator.shares_plans_in_chains

    # -- which operators form a chain -------------------------------------------------------------------------------

    @classmethod
    def joins(cls, operator: Operator, is_first: bool) -> bool:
        if isinstance(operator, PixelSource):
            return is_first and operator.begins_chain()
        return isinstance(operator, ChainOperator) and operator.joins_chain()

    @classmethod
    def takes(cls, operators: Sequence[Operator]) -> bool:
        # Chains of only pointwise operators also work for data that are not images; another fused operator handles them.
        return len(operators) > 1 and not all(isinstance(operator, PointwiseOperator) for operator in operators)

    @classmethod
    def exceptions(cls, operators: Sequence[Operator]) -> tuple[str, ...]:
        notes = [
            note for operator in operators if isinstance(operator, ChainOperator) for note in operator.step_by_step
        ]
        if any(operator.schema.sequences for operator in operators):
            notes.append("frames")
        return tuple(dict.fromkeys(notes))

    # -- one sample ---------------------------------------------------------------------------------------------------

    def check_input(self, batch: TensorList) -> None:
        if self._source is None and batch.ndim() < 3:
            raise NotFusable("fewer than three dimensions")

    def compute_together(self, steps: Sequence[Workspace]) -> tuple[Sequence[int], ComputeSample]:
        if self._launches and self._source is None and launch_chain(self._chained, steps):
            return range(0), self.compute_fused
        if self._launches and self._source is not None:
            chain = plan_chain(self._chained, steps[1:], in_memory=False)
            regions = None if chain is None else chain.read_regions()
            if chain is not None and regions is not None:
                others = (
                    range(steps[-1].batch_size)
                    if steps[0].failures
                    else self._source.run_chain(steps[0], chain, regions)
                )
                return others, functools.partial(self._compute_decoded, chain, regions)
        return self._decode_together(steps), self.compute_fused

    def _compute_decoded(self, chain: Chain, regions: np.ndarray, samples: Sequence[Sample]) -> None:
        """Decode the region that a sample depends on, and run the chain on it in the compiled core."""
        index = samples[0].index
        anchor, extents = (regions[index][name][: chain.rank].tolist() for name in ("anchor", "extents"))
        if not math.prod(extents):
            # Even if no pixels are needed, the decoder must check that the file is an image: run the steps one by one.
            raise NotFusable("empty images")
        try:
            pixels = self._made(samples, Region(tuple(anchor), tuple(extents)))
        except Exception as error:
            raise FirstStepFailed(error) from error
        chain.run_sample(index, array_part(pixels.array, pixels.origin))

    def _decode_together(self, steps: Sequence[Workspace]) -> Sequence[int]:
        """Decode and compute samples in compiled code; return the positions of the samples that this code does not support."""
        everything, source = range(steps[-1].batch_size), self._source
        if source is None or not everything or any(step.failures for step in steps):
            return everything
        targets = places_of_samples(steps[-1].outputs[0])
        if targets is None:
            return everything
        try:
            planned = [self._segments(samples) for samples in zip(*(step.samples for step in steps))]
        except Exception:
            # Samples are then computed one by one, so that the sample that causes the error raises it again.
            return everything
        params = [row for row in map(_fused_decode_params, planned) if row is not None]
        if len(params) < len(planned):
            return everything
        parts = [segments[0].part_read for segments in planned]
        rows = np.array([(*part.anchor[:2], *part.extents[:2]) for part in parts], np.int64)
        resizings = np.concatenate(params)
        scales = np.array([segments[0].scale for segments in planned], np.int64)

        def work(files: Files, most_scans: int, taken: np.ndarray, decoded: np.ndarray, scratch: Scratch) -> None:
            from penstock.operators.image._decode_and_resample_cpu import decode_and_resample

            decode_and_resample(files, most_scans, resizings, taken, decoded, scratch)

        return source.decode_parts_for(steps[0], rows, targets, work, scales)

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        steps = samples if self._source is None else samples[1:]
        segments = self._segments(samples)
        output = samples[-1].outputs[0]
        if self._source is None:
            data = np.ascontiguousarray(samples[0].inputs[0])
            pixels = Pixels(data, (0,) * data.ndim)
        else:
            try:
                if self._made_in_place(samples[0], segments, output):
                    return
                pixels = self._made(samples, segments[0].part_read, segments[0].scale)
            except Exception as error:
                raise FirstStepFailed(error) from error
        for number, segment in enumerate(segments):
            last = number + 1 == len(segments)
            target = output
            if not last:
                target = self._buffers.array("between", number % 2, segment.window.extents, segment.links[-1].dtype)
            self._compute_segment(segment, steps, pixels, target)
            pixels = Pixels(target, segment.window.anchor)

    def _made_in_place(self, sample: Sample, segments: Sequence[_Segment], output: np.ndarray) -> bool:
        """Decode a window directly into the output if the chain does nothing else; return whether that was done."""
        links = segments[0].links
        if len(segments) > 1 or not all(_is_view(link.stage) for link in links):
            return False
        part = segments[0].part_read
        if part.extents[2:] != links[0].stage.shape_in[2:]:  # type: ignore[attr-defined]
            return False
        assert self._source is not None
        return self._source.decode_part_into(sample, Region(part.anchor[:2], part.extents[:2]), output)

    def _made(self, samples: Sequence[Sample], part: Region, scale: int = 1) -> Pixels:
        """Decode the region of an image that the chain needs, or the whole image if the decoder cannot decode a part."""
        assert self._source is not None
        pixels = self._source.decode_part(samples[0], Region(part.anchor[:2], part.extents[:2]), scale)
        if pixels is not None:
            return Pixels(pixels, (*part.anchor[:2], 0))
        dtype = numpy_dtype(samples[1].workspace.inputs[0].dtype)
        whole = self._buffers.array("whole", 0, samples[1].shapes[0], dtype)
        self._source.decode_into(samples[0], whole)
        return Pixels(whole, (0, 0, 0))

    def _compute_segment(self, segment: _Segment, steps: Sequence[Sample], pixels: Pixels, target: np.ndarray) -> None:
        base = segment.window.anchor
        for strip in segment.strips:
            place = zip(strip.wanted.anchor, strip.wanted.extents, base)
            self._compute_strip(
                segment, strip, steps, pixels, target[tuple(slice(a - b, a - b + e) for a, e, b in place)]
            )

    def _compute_strip(
        self, segment: _Segment, strip: _Strip, steps: Sequence[Sample], pixels: Pixels, target: np.ndarray
    ) -> None:
        last, turn = segment.links[-1], 0
        for link, window in zip(segment.links, strip.windows):
            stage = link.stage
            if isinstance(stage, Placement) and stage.is_view and link is not last:
                pixels = pixels.seen_from(stage.anchor)
                continue
            out = target
            if link is not last or window != strip.wanted or not (stage.writes_views or target.flags.c_contiguous):
                out, turn = self._buffers.array("strip", turn, window.extents, link.dtype), 1 - turn
            if out.size:
                stage.compute(steps[link.step], pixels, window, out)
            pixels = Pixels(out, window.anchor)
        if pixels.array is not target:
            target[...] = pixels.part(strip.wanted)

    # -- from steps to segments ---------------------------------------------------------------------------------------

    def _segments(self, samples: Sequence[Sample]) -> tuple[_Segment, ...]:
        """Return the segments that compute a sample; they are cached by the plans of its steps."""
        operators = self._chained
        reductions: tuple[int, ...] = ()
        steps = samples if self._source is None else samples[1:]
        if self._source is not None and self._source.chooses_scale:
            reductions = self._source.reductions(samples[0])
        keys = [operator.stage_key(sample) for operator, sample in zip(operators, steps)]
        if None in keys:
            return _planned(_links(operators, steps, reductions))
        batch = steps[0].workspace.inputs[0]
        key = (steps[0].shapes[0], batch.dtype, batch.layout(), reductions, *keys)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            plans = [sample.plan for sample in steps]
            known = self._known[key] = plans, _planned(_links(operators, steps, reductions))
        return known[1]


def _fused_decode_params(segments: Sequence[_Segment]) -> np.ndarray | None:
    """Return the parameters with which compiled code decodes an image and computes the whole chain; None if it cannot."""
    if len(segments) != 1 or len(segments[0].links) != 1:
        return None
    return segments[0].links[0].stage.decoding_parameters


def _is_view(stage: Stage) -> bool:
    return isinstance(stage, Placement) and stage.is_view


def _links(operators: Sequence[ChainOperator], steps: Sequence[Sample], reductions: Sequence[int]) -> _Links:
    """Return the stages of a sample, composed where possible.

    Args:
        reductions: the factors by which the decoder can reduce the image, the largest first.

    Raises:
        NotFusable: an intermediate image is empty.
    """
    links: list[_Link] = []
    scale = 1
    for step, (operator, sample) in enumerate(zip(operators, steps)):
        stage = operator.stage(sample)
        if not math.prod(stage.shape) or not math.prod(sample.shapes[0]):
            raise NotFusable("empty images")
        if not links and isinstance(stage, Sampling):
            scale, stage = _reduced(stage, reductions)
        following = steps[step + 1].workspace.inputs[0] if step + 1 < len(steps) else sample.workspace.outputs[0]
        link = _Link(stage, step, numpy_dtype(following.dtype))
        composed = _composed(links[-1].stage, stage) if links else None
        if composed is None:
            links.append(link)
        else:
            links[-1] = _Link(composed, step, link.dtype)
    return _Links(links, scale)


def _reduced(stage: Sampling, reductions: Sequence[int]) -> tuple[int, Sampling]:
    """Return the largest reduction that leaves enough pixels for a sampling (or 1), and the sampling for the reduced image."""
    for scale in reductions:
        reduced = stage.of_reduced(scale) if stage.reduction >= _MIN_REDUCTION_LEFT * scale else None
        if reduced is not None:
            return scale, reduced
    return 1, stage


def _composed(one: Stage, other: Stage) -> Stage | None:
    """Return a single stage equivalent to ``one`` followed by ``other``; None if there is none."""
    if isinstance(one, Store) and isinstance(other, Sampling):
        return other.following(one)
    if not isinstance(one, Sampling):
        return None
    if isinstance(other, Placement):
        return one.narrowed(other) if other.is_inside and not other.converts else None
    return one.stored_by(other) if isinstance(other, Store) else None


def _planned(chain: _Links) -> tuple[_Segment, ...]:
    """Return the segments of a chain; they are planned backwards, as each determines what the one before must compute."""
    links = chain.links
    wanted = Region.whole(links[-1].stage.shape)
    segments: list[_Segment] = []
    for group in reversed(list(_groups(links))):
        segment = _segment(tuple(group), wanted)
        if not math.prod(segment.part_read.extents):
            raise NotFusable("empty images")
        segments.insert(0, segment)
        wanted = segment.part_read
    segments[0] = replace(segments[0], scale=chain.scale)
    return tuple(segments)


def _groups(links: Sequence[_Link]) -> Iterator[list[_Link]]:
    """Group stages that run strip by strip together.

    A sampling begins a new group, because it reads neighbouring pixels; a stage that needs whole images is never grouped with
    others.
    """
    group: list[_Link] = []
    for link in links:
        if group and (isinstance(link.stage, Sampling) or link.stage.is_whole or group[-1].stage.is_whole):
            yield group
            group = []
        group.append(link)
    yield group


def _segment(links: tuple[_Link, ...], window: Region) -> _Segment:
    windows, part_read = _pulled(links, window)
    part = _part_at_a_time(links, windows)
    if part >= 1:
        return _Segment(links, window, part_read, (_Strip(window, windows),))
    axes = _axes_in_order(links, len(window.extents))
    strips = tuple(_Strip(piece, _pulled(links, piece)[0]) for piece in _pieces(window, axes, part))
    return _Segment(links, window, part_read, strips)


def _pulled(links: Sequence[_Link], window: Region) -> tuple[tuple[Region, ...], Region]:
    """Return the part that each stage must compute for ``window`` of the last stage's output, and the part that the first
    stage reads."""
    windows: list[Region] = []
    for link in reversed(links):
        window = link.stage.covers(window)
        windows.insert(0, window)
        window = link.stage.reads(window)
    return tuple(windows), window


def _axes_in_order(links: Sequence[_Link], ndim: int) -> list[int]:
    """Return the dimensions of the last stage's output, in the order that they have in the first stage's input."""
    axes = list(range(ndim))
    for link in links:
        if isinstance(link.stage, Store):
            axes = [link.stage.permutation.index(axis) for axis in axes]
    return axes


def _part_at_a_time(links: Sequence[_Link], windows: Sequence[Region]) -> float:
    """Return the size of a strip, as a fraction of the whole; 1 or more: everything at once."""
    made = [(link, window) for link, window in zip(links[:-1], windows) if not _is_view(link.stage)]
    largest = max((math.prod(window.extents) * link.dtype.itemsize for link, window in made), default=0)
    return _STRIP / largest if largest else 1.0


def _pieces(window: Region, axes: Sequence[int], part: float) -> Iterator[Region]:
    """Yield strips of about the fraction ``part`` of a window, cut along the first of ``axes``, then the next, never the last two."""
    if part >= 1 or len(axes) < 3:
        yield window
        return
    axis, *others = axes
    start, size = window.anchor[axis], window.extents[axis]
    step = max(round(size * part), 1)
    for first in range(start, start + size, step):
        count = min(step, start + size - first)
        piece = Region(
            (*window.anchor[:axis], first, *window.anchor[axis + 1 :]),
            (*window.extents[:axis], count, *window.extents[axis + 1 :]),
        )
        yield from _pieces(piece, others, part * size / count)
