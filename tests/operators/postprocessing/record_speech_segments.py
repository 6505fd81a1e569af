"""Record which segments Silero's function finds in the cases' probabilities: `speech_segments.json`.

    python tests/operators/postprocessing/record_speech_segments.py

It needs PyTorch, and downloads silero-vad: this file runs its `get_speech_timestamps` with probabilities instead of the
network.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from speech_segment_cases import CASES, OUTPUT, length, probabilities, settings

from penstock.examples import load_example


class _Probabilities:
    """Replaces the network: each call returns the next probability."""

    def __init__(self, given: np.ndarray) -> None:
        self._left = iter(given.tolist())

    def reset_states(self) -> None:
        """Do nothing: there are no states."""

    def __call__(self, chunk: torch.Tensor, sampling_rate: int) -> torch.Tensor:
        return torch.tensor(next(self._left))


def main() -> None:
    """Write the file."""
    (package,) = [one for one in load_example("speech").packages if one.name == "silero-vad"]
    module = ModuleType("silero_utils")
    # silero-vad imports torchaudio to read files, which this script does not do.
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    with tempfile.TemporaryDirectory() as folder, package.download(Path(folder)) as wheel:
        exec(compile(wheel.read("silero_vad/utils_vad.py"), "utils_vad.py", "exec"), module.__dict__)
    names = {
        "threshold": "threshold",
        "exit_threshold": "neg_threshold",
        "min_speech_ms": "min_speech_duration_ms",
        "min_silence_ms": "min_silence_duration_ms",
        "speech_pad_ms": "speech_pad_ms",
        "min_split_silence_ms": "min_silence_at_max_speech",
        "max_speech_seconds": "max_speech_duration_s",
    }
    found = []
    for seed in range(CASES):
        given, chosen = probabilities(seed), settings(seed)
        step = chosen.get("frame_step", 512)
        segments = module.get_speech_timestamps(
            torch.zeros(length(seed, len(given), step)),
            _Probabilities(given),
            sampling_rate=int(chosen.get("sample_rate", 16000)),
            use_max_poss_sil_at_max_speech=chosen.get("split_at") != "last_silence",
            **{names[name]: value for name, value in chosen.items() if name in names},
        )
        found.append([[segment["start"], segment["end"]] for segment in segments])
    OUTPUT.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")


if __name__ == "__main__":
    main()
