"""Derive the target and the mutated file of a case from its number and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from fuzzing.mutations import mutated
from fuzzing.seeds import Seeds
from fuzzing.targets import ALL_TARGETS, IMAGES, SOUNDS

BATCH = 64
"""The number of consecutive cases that have the same target."""

_WEIGHTS = {
    **{format: 8.0 for format in IMAGES},
    "jpeg": 30.0,
    "png": 14.0,
    "tiff": 14.0,
    "jpeg2k": 12.0,
    "ico": 3.0,
    "foreign": 3.0,
    **{format: 2.0 for format in SOUNDS},
    "npy": 4.0,
    "lz4": 2.0,
    "chunks": 2.0,
    "video": 1.5,
}
"""The relative frequency of formats; formats that are not listed have 1."""


class Case(NamedTuple):
    """A mutated file or data set."""

    format: str
    content: Any


class Cases:
    """The cases of a campaign.

    Args:
        seeds: the files to mutate.
        seed: the number from which all random choices follow.
        formats: the formats that are fuzzed; empty: all.
    """

    def __init__(self, seeds: Seeds, seed: int, formats: Sequence[str] = ()) -> None:
        self._seeds = seeds
        self._seed = seed
        present = {*seeds.files, *seeds.sets}
        wanted = set(formats or present) & present
        self._formats = {t.name: sorted(wanted & set(t.formats)) for t in ALL_TARGETS if wanted & set(t.formats)}
        if not self._formats:
            raise ValueError(f"No target takes any of {sorted(formats)}; there are {sorted(present)}")
        self._names = list(self._formats)
        families = [tuple(t.formats) for t in ALL_TARGETS if t.name in self._formats]
        # Targets that accept the same formats share the weight of these formats.
        self._target_weights = [
            sum(_WEIGHTS.get(format, 1.0) for format in self._formats[name]) / families.count(family)
            for name, family in zip(self._names, families)
        ]

    def target(self, batch: int) -> str:
        """Return the name of the target for the cases of a batch."""
        return Random(f"{self._seed} batch {batch}").choices(self._names, self._target_weights)[0]

    def rng(self, batch: int) -> Random:
        """Return the random generator for running a batch."""
        return Random(f"{self._seed} run {batch}")

    def case(self, number: int) -> Case:
        """Return case ``number``."""
        rng = Random((self._seed << 44) | number)
        formats = self._formats[self.target(number // BATCH)]
        format = rng.choices(formats, [_WEIGHTS.get(format, 1.0) for format in formats])[0]
        files = self._seeds.files
        others = files[rng.choice(list(files))]
        if format in files:
            return Case(format, mutated(rng, format, rng.choice(files[format]), others))
        return Case(format, _mutated_set(rng, rng.choice(self._seeds.sets[format]), others))


_KINDS = {
    "idx": "text",
    "json": "text",
    "txt": "text",
    "npy": "npy",
    "wav": "wav",
    "jpg": "jpeg",
    "png": "png",
    "mp4": "video",
}


def _mutated_set(rng: Random, files: dict[str, bytes], others: Sequence[bytes]) -> dict[str, bytes]:
    """Return a data set in which one file is mutated."""
    name = rng.choice(list(files))
    return {**files, name: mutated(rng, _KINDS.get(name.rpartition(".")[2], "record"), files[name], others)}
