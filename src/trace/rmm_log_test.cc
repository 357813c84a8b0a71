#include "trace/rmm_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace keel::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHeader = "Thread,Time,Action,Pointer,Size,Stream\n";

std::vector<Event> EventsOf(std::string_view text) {
  const auto snapshot = ReadRmmLog(text, 1_GiB);
  EXPECT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  if (!snapshot.ok()) return {};
  EXPECT_EQ(snapshot->devices.size(), 1u);
  return snapshot->devices.at(0);
}

std::string ErrorOf(std::string_view rows, Bytes limit = 1_GiB) {
  const auto snapshot = ReadRmmLog(std::string(kHeader) + std::string(rows), limit);
  return snapshot.ok() ? "OK" : snapshot.status().ToString();
}

Event Expected(Action action, std::uint64_t address, std::uint64_t size, std::uint64_t stream,
               std::int64_t time_us) {
  return {.address = address, .size = size, .stream = stream, .time_us = time_us, .action = action};
}

constexpr std::int64_t Time(std::int64_t hours, std::int64_t minutes, std::int64_t seconds,
                            std::int64_t microseconds) {
  return ((hours * 60 + minutes) * 60 + seconds) * 1'000'000 + microseconds;
}

TEST(RmmLogTest, EventsAreRead) {
  const std::int64_t at = Time(15, 47, 2, 841961);
  EXPECT_THAT(EventsOf(std::string(kHeader) +
                       "2342727,15:47:02.841961,allocate,0x10012400000,1048576,0\n"
                       "2342727,15:47:02.841977,free,0x10012400000,1048576,0x2\n"
                       "1,15:47:03.000000,allocate failure,(nil),4000000000000,0x7f8a38001020\n"),
              ElementsAre(Expected(Action::kAlloc, 0x10012400000, 1048576, 0, at),
                          Expected(Action::kFreeRequested, 0x10012400000, 1048576, 2, at + 16),
                          Expected(Action::kFreeCompleted, 0x10012400000, 1048576, 2, at + 16),
                          Expected(Action::kOutOfMemory, 0, 4000000000000, 0x7f8a38001020,
                                   Time(15, 47, 3, 0))));
}

TEST(RmmLogTest, AllFormsOfALineAreRead) {
  const Event event = Expected(Action::kAlloc, 0x7f00aa, 256, 2, Time(1, 2, 3, 4));
  for (const std::string_view line :
       {"1,01:02:03.000004,allocate,0x7f00aa,256,0x2", "1,01:02:03:000004,allocate,7f00aa,256,2",
        "\"1\",\"01:02:03.000004\",\"allocate\",\"0x7f00aa\",\"256\",\"0x2\"\r",
        " 1 , 01:02:03.0000049 , allocate , 0X7f00aa , 256 , 2 ",
        "1,3723.000004,allocate,0x7f00aa,256,2"}) {
    EXPECT_THAT(EventsOf(std::string(kHeader) + std::string(line) + "\n\n"), ElementsAre(event))
        << line;
    EXPECT_THAT(EventsOf(line), ElementsAre(event)) << "without a header: " << line;
  }
  EXPECT_THAT(EventsOf("\xef\xbb\xbf\"Size\",\"Pointer\",\"Action\"\r\n1,0x1,allocate\r\n"),
              ElementsAre(Expected(Action::kAlloc, 1, 1, 0, 0)));
  EXPECT_THAT(EventsOf(kHeader), ElementsAre());
}

TEST(RmmLogTest, FractionsOfASecondAreNotCounts) {
  EXPECT_EQ(EventsOf("1,00:00:01.5,allocate,0x1,1,0").at(0).time_us, 1'500'000);
  EXPECT_EQ(EventsOf("1,00:00:01,allocate,0x1,1,0").at(0).time_us, 1'000'000);
  EXPECT_EQ(EventsOf("1,1634567890.123456,allocate,0x1,1,0").at(0).time_us, 1634567890123456);
}

TEST(RmmLogTest, TimeGoesOnAfterMidnight) {
  const std::vector<Event> events = EventsOf(
      "1,23:59:59.000002,allocate,0x1,1,0\n1,23:59:59.000001,allocate,0x2,1,0\n"
      "1,00:00:00.000003,allocate,0x3,1,0\n2,23:59:59.000004,allocate,0x4,1,0\n"
      "1,00:00:01.000005,allocate,0x5,1,0\n");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[1].time_us, events[0].time_us - 1);
  EXPECT_EQ(events[2].time_us, Time(24, 0, 0, 3));
  // Two days have passed, as far as the log can tell.
  EXPECT_EQ(events[3].time_us, Time(47, 59, 59, 4));
  EXPECT_EQ(events[4].time_us, Time(48, 0, 1, 5));
}

TEST(RmmLogTest, AllocationsOfNothingArePassedOver) {
  EXPECT_THAT(EventsOf("1,00:00:01,allocate,(nil),0,0\n1,00:00:02,free,0x0,0,0\n"), ElementsAre());
}

TEST(RmmLogTest, ALogMayStartAgain) {
  const std::string row = "1,00:00:01,allocate,0x1,1,0\n";
  EXPECT_EQ(EventsOf(std::string(kHeader) + row + std::string(kHeader) + row).size(), 2u);
}

TEST(RmmLogTest, WhatIsWrongIsNamedWithItsPlace) {
  const std::string good = "1,00:00:01,allocate,0x1,1,0\n";
  EXPECT_THAT(ErrorOf(good + "1,00:00:01,allo"),
              HasSubstr("INVALID_ARGUMENT: RMM log, line 3, byte 67: 3 fields, and 'Stream' is "
                        "number 6: the line is cut"));
  EXPECT_THAT(ErrorOf("1,00:00:01,resize,0x1,1,0"), HasSubstr("action is not known: 'resize'"));
  EXPECT_THAT(ErrorOf("1,00:00:01,free,elsewhere,1,0"), HasSubstr("no address: 'elsewhere'"));
  EXPECT_THAT(ErrorOf("1,00:00:01,free,0x11112222333344445,1,0"), HasSubstr("no address"));
  EXPECT_THAT(ErrorOf("1,00:00:01,free,0x1,-1,0"), HasSubstr("size is no number: '-1'"));
  EXPECT_THAT(ErrorOf("1,00:00:01,free,0x1,1,main"), HasSubstr("stream is no number: 'main'"));
  for (const std::string_view time :
       {"noon", "1:2", "00:00:01.", "00:00:01.x", "00:00:-1", "00:100:01", "00.00.01",
        "99999999999999999999", "9223372036854775807", "1:2:3:4:5"}) {
    EXPECT_THAT(ErrorOf("1," + std::string(time) + ",free,0x1,1,0"), HasSubstr("time is not known"))
        << time;
  }
  EXPECT_THAT(ErrorOf(good, Bytes(10)), HasSubstr("OUT_OF_RANGE: RMM log, line 2, byte 39"));
}

TEST(RmmLogTest, ALogIsRecognised) {
  EXPECT_TRUE(LooksLikeRmmLog(kHeader));
  EXPECT_TRUE(LooksLikeRmmLog("\n1,00:00:01,free,0x1,1,0\n"));
  EXPECT_TRUE(LooksLikeRmmLog("\"Thread\",\"Time\",\"Action\",\"Pointer\",\"Size\",\"Stream\""));
  EXPECT_FALSE(LooksLikeRmmLog(""));
  EXPECT_FALSE(LooksLikeRmmLog("name,age,city,street,number,floor\n"));
  EXPECT_FALSE(LooksLikeRmmLog("{\"segments\": []}"));
}

}  // namespace
}  // namespace keel::trace
