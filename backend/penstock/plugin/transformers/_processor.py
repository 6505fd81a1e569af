"""The base class of processors: settings, and a pipeline for each combination of a call's settings."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from penstock.plugin.transformers._features import Features, collected
from penstock.presets import Family, PresetError, preset, read_configuration
from penstock.presets.configuration import class_name, configuration_of, part_of
from penstock.presets.family import PIXELS, check_known

if TYPE_CHECKING:
    from typing import Self, TypeGuard

    from _typeshed import DataclassInstance  # private: the only name for the type that `dataclasses.fields` takes

    from penstock.pipeline import Pipeline

_BATCH_SIZE = 32
_SIDES = 2
# The largest number of pipelines that are cached for calls with different settings.
_MAX_PIPELINES = 8
_KINDS = ("image_processor", "feature_extractor", "video_processor")
# Settings that are other names for parts of a size. A later `size` replaces these settings.
_SIZE_ALIASES = ("use_square_size", "min_pixels", "max_pixels", "max_size")
# Arguments of `from_pretrained` that say where to find a model; here, a model is a folder.
_LOCATION_ARGUMENTS = frozenset(
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


def _plain(value: object) -> object:
    """Return a setting in the form that it has in JSON; from transformers' `SizeDict`, remove the keys whose value is None."""
    value = dataclasses.asdict(value) if _is_record(value) else value
    if isinstance(value, Mapping):
        return {key: each for key, each in value.items() if each is not None}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _is_record(value: object) -> TypeGuard[DataclassInstance]:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


