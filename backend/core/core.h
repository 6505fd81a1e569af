// The core's plain C interface: threads, chains of kernels that run on each sample of a batch, lists of kernel launches on a GPU,
// addresses of Python's arrays, and codecs.
//
// Python loads the core with ctypes (penstock/core). The core needs neither Python's headers nor its library: Python passes the addresses
// of kernels, and of the few functions of Python that the core calls. Kernels run without the GIL.

#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { PENSTOCK_CORE_VERSION = 8, PENSTOCK_MAX_RANK = 5 };

// A box in an array.
typedef struct {
  int64_t anchor[PENSTOCK_MAX_RANK];   // the first position in each dimension, in elements
  int64_t extents[PENSTOCK_MAX_RANK];  // the number of elements in each dimension
} PenstockRegion;

// The elements of a region in memory.
typedef struct {
  uint8_t *data;                       // the element at the region's anchor
  int64_t strides[PENSTOCK_MAX_RANK];  // in bytes
  PenstockRegion region;
} PenstockPart;

// Kernels are compiled by numba and called by its convention: their first two arguments are pointers for a result and an error, which they
// do not set, and they return a status, which is always 0.

// Changes a region of a stage's output to the larger region that has to be computed to get it, or to the region of the input on which it
// depends.
typedef int32_t (*PenstockMapRegion)(void **result, void **error, const void *record, PenstockRegion *region);

// Computes the part `target` of a stage's output from `source`, the part of the input on which it depends; uses `scratch` memory.
typedef int32_t (*PenstockComputePart)(void **result, void **error, const void *record, const PenstockPart *source,
                                       const PenstockPart *target, void *scratch);

// Computes `count` elements of the output from the same number of elements of the input; both are contiguous in memory.
typedef int32_t (*PenstockComputeRun)(void **result, void **error, const void *record, const void *source, void *target,
                                      int64_t count);

// A source image and a target image of the same extents: rows, columns and channels, in any order in memory.
typedef struct {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_strides[3];  // of rows, columns and channels, in bytes; that of columns is negative if the image is mirrored
  int64_t target_strides[3];
  int64_t extents[3];
} PenstockImage;

// Computes a target image whose dimensions are stored in another order than the source's.
typedef int32_t (*PenstockComputeImage)(void **result, void **error, const void *values, const PenstockImage *image);

typedef enum {
  PENSTOCK_PLACEMENT,  // moves elements: its records are PenstockPlacement, and it has no kernel
  PENSTOCK_POINTWISE,  // each element (or pixel) depends only on that of the input at the same position: `compute` is a PenstockComputeRun
  PENSTOCK_STORE,      // like a placement, but changes the order of dimensions: records are PenstockStore, `compute` a PenstockComputeImage
  PENSTOCK_PARTS,      // anything else: `compute` is a PenstockComputePart
} PenstockStageKind;

// One step of a chain, for all samples of a batch.
typedef struct {
  int64_t kind;              // PenstockStageKind
  const uint8_t *records;    // one for each sample
  int64_t record_bytes;      // the distance from one record to the next
  void *compute;             // the kernel
  PenstockMapRegion covers;  // NULL: any region can be computed as it is; only for PARTS
  PenstockMapRegion reads;   // NULL: the same region of the input is read; only for POINTWISE and PARTS
  const int64_t *shapes;     // the outputs' shapes: `rank` extents for each sample
  int64_t element_bytes;     // the size of an element of the outputs
  int64_t group;             // POINTWISE: the number of elements of the last axis that are computed together
  int64_t reads_neighbours;  // whether the stage's input has to be computed completely before the stage begins
  int64_t strip_axis;        // the output's axis along which large samples are cut into strips
  int64_t strided;           // PARTS: whether the input may have any strides; otherwise it is contiguous
  int64_t scratch_bytes;     // PARTS: the size of the kernel's scratch memory
} PenstockStage;

// The samples of a batch that are computed by a chain of stages.
typedef struct {
  int64_t rank;
  int64_t samples;
  int64_t stage_count;
  const int64_t *source_addresses;  // the addresses of contiguous samples
  const int64_t *source_shapes;
  int64_t source_element_bytes;
  const int64_t *target_addresses;  // the addresses of contiguous samples
  int64_t strip_bytes;              // the maximum size of an intermediate result; determines how samples are cut into strips
} PenstockChain;

