"""DALI programs run on Penstock: a complete one in a separate process, and the rules for imports."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import pickle
import re
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import penstock
from penstock import compat
from penstock.compat import memory
from penstock.tensors import cuda, driver

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
BACKEND = HERE.parents[1] / "backend"


@pytest.fixture
def installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(BACKEND), JAX_PLATFORMS="cpu")
    return subprocess.run(
        [sys.executable, "-m", "penstock.compat", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )


def test_a_program_runs_unchanged() -> None:
    frameworks = [name for name in ("torch", "jax") if importlib.util.find_spec(name)]
    result = run(str(PROGRAM), *frameworks)
    assert result.returncode == 0, result.stderr
    points = re.findall(r"^@point\n(?:@\w+\n)?def (\w+)", PROGRAM.read_text(encoding="utf-8"), re.MULTILINE)
    assert result.stdout.split("\n")[:-1] == [f"ok {point}" for point in points]
    assert len(points) > 10


def test_arguments_modules_and_status(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("value = 5\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(
        "import sys, neighbour, nvidia.dali\n"
        "print(__name__, sys.argv[1:], neighbour.value, nvidia.dali.Pipeline.__module__)\n"
        "sys.exit(3)\n",
        encoding="utf-8",
    )
    for arguments in (["program.py"], ["-m", "program"]):
        result = run(*arguments, "a", "--b", folder=tmp_path)
        assert result.stdout == "__main__ ['a', '--b'] 5 penstock.pipeline.pipeline\n", result.stderr
        assert result.returncode == 3
    assert "usage" in run().stderr


_ASKS_FOR_A_GPU = """
import numpy as np
from nvidia.dali import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1, device_id=0)
def doubled():
    numbers = fn.external_source(source=lambda: [np.float32([1, 2]), np.float32([3])])
    return numbers.gpu() * 2

