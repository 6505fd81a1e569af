// Input positions under a homography, rounded as OpenCV rounds them.

// One homogeneous coordinate, rounded at the same steps as on the CPU: OpenCV computes the first `whole` pixels of a row in blocks.
__device__ inline double coordinate(const double *m, double x, double y, int) { return m[0] * x + m[1] * y + m[2]; }

__device__ inline float coordinate(const double *m, float x, float y, int whole) {
    float product = float(m[1]) * y, offset = float(m[2]);
    return x < whole ? fmaf(float(m[0]), x, product + offset) : fmaf(float(m[0]), x, product) + offset;
}

// The input coordinates of an output pixel; if the homography maps the pixel to infinity, they lie far outside.
template <typename Real>
__device__ inline void position(const double *m, Real x, Real y, int whole, Real &sx, Real &sy) {
    const Real far = Real(1e9);
    Real w = coordinate(m + 6, x, y, whole);
    sx = sy = -far;
    if (w == Real(0)) return;
    Real px = coordinate(m, x, y, whole) / w, py = coordinate(m + 3, x, y, whole) / w;
    // A NaN fails both comparisons and stays far outside.
    if (px > -far) sx = px < far ? px : far;
    if (py > -far) sy = py < far ? py : far;
}