// Moves elements: `output[i] = input[anchor + i]`, reversed along mirrored axes, filled outside the input.
typedef struct {
  int64_t anchor[PENSTOCK_MAX_RANK];
  int64_t shape_in[PENSTOCK_MAX_RANK];
  int64_t shape[PENSTOCK_MAX_RANK];
  int64_t mirrored[PENSTOCK_MAX_RANK];
  int64_t fill;          // the address of the fill value: one element, or one for each channel of the output
  int64_t channel_axis;  // the dimension of the channels; negative: all have the same fill value
  int64_t element_bytes;
} PenstockPlacement;

// A placement whose output has its dimensions in another order; a kernel computes all values that are not filled.
typedef struct {
  PenstockPlacement placement;             // with dimensions in the input's order, but with the output's element_bytes
  int64_t permutation[PENSTOCK_MAX_RANK];  // for each dimension of the output, the corresponding one of the input
  int64_t image_axes[3];                   // the input's dimensions of rows, columns and channels
  const void *values;                      // passed to the kernel
} PenstockStore;

// A function of the CUDA driver that takes at most eleven addresses and numbers, and returns 0 or an error number.
typedef int32_t (*PenstockDriverFunction)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                                          int64_t);

enum { PENSTOCK_CUDA_OUT_OF_MEMORY = 2 };

// A copy between separate blocks of host memory and GPU memory, through pinned staging buffers. In GPU memory, the blocks are contiguous.
typedef struct {
  int64_t block_count;
  const int64_t *addresses;  // the addresses of the blocks on the host
  const int64_t *ends;       // where each block ends on the GPU, in bytes from `device_address`
  int64_t device_address;
  int64_t to_host;      // 0: from the host to the GPU
  int64_t piece_bytes;  // the number of bytes copied at a time: at most `slot_bytes`
  uint8_t *staging;     // `slot_count` slots of `slot_bytes` each, which are used in turns, one for each piece
  int64_t slot_count;
  int64_t slot_bytes;
  int64_t first_slot;     // the slot of the first piece
  const int64_t *events;  // CUDA events, one for each slot: recorded after the last copy from or to the slot
  int64_t context;        // the GPU's CUDA context
  int64_t stream;         // the CUDA stream in whose order to copy
  PenstockDriverFunction set_context, copy_to_device, copy_to_host, record, synchronize;
} PenstockTransfer;

// A copy that is made by threads while the caller does other work.
typedef struct {
  PenstockTransfer transfer;
  int64_t threads;
  const int64_t *cores;  // the cores to which threads are bound in turn
  int64_t core_count;    // 0: threads are not bound
  int64_t status;        // the result of `penstock_transfer`
} PenstockTransferJob;

// Returns the version of this interface, which the caller compares with the version that it expects.
int32_t penstock_core_version(void);

// The threads that work on a batch.
typedef struct {
  int64_t threads;          // the maximum number of threads, including the calling one
  int64_t worth_waking_ns;  // other threads are woken only if the calling thread would need longer than this for the rest
  int64_t core_count;       // the number of cores to which threads are bound in turn, the calling one first; 0: threads are not bound
} PenstockCrew;

enum {
  PENSTOCK_DONE = 0,
  PENSTOCK_OUT_OF_MEMORY = -1,  // there is not enough memory for intermediate results
  PENSTOCK_EMPTY = 1,           // nothing was computed, because a sample, or its result between two stages, is empty
};

// Runs all samples of a batch through the stages of a chain, on the calling thread and those of a crew. Returns when all are done.
int32_t penstock_run_chain(const PenstockChain *chain, const PenstockStage *stages, const PenstockCrew *crew, const int64_t *cores);

// Computes the region of its source on which each sample depends. Returns a status like `penstock_run_chain`.
int32_t penstock_read_regions(const PenstockChain *chain, const PenstockStage *stages, PenstockRegion *regions);

// Runs one sample through the stages of a chain, on the calling thread. `source`: a part of the sample's source that contains the region
// on which the output depends. Returns PENSTOCK_DONE or PENSTOCK_OUT_OF_MEMORY.
int32_t penstock_run_sample(const PenstockChain *chain, const PenstockStage *stages, int64_t sample, const PenstockPart *source);

// The samples of a chain whose sources are images that a thread decodes into the same memory, one after the other.
typedef struct {
  const PenstockChain *chain;
  const PenstockStage *stages;
  PenstockPart *sources;  // one for each sample
  uint8_t *pixels;
} PenstockDecoded;

// Runs sample `sample` through the stages of a chain, on the calling thread, after its image was decoded completely. The rows are ignored:
// decoders also call functions that take some rows at a time.
int32_t penstock_run_decoded(const PenstockDecoded *decoded, int64_t sample, int64_t first_row, int64_t end_row);

