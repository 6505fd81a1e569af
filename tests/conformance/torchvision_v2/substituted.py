"""A plugin of pytest that runs torchvision's tests of `transforms.v2` on Penstock's transforms.

`suite.py` uses it. The private names of torchvision that the tests use are replaced: helper functions that compute expected values
remain torchvision's, and any name that would itself be tested becomes a :class:`Private`; tests that use one are not counted. TorchScript
is not tested either: the parts of tests that compile are left out, and the rest runs.

Environment: ``SUITE_ORIGINAL=1`` leaves torchvision's own transforms in place; ``SUITE_SAMPLE=10`` runs about every tenth
test.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

ORIGINAL = bool(os.environ.get("SUITE_ORIGINAL"))
V2 = "torchvision.transforms.v2"
SCRIPTED = ("_check_kernel_scripted_vs_eager", "_check_functional_scripted_smoke")


class Private:
    """Takes the position of a private name of torchvision that torchvision's tests use; raises an error when it is called.

    Args:
        name: the name, qualified by the module's name.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.name = name

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise PrivateNameError(self.name)

    def __getattr__(self, name: str) -> Private:
        if name.startswith("__"):
            raise AttributeError(name)
        return Private(f"{self.name}.{name}")


class PrivateNameError(Exception):
    """A test called a private function."""


class _Pytest:
    """Replaces pytest in the tests: an error of the right class counts as right, whatever the message; other messages are recorded."""

    words: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(pytest, name)

    @contextlib.contextmanager
    def raises(self, expected: Any, match: str | None = None) -> Iterator[Any]:
        with pytest.raises(expected) as found:
            yield found
        if match is not None and not re.search(match, str(found.value)):
            self.words.append(f"{match!r}: {found.value}")


def _module(name: str, **contents: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(contents)
    return module


def _absent(v2: Any) -> None:
    """Add names to `v2` that newer tests import from a GPU backend, which no release contains yet."""
    for module, names in (
        (v2.functional, ("cvcuda_to_tensor", "to_cvcuda_tensor")),
        (v2, ("ToCVCUDATensor", "CVCUDAToTensor")),
    ):
        for name in names:
            if not hasattr(module, name):
                setattr(module, name, Private(name))


def _substitute() -> None:
    import torchvision

    functional = importlib.import_module(f"{V2}.functional")
    geometry = importlib.import_module(f"{V2}.functional._geometry")
    utils = importlib.import_module(f"{V2}.functional._utils")
    for name in ("_import_cvcuda", "_is_cvcuda_available", "_is_cvcuda_tensor"):
        if not hasattr(utils, name):
            setattr(utils, name, lambda *args: False)
    _absent(importlib.import_module(V2))
    if ORIGINAL:
        for part in ("_geometry", "_color", "_misc", "_augment", "_meta"):
            module = getattr(functional, part)
            for name in ("horizontal_flip", "vertical_flip"):
                if part == "_geometry":
                    setattr(module, f"_{name}_image_cvcuda", Private(name))
        return
    from penstock.plugin.torchvision import tv_tensors
    from penstock.plugin.torchvision.transforms import v2

    tv_tensors.classes()  # imports torchvision's classes while their module still has its name
    own = v2.functional
    modules = {
        V2: v2,
        f"{V2}.functional": own,
        f"{V2}._utils": _module("_utils", check_type=v2.check_type, is_pure_tensor=own.is_pure_tensor),
        f"{V2}.functional._geometry": _module(
            "_geometry",
            _get_perspective_coeffs=geometry._get_perspective_coeffs,
            _parallelogram_to_bounding_boxes=geometry._parallelogram_to_bounding_boxes,
        ),
        f"{V2}.functional._utils": _module(
            "_utils",
            _get_kernel=own.get_kernel,
            _import_cvcuda=Private("_import_cvcuda"),
            _is_cvcuda_available=lambda: False,
            _is_cvcuda_tensor=lambda value: False,
            _register_kernel_internal=Private("_register_kernel_internal"),
        ),
        "torchvision.tv_tensors": tv_tensors,
    }
    import torchvision.transforms

    sys.modules.update(modules)
    torchvision.transforms.v2 = v2
    torchvision.tv_tensors = tv_tensors
    _absent(v2)
    for part in ("_geometry", "_color", "_misc", "_augment", "_meta", "_deprecated", "_type_conversion"):
        if not isinstance(getattr(own, part, None), ModuleType):
            setattr(own, part, Private(part))
    v2._utils = Private("_utils")


# This runs before the suite's configuration is imported, which imports the modules to be replaced.
_substitute()


def _without_private_parts(module: Any) -> None:
    """Leave out the parts of tests that compile, or that check torchvision's private bookkeeping."""
    for name in SCRIPTED:
        setattr(module, name, lambda *args, **kwargs: None)
    module._script = lambda scripted: scripted
    module._check_transform_v1_compatibility = lambda *args, **kwargs: None
    if ORIGINAL:
        return
    transforms = module.transforms
    transforms.Transform._needs_transform_list = lambda self, leaves: self.wanted(leaves)
    theirs = module.pil_modes_mapping
    module.pil_modes_mapping = {**theirs, **{transforms.InterpolationMode(mode.value): theirs[mode] for mode in theirs}}
    module.pytest = _Pytest()

    def check_functional(
        functional: Any, sample: Any, *args: Any, check_scripted_smoke: bool = True, **kw: Any
    ) -> None:
        unknown = object()
        with pytest.raises(TypeError, match=r"<class 'object'>"):
            functional(unknown, *args, **kw)
        output = functional(sample, *args, **kw)
        assert isinstance(output, type(sample))
        if hasattr(sample, "format") and functional is not module.F.convert_bounding_box_format:
            assert getattr(output, "format", None) == getattr(sample, "format", None)

    module.check_functional = check_functional


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for module in {id(item.module): item.module for item in items}.values():
        _without_private_parts(module)
    share = int(os.environ.get("SUITE_SAMPLE", "1"))
    items[:] = [item for item in items if not zlib.crc32(item.nodeid.encode()) % share]
    left = [item for item in items if not _is_private(item)]
    gone = [item for item in items if _is_private(item)]
    items[:] = left
    config.hook.pytest_deselected(items=gone)


def _is_private(item: pytest.Item) -> bool:
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    return any(isinstance(value, Private) for value in values) or any(
        mark in item.keywords for mark in ("needs_cvcuda", "needs_cuda", "needs_mps")
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _Pytest.words.clear()
    try:
        result = yield
    except PrivateNameError as error:
        pytest.skip(f"private: {error}")
    except AttributeError as error:
        # The name is that of a private attribute, or of an attribute of a module that no release contains.
        if getattr(error, "name", None) and error.name.startswith("_") and not error.name.startswith("__"):
            pytest.skip(f"private: {error}")
        raise
    if _Pytest.words:
        pytest.skip(f"words: {_Pytest.words[0]}")
    return result
