#include "keel/trace/snapshot_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "trace/files_test.h"

namespace keel::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Everything that the model has, and what is hard to write: large numbers, negative ones, text that
// needs escapes, more items than go into one piece.
Snapshot Rich() {
  Snapshot snapshot;
  SnapshotInterner interner(snapshot);
  const std::uint32_t frames[] = {interner.Frame("f\"\\\n\x01", "gr\xc3\xbcn.py", 3),
                                  interner.Frame("g", "b.cc", -1)};
  const std::uint32_t both = interner.Stack(frames);
  const std::uint32_t one = interner.Stack({frames, 1});
  const std::uint32_t tag = interner.Tag("weights, \xf0\x9f\x99\x82");
  const std::uint32_t long_tag = interner.Tag(std::string(300, 'x'));
  snapshot.segments = {{.device = 1,
                        .address = 0xff00000000200000,
                        .total_size = 3 << 20,
                        .allocated_size = 1 << 20,
                        .active_size = 2 << 20,
                        .requested_size = 1000001,
                        .stream = 0x55d012345678,
                        .pool = {.owner = 3, .number = UINT64_MAX},
                        .stack = both,
                        .is_small = true,
                        .is_expandable = true,
                        .blocks = {{.address = 0xff00000000200000,
                                    .size = 1 << 20,
                                    .requested_size = 1000000,
                                    .state = BlockState::kAllocated,
                                    .stack = one,
                                    .tag = tag},
                                   {.address = 0xff00000000300000,
                                    .size = 1 << 20,
                                    .requested_size = 1,
                                    .state = BlockState::kPendingFree},
                                   {.address = 0xff00000000400000,
                                    .size = 1 << 20,
                                    .requested_size = 0,
                                    .state = BlockState::kInactive}}},
                       {.address = 1, .total_size = 1, .blocks = {{.address = 1, .size = 1}}}};
  snapshot.devices.resize(3);
  std::vector<Event>& events = snapshot.devices[1];
  for (int action = 0; action <= static_cast<int>(Action::kOutOfMemory); ++action) {
    events.push_back({.stack = both, .tag = tag, .action = static_cast<Action>(action)});
  }
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t number = std::uint64_t{1} << bit;
    events.push_back({.address = number,
                      .size = number - 1,
                      .stream = ~number,
                      .time_us = static_cast<std::int64_t>(number),
                      .stack = bit % 2 == 0 ? one : both,
                      .tag = long_tag});
    events.push_back({.time_us = -static_cast<std::int64_t>(number - 1)});
  }
  snapshot.devices[2].resize(2001, {.address = 4096, .size = 1});
  snapshot.annotations = {{"step", true, 1, 7}, {"step \"2\"", false, 0, -7}};
  snapshot.settings = {
      {"PYTORCH_ALLOC_CONF", "expandable_segments:True"},
      {"max_split_size", std::int64_t{-1}},
      {"threshold", 0.1},
      {"whole", 2.0},
      {"large", 1e300},
      {"expandable_segments", false},
      {"inner", std::vector<Setting>{{"16", std::int64_t{2}}, {"32", std::vector<Setting>{}}}}};
  return snapshot;
}

// Tables are numbered in the order of first use when they are read; written again, they tell
// whether the meaning is the same.
std::string AsJson(const Snapshot& snapshot) {
  return WriteSnapshot(snapshot, SnapshotFormat::kJson).value_or("cannot be written");
}

class SnapshotFileTest : public FileTest {
 protected:
  std::string ErrorOf(std::string_view contents, Bytes limit = kReadLimit) const {
    const auto snapshot = ReadSnapshotFile(Write(contents), limit);
    return snapshot.ok() ? "OK" : snapshot.status().ToString();
  }
};

