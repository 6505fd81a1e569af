"""Recognizes digits in a folder of images, on as many machines as Ray has, with the models that Triton serves.

    pip install "penstock-triton[ray,s3,image]" onnxruntime
    python examples/ray_offline_inference.py s3://bucket/images s3://bucket/digits

Images are read from object storage, preprocessed by the pipeline of `model_repository/digits_preprocess`, recognized by the
network of `model_repository/digits_classifier` in onnxruntime, and written to Parquet: for each image its path, its digit and the
digit's probability. Triton is not needed; the results are those that it would return. Images that cannot be read are left out. If a
worker dies, Ray repeats its work, so each image appears exactly once.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import ray

from penstock.plugin.ray import map_pipeline
from penstock.serving.model_files import load_pipeline

MODELS = Path(__file__).resolve().parents[1] / "model_repository"


class Recognizer:
    """The network, in an actor.

    Args:
        path: the path of its ONNX file.
    """

    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])

    def __call__(self, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        label, scores = self._session.run(["label", "scores"], {"image": rows["image"]})
        return {"path": rows["path"], "digit": label[:, 0], "probability": scores.max(axis=1)}


def recognize(images: str, models: Path, workers: int, batch_size: int) -> ray.data.Dataset:
    """Return the digits in a folder of images, read and recognized when the data set is.

    Args:
        images: the folder; also in object storage.
        models: the repository with both models.
        workers: actors of each stage.
        batch_size: images that are processed together.
    """
    preprocess = partial(load_pipeline, models / "digits_preprocess" / "1" / "pipeline.py")
    prepared = map_pipeline(
        ray.data.read_binary_files(images, include_paths=True),
        preprocess,
        inputs={"encoded_image": "bytes"},
        outputs=["image"],
        batch_size=batch_size,
        concurrency=workers,
        on_error="skip",
    )
    return prepared.map_batches(
        Recognizer,
        fn_constructor_args=(models / "digits_classifier" / "1" / "model.onnx",),
        batch_size=batch_size,
        concurrency=workers,
    )


def main() -> None:
    """Recognize the images, and print how many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", help="a folder of images of digits, s3://... or on a disk that all machines have")
    parser.add_argument("output", help="the folder for the Parquet files")
    parser.add_argument("--models", type=Path, default=MODELS, help="the model repository, on all machines")
    parser.add_argument("--workers", type=int, default=1, help="processes for each of the two stages")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--local-cpus", type=int, help="start Ray here, with so many cores, rather than join a cluster")
    arguments = parser.parse_args()

    if arguments.local_cpus:
        ray.init(num_cpus=arguments.local_cpus, include_dashboard=False)

    recognized = recognize(arguments.images, arguments.models, arguments.workers, arguments.batch_size)
    recognized.write_parquet(arguments.output)
    print(f"recognized {ray.data.read_parquet(arguments.output).count()} images")


if __name__ == "__main__":
    main()
