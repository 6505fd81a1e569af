"""`kaldi_fbank`: the filter bank features of Kaldi."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, signals, sounds

_WINDOWS = ("povey", "hanning", "hann", "hamming", "sine", "rectangular", "blackman")
_POVEY = 0.85
# Number of frames per transform.
_FRAMES = 1024


@register_operator
class KaldiFbank(Operator):
    """Computes Kaldi's filter bank features, without dither, which is random.

    The results equal kaldi-native-fbank's except for the rounding errors of its Fourier transform, which has single
    precision: logarithms differ by less than 1e-3, most of them by less than 1e-5.

    By default, the mean of each window is subtracted. Windows are filtered by ``x[i] - preemphasis * x[i - 1]``, and padded to a
    power of two. Kaldi's recipes take signals from -32768 to 32767; others take them from -1 to 1. Returns FLOAT of shape
    (windows, bands).

    >>> features = fn.kaldi_fbank(audio * 32768, num_bins=80)
    """

    schema = Schema(
        name="KaldiFbank",
        devices=("cpu",),
        inputs=(Input("input", doc="Signals: float32, with one dimension.", example=signals),),
        arguments=(
            Argument("blackman_coeff", "float", 0.42, "Coefficient of the Blackman window."),
            Argument("frame_length_ms", "float", 25.0, "Length of windows, in milliseconds.", example=2.0),
            Argument("frame_shift_ms", "float", 10.0, "Distance between windows, in milliseconds.", example=1.0),
            Argument(
                "high_freq",
                "float",
                0.0,
                "Highest frequency, in Hz; 0 or less: added to half the sample rate.",
                example=7000.0,
            ),
            Argument("low_freq", "float", 20.0, "Lowest frequency, in Hz."),
            Argument("num_bins", "int32", 23, "Number of bands: at least 3.", example=4),
            Argument("preemphasis", "float", 0.97, "The fraction of the preceding sample that is subtracted."),
            Argument("remove_dc_offset", "bool", True, "Subtract each window's mean."),
            Argument("sample_rate", "float", 16000.0, "Sample rate of the signal, in Hz."),
            Argument(
                "snip_edges",
                "bool",
                True,
                "Return only windows that fit into the signal; otherwise, reflect it at both ends.",
            ),
            Argument("use_log", "bool", True, "Return logarithms of energies."),
            Argument("use_power", "bool", True, "Sum powers; otherwise, magnitudes."),
            Argument("window_type", "string", "povey", "The window.", choices=_WINDOWS),
        ),
        examples=(Example({"frame_length_ms": 2.0, "frame_shift_ms": 1.0, "num_bins": 4}),),
        shown=(Example({"num_bins": 40}, (sounds,)),),
        equivalents=(Equivalent("kaldi_native_fbank.OnlineFbank", "It adds dither unless that is set to 0."),),
    )

    def setup(self) -> None:
        arguments = self.args
        rate = np.float32(arguments["sample_rate"])
        self._length, self._step = (
            int(rate * np.float32(0.001) * np.float32(arguments[f"frame_{name}_ms"])) for name in ("length", "shift")
        )
        if min(self._length, self._step) < 1 or self._length < 2:
            raise ValueError(
                f"Windows must have at least 2 samples and a step of at least 1. Got: {self._length} samples, step {self._step}"
            )
        if arguments["window_type"] not in _WINDOWS:
            raise ValueError(f"`window_type` must be one of {', '.join(_WINDOWS)}. Got: {arguments['window_type']!r}")
        if not 0 <= arguments["preemphasis"] <= 1:
            raise ValueError(f"`preemphasis` must be from 0 to 1. Got: {arguments['preemphasis']:g}")
        self._nfft = 1 << (self._length - 1).bit_length()
        self._window = _window(arguments["window_type"], self._length, arguments["blackman_coeff"])
        self._starts, self._widths, self._weights = self._bands(rate)

    def _bands(self, rate: np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return, for each band, the index of its first frequency, the number of its frequencies, and their weights."""
        bins, nyquist = self.args["num_bins"], np.float32(0.5) * rate
        low, high = np.float32(self.args["low_freq"]), np.float32(self.args["high_freq"])
        high = high if high > 0 else nyquist + high
        if bins < 3 or not 0 <= low < high <= nyquist:
            raise ValueError(
                "`num_bins` must be at least 3, and the bands between 0 and half the sample rate. "
                f"Got: {bins} bands from {low:g} to {high:g} Hz"
            )
        mels = _mel(rate / np.float32(self._nfft) * np.arange(self._nfft // 2, dtype=np.float32))
        first, last = _mel(np.array([low, high], np.float32))
        delta = np.float32((last - first) / np.float32(bins + 1))
        edges = first + np.arange(bins + 2, dtype=np.float32) * delta
        left, centre, right = (edges[k : k + bins, None] for k in range(3))
        rising, falling = (mels - left) / (centre - left), (right - mels) / (right - centre)
        inside = (mels > left) & (mels < right)
        if not inside.any(axis=1).all():
            raise ValueError(
                f"`num_bins` is too large: of {bins} bands, some contain no frequency of the transform of {self._nfft} elements"
            )
        weights = np.where(inside, np.where(mels <= centre, rising, falling), np.float32(0))
        starts, widths = inside.argmax(axis=1), inside.sum(axis=1)
        packed = np.zeros((bins, widths.max()), np.float32)
        for band in range(bins):
            packed[band, : widths[band]] = weights[band, starts[band] : starts[band] + widths[band]]
        return starts.astype(np.int64), widths.astype(np.int64), packed

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != FLOAT:
            raise RuntimeError(f"The input must be float32, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, "tf", 2)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        count = math.prod(sample.shapes[0])
        if len(sample.shapes[0]) != 1:
            raise ValueError(f"Expected one channel of samples. Got the shape {tuple(sample.shapes[0])}")
        if self.args["snip_edges"]:
            frames = (count - self._length) // self._step + 1 if count >= self._length else 0
        else:
            frames = (count + self._step // 2) // self._step
        return frames, self.args["num_bins"]

    def compute(self, sample: Sample) -> None:
        from penstock.operators.audio._kaldi_fbank_cpu import extract_windows, sum_bands

        signal, out, arguments = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0], self.args
        start = 0 if arguments["snip_edges"] else self._step // 2 - self._length // 2
        for first in range(0, len(out), _FRAMES):
            rows = out[first : first + _FRAMES]
            frames = np.zeros((len(rows), self._nfft))
            extract_windows(
                signal,
                self._window,
                start + first * self._step,
                self._step,
                arguments["remove_dc_offset"],
                float(arguments["preemphasis"]),
                frames,
            )
            sum_bands(
                np.fft.rfft(frames, axis=1).astype(np.complex64),
                self._starts,
                self._widths,
                self._weights,
                not arguments["use_power"],
                np.finfo(np.float32).eps,
                arguments["use_log"],
                rows,
            )


def _mel(hertz: np.ndarray) -> np.ndarray:
    """Convert a frequency in Hz to Kaldi's mel scale, in single precision."""
    logarithms = np.log((np.float32(1) + hertz / np.float32(700)).astype(np.float64)).astype(np.float32)
    return np.float32(1127) * logarithms


def _window(name: str, length: int, blackman: float) -> np.ndarray:
    """Return the values of a window as float32; ``blackman`` is the coefficient of the Blackman window."""
    angles = 2 * np.pi / (length if name == "hann" else length - 1) * np.arange(length)
    raised = 0.5 - 0.5 * np.cos(angles)
    values = {
        "hanning": raised,
        "hann": raised,
        "sine": np.sin(0.5 * angles),
        "hamming": 0.54 - 0.46 * np.cos(angles),
        "povey": raised**_POVEY,
        "rectangular": np.ones(length),
        "blackman": blackman - 0.5 * np.cos(angles) + (0.5 - blackman) * np.cos(2 * angles),
    }
    return values[name].astype(np.float32)
