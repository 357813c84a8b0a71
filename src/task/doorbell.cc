#include "task/doorbell.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/futex_wait.h"
#include "base/private_file.h"

namespace keel::task {
namespace {

constexpr std::size_t kSize = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

class SharedDoorbell final : public Doorbell {
  auto Ready(std::uint32_t seen, std::span<const Sign> answers) const {
    return [this, seen, answers] {
      return std::ranges::any_of(answers, &Sign::there) || value() != seen;
    };
  }

 public:
  static Result<std::shared_ptr<Doorbell>> Map(UniqueFd file) {
    RingWithoutFence();
    void* const page = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (page == MAP_FAILED) return SystemError("mmap of a doorbell", errno);
    return std::shared_ptr<Doorbell>(
        new SharedDoorbell(std::move(file), static_cast<FutexWord*>(page)));
  }
  ~SharedDoorbell() override { munmap(word_, kSize); }

  std::uint32_t value() const override { return word_->value.load(std::memory_order_acquire); }
  bool SpinWhile(std::uint32_t seen, std::span<const Sign> answers) override {
    return SpinUntil(Ready(seen, answers));
  }
  bool WaitWhile(std::uint32_t seen, std::span<const Sign> answers, Deadline deadline) override {
    return WaitUntil(*word_, Ready(seen, answers), deadline);
  }
  void Ring() override { keel::Ring(*word_); }
  void RingSleepers() override { keel::RingSleepers(*word_); }
  int descriptor() const override { return file_.get(); }

 private:
  SharedDoorbell(UniqueFd file, FutexWord* word) : file_(std::move(file)), word_(word) {}

  const UniqueFd file_;
  FutexWord* const word_;
};

}  // namespace

Result<std::shared_ptr<Doorbell>> Doorbell::Create() {
  KEEL_ASSIGN(UniqueFd file, CreatePrivateFile("keel-doorbell", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (ftruncate(file.get(), kSize) != 0) return SystemError("ftruncate of a doorbell", errno);
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return SystemError("sealing a doorbell", errno);
  return SharedDoorbell::Map(std::move(file));
}

Result<std::shared_ptr<Doorbell>> OpenDoorbell(UniqueFd file) {
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return SystemError("fstat of a doorbell", errno);
  if (!IsSealed(file, kSeals) || status.st_size != kSize) {
    return InvalidArgument("a doorbell's memory is not sealed, or of a wrong size");
  }
  return SharedDoorbell::Map(std::move(file));
}

}  // namespace keel::task
