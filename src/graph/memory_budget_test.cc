#include "keel/graph/memory_budget.h"

#include <gmock/gmock.h>

#include <thread>

#include "base/forked_child_test.h"
#include "graph/graph_test.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

class MemoryBudgetTest : public GraphTest {
 protected:
  // 1 MiB of scratch in one slot, and what marks its steps.
  std::unique_ptr<Executable> Make(const std::string& name, std::shared_ptr<MemoryBudget> budget) {
    ProgramBuilder builder(name);
    const BindingId x = builder.Bind(
        {.name = "x", .size = 1_MiB, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    builder.Fill({x}, 1, 4);
    return Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                   {.slots = 1, .budget = std::move(budget)}));
  }
  static constexpr BindingId kX{0};
};

TEST_F(MemoryBudgetTest, G14_TakesFromWhoeverWasUsedLongestAgoAndFromNobodyElse) {
  const auto budget = std::make_shared<MemoryBudget>(3_MiB + 64_KiB);
  std::vector<std::unique_ptr<Executable>> all;
  all.reserve(4);
  for (const char* name : {"first", "second", "third", "fourth"}) {
    all.push_back(Make(name, budget));
  }
  const auto step = [&](int i) {
    ReplayReport report;
    EXPECT_TRUE(IsOk(RunStep(*all[static_cast<std::size_t>(i)], bench_.stream(), {}, &report)));
    return report;
  };
  const auto evictions = [&] {
    std::vector<std::uint64_t> counts;
    for (const auto& executable : all) counts.push_back(executable->stats().evictions);
    return counts;
  };
  for (const int i : {0, 1, 2, 0}) step(i);
  EXPECT_EQ(evictions(), (std::vector<std::uint64_t>{0, 0, 0, 0}));
  step(3);
  EXPECT_EQ(evictions(), (std::vector<std::uint64_t>{0, 1, 0, 0}));
  EXPECT_TRUE(step(0).actions().empty()) << "untouched";
  EXPECT_LE(budget->used(), budget->limit());
  const ReplayReport again = step(1);
  EXPECT_TRUE(Has(again, ActionKind::kRecorded, Reason::kEvicted));
  EXPECT_EQ(evictions(), (std::vector<std::uint64_t>{0, 1, 1, 0}));
  all.clear();
  EXPECT_EQ(budget->used(), 0_B);
}

TEST_F(MemoryBudgetTest, G14_WhatIsInUseIsNeverTaken) {
  const auto budget = std::make_shared<MemoryBudget>(1_MiB + 64_KiB);
  const auto mine = Make("mine", budget);
  const auto other = Make("other", budget);
  const auto expect_refused = [&] {
    const Status status = RunStep(*other, bench_.stream());
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(status.ToString(), HasSubstr("'other' needs 1 MiB for its slots"));
    EXPECT_THAT(status.ToString(), HasSubstr("by 'mine' are held, and in use"));
  };
  HeldOutput held;
  {
    const Lease leased = Need(mine->Acquire(bench_.stream(), Soon()));
    expect_refused();
  }
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  {
    Lease lease = Need(mine->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    held = Need(lease.Hold(kX));
  }
  expect_refused();
  ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
  ASSERT_TRUE(IsOk(mine->Synchronize(Soon())));
  expect_refused();  // the output
  ASSERT_TRUE(IsOk(held.Close()));
  ASSERT_TRUE(IsOk(bench_.inner()->SynchronizeStream(bench_.stream(), Soon())));
  EXPECT_TRUE(IsOk(RunStep(*other, bench_.stream())));
  EXPECT_EQ(mine->stats().evictions, 1u);
}

TEST_F(MemoryBudgetTest, WhatCanNeverFitIsSaidAtOnce) {
  const auto budget = std::make_shared<MemoryBudget>(512_KiB);
  const auto executable = Make("large", budget);
  const Status status = RunStep(*executable, bench_.stream());
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.ToString(), HasSubstr("'large' needs 1 MiB for its slots"));
  EXPECT_THAT(status.ToString(), HasSubstr("and the budget is 512 KiB"));
  EXPECT_EQ(budget->used(), 0_B);
}

// What a library uses is copied to begin with, so its place in the slot is counted once.
TEST_F(MemoryBudgetTest, NothingIsCountedTwice) {
  ProgramBuilder builder("library");
  const BindingId x = builder.Bind({.name = "x", .size = 1_MiB});
  builder.Traced("reads", {{x, hal::Access::kRead}},
                 [](const TraceContext&) { return OkStatus(); });
  const auto budget = std::make_shared<MemoryBudget>(8_MiB);
  const auto executable = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                                  {.slots = 2, .budget = budget}));
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {{x, bench_.Allocate(1_MiB)}})));
  EXPECT_GE(budget->used(), 2_MiB);
  EXPECT_LT(budget->used(), 3_MiB);
}

TEST_F(MemoryBudgetTest, ClosingAndFailingGiveBack) {
  const auto budget = std::make_shared<MemoryBudget>(8_MiB);
  const auto executable = Make("one", budget);
  EXPECT_EQ(budget->used(), 0_B);
  bench_.device().FailNth(Primitive::kLoadModule, 1, Internal("injected"));
  EXPECT_FALSE(IsOk(RunStep(*executable, bench_.stream())));
  EXPECT_EQ(budget->used(), 0_B);
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  EXPECT_GE(budget->used(), executable->stats().slot_bytes);
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  EXPECT_EQ(budget->used(), 0_B);
}

// Two that need the room in turn, at once.
TEST_F(MemoryBudgetTest, G14_ExecutablesThatTakeTurnsAllMakeProgress) {
  const auto budget = std::make_shared<MemoryBudget>(2_MiB + 64_KiB);
  std::vector<std::unique_ptr<Executable>> all;
  all.reserve(4);
  for (const char* name : {"a", "b", "c", "d"}) all.push_back(Make(name, budget));
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (const std::unique_ptr<Executable>& executable : all) {
    threads.emplace_back([&] {
      const hal::Stream stream = Need(hal::Stream::Create(bench_.inner()));
      int done = 0;
      while (done < 10) {
        const Status status = RunStep(*executable, stream.get());
        if (status.ok()) {
          ++done;
        } else {
          ASSERT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
          std::this_thread::yield();
        }
        ASSERT_LE(budget->used(), budget->limit());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  all.clear();
  EXPECT_EQ(budget->used(), 0_B);
}

// A child that was forked before devices were used may use them, with a budget from before.
TEST(MemoryBudgetForkTest, AChildCountsItsOwn) {
  struct Holder : MemoryBudget::User {
    std::string BudgetName() const override { return "holder"; }
    bool TryGiveUp() override { return false; }
    std::uint64_t LastUse() const override { return 0; }
  };
  MemoryBudget budget(3_MiB);
  const auto parents = std::make_shared<Holder>();
  ASSERT_TRUE(IsOk(budget.Take(parents, 2_MiB)));
  const int status = InForkedChild([&] {
    EXPECT_EQ(budget.used(), 0_B);
    const auto own = std::make_shared<Holder>();
    EXPECT_TRUE(IsOk(budget.Take(own, 3_MiB)));
    EXPECT_EQ(budget.used(), 3_MiB);
    budget.GiveBack(own.get());
    EXPECT_EQ(budget.used(), 0_B);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(budget.used(), 2_MiB);
}

}  // namespace
}  // namespace keel::graph
