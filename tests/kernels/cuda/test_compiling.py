"""nvcc compiles the kernels for old and new GPUs; these tests are collected only if nvcc is on the path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kernel_sources import all_sources

pytestmark = pytest.mark.exhaustive

# Generated code that is inserted before a file.
ADDITIONS = {
    "elementwise": (
        "typedef int16 Result;\n"
        "__device__ inline Result compute(const uint64 *operands, const int64 *offsets, int *) {\n"
        "    return reinterpret_cast<const int16 *>(operands[0])[offsets[0]];\n}\n"
    ),
    "elements": (
        "struct Record { float factor; };\ntypedef uint8 Value;\ntypedef float Result;\n"
        "__device__ inline Result compute(const Record &record, Value value) { return value * record.factor; }\n"
    ),
}
INSTANCES = {
    "anchors": ["match_boxes", "encode_boxes"],
    "axis": ["softmax<float>", "softmax<float16>", "highest<float>", "highest<float16>", "write_names"],
    "bfloat16": ["round_to_bfloat16<float>", "round_to_bfloat16<uint8>"],
    "colour": ["colour<uint8, float16, 3, 3>", "colour<int32, uint8, 1, 1>", "colour<float, float, 4, 2>"],
    "convolution": [
        "convolve_planes<uint8, uint8>",
        "convolve_planes<float16, float>",
        "convolve_lines<uint8, float>",
        "convolve_lines<float, int16>",
    ],
    "correlation": ["correlate_tiles<uint8, uint8>", "correlate<int16, float>"],
    "decibels": ["to_decibels"],
    "crop_boxes": ["cut_boxes<uint8>", "cut_boxes<uint64>"],
    "debayer": ["debayer<uint8>", "debayer<uint16>"],
    "decode_boxes": [
        "decode_centres<float>",
        "decode_offsets<float16, float>",
        "decode_cells<float>",
        "decode_distances<float16>",
    ],
    "displacement": ["displace<Given, uint16>", "displace<Ball, uint8>", "displace<Waves, float>"],
    "drawing": [
        "copy_pictures",
        "draw_outlines<float>",
        "draw_outlines<float16>",
        "draw_outlines<int64>",
        "draw_texts",
    ],
    "elementwise": ["evaluate<uint32>", "evaluate<uint64>"],
    "elements": ["apply_records"],
    "fixed_point": ["resample_bytes", "premultiply", "unmultiply"],
    "grid_mask": ["grid_mask<uint8>", "grid_mask<float>"],
    "loudness": ["moving_power<float>", "moving_power<uint64>", "loud_region"],
    "histogram": ["count_values", "make_tables", "look_up"],
    "jpeg": ["quantize", "to_rgb"],
    "jpeg_codes": ["read_codes"],
    "jpeg_pixels": ["transform_blocks", "convert_pixels"],
    "lab": ["to_lab", "from_lab"],
    "median": ["median_tiles<uint8, 3>", "median_tiles<float, 5>", "median_tiles<int16, 0>", "median<int32>"],
    "morphology": ["extreme_tiles<uint8, Greatest>", "extreme_tiles<float, Least>", "extreme<int16, Least>"],
    "perspective": ["prepare", "warp_perspective<uint8>", "warp_perspective<float>"],
    "nms": [
        "collect_candidates<float, float16>",
        "sort_tiles",
        "rank_candidates<float>",
        "limit_candidates",
        "compare_candidates",
        "sweep",
        "suppress_others",
        "gather<float16, float>",
    ],
    "normalization": ["normalize<uint8, float>", "normalize<double, float16>"],
    "paste_masks": ["paste_masks<float, float, float>", "paste_masks<float16, float, uint8>"],
    "perspective_crops": [
        "cut_quadrilaterals<uint8, 3>",
        "cut_quadrilaterals<uint16, 4>",
        "cut_quadrilaterals<float, 1>",
    ],
    "philox": [
        "draw_numbers<Uniform, uint8>",
        "draw_numbers<UniformDouble, uint64>",
        "draw_numbers<Flip, bool>",
        "draw_numbers<Pick, double>",
        "add_noise<Normal, float, int16>",
        "add_noise<NormalDouble, double, uint64>",
        "sprinkle<int8, 0>",
        "sprinkle<float, 3>",
        "replace_by_shots<uint64>",
        "jitter<uint8, 3>",
        "jitter<float, 0>",
    ],
    "pieces": ["fill_patches<14, 2, 2, false, false>", "fill_patches<16, 1, 1, true, true>", "fill_tiles"],
    "preemphasis": ["preemphasize<int16, float, uint8>", "preemphasize<double, double, float>"],
    "reduction": [
        "reduce<float, float, float, float, Plain, GreatestPositive>",
        "reduce<uint8, uint64, uint64, uint64, Plain, Add>",
        "reduce<int16, double, double, float, Squares, Add>",
        "reduce<float, float, float, float, Plain, Least>",
        "reduce<uint64, uint64, uint64, uint64, Plain, Greatest>",
    ],
    "rescale_normalize": ["look_up"],
    "resample": [
        "resample_strips<uint8, float, 3>",
        "resample_strips<float, uint8, 1>",
        "resample<uint8, float, uint8, 3>",
        "resample<uint8, uint8, float16, 0>",
        "resample<int16, int16, int8, 1>",
        "resample_axis<uint16, float>",
    ],
    "sinc": ["resample_signals<uint8, int32>", "resample_signals<float, float>"],
    "spectrum": ["power_spectra<true>", "power_spectra<false>"],
    "taps": ["fill_taps"],
    "torch_floats": ["resample_widened"],
    "video": ["convert<uint8, uint8, RGB>", "convert<uint16, float, GREY>", "convert<uint8, uint8, 2>"],
    "warp": ["prepare", "warp<uint8, uint8, 3>", "warp<int32, float, 0>"],
    "weighted_sums": ["weighted_sums"],
    "window": [
        "window<uint8, float, uint32, false>",
        "window<double, bool, uint64, true>",
        "window<float16, int64, uint32, true>",
        "window<bool, float16, uint32, false>",
    ],
}


def test_every_file_is_compiled() -> None:
    assert set(all_sources()) == set(INSTANCES)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
@pytest.mark.parametrize("file", INSTANCES)
def test_compiled(file: str, architecture: str, tmp_path: Path) -> None:
    code = all_sources()[file].text(ADDITIONS.get(file, ""))
    code += f"\nvoid *instances[] = {{{', '.join(f'(void *){name}' for name in INSTANCES[file])}}};\n"
    path = tmp_path / "kernels.cu"
    path.write_text(code)
    options = ["-std=c++17", f"-arch={architecture}", "--fmad=false", "--cubin", "-o", str(tmp_path / "kernels.cubin")]
    done = subprocess.run(["nvcc", *options, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