TEST_F(SnapshotFileTest, WhatIsWrittenIsReadAgain) {
  const Snapshot rich = Rich();
  for (const SnapshotFormat format : {SnapshotFormat::kJson, SnapshotFormat::kPickle}) {
    SCOPED_TRACE(static_cast<int>(format));
    const std::string path = PathOf("snapshot");
    const Status written = WriteSnapshotFile(path, rich, format);
    ASSERT_TRUE(written.ok()) << written.ToString();
    EXPECT_EQ(FileCount(), 1u);
    EXPECT_EQ(Contents(path), *WriteSnapshot(rich, format));
    const auto again = ReadSnapshotFile(path);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(AsJson(*again), AsJson(rich));
    EXPECT_EQ(again->settings, rich.settings);
    EXPECT_EQ(again->annotations, rich.annotations);
    ASSERT_EQ(again->segments.size(), 2u);
    EXPECT_EQ(again->segments[0].address, 0xff00000000200000u);
    EXPECT_EQ(again->segments[0].pool, rich.segments[0].pool);
    ASSERT_EQ(again->devices.size(), 3u);
    ASSERT_EQ(again->devices[1].size(), rich.devices[1].size());
    for (std::size_t i = 0; i < rich.devices[1].size(); ++i) {
      const Event& was = rich.devices[1][i];
      const Event& is = again->devices[1][i];
      EXPECT_EQ(is.address, was.address) << i;
      EXPECT_EQ(is.size, was.size) << i;
      EXPECT_EQ(is.stream, was.stream) << i;
      EXPECT_EQ(is.time_us, was.time_us) << i;
      EXPECT_EQ(again->tags[is.tag], rich.tags[was.tag]) << i;
      ASSERT_EQ(again->stacks[is.stack].size(), rich.stacks[was.stack].size()) << i;
      for (std::size_t k = 0; k < rich.stacks[was.stack].size(); ++k) {
        EXPECT_EQ(again->frames[again->stacks[is.stack][k]],
                  rich.frames[rich.stacks[was.stack][k]]);
      }
    }
    // Read and written once more, it is the same model.
    const auto third = ReadSnapshot(*WriteSnapshot(*again, format));
    ASSERT_TRUE(third.ok());
    EXPECT_EQ(*third, *again);
  }
}

TEST_F(SnapshotFileTest, TextThatIsNotUtf8IsMended) {
  Snapshot snapshot;
  SnapshotInterner interner(snapshot);
  snapshot.devices = {{{.tag = interner.Tag("a\xff\xc3(\xed\xa0\x80\xf8z\xe2\x82")}}};
  const std::string bad = "\xef\xbf\xbd";
  for (const SnapshotFormat format : {SnapshotFormat::kJson, SnapshotFormat::kPickle}) {
    const auto again = ReadSnapshot(*WriteSnapshot(snapshot, format));
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(again->tags.at(1), "a" + bad + bad + "(" + bad + bad + bad + bad + "z" + bad + bad);
  }
}

TEST_F(SnapshotFileTest, NumbersThatJsonHasNotAreLeftOut) {
  Snapshot snapshot;
  snapshot.settings = {{"inf", std::numeric_limits<double>::infinity()}, {"nan", std::nan("")}};
  const auto json = ReadSnapshot(*WriteSnapshot(snapshot, SnapshotFormat::kJson));
  ASSERT_TRUE(json.ok()) << json.status().ToString();
  EXPECT_TRUE(json->settings.empty());
  const auto pickle = ReadSnapshot(*WriteSnapshot(snapshot, SnapshotFormat::kPickle));
  ASSERT_TRUE(pickle.ok()) << pickle.status().ToString();
  EXPECT_EQ(pickle->settings.at(0), snapshot.settings[0]);
}

TEST_F(SnapshotFileTest, ASnapshotThatBreaksItsPromisesIsNotWritten) {
  const std::string path = Write("old");
  Snapshot snapshot = Rich();
  snapshot.segments[0].blocks.pop_back();
  const Status status = WriteSnapshotFile(path, snapshot, SnapshotFormat::kJson);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr(path), HasSubstr("do not tile")));
  EXPECT_EQ(Contents(path), "old");
  EXPECT_EQ(FileCount(), 1u);
  EXPECT_FALSE(WriteSnapshot(snapshot, SnapshotFormat::kPickle).ok());
}

