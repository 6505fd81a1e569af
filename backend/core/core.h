// The core's plain C interface: threads, chains of kernels over the samples of a batch, lists of kernel launches on a GPU, addresses of
// Python's arrays, and codecs.
//
// Python loads it by ctypes (penstock/core). It needs neither Python's headers nor its library: it gets the addresses of kernels, and of
// the few functions of Python that it calls. Kernels run without the GIL.

#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { PENSTOCK_CORE_VERSION = 7, PENSTOCK_MAX_RANK = 5 };

// A box in an array.
typedef struct {
  int64_t anchor[PENSTOCK_MAX_RANK];   // first position, in elements
  int64_t extents[PENSTOCK_MAX_RANK];  // extents
} PenstockRegion;

// The elements of a region in memory.
typedef struct {
  uint8_t *data;                       // the element at the region's anchor
  int64_t strides[PENSTOCK_MAX_RANK];  // in bytes
  PenstockRegion region;
} PenstockPart;

// Kernels are compiled by numba and called by its convention: they get pointers for a result and an error, neither of which they set,
// and return a status, which is 0.

// Maps a region of a stage's output to the larger one that has to be computed for it, or to the region of the input that it depends on.
typedef int32_t (*PenstockMapRegion)(void **result, void **error, const void *record, PenstockRegion *region);

// Computes the part `target` of a stage's output from `source`, the part of its input that it reads for that; uses `scratch` memory.
typedef int32_t (*PenstockComputePart)(void **result, void **error, const void *record, const PenstockPart *source,
                                       const PenstockPart *target, void *scratch);

// Computes `count` elements from as many elements of the input; both are adjacent in memory.
typedef int32_t (*PenstockComputeRun)(void **result, void **error, const void *record, const void *source, void *target,
                                      int64_t count);

// A source image and a target image of the same extents: rows, columns and channels, in any order in memory.
typedef struct {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_strides[3];  // of rows, columns and channels, in bytes; columns of a mirrored image go backwards
  int64_t target_strides[3];
  int64_t extents[3];
} PenstockImage;

// Computes an image whose dimensions are stored in another order.
typedef int32_t (*PenstockComputeImage)(void **result, void **error, const void *values, const PenstockImage *image);

typedef enum {
  PENSTOCK_PLACEMENT,  // moves elements: its records are PenstockPlacement, and it has no kernel
  PENSTOCK_POINTWISE,  // each element (or pixel) depends on the same one of the input: `compute` is a PenstockComputeRun
  PENSTOCK_STORE,      // places images, in another order of dimensions: its records are PenstockStore, `compute` is a PenstockComputeImage
  PENSTOCK_PARTS,      // anything else: `compute` is a PenstockComputePart
} PenstockStageKind;

// One step of a chain, for all samples of a batch.
typedef struct {
  int64_t kind;              // PenstockStageKind
  const uint8_t *records;    // one for each sample
  int64_t record_bytes;      // from one record to the next
  void *compute;             // the kernel
  PenstockMapRegion covers;  // NULL: computes any region by itself; only for PARTS
  PenstockMapRegion reads;   // NULL: reads the region that it computes; only for POINTWISE and PARTS
  const int64_t *shapes;     // the outputs' shapes: `rank` extents for each sample
  int64_t element_bytes;     // size of an element of the outputs
  int64_t group;             // POINTWISE: elements of the last axis that are computed together
  int64_t reads_neighbours;  // whether all of its input has to be computed before the stage begins
  int64_t strip_axis;        // the output's axis along which large samples are cut into strips
  int64_t strided;           // PARTS: whether the part that it reads may have any strides; otherwise it is contiguous
  int64_t scratch_bytes;     // PARTS: size of the kernel's scratch memory
} PenstockStage;

// A batch on its way through a chain.
typedef struct {
  int64_t rank;
  int64_t samples;
  int64_t stage_count;
  const int64_t *source_addresses;  // of contiguous samples
  const int64_t *source_shapes;
  int64_t source_element_bytes;
  const int64_t *target_addresses;  // of contiguous samples
  int64_t strip_bytes;              // strips are cut so that no intermediate result takes more
} PenstockChain;

