"""`spectrogram`: the power spectrum over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import (
    Argument,
    Input,
    Operator,
    OutputSpec,
    PlanColumns,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, signals, sounds

if TYPE_CHECKING:
    from penstock.kernels.cpu.fft import Transform

# Bytes of frames per call of the transform: few enough to fit the cache and to stay below the size at which malloc calls mmap.
_TILE_BYTES = 120 * 1024


_MIN_TRANSFORM = 3


@dataclass(eq=False)
class SpectrumPlans(PlanColumns["Transform | None"]):
    """The transforms of many signals.

    Attributes:
        frames: the number of each signal's frames, int64.
        transform: the parameters for the CPU's kernels, the same for all signals; None on a GPU, or for a size that the kernels do not
            support.
    """

    frames: np.ndarray
    transform: Transform | None

    def __len__(self) -> int:
        return len(self.frames)

    def row(self, number: int) -> Transform | None:
        return self.transform


@register_operator
class Spectrogram(Operator[None, "Transform | None", SpectrumPlans]):
    """Computes the power of the short-time Fourier transform.

    A transform of n elements yields n // 2 + 1 frequencies. The default is a Hann window sampled at half positions:
    ``0.5 * (1 - cos(2 pi (n + 0.5) / N))``. Centred windows extend past the signal's ends, where the signal is reflected or
    padded with zeros.

    >>> spectra = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    """

    schema = Schema(
        name="Spectrogram",
        inputs=(Input("input", doc="Signals: float32, with one dimension of more than one element.", example=signals),),
        arguments=(
            Argument(
                "center_windows",
                "bool",
                True,
                "Centre windows at multiples of the step, instead of starting them there.",
            ),
            Argument(
                "layout", "layout", "ft", "Layout of the output: `ft` (frequency first) or `tf`.", choices=("ft", "tf")
            ),
            Argument(
                "nfft",
                "int32",
                None,
                "Size of the transform; by default that of the window. The output has nfft // 2 + 1 frequencies.",
                example=1024,
            ),
            Argument("power", "int32", 2, "2: power; 1: magnitude."),
            Argument("reflect_padding", "bool", True, "Pad the signal by reflection; otherwise with zeros."),
            Argument("window_fn", "float[]", None, "The window; by default a Hann window."),
            Argument("window_length", "int32", 512, "Length of the window, in samples."),
            Argument("window_step", "int32", 256, "Distance between windows, in samples."),
        ),
        examples=(
            Example(),
            Example({"window_length": 8, "window_step": 8, "window_fn": [0.1, 0.4, 0.8, 1.0, 1.0, 0.8, 0.4, 0.1]}),
        ),
        shown=(Example({"nfft": 512, "window_step": 128}, (sounds,)),),
    )

    def setup(self) -> None:
        self._length, self._step = self.args["window_length"], self.args["window_step"]
        for name in ("window_length", "window_step"):
            if self.args[name] <= 0:
                raise RuntimeError(f"Invalid {name.replace('_', ' ')}: {self.args[name]}; `{name}` must be positive")
        self._nfft = self._length if self.args["nfft"] is None else self.args["nfft"]
        if self._length > self._nfft:
            raise RuntimeError(f"Window length ({self._length}) can't be bigger than the FFT size ({self._nfft})")
        if self._nfft < _MIN_TRANSFORM and self.device == "cpu":
            raise RuntimeError(
                f"Could not initialize a Fourier transform of {self._nfft}: `nfft` must be {_MIN_TRANSFORM} at least"
            )
        if self.args["power"] not in (1, 2):
            raise RuntimeError(f"`power` can be only 1 (energy) or 2 (power), received {self.args['power']}")
        if self.args["layout"] not in ("ft", "tf"):
            raise RuntimeError(f"Unexpected layout: {self.args['layout']}; it can be `ft` or `tf`")
        self._window = self._window_values()
        self._start = -(self._length // 2) if self.args["center_windows"] else 0

    def _window_values(self) -> np.ndarray:
        window = self.args["window_fn"]
        if self.given("window_fn"):
            if len(window) != self._length:
                raise RuntimeError(
                    f"Window function should match the specified `window_length`: {self._length}, got {len(window)} values"
                )
            return np.array(window, np.float32)
        phases = 2 * np.pi * (np.arange(self._length) + 0.5) / self._length
        return (0.5 * (1 - np.cos(phases))).astype(np.float32)

    def describe(self, workspace: Workspace[None, Transform | None, SpectrumPlans]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != FLOAT:
            raise RuntimeError(f"The input must be float32, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, self.args["layout"], 2)]

    def infer_batch(self, samples: Samples[None, Transform | None, SpectrumPlans]) -> tuple[np.ndarray, SpectrumPlans]:
        lengths = _signal_lengths(samples.shapes())
        spans = lengths - (0 if self.args["center_windows"] else self._length)
        if (spans < 0).any():
            row = int(spans.argmin())
            raise RuntimeError(
                f"Signal is too short ({lengths[row]}) for sample {samples.indices[row]}: a window has {self._length} elements"
            )
        plans = SpectrumPlans(spans // self._step + 1, self._transform if self.device == "cpu" else None)
        bins = np.full(len(samples), self._nfft // 2 + 1)
        axes = (bins, plans.frames) if self.args["layout"] == "ft" else (plans.frames, bins)
        return np.stack(axes, axis=1), plans

    def compute(self, sample: Sample[None, Transform | None, SpectrumPlans]) -> None:
        signal, out = np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.outputs[0]
        time_first = self.args["layout"] == "tf"
        if sample.plan is not None:
            from penstock.kernels.cpu import fft

            fft.power_spectra(signal, sample.plan, time_first, out)
        else:
            self._transform_in_tiles(signal, out if time_first else out.T)

    @cached_property
    def _transform(self) -> Transform | None:
        """The transform's parameters for the CPU's kernels; None for sizes that the kernels do not support."""
        from penstock.kernels.cpu import fft

        if not fft.is_transformed(self._nfft):
            return None
        reflect, magnitude = self.args["reflect_padding"], self.args["power"] == 1
        return fft.framed(self._window, self._step, self._start, self._nfft, reflect=reflect, magnitude=magnitude)

    def compute_batch(self, workspace: Workspace[None, Transform | None, SpectrumPlans]) -> None:
        from penstock.kernels.cuda.launch import columns_of
        from penstock.operators.audio._spectrum_cuda import Framing, power_spectra

        framing = Framing(
            self._step,
            self._start,
            self._nfft,
            reflect=self.args["reflect_padding"],
            magnitude=self.args["power"] == 1,
            time_first=self.args["layout"] == "tf",
        )
        signals, spectra = (
            columns_of(batch, workspace.live_indices) for batch in (workspace.inputs[0], workspace.outputs[0])
        )
        power_spectra(signals, spectra, self._window, framing)

    def _transform_in_tiles(self, signal: np.ndarray, by_time: np.ndarray) -> None:
        """Fill ``by_time``, of shape (time, frequency), with power spectra of any size, with scipy and several frames at a time."""
        from scipy import fft

        from penstock.kernels.cpu import audio

        reflect, magnitude = self.args["reflect_padding"], self.args["power"] == 1
        tile = max(_TILE_BYTES // (4 * self._nfft), 1)
        for begin in range(0, len(by_time), tile):
            part = by_time[begin : begin + tile]
            frames = np.empty((len(part), self._nfft), np.float32)
            audio.windowed_frames(signal, self._window, self._step, self._start + begin * self._step, reflect, frames)
            audio.spectral_power(fft.rfft(frames, axis=1, overwrite_x=True), magnitude, part)


def _signal_lengths(shapes: np.ndarray) -> np.ndarray:
    """Return the lengths of signals.

    Raises:
        RuntimeError: a signal is empty, or has several dimensions with more than one element.
    """
    lengths: np.ndarray = shapes.prod(axis=1)
    fits = ((shapes == 1) | (shapes == lengths[:, None])).all(axis=1)
    for row in np.flatnonzero(~fits | (lengths == 0))[:1]:
        shape = tuple(shapes[row].tolist())
        if not lengths[row]:
            raise RuntimeError(f"Spectogram does not support empty (0-volume) samples. The shape is {shape}")
        raise RuntimeError(f"A signal must be 1D, or have one dimension besides those of extent 1, got {shape}")
    return lengths