TEST_F(SnapshotFileTest, TheFormatIsSeenInTheContents) {
  const std::string json = AsJson(Rich());
  const std::string csv = "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:01,allocate,0x1,7,0\n";
  EXPECT_EQ(ErrorOf(json), "OK");
  EXPECT_EQ(ErrorOf(" \r\n" + json), "OK");
  EXPECT_EQ(ErrorOf("\xef\xbb\xbf" + json), "OK");
  EXPECT_EQ(ErrorOf(Gzip(json)), "OK");
  EXPECT_EQ(ErrorOf(Gzip(*WriteSnapshot(Rich(), SnapshotFormat::kPickle))), "OK");
  EXPECT_EQ(ErrorOf(csv), "OK");
  EXPECT_EQ(ErrorOf(Gzip(csv)), "OK");
  // Protocols 0 and 1 have no mark at their start.
  EXPECT_EQ(ErrorOf("(dVsegments\n(lsVdevice_traces\n(ls."), "OK");
  EXPECT_EQ(ErrorOf("}(Vsegments\n]Vdevice_traces\n]u."), "OK");
}

TEST_F(SnapshotFileTest, ErrorsNameTheFileTheFormatAndThePlace) {
  const auto starts = [&](std::string_view rest) {
    return HasSubstr("INVALID_ARGUMENT: reading '" + PathOf("file") + "': " + std::string(rest));
  };
  EXPECT_THAT(ErrorOf(""), starts("byte 0: neither PyTorch's snapshot"));
  EXPECT_THAT(ErrorOf("hello, world"), starts("byte 0: neither"));
  const std::string pickle = *WriteSnapshot(Rich(), SnapshotFormat::kPickle);
  EXPECT_THAT(ErrorOf(pickle.substr(0, pickle.size() / 2)),
              starts("as PyTorch's pickle: pickle, byte "));
  EXPECT_THAT(ErrorOf("\x80\x04N."), starts("as PyTorch's pickle: this is no memory snapshot"));
  EXPECT_THAT(ErrorOf("\x80\x04"
                      "cos\nsystem\n."),
              starts("as PyTorch's pickle: pickle, byte 2: GLOBAL"));
  const std::string json = AsJson(Rich());
  EXPECT_THAT(ErrorOf(json.substr(0, 1000)), starts("as PyTorch's JSON: JSON, near byte 1000: "));
  EXPECT_THAT(ErrorOf("{}"), starts("as PyTorch's JSON: this is no memory snapshot"));
  EXPECT_THAT(ErrorOf("Action,Pointer,Size\nallocate,0x1"),
              starts("as RMM's log: RMM log, line 2, byte 20: "));
  EXPECT_THAT(ErrorOf(Gzip(json).substr(0, 100)), starts("the gzip data is broken or cut near"));
  const auto missing = ReadSnapshotFile(PathOf("absent"));
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
}

TEST_F(SnapshotFileTest, TheLimitHoldsForEveryPart) {
  const std::string json = AsJson(Rich());
  const std::string pickle = *WriteSnapshot(Rich(), SnapshotFormat::kPickle);
  EXPECT_THAT(ErrorOf(json, Bytes(json.size() - 1)), HasSubstr("is larger than"));
  EXPECT_THAT(ErrorOf(Gzip(json), Bytes(json.size() - 1)), HasSubstr("it unpacks to more than"));
  // Two thousand events in a few kilobytes take more than these.
  EXPECT_THAT(ErrorOf(pickle, Bytes(pickle.size())),
              AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("pickle, byte"),
                    HasSubstr("values take more than")));
  std::string list = "{\"segments\": [], \"device_traces\": [[";
  for (int i = 0; i < 1000; ++i) list += "[],";
  EXPECT_THAT(ErrorOf(list, Bytes(list.size())),
              AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("JSON, near byte")));
}

TEST_F(SnapshotFileTest, ARealHistorySurvivesBothFormats) {
  if (!kReadsXz) GTEST_SKIP() << "built without liblzma";
  const auto snapshot = ReadSnapshotFile(kSample);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  EXPECT_EQ(snapshot->event_count(), 46485u);
  EXPECT_EQ(snapshot->segments.size(), 147u);
  EXPECT_EQ(Configuration(*snapshot), "");
  for (const SnapshotFormat format : {SnapshotFormat::kJson, SnapshotFormat::kPickle}) {
    const auto again = ReadSnapshot(*WriteSnapshot(*snapshot, format));
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_TRUE(*again == *snapshot);
  }
}

}  // namespace
}  // namespace keel::trace