// Moves elements: `output[i] = input[anchor + i]`, reversed along mirrored axes, filled outside the input.
typedef struct {
  int64_t anchor[PENSTOCK_MAX_RANK];
  int64_t shape_in[PENSTOCK_MAX_RANK];
  int64_t shape[PENSTOCK_MAX_RANK];
  int64_t mirrored[PENSTOCK_MAX_RANK];
  int64_t fill;          // address of one element, or of one for each channel of the output
  int64_t channel_axis;  // negative: one element fills all
  int64_t element_bytes;
} PenstockPlacement;

// A placement whose output has another order of dimensions; a kernel computes all values that are not filled.
typedef struct {
  PenstockPlacement placement;             // in the input's dimensions; with the output's element_bytes
  int64_t permutation[PENSTOCK_MAX_RANK];  // for each dimension of the output, that of the input
  int64_t image_axes[3];                   // of rows, columns and channels, in the input
  const void *values;                      // for the kernel
} PenstockStore;

// A function of the CUDA driver that takes at most eleven addresses and numbers, and returns 0 or an error number.
typedef int32_t (*PenstockDriverFunction)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                                          int64_t);

enum { PENSTOCK_CUDA_OUT_OF_MEMORY = 2 };

// A copy between blocks of host memory and GPU memory, where the blocks are contiguous, through pinned staging buffers.
typedef struct {
  int64_t block_count;
  const int64_t *addresses;  // of the blocks on the host
  const int64_t *ends;       // where each block ends on the GPU, in bytes from `device_address`
  int64_t device_address;
  int64_t to_host;      // 0: from the host to the GPU
  int64_t piece_bytes;  // bytes copied at a time: at most `slot_bytes`
  uint8_t *staging;     // `slot_count` slots of `slot_bytes` each, which pieces take in turn
  int64_t slot_count;
  int64_t slot_bytes;
  int64_t first_slot;     // the slot of the first piece
  const int64_t *events;  // CUDA events, one for each slot: recorded after the last copy from or to it
  int64_t context;        // the GPU's CUDA context
  int64_t stream;         // the CUDA stream in whose order to copy
  PenstockDriverFunction set_context, copy_to_device, copy_to_host, record, synchronize;
} PenstockTransfer;

// A copy that is made by threads while the caller does other work.
typedef struct {
  PenstockTransfer transfer;
  int64_t threads;
  const int64_t *cores;  // to which they are bound, in turn
  int64_t core_count;    // 0: they are not bound
  int64_t status;        // the result of `penstock_transfer`
} PenstockTransferJob;

// The version of this interface, which the caller compares with its own.
int32_t penstock_core_version(void);

// The threads that work on a batch.
typedef struct {
  int64_t threads;          // at most, with the calling one
  int64_t worth_waking_ns;  // wake other threads only if the calling one would need longer for the rest
  int64_t core_count;       // of the cores to which they are bound, in turn, the calling one first; 0: they are not bound
} PenstockCrew;

enum {
  PENSTOCK_DONE = 0,
  PENSTOCK_OUT_OF_MEMORY = -1,  // for intermediate results
  PENSTOCK_EMPTY = 1,           // a sample is empty, or becomes so between two stages: nothing was computed
};

// Runs all samples of a batch through the stages of a chain, on the calling thread and those of a crew. Returns when all are done.
int32_t penstock_run_chain(const PenstockChain *chain, const PenstockStage *stages, const PenstockCrew *crew, const int64_t *cores);

// Computes which region of its source each sample depends on; returns what `penstock_run_chain` does.
int32_t penstock_read_regions(const PenstockChain *chain, const PenstockStage *stages, PenstockRegion *regions);

// Runs one sample through the stages of a chain, on the calling thread. `source`: a part of the sample that contains the region it
// depends on. Returns PENSTOCK_DONE or PENSTOCK_OUT_OF_MEMORY.
int32_t penstock_run_sample(const PenstockChain *chain, const PenstockStage *stages, int64_t sample, const PenstockPart *source);

// Computes a part of a stage's output, for its first sample, on the calling thread; returns PENSTOCK_DONE or PENSTOCK_OUT_OF_MEMORY.
int32_t penstock_compute_part(const PenstockStage *stage, int64_t rank, const PenstockPart *source, const PenstockPart *target);

// Computes everything that a record describes, using `scratch` memory.
typedef int32_t (*PenstockComputeRecord)(void **result, void **error, const void *record, void *scratch);

