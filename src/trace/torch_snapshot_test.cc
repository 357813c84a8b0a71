#include "trace/torch_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/json.h"
#include "trace/pickle.h"

namespace keel::trace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Snapshot> Read(std::string_view json, Bytes limit = 1_GiB) {
  KEEL_ASSIGN(const Document document, ParseJson(json, 1_GiB));
  return ReadTorchSnapshot(document, limit);
}

std::string ErrorOf(std::string_view json, Bytes limit = 1_GiB) {
  const auto snapshot = Read(json, limit);
  return snapshot.ok() ? "OK" : snapshot.status().ToString();
}

std::string Events(std::string_view events) {
  return R"({"segments": [], "device_traces": [[)" + std::string(events) + "]]}";
}
std::string Segments(std::string_view segments) {
  return R"({"device_traces": [], "segments": [)" + std::string(segments) + "]}";
}
std::string Blocks(std::string_view blocks) {
  return Segments(R"({"device": 0, "address": 4096, "total_size": 300, "stream": 0, "blocks": [)" +
                  std::string(blocks) + "]}");
}

TEST(TorchSnapshotTest, EventsAreRead) {
  const auto snapshot = Read(Events(R"(
      {"action": "alloc", "addr": 18446744073709551615, "size": 100, "stream": 5, "time_us": 7,
       "compile_context": "N/A", "user_metadata": "weights",
       "frames": [{"name": "f", "filename": "a.py", "line": 3},
                  {"name": "g", "filename": "b.cc", "line": 4}]},
      {"action": "something_new"},
      {"action": "free_requested", "addr": 4096, "size": 100, "stream": 5, "user_metadata": "",
       "frames": []},
      {"action": "free_completed", "addr": 4096, "size": 100, "stream": 5,
       "frames": [{"name": "g", "filename": "b.cc", "line": 4}]},
      {"action": "oom", "device_free": 9, "size": 1000, "stream": 3, "time_us": -8},
      {"action": "snapshot", "time_us": 9},
      {"action": "alloc", "addr": 1, "size": 1, "stream": 0, "user_metadata": "weights",
       "frames": [{"name": "f", "filename": "a.py", "line": 3},
                  {"name": "g", "filename": "b.cc", "line": 4}]})"));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  ASSERT_EQ(snapshot->devices.size(), 1u);
  EXPECT_THAT(
      snapshot->devices[0],
      ElementsAre(
          Event{.address = UINT64_MAX,
                .size = 100,
                .stream = 5,
                .time_us = 7,
                .stack = 1,
                .tag = 1,
                .action = Action::kAlloc},
          Event{.address = 4096, .size = 100, .stream = 5, .action = Action::kFreeRequested},
          Event{.address = 4096,
                .size = 100,
                .stream = 5,
                .stack = 2,
                .action = Action::kFreeCompleted},
          Event{.address = 9,
                .size = 1000,
                .stream = 3,
                .time_us = -8,
                .action = Action::kOutOfMemory},
          Event{.time_us = 9, .action = Action::kSnapshot},
          Event{.address = 1, .size = 1, .stack = 1, .tag = 1, .action = Action::kAlloc}));
  EXPECT_THAT(snapshot->tags, ElementsAre("", "weights"));
  EXPECT_THAT(snapshot->frames, ElementsAre(Frame{"f", "a.py", 3}, Frame{"g", "b.cc", 4}));
  EXPECT_THAT(snapshot->stacks, ElementsAre(ElementsAre(), ElementsAre(0, 1), ElementsAre(1)));
}

TEST(TorchSnapshotTest, SegmentsAndBlocksAreRead) {
  const auto snapshot = Read(Segments(R"(
      {"device": 3, "address": 4096, "total_size": 300, "allocated_size": 100, "active_size": 200,
       "requested_size": 150, "stream": 1, "segment_type": "small", "segment_pool_id": [2, 7],
       "is_expandable": true, "frames": [{"name": "f", "filename": "a.py", "line": 3}],
       "blocks": [{"address": 4096, "size": 100, "requested_size": 90, "state": "active_allocated",
                   "frames": [{"name": "f", "filename": "a.py", "line": 3}],
                   "user_metadata": "weights"},
                  {"address": 4196, "size": 100, "requested_size": 60,
                   "state": "active_pending_free", "frames": []},
                  {"size": 100, "state": "inactive"}]},
      {"device": 0, "address": 0, "total_size": 0, "stream": 0})"));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  const Segment first = {
      .device = 3,
      .address = 4096,
      .total_size = 300,
      .allocated_size = 100,
      .active_size = 200,
      .requested_size = 150,
      .stream = 1,
      .pool = {.owner = 2, .number = 7},
      .stack = 1,
      .is_small = true,
      .is_expandable = true,
      .blocks = {
          {.address = 4096,
           .size = 100,
           .requested_size = 90,
           .state = BlockState::kAllocated,
           .stack = 1,
           .tag = 1},
          {.address = 4196, .size = 100, .requested_size = 60, .state = BlockState::kPendingFree},
          // What early versions leave out follows from the rest.
          {.address = 4296, .size = 100, .requested_size = 100, .state = BlockState::kInactive}}};
  EXPECT_THAT(snapshot->segments, ElementsAre(first, Segment{}));
}

TEST(TorchSnapshotTest, SettingsAndAnnotationsAreRead) {
  const auto snapshot = Read(R"({"device_traces": [], "segments": [],
      "allocator_settings": {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "n": -1,
                             "x": 0.5, "on": true, "inner": {"16": 2}, "nothing": null},
      "external_annotations": [{"stage": "START", "name": "step", "device": 2, "time_us": 7},
                               {"stage": "END", "name": "step", "device": 2, "time_us": 9}]})");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  EXPECT_EQ(Configuration(*snapshot), "expandable_segments:True");
  EXPECT_THAT(snapshot->settings,
              ElementsAre(Setting{"PYTORCH_ALLOC_CONF", "expandable_segments:True"},
                          Setting{"n", std::int64_t{-1}}, Setting{"x", 0.5}, Setting{"on", true},
                          Setting{"inner", std::vector<Setting>{{"16", std::int64_t{2}}}}));
  EXPECT_THAT(snapshot->annotations,
              ElementsAre(Annotation{"step", true, 2, 7}, Annotation{"step", false, 2, 9}));
}