class Processor:
    """A processor made from a model's configuration.

    If a program assigns a setting to an attribute, or changes one in place (`processor.size["longest_edge"] = 900`), the next call uses
    it, like a setting that is passed to the call.
    """

    _input = ""
    _assignable: frozenset[str] | None = None
    """Settings that transformers' processor reads in each call; None: all but those that its family lists."""

    def __init__(
        self,
        configuration: str | Path | Mapping[str, object],
        *,
        backend: str = "torchvision",
        num_threads: int | None = None,
        **settings: object,
    ) -> None:
        self._configuration = {**part_of(configuration_of(configuration, self._input), self._input), **settings}
        self._backend, self._threads = backend, num_threads or len(os.sched_getaffinity(0))
        self._class: object = None
        self._assigned: dict[str, object] = {}
        # Mutable settings that a program has read, by name: the object that it got, and a copy of the value at that time.
        self._lent: dict[str, tuple[object, object]] = {}
        self._running: OrderedDict[str, tuple[Family, Pipeline]] = OrderedDict()
        family = read_configuration(self._configuration)
        check_known(family, settings, class_name(self._configuration))
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
        """Return the processor of the model in a folder. Models are neither downloaded nor searched for in caches.

        Args:
            folder: the folder with `preprocessor_config.json` or `processor_config.json`.
            backend, num_threads: see the constructor.
            settings: settings that override those of the configuration. Arguments that say where to find a model (`revision`,
                `cache_dir` and the like) are accepted and have no effect.

        Raises:
            FileNotFoundError: the folder has no configuration.
        """
        overrides = {key: value for key, value in settings.items() if key not in _LOCATION_ARGUMENTS}
        return cls(folder, backend=backend, num_threads=num_threads, **overrides)

    @classmethod
    def from_dict(
        cls,
        configuration: Mapping[str, object],
        *,
        backend: str = "torchvision",
        num_threads: int | None = None,
        **settings: object,
    ) -> Self:
        """Return the processor of a configuration; the other arguments are those of the constructor."""
        return cls(configuration, backend=backend, num_threads=num_threads, **settings)

    @classmethod
    def from_json_file(cls, json_file: str | Path) -> Self:
        """Return the processor of a configuration in a file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        return cls(Path(json_file))

    def __getattr__(self, name: str) -> object:
        """Return a setting, or, if transformers is installed, an attribute of its class, such as `post_process_object_detection`."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            value = getattr(self._original(), name)
        except AttributeError:
            if name not in self._configuration and name not in self._assigned:
                raise
            # A copy, because families share their default values.
            value = copy.copy(getattr(self._followed({})[0], name))
        if isinstance(value, (Mapping, list)) or _is_record(value):
            # Later reads return the same object, so that changes to it have an effect.
            value, _ = self._lent.setdefault(name, (value, copy.copy(value)))
        return value

    def __setattr__(self, name: str, value: object) -> None:
        """Assign a setting.

        Raises:
            PresetError: the setting is unknown or not supported, or transformers' processor reads it only when it is constructed.
        """
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self._assign(name, value)

    def _assign(self, name: str, value: object) -> None:
        value = _plain(value)
        if name == "size" and isinstance(value, (list, tuple)) and len(value) == _SIDES:
            # Donut's processor expects the width first, but only in its constructor and in calls.
            value = {"height": value[0], "width": value[1]}
        setting = self._plain_settings({name: value})
        self._check_changeable(setting)
        if self._assignable is not None:
            fixed = sorted(setting.keys() - self._assignable)
            if fixed:
                raise PresetError(f"`{fixed[0]}` is read when the processor is made, so pass it to the constructor")
        before, running = self._assigned, self._running
        self._assigned, self._running = {**before, **setting}, OrderedDict()
        try:
            self._followed({})
        except PresetError:
            self._assigned, self._running = before, running
            raise
        self._class = None
        self._lent.pop(name, None)
        for _, pipeline in running.values():
            pipeline.close()

    def _assign_changed(self) -> None:
        """Assign the settings that a program has changed in place."""
        changed = [(name, value) for name, (value, before) in self._lent.items() if value != before]
        for name, value in changed:
            self._assign(name, value)
            self._lent[name] = value, copy.copy(value)

    def _plain_settings(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Return settings that were passed to a call or assigned, in the form in which a configuration contains them."""
        return dict(settings)

    def _check_changeable(self, settings: Mapping[str, object]) -> None:
        """Raise PresetError for a setting that transformers' processor does not have, or reads only when it is constructed."""
        family = read_configuration(self._configuration)
        check_known(family, settings, class_name(self._configuration))
        once = sorted(settings.keys() & family.unchanged)
        if once:
            raise PresetError(f"`{once[0]}` is read only when the processor is made, so pass it to the constructor")

    def _original(self) -> object:
        """Return transformers' processor with the same settings.

        Raises:
            AttributeError: transformers is not installed, or has no such class.
        """
        if self._class is None:
            try:
                import transformers
            except ImportError:
                raise AttributeError(
                    "Members of transformers' class need transformers, which is not installed"
                ) from None
            kinds = (self._configuration.get(f"{kind}_type") for kind in _KINDS)
            name = str(next(filter(None, kinds), "")).removesuffix("Fast") + ("Pil" if self._backend == "pil" else "")
            held = {key: value for key, value in self._configuration.items() if not key.endswith("_type")}
            made = getattr(transformers, name).from_dict(held)
            for setting, value in self._assigned.items():
                setattr(made, setting, value)
            self._class = made
        return self._class

    def _followed(self, settings: Mapping[str, object]) -> tuple[Family, Pipeline]:
        """Return the family with the settings of a call, and its pipeline; the most recently used pipelines are cached.

        Raises:
            PresetError: a setting is unknown, or not supported.
        """
        key = json.dumps(sorted(settings.items()), default=str)
        if key not in self._running:
            self._check_changeable(settings)
            configuration = self._with(settings)
            running = preset(
                configuration,
                batch_size=_BATCH_SIZE,
                backend=self._backend,
                encoded=False,
                num_threads=self._threads,
                prefetch_queue_depth=1,
            )
            self._running[key] = read_configuration(configuration), running
            if len(self._running) > _MAX_PIPELINES:
                self._running.popitem(last=False)[1][1].close()
        self._running.move_to_end(key)
        return self._running[key]

    def _with(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Return the configuration with the assigned settings and those of a call."""
        configuration, changed = self._configuration, {**self._assigned, **settings}
        ignored: frozenset[str] = getattr(read_configuration(configuration), "ignored", frozenset())
        if "size" in changed and "size" not in ignored:
            configuration = {name: value for name, value in configuration.items() if name not in _SIZE_ALIASES}
        else:
            # The size in the configuration is complete already.
            changed.pop("default_to_square", None)
        return {**configuration, **changed}

    def _features(
        self, samples: Sequence[Sequence[np.ndarray]], kind: str | None, settings: Mapping[str, object]
    ) -> Features:
        """Return the features of all samples, which are passed as one list for each prompt."""
        family = self._followed(settings)[0]
        results = iter(self._outputs([sample for group in samples for sample in group], settings))
        joined = family.joined_prompts([[next(results) for _ in group] for group in samples])
        lists = {
            name: [collected({name: each}, kind, "")[name] for each in joined.pop(name)] for name in family.unstacked
        }
        return Features({**collected(joined, kind, PIXELS if family.bfloat16 else ""), **lists})

    def _outputs(self, samples: Sequence[np.ndarray], settings: Mapping[str, object]) -> list[dict[str, np.ndarray]]:
        """Return the pipeline's outputs for each sample."""
        family, pipeline = self._followed(settings)
        results: list[dict[str, np.ndarray]] = []
        for start in range(0, len(samples), _BATCH_SIZE):
            outputs = pipeline.run(**{self._input: samples[start : start + _BATCH_SIZE]})
            results += [dict(zip(family.outputs, map(np.array, values))) for values in zip(*outputs)]
        return results
