"""`decoders.on_white`: decodes images, transparent ones on a white background."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.data_types import RGB, UINT8, dtype_name
from penstock.errors import PenstockError
from penstock.kernels.codecs.transparency import asks_pillow, decode_on_white
from penstock.kernels.windows import Region
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import (
    DECODER_ARGUMENTS,
    ENCODED_DOC,
    DecodePlan,
    Encoded,
    ImageDecoder,
    encoded_bytes,
    undecodable,
)
from penstock.schema import Equivalent, Input, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, photo_files
from penstock.schema.workspace import Started

if TYPE_CHECKING:
    from penstock.kernels.cuda.streaming import StreamedBatch


@register_operator
class OnWhite(ImageDecoder):
    """Decodes images as `decoders.image` does, and puts transparent ones (PNG, WebP, GIF, TIFF) on a white background.

    Decoders return the colours that a file stores for transparent pixels. Image processors of `transformers`, which this
    operator follows, show such images as a browser does on a white page. CMYK, and colours of 16 bits, become RGB as Pillow
    converts them.

    On the device ``mixed``, the CPU decodes as well, so that pixels are the same, and each image is copied to the GPU while
    others are decoded.

    >>> images = fn.decoders.on_white(files)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__OnWhite",
        devices=("cpu", "mixed"),
        inputs=(Input("input", device="cpu", doc=ENCODED_DOC, example=encoded_images),),
        arguments=DECODER_ARGUMENTS,
        shown=(Example({}, (photo_files,)),),
        equivalents=(Equivalent("PIL.Image.alpha_composite"),),
        unswept="of the decoders' arguments, it takes only what gives upright images, in RGB of uint8",
    )

    def setup(self) -> None:
        super().setup()
        if self.output_type != RGB or self.args["dtype"] != UINT8:
            raise ValueError(
                f"Images on white are RGB of uint8. Got: {self.output_type.name} of {dtype_name(self.args['dtype'])}"
            )
        if not self.args["adjust_orientation"]:
            raise ValueError("Images on white are upright: `adjust_orientation` is True")

    def _decode(self, sample: Sample[Encoded, DecodePlan], region: Region | None, output: np.ndarray) -> None:
        file = encoded_bytes(sample)
        try:
            if (
                output.size
                and asks_pillow(sample.plan.header)
                and decode_on_white(file, output, sample.workspace.decoding)
            ):
                return
        except PenstockError as error:
            raise undecodable(error, sample) from None
        super()._decode(sample, region, output)

    def decode_part_into(self, sample: Sample[Encoded, DecodePlan], part: Region, output: np.ndarray) -> bool:
        return not asks_pillow(sample.plan.header) and super().decode_part_into(sample, part, output)

    def decode_part(self, sample: Sample[Encoded, DecodePlan], part: Region) -> np.ndarray | None:
        return None if asks_pillow(sample.plan.header) else super().decode_part(sample, part)

    # -- device "mixed" ----------------------------------------------------------------------------------------

    _through: Any = None

    @property
    def is_cheap_on_host(self) -> bool:
        return False

    def begin(self, workspace: Workspace[Encoded]) -> None:
        from penstock.kernels.cuda.streaming import StreamedBatch, Streaming

        if self._through is None:
            self._through = Streaming()
        (spec,) = self.describe(workspace)
        (shapes,) = self.infer_samples(workspace, 1)
        batch = StreamedBatch(self._through, shapes, spec.dtype, spec.layout)
        samples, errors = list(workspace.samples), dict[int, Exception]()

        def task(index: int) -> None:
            sample = samples[index]
            if sample is None:
                return
            try:
                self.decode_into(sample, batch.host(index))
                batch.send(index)
            except Exception as error:
                errors[index] = error

        started = workspace.start(task, len(samples), [math.prod(shape) for shape in shapes])
        workspace.begun = _Begun(batch, started, errors)

    def is_ready(self, workspace: Workspace) -> bool:
        return bool(workspace.begun.started.is_done())

    def _run_on_gpu(self, workspace: Workspace[Encoded]) -> None:
        if workspace.begun is None:
            self.begin(workspace)
        begun: _Begun = workspace.begun
        begun.started.wait()
        workspace.outputs = [begun.batch.finish()]
        for index in sorted(begun.errors):
            workspace.fail(index, begun.errors[index])


class _Begun(NamedTuple):
    """A batch that is being decoded.

    Attributes:
        batch: where its images go.
        started: the work on it.
        errors: of images that failed, by their positions.
    """

    batch: StreamedBatch
    started: Started
    errors: dict[int, Exception]
