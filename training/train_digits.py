"""Trains `digits_classifier` and writes its ONNX file into the model repository.

    python training/train_digits.py

The network sees what it will be served: digits in many sizes, turned, inverted and compressed at random in the pipeline
(`digits_pipeline.py`), whose last steps are those of the served preprocessing (`pipelines/digits_preprocess.py`). Needs
``pip install penstock-triton[train]``; takes less than a minute on two CPU cores. The same seed gives the same network on the same
machine.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from digits_data import load_split, write_digits
from digits_evaluation import accuracies, table
from digits_pipeline import READER, ROOT, digits_pipeline
from rich.console import Console
from rich.progress import Progress
from torch import nn

from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

ONNX_FILE = ROOT / "model_repository" / "digits_classifier" / "1" / "model.onnx"
BATCH = 64


class DigitsNetwork(nn.Sequential):
    """(n, 1, 32, 32) to (n, 10) logits: three convolutions, each followed by halving, and a linear layer."""

    def __init__(self) -> None:
        channels = (1, 24, 48, 96)
        stages = [self._stage(given, made) for given, made in pairwise(channels)]
        super().__init__(*stages, nn.Flatten(), nn.Dropout(0.3), nn.Linear(channels[-1] * 4 * 4, 10))

    @staticmethod
    def _stage(given: int, made: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(given, made, 3, padding=1, bias=False), nn.BatchNorm2d(made), nn.ReLU(), nn.MaxPool2d(2)
        )


class Served(nn.Module):
    """The network in its served form: the likeliest digit, (n, 1), and each digit's probability, (n, 10)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.network(image)
        return logits.argmax(1, keepdim=True), logits.softmax(1)


def train(folder: Path, epochs: int, seed: int, progress: Progress) -> DigitsNetwork:
    """Return a network trained on fresh looks of the training digits in each epoch; ``folder`` is for their files."""
    torch.manual_seed(seed)
    split = load_split()
    files = write_digits(folder, split.train_digits)
    batches = DALIGenericIterator(
        [digits_pipeline(files, split.train_labels.tolist(), BATCH, seed=seed)],
        ["image", "label"],
        reader_name=READER,
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )
    network = DigitsNetwork()
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    # Batches run on into the next epoch, so that one epoch may have a batch more than another.
    steps = epochs * (len(batches) + 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    shown = progress.add_task("training", total=epochs * len(files))
    for epoch in range(epochs):
        losses = []
        for (batch,) in batches:
            loss = nn.functional.cross_entropy(
                network(batch["image"]), batch["label"][:, 0].long(), label_smoothing=0.05
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            progress.update(shown, advance=len(batch["image"]))
        progress.update(shown, description=f"epoch {epoch + 1} of {epochs}, loss {np.mean(losses):.3f}")
    return network.eval()


def recognize(network: nn.Module, images: np.ndarray) -> np.ndarray:
    """Return the likeliest digits, (n,), in images, (n, 1, 32, 32)."""
    with torch.inference_mode():
        return network(torch.from_numpy(images)).argmax(1).numpy()


def export(network: nn.Module, path: Path) -> None:
    """Write the ONNX file, with a batch of any size."""
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    program = torch.onnx.export(
        Served(network).eval(),
        (torch.zeros(2, 1, 32, 32),),
        input_names=["image"],
        output_names=["label", "scores"],
        dynamic_shapes={"image": {0: torch.export.Dim("batch")}},
        opset_version=18,
        verbose=False,
    )
    assert program is not None
    ClearMetadataAndDocStringPass()(program.model)  # the paths and lines of this machine's source files
    program.save(path, external_data=False)


def main() -> None:
    """Train, print the held-out accuracy for each look, and write the ONNX file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ONNX_FILE, help="where the ONNX file goes")
    arguments = parser.parse_args()

    # The network is small, and the other core is busy with batches.
    torch.set_num_threads(1)
    console = Console()
    with tempfile.TemporaryDirectory() as folder, Progress(console=console) as progress:
        network = train(Path(folder), arguments.epochs, arguments.seed, progress)
    console.print(table(accuracies(partial(recognize, network), BATCH)))
    export(network, arguments.output)
    print(f"wrote {arguments.output} ({arguments.output.stat().st_size / 1e3:.0f} kB)")


if __name__ == "__main__":
    main()
