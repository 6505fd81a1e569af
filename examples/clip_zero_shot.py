"""Finds the text that fits an image, with CLIP: a preset and an image tower, served by Triton as an ensemble.

    pip install "penstock-triton[server,client,image]" onnxruntime
    penstock setup
    python examples/clip_zero_shot.py PHOTOGRAPH... [--texts "a photo of a cat" "a photo of a dog"]

It writes three model folders: the preprocessing, made from CLIP's `preprocessor_config.json`; an image tower in Triton's Python
backend; and the ensemble of both. The weights are random, so that nothing has to be downloaded: the scores mean nothing, but
they equal those that the same towers compute in this program. If transformers is installed, the tower's pixels are compared with
those of `CLIPImageProcessor`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tritonclient.http
from clip_tower import CHANNELS, EMBEDDING, INPUT, OUTPUT, SIDE, ImageTower, scores, text_embeddings

from penstock.presets import preset
from penstock.serving.export import export_preset
from penstock.serving.server import LocalServer

PREPROCESS, TOWER, MODEL = "clip_preprocess", "clip_image_tower", "clip"
BATCH = 16
TEXTS = ("a photo of a cat", "a photo of a dog", "a photo of a ship")
# CLIP's settings besides its weights.
CONFIGURATION = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": SIDE},
    "crop_size": {"height": SIDE, "width": SIDE},
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
PIXELS_DIMS, EMBEDDING_DIMS = f"[ {CHANNELS}, {SIDE}, {SIDE} ]", f"[ {EMBEDDING} ]"
TOWER_CONFIG = f"""backend: "python"
max_batch_size: {BATCH}
input [ {{ name: "{INPUT}" data_type: TYPE_FP32 dims: {PIXELS_DIMS} }} ]
output [ {{ name: "{OUTPUT}" data_type: TYPE_FP32 dims: {EMBEDDING_DIMS} }} ]
dynamic_batching {{ }}
instance_group [ {{ kind: KIND_CPU }} ]
"""
ENSEMBLE_CONFIG = f"""platform: "ensemble"
max_batch_size: {BATCH}
input [ {{ name: "images" data_type: TYPE_STRING dims: [ 1 ] }} ]
output [
  {{ name: "{OUTPUT}" data_type: TYPE_FP32 dims: {EMBEDDING_DIMS} }},
  {{ name: "{INPUT}" data_type: TYPE_FP32 dims: {PIXELS_DIMS} }}
]
ensemble_scheduling {{
  step [
    {{
      model_name: "{PREPROCESS}" model_version: -1
      input_map {{ key: "images" value: "images" }}
      output_map {{ key: "{INPUT}" value: "{INPUT}" }}
    }},
    {{
      model_name: "{TOWER}" model_version: -1
      input_map {{ key: "{INPUT}" value: "{INPUT}" }}
      output_map {{ key: "{OUTPUT}" value: "{OUTPUT}" }}
    }}
  ]
}}
"""


def write_models(repository: Path) -> None:
    """Write the preprocessing, the tower, and the ensemble of both."""
    configuration = repository.parent / "preprocessor_config.json"
    configuration.write_text(json.dumps(CONFIGURATION))
    export_preset(configuration, repository / PREPROCESS, batch_size=BATCH)
    for name, text in ((TOWER, TOWER_CONFIG), (MODEL, ENSEMBLE_CONFIG)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(text)
    shutil.copy(Path(__file__).with_name("clip_tower.py"), repository / TOWER / "1" / "model.py")


def ask(url: str, files: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Return the server's answer for files: embeddings, and the pixels they are computed from."""
    answers = []
    with tritonclient.http.InferenceServerClient(url) as client:
        for first in range(0, len(files), BATCH):
            part = np.array(files[first : first + BATCH], np.object_).reshape(-1, 1)
            tensor = tritonclient.http.InferInput("images", list(part.shape), "BYTES")
            tensor.set_data_from_numpy(part)
            answers.append(client.infer(MODEL, [tensor]))
    return {name: np.concatenate([answer.as_numpy(name) for answer in answers]) for name in (INPUT, OUTPUT)}


def in_this_program(files: Sequence[bytes]) -> np.ndarray:
    """Return the pixels that the preset gives without a server."""
    pipeline = preset(CONFIGURATION, batch_size=len(files))
    (pixels,) = pipeline.run(images=[np.frombuffer(file, np.uint8) for file in files])
    values = np.stack([np.array(image) for image in pixels])
    pipeline.close()
    return values


def by_transformers(paths: Sequence[Path]) -> np.ndarray:
    """Return the pixels that transformers gives."""
    import transformers
    from transformers.image_utils import load_image

    processor = transformers.CLIPImageProcessor.from_dict(CONFIGURATION)
    return np.asarray(processor([load_image(str(path)) for path in paths], return_tensors="np")["pixel_values"])


def main() -> int:
    """Serve, send requests, print and compare; return whether anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", nargs="+", type=Path, metavar="PHOTOGRAPH")
    parser.add_argument("--texts", nargs="+", default=TEXTS, metavar="TEXT")
    parser.add_argument("--environment", type=Path, help="that Triton serves from; found by itself by default")
    options = parser.parse_args()
    files = [path.read_bytes() for path in options.photographs]
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder) / "models")
        with LocalServer(Path(folder) / "models", environment=options.environment) as server:
            served = ask(server.http_url, files)
    texts = text_embeddings(list(options.texts))
    likely = scores(served[OUTPUT], texts)
    for path, row in zip(options.photographs, likely):
        print(f"{path.name}: " + ", ".join(f"{text} {score:.3f}" for text, score in zip(options.texts, row)))
    pixels = in_this_program(files)
    different = int((served[INPUT] != pixels).sum())
    print(f"pixel values that differ from the preset's in this program: {different} of {pixels.size}")
    # Another version of numpy may sum in another order.
    apart = float(np.abs(likely - scores(ImageTower()(pixels), texts)).max())
    print(f"scores differ from those computed here by {apart:.1e} at the most")
    if importlib.util.find_spec("transformers"):
        wrong = int((served[INPUT] != by_transformers(options.photographs)).sum())
        print(f"pixel values that differ from those of transformers: {wrong} of {pixels.size}")
        different += wrong
    else:
        print("transformers is not installed: not compared with it")
    return int(different > 0 or apart > 1e-3)


if __name__ == "__main__":
    raise SystemExit(main())
