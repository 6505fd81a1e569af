// Uses the core from many threads at once, to be run with sanitizers; exits with 0 if all results are right. The argument is the path of a
// library that stands in for nvImageCodec.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../../backend/core/core.h"

namespace {

void expect(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

int32_t count_call(void *argument) {
  __atomic_fetch_add(static_cast<int64_t *>(argument), 1, __ATOMIC_RELAXED);
  return 0;
}

int32_t count_share(void *argument, int64_t share) {
  __atomic_fetch_add(static_cast<int64_t *>(argument) + share, 1, __ATOMIC_RELAXED);
  return 0;
}

int32_t add_up(int64_t numbers, int64_t size, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) {
  int64_t total = 0;
  for (int64_t i = 0; i < size; ++i) total += __atomic_load_n(reinterpret_cast<int64_t *>(numbers) + i, __ATOMIC_RELAXED);
  return static_cast<int32_t>(total);
}

int32_t twice(void **, void **, const void *, const void *source, void *target, int64_t size) {
  const auto *from = static_cast<const uint8_t *>(source);
  auto *to = static_cast<int16_t *>(target);
  for (int64_t i = 0; i < size; ++i) to[i] = static_cast<int16_t>(2 * from[i]);
  return 0;
}

// Crops images, mirrors them, doubles their values, and pads them, in strips.
void run_chains(int64_t seed) {
  constexpr int64_t kSamples = 40, kSide = 24, kCrop = 20, kPadded = 26;
  std::vector<std::vector<uint8_t>> sources;
  std::vector<std::vector<int16_t>> targets(kSamples, std::vector<int16_t>(kPadded * kPadded * 3, -1));
  std::vector<PenstockPlacement> crops(kSamples), pads(kSamples);
  std::vector<int64_t> source_addresses, target_addresses, source_shapes, crop_shapes, padded_shapes;
  const int16_t fill = 7;
  for (int64_t n = 0; n < kSamples; ++n) {
    sources.emplace_back(kSide * kSide * 3);
    for (size_t i = 0; i < sources[n].size(); ++i) sources[n][i] = static_cast<uint8_t>(seed + n * 31 + i * 7);
    source_addresses.push_back(reinterpret_cast<int64_t>(sources[n].data()));
    target_addresses.push_back(reinterpret_cast<int64_t>(targets[n].data()));
    source_shapes.insert(source_shapes.end(), {kSide, kSide, 3});
    crop_shapes.insert(crop_shapes.end(), {kCrop, kCrop, 3});
    padded_shapes.insert(padded_shapes.end(), {kPadded, kPadded, 3});
    crops[n] = {{1, 2, 0}, {kSide, kSide, 3}, {kCrop, kCrop, 3}, {0, n % 2, 0}, 0, -1, 1};
    pads[n] = {{-3, -3, 0}, {kCrop, kCrop, 3}, {kPadded, kPadded, 3}, {}, reinterpret_cast<int64_t>(&fill), -1, 2};
  }
  PenstockStage stages[3] = {};
  stages[0] = {PENSTOCK_PLACEMENT, reinterpret_cast<const uint8_t *>(crops.data()), sizeof(PenstockPlacement), nullptr, nullptr,
               nullptr, crop_shapes.data(), 1, 1, 0, 0, 0, 0};
  stages[1] = {PENSTOCK_POINTWISE, reinterpret_cast<const uint8_t *>(crops.data()), sizeof(PenstockPlacement),
               reinterpret_cast<void *>(&twice), nullptr, nullptr, crop_shapes.data(), 2, 3, 0, 0, 0, 0};
  stages[2] = {PENSTOCK_PLACEMENT, reinterpret_cast<const uint8_t *>(pads.data()), sizeof(PenstockPlacement), nullptr, nullptr,
               nullptr, padded_shapes.data(), 2, 1, 0, 0, 0, 0};
  const PenstockChain chain{3, kSamples, 3, source_addresses.data(), source_shapes.data(), 1, target_addresses.data(), 300};
  // Threads are woken at once, or only if there is enough work; and they are bound to a core, or not.
  const PenstockCrew crew{4, seed % 2 ? 0 : 50'000, seed % 3 ? 0 : 1};
  const int64_t core = 0;
  expect(penstock_run_chain(&chain, stages, &crew, &core) == PENSTOCK_DONE, "memory");
  std::vector<PenstockRegion> regions(kSamples);
  std::vector<PenstockPart> parts(kSamples);
  expect(penstock_read_regions(&chain, stages, regions.data()) == PENSTOCK_DONE, "memory");
  for (int64_t n = 0; n < kSamples; ++n) {
    // Only the region that is read is in memory.
    const PenstockRegion &read = regions[n];
    const int64_t *anchor = read.anchor, *extents = read.extents;
    std::vector<uint8_t> pixels;
    for (int64_t y = anchor[0]; y < anchor[0] + extents[0]; ++y) {
      const auto row = sources[n].begin() + (y * kSide + anchor[1]) * 3;
      pixels.insert(pixels.end(), row, row + extents[1] * 3);
    }
    parts[n] = {pixels.data(), {extents[1] * 3, 3, 1}, read};
    if (n % 2) {
      expect(penstock_run_sample(&chain, stages, n, &parts[n]) == PENSTOCK_DONE, "memory");
      continue;
    }
    parts[n].data = nullptr;  // a decoder's threads set it
    const PenstockDecoded decoded{&chain, stages, parts.data(), pixels.data()};
    expect(penstock_run_decoded(&decoded, n, 0, extents[0]) == PENSTOCK_DONE, "memory");
  }
  for (int64_t n = 0; n < kSamples; ++n) {
    for (int64_t y = 0; y < kPadded; ++y) {
      for (int64_t x = 0; x < kPadded; ++x) {
        for (int64_t c = 0; c < 3; ++c) {
          const int64_t row = y - 3, column = n % 2 ? kCrop - 1 - (x - 3) : x - 3;
          const bool inside = row >= 0 && row < kCrop && column >= 0 && column < kCrop;
          const int64_t place = ((row + 1) * kSide + column + 2) * 3 + c;
          expect(targets[n][(y * kPadded + x) * 3 + c] == (inside ? 2 * sources[n][place] : fill), "a pixel");
        }
      }
    }
  }
}

// A stand-in for the CUDA driver that copies synchronously, and whose events are complete as soon as they are recorded.
int32_t succeed(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) { return 0; }

int32_t fail(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) { return 700; }

int32_t copy(int64_t target, int64_t source, int64_t size, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) {
  std::memcpy(reinterpret_cast<void *>(target), reinterpret_cast<const void *>(source), size);
  return 0;
}

// Copies blocks of many sizes to a device and back, with several threads and little staging memory.
void transfer(int64_t seed) {
  constexpr int64_t kBlocks = 30, kSlots = 3, kSlotBytes = 256;
  std::vector<std::vector<uint8_t>> blocks, returned;
  std::vector<int64_t> addresses, returned_addresses, ends, events(kSlots, 0);
  int64_t size = 0;
  for (int64_t n = 0; n < kBlocks; ++n) {
    blocks.emplace_back((n * 37 + seed) % 700 * (n % 5 != 0));
    returned.emplace_back(blocks[n].size());
    for (size_t i = 0; i < blocks[n].size(); ++i) blocks[n][i] = static_cast<uint8_t>(seed + n * 31 + i * 7);
    addresses.push_back(reinterpret_cast<int64_t>(blocks[n].data()));
    returned_addresses.push_back(reinterpret_cast<int64_t>(returned[n].data()));
    ends.push_back(size += static_cast<int64_t>(blocks[n].size()));
  }
  std::vector<uint8_t> device(size), staging(kSlots * kSlotBytes);
  PenstockTransfer own{kBlocks, addresses.data(), ends.data(), reinterpret_cast<int64_t>(device.data()), 0, 200 + seed, staging.data(),
                       kSlots, kSlotBytes, seed % kSlots, events.data(), 0, 0, succeed, copy, copy, succeed, succeed};
  expect(penstock_transfer(&own, 4, nullptr, 0) == 0, "a copy to the device");
  own.to_host = 1;
  own.addresses = returned_addresses.data();
  expect(penstock_transfer(&own, 4, nullptr, 0) == 0, "a copy to the host");
  expect(blocks == returned, "what came back");
  own.record = fail;
  expect(penstock_transfer(&own, 4, nullptr, 0) == 700, "a failure");
}

void share_work(PenstockThreads *threads) {
  constexpr int64_t kShares = 16;
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> numbers(kShares, 0);
    PenstockWork *work = penstock_work_create(count_share, numbers.data(), kShares);
    if (threads) penstock_work_submit(work, threads, 3);
    const PenstockCall call{add_up, {reinterpret_cast<int64_t>(numbers.data()), kShares}};
    if (penstock_work_follow(work, &call, 1)) penstock_work_conclude(work, threads);
    if (round % 2 || !threads) penstock_work_help(work);
    expect(penstock_work_wait(work) == kShares, "a sum");
    penstock_work_release(work);
  }
}

// Reads the headers of files that are damaged anywhere. Each file is in a separate allocation, so that sanitizers detect reads beyond it.
void read_headers(int64_t seed) {
  const std::vector<uint8_t> exif{0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0,
                                  1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, 6,   0,   0,  0, 0, 0, 0, 0};
  const std::vector<uint8_t> frame{0xFF, 0xC0, 0, 17, 8, 0, 20, 0, 30, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1, 0xFF, 0xDA, 0, 0, 0xFF, 0xD9};
  std::vector<uint8_t> jpeg{0xFF, 0xD8};
  jpeg.insert(jpeg.end(), exif.begin(), exif.end());
  jpeg.insert(jpeg.end(), frame.begin(), frame.end());
  const std::vector<uint8_t> png{0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 0, 30, 0, 0, 0, 20, 8,
                                 2,    0,   0,   0,   0,  0,  0,  0,  0, 0, 0, 0,  'I', 'E', 'N', 'D', 0, 0, 0, 0};
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (const std::vector<uint8_t> &whole : {jpeg, png}) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<uint8_t> file = whole;
      for (int change = 0; change < round % 4; ++change) file[random() % file.size()] = static_cast<uint8_t>(random());
      if (round % 3 == 2) file.resize(random() % (file.size() + 1));
      file.shrink_to_fit();
      const auto address = reinterpret_cast<int64_t>(file.data()), size = static_cast<int64_t>(file.size());
      const PenstockEncodedFiles files{1, &address, &size};
      PenstockJpegHeader header;
      PenstockImageSize found;
      PenstockEncodedImage image;
      uint8_t is_whole;
      penstock_read_jpeg_headers(&files, &header);
      penstock_read_png_sizes(&files, &found);
      penstock_find_whole_jpegs(&files, &is_whole);
      penstock_prepare_jpegs(&files, 3, 0, &image, &header);
      if (round % 12 != 0) continue;
      expect(header.height == (whole == jpeg ? 20 : 0) && header.orientation == (whole == jpeg ? 6 : 0), "a JPEG's header");
      expect(found.height == (whole == png ? 20 : 0), "a PNG's size");
    }
  }
}

