#include "keel/graph/replay_report.h"

#include <gtest/gtest.h>

namespace keel::graph {
namespace {

TEST(ReplayReportTest, SaysWhatWasDoneToWhatAndWhy) {
  const BindingSpec specs[] = {{.name = "x", .size = Bytes(8)}, {.name = "y", .size = Bytes(8)}};
  ReplayReport report;
  report.step = 7;
  report.slot = 1;
  report.graphs = 2;
  report.copied_in = 2_KiB;
  report.copied_out = 8_B;
  report.Add({.kind = ActionKind::kRebound, .reason = Reason::kMoved, .binding = 1});
  report.Add(
      {.kind = ActionKind::kPatched, .reason = Reason::kMoved, .count = 3, .host_ns = 1'500});
  EXPECT_EQ(report.ToString(specs),
            "step 7 in slot 1: 2 graphs launched, 2 KiB copied in, 8 B copied out\n"
            "  rebound 'y': another address than in the slot's last step\n"
            "  patched (3): another address than in the slot's last step, 1.5 us");
}

TEST(ReplayReportTest, CountsWhatHasNoRoom) {
  ReplayReport report;
  for (std::size_t i = 0; i < ReplayReport::kMostActions + 3; ++i) {
    report.Add({.kind = ActionKind::kRebound, .binding = static_cast<std::uint32_t>(i)});
  }
  EXPECT_EQ(report.actions().size(), ReplayReport::kMostActions);
  EXPECT_EQ(report.actions_left_out, 3u);
  EXPECT_NE(report.ToString({}).find("and 3 more"), std::string::npos);
}

TEST(ReplayReportTest, AddsUpWhatEachKindTookAlsoWithoutRoom) {
  ReplayReport report;
  for (std::size_t i = 0; i < ReplayReport::kMostActions; ++i) {
    report.Add({.kind = ActionKind::kRebound});
  }
  report.Add({.kind = ActionKind::kPatched, .host_ns = 30});
  EXPECT_EQ(report.host_ns(ActionKind::kPatched), 30);
  report.Charge(ActionKind::kRebound, 5);
  EXPECT_EQ(report.actions().back().host_ns, 5);
  EXPECT_EQ(report.actions().front().host_ns, 0);
  EXPECT_EQ(report.host_ns(ActionKind::kRebound), 5);
  report.Clear();
  EXPECT_EQ(report.host_ns(), HostNs{});
  report.Charge(ActionKind::kRebound, 7);
  ASSERT_EQ(report.actions().size(), 1u) << "what was not added is told all the same";
  EXPECT_EQ(report.actions()[0].host_ns, 7);
}

TEST(ReplayReportTest, AChoiceAlwaysHasRoom) {
  ReplayReport report;
  for (std::size_t i = 0; i < ReplayReport::kMostActions; ++i) {
    report.Add({.kind = ActionKind::kRebound});
  }
  constexpr std::uint32_t kChoices = 20;
  for (std::uint32_t i = 0; i < kChoices; ++i) {
    report.Add({.kind = ActionKind::kChose, .reason = Reason::kChurns, .binding = i});
  }
  report.Add({.kind = ActionKind::kPatched});
  ASSERT_EQ(report.actions().size(), ReplayReport::kMostActions + kChoices);
  EXPECT_EQ(report.actions().front().kind, ActionKind::kRebound) << "and takes nobody's place";
  for (std::uint32_t i = 0; i < kChoices; ++i) {
    const Action& action = report.actions()[ReplayReport::kMostActions + i];
    EXPECT_EQ(action.kind, ActionKind::kChose);
    EXPECT_EQ(action.binding, i);
  }
  EXPECT_EQ(report.actions_left_out, 1u);
  report.Charge(ActionKind::kRebound, 5);
  EXPECT_EQ(report.actions()[ReplayReport::kMostActions - 1].host_ns, 5);
  const ReplayReport copy = report;
  report.Clear();
  EXPECT_TRUE(report.actions().empty());
  EXPECT_EQ(copy.actions().size(), ReplayReport::kMostActions + kChoices);
}

TEST(ReplayReportTest, EveryKindAndReasonHasAName) {
  for (int i = 0; i < static_cast<int>(kActionKinds); ++i) {
    EXPECT_NE(ActionName(static_cast<ActionKind>(i)), "unknown");
  }
  for (int i = 0; i < static_cast<int>(kReasons); ++i) {
    EXPECT_NE(ReasonText(static_cast<Reason>(i)), "unknown");
  }
}

}  // namespace
}  // namespace keel::graph
