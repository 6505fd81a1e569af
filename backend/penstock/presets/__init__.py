"""Pipelines made from a model's `preprocessor_config.json`. Their results equal bit for bit those of the model's processor.

>>> pipeline = presets.preset("models/clip", batch_size=32)  # doctest: +SKIP
"""

from penstock.presets.configuration import families, read_configuration
from penstock.presets.family import Family, PresetError
from penstock.presets.pipelines import content_key, count_tokens, preset, sampled_frames

__all__ = [
    "Family",
    "PresetError",
    "content_key",
    "count_tokens",
    "families",
    "preset",
    "read_configuration",
    "sampled_frames",
]