// Finds the samples of WAV files that are damaged in many ways.
void read_recordings(int64_t seed) {
  const std::vector<uint8_t> plain{'R', 'I', 'F', 'F', 44, 0, 0, 0, 'W', 'A', 'V', 'E', 'f', 'm', 't', ' ', 16, 0, 0, 0,
                                   1,   0,   2,   0,   64, 31, 0, 0, 0,  125, 0, 0, 4,  0,  16, 0,  'd', 'a', 't', 'a', 8, 0, 0, 0,
                                   1,   0,   2,   0,   3,  0, 4, 0};
  std::vector<uint8_t> extensible(plain.begin(), plain.begin() + 36);
  extensible[16] = 40;
  extensible[20] = 0xFE, extensible[21] = 0xFF;
  const std::vector<uint8_t> extension{22, 0, 16, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
  extensible.insert(extensible.end(), extension.begin(), extension.end());
  for (const char c : {'f', 'a', 'c', 't', '\4', '\0', '\0', '\0', '\2', '\0', '\0', '\0'}) extensible.push_back(c);
  extensible.insert(extensible.end(), plain.begin() + 36, plain.end());
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (const std::vector<uint8_t> &whole : {plain, extensible}) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<uint8_t> file = whole;
      for (int change = 0; change < round % 4; ++change) file[random() % file.size()] = static_cast<uint8_t>(random());
      if (round % 3 == 2) file.resize(random() % (file.size() + 1));
      file.shrink_to_fit();
      const auto address = reinterpret_cast<int64_t>(file.data()), size = static_cast<int64_t>(file.size());
      const PenstockEncodedFiles files{1, &address, &size};
      PenstockRecording found;
      penstock_read_recordings(&files, &found);
      expect(found.frames == 0 || found.data + found.frames * found.channels <= file.data() + size, "samples that are there");
      if (round % 12 != 0) continue;
      expect(found.encoding == PENSTOCK_INT16 && found.frames == 2 && found.channels == 2 && found.rate == 8000, "a recording");
    }
  }
}

