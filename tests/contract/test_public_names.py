"""Users can import the public names."""

from __future__ import annotations

import inspect

import penstock
from penstock import fn, ops, types
from penstock.schema import all_schemas


def test_all_names_exist() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None, name
    assert set(penstock.__all__) <= set(dir(penstock))


def test_each_operator_has_both_faces() -> None:
    for schema in all_schemas():
        target: object = fn
        for part in schema.fn_path.split("."):
            target = getattr(target, part)
        assert callable(target), schema.name
        face: object = ops
        for part in (*schema.module, schema.class_name):
            face = getattr(face, part)
        assert callable(face), schema.name


def test_functions_tell_their_arguments() -> None:
    signature = inspect.signature(fn.resize)
    assert next(iter(signature.parameters)) == "input"
    assert signature.parameters["interp_type"].default == types.INTERP_LINEAR
    assert "resize_shorter" in (fn.resize.__doc__ or "")


def test_signatures_begin_with_device_and_name() -> None:
    assert list(inspect.signature(fn.cast).parameters) == [
        "input",
        "device",
        "name",
        "bytes_per_sample_hint",
        "dtype",
        "preserve",
    ]
    assert "output_dtype" not in inspect.signature(fn.crop_mirror_normalize).parameters, "it is deprecated"


def test_classes_tell_their_arguments() -> None:
    assert inspect.signature(fn.cast).parameters["dtype"].default is inspect.Parameter.empty
    assert inspect.signature(ops.Cast).parameters["dtype"].default is None
    assert list(inspect.signature(ops.Cast.__init__).parameters)[:3] == ["self", "device", "name"]
    assert list(inspect.signature(ops.Cast.__call__).parameters)[:4] == ["self", "input", "device", "name"]
    assert inspect.signature(ops.Cast(dtype=types.FLOAT)) == inspect.signature(ops.Cast.__call__).replace(
        parameters=list(inspect.signature(ops.Cast.__call__).parameters.values())[1:]
    )


def test_functions_listed_are_operators() -> None:
    listed = [value for name, value in inspect.getmembers(fn, inspect.isfunction) if not name.startswith("_")]
    assert listed
    for function in listed:
        assert hasattr(function, "_schema_name"), function


def test_submodules_can_be_imported() -> None:
    import penstock.fn.decoders
    import penstock.ops.decoders

    assert penstock.fn.decoders.image is fn.decoders.image
    assert penstock.ops.decoders.Image is ops.decoders.Image


def test_short_names_of_types() -> None:
    assert types.FLOAT == types.DALIDataType.FLOAT == 9
    assert repr(types.FLOAT) == "<DALIDataType.FLOAT: 9>"
    assert str(types.RGB) == "DALIImageType.RGB"
