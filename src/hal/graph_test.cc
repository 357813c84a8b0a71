#include "keel/hal/graph.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "hal/sim_devices_test.h"
#include "keel/hal/capture_mode.h"
#include "keel/hal/stream.h"

namespace keel::hal {
namespace {

class GraphTest : public SimDevicesTest {
 protected:
  CaptureState State() { return Need(device_->GetCaptureState(stream_.get())); }
  void ExpectOnlyTheStreamLeft() {
    EXPECT_EQ(State(), CaptureState::kNone);
    EXPECT_TRUE(device_->retries().empty());
    EXPECT_EQ(device_->Live().size(), 1U) << Live();
  }

  Stream stream_ = Need(Stream::Create(device_));
};

TEST_F(GraphTest, ACaptureBecomesAGraphThatRuns) {
  Capture capture = Need(Capture::Begin(device_, stream_.get()));
  EXPECT_EQ(State(), CaptureState::kActive);
  {
    const Graph graph = Need(capture.End());
    EXPECT_FALSE(capture);
    const GraphExec exec = Need(GraphExec::Create(graph));
    EXPECT_TRUE(IsOk(exec.Launch(stream_.get())));
    EXPECT_TRUE(IsOk(stream_.Synchronize()));
  }
  ExpectOnlyTheStreamLeft();
}

TEST_F(GraphTest, AScopeThatIsLeftEarlyLeavesNoStreamCapturing) {
  {
    const Capture capture = Need(Capture::Begin(device_, stream_.get()));
  }
  ExpectOnlyTheStreamLeft();
  EXPECT_TRUE(IsOk(stream_.Synchronize()));
}

TEST_F(GraphTest, AnInvalidatedCaptureIsOver) {
  for (const bool end : {true, false}) {
    Capture capture = Need(Capture::Begin(device_, stream_.get()));
    EXPECT_FALSE(stream_.Synchronize().ok());
    EXPECT_EQ(State(), CaptureState::kInvalidated);
    if (end) {
      EXPECT_EQ(capture.End().status().code(), StatusCode::kFailedPrecondition);
    } else {
      EXPECT_TRUE(IsOk(capture.Close()));
    }
    EXPECT_FALSE(capture);
    ExpectOnlyTheStreamLeft();
  }
}

TEST_F(GraphTest, AnEndThatFailedBeforeItReachedTheCaptureStillEndsIt) {
  Capture capture = Need(Capture::Begin(device_, stream_.get()));
  device_->FailNth(Primitive::kEndCapture, 1, Internal("injected"));
  EXPECT_EQ(capture.End().status().message(), "injected");
  EXPECT_FALSE(capture);
  ExpectOnlyTheStreamLeft();
}

TEST_F(GraphTest, ACaptureThatCannotBeEndedNowIsRetried) {
  {
    const Capture capture = Need(Capture::Begin(device_, stream_.get()));
    device_->FailNth(Primitive::kEndCapture, 1, Internal("injected"));
  }
  EXPECT_EQ(device_->retries().size(), 1U);
  EXPECT_EQ(State(), CaptureState::kActive);
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  ExpectOnlyTheStreamLeft();
}

TEST_F(GraphTest, TheGraphOfADroppedCaptureIsRetriedByItself) {
  {
    const Capture capture = Need(Capture::Begin(device_, stream_.get()));
    device_->FailNth(Primitive::kDestroyGraph, 1, Internal("injected"));
  }
  EXPECT_EQ(State(), CaptureState::kNone);
  EXPECT_EQ(device_->retries().size(), 1U);
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  EXPECT_EQ(device_->calls(Primitive::kEndCapture), 1U);
  ExpectOnlyTheStreamLeft();
}

// Only the thread that began it may end it: on another thread it waits on the retry list.
TEST_F(GraphTest, ACaptureDroppedByTheWrongThreadEndsWhenTheRightOneDrains) {
  std::thread other(
      [capture = Need(Capture::Begin(
           device_, stream_.get(), CaptureMode::kThreadLocal))]() mutable { capture = Capture(); });
  other.join();
  EXPECT_EQ(device_->retries().size(), 1U);
  EXPECT_NE(State(), CaptureState::kNone);
  EXPECT_EQ(device_->Live().size(), 2U) << Live();
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  ExpectOnlyTheStreamLeft();
}

TEST_F(GraphTest, AStreamDestroyedWhileItCapturesIsDestroyedAfterTheCapture) {
  {
    const Capture capture = Need(Capture::Begin(device_, stream_.get()));
    stream_ = Stream();
    EXPECT_EQ(device_->retries().size(), 1U);
  }
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  EXPECT_EQ(Live(), "");
}

TEST_F(GraphTest, GraphsAndExecsAreGivenBack) {
  {
    const Graph graph = Need(Graph::Create(device_));
    const GraphExec exec = Need(GraphExec::Create(graph));
    EXPECT_EQ(device_->Live().size(), 3U) << Live();
  }
  ExpectOnlyTheStreamLeft();
}

TEST_F(GraphTest, AnOwnerOfNothingSaysSo) {
  EXPECT_EQ(Capture().End().status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(GraphExec::Create(Graph()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(GraphExec().Launch(stream_.get()).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keel::hal