// Computes a part of a stage's output for its first sample, on the calling thread. Returns PENSTOCK_DONE or PENSTOCK_OUT_OF_MEMORY.
int32_t penstock_compute_part(const PenstockStage *stage, int64_t rank, const PenstockPart *source, const PenstockPart *target);

// Computes everything that a record describes, using `scratch` memory.
typedef int32_t (*PenstockComputeRecord)(void **result, void **error, const void *record, void *scratch);

// Records that contain everything that a kernel needs, including addresses.
typedef struct {
  PenstockComputeRecord compute;
  const uint8_t *records;
  int64_t record_bytes;  // the distance from one record to the next
  int64_t count;
  int64_t scratch_bytes;  // the size of the kernel's scratch memory
} PenstockRecords;

// Calls a kernel for each record, on the calling thread and those of a crew. Returns PENSTOCK_DONE when all records are done, or
// PENSTOCK_OUT_OF_MEMORY.
int32_t penstock_compute_records(const PenstockRecords *records, const PenstockCrew *crew, const int64_t *cores);

// A block of rows of bytes to copy.
typedef struct {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_step;  // the distance from one row to the next, in bytes; may be negative
  int64_t target_step;
  int64_t rows;
  int64_t bytes;  // the size of a row
} PenstockBlock;

// Copies blocks one after the other, on the calling thread; `past_caches`: for targets larger than the caches.
void penstock_copy_blocks(const PenstockBlock *blocks, int64_t count, int64_t past_caches);

// Makes a transfer, on the calling thread and at most `threads - 1` others, bound as in `penstock_run_chain`. Returns 0, or the error of a
// driver function. On return, blocks copied to the GPU have been read and may change, and blocks copied to the host have been written.
// Transfers that use the same staging memory must not overlap in time.
int32_t penstock_transfer(const PenstockTransfer *transfer, int64_t threads, const int64_t *cores, int64_t core_count);

// Makes the transfer of a `PenstockTransferJob`, and stores its result in `status`; returns 0.
int32_t penstock_transfer_in_background(void *job);

// A function that threads call with an address.
typedef int32_t (*PenstockFunction)(void *argument);

// A function that does one of several shares of work.
typedef int32_t (*PenstockShare)(void *argument, int64_t share);

// A call of a function that takes at most eleven addresses and numbers, and returns 0 unless it fails.
typedef struct {
  int32_t (*function)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
  int64_t arguments[11];
} PenstockCall;

typedef struct PenstockThreads PenstockThreads;
typedef struct PenstockTask PenstockTask;
typedef struct PenstockWork PenstockWork;

// Starts threads that run submitted tasks; if there is only one thread, it runs them in order. Returns NULL if the system grants no thread.
// `name`: shown by debuggers; at most 15 characters.
PenstockThreads *penstock_threads_start(const char *name, int64_t count);

// Waits until all submitted tasks are done, and ends the threads.
void penstock_threads_close(PenstockThreads *threads);

// Lets `times` threads call a function. The returned task must be released; waiting for it first is optional.
PenstockTask *penstock_task_submit(PenstockThreads *threads, PenstockFunction function, void *argument, int64_t times);
int32_t penstock_task_is_done(const PenstockTask *task);
void penstock_task_wait(const PenstockTask *task);
void penstock_task_release(PenstockTask *task);

// Creates work that consists of shares, after which calls are made. The work must be released; waiting for it first is optional.
PenstockWork *penstock_work_create(PenstockShare task, void *argument, int64_t shares);
// `submit` lets `times` threads do shares until none are left; `help` does so on the calling thread.
void penstock_work_submit(PenstockWork *work, PenstockThreads *threads, int64_t times);
void penstock_work_help(PenstockWork *work);
// Sets the calls; must be called once. Returns whether all shares are done already, so that the caller has to conclude the work.
int32_t penstock_work_follow(PenstockWork *work, const PenstockCall *calls, int64_t count);
// Makes the calls on one of `threads`, or on the calling thread if that is NULL.
void penstock_work_conclude(PenstockWork *work, PenstockThreads *threads);
int32_t penstock_work_is_done(const PenstockWork *work);
// Waits until the calls are made; returns 0, or the result of the call that failed.
int32_t penstock_work_wait(const PenstockWork *work);
void penstock_work_release(PenstockWork *work);

// Makes calls until one fails; returns the result of the call that failed, or 0.
int32_t penstock_make_calls(const PenstockCall *calls, int64_t count);

