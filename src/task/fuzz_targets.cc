#include "task/fuzz_targets.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "keel/task/arguments.h"
#include "keel/task/image.h"
#include "task/messages.h"
#include "task/mpi/life.h"

namespace keel::task {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckImage(std::span<const std::byte> bytes) {
  const Result<Image> image = Image::Parse(bytes);
  if (!image.ok()) {
    Require(image.status().code() == StatusCode::kInvalidArgument);
    Require(!image.status().message().empty());
    return;
  }
  ImageBuilder builder;
  builder.SetOrchestration({image->orchestration().begin(), image->orchestration().end()});
  for (std::size_t i = 0; i < image->part_count(); ++i) {
    const hal::ModuleSource part = image->part(i);
    if (part.kind == hal::ModuleSource::Kind::kImage) {
      builder.AddPart({part.image.begin(), part.image.end()});
    } else {
      builder.AddRegisteredPart(part.name);
    }
  }
  for (const Image::Kernel& kernel : image->kernels()) {
    builder.AddKernel(kernel.part, std::string(kernel.name));
  }
  const Result<Image> again =
      image->orchestration().empty() ? builder.BuildKernels() : builder.Build();
  Require(again.ok());
  Require(std::ranges::equal(again->bytes(), bytes));
  Require(again->hash() == image->hash());
}

template <class Message>
void CheckMessage(const Result<Message>& message, std::span<const std::byte> bytes) {
  if (message.ok()) {
    Require(std::ranges::equal(Encode(*message), bytes));
  } else {
    Require(message.status().code() == StatusCode::kInvalidArgument);
    Require(!message.status().message().empty());
  }
}

}  // namespace

void FuzzArguments(std::span<const std::byte> bytes) {
  const Result<Arguments> arguments = Arguments::Decode(bytes);
  if (!arguments.ok()) {
    Require(arguments.status().code() == StatusCode::kInvalidArgument);
    Require(!arguments.status().message().empty());
    return;
  }
  Require(arguments->Check().ok());
  Require(std::ranges::equal(arguments->Encode(), bytes));
}

void FuzzImage(std::span<const std::byte> bytes) {
  CheckImage(bytes);
  constexpr std::size_t kSize = 16;
  constexpr std::size_t kChecksum = 24;
  constexpr std::size_t kAfter = 28;
  if (bytes.size() < kAfter) return;
  std::vector<std::byte> right(bytes.begin(), bytes.end());
  const std::uint64_t size = right.size();
  std::memcpy(right.data() + kSize, &size, sizeof(size));
  const auto* data = reinterpret_cast<const Bytef*>(right.data());
  const auto sum = static_cast<std::uint32_t>(
      crc32_z(crc32_z(0, data, kChecksum), data + kAfter, right.size() - kAfter));
  std::memcpy(right.data() + kChecksum, &sum, sizeof(sum));
  CheckImage(right);
}

void FuzzMessage(std::span<const std::byte> bytes) {
  CheckMessage(DecodeTask(bytes), bytes);
  // What a worker makes of it where it lies.
  std::vector<std::byte> message(bytes.begin(), bytes.end());
  TaskView view;
  const Status viewed = ViewTask(message, view);
  const Result<TaskMessage> task = DecodeTask(bytes);
  Require(viewed.ToString() == task.status().ToString());
  if (viewed.ok()) {
    Require(view.number == task->number && view.callable == task->callable);
    Require(view.deadline.when() == task->deadline.when());
    Require(std::ranges::equal(view.arguments, task->arguments.Encode()));
  }
  CheckMessage(DecodeRequest(bytes), bytes);
  CheckMessage(DecodeReply(bytes), bytes);
}

void FuzzLife(std::span<const std::byte> bytes) {
  const Result<mpi::Life> life = mpi::DecodeLife(bytes);
  if (!life.ok()) {
    Require(life.status().code() == StatusCode::kInvalidArgument);
    Require(!life.status().message().empty());
    return;
  }
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  Require(std::ranges::all_of(life->text, printable));
  Require(std::ranges::all_of(life->machine, printable));
  Require(life->kind >= mpi::LifeKind::kHello && life->kind <= mpi::LifeKind::kEcho);
  Require(life->orchestration <= static_cast<std::uint32_t>(Orchestration::kHost));
  const std::vector<std::byte> written = mpi::Encode(*life);
  const Result<mpi::Life> again = mpi::DecodeLife(written);
  Require(again.ok());
  Require(again->text == life->text && again->machine == life->machine);
  Require(mpi::Encode(*again) == written);
}

}  // namespace keel::task