int32_t add_to_record(void **, void **, const void *record, void *scratch) {
  auto *numbers = static_cast<int32_t *>(scratch);
  for (int i = 0; i < 100; ++i) numbers[i] = i;
  int64_t &target = **static_cast<int64_t *const *>(record);
  for (int i = 0; i < 100; ++i) target += numbers[i];
  return 0;
}

// Calls a kernel for many records; threads are woken at once, or only if there is enough work.
void compute_records(int64_t seed) {
  constexpr int64_t kRecords = 300;
  std::vector<int64_t> sums(kRecords, 0);
  std::vector<int64_t *> records;
  for (int64_t &sum : sums) records.push_back(&sum);
  const PenstockRecords launch{add_to_record, reinterpret_cast<const uint8_t *>(records.data()), sizeof(int64_t *), kRecords, 400};
  const PenstockCrew crew{4, seed % 2 ? 0 : 50'000, 0};
  expect(penstock_compute_records(&launch, &crew, nullptr) == PENSTOCK_DONE, "memory");
  for (const int64_t sum : sums) expect(sum == 4950, "a record");
}

// Decodes images, some of which only the second decoder accepts, and some neither.
void decode_images(const PenstockCodec *codec) {
  const PenstockCodecBackend first{1, 1.0, 1}, second{2, 1.0, 1};
  for (const char *options : {"none", "memory"}) {
    const PenstockDecoderSettings failing{-1, 1, &first, 1, &second, 1, options, 0};
    PenstockImageDecoder *none = nullptr;
    expect(penstock_image_decoder_create(codec, &failing, &none) != 0 && none == nullptr, "a decoder that cannot be made");
  }
  for (int64_t round = 0; round < 50; ++round) {
    const PenstockDecoderSettings settings{-1, 1, &first, 1, &second, round % 2, "", 0};
    PenstockImageDecoder *decoder = nullptr;
    expect(penstock_image_decoder_create(codec, &settings, &decoder) == 0, "a decoder");
    constexpr int64_t kImages = 20;
    std::vector<std::vector<uint8_t>> data, pixels(kImages, std::vector<uint8_t>(3 * 5 * 3));
    std::vector<PenstockEncodedImage> images(kImages);
    for (int64_t i = 0; i < kImages; ++i) {
      data.push_back({5, 5, static_cast<uint8_t>(i)});
      if (i == 7) data[i].push_back(0);
      images[i] = {data[i].data(), static_cast<int64_t>(data[i].size()), reinterpret_cast<int64_t>(pixels[i].data()),
                   5, i == 8 ? 6 : 5, 1, 0, i == 9 ? 99 : 4, 5, -1};
    }
    PenstockImageBatch batch{decoder, images.data(), kImages, 1, 8, 3, nullptr, -1};
    penstock_decode_images(&batch);
    expect(batch.status == 0, "decoding");
    for (int64_t i = 0; i < kImages; ++i) {
      const int64_t by = 7 <= i && i <= 9 ? 0 : i % 2 == 0 ? 1 : round % 2 ? 2 : 0;
      expect(images[i].decoded_by == by && pixels[i].back() == (by ? i : 0), "an image");
    }
    penstock_image_decoder_destroy(decoder);
  }
}

int32_t launch(int64_t function, int64_t blocks, int64_t, int64_t, int64_t threads, int64_t, int64_t, int64_t shared, int64_t stream,
               int64_t arguments, int64_t) {
  auto *const *passed = reinterpret_cast<int64_t *const *>(arguments);
  const bool right = blocks == 6 && threads == 256 && shared == 7 && stream == 3 && *passed[1] == 1000 + 16 * 2 && *passed[2] == 3;
  *reinterpret_cast<int64_t *>(function) += right && *passed[3] == 50 + 4 * 2;
  return 0;
}

// Launches a kernel for samples of which only some have blocks.
void list_launches() {
  int64_t launched = 0, blocks[6] = {0, 0, 1, 2, 3, 0};
  const PenstockGpuArgument argument{50, 4};
  const PenstockGpuKernel kernel{reinterpret_cast<int64_t>(&launched), 7, &argument, 1, blocks, 500, 1000, 16};
  const PenstockGpuStep steps[3] = {{0, 0, 2}, {0, 2, 5}, {0, 5, 6}};
  const PenstockGpuStream stream{launch, 256, 3};
  PenstockCall calls[3];
  PenstockGpuArguments arguments[3];
  expect(penstock_list_launches(&stream, &kernel, steps, 3, calls, arguments) == 1, "how many launches there are");
  expect(penstock_make_calls(calls, 1) == 0 && launched == 1, "a launch");
  expect(blocks[2] == 0 && blocks[3] == 1 && blocks[4] == 3, "where blocks begin");
}

}  // namespace