// Whole files to read.
typedef struct {
  const char *names;           // the paths, each terminated by a zero
  const int64_t *name_starts;  // the offset in `names` at which each path begins
  const int64_t *known;        // the size in bytes of each file when it was last read, or -1
  int64_t *places;             // filled with the offset in the block at which each file begins
  int64_t *sizes;              // filled with the size of each file in bytes
  int64_t alignment;           // the alignment in bytes of each file in the block
} PenstockFiles;

// A range of an open file, and the offset in a block to which it is read.
typedef struct {
  int64_t file;  // the descriptor
  int64_t start;
  int64_t bytes;
  int64_t place;
} PenstockRange;

// A piece of memory.
typedef struct {
  const uint8_t *data;
  int64_t bytes;
} PenstockPiece;

// Reads files one after the other into a block; returns the number of bytes that they need there, or -1 if a file cannot be read. If they
// need more than `block_bytes`, not all contents were read, but all sizes are right.
int64_t penstock_read_files(const PenstockFiles *files, int64_t count, uint8_t *block, int64_t block_bytes);

// Reads ranges of files into a block. Consecutive ranges that have the same distance in the file and in the block are read in one call,
// together with the gaps between them. Returns 0, or -1 if a range cannot be read.
int32_t penstock_read_ranges(const PenstockRange *ranges, int64_t count, uint8_t *block, int64_t block_bytes);

// Copies pieces of mapped files to a block, one after the other, through `window`: the mapped contents of the file with the descriptor
// `window_file`, to which the system writes each piece first. So an error in reading a piece is a return value instead of a signal that
// ends this process. Returns 0, or -1 if a piece could not be read. No piece may be larger than the window.
int32_t penstock_copy_pieces(int64_t window_file, const PenstockPiece *pieces, int64_t count, const PenstockPiece *window,
                             uint8_t *block, int64_t block_bytes);

// The functions of Python's stable interface with which arrays are read.
typedef struct {
  void *get_buffer;      // PyObject_GetBuffer
  void *release_buffer;  // PyBuffer_Release
  void *list_item;       // PyList_GetItem
} PenstockPython;

// An array as its buffer describes it.
typedef struct {
  int64_t data;                       // the address of the first element
  int64_t elements;                   // the number of elements
  int64_t rank;                       // the number of dimensions
  int64_t is_contiguous;              // whether the array is C-contiguous
  int64_t extents[PENSTOCK_MAX_RANK];  // the extents of the first dimensions; 0 beyond the rank
} PenstockArray;

// Describes the first `count` arrays of a Python list. `out` is another array, whose memory holds `count` PenstockArray. The caller must
// hold the GIL, and neither list nor `out` may change meanwhile. Returns 0, or -1 with a Python exception if an item is not an array.
int32_t penstock_describe(const PenstockPython *python, void *list, int64_t count, void *out);

// Returns the address of the first element of a Python array, or -1 with a Python exception. The caller must hold the GIL.
int64_t penstock_address(const PenstockPython *python, void *array);

// Writes the addresses of the arrays of a list to `out`, an array of int64. Returns the number of arrays before the first one that is not
// contiguous, or -1 with a Python exception. The caller must hold the GIL.
int64_t penstock_addresses(const PenstockPython *python, void *list, int64_t count, void *out);

// Copies the elements of the arrays of a list, one array after the other, to the array `out`. Stops before an array that is not contiguous,
// differs from the first one in extents or element size, or does not fit in `out`. Returns the number of arrays copied, or -1 with a
// Python exception. The caller must hold the GIL.
int64_t penstock_copy_alike(const PenstockPython *python, void *list, int64_t count, void *out);

// An argument of a GPU kernel.
typedef struct {
  int64_t value;
  int64_t sample_bytes;  // added to `value` for each sample that precedes the launch's first one
} PenstockGpuArgument;

enum { PENSTOCK_MAX_GPU_ARGUMENTS = 12 };

// A GPU kernel. Its parameters are an array of each sample's first block, the samples' descriptors, the number of samples, and `arguments`.
typedef struct {
  int64_t function;  // the driver's handle
  int64_t shared_bytes;
  const PenstockGpuArgument *arguments;
  int64_t argument_count;
  int64_t *blocks;        // each sample's number of blocks; before the upload, its first block replaces it
  int64_t device_blocks;  // the address on the GPU to which `blocks` is uploaded
  int64_t descriptors;    // the address of the samples' descriptors on the GPU
  int64_t descriptor_bytes;
} PenstockGpuKernel;