TEST(TorchSnapshotTest, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_THAT(ErrorOf("1"), HasSubstr("no memory snapshot: it has no 'device_traces'"));
  EXPECT_THAT(ErrorOf(R"({"device_traces": 1})"), HasSubstr("'device_traces' is not a list"));
  EXPECT_THAT(ErrorOf(R"({"device_traces": []})"), HasSubstr("no 'segments'"));
  EXPECT_THAT(ErrorOf(R"({"device_traces": [null], "segments": []})"),
              HasSubstr("device_traces[0] is not a list"));
  EXPECT_THAT(ErrorOf(Events("null")), HasSubstr("device_traces[0][0] is not a dict"));
  const std::string good = R"({"action": "alloc", "addr": 4096, "size": 100, "stream": 0})";
  EXPECT_EQ(ErrorOf(Events(good)), "OK");
  // The place of the entry in the text: what Events writes before it, the first one and a comma.
  EXPECT_THAT(ErrorOf(Events(good + R"(,{"action": "alloc", "addr": 1, "stream": 0})")),
              HasSubstr("INVALID_ARGUMENT: device_traces[0][1] (byte " +
                        std::to_string(36 + good.size() + 1) + ") is wrong: 'size' is missing"));
  EXPECT_THAT(ErrorOf(Events(R"({"action": "alloc", "addr": 1, "size": "big"})")),
              HasSubstr("'size' is not an integer"));
  EXPECT_THAT(ErrorOf(Events(R"({"action": "alloc", "addr": -1, "size": 1})")),
              HasSubstr("'addr' is negative: -1"));
  EXPECT_THAT(ErrorOf(Events(R"({"action": 1})")), HasSubstr("'action' is not a string"));
  EXPECT_THAT(ErrorOf(Events(R"({"action": "snapshot", "time_us": 1.5})")),
              HasSubstr("'time_us' is not an integer"));
  EXPECT_THAT(ErrorOf(Events(R"({"action": "snapshot", "frames": 1})")),
              HasSubstr("device_traces[0][0].frames is not a list"));
  EXPECT_THAT(ErrorOf(Events(R"({"action": "snapshot", "frames": [{}, 1]})")),
              HasSubstr("device_traces[0][0].frames[1] is not a dict"));
  EXPECT_THAT(ErrorOf(Segments(R"({"device": 5000})")),
              AllOf(HasSubstr("segments[0] (byte"), HasSubstr("'device' is out of range: 5000")));
  EXPECT_THAT(ErrorOf(Segments(R"({"device": 0, "address": 1, "total_size": 1, "stream": 1,
                                   "segment_pool_id": [1, 2, 3]})")),
              HasSubstr("'segment_pool_id' is not a pair"));
  EXPECT_THAT(ErrorOf(Blocks(R"({"size": 300, "state": "lost"})")),
              AllOf(HasSubstr("segments[0].blocks[0] (byte"), HasSubstr("not known: 'lost'")));
  EXPECT_THAT(ErrorOf(R"({"device_traces": [], "segments": [], "external_annotations":
                          [{"name": "x", "stage": "MIDDLE"}]})"),
              HasSubstr("external_annotations[0]"));
  std::string many = R"({"device_traces": [)";
  for (int i = 0; i < 1025; ++i) many += i == 0 ? "[]" : ",[]";
  EXPECT_THAT(ErrorOf(many + R"(], "segments": []})"), HasSubstr("1025 devices"));
  std::string wide = R"({"action": "snapshot")";
  for (int i = 0; i < 64; ++i) wide += ", \"" + std::to_string(i) + "\": 0";
  EXPECT_THAT(ErrorOf(Events(wide + "}")), HasSubstr("has 65 fields"));
}

