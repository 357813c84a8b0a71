#include "trace/torch_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/compressed_file.h"

namespace keel::trace {
namespace {

using ::testing::HasSubstr;

// --- Pickles by hand -----------------------------------------------------------------------------

std::string Number(std::int32_t number) {
  std::string bytes = "J";
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}
std::string Text(std::string_view text) {
  return "\x8c" + std::string(1, static_cast<char>(text.size())) + std::string(text);
}
std::string List(const std::vector<std::string>& items) {
  std::string bytes = "](";
  for (const std::string& item : items) bytes += item;
  return bytes + "e";
}
std::string Dict(const std::map<std::string, std::string>& fields) {
  std::string bytes = "}(";
  for (const auto& [name, value] : fields) bytes += Text(name) + value;
  return bytes + "u";
}
std::string Snapshot(const std::vector<std::string>& events,
                     const std::vector<std::string>& segments = {}) {
  return Dict({{"device_traces", List({List(events)})}, {"segments", List(segments)}}) + ".";
}
std::map<std::string, std::string> Alloc() {
  return {{"action", Text("alloc")}, {"addr", Number(4096)}, {"size", Number(100)},
          {"stream", Number(0)},     {"time_us", Number(7)}, {"compile_context", Text("N/A")}};
}
std::string With(std::map<std::string, std::string> fields, const std::string& name,
                 const std::string& value) {
  fields[name] = value;
  return Dict(fields);
}
std::string Without(std::map<std::string, std::string> fields, const std::string& name) {
  fields.erase(name);
  return Dict(fields);
}
std::string ErrorOf(const std::string& pickle) {
  const auto history = ReadTorchSnapshot(pickle);
  return history.ok() ? "OK" : std::string(history.status().message());
}

TEST(TorchSnapshotTest, EventsAreRead) {
  const auto history =
      ReadTorchSnapshot(Snapshot({Dict(Alloc()), With(Alloc(), "action", Text("free_requested")),
                                  With(Alloc(), "action", Text("something_new")),
                                  Dict({{"action", Text("oom")},
                                        {"device_free", Number(9)},
                                        {"size", Number(1000)},
                                        {"stream", Number(3)},
                                        {"time_us", Number(8)}}),
                                  Dict({{"action", Text("snapshot")}, {"time_us", Number(9)}})},
                                 {Dict({{"device", Number(0)},
                                        {"address", Number(8192)},
                                        {"total_size", Number(2048)},
                                        {"stream", Number(1)},
                                        {"is_expandable", "\x88"}})}));
  ASSERT_TRUE(history.ok()) << history.status().ToString();
  ASSERT_EQ(history->devices.size(), 1u);
  const std::vector<Event>& events = history->devices[0];
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(history->event_count(), 4u);
  EXPECT_EQ(events[0].action, Action::kAlloc);
  EXPECT_EQ(events[0].address, 4096u);
  EXPECT_EQ(events[0].size, 100u);
  EXPECT_EQ(events[0].time_us, 7);
  EXPECT_EQ(ActionName(events[1].action), "free_requested");
  EXPECT_EQ(events[2].action, Action::kOutOfMemory);
  EXPECT_EQ(events[2].address, 9u);
  EXPECT_EQ(events[2].stream, 3u);
  EXPECT_EQ(events[3].action, Action::kSnapshot);
  ASSERT_EQ(history->segments.size(), 1u);
  EXPECT_EQ(history->segments[0].size, 2048u);
  EXPECT_TRUE(history->segments[0].expandable);
}

TEST(TorchSnapshotTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(ErrorOf("N."), HasSubstr("no memory snapshot: it has no 'device_traces'"));
  EXPECT_THAT(ErrorOf(Dict({{"device_traces", Number(1)}}) + "."), HasSubstr("not a list"));
  EXPECT_THAT(ErrorOf(Dict({{"device_traces", List({})}}) + "."), HasSubstr("no 'segments'"));
  EXPECT_THAT(ErrorOf(Dict({{"device_traces", List({"N"})}, {"segments", List({})}}) + "."),
              HasSubstr("device_traces[0] is not a list"));
  EXPECT_THAT(ErrorOf(Snapshot({"N"})), HasSubstr("device_traces[0][0] is not a dict"));
  EXPECT_THAT(ErrorOf(Snapshot({Dict(Alloc()), Without(Alloc(), "size")})),
              HasSubstr("device_traces[0][1]: 'size' is missing"));
  EXPECT_THAT(ErrorOf(Snapshot({With(Alloc(), "size", Text("big"))})),
              HasSubstr("'size' is not an integer"));
  EXPECT_THAT(ErrorOf(Snapshot({With(Alloc(), "addr", Number(-1))})),
              HasSubstr("'addr' is negative: -1"));
  EXPECT_THAT(ErrorOf(Snapshot({With(Alloc(), "action", Number(1))})),
              HasSubstr("'action' is not a string"));
  EXPECT_THAT(ErrorOf(Snapshot({}, {Dict({{"device", Number(5000)}})})),
              HasSubstr("segments[0]: 'device' is out of range: 5000"));
}

// --- Real files ----------------------------------------------------------------------------------

const std::string kSample = KEEL_TEST_DATA "/resnet_train.pickle.xz";

class FileTest : public ::testing::Test {
 protected:
  ~FileTest() override { std::filesystem::remove(path_); }
  std::string Write(std::string_view bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_;
  }
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("keel_trace_test_" + std::to_string(getpid())))
          .string();
};

#ifdef KEEL_HAVE_LZMA
constexpr bool kReadsXz = true;
#else
constexpr bool kReadsXz = false;

TEST_F(FileTest, WithoutTheLibraryXzIsRefusedByName) {
  const auto bytes = ReadMaybeCompressed(kSample);
  EXPECT_EQ(bytes.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("built without liblzma"));
}
#endif

TEST_F(FileTest, ARealHistoryIsWhatItWas) {
  if (!kReadsXz) GTEST_SKIP() << "built without liblzma";
  const auto bytes = ReadMaybeCompressed(kSample);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const auto history = ReadTorchSnapshot(*bytes);
  ASSERT_TRUE(history.ok()) << history.status().ToString();
  EXPECT_EQ(history->event_count(), 46485u);
  EXPECT_EQ(history->segments.size(), 147u);
  EXPECT_EQ(history->configuration, "");
  // What the job asked for at its peak, and what the allocator that was recorded took from the
  // device, as that one counted it.
  std::uint64_t requested = 0, peak = 0, reserved = 0;
  for (const Event& event : history->devices.at(0)) {
    if (event.action == Action::kAlloc) requested += event.size;
    if (event.action == Action::kFreeCompleted) requested -= event.size;
    if (event.action == Action::kSegmentAlloc) reserved += event.size;
    peak = std::max(peak, requested);
  }
  EXPECT_EQ(peak, 7810783248u);
  EXPECT_EQ(reserved, 11106516992u);
}

std::string Gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(compressBound(static_cast<uLong>(text.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(FileTest, CompressionIsSeenInTheBytes) {
  EXPECT_EQ(*ReadMaybeCompressed(Write("plain")), "plain");
  EXPECT_EQ(*ReadMaybeCompressed(Write("")), "");
  const std::string text(3'000'000, 'x');
  EXPECT_EQ(*ReadMaybeCompressed(Write(Gzip(text))), text);
}

TEST_F(FileTest, DamagedAndOversizedFilesAreNamed) {
  const auto missing = ReadMaybeCompressed(path_ + ".absent");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(".absent"));
  const std::string packed = Gzip(std::string(3'000'000, 'x'));
  for (const Bytes limit : {Bytes(0), Bytes(1000), Bytes(2'999'999)}) {
    EXPECT_EQ(ReadMaybeCompressed(Write(packed), limit).status().code(), StatusCode::kOutOfRange);
  }
  EXPECT_EQ(ReadMaybeCompressed(Write("12345"), Bytes(4)).status().code(), StatusCode::kOutOfRange);
  const auto cut = ReadMaybeCompressed(Write(packed.substr(0, packed.size() / 2)));
  EXPECT_EQ(cut.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("gzip data is broken near byte"));
  std::string xz;
  {
    std::ifstream file(kSample, std::ios::binary);
    xz.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSERT_GT(xz.size(), 1000u);
  if (!kReadsXz) return;
  const auto half = ReadMaybeCompressed(Write(xz.substr(0, xz.size() / 2)));
  EXPECT_THAT(std::string(half.status().message()), HasSubstr("xz data is broken near byte"));
  EXPECT_EQ(ReadMaybeCompressed(Write(xz), Bytes(1 << 20)).status().code(),
            StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace keel::trace