// Records that contain all that a kernel needs, addresses included.
typedef struct {
  PenstockComputeRecord compute;
  const uint8_t *records;
  int64_t record_bytes;  // from one record to the next
  int64_t count;
  int64_t scratch_bytes;  // size of the kernel's scratch memory
} PenstockRecords;

// Calls a kernel for each record, on the calling thread and those of a crew; returns PENSTOCK_DONE or PENSTOCK_OUT_OF_MEMORY when all
// are done.
int32_t penstock_compute_records(const PenstockRecords *records, const PenstockCrew *crew, const int64_t *cores);

// Rows of bytes to copy.
typedef struct {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_step;  // bytes from a row to the next one; negative: upwards
  int64_t target_step;
  int64_t rows;
  int64_t bytes;  // of a row
} PenstockBlock;

// Copies blocks one after the other, on the calling thread; `past_caches`: for targets larger than the caches.
void penstock_copy_blocks(const PenstockBlock *blocks, int64_t count, int64_t past_caches);

// Copies blocks, on the calling thread and at most `threads - 1` others, bound as in `penstock_run_chain`. Returns 0, or the error of a
// driver function. On return, blocks copied to the GPU have been read and may change, and blocks copied to the host have been written.
// Only one transfer at a time may use a staging memory.
int32_t penstock_transfer(const PenstockTransfer *transfer, int64_t threads, const int64_t *cores, int64_t core_count);

// Makes the transfer of a `PenstockTransferJob`; returns 0.
int32_t penstock_transfer_in_background(void *job);

// A function that threads run with an address.
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

// Starts threads that run submitted tasks; a single one runs them in order. NULL if the system grants no thread. The name, which
// debuggers show, has at most 15 characters.
PenstockThreads *penstock_threads_start(const char *name, int64_t count);

// Ends the threads once all submitted tasks are done.
void penstock_threads_close(PenstockThreads *threads);

// Makes `times` threads call a function. The task has to be released, but need not be waited for.
PenstockTask *penstock_task_submit(PenstockThreads *threads, PenstockFunction function, void *argument, int64_t times);
int32_t penstock_task_is_done(const PenstockTask *task);
void penstock_task_wait(const PenstockTask *task);
void penstock_task_release(PenstockTask *task);

// Work in shares, after which calls are made. It has to be released, but need not be waited for.
PenstockWork *penstock_work_create(PenstockShare task, void *argument, int64_t shares);
// `submit` makes `times` threads take shares; `help` takes shares on the calling thread.
void penstock_work_submit(PenstockWork *work, PenstockThreads *threads, int64_t times);
void penstock_work_help(PenstockWork *work);
// Sets the calls, once; returns whether all shares are done already, so that the caller has to conclude the work.
int32_t penstock_work_follow(PenstockWork *work, const PenstockCall *calls, int64_t count);
// Makes the calls, on one of the threads; with NULL, on the calling thread.
void penstock_work_conclude(PenstockWork *work, PenstockThreads *threads);
int32_t penstock_work_is_done(const PenstockWork *work);
// Waits until the calls are made; returns 0, or the result of the one that failed.
int32_t penstock_work_wait(const PenstockWork *work);
void penstock_work_release(PenstockWork *work);

// Makes calls until one fails; returns the result of that one, or 0.
int32_t penstock_make_calls(const PenstockCall *calls, int64_t count);

// Whole files to read.
typedef struct {
  const char *names;           // the paths, each ended by a zero
  const int64_t *name_starts;  // where each path begins
  const int64_t *known;        // the size of each file in bytes when it was last read, or -1
  int64_t *places;             // receives the offset in the block where each file begins
  int64_t *sizes;              // receives the size of each file in bytes
  int64_t alignment;           // of the contents in the block, in bytes
} PenstockFiles;

// A part of an open file, and its position in the block.
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

// Reads files one after the other into a block; returns the bytes that they take there, or -1 if one cannot be read. If that is more
// than `block_bytes`, not all contents were read, but all sizes are right.
int64_t penstock_read_files(const PenstockFiles *files, int64_t count, uint8_t *block, int64_t block_bytes);

// Reads ranges of files into a block. Consecutive ranges at the same distances in the file and in the block are read at once, with the
// gaps between them. Returns 0, or -1 if one cannot be read.
int32_t penstock_read_ranges(const PenstockRange *ranges, int64_t count, uint8_t *block, int64_t block_bytes);

