"""Compares networks' answers after Penstock's pipelines, the original preprocessing, and resizing by several libraries.

make answers
make answers ARGS="--photographs ~/photographs --pages 40"
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import pages

import photographs
import recordings
from penstock.examples import load_example

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"


def main() -> int:
    """Print the tables; return 1 if the answers after any of Penstock's pipelines differ from the original ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=Path, action="append", default=[], help="a folder of further JPEGs")
    parser.add_argument("--pages", type=int, default=10, help="of four lines each, rendered and photographed")
    options = parser.parse_args()
    folders = [photographs.PHOTOGRAPHS, *options.photographs]
    folders += [folder for folder in (SHARED / "coco" / "images", SHARED / "images" / "jpeg") if folder.is_dir()]
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stdout(sys.stderr):
        models = Path(temporary)
        for name in ("imagenet", "ocr", "speech"):
            load_example(name).add(models)
        given = photographs.pictures(folders)
        outcomes = photographs.compare(photographs.Classifier(models / "mobilenet_v2_classifier"), given, models)
        read = {
            kind: pages.compare(pages.pages(options.pages, kind == "photographed"), models / "ocr")
            for kind in ("rendered", "photographed")
        }
        said = recordings.recordings()
        heard = recordings.compare(said, models / "speech", models)
    tables = photographs.table(outcomes), pages.table(read), recordings.table({"of sentences": heard})
    print("\n\n".join(tables))
    first, *_ = outcomes.values()
    ours = [own for name, own in outcomes.items() if 'reference="torchvision"' in name]
    changed = sum(int((own.best != first.best).sum()) for own in ours) + sum(own.changed for own in read.values())
    changed += heard.changed
    print(f"\n{changed} answers of our pipelines differ from those after the networks' own preprocessing")
    return min(changed, 1)


if __name__ == "__main__":
    sys.exit(main())
