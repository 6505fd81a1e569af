"""Readers of NeMo manifests and of FITS files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from astropy.io import fits

from penstock import fn, pipeline_def, types


def _run(define: Any, batch_size: int) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None)
    def pipeline() -> Any:
        outputs = define()
        return tuple(outputs) if isinstance(outputs, list) else outputs

    running = pipeline()
    running.build()
    return [list(map(np.array, batch)) for batch in running.run()]


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    tone = np.sin(np.arange(8000) * 0.05)
    soundfile.write(tmp_path / "mono.wav", tone, 8000, subtype="PCM_16")
    soundfile.write(tmp_path / "stereo.wav", np.stack([tone, -tone], 1), 8000, subtype="PCM_16")
    entries: list[dict[str, Any]] = [
        {"audio_filepath": str(tmp_path / "mono.wav"), "duration": 0.25, "offset": 0.5, "text": "héllo"},
        {"audio_filepath": str(tmp_path / "stereo.wav"), "duration": 1.0, "text": "b"},
        {"audio_filepath": str(tmp_path / "mono.wav"), "duration": 0.1},
    ]
    (tmp_path / "manifest.json").write_text("\n".join(map(json.dumps, entries)) + "\n")
    return str(tmp_path / "manifest.json")


def test_lines_that_describe_no_recording_are_skipped(manifest: str, caplog: pytest.LogCaptureFixture) -> None:
    lines = Path(manifest).read_text().splitlines()
    Path(manifest).write_text("\n".join(["no json", lines[0], '{"text": "no path"}', lines[1]]))
    _, _, texts = _run(lambda: fn.readers.nemo_asr(manifest_filepaths=manifest), 2)
    assert [text.tobytes().decode() for text in texts] == ["héllo", "b"]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


def test_recordings_with_transcripts(manifest: str) -> None:
    audio, rates, texts, numbers = _run(
        lambda: fn.readers.nemo_asr(manifest_filepaths=manifest, dtype=types.INT16, read_idxs=True, min_duration=0.2), 2
    )
    assert [signal.shape for signal in audio] == [(2000,), (8000,)]
    assert audio[0].dtype == np.int16
    assert not audio[1].any()  # the channels cancel each other out
    assert [rate.tolist() for rate in rates] == [8000, 8000]
    assert [text.tobytes().decode() for text in texts] == ["héllo", "b"]
    assert [number.tolist() for number in numbers] == [[0], [1]]


def test_channels_and_resampling(manifest: str) -> None:
    audio, _, _ = _run(lambda: fn.readers.nemo_asr(manifest_filepaths=manifest, downmix=False, sample_rate=4000.0), 2)
    assert [signal.shape for signal in audio] == [(1000, 1), (4000, 2)]
    np.testing.assert_allclose(audio[1][100:-100, 0], np.sin(np.arange(4000) * 0.1)[100:-100], atol=2e-3)


def test_recording_without_a_moment(manifest: str) -> None:
    Path(manifest).write_text(json.dumps(json.loads(Path(manifest).read_text().splitlines()[0]) | {"duration": 0}))
    audio, _, _ = _run(lambda: fn.readers.nemo_asr(manifest_filepaths=manifest, sample_rate=4000.0), 1)
    assert audio[0].shape == (0,)


def test_recording_beyond_the_end(manifest: str) -> None:
    Path(manifest).write_text(json.dumps(json.loads(Path(manifest).read_text().splitlines()[0]) | {"offset": 50.0}))
    with pytest.raises(RuntimeError, match="begins at 50"):
        _run(lambda: fn.readers.nemo_asr(manifest_filepaths=manifest), 1)


def test_manifest_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}\n")
    with pytest.raises(ValueError, match="No files found"):
        _run(lambda: fn.readers.nemo_asr(manifest_filepaths=str(tmp_path / "manifest.json")), 1)


def test_images_of_the_sky(tmp_path: Path) -> None:
    image, other = np.arange(12, dtype=np.int16).reshape(3, 4), np.linspace(0, 1, 5)
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(image), fits.ImageHDU(other)]).writeto(tmp_path / "a.fits")
    first, second = _run(lambda: fn.experimental.readers.fits(file_root=str(tmp_path), hdu_indices=[2, 3]), 1)
    np.testing.assert_array_equal(first[0], image)
    np.testing.assert_array_equal(second[0], other)
    (converted,) = _run(lambda: fn.experimental.readers.fits(files=[str(tmp_path / "a.fits")], dtypes=[types.FLOAT]), 1)
    assert converted[0].dtype == np.float32
    with pytest.raises(ValueError, match="3 header-data units"):
        _run(lambda: fn.experimental.readers.fits(files=[str(tmp_path / "a.fits")], hdu_indices=[4]), 1)
    with pytest.raises(ValueError, match="is not an image"):
        _run(lambda: fn.experimental.readers.fits(files=[str(tmp_path / "a.fits")], hdu_indices=[1]), 1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.uint32, np.uint64])
def test_fits_types_that_are_stored_with_an_offset(tmp_path: Path, dtype: type) -> None:
    image = np.arange(6).reshape(2, 3).astype(dtype)
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(image)]).writeto(tmp_path / "a.fits")
    (read,) = _run(lambda: fn.experimental.readers.fits(files=[str(tmp_path / "a.fits")]), 1)
    np.testing.assert_array_equal(read[0], image)
    assert read[0].dtype == dtype