TEST(TorchSnapshotTest, MemoryIsBounded) {
  const std::string good = R"({"action": "alloc", "addr": 4096, "size": 100, "stream": 0})";
  const std::string three = Events(good + "," + good + "," + good);
  EXPECT_EQ(ErrorOf(three, Bytes(3 * sizeof(Event))), "OK");
  EXPECT_THAT(ErrorOf(three, Bytes(3 * sizeof(Event) - 1)),
              HasSubstr("OUT_OF_RANGE: device_traces[0]: the snapshot takes more than"));
  const std::string name(1000, 'x');
  EXPECT_THAT(ErrorOf(Events(R"({"action": "snapshot", "user_metadata": ")" + name + "\"}"), 900_B),
              HasSubstr("OUT_OF_RANGE"));
  EXPECT_THAT(
      ErrorOf(Events(R"({"action": "snapshot", "frames": [{"name": ")" + name + "\"}]}"), 900_B),
      HasSubstr("OUT_OF_RANGE"));
  EXPECT_THAT(ErrorOf(Blocks(R"({"size": 300, "state": "inactive"})"), 50_B),
              HasSubstr("OUT_OF_RANGE"));
}

Result<Snapshot> ReadPickle(std::string pickle, Bytes limit) {
  KEEL_ASSIGN(const Document document, ParsePickle(std::move(pickle), 1_GiB));
  return ReadTorchSnapshot(document, limit);
}

// A pickle says "that list again" in two bytes. One list of 1000 events, 1000 times.
TEST(TorchSnapshotTest, OneListManyTimesIsCountedEveryTime) {
  const auto text = [](std::string_view value) {
    return "\x8c" + std::string(1, static_cast<char>(value.size())) + std::string(value);
  };
  std::string pickle = "}" + text("segments") + "]s" + text("device_traces") + "](](}" +
                       text("action") + text("snapshot") + "s\x94";
  for (int i = 1; i < 1000; ++i) pickle += std::string("h\0", 2);
  pickle += "e\x94";
  for (int i = 1; i < 1000; ++i) pickle += "h\x01";
  pickle += "es.";
  const auto all = ReadPickle(pickle, 1_GiB);
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_EQ(all->event_count(), 1'000'000u);
  EXPECT_EQ(ReadPickle(pickle, 10_MiB).status().code(), StatusCode::kOutOfRange);
}

// Settings are a tree of any depth, and a dict may contain itself: a few bytes are endless then.
TEST(TorchSnapshotTest, ADictThatContainsItselfEnds) {
  const auto text = [](std::string_view value) {
    return "\x8c" + std::string(1, static_cast<char>(value.size())) + std::string(value);
  };
  std::string pickle = "}" + text("segments") + "]s" + text("device_traces") + "]s" +
                       text("allocator_settings") + "}\x94";
  for (char name = 'a'; name <= 'z'; ++name) {
    pickle += text(std::string(1, name)) + std::string("h\0s", 3);
  }
  pickle += "s.";
  EXPECT_TRUE(ReadPickle(pickle, 1_GiB).ok());
  EXPECT_EQ(ReadPickle(pickle, 1_MiB).status().code(), StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace keel::trace
