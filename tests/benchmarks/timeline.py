"""Draw where pipeline A spends its time on a GPU, batch by batch.

    python tests/benchmarks/timeline.py [--batch 64] [--served] [--svg FILE]

The host's spans are measured with its clock, the GPU's with CUDA events on the streams. The decoding of a batch lasts from the end of
the previous batch's decoding until it ends or, with nvImageCodec, until the host notices that; a fused resize counts as decoding.
Other stages last from their first launch to their last.

With --served, batches run as in a served model: one thread begins a batch while another thread completes the previous one.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cupy
from pipelines import PHOTOGRAPHS, a, photographs
from turns import headline

import penstock
from penstock.kernels.codecs.gpu.jpegs import JpegPart
from penstock.kernels.codecs.jpeg_gpu import JpegBatch
from penstock.kernels.codecs.nvimgcodec.decoder import BatchDecoder
from penstock.kernels.cuda.launch_list import LaunchList
from penstock.pipeline.session import Session
from penstock.runtime.executor import Executor
from penstock.schema.fused import FusedOperator
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorListCPU
from penstock.tensors.cuda import stream_at

LANES = (
    "Python: begins a batch",
    "Python: completes a batch",
    "Python: waits for a batch",
    "GPU: copies coded data",
    "GPU: decodes JPEGs",
    "GPU: resizes, normalizes",
)
BEGINS, COMPLETES, WAITS, COPIES, DECODES, RESIZES = LANES
WARM_UP, SHOWN = 20, 4
BATCHES = WARM_UP + SHOWN + 4
LEFT, WIDTH, HEIGHT, TOP = 190, 760, 26, 44
COLOURS = ("#5b8def", "#f2a65a", "#59b68a", "#c77dbb")


@dataclass
class Span:
    """The work of one lane for one batch.

    Attributes:
        lane: the name of the row of the timeline that shows the work.
        start, stop: the start and end of the work: seconds on the host's clock, or CUDA events.
    """

    lane: str
    start: Any
    stop: Any = None


class Recorder:
    """Records spans while a pipeline runs."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._decoding: list[Span] = []
        self._wrap(Executor, "begin", self._on_host(BEGINS))
        self._wrap(Executor, "complete", self._on_host(COMPLETES))
        self._wrap(Session, "take", self._on_host(WAITS))
        self._wrap(Executor, "await_begun", self._on_host(WAITS))
        self._wrap(BatchDecoder, "decode_records", self._decode)
        self._wrap(LaunchList, "copy_beforehand", self._copy)
        self._wrap(JpegBatch, "_launch", self._launch)
        self._wrap(JpegPart, "join", self._join)
        self._wrap(FusedOperator, "run", self._resize)
        cupy.cuda.runtime.deviceSynchronize()
        self.base, self.began = cupy.cuda.get_current_stream().record(cupy.cuda.Event()), time.perf_counter()

    @staticmethod
    def _wrap(owner: type, name: str, around: Callable[..., Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, functools.partialmethod(_called, around, original))

    def _on_host(self, lane: str) -> Callable[..., Any]:
        def around(call: Callable[[], Any], *_given: Any) -> Any:
            span = Span(lane, time.perf_counter())
            found = call()
            span.stop = time.perf_counter()
            self.spans.append(span)
            return found

        return around

    def _decode(self, call: Callable[[], Any], _decoder: Any, *given: Any) -> Any:
        _images, _pixels, stream, _keep = given
        span = Span(DECODES, stream_at(stream, 0).record(cupy.cuda.Event()))
        self._decoding.append(span)
        return call()

    def _copy(self, call: Callable[[], Any], launches: LaunchList, *given: Any) -> Any:
        *_places, stream, _event = given
        span = Span(COPIES, cupy.cuda.Event(), cupy.cuda.Event())
        # The list of launches is executed later, so the events have to be recorded in it.
        launches.record(span.start, stream)
        found = call()
        launches.record(span.stop, stream)
        self.spans.append(span)
        return found

    def _launch(self, call: Callable[[], Any], _batch: JpegBatch, launches: LaunchList, *_given: Any) -> Any:
        span = Span(DECODES, cupy.cuda.Event(), cupy.cuda.Event())
        launches.record(span.start)
        found = call()
        launches.record(span.stop)
        self.spans.append(span)
        return found

    def _join(self, call: Callable[[], Any], part: Any) -> Any:
        found = call()
        if isinstance(part.batch, JpegBatch):
            return found
        span = self._decoding.pop(0)
        # nvImageCodec may have queued more work on the decoding stream.
        stream = part.streams.decoding if part.streams else cupy.cuda.get_current_stream()
        span.stop = stream.record(cupy.cuda.Event())
        self.spans.append(span)
        return found

    def _resize(self, call: Callable[[], Any], *_given: Any) -> Any:
        stream = cupy.cuda.get_current_stream()
        span = Span(RESIZES, stream.record(cupy.cuda.Event()))
        found = call()
        span.stop = stream.record(cupy.cuda.Event())
        self.spans.append(span)
        return found

    def milliseconds(self) -> list[tuple[str, float, float]]:
        """Return the lane, start and end of each span, in milliseconds."""
        cupy.cuda.runtime.deviceSynchronize()
        return [(span.lane, self._at(span.start), self._at(span.stop)) for span in self.spans]

    def _at(self, moment: Any) -> float:
        if isinstance(moment, float):
            return (moment - self.began) * 1e3
        return float(cupy.cuda.get_elapsed_time(self.base, moment))


def _called(this: Any, around: Callable[..., Any], original: Callable[..., Any], *given: Any, **named: Any) -> Any:
    return around(lambda: original(this, *given, **named), this, *given, *named.values())


def drawn(spans: list[tuple[str, float, float]], title: str) -> str:
    """Return an SVG that shows the batches after the warm-up."""
    lanes = [lane for lane in LANES if any(lane == used for used, _, _ in spans)]
    numbers = dict.fromkeys(LANES, 0)
    decoded = 0.0
    waits = sorted(start for lane, start, _ in spans if lane == WAITS)
    first, last = waits[WARM_UP], waits[WARM_UP + SHOWN]
    scale = WIDTH / (last - first)
    parts = []
    for lane, start, stop in sorted(spans, key=lambda span: span[1]):
        number, numbers[lane] = numbers[lane], numbers[lane] + 1
        if lane == DECODES:
            start, decoded = max(start, decoded), stop
        left, right = max(start, first), min(stop, last)
        if left >= right:
            continue
        x, y = LEFT + (left - first) * scale, TOP + lanes.index(lane) * HEIGHT
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 3}" width="{max((right - left) * scale, 1):.1f}" height="{HEIGHT - 6}" '
            f'fill="{COLOURS[number % len(COLOURS)]}"><title>{stop - start:.2f} ms</title></rect>'
        )
    bottom = TOP + len(lanes) * HEIGHT
    for tick in range(int(last - first) + 1):
        x = LEFT + tick * scale
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="#8884"/>')
        if tick % 5 == 0:
            parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick} ms</text>')
    for row, lane in enumerate(lanes):
        parts.append(f'<text x="8" y="{TOP + row * HEIGHT + HEIGHT * 0.68:.1f}">{lane}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {bottom + 28}" '
        'font-family="sans-serif" font-size="12" fill="#666">\n'
        f'<text x="8" y="20" font-size="13">{title}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def shifted(encoded: list[Any], number: int) -> list[Any]:
    """Return a batch of the photographs, in another order each time."""
    shift = number % len(encoded)
    return encoded[shift:] + encoded[:shift]


def train(encoded: list[Any], settings: dict[str, Any]) -> None:
    """Run batches as a training loop does."""

    @penstock.pipeline_def(**settings, prefetch_queue_depth=2)
    def define() -> Any:
        turn = iter(range(1 << 30))

        def source() -> list[Any]:
            return shifted(encoded, next(turn))

        return a(True)(penstock, penstock.fn.external_source(source=source, batch=True, no_copy=True))

    pipeline = define()
    for _ in range(BATCHES):
        pipeline.run()


def serve(encoded: list[Any], settings: dict[str, Any]) -> None:
    """Run batches as a served model does."""

    @penstock.pipeline_def(**settings, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)
    def define() -> Any:
        return a(True)(penstock, penstock.fn.external_source(name="encoded", dtype=penstock.types.UINT8, ndim=1))

    runner = PipelineRunner(define())
    with ThreadPoolExecutor(1) as thread:
        before: Future[Any] | None = None
        for number in range(BATCHES):
            begun = runner.begin({"encoded": TensorListCPU(shifted(encoded, number))}, len(encoded))
            if before is not None:
                before.result()
            before = thread.submit(runner.complete, begun)


def main() -> None:
    """Run the pipeline and draw some of its batches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--images", type=Path, default=PHOTOGRAPHS, help="a folder of JPEG files")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--svg", type=Path, default=Path("timeline.svg"), help="where to draw")
    parser.add_argument("--served", action="store_true", help="as in a served model")
    options = parser.parse_args()
    encoded = photographs(options.images, options.batch)
    settings = {"batch_size": options.batch, "num_threads": options.threads, "device_id": 0}
    recorder = Recorder()
    (serve if options.served else train)(encoded, settings)
    title = f"Pipeline A, batches of {options.batch} photographs. {headline().split(' cores')[0]} cores"
    options.svg.write_text(drawn(recorder.milliseconds(), title))
    print(f"Drawn in {options.svg}")


if __name__ == "__main__":
    main()
