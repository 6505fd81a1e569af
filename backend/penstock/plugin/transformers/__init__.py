"""Replacements for the processors of `transformers`: the same calls and results, computed in parallel by compiled code.

>>> processor = ImageProcessor.from_pretrained("models/clip")  # doctest: +SKIP
>>> inputs = processor(images, return_tensors="pt")  # doctest: +SKIP
"""

from penstock.plugin.transformers._features import Features
from penstock.plugin.transformers._images import ImageProcessor
from penstock.plugin.transformers._sounds import FeatureExtractor
from penstock.plugin.transformers._videos import VideoProcessor

__all__ = ["FeatureExtractor", "Features", "ImageProcessor", "VideoProcessor"]
