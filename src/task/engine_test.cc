#include "task/engine.h"

#include <gtest/gtest.h>

#include <vector>

#include "hal/sim_devices_test.h"
#include "task/images_test.h"

namespace keel::task {
namespace {

using hal::IsOk;
using hal::Need;

constexpr std::uint32_t kShape[] = {64};

class EngineTest : public hal::SimDevicesTest {
 protected:
  std::unique_ptr<Engine> Make(Orchestration where) { return Need(Engine::Create(memory_, where)); }
  std::shared_ptr<memory::DeviceMemory> memory_ = Need(memory::DeviceMemory::Create(device_, {}));
};

TEST_F(EngineTest, AddsTensorsOfTheHost) {
  const auto engine = Make(Orchestration::kHost);
  const std::uint64_t add = Need(engine->Register(AddImage(), Deadline::Never()));
  const std::vector<float> a(64, 1.5F);
  const std::vector<float> b(64, 2.0F);
  std::vector<float> c(64);
  Arguments arguments;
  arguments.Add(Tag::kIn, Tensor::Host(a.data(), DataType::kFloat32, kShape))
      .Add(Tag::kIn, Tensor::Host(b.data(), DataType::kFloat32, kShape))
      .Add(Tag::kOut, Tensor::Host(c.data(), DataType::kFloat32, kShape));
  ASSERT_TRUE(IsOk(engine->Run(add, arguments, Deadline::Never())));
  EXPECT_EQ(c, std::vector<float>(64, 3.5F));
}

}  // namespace
}  // namespace keel::task
