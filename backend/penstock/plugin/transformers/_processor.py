"""What processors of images and of sounds share: settings, and a pipeline for each set of them that a call has."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from penstock.plugin.transformers._features import Features, collected
from penstock.presets import Family, PresetError, preset, read_configuration
from penstock.presets.configuration import configuration_of
from penstock.presets.family import PIXELS

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.pipeline import Pipeline

_BATCH = 32
# Pipelines for settings of calls that are kept.
_KEPT = 8
_KINDS = ("image_processor", "feature_extractor", "video_processor")
# Other names for parts of a size.
_OLDER = ("min_pixels", "max_pixels", "max_size")
# Arguments of `from_pretrained` that tell where to find what is given here as a folder.
_PLACES = frozenset(
    {
        "cache_dir",
        "force_download",
        "local_files_only",
        "proxies",
        "revision",
        "token",
        "trust_remote_code",
        "use_auth_token",
        "use_fast",
    }
)


class Processor:
    """A processor made from a model's own configuration."""

    _input = ""

    def __init__(
        self,
        configuration: str | Path | Mapping[str, object],
        *,
        backend: str = "torchvision",
        num_threads: int | None = None,
        **settings: object,
    ) -> None:
        self._configuration = {**configuration_of(configuration, self._input), **settings}
        self._backend, self._threads = backend, num_threads or len(os.sched_getaffinity(0))
        self._class: object = None
        self._running: OrderedDict[str, tuple[Family, Pipeline]] = OrderedDict()
        family = read_configuration(self._configuration)
        if family.kind != self._input:
            raise PresetError(f"The configuration is for {family.kind}, and this class takes {self._input}")
        self._followed({})

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        *,
        backend: str = "torchvision",
        num_threads: int | None = None,
        **settings: object,
    ) -> Self:
        """The processor of the model in a folder, which is not sought anywhere else.

        Args:
            folder: where `preprocessor_config.json` or `processor_config.json` is.
            backend, num_threads: as for the class.
            settings: in the place of the configuration's own. What tells where to look (`revision`, `cache_dir` and the
                like) is accepted and has no effect.

        Raises:
            FileNotFoundError: there is no configuration.
        """
        own = {key: value for key, value in settings.items() if key not in _PLACES}
        return cls(folder, backend=backend, num_threads=num_threads, **own)

    def __getattr__(self, name: str) -> object:
        """What the class of transformers has, such as `post_process_object_detection`; without transformers, a setting."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return getattr(self._theirs(), name)
        except AttributeError:
            if name not in self._configuration:
                raise
            return getattr(self._followed({})[0], name)

    def _theirs(self) -> object:
        """The class's own object, with the same settings.

        Raises:
            AttributeError: transformers is not installed, or has no such class.
        """
        if self._class is None:
            try:
                import transformers
            except ImportError:
                raise AttributeError("What only transformers' class has needs transformers, which is missing") from None
            kinds = (self._configuration.get(f"{kind}_type") for kind in _KINDS)
            name = str(next(filter(None, kinds))).removesuffix("Fast") + ("Pil" if self._backend == "pil" else "")
            held = {key: value for key, value in self._configuration.items() if not key.endswith("_type")}
            self._class = getattr(transformers, name).from_dict(held)
        return self._class

    def _followed(self, settings: Mapping[str, object]) -> tuple[Family, Pipeline]:
        """The family with a call's settings, and its pipeline, of which the last used ones are kept.

        Raises:
            PresetError: a setting is unknown, or not followed.
        """
        key = json.dumps(sorted(settings.items()), default=str)
        if key not in self._running:
            own = self._configuration
            once = sorted(settings.keys() & read_configuration(own).unchanged)
            if once:
                raise PresetError(f"`{once[0]}` is a setting of the processor, and not of a call")
            if "size" in settings:
                own = {name: value for name, value in own.items() if name not in _OLDER}
            configuration = {**own, **settings}
            running = preset(
                configuration,
                batch_size=_BATCH,
                backend=self._backend,
                encoded=False,
                num_threads=self._threads,
                prefetch_queue_depth=1,
            )
            self._running[key] = read_configuration(configuration), running
            if len(self._running) > _KEPT:
                self._running.popitem(last=False)[1][1].close()
        self._running.move_to_end(key)
        return self._running[key]

    def _features(
        self, samples: Sequence[Sequence[np.ndarray]], kind: str | None, settings: Mapping[str, object]
    ) -> Features:
        """What the processor gives of lists of samples, in one call."""
        family = self._followed(settings)[0]
        results = iter(self._outputs([sample for group in samples for sample in group], settings))
        joined = family.joined_prompts([[next(results) for _ in group] for group in samples])
        return collected(joined, kind, PIXELS if family.bfloat16 else "")

    def _outputs(self, samples: Sequence[np.ndarray], settings: Mapping[str, object]) -> list[dict[str, np.ndarray]]:
        """What becomes of each sample."""
        family, pipeline = self._followed(settings)
        own: list[dict[str, np.ndarray]] = []
        for start in range(0, len(samples), _BATCH):
            outputs = pipeline.run(**{self._input: samples[start : start + _BATCH]})
            own += [dict(zip(family.outputs, map(np.array, values))) for values in zip(*outputs)]
        return own