(batch,) = doubled().run()
print(type(batch.as_cpu()).__name__, [np.array(sample).tolist() for sample in batch.as_cpu()])
"""


def test_what_asks_for_a_gpu_runs_on_the_cpu_on_demand(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_ASKS_FOR_A_GPU, encoding="utf-8")
    result = run("--device", "cpu", "program.py", folder=tmp_path)
    assert result.stdout == "TensorListCPU [[2.0, 4.0], [6.0]]\n", result.stderr


def test_another_device_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DEVICE", "tpu")
    (tmp_path / "program.py").write_text(_ASKS_FOR_A_GPU, encoding="utf-8")
    assert "PENSTOCK_DEVICE must be 'cpu' or not set, got 'tpu'" in run("program.py", folder=tmp_path).stderr


def test_modules_are_those_of_penstock(installed: None) -> None:
    for name in ("fn", "ops", "types", "math", "tensors", "pipeline", "tfrecord", "external_source", "plugin.triton"):
        assert importlib.import_module(f"nvidia.dali.{name}") is importlib.import_module(f"penstock.{name}")
    assert importlib.import_module("nvidia.dali.fn.readers") is penstock.fn.readers
    dali = importlib.import_module("nvidia.dali")
    assert dali.__version__ == "2.4.0"
    assert dali.fn is penstock.fn
    assert dali.plugin_manager.load_library
    assert all(hasattr(dali, name) for name in dali.__all__)
    # Penstock's modules keep their names.
    assert penstock.fn.__name__ == "penstock.fn"
    assert penstock.types.__spec__.name == "penstock.types"


def test_what_does_not_exist(installed: None) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"nvidia\.dali\.nothing"):
        importlib.import_module("nvidia.dali.nothing")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nvidia.dali.plugin.nothing")
    with pytest.raises(AttributeError):
        _ = importlib.import_module("nvidia.dali").nothing


def test_compiled_plugins(installed: None, tmp_path: Path) -> None:
    manager = importlib.import_module("nvidia.dali.plugin_manager")
    with pytest.raises(RuntimeError, match=r"Failed to load library libmine\.so: .* cannot be loaded"):
        manager.load_library("libmine.so")
    with pytest.raises(TypeError, match="must be a string"):
        manager.load_library(5)
    # As in DALI, plugin libraries are found in subfolders whose names follow a pattern.
    manager.load_directory(str(tmp_path / "nothing"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "libdali_above.so").touch()
    (tmp_path / "mine" / "libother.so").touch()
    manager.load_directory(str(tmp_path))
    (tmp_path / "mine" / "libdali_mine.so").touch()
    with pytest.raises(RuntimeError, match=r"Failed to load library .*libdali_mine"):
        manager.load_directory(str(tmp_path))


def test_installing_twice_and_uninstalling() -> None:
    compat.install()
    finders = len(sys.meta_path)
    compat.install()
    assert len(sys.meta_path) == finders
    importlib.import_module("nvidia.dali.types")
    compat.uninstall()
    assert not [name for name in sys.modules if name.startswith("nvidia.dali")]


def test_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvidia.dali", penstock)
    with pytest.raises(RuntimeError, match="already imported"):
        compat.install()


def test_variables_without_effect_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALI_GDS_CHUNK_SIZE", "4M")
    monkeypatch.setenv("DALI_AFFINITY_MASK", "0")
    monkeypatch.setenv("DALI_EXTRA_PATH", "/data")
    with pytest.warns(
        UserWarning, match=r"^Environment variables without effect in Penstock: DALI_GDS_CHUNK_SIZE"
    ) as told:
        compat.install()
    compat.install()
    compat.uninstall()
    assert len(told) == 1
    assert "GPUDirect Storage is not used" in str(told[0].message)


@pytest.mark.skipif(cuda.device_count() > 0, reason="a GPU can be used")
def test_programs_that_need_a_gpu_hear_how_to_run_on_the_cpu(installed: None) -> None:
    dali = importlib.import_module("nvidia.dali")
    pipeline = dali.Pipeline(batch_size=1, num_threads=1, device_id=0)
    pipeline.set_outputs(dali.fn.random.uniform())
    with pytest.raises(
        RuntimeError, match=r"`python -m penstock\.compat --device cpu PROGRAM` runs a program unchanged"
    ):
        pipeline.build()


def test_functions_are_reduced_to_code(installed: None) -> None:
    pickler = importlib.import_module("nvidia.dali.reducers").DaliCallbackPickler
    stream = io.BytesIO()
    pickler(stream).dump(lambda number: number + len(sys.path))
    assert pickle.loads(stream.getvalue())(2) == 2 + len(sys.path)


def test_memory_is_shared(installed: None) -> None:
    shared = importlib.import_module("nvidia.dali.backend").SharedMem
    memory = shared(-1, 5000)
    memory.buf()[:3] = b"abc"
    other = shared(os.dup(memory.handle), 5000)
    assert bytes(other.buf()[:3]) == b"abc"
    memory.resize(9000, True)
    other.resize(9000, False)
    other.buf()[8999] = 7
    memory.close_handle()
    assert (memory.handle, memory.size, memory.buf()[8999]) == (-1, 9000, 7)
    other.close()
    memory.close()
    with pytest.raises(ValueError, match="no memory has been mapped"):
        memory.buf()
    with pytest.raises(ValueError, match="`size` must be a positive number"):
        shared(-1, 0)


def test_specifications_are_made_of_names(installed: None) -> None:
    """Compare the specifications of operators with those that DALI returned for the same calls."""
    backend = importlib.import_module("nvidia.dali.backend")
    spec, schema = backend.OpSpec("Resize"), backend.GetSchema("Resize")
    spec.AddInput("x", "cpu", 3).AddOutput("y", "cpu").AddArgumentInput("resize_x", "rx")
    assert (spec.NumInput(), spec.NumRegularInput(), spec.NumOutput()) == (2, 1, 1)
    assert [spec.InputDesc(k) for k in range(2)] == [("x", "cpu", 3, None, None), ("rx", "cpu", None, None, None)]
    assert (spec.InputName(0), spec.InputDevice(0), spec.OutputDevice(0)) == ("x", "cpu", "cpu")
    twin = spec.copy()
    twin.RenameInput(0, "z")
    twin.RenameOutput(0, "q")
    twin.AddArg("resize_y", 3)
    assert (spec.InputName(0), twin.InputName(0), spec.OutputName(0), twin.OutputDesc(0)[0]) == ("x", "z", "y", "q")
    assert repr(spec).startswith(
        "OpSpec for Resize:\n  Inputs:\n    x_cpu\n    rx_cpu\n  Outputs:\n    y_cpu\n  Arguments:\n"
    )
    with pytest.raises(RuntimeError, match="All inputs must be added before arguments"):
        spec.AddInput("w", "cpu")
    assert schema.CalculateOutputs(spec) == 1
    schema.CheckArgs(twin)
    coco = backend.GetSchema("readers__COCO")
    assert coco.HasOutputFn()
    assert coco.CalculateOutputs(backend.OpSpec("readers__COCO")) == 3
    with pytest.raises(RuntimeError, match=r'required arguments were specified for op "Cast".+: "dtype"'):
        backend.GetSchema("Cast").CheckArgs(backend.OpSpec("Cast"))
    with pytest.raises(RuntimeError, match='"Resize" has no argument "resize_q"'):
        schema.CheckArgs(backend.OpSpec("Resize").AddArg("resize_q", 1))
    assert backend.GetSchema("random__Uniform").GetCallSignatureInputs() == "shape_like = None"
    assert backend.LoadDefaultPlugins() is None


def test_dynamic_mode(installed: None) -> None:
    ndd = importlib.import_module("nvidia.dali.experimental.dynamic")
    assert importlib.import_module("nvidia.dali.experimental").dynamic is ndd is penstock.dynamic
    assert importlib.import_module("nvidia.dali.experimental.dynamic.random").uniform is ndd.random.uniform
    result = ndd.resize(ndd.zeros(shape=(4, 6, 3), dtype=ndd.uint8), size=[2, 2])
    assert isinstance(result._storage, importlib.import_module("nvidia.dali.backend").TensorCPU)


def test_schemas_are_asked_as_in_dali(installed: None) -> None:
    backend = importlib.import_module("nvidia.dali.backend")
    resize, reader = backend.GetSchema("Resize"), backend.GetSchema("readers__File")
    assert (reader.OperatorName(), reader.ModulePath(), reader.MaxNumInput()) == ("File", ["readers"], 0)
    assert reader.IsStateful()
    assert reader.HasRandomSeedArg()
    assert not resize.IsStateful()
    assert {"size", "roi_start"} <= set(resize.GetArgumentNames())
    assert resize.IsTensorArgument("size")
    assert resize.IsDeprecatedArg("image_type")
    assert not resize.HasArgument("zzz")
    assert backend.GetSchema("FileReader").DeprecatedInFavorOf() == "readers__File"
    assert backend.TryGetSchema("Nope") is None
    with pytest.raises(KeyError, match="Nope"):
        backend.GetSchema("Nope")


def test_operators_classes_are_asked_as_in_dali(installed: None) -> None:
    ops = importlib.import_module("nvidia.dali.ops")
    reader, function = ops.readers.File(file_root="/photos"), ops.PythonFunction(len)
    assert (reader.schema.Name(), reader.schema_name, ops.readers.File.schema_name) == ("readers__File",) * 3
    assert repr(reader.spec.AddArg("shard_id", 1)).splitlines() == [
        "OpSpec for readers__File:",
        "  Inputs:",
        "  Outputs:",
        "  Arguments:",
        "    device: cpu",
        "    _display_name: File",
        "    _module: nvidia.dali.ops.readers",
        "    file_root: /photos",
        "    shard_id: 1",
    ]
    with pytest.raises(RuntimeError, match='"shard_id" already exists'):
        reader.spec.AddArg("shard_id", 2)
    assert (function.schema.Name(), function.preserve) == ("PythonFunction", True)
    made = ops.python_op_factory("Shrink", "Resize")
    assert (made.__name__, made(size=3).schema.Name()) == ("Shrink", "Resize")
    with pytest.raises(KeyError, match="Nope"):
        ops.python_op_factory("Nope", "Nope")


def test_schemas_tell_of_deprecations(installed: None) -> None:
    crop = importlib.import_module("nvidia.dali.backend").GetSchema("Crop")
    assert crop.DeprecatedArgInfo("output_dtype") == {
        "msg": "The argument `output_dtype` is a deprecated alias for `dtype`. Use `dtype` instead.",
        "removed": False,
        "renamed_to": "dtype",
        "deprecated_in_version": "0.24",
    }
    told = crop.DeprecatedArgInfo("image_type")
    assert told["removed"]
    assert "`image_type` is no longer used" in told["msg"]


def test_registries_of_operators(installed: None) -> None:
    ops = importlib.import_module("nvidia.dali.ops")
    registry = importlib.import_module("nvidia.dali.ops._registry")
    assert {"Resize", "ImageDecoder", "_Shape"} <= ops.cpu_ops()
    assert {"decoders__Image", "ImageDecoder"} <= ops.mixed_ops() <= registry._all_registered_ops()
    assert "FusedImage" not in registry._all_registered_ops()
    assert "Mine" not in ops.cpu_ops()
    ops.register_cpu_op("Mine")
    ops.Reload()
    assert "Mine" in ops.cpu_ops()
    assert "Mine" not in ops.gpu_ops()


def test_modules_for_tools(installed: None) -> None:
    dali = importlib.import_module("nvidia.dali")
    sysconfig = importlib.import_module("nvidia.dali.sysconfig")
    assert Path(sysconfig.get_include_dir()).is_dir()
    assert sysconfig.get_compile_flags() == [*sysconfig.get_include_flags(), "-D_GLIBCXX_USE_CXX11_ABI=1"]
    assert sysconfig.get_link_flags() == [f"-L{sysconfig.get_lib_dir()}", "-ldali"]
    submodule = importlib.import_module("nvidia.dali.internal").get_submodule
    assert submodule(dali, "") is submodule("nvidia.dali", None) is dali
    assert submodule("nvidia.dali", "fn.readers") is penstock.fn.readers
    with pytest.raises(RuntimeError, match='already contains an attribute "Pipeline"'):
        submodule(dali, ["Pipeline", "parts"])
    assert not isinstance(penstock.types.Constant([1, 2]), Iterable)
    assert dali.data_node.not_iterable.__name__ == "not_iterable"


def test_errors_are_spelled_as_in_dali(installed: None) -> None:
    fn, types = importlib.import_module("nvidia.dali.fn"), importlib.import_module("nvidia.dali.types")
    with pytest.raises(AttributeError, match=r"module 'nvidia\.dali\.types' has no attribute 'zzz'"):
        _ = types.zzz
    with pytest.raises(
        TypeError, match=r"`max_size` for operator `nvidia\.dali\.fn\.resize` should not be .* 'float or list of float'"
    ):
        fn.resize(types.Constant([1]), max_size=types.Constant([1]))
    pipeline = penstock.Pipeline(1, 1)
    with pipeline:
        pipeline.set_outputs(fn.reshape(types.Constant([1, 2]), shape=[3]))
    with pytest.raises(
        RuntimeError, match=r"^Critical error in pipeline:\nError in CPU operator `nvidia\.dali\.fn\.reshape`"
    ):
        pipeline.run()


def test_schemas_tell_of_arguments(installed: None) -> None:
    types = importlib.import_module("nvidia.dali.types")
    backend = importlib.import_module("nvidia.dali.backend")
    resize, uniform = backend.GetSchema("Resize"), backend.GetSchema("random__Uniform")
    assert resize.GetArgumentType("size") == types.DALIDataType._FLOAT_VEC
    assert resize.GetArgumentType("dtype") == types.DATA_TYPE
    assert (resize.IsArgumentOptional("device"), resize.GetArgumentDefaultValueString("device")) == (True, "'cpu'")
    assert resize.GetArgumentDefaultValueString("preserve") == "False"
    assert uniform.HasArgument("_random_state")
    assert not resize.HasArgument("_random_state")
    assert uniform.GetInputName(0) == "shape_like"
    assert "HWC" in resize.GetSupportedLayouts(0)
    assert resize.AllowsSequences()
    with pytest.raises(ValueError, match="has no default value"):
        resize.GetArgumentDefaultValueString("size")
    with pytest.raises(ValueError, match="No deprecation info"):
        resize.DeprecatedArgInfo("size")
    with pytest.raises(KeyError, match='Argument "zzz" is not defined for operator "Resize"'):
        resize.GetArgumentType("zzz")


def test_operators_of_the_faces_have_the_names_that_tools_ask_for(installed: None) -> None:
    fn = importlib.import_module("nvidia.dali.fn")
    ops = importlib.import_module("nvidia.dali.ops")
    assert [fn._to_snake_case(name) for name in ("OneXYZTwo", "RandomBBoxCrop", "TFRecordReader", "XYZ1ABC")] == [
        "one_xyz_two",
        "random_bbox_crop",
        "tfrecord_reader",
        "xyz1abc",
    ]
    assert ops._op_name(fn.readers.tfrecord._schema_name) == "readers.tfrecord"
    assert ops._op_name("readers__File", "ops") == "readers.File"
    assert issubclass(importlib.import_module("nvidia.dali.data_node").DataNode, ops._DataNode)


@pytest.mark.parametrize(
    ("operator", "index", "expected"),
    [
        ("Slice", 0, [None, "cpu", "gpu", None, "cpu", "gpu", None, "cpu", "gpu"]),
        ("Slice", 1, [None, "cpu", "gpu", "cpu", "cpu", "cpu", "gpu", "cpu", "gpu"]),
        ("Copy", 0, [None, "cpu", "gpu", "cpu", "cpu", "cpu", "gpu", "gpu", "gpu"]),
        ("Shapes", 0, [None, "cpu", "gpu", "cpu", "cpu", "cpu", "gpu", "gpu", "gpu"]),
    ],
)
def test_devices_of_inputs(installed: None, operator: str, index: int, expected: list[str | None]) -> None:
    schema = importlib.import_module("nvidia.dali.backend").GetSchema(operator)
    devices = (None, "cpu", "gpu")
    assert [schema.GetInputDevice(index, actual, own) for actual in devices for own in devices] == expected


def test_settings_of_memory(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_settings", memory._Settings())
    backend = importlib.import_module("nvidia.dali.backend")
    backend.SetBufferGrowthFactor(2.0)
    backend.SetHostBufferGrowthFactor(1.5)
    assert (backend.GetHostBufferGrowthFactor(), backend.GetDeviceBufferGrowthFactor()) == (1.5, 2.0)
    with pytest.raises(ValueError, match="Growth factor must be between 1 and 4"):
        backend.SetBufferGrowthFactor(0.5)
    with pytest.raises(ValueError, match="Shrink threshold must be between 0"):
        backend.SetHostBufferShrinkThreshold(1.5)
    backend.ReleaseUnusedMemory()


def test_unused_memory_of_all_gpus_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = _Gpus(free_bytes=[30, 20, 0, 10], with_context={0, 1, 3})
    monkeypatch.setitem(sys.modules, "cupy", gpus.cupy)
    monkeypatch.setattr(cuda, "_device_count", lambda: (4, ""))
    monkeypatch.setattr(driver, "_library", lambda: gpus)
    memory.ReleaseUnusedMemory()
    assert gpus.free_bytes == [0, 0, 0, 0]
    assert gpus.pinned_bytes == 0
    assert gpus.current == 0
    # Making a GPU current creates a context, which takes memory.
    assert gpus.with_context == {0, 1, 3}


class _Gpus:
    """GPUs without hardware: CuPy's pools of memory, and the functions of the driver that tell which GPUs are in use.

    Args:
        free_bytes: the size of each GPU's free memory in CuPy's pool.
        with_context: the GPUs on which the process has a context.
    """

    def __init__(self, free_bytes: list[int], with_context: set[int]) -> None:
        self.free_bytes, self.pinned_bytes, self.with_context, self.current = free_bytes, 40, with_context, 0
        self.cupy = types.SimpleNamespace(
            cuda=types.SimpleNamespace(Device=self._made_current),
            get_default_memory_pool=lambda: types.SimpleNamespace(free_all_blocks=self._release),
            get_default_pinned_memory_pool=lambda: types.SimpleNamespace(free_all_blocks=self._release_pinned),
        )

    @contextlib.contextmanager
    def _made_current(self, device_id: int) -> Iterator[None]:
        before, self.current = self.current, device_id
        self.with_context.add(device_id)
        yield
        self.current = before

    def _release(self) -> None:
        self.free_bytes[self.current] = 0

    def _release_pinned(self) -> None:
        self.pinned_bytes = 0

    def cuDeviceGet(self, device: Any, device_id: Any) -> int:
        device._obj.value = device_id.value
        return 0

    def cuDevicePrimaryCtxGetState(self, device: Any, _flags: Any, is_active: Any) -> int:
        is_active._obj.value = device.value in self.with_context
        return 0


def test_capsules_are_looked_at(installed: None) -> None:
    backend = importlib.import_module("nvidia.dali.backend")
    capsule = np.zeros(3).__dlpack__()
    assert backend.CheckDLPackCapsule(capsule) == (True, False)
    assert backend.CheckDLPackCapsule(np.zeros(3)) == (False, False)
    consumed = np.zeros(3).__dlpack__()
    np.from_dlpack(_Given(consumed))
    with pytest.raises(RuntimeError, match="consumed only once"):
        backend.CheckDLPackCapsule(consumed)


class _Given:
    """An object that exports memory on the CPU as a DLPack capsule."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_private_names_that_programs_import(installed: None) -> None:
    dali = importlib.import_module("nvidia.dali")
    assert dali.backend.__cuda_version__ > 12000
    assert dali.backend.GetNvimgcodecVersion() in (900, -1)
    assert dali.pipeline.experimental.pipeline_def
    assert importlib.import_module("nvidia.dali._conditionals")._autograph.do_not_convert
    autograph = importlib.import_module("nvidia.dali._autograph")
    assert autograph.do_not_convert is dali.pipeline.do_not_convert
    pickling = importlib.import_module("nvidia.dali.pickling")._DaliPickle
    assert pickling.loads(pickling.dumps(lambda: 5))() == 5
    assert not autograph.is_autograph_artifact(autograph.do_not_convert)
    numba_function = importlib.import_module("nvidia.dali.plugin.numba.experimental").NumbaFunction
    assert numba_function._check_minimal_numba_version()
    assert numba_function._check_cuda_compatibility(False) == (cuda.device_count() > 0)


