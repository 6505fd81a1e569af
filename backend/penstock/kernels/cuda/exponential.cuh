// Computes exponentials as the CPU does, operation for operation: see `exponential` in operators/postprocessing/_axis_cpu.py. Its
// constants are declared by the Python module of the source that includes this file.

__device__ inline double exponential(double number) {
    union Word {
        double number;
        int64 bits;
    };
    double power = number < LOWEST_POWER ? LOWEST_POWER : number;
    Word shifted = {power * LOG2_E + ROUNDING}, scale;
    double rest = power - (shifted.number - ROUNDING) * LN2;
    double fraction = FOURTH + rest * (FIFTH + rest * SIXTH);
    fraction = 1.0 + rest * (1.0 + rest * (SECOND + rest * (THIRD + rest * fraction)));
    // The integer exponent is in the lowest bits of the sum.
    scale.bits = (shifted.bits + 1023) << 52;
    return fraction * scale.number;
}
