// What a worker process is handed is looked at before it is used.
#include "task/region.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/private_file.h"
#include "hal/sim_devices_test.h"
#include "task/doorbell.h"

namespace keel::task {
namespace {

using hal::Need;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

UniqueFd FileOf(std::uint64_t size, int seals) {
  UniqueFd file = Need(CreatePrivateFile("keel-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}
UniqueFd Again(int descriptor) { return UniqueFd(fcntl(descriptor, F_DUPFD_CLOEXEC, 3)); }
// As large as it should be, and of a kind that cannot be sealed.
UniqueFd OnDisk(std::uint64_t size) {
  std::string path = ::testing::TempDir() + "/keel_region_XXXXXX";
  UniqueFd file(mkstemp(path.data()));
  EXPECT_TRUE(file.valid());
  unlink(path.c_str());
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0);
  return file;
}

void ExpectRefused(UniqueFd file, StatusCode code, std::string_view why) {
  const Status status = Region::Open(std::move(file)).status();
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_NE(status.message().find(why), std::string_view::npos) << status.ToString();
}

TEST(RegionTest, OpensWhatItsOtherSideMade) {
  const auto made = Need(Region::CreateShared(1_MiB));
  const auto opened = Need(Region::Open(Again(made->descriptor())));
  EXPECT_EQ(opened->size(), made->size());
  EXPECT_EQ(opened->data_size(), (1_MiB).count());
  *made->at(Region::kData) = std::byte{7};
  EXPECT_EQ(*opened->at(Region::kData), std::byte{7}) << "one memory";
}

TEST(RegionTest, ThatIsNotSealedIsRefused) {
  for (const int seals : {0, F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW}) {
    ExpectRefused(FileOf(Region::kData, seals), StatusCode::kInvalidArgument, "not sealed");
  }
  ExpectRefused(OnDisk(Region::kData), StatusCode::kInvalidArgument, "not sealed");
}

TEST(RegionTest, ThatIsShortIsRefused) {
  for (const std::uint64_t size : {std::uint64_t{0}, Region::kData - 1}) {
    ExpectRefused(FileOf(size, kSeals), StatusCode::kInvalidArgument,
                  "has " + std::to_string(size) + " bytes");
  }
}

TEST(RegionTest, ThatBeginsOtherwiseIsRefused) {
  ExpectRefused(FileOf(Region::kData, kSeals), StatusCode::kInvalidArgument, "begin as it should");
  const auto made = Need(Region::CreateShared(1_MiB));
  RegionHeader& header = made->header();
  header.magic ^= 1;
  ExpectRefused(Again(made->descriptor()), StatusCode::kInvalidArgument, "begin as it should");
  header.magic ^= 1;
  header.size -= 1;
  ExpectRefused(Again(made->descriptor()), StatusCode::kInvalidArgument, "begin as it should");
  header.size += 1;
  header.version += 1;
  ExpectRefused(Again(made->descriptor()), StatusCode::kFailedPrecondition, "keel-worker");
  header.version -= 1;
  EXPECT_TRUE(Region::Open(Again(made->descriptor())).ok());
}

TEST(RegionTest, NoDescriptorIsAnError) {
  EXPECT_FALSE(Region::Open(UniqueFd()).ok());
  EXPECT_FALSE(OpenDoorbell(UniqueFd()).ok());
}

TEST(DoorbellTest, ThatIsNotSealedOrOfAWrongSizeIsRefused) {
  constexpr std::uint64_t kPage = 4096;
  const auto made = Need(Doorbell::Create());
  const auto opened = Need(OpenDoorbell(Again(made->descriptor())));
  const std::uint32_t before = opened->value();
  made->Ring();
  EXPECT_NE(opened->value(), before) << "one word";

  EXPECT_TRUE(OpenDoorbell(FileOf(kPage, kSeals)).ok());
  const auto refused = [](UniqueFd file) {
    return OpenDoorbell(std::move(file)).status().code() == StatusCode::kInvalidArgument;
  };
  for (const int seals : {0, F_SEAL_GROW, F_SEAL_SHRINK}) {
    EXPECT_TRUE(refused(FileOf(kPage, seals)));
  }
  for (const std::uint64_t size : {std::uint64_t{0}, kPage - 1, kPage + 1}) {
    EXPECT_TRUE(refused(FileOf(size, kSeals)));
  }
  EXPECT_TRUE(refused(OnDisk(kPage)));
}

}  // namespace
}  // namespace keel::task