def test_private_attributes_that_programs_read(installed: None, tmp_path: Path) -> None:
    dynamic = importlib.import_module("nvidia.dali.experimental.dynamic")
    pipeline = importlib.import_module("nvidia.dali").Pipeline(batch_size=1, num_threads=3, device_id=None)
    assert pipeline._num_threads == 3  # private: DALI's tests read it
    (tmp_path / "a").mkdir()
    for i in range(5):
        (tmp_path / "a" / f"{i}.jpg").write_bytes(b"x")
    reader = dynamic.readers.File(file_root=str(tmp_path))
    assert reader._op_backend is None  # private: as above
    assert len(list(reader.next_epoch(batch_size=2))) == 3
    assert reader._op_backend.GetReaderMeta()["epoch_size_padded"] == 5  # private: as above


def test_messages_have_the_names_that_the_program_wrote(installed: None) -> None:
    dali = importlib.import_module("nvidia.dali")
    numbers = dali.types.Constant(np.zeros((3, 2)))
    pipeline = dali.Pipeline(batch_size=1, num_threads=1, device_id=None)
    pipeline.set_outputs(dali.fn.reshape(numbers, shape=[5]))
    assert " = fn.reshape(" in repr(pipeline)
    with pytest.raises(RuntimeError, match=r"operator `nvidia\.dali\.fn\.reshape`"):
        pipeline.run()
    with pytest.raises(TypeError, match=r"`enable_conditionals=True` in `@nvidia\.dali\.pipeline_def` decorator"):
        bool(numbers)
    with pytest.warns(DeprecationWarning, match=r"`nvidia\.dali\.ops\.Shapes` is now deprecated"):
        dali.ops.Shapes()(numbers)
    compat.uninstall()
    with pytest.raises(TypeError, match=r"`@penstock\.pipeline_def` decorator"):
        bool(numbers)