// A launch of a kernel for a range of samples.
typedef struct {
  int64_t kernel;
  int64_t first;
  int64_t last;  // excluded
} PenstockGpuStep;

// The arguments that a launch passes to its kernel.
typedef struct {
  int64_t values[PENSTOCK_MAX_GPU_ARGUMENTS];
  void *addresses[PENSTOCK_MAX_GPU_ARGUMENTS];
} PenstockGpuArguments;

// Values shared by all launches on a stream.
typedef struct {
  int32_t (*launch)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
  int64_t block_threads;
  int64_t stream;
} PenstockGpuStream;

// Fills in calls that launch kernels; returns their number, which does not include launches without blocks. Among the steps for the same
// kernel, each sample must be in exactly one. Replaces each sample's number of blocks by its first block in the launch. `calls` and
// `arguments` must have room for all steps, and `arguments` must live until the calls are made.
int64_t penstock_list_launches(const PenstockGpuStream *stream, const PenstockGpuKernel *kernels, const PenstockGpuStep *steps,
                               int64_t count, PenstockCall *calls, PenstockGpuArguments *arguments);

// The contents of files in memory.
typedef struct {
  int64_t count;
  const int64_t *addresses;
  const int64_t *sizes;  // in bytes
} PenstockEncodedFiles;

// What a JPEG's header declares. Height, width and channels are those of the stored image.
typedef struct {
  int64_t height;
  int64_t width;
  int64_t channels;
  int64_t orientation;  // the EXIF orientation; 0: there is none
  int64_t needs_all_coefficients;  // 1 if the file has several scans: it is progressive, or a component is not in the first scan
} PenstockJpegHeader;

typedef struct {
  int64_t height;
  int64_t width;
} PenstockImageSize;

// Reads the headers of ordinary JPEGs; the headers of other files are set to zeros.
void penstock_read_jpeg_headers(const PenstockEncodedFiles *files, PenstockJpegHeader *headers);

// What a PNG's header declares.
typedef struct {
  int64_t height;
  int64_t width;
  int64_t channels;
} PenstockPngHeader;

// Reads the headers of PNGs of 8 bits without a palette and without chunks that affect the pixels; the headers of other files are set to
// zeros.
void penstock_read_png_headers(const PenstockEncodedFiles *files, PenstockPngHeader *headers);

// Reads the sizes of ordinary PNGs without an EXIF orientation; the sizes of other files are set to zeros.
void penstock_read_png_sizes(const PenstockEncodedFiles *files, PenstockImageSize *sizes);

// Functions of libdeflate, a library that is loaded at run time.
typedef struct {
  void *(*alloc_decompressor)(void);
  void (*free_decompressor)(void *decompressor);
  int32_t (*zlib_decompress_ex)(void *decompressor, const void *in, size_t in_bytes, void *out, size_t out_bytes, size_t *read,
                                size_t *written);
  uint32_t (*crc32)(uint32_t crc, const void *data, size_t bytes);
} PenstockLibdeflate;

// The colour space of a decoded image.
typedef enum {
  PENSTOCK_PIXELS_AS_STORED,  // the colours of a palette are stored as RGB
  PENSTOCK_PIXELS_RGB,
  PENSTOCK_PIXELS_BGR,
  PENSTOCK_PIXELS_GREY,
} PenstockPixelSpace;

// A PNG to decode, or a region of one.
typedef struct {
  const uint8_t *data;
  int64_t size;  // in bytes
  int64_t value_bytes;  // the size of a value of the output: 2 for files of 16 bits, and 1 for others
  int64_t top;
  int64_t left;
  int64_t height;
  int64_t width;
  int64_t space;  // PenstockPixelSpace
  uint8_t *output;
  int64_t output_pitch;  // the size of a row of the output in bytes; rows are adjacent
} PenstockPng;

// Decodes an ordinary PNG and returns 1. Returns 0, with the output undefined, if the file is damaged, interlaced or otherwise unusual, or
// if there is not enough memory.
int32_t penstock_decode_png(const PenstockLibdeflate *library, const PenstockPng *png);

// Decodes several PNGs, and reports which were decoded.
void penstock_decode_pngs(const PenstockLibdeflate *library, const PenstockPng *pngs, int64_t count, uint8_t *decoded);

// Reports for each file whether it ends with a JPEG's end marker, apart from trailing zeros.
void penstock_find_whole_jpegs(const PenstockEncodedFiles *files, uint8_t *whole);

