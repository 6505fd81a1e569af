"""All seeds: the files that are mutated."""

from __future__ import annotations

from typing import NamedTuple

from fuzzing.image_seeds import image_seeds
from fuzzing.other_seeds import Files, audio_seeds, data_sets, lz4_seeds, npy_seeds, video_seeds


class Seeds(NamedTuple):
    """The files that are mutated.

    Attributes:
        files: single files, by format.
        sets: data sets, by reader.
    """

    files: dict[str, list[bytes]]
    sets: dict[str, list[Files]]


def make_seeds() -> Seeds:
    """Return all seeds that can be written here."""
    seeds = Seeds({}, {})
    for family in (image_seeds, audio_seeds, npy_seeds, lz4_seeds, video_seeds):
        for format, data in family():
            seeds.files.setdefault(format, []).append(data)
    for reader, files in data_sets():
        seeds.sets.setdefault(reader, []).append(files)
    return seeds
