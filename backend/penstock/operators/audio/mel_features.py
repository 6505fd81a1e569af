"""`mel_features`: logarithms of mel bands, bit for bit those of the feature extractors of speech models."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.operators.audio._mel_bands import FORMULAS, WINDOWS, band_weights, window_values
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, signals, sounds

# Number of frames per transform.
_FRAMES = 1024
_LOGARITHMS = ("natural", "decimal", "decibels", "none")
_PRECISIONS = ("mixed", "double", "single")


@register_operator
class MelFeatures(Operator[np.ndarray]):
    """Computes the energy in mel bands of overlapping windows, or its logarithm, bit for bit as numpy does.

    These are the features of many speech models (AST, CLAP, SeamlessM4T, Speech2Text, Gemma, and Kaldi's `fbank`).
    `mel_spectrogram` computes them in single precision, and much faster.

    The mean of each window may be subtracted; windows are then filtered as in Kaldi: ``x[i] - preemphasis * x[i - 1]``, with
    ``x[0]`` before the first sample. Returns FLOAT of shape (windows, bands), or (bands, windows) for the layout `ft`.

    >>> features = fn.mel_features(audio * 32768, window="povey", preemphasis=0.97, remove_offset=True)
    """

    schema = Schema(
        name="MelFeatures",
        devices=("cpu",),
        inputs=(Input("input", doc="Signals: float32, with one dimension.", example=signals),),
        arguments=(
            Argument(
                "center_windows",
                "bool",
                False,
                "Centre windows at multiples of the step, instead of starting them there.",
            ),
            Argument("floor", "float", 1e-10, "The smallest energy whose logarithm is computed; see `floor_added`."),
            Argument(
                "floor_added", "bool", False, "Add the floor to each energy, instead of raising lower ones to it."
            ),
            Argument("freq_high", "float", 0.0, "Highest frequency, in Hz; 0: half the sample rate.", example=7000.0),
            Argument("freq_low", "float", 0.0, "Lowest frequency, in Hz."),
            Argument(
                "layout", "layout", "tf", "Layout of the output: `tf` (time first) or `ft`.", choices=("tf", "ft")
            ),
            Argument(
                "logarithm",
                "string",
                "natural",
                "`natural`, `decimal` (to base 10), `decibels` (ten times that), or `none`: energies.",
                choices=_LOGARITHMS,
            ),
            Argument("mel_formula", "string", "slaney", "The mel scale.", choices=FORMULAS),
            Argument("nfft", "int32", None, "Size of the transform; by default that of the window.", example=1024),
            Argument("nfilter", "int32", 80, "Number of bands.", example=20),
            Argument("normalize", "bool", False, "Divide each band's weights by half its width."),
            Argument("power", "int32", 2, "2: bands of the power; 1: of the magnitude."),
            Argument(
                "precision",
                "string",
                "mixed",
                "`double`; `mixed`: double, with the spectrum rounded to single precision; `single`: single up to the bands.",
                choices=_PRECISIONS,
            ),
            Argument(
                "preemphasis", "float", 0.0, "The fraction of the preceding sample that is subtracted.", example=0.97
            ),
            Argument("reflect_padding", "bool", True, "Extend centred windows by reflection; otherwise by zeros."),
            Argument("remove_offset", "bool", False, "Subtract each window's mean first."),
            Argument("sample_rate", "float", 16000.0, "Sample rate of the signal, in Hz.", example=44100.0),
            Argument("straight_in_mel", "bool", False, "Sides of triangles are straight over mel, instead of over Hz."),
            Argument(
                "window",
                "string",
                "hann",
                "`hann` (periodic), `single_hann` (the same, computed in single precision), `symmetric_hann`, "
                "`symmetric_hamming`, or `povey` (a Hann window to the power of 0.85).",
                choices=WINDOWS,
            ),
            Argument("window_length", "int32", 400, "Length of the window, in samples.", example=16),
            Argument("window_step", "int32", 160, "Distance between windows, in samples.", example=8),
        ),
        examples=(
            Example({"window_length": 16, "window_step": 8, "nfft": 64, "nfilter": 8}),
            Example({"window_length": 16, "window_step": 8, "nfft": 64, "nfilter": 8, "center_windows": True}),
        ),
        shown=(Example({"window_length": 400, "window_step": 160, "nfft": 512}, (sounds,)),),
    )

    def setup(self) -> None:
        arguments = self.args
        self._length, self._step, bands = (arguments[name] for name in ("window_length", "window_step", "nfilter"))
        self._nfft = self._length if arguments["nfft"] is None else arguments["nfft"]
        rate, low = float(arguments["sample_rate"]), float(arguments["freq_low"])
        high = float(arguments["freq_high"]) or rate / 2
        for name, choices in (
            ("logarithm", _LOGARITHMS),
            ("mel_formula", FORMULAS),
            ("precision", _PRECISIONS),
            ("window", WINDOWS),
        ):
            if arguments[name] not in choices:
                raise ValueError(f"`{name}` must be one of {', '.join(choices)}. Got: {arguments[name]!r}")
        if min(self._length, self._step, bands) < 1 or self._nfft < max(self._length, 2):
            raise ValueError(
                "`window_length`, `window_step` and `nfilter` must be positive, and `nfft` at least `window_length`. "
                f"Got: {self._length}, {self._step}, {bands} and {self._nfft}"
            )
        if not 0 <= low < high <= rate / 2:
            raise ValueError(
                f"`freq_low` and `freq_high` must lie between 0 and half the sample rate, {rate / 2:g}. Got: {low:g} and {high:g}"
            )
        if arguments["power"] not in (1, 2):
            raise ValueError(f"`power` must be 1 or 2. Got: {arguments['power']}")
        self._floor, self._emphasis = (_as_written(arguments[name]) for name in ("floor", "preemphasis"))
        if self._floor <= 0:
            raise ValueError(f"`floor` must be positive. Got: {self._floor:g}")
        self._window = window_values(arguments["window"], self._length).astype(self._number)
        self._weights = band_weights(
            self._nfft // 2 + 1,
            bands,
            low,
            high,
            rate,
            formula=arguments["mel_formula"],
            area=arguments["normalize"],
            in_mel=arguments["straight_in_mel"],
        )

    @property
    def _number(self) -> type[np.floating]:
        """The floating-point type in which windows are computed."""
        return np.float32 if self.args["precision"] == "single" else np.float64

    def describe(self, workspace: Workspace[np.ndarray]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != FLOAT:
            raise RuntimeError(f"The input must be float32, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, self.args["layout"], 2)]

    def infer(self, sample: Sample[np.ndarray]) -> tuple[int, ...]:
        count = math.prod(sample.shapes[0])
        missing = self._length - count - self._edge * 2
        if len(sample.shapes[0]) != 1 or missing > 0 or not count:
            raise ValueError(
                f"Expected one channel of at least {max(self._length - self._edge * 2, 1)} samples. "
                f"Got the shape {tuple(sample.shapes[0])}"
            )
        shape = (-missing // self._step + 1, self.args["nfilter"])
        return shape if self.args["layout"] == "tf" else shape[::-1]

    @property
    def _edge(self) -> int:
        """The number of samples by which signals are extended at each end."""
        return self._length // 2 if self.args["center_windows"] else 0

    def compute(self, sample: Sample[np.ndarray]) -> None:
        signal = sample.inputs[0]
        if self._edge:
            signal = np.pad(signal, self._edge, "reflect" if self.args["reflect_padding"] else "constant")
        windows = np.lib.stride_tricks.sliding_window_view(signal, self._length)[:: self._step]
        magnitudes = np.concatenate(
            [self._magnitudes(windows[start : start + _FRAMES]) for start in range(0, len(windows), _FRAMES)]
        )
        logarithms = self._logarithms(self._banded(magnitudes))
        sample.outputs[0][...] = logarithms.T if self.args["layout"] == "tf" else logarithms

    def _magnitudes(self, windows: np.ndarray) -> np.ndarray:
        """Return the magnitude or the power of each frequency in each window, as an array of shape (windows, frequencies)."""
        frames = windows.astype(self._number)
        if self.args["remove_offset"]:
            frames -= frames.mean(axis=1, keepdims=True)
        if self._emphasis:
            frames[:, 1:] -= self._emphasis * frames[:, :-1]
            frames[:, 0] *= 1 - self._emphasis
        frames *= self._window
        spectrum = np.fft.rfft(frames, n=self._nfft, axis=1)
        if self.args["precision"] == "mixed":
            spectrum = spectrum.astype(np.complex64).astype(np.complex128)
        return np.abs(spectrum) ** self.args["power"]

    def _banded(self, magnitudes: np.ndarray) -> np.ndarray:
        """Return the energies of bands, as an array of shape (bands, windows)."""
        # The operands have the same memory layout as in the original feature extractors, since the order of summation depends on it.
        if self.args["precision"] == "single":
            return np.matmul(magnitudes, self._weights).T
        return np.dot(self._weights.T, magnitudes.T)

    def _logarithms(self, energies: np.ndarray) -> np.ndarray:
        if self.args["logarithm"] == "none":
            return energies
        floored = energies + self._floor if self.args["floor_added"] else np.maximum(energies, self._floor)
        if self.args["logarithm"] == "natural":
            return np.log(floored)
        return np.log10(floored) if self.args["logarithm"] == "decimal" else 10.0 * np.log10(floored)


def _as_written(number: float) -> float:
    """Return the number that was written for an argument: the shortest decimal that rounds to this stored value in single precision."""
    return float(str(np.float32(number)))