def test_translations_of_policies(installed: None) -> None:
    helpers = importlib.import_module("nvidia.dali.auto_aug.core._utils")
    assert helpers.max_translate_hw(3) == (3, 3)
    assert helpers.parse_validate_offset(False) == (250, 250)
    assert helpers.parse_validate_offset(True, max_translate_rel=(0.5, 0.25)) == (0.5, 0.25)
    assert [one.name for one in helpers.get_translations(True, 10, 0.5)] == ["translate_x", "translate_y"]
    with pytest.raises(ValueError, match="cannot be used without image shapes"):
        helpers.parse_validate_offset(False, max_translate_rel=1.0)
    with pytest.raises(TypeError, match="is a flag"):
        helpers.parse_validate_offset(np.zeros(3))


def test_transforms_of_torchvision(installed: None) -> None:
    dali = importlib.import_module("nvidia.dali.experimental.torchvision")
    assert dali.v2.functional is importlib.import_module("nvidia.dali.experimental.torchvision.v2.functional")
    assert len([name for name in dali.__all__ if name != "v2"]) == 18
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8))
    steps = [
        dali.Resize(30, dali.InterpolationMode.BICUBIC, device="cpu"),
        dali.RandomApply([dali.CenterCrop(20, device="gpu")], p=1.0),
        dali.RandomVerticalFlip(1.0, "cpu"),
        dali.Grayscale(3),
        dali.Pad(2, fill=7),
    ]
    result = dali.Compose(steps, batch_size=4, num_threads=2)(image)
    expected = image.resize((45, 30), Image.Resampling.BICUBIC).crop((12, 5, 32, 25))
    expected = expected.transpose(Image.Transpose.FLIP_TOP_BOTTOM).convert("L").convert("RGB")
    np.testing.assert_array_equal(np.asarray(result)[2:-2, 2:-2], np.asarray(expected))
    assert np.asarray(result)[0].tolist() == [[7, 7, 7]] * 24
    assert dali.v2.functional.get_image_size(dali.v2.functional.resize(image, [7, 9], device="cpu")) == [9, 7]
    for make in (dali.Grayscale, dali.PILToTensor, dali.ToPILImage, dali.ToPureTensor):
        with pytest.raises(ValueError, match="`device` must be cpu or gpu"):
            make(device="tpu")
    with pytest.raises(NotImplementedError, match="`inplace`"):
        dali.Normalize([0.5], [0.5], inplace=True)


