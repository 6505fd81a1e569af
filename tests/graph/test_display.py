"""Pipelines and graphs as text and as pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from penstock import Pipeline, fn, pipeline_def, tfrecord, types
from penstock.graph import Graph
from penstock.graph.drawing import to_svg
from penstock.passes import improve
from penstock.pipeline import experimental


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def training() -> Any:
    encoded, labels = fn.readers.file(file_root="images", name="files")
    angle = fn.random.uniform(range=(-10, 10), name="angle")
    images = fn.rotate(fn.decoders.image(encoded, name="decoded"), angle=angle, name="turned")
    small = fn.resize(images, size=[32, 32], name="small")
    return fn.cast(small, dtype=types.FLOAT, name="cast") / 255 - angle, labels


def test_a_pipeline_shows_its_operators_inputs_and_outputs() -> None:
    lines = repr(training()).splitlines()
    assert lines[0] == "Pipeline(batch_size=4, num_threads=2, device_id=None)"
    assert [line.strip() for line in lines[1:]] == [
        "files[0], files[1] = fn.readers.file(file_root='images')",
        "decoded = fn.decoders.image(files[0])",
        "angle = fn.random.uniform(range=[-10, 10])",
        "turned = fn.rotate(decoded, angle=angle)",
        "small = fn.resize(turned, size=[32, 32])",
        "cast = fn.cast(small, dtype=FLOAT)",
        "___ArithmeticGenericOp_0 = math.fdiv(cast, 255)",
        "___ArithmeticGenericOp_1 = math.sub(___ArithmeticGenericOp_0, angle)",
        "return ___ArithmeticGenericOp_1, files[1]",
    ]


def test_looking_at_a_pipeline_changes_nothing() -> None:
    calls = []

    class Own(Pipeline):
        def define_graph(self) -> Any:
            calls.append(1)
            return fn.random.uniform(seed=1)

    pipe = Own(batch_size=1, num_threads=1)
    assert repr(pipe).endswith("(its graph is not defined yet)")
    assert "not defined yet" in pipe._repr_html_()
    assert not calls
    with pipe:
        node = fn.random.uniform(seed=1, name="drawn")
        pipe.set_outputs(node, 3)
        assert repr(pipe).endswith("return drawn")
        pipe.add_sink(fn.random.uniform(seed=2, name="kept"))
    assert "kept = " in repr(pipe)
    pipe.build()
    assert {op.name for op in pipe.graph.operators} >= {"drawn", "kept"}
    assert "return drawn, " in repr(pipe)
    pipe.close()


def test_a_pipeline_in_debug_mode_can_be_shown() -> None:
    @experimental.pipeline_def(batch_size=1, num_threads=1, device_id=None, debug=True)
    def debugged() -> Any:
        return fn.random.uniform()

    pipe = debugged()
    pipe.run()
    assert repr(pipe).startswith("DebugPipeline(batch_size=1")


def test_devices_and_copies_are_told() -> None:
    with Pipeline(batch_size=1, num_threads=1, device_id=0) as pipe:
        image = fn.external_source(name="image")
        pipe.set_outputs(fn.flip(image.gpu(), name="flipped").cpu())
    assert "flipped = fn.flip(image.gpu(), device='gpu')" in repr(pipe)
    assert "return flipped.cpu()" in repr(pipe)


def test_what_is_fused_is_called_by_its_parts() -> None:
    assert "= decoders.image + rotate + resize + cast + fdiv(files[0], angle=angle)" in repr(improve(training().graph))


def chain(length: int) -> Graph:
    with Pipeline(batch_size=1) as pipe:
        node = fn.external_source(name="source")
        for _ in range(length):
            node = fn.flip(node)
        pipe.set_outputs(node)
    return pipe.graph


def test_long_graphs_are_abridged() -> None:
    assert "... 41 more operators" in repr(chain(100))
    assert len(repr(chain(100)).splitlines()) == 62


def test_long_calls_are_abridged() -> None:
    with Pipeline(batch_size=1) as pipe:
        pipe.set_outputs(fn.constant(fdata=[0.5] * 1000, shape=[1000]))
    assert max(map(len, repr(pipe).splitlines())) < 120


# -- pictures ------------------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def drawn(graph: Graph) -> ET.Element:
    return ET.fromstring(graph._repr_svg_())


def boxes(svg: ET.Element) -> list[tuple[float, float, float, float]]:
    rects = [group.find(f"{SVG}rect") for group in svg.iter(f"{SVG}g")]
    return [
        (x, y, x + width, y + height)
        for x, y, width, height in (
            tuple(float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
            for rect in rects
            if rect is not None
        )
    ]


@pytest.mark.parametrize(
    "graph", [training().graph, improve(training().graph), chain(60)], ids=["plain", "fused", "long"]
)
def test_boxes_are_inside_of_the_picture_and_apart(graph: Graph) -> None:
    svg = drawn(graph)
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    found = boxes(svg)
    assert len(found) == len(graph.operators) + len(graph.outputs)
    for number, (left, top, right, bottom) in enumerate(found):
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
        for other in found[:number]:
            apart = other[2] < left or right < other[0] or other[3] < top or bottom < other[1]
            assert apart


def test_users_are_below_what_they_use() -> None:
    svg = drawn(training().graph)
    texts = {text.text or "": float(text.attrib["y"]) for text in svg.iter(f"{SVG}text")}
    assert texts["fn.readers.file"] < texts["fn.decoders.image"] < texts["fn.rotate"] < texts["fn.resize"]
    assert texts["fn.random.uniform"] < texts["fn.rotate"]
    assert texts["math.sub"] < texts["___ArithmeticGenericOp_1"]


def test_arguments_are_told_and_text_is_escaped() -> None:
    with Pipeline(batch_size=1) as pipe:
        source = fn.external_source(name="<a&b>")
        pipe.set_outputs(fn.rotate(source, angle=fn.random.uniform(), fill_value=7))
    svg = drawn(pipe.graph)
    assert "<a&b>" in {text.text for text in svg.iter(f"{SVG}text")}
    assert "angle" in {text.text for text in svg.iter(f"{SVG}text")}
    assert any("fill_value=7" in (title.text or "") for title in svg.iter(f"{SVG}title"))


def test_operators_can_be_marked_and_lead_somewhere() -> None:
    graph = training().graph
    plain = to_svg(graph.operators, graph.outputs)
    marked = to_svg(graph.operators, graph.outputs, changed={"turned"}, links={"small": "#step-small"})
    assert marked.count("#d9480f") == plain.count("#d9480f") + 1
    assert '<a href="#step-small">' in marked


def test_notebooks_get_the_picture() -> None:
    assert "<svg" in training()._repr_html_()
    assert "Pipeline(batch_size=4" in training()._repr_html_()


def test_nodes_tell_where_they_come_from() -> None:
    with Pipeline(batch_size=1, num_threads=1):
        cast = fn.cast(fn.external_source(name="x"), dtype=types.FLOAT)
        assert str(cast + 1) == (
            'DataNode(name="___ArithmeticGenericOp_1", device="cpu", source="<penstock.math.add ___ArithmeticGenericOp_1>", index="0")'
        )
        cast.layout, cast.ndim, cast.dtype = "HW", 2, types.FLOAT
        assert str(cast).endswith("""index="0", ndim=2, dtype=DALIDataType.FLOAT, layout='HW')""")


def test_the_reader_of_tfrecords_goes_by_its_public_name() -> None:
    features = {"label": tfrecord.FixedLenFeature([1], tfrecord.int64, 0)}
    with Pipeline(batch_size=1, num_threads=1):
        read = fn.readers.tfrecord(path="a.tfrecord", index_path="a.idx", features=features)
        assert read["label"].name == "__TFRecord_0"
        assert (-read["label"]).name == "___ArithmeticGenericOp_1"
