// Emulates on the CPU the parts of CUDA that kernels use: blocks run one after the other, and the threads of a block take turns.
//
// Each thread is a coroutine with a stack of its own. `__syncthreads` switches to the next thread, so that all threads reach it before any
// of them continues.

// Only a few headers are included, as compiling them takes most of the time.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <utility>

#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static

static int max(int a, int b) { return a > b ? a : b; }
static int min(int a, int b) { return a < b ? a : b; }

// The minimum, and the maximum, of each of two 16-bit numbers that are packed into 32 bits.
static unsigned __vminu2(unsigned a, unsigned b) {
    unsigned low = min(int(a & 0xFFFF), int(b & 0xFFFF)), high = min(int(a >> 16), int(b >> 16));
    return low | high << 16;
}
static unsigned __vmaxu2(unsigned a, unsigned b) {
    unsigned low = max(int(a & 0xFFFF), int(b & 0xFFFF)), high = max(int(a >> 16), int(b >> 16));
    return low | high << 16;
}

static int __popc(unsigned bits) { return __builtin_popcount(bits); }

// Four bytes of two words, selected by the hexadecimal digits of `chosen`; and the bits of a float.
static unsigned __byte_perm(unsigned low, unsigned high, unsigned chosen) {
    unsigned long long both = low | (unsigned long long)high << 32;
    unsigned bytes = 0;
    for (int i = 0; i < 4; i++) bytes |= unsigned(both >> 8 * (chosen >> 4 * i & 7) & 0xFF) << 8 * i;
    return bytes;
}
static float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

struct Dim3 {
    unsigned x, y, z;
};
static Dim3 blockIdx, threadIdx, blockDim, gridDim;

namespace emulation {

alignas(16) static char shared_memory[256 * 1024];
const unsigned MOST_THREADS = 256, STACK = 64 * 1024;
static ucontext_t scheduler;
static ucontext_t threads[MOST_THREADS];
static bool finished[MOST_THREADS];
static char stacks[MOST_THREADS][STACK];
static void (*body)(void **);
static void **body_arguments;

static void run_thread() {
    unsigned self = threadIdx.x;
    body(body_arguments);
    finished[self] = true;
    swapcontext(&threads[self], &scheduler);
}

static void run_block(bool synchronizes) {
    unsigned count = blockDim.x;
    if (!synchronizes) {
        for (unsigned t = 0; t < count; t++) {
            threadIdx = {t, 0, 0};
            body(body_arguments);
        }
        return;
    }
    for (unsigned t = 0; t < count; t++) {
        finished[t] = false;
        getcontext(&threads[t]);
        threads[t].uc_stack.ss_sp = stacks[t];
        threads[t].uc_stack.ss_size = STACK;
        threads[t].uc_link = &scheduler;
        makecontext(&threads[t], run_thread, 0);
    }
    for (bool any = true; any;) {
        any = false;
        for (unsigned t = 0; t < count; t++) {
            if (finished[t]) continue;
            threadIdx = {t, 0, 0};
            swapcontext(&scheduler, &threads[t]);
            any = true;
        }
    }
}

template <typename... Parameters, size_t... I>
void call(void (*kernel)(Parameters...), void **arguments, std::index_sequence<I...>) {
    kernel(*reinterpret_cast<std::remove_reference_t<Parameters> *>(arguments[I])...);
}

template <typename... Parameters>
void call(void (*kernel)(Parameters...), void **arguments) {
    call(kernel, arguments, std::index_sequence_for<Parameters...>());
}

static void launch(void (*kernel)(void **), unsigned grid, unsigned block, bool synchronizes, void **arguments) {
    body = kernel;
    body_arguments = arguments;
    blockDim = {block, 1, 1};
    gridDim = {grid, 1, 1};
    for (unsigned b = 0; b < grid; b++) {
        // Shared memory is undefined at first, so fill it with values that no computation expects.
        memset(shared_memory, 0xAB, sizeof(shared_memory));
        blockIdx = {b, 0, 0};
        run_block(synchronizes);
    }
}

}  // namespace emulation

static void __syncthreads() {
    unsigned self = threadIdx.x;
    swapcontext(&emulation::threads[self], &emulation::scheduler);
    threadIdx = {self, 0, 0};
}

// Returns a bit for each thread of a warp: whether its `said` is true. All threads of a block must call it.
static unsigned __ballot_sync(unsigned, bool said) {
    static bool all[emulation::MOST_THREADS];
    all[threadIdx.x] = said;
    __syncthreads();
    unsigned bits = 0, first = threadIdx.x / 32 * 32;
    for (unsigned i = 0; i < 32; i++) bits |= unsigned(all[first + i]) << i;
    __syncthreads();
    return bits;
}

template <typename T>
static T atomicAdd(T *place, T value) {
    T before = *place;
    *place += value;
    return before;
}

template <typename T>
static T atomicMin(T *place, T value) {
    T before = *place;
    if (value < before) *place = value;
    return before;
}

template <typename T>
static T atomicOr(T *place, T value) {
    T before = *place;
    *place |= value;
    return before;
}

// Blocks run one after the other, so each block sees what earlier ones wrote.
static void __threadfence() {}