def test_transforms_of_programs(installed: None) -> None:
    """Define transforms as in DALI's documentation of custom operators: in a `Compose`, and as functions."""
    operator = importlib.import_module("nvidia.dali.experimental.torchvision.v2.operator")
    torchvision = importlib.import_module("nvidia.dali.experimental.torchvision")
    dynamic = importlib.import_module("nvidia.dali.experimental.dynamic")
    typing = importlib.import_module("nvidia.dali._typing")
    assert importlib.import_module("nvidia.dali.experimental.dynamic._device").DeviceLike
    assert typing.TensorLike | dynamic.Batch
    fn, types = (importlib.import_module(f"nvidia.dali.{name}") for name in ("fn", "types"))

    class IsOdd(operator.ArgumentValidateRule):
        @classmethod
        def verify(cls, *, width: int, **_: object) -> None:
            if width % 2 == 0:
                raise ValueError(f"width is odd, got {width}")

    class Column(operator.Operator):
        arg_rules = (IsOdd,)
        preprocess_data = operator.get_HWC_from_layout_pipeline

        def __init__(self, width: int, device: str = "cpu") -> None:
            super().__init__(device=device, width=width)
            self.width = width

        def _kernel(self, data_input: tuple[object, ...]) -> object:
            _, width, _, images = data_input
            start = fn.cast((width - self.width) // 2, dtype=types.INT32)
            return fn.slice(images, start, self.width, axis_names="W", device=self.device)

    @operator.adjust_input
    def rows(inpt: dynamic.Tensor, count: int, device: str = "cpu") -> dynamic.Tensor:
        height, width, channels = operator.get_HWC_from_layout_dynamic(inpt)
        assert (width, channels) == (30, 3)
        return dynamic.slice(inpt, height - count, count, axis_names="H")

    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    image = Image.fromarray(pixels)
    compose = torchvision.Compose([Column(width=5), Column(width=3), torchvision.Grayscale(3), Column(width=1)])
    expected = np.asarray(image.convert("L"))[:, 14:15]
    np.testing.assert_array_equal(np.asarray(compose(image))[..., 0], expected)
    gray = torchvision.Compose([Column(width=3)])(image.convert("L"))
    np.testing.assert_array_equal(np.asarray(gray), np.asarray(image.convert("L"))[:, 13:16])
    np.testing.assert_array_equal(np.asarray(rows(image, count=4)), pixels[-4:])
    with pytest.raises(ValueError, match="width is odd, got 4"):
        Column(width=4)
    with pytest.raises(RuntimeError, match="Use it only inside Compose"):
        Column(width=5)(image)
    with pytest.raises(ValueError, match="Mode CMYK is not supported"):
        rows(image.convert("CMYK"), 3)
    with pytest.raises(TypeError, match="Expected a PIL image, or a tensor"):
        rows(pixels, 3)