int main(int count, char **arguments) {
  expect(count == 2, "one argument");
  // These objects are never freed. Static pointers refer to them, so that the sanitizer does not report them as leaks.
  static PenstockCodecLibrary *library = penstock_codec_load(arguments[1]);
  expect(library != nullptr && penstock_codec_version(library) == 903, "the library");
  expect(penstock_codec_load("/nowhere") == nullptr, "no library");
  static PenstockCodec *codec = nullptr;
  expect(penstock_codec_start(library, &codec) == 0, "an instance");
  std::vector<std::thread> users;
  for (int64_t seed = 0; seed < 3; ++seed) {
    users.emplace_back(read_headers, seed);
    users.emplace_back(read_recordings, seed);
    users.emplace_back(decode_images, codec);
  }
  users.emplace_back(list_launches);
  for (int64_t seed = 0; seed < 4; ++seed) {
    users.emplace_back([seed] {
      for (int round = 0; round < 10; ++round) run_chains(seed * 10 + round);
      for (int round = 0; round < 10; ++round) transfer(seed * 10 + round);
      for (int round = 0; round < 10; ++round) compute_records(seed * 10 + round);
    });
  }
  PenstockThreads *threads = penstock_threads_start("stress", 3);
  for (int i = 0; i < 2; ++i) users.emplace_back(share_work, threads);
  users.emplace_back(share_work, nullptr);
  int64_t counted = 0;
  std::vector<PenstockTask *> tasks;
  for (int i = 0; i < 100; ++i) tasks.push_back(penstock_task_submit(threads, count_call, &counted, 1 + i % 3));
  for (PenstockTask *task : tasks) {
    penstock_task_wait(task);
    penstock_task_release(task);
  }
  expect(counted == 199, "a count");
  for (std::thread &user : users) user.join();
  penstock_threads_close(threads);
  const auto alive = reinterpret_cast<int64_t (*)()>(dlsym(dlopen(arguments[1], RTLD_NOW), "stand_in_alive"));
  expect(alive() == 0, "objects of the library that are left");
  return 0;
}
