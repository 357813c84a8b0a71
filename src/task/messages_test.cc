#include "task/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "hal/sim_devices_test.h"

namespace keel::task {
namespace {

using hal::IsOk;
using hal::Need;

TaskMessage SomeTask() {
  const std::array<std::uint32_t, 2> shape{3, 5};
  TaskMessage message{.number = 9, .callable = 4};
  message.deadline = Deadline::At(Deadline::Clock::time_point(std::chrono::nanoseconds(12345)));
  message.arguments.Add(Tag::kIn, Tensor::Host(&shape, DataType::kUInt8, shape))
      .Add(Tag::kOut, Tensor::Resident(DeviceAddress(4096), DataType::kFloat32, shape))
      .AddScalar(1.5F);
  return message;
}

TEST(MessagesTest, ATaskComesBackAsItWas) {
  const TaskMessage sent = SomeTask();
  const TaskMessage got = Need(DecodeTask(Encode(sent)));
  EXPECT_EQ(got.number, 9U);
  EXPECT_EQ(got.callable, 4U);
  EXPECT_EQ(got.deadline.when(), sent.deadline.when());
  EXPECT_EQ(got.arguments, sent.arguments);
}

TEST(MessagesTest, ATaskWithoutArgumentsHasNoBytesOfThem) {
  const Deadline soon = Deadline::At(Deadline::Clock::time_point(std::chrono::seconds(5)));
  std::vector<std::byte> bytes = Encode(TaskMessage{.number = 9, .callable = 4, .deadline = soon});
  EXPECT_LT(bytes.size(), Encode(SomeTask()).size());
  EXPECT_TRUE(Need(DecodeTask(bytes)).arguments.empty());
  TaskView view;
  ASSERT_TRUE(IsOk(ViewTask(bytes, view)));
  EXPECT_TRUE(ArgumentsView(view.arguments.data()).empty());
  EXPECT_EQ(view.deadline.when(), soon.when());
  // A block that says so is not the same message.
  const std::vector<std::byte> none = Arguments().Encode();
  bytes.insert(bytes.end(), none.begin(), none.end());
  EXPECT_EQ(DecodeTask(bytes).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ViewTask(bytes, view).code(), StatusCode::kInvalidArgument);
}

TEST(MessagesTest, APlainTaskIsTwoWords) {
  std::vector<std::byte> bytes = Encode(TaskMessage{.number = 9, .callable = 4});
  ASSERT_EQ(bytes.size(), sizeof(PlainTaskWords));
  EXPECT_EQ(std::memcmp(bytes.data(), PlainTask(9, 4).data(), bytes.size()), 0);
  const TaskMessage got = Need(DecodeTask(bytes));
  TaskView view;
  ASSERT_TRUE(IsOk(ViewTask(bytes, view)));
  EXPECT_EQ(got.number, 9U);
  EXPECT_EQ(view.number, 9U);
  EXPECT_EQ(got.callable, 4U);
  EXPECT_EQ(view.callable, 4U);
  EXPECT_TRUE(got.deadline.never());
  EXPECT_TRUE(view.deadline.never());
  EXPECT_TRUE(got.arguments.empty());
  EXPECT_TRUE(ArgumentsView(view.arguments.data()).empty());
  // A longer message that says the same is none.
  bytes = Encode(TaskMessage{
      .number = 9, .callable = 4, .deadline = Deadline::At(Deadline::Clock::time_point{})});
  const std::int64_t never = ToNumber(Deadline::Never());
  std::memcpy(bytes.data() + bytes.size() - sizeof(never), &never, sizeof(never));
  EXPECT_EQ(DecodeTask(bytes).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ViewTask(bytes, view).code(), StatusCode::kInvalidArgument);
}

TEST(MessagesTest, ATaskIsSeenWhereItLies) {
  const TaskMessage sent = SomeTask();
  std::vector<std::byte> bytes = Encode(sent);
  TaskView view;
  ASSERT_TRUE(IsOk(ViewTask(bytes, view)));
  EXPECT_EQ(view.number, 9U);
  EXPECT_EQ(view.callable, 4U);
  EXPECT_EQ(view.deadline.when(), sent.deadline.when());
  ASSERT_EQ(Need(Arguments::Decode(view.arguments)), sent.arguments);
  ArgumentsView::SetAddress(view.arguments.data(), 1, 0x12345678);
  Arguments moved = sent.arguments;
  moved.tensors()[1].address = 0x12345678;
  EXPECT_EQ(Need(DecodeTask(bytes)).arguments, moved);
}

TEST(MessagesTest, EveryRequestComesBackAsItWas) {
  for (std::uint32_t kind = 1; kind <= kLastRequestKind; ++kind) {
    const Request sent{
        .kind = static_cast<RequestKind>(kind), .number = 7, .address = 1, .place = 2, .size = 3};
    const Request got = Need(DecodeRequest(Encode(sent)));
    EXPECT_EQ(got.kind, sent.kind);
    EXPECT_EQ(got.number, 7U);
    EXPECT_TRUE(got.deadline.never());
    EXPECT_EQ(got.address, 1U);
    EXPECT_EQ(got.place, 2U);
    EXPECT_EQ(got.size, 3U);
  }
}

TEST(MessagesTest, AnErrorKeepsItsCodeItsTextAndTheVendors) {
  Reply sent{.number = 3, .status = DeviceLost("gone").WithVendor(-7, "SIM_GONE"), .value = 5};
  sent.stats.uploads = 2;
  const Reply got = Need(DecodeReply(Encode(sent)));
  EXPECT_EQ(got.number, 3U);
  EXPECT_EQ(got.status.ToString(), sent.status.ToString());
  EXPECT_EQ(got.value, 5U);
  EXPECT_EQ(got.stats.uploads, 2U);
}

TEST(MessagesTest, WhatIsDoneIsShortAndNothingElseIs) {
  const std::vector<std::byte> done = Encode(Reply{.number = 3});
  EXPECT_EQ(done.size(), 16U);
  const Reply got = Need(DecodeReply(done));
  EXPECT_EQ(got.number, 3U);
  EXPECT_TRUE(got.status.ok());
  Reply reply{.number = 3, .value = 1};
  EXPECT_EQ(Need(DecodeReply(Encode(reply))).value, 1U);
  reply = {.number = 3, .stats = {.callables = 1}};
  EXPECT_EQ(Need(DecodeReply(Encode(reply))).stats.callables, 1U);

  // The same in the long form: there is one way to say it.
  std::vector<std::byte> longer = Encode(reply);
  std::fill(longer.begin() + 16, longer.end(), std::byte{0});
  EXPECT_EQ(DecodeReply(longer).status().code(), StatusCode::kInvalidArgument);
  std::vector<std::byte> damaged = done;
  damaged[4] = std::byte{1};
  EXPECT_EQ(DecodeReply(damaged).status().code(), StatusCode::kInvalidArgument);
}

TEST(MessagesTest, AGreetingNamesTheDeviceAndNothingElseDoes) {
  Reply sent{.number = 0, .value = kProtocolVersion, .device = "sim:3"};
  const Reply got = Need(DecodeReply(Encode(sent)));
  EXPECT_TRUE(got.status.ok());
  EXPECT_EQ(got.value, kProtocolVersion);
  EXPECT_EQ(got.device, "sim:3");
  sent.number = 1;
  EXPECT_EQ(DecodeReply(Encode(sent)).status().code(), StatusCode::kInvalidArgument);
  sent = {.number = 0, .status = Internal("not opened"), .device = "sim:3"};
  EXPECT_EQ(Need(DecodeReply(Encode(sent))).device, "");
}

TEST(MessagesTest, ALongErrorIsCut) {
  const std::vector<std::byte> bytes = Encode(
      Reply{.status = Internal(std::string(10'000, 'x')).WithVendor(1, std::string(500, 'y'))});
  EXPECT_LE(bytes.size(), kLargestReply);
  EXPECT_EQ(Need(DecodeReply(bytes)).status.message(), std::string(kMaxErrorText, 'x'));
}

TEST(MessagesTest, ALongErrorIsCutBetweenCharacters) {
  const auto cut = [](const std::string& text) {
    return std::string(Need(DecodeReply(Encode(Reply{.status = Internal(text)}))).status.message());
  };
  // Characters of two, three and four bytes, none of which ends where the text is cut.
  for (const std::string& character :
       {std::string("\u00fc"), std::string("\u20ac"), std::string("\U0001f600")}) {
    std::string text(kMaxErrorText - character.size() + 1, 'x');
    const std::string before = text;
    for (int i = 0; i < 10; ++i) text += character;
    EXPECT_EQ(cut(text), before);
  }
  // What is no text is cut all the same.
  EXPECT_EQ(cut(std::string(3000, '\x80')), std::string(kMaxErrorText, '\x80'));
}

TEST(MessagesTest, TheLargestTaskHasAKnownSize) {
  const std::array<std::uint32_t, 1> shape{1};
  TaskMessage message;
  for (std::size_t i = 0; i < Arguments::kMaxTensors; ++i) {
    message.arguments.Add(Tag::kIn, Tensor::Resident(DeviceAddress(4096), DataType::kUInt8, shape));
  }
  for (std::size_t i = 0; i < Arguments::kMaxScalars; ++i) message.arguments.AddScalar(i);
  EXPECT_LE(Encode(message).size(), LargestTaskMessage());
}

}  // namespace
}  // namespace keel::task
