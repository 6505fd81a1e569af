"""Transcribes encoded recordings: detection of speech, cutting, transcription, decoding.

Input ``encoded_audio``: one recording as a file (UINT8, 1-D): WAV, FLAC, Ogg, MP3 and others, of any length, rate and number of channels.
Outputs, with one sample for each segment of speech, in order; segments last up to 30 seconds:

- ``text``: UINT8, a string;
- ``scores``: FLOAT, (1,): how probable the text is: the geometric mean of the probabilities of its tokens;
- ``seconds``: FLOAT, (2,): where in the recording the segment begins and ends;

and for each recording ``counts``, INT32: the number of its segments, 0 without speech.
"""

from pathlib import Path

from penstock import DataNode, fn, pipeline_def, presets, types
from penstock.plugin.triton import autoserialize

HERE = Path(__file__).parent
DETECTOR, WHISPER = str(HERE / "detector.onnx"), str(HERE / "whisper.onnx")
SAMPLE_RATE = 16000
MAX_SECONDS = 30  # the length of Whisper's input
# The detector's frames, in samples: the step, and how many samples at the end of a frame begin the next one.
FRAME_STEP, CONTEXT = 512, 64
END = 50256  # Whisper's token that ends a text; tokens above it control the network, and are not text


@autoserialize
@pipeline_def(batch_size=8)
def speech() -> tuple[DataNode, ...]:
    """Return the pipeline, on the CPU."""
    encoded = fn.external_source(name="encoded_audio", dtype=types.UINT8, ndim=1)
    audio, _ = fn.decoders.audio(encoded, sample_rate=float(SAMPLE_RATE), downmix=True)
    segments = find_speech(audio)
    clips, counts = fn.cut_segments(audio, segments)
    text, scores = transcribe(clips)
    each, _ = fn.expand(segments)
    outputs = {"text": text, "scores": scores, "seconds": each / float(SAMPLE_RATE), "counts": counts}
    return tuple(fn.copy(output, name=name) for name, output in outputs.items())


def find_speech(audio: DataNode) -> DataNode:
    """Return the segments of each recording with speech, joined to as few segments as Whisper's input length allows."""
    # At least one frame, because networks accept no empty samples.
    filled = fn.pad(audio, axes=[0], shape=[FRAME_STEP])
    frames = fn.frame_signal(filled, frame_length=CONTEXT + FRAME_STEP, step=FRAME_STEP, pad_begin=CONTEXT)
    likely = fn.model(frames, path=DETECTOR, max_batch_size=1)
    return fn.speech_segments(
        likely,
        length=fn.cast(audio.shape()[0], dtype=types.INT32),
        frame_step=FRAME_STEP,
        sample_rate=float(SAMPLE_RATE),
        max_speech_seconds=float(MAX_SECONDS),
        max_joined_seconds=float(MAX_SECONDS),
    )


def transcribe(clips: DataNode) -> tuple[DataNode, DataNode]:
    """Return the text of each clip, and the score of the text."""
    preset = presets.read_configuration({"feature_extractor_type": "WhisperFeatureExtractor"})
    (features,) = preset.process(clips, "torchvision")
    # One clip at a time, so that a text does not depend on the other clips of its batch; on a CPU, this takes no longer.
    tokens, scores = fn.model(features, path=WHISPER, output_names=["tokens", "scores"], max_batch_size=1)
    vocabulary = (HERE / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    text = fn.decode_tokens(tokens, vocabulary=vocabulary, byte_level=True, end=END, skip_from=END, strip=True)
    return text, scores