// How the samples of a recording are stored, little-endian.
typedef enum {
  PENSTOCK_UNUSUAL_RECORDING,
  PENSTOCK_UINT8,
  PENSTOCK_INT16,
  PENSTOCK_INT24,
  PENSTOCK_INT32,
  PENSTOCK_FLOAT32,
  PENSTOCK_FLOAT64,
  PENSTOCK_A_LAW,
  PENSTOCK_MU_LAW,
} PenstockEncoding;

// The samples of a recording and their format.
typedef struct {
  const uint8_t *data;  // of any alignment
  int64_t encoding;     // PenstockEncoding
  int64_t frames;       // the number of samples of each channel
  int64_t channels;
  int64_t rate;  // frames per second
} PenstockRecording;

// Finds the samples of ordinary, complete WAV files. The entries of other files are set to zeros, which include PENSTOCK_UNUSUAL_RECORDING.
// Returns the number of these other files.
int64_t penstock_read_recordings(const PenstockEncodedFiles *files, PenstockRecording *recordings);

// Decoding with nvImageCodec, an NVIDIA library that is loaded at run time. Functions that return a status return 0 or one of the library's
// statuses; if this process does not have enough memory, they return 5, the library's status of a failed allocator.
typedef struct PenstockCodecLibrary PenstockCodecLibrary;
typedef struct PenstockCodec PenstockCodec;
typedef struct PenstockImageDecoder PenstockImageDecoder;

// One of the library's decoders. `kind` and `load_policy` are numbers of the library.
typedef struct {
  int64_t kind;
  double load;  // the fraction of each batch that this decoder gets; the decoders after it get the rest
  int64_t load_policy;
} PenstockCodecBackend;

typedef struct {
  int64_t device;   // the number of the GPU; negative: the CPU
  int64_t threads;  // the number of CPU threads that the library may use
  const PenstockCodecBackend *first;
  int64_t first_count;
  const PenstockCodecBackend *second;  // for images that the first decoder rejects; made when that happens for the first time
  int64_t second_count;                // may be 0
  const char *options;                 // in the library's syntax
  int64_t spares_baseline;             // whether to leave baseline JPEGs undecoded that the first decoder rejects
} PenstockDecoderSettings;

typedef struct {
  const uint8_t *data;
  int64_t size;    // in bytes
  int64_t output;  // the address of the decoded pixels; rows are adjacent
  int64_t height;  // height and width as stored; an image is rejected if the library reports others
  int64_t width;
  int64_t top;  // top, left, bottom and right: the region to decode, in coordinates of the stored image
  int64_t left;
  int64_t bottom;  // 0: all of the image
  int64_t right;
  int64_t decoded_by;  // the result: 1 for the first decoder, 2 for the second, 0 for neither
} PenstockEncodedImage;

typedef struct {
  PenstockImageDecoder *decoder;
  PenstockEncodedImage *images;
  int64_t count;
  int64_t color_spec;  // color_spec and sample_format: the library's numbers for the format of the pixels
  int64_t sample_format;
  int64_t channels;
  void *stream;    // the CUDA stream in whose order to work
  int64_t status;  // the result: 0 unless the second decoder could not be made
} PenstockImageBatch;

// Loads the library at a path, which is never unloaded. Returns NULL if it is missing, or if its version is not supported.
PenstockCodecLibrary *penstock_codec_load(const char *path);

// Returns the library's version: 900 for 0.9.0.
int32_t penstock_codec_version(const PenstockCodecLibrary *library);

// Makes an instance of the library, for all threads of this process.
int32_t penstock_codec_start(const PenstockCodecLibrary *library, PenstockCodec **codec);

int32_t penstock_image_decoder_create(const PenstockCodec *codec, const PenstockDecoderSettings *settings,
                                      PenstockImageDecoder **decoder);
void penstock_image_decoder_destroy(PenstockImageDecoder *decoder);

// Decodes a batch; returns 0. Only one thread at a time may use a decoder.
int32_t penstock_decode_images(PenstockImageBatch *batch);

// Describes files, all of which must be ordinary, complete, upright JPEGs. Outputs are laid out one after the other: `output` becomes an
// offset, a multiple of 256 bytes. Returns the number of bytes of all outputs, or 0 if a file is not such a JPEG, or has more than
// `max_pixels` pixels.
int64_t penstock_prepare_jpegs(const PenstockEncodedFiles *files, int64_t channels, int64_t max_pixels, PenstockEncodedImage *images,
                               PenstockJpegHeader *headers);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
