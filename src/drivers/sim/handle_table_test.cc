#include "drivers/sim/handle_table.h"

#include <gtest/gtest.h>

#include <memory>

namespace keel::sim {
namespace {

TEST(HandleTableTest, AHandleThatWasGivenBackIsNotFoundAgain) {
  HandleTable<int, HandleKind::kStream> table;
  const std::uint64_t first = table.Insert(std::make_shared<int>(1));
  ASSERT_NE(table.Find(first), nullptr);
  EXPECT_EQ(*table.Remove(first), 1);
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_EQ(table.Remove(first), nullptr);
  const std::uint64_t second = table.Insert(std::make_shared<int>(2));
  EXPECT_NE(second, first) << "the index is used again, the handle must not be";
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_EQ(*table.Find(second), 2);
}

TEST(HandleTableTest, AHandleOfAnotherKindIsNotFound) {
  HandleTable<int, HandleKind::kStream> streams;
  HandleTable<int, HandleKind::kEvent> events;
  const std::uint64_t stream = streams.Insert(std::make_shared<int>(1));
  events.Insert(std::make_shared<int>(1));
  EXPECT_EQ(events.Find(stream), nullptr);
  EXPECT_EQ(events.Find(0), nullptr);
  EXPECT_EQ(events.Find(~std::uint64_t{0}), nullptr);
}

TEST(HandleTableTest, RemoveIfInvalidatesWhatItRemoves) {
  HandleTable<int, HandleKind::kGraph> table;
  const std::uint64_t one = table.Insert(std::make_shared<int>(1));
  const std::uint64_t two = table.Insert(std::make_shared<int>(2));
  EXPECT_EQ(table.RemoveIf([](int value) { return value == 1; }).size(), 1u);
  EXPECT_EQ(table.Find(one), nullptr);
  EXPECT_NE(table.Find(two), nullptr);
}

}  // namespace
}  // namespace keel::sim
