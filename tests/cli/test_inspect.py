"""`penstock inspect` shows what passes change and the results for given files, and writes an HTML report."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from penstock.cli._group import penstock

HEAD = "from penstock import fn, pipeline_def, types\n\n"
FUSED = f"""{HEAD}
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def classify():
    encoded = fn.external_source(name="photo", dtype=types.UINT8, ndim=1)
    images = fn.resize(fn.decoders.image(encoded, name="decoded"), size=[24, 32], name="small")
    return fn.crop_mirror_normalize(images, name="normalized")
"""
TWO = f"""{HEAD}
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def blended():
    left = fn.external_source(name="left", dtype=types.UINT8, ndim=3, layout="HWC")
    right = fn.external_source(name="right", dtype=types.FLOAT, ndim=1)
    return fn.flip(left, name="mirrored"), right * 2
"""
READER = f"""{HEAD}
@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def numbers():
    return fn.cast(fn.readers.file(file_root=ROOT, name="files")[1], dtype=types.FLOAT, name="number")
"""
CALLBACK = f"""{HEAD}
import numpy as np

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def called():
    return fn.external_source(lambda: np.full((2, 3), 7, np.float32), name="sevens") + 1
"""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        pixels = np.full((60 + number, 80, 3), 60 * number, np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg")
    return folder


def written(tmp_path: Path, source: str) -> str:
    path = tmp_path / "pipeline.py"
    path.write_text(source)
    return str(path)


def inspect(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(penstock, ["inspect", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return " ".join(result.output.split())


class Page(HTMLParser):
    """The text, pictures, anchors and references of an HTML page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = ""
        self.images = 0
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open, "all elements are closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.images += tag == "img"
        self.anchors.add(found.get("id", ""))
        self.links += [found[name] for name in ("href", "src") if name in found]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_shows_graphs_passes_and_what_each_operator_gives(photos: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = inspect(written(tmp_path, FUSED), "--html", page, "--input", photos)
    assert "_fused__Image 'normalized': all samples at once" in text
    assert f"wrote {page}" in text
    shown = Page(page)
    # Three decoded, three resized and three normalized images. Encoded bytes are not shown as pictures.
    assert shown.images == 9
    assert "60×80×3 uint8" in shown.text
    assert "3×24×32 float32" in shown.text
    assert re.search(r"fuse: \d → 2 operators", shown.text)
    assert "decoders.image + resize + crop_mirror_normalize" in shown.text
    assert "all samples at once" in shown.text
    assert {link[1:] for link in shown.links if link[0] == "#"} <= shown.anchors
    assert all(link.startswith(("#", "data:")) for link in shown.links), "nothing beside the page is needed"


def test_a_page_without_input_shows_the_graphs(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    inspect(written(tmp_path, FUSED), "--html", page)
    shown = Page(page)
    assert "What each pass did" in shown.text
    assert "What each operator returns" not in shown.text


def test_samples_that_are_not_computed_at_once_are_counted(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((8, 8, 3), np.float32))
    source = f"""{HEAD}
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def small():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=3, layout="HWC")
    return fn.cast(x * 2 + 1, dtype=types.INT32, name="end")
"""
    text = inspect(written(tmp_path, source), "--input", tmp_path / "a.npy", "--input", tmp_path / "a.npy")
    assert "_fused__Pointwise 'end': 0 samples at once, step by step: 2 for small samples" in text


def test_a_sample_that_fails_is_told_and_the_others_are_shown(photos: Path, tmp_path: Path) -> None:
    (photos / "1.jpg").write_bytes(b"no image at all")
    page = tmp_path / "report.html"
    text = inspect(written(tmp_path, FUSED), "--html", page, "--input", photos)
    assert "sample #1 failed: Error in CPU operator `penstock.fn.decoders.image`" in text
    shown = Page(page)
    assert "Sample #1: Error in CPU operator" in shown.text
    assert shown.images == 6


def test_inputs_are_named_where_there_are_several(photos: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "a=b.npy", np.arange(100, dtype=np.float32))
    page = tmp_path / "report.html"
    source, right = written(tmp_path, TWO), f"right={tmp_path / 'a=b.npy'}"
    inspect(source, "--html", page, "--input", f"left={photos / '2.jpg'}", "--input", right)
    assert "62×80×3 uint8" in Page(page).text
    for given, message in (
        ([f"left={photos}"], "No file is given for 'right': add right=FILE"),
        ([f"lefft={photos}", right], "no input 'lefft'. Did you mean 'left'? Its inputs are: left, right"),
        ([str(photos), right], "has the inputs left, right: name the one for"),
        ([f"left={photos}/nothing", right], "nothing' is not a file or folder"),
        ([f"left={tmp_path}/pipeline.py", right], "neither an .npy file nor an image"),
        ([f"left={photos}", f"right={photos}"], "is not an .npy file, which the input 'right' needs"),
    ):
        options = [option for text in given for option in ("--input", text)]
        assert message in inspect(source, *options, exit_code=2).replace("│ ", "")


def test_pipelines_that_read_their_data_themselves_need_no_input(photos: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    (tmp_path / "tree" / "0").mkdir(parents=True)
    (tmp_path / "tree" / "1").mkdir()
    for number in (0, 1):
        (tmp_path / "tree" / str(number) / "x.jpg").write_bytes(b"abc")
    inspect(written(tmp_path, READER.replace("ROOT", repr(str(tmp_path / "tree")))), "--html", page)
    assert "[97 98 99]" in Page(page).text
    text = inspect(written(tmp_path, READER.replace("ROOT", "'/nowhere'")), "--html", page)
    assert "not run: Error in CPU operator `penstock.fn.readers.file`" in text
    assert "What each operator returns" not in Page(page).text
    inspect(written(tmp_path, CALLBACK), "--html", page)
    assert "[8. 8. 8.]" in Page(page).text
    assert "has none" in inspect(written(tmp_path, CALLBACK), "--input", photos, exit_code=2)