// Copies pieces of mapped files to a block, one after the other, through a window: the mapped contents of a file of descriptor
// `window_file`. Returns 0, or -1 if a piece could not be read: as the system writes pieces to that file, a read error is a return value,
// not a signal that ends this process. No piece may be larger than the window.
int32_t penstock_copy_pieces(int64_t window_file, const PenstockPiece *pieces, int64_t count, const PenstockPiece *window,
                             uint8_t *block, int64_t block_bytes);

// Functions of Python's stable interface by which arrays are read.
typedef struct {
  void *get_buffer;      // PyObject_GetBuffer
  void *release_buffer;  // PyBuffer_Release
  void *list_item;       // PyList_GetItem
} PenstockPython;

// An array as Python describes it.
typedef struct {
  int64_t data;                       // the address of its first element
  int64_t elements;                   // how many it has
  int64_t rank;                       // how many dimensions
  int64_t is_contiguous;              // whether the array is C-contiguous
  int64_t extents[PENSTOCK_MAX_RANK];  // of the first dimensions; 0 beyond its rank
} PenstockArray;

// Describes the first `count` arrays of a list of Python's. `out` is another array, whose memory holds as many PenstockArray. The caller
// holds the GIL, and neither may change meanwhile. Returns 0; if an item is not an array, -1, with a Python exception set.
int32_t penstock_describe(const PenstockPython *python, void *list, int64_t count, void *out);

// Returns the address of the first element of a Python array; called with the GIL; -1 with an exception.
int64_t penstock_address(const PenstockPython *python, void *array);

// Writes the addresses of the arrays of a list to `out`, an array of int64; called with the GIL. Returns the number of arrays before the
// first one that is not contiguous, or -1 with an exception.
int64_t penstock_addresses(const PenstockPython *python, void *list, int64_t count, void *out);

// Copies the elements of the arrays of a list, one array after the other, to the array `out`; called with the GIL. Returns the number of
// arrays copied: it stops at the first one that is not contiguous, differs from the first in extents or element size, or exceeds `out`.
// Returns -1 with an exception.
int64_t penstock_copy_alike(const PenstockPython *python, void *list, int64_t count, void *out);

// An argument of a GPU's kernel.
typedef struct {
  int64_t value;
  int64_t sample_bytes;  // added for each sample before the first one of the launch
} PenstockGpuArgument;

enum { PENSTOCK_MAX_GPU_ARGUMENTS = 12 };

// A GPU kernel. It gets each sample's first block, the samples' descriptors, the number of samples, and then its own arguments.
typedef struct {
  int64_t function;  // the driver's handle
  int64_t shared_bytes;
  const PenstockGpuArgument *arguments;
  int64_t argument_count;
  int64_t *blocks;        // each sample's number of blocks; before the upload, its first block replaces it
  int64_t device_blocks;  // the address on the GPU to which `blocks` is uploaded
  int64_t descriptors;    // address on the GPU
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

// Fills in calls that launch kernels; returns how many there are: launches without blocks are left out. Among the steps for one kernel,
// each sample is in exactly one. Replaces each sample's number of blocks by its first block in the launch. `calls` and `arguments` have
// room for all steps, and `arguments` must live until the calls are made.
int64_t penstock_list_launches(const PenstockGpuStream *stream, const PenstockGpuKernel *kernels, const PenstockGpuStep *steps,
                               int64_t count, PenstockCall *calls, PenstockGpuArguments *arguments);

// The contents of files in memory.
typedef struct {
  int64_t count;
  const int64_t *addresses;
  const int64_t *sizes;  // in bytes
} PenstockEncodedFiles;

// The declarations of a JPEG's header.
typedef struct {
  int64_t height;  // as stored, like the other two
  int64_t width;
  int64_t channels;
  int64_t orientation;  // of its EXIF data; 0: there is none
  int64_t needs_all_coefficients;  // 1 if it has several scans: it is progressive, or its first scan lacks a component
} PenstockJpegHeader;

typedef struct {
  int64_t height;
  int64_t width;
} PenstockImageSize;

// Reads the headers of ordinary JPEGs; those of other files become zeros.
void penstock_read_jpeg_headers(const PenstockEncodedFiles *files, PenstockJpegHeader *headers);

// The declarations of a PNG's header.
typedef struct {
  int64_t height;
  int64_t width;
  int64_t channels;
} PenstockPngHeader;

// Reads the headers of PNGs of 8 bits without a palette and without chunks that affect the pixels; those of other files become zeros.
void penstock_read_png_headers(const PenstockEncodedFiles *files, PenstockPngHeader *headers);

// Reads the sizes of ordinary PNGs, which have no EXIF orientation; those of other files become zeros.
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
  int64_t value_bytes;  // of the output: 2 for files of 16 bits, and 1 for others
  int64_t top;
  int64_t left;
  int64_t height;
  int64_t width;
  int64_t space;  // PenstockPixelSpace
  uint8_t *output;
  int64_t output_pitch;  // bytes of a row, without gaps
} PenstockPng;

