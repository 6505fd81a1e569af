"""The loaders of WebDataset and LitData, if these are installed, for the samples that `readers.py` reads."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from turns import Run

# A function that makes a loader of samples, from their folder, the kind of their contents, and the batch size.
Loader = Callable[[str, str, int], Run]


def pixels_of(encoded: bytes) -> np.ndarray:
    """Decode an image as users of these loaders do."""
    with Image.open(io.BytesIO(encoded)) as image:
        return np.asarray(image.convert("RGB"))


def _endless(loader: Iterable[Any]) -> Run:
    """Return a function that returns one batch after the other, epoch after epoch."""

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    return partial(next, batches())


def _webdataset(folder: str, kind: str, batch: int) -> Run:
    import webdataset

    data = webdataset.WebDataset(f"{folder}/{kind}.tar", shardshuffle=False)
    return _endless((data.decode("rgb8") if kind == "jpg" else data).to_tuple(kind, "cls").batched(batch))


def _litdata(folder: str, kind: str, batch: int) -> Run:
    import litdata

    chunks = f"{folder}/litdata-{kind}"
    if not Path(chunks).exists():
        files = sorted(Path(folder, kind).iterdir())
        # The library prints its progress to stdout and stderr.
        with _silence():
            litdata.optimize(
                _sample_of, list(enumerate(map(str, files))), output_dir=chunks, chunk_bytes="16MB", num_workers=1
            )
    decode = {"transform": _decoded} if kind == "jpg" else {}
    data = litdata.StreamingDataset(chunks, **decode)
    return _endless(litdata.StreamingDataLoader(data, batch_size=batch, collate_fn=list))


def _sample_of(file: tuple[int, str]) -> dict[str, Any]:
    return {"content": Path(file[1]).read_bytes(), "label": file[0]}


def _decoded(sample: dict[str, Any]) -> dict[str, Any]:
    return sample | {"content": pixels_of(sample["content"])}


class _silence:
    """Discard the output of this process and its children while the context lasts."""

    def __enter__(self) -> None:
        self._kept = [os.dup(stream) for stream in (1, 2)]
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os.close(nowhere)

    def __exit__(self, *_: object) -> None:
        for stream, kept in zip((1, 2), self._kept):
            os.dup2(kept, stream)
            os.close(kept)


LOADERS: dict[str, Loader] = {
    name: loader
    for name, loader in (("WebDataset", _webdataset), ("LitData", _litdata))
    if importlib.util.find_spec(name.lower())
}