// Decodes an ordinary PNG and returns 1; returns 0, with the output undefined, if it is damaged, interlaced or unusual otherwise, or if
// there is not enough memory.
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
  int64_t frames;       // samples of each channel
  int64_t channels;
  int64_t rate;  // frames per second
} PenstockRecording;

// Finds the samples of ordinary, complete WAV files; the entries of other files become zeros, PENSTOCK_UNUSUAL_RECORDING. Returns the
// number of these.
int64_t penstock_read_recordings(const PenstockEncodedFiles *files, PenstockRecording *recordings);

// Decoding by nvImageCodec, an NVIDIA library that is loaded at run time. Functions that return a status return 0 or one of the library's
// statuses: also 5, its allocator failure, if this process has not enough memory.
typedef struct PenstockCodecLibrary PenstockCodecLibrary;
typedef struct PenstockCodec PenstockCodec;
typedef struct PenstockImageDecoder PenstockImageDecoder;

// One of the library's decoders. The numbers of kinds and policies are the library's.
typedef struct {
  int64_t kind;
  double load;  // its fraction of each batch; the decoders after it get the rest
  int64_t load_policy;
} PenstockCodecBackend;

typedef struct {
  int64_t device;   // number of the GPU; negative: the CPU
  int64_t threads;  // of the CPU that the library may use
  const PenstockCodecBackend *first;
  int64_t first_count;
  const PenstockCodecBackend *second;  // for images that the first rejects; made when that first happens
  int64_t second_count;                // may be 0
  const char *options;                 // in the library's syntax
  int64_t spares_baseline;             // whether baseline JPEGs that the first rejects are left alone
} PenstockDecoderSettings;

typedef struct {
  const uint8_t *data;
  int64_t size;    // in bytes
  int64_t output;  // address of its pixels, rows without gaps
  int64_t height;  // as stored; the library has to see the same
  int64_t width;
  int64_t top;  // the region that is decoded, as stored
  int64_t left;
  int64_t bottom;  // 0: all of the image
  int64_t right;
  int64_t decoded_by;  // the result: 1 for the first decoder, 2 for the second, 0 for neither
} PenstockEncodedImage;

typedef struct {
  PenstockImageDecoder *decoder;
  PenstockEncodedImage *images;
  int64_t count;
  int64_t color_spec;  // the library's numbers for the pixels
  int64_t sample_format;
  int64_t channels;
  void *stream;    // of CUDA, on which work is ordered
  int64_t status;  // the result: 0 unless the second decoder could not be made
} PenstockImageBatch;

// Loads the library at a path; NULL if it is missing, or of another version than the core knows. It is never unloaded.
PenstockCodecLibrary *penstock_codec_load(const char *path);

// The library's version: 900 for 0.9.0.
int32_t penstock_codec_version(const PenstockCodecLibrary *library);

// Makes an instance of the library, for all threads of this process.
int32_t penstock_codec_start(const PenstockCodecLibrary *library, PenstockCodec **codec);

int32_t penstock_image_decoder_create(const PenstockCodec *codec, const PenstockDecoderSettings *settings,
                                      PenstockImageDecoder **decoder);
void penstock_image_decoder_destroy(PenstockImageDecoder *decoder);

// Decodes a batch; returns 0. One thread at a time may use a decoder.
int32_t penstock_decode_images(PenstockImageBatch *batch);

// Describes files, all of which must be ordinary, complete, upright JPEGs; outputs are offsets from 0 on, one after the other, each at a
// multiple of 256 bytes. Returns the bytes of all outputs, or 0 if a file is of another kind or has more pixels than allowed.
int64_t penstock_prepare_jpegs(const PenstockEncodedFiles *files, int64_t channels, int64_t max_pixels, PenstockEncodedImage *images,
                               PenstockJpegHeader *headers);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
