#include "graph/slot_set.h"

#include <utility>

#include "keel/base/log.h"
#include "keel/base/mutex.h"
#include "keel/hal/owned_handle.h"
#include "keel/hal/standard_kernels.h"

namespace keel::graph {
namespace {

Bytes PiecesBytes(const Layout& layout) {
  return Bytes((layout.pieces_in.size() + layout.pieces_out.size() + (layout.fetch ? 1 : 0)) *
               sizeof(CopyPiece));
}

// What an executable that is gone, or began anew, has left to the device; on the budget it takes
// the place of its executable. The set ends without the lock: that drains the retry list, which may
// have this one.
class Remains : public MemoryBudget::User {
 public:
  Remains(std::unique_ptr<SlotSet> set, std::string name) : name_(std::move(name)) {
    const MutexLock lock(mutex_);
    set_ = std::move(set);
  }

  // OK: it is freed.
  Status TryFree() KEEL_EXCLUDES(mutex_) {
    std::unique_ptr<SlotSet> set;
    const MutexLock lock(mutex_);
    if (set_ == nullptr) return OkStatus();
    KEEL_TRY(set_->WaitIdle(Deadline::Now()));
    set = std::move(set_);
    return OkStatus();
  }

  std::string BudgetName() const override { return name_; }
  bool TryGiveUp() override { return TryFree().ok(); }
  std::uint64_t LastUse() const override { return 0; }  // nobody's any more: the first to go

 private:
  const std::string name_;
  Mutex mutex_;
  std::unique_ptr<SlotSet> set_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace

SlotSet::SlotSet(std::shared_ptr<const Program> program, std::shared_ptr<const Layout> layout,
                 std::shared_ptr<AutoPolicy> choices, std::shared_ptr<memory::DeviceMemory> memory,
                 int slots, int kept_traces, DeviceAddress arena)
    : program_(std::move(program)),
      layout_(std::move(layout)),
      choices_(std::move(choices)),
      memory_(std::move(memory)),
      count_(static_cast<std::size_t>(slots)),
      context_{.program = *program_,
               .layout = *layout_,
               .choices = *choices_,
               .memory = *memory_,
               .fetch_kernel = {},
               .copy_in_kernel = {},
               .copy_out_kernel = {},
               .mark_kernel = {},
               .capture_stream = {},
               .memory_stream = {},
               .pieces = {},
               .arena = arena,
               .kept_traces = static_cast<std::size_t>(kept_traces)} {}

SlotSet::~SlotSet() {
  slots_.clear();
  if (context_.pieces) {
    const Status status = memory_->allocator().Free(context_.pieces);
    if (!status.ok() && device().Health().ok()) {
      Log(LogLevel::kWarn, "a graph's table could not be freed: " + status.ToString());
    }
  }
  // Its memory was this stream's; nobody else's work is on it.
  if (memory_stream_) (void)memory_->allocator().ForgetStream(memory_stream_.get());
}

Bytes SlotSet::BytesFor(const Layout& layout, const hal::Capabilities& capabilities, int slots) {
  Bytes slot = layout.slot_bytes + layout.control_bytes();
  if (!layout.aliased_bytes.empty()) {
    slot += AlignUp(layout.aliased_bytes, capabilities.granularity.minimum)
                .value_or(layout.aliased_bytes);
  }
  for (const BindingLayout& binding : layout.bindings) {
    if (binding.dynamic && !binding.home) slot += binding.size;  // when it is copied
  }
  return slot * static_cast<std::uint64_t>(slots) + PiecesBytes(layout);
}

Status SlotSet::Begin() {
  const std::shared_ptr<hal::Device>& device = memory_->device();
  KEEL_ASSIGN(module_, hal::Module::LoadStandard(device));
  KEEL_ASSIGN(context_.fetch_kernel, module_.Find(hal::kernels::kCopyTable));
  KEEL_ASSIGN(context_.copy_in_kernel, module_.Find(layout_->small_in   ? hal::kernels::kCopyInSmall
                                                    : layout_->by_value ? hal::kernels::kCopyInRows
                                                                        : hal::kernels::kCopyIn));
  KEEL_ASSIGN(
      context_.copy_out_kernel,
      module_.Find(layout_->small_out ? hal::kernels::kCopyOutSmall : hal::kernels::kCopyOut));
  KEEL_ASSIGN(context_.mark_kernel, module_.Find(hal::kernels::kMark));
  context_.tag = telemetry::InternTag("graph:" + program_->name());
  KEEL_ASSIGN(capture_stream_, hal::Stream::Create(device));
  context_.capture_stream = capture_stream_.get();
  KEEL_ASSIGN(memory_stream_, hal::Stream::Create(device));
  context_.memory_stream = memory_stream_.get();
  return OkStatus();
}

Status SlotSet::Make(Deadline deadline) {
  if (memory_stream_) {
    // Nothing is queued, or taken, a second time while the first may still come.
    KEEL_TRY(memory_stream_.Synchronize(deadline));
    slots_.resize(made_);
  } else {
    KEEL_TRY(Begin());
  }
  if (!uploaded_) {
    KEEL_TRY(UploadPieces(deadline));
    uploaded_ = true;
  }
  while (made_ < count_) {
    slots_.push_back(std::make_unique<Slot>(context_, static_cast<std::uint32_t>(made_)));
    KEEL_TRY(slots_.back()->Allocate(deadline));
    ++made_;
  }
  KEEL_TRY(memory_stream_.Synchronize(deadline));
  ready_ = true;
  return OkStatus();
}

Status SlotSet::UploadPieces(Deadline deadline) {
  const std::vector<CopyPiece> pieces = layout_->AllPieces();
  if (pieces.empty()) return OkStatus();
  const Bytes size = PiecesBytes(*layout_);
  if (!context_.pieces) {
    KEEL_ASSIGN(context_.pieces,
                memory_->allocator().Allocate(size, context_.memory_stream,
                                              {.tag = context_.tag, .deadline = deadline}));
  }
  return memory_->CopyToDevice(context_.memory_stream, context_.pieces, pieces.data(), size,
                               deadline);
}

bool SlotSet::Idle() {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (!slot->Idle()) return false;
  }
  return true;
}

Status SlotSet::WaitIdle(Deadline deadline) {
  if (!ready_ && memory_stream_) {
    KEEL_TRY(memory_stream_.Synchronize(deadline));
    ready_ = true;
  }
  for (const std::unique_ptr<Slot>& slot : slots_) KEEL_TRY(slot->WaitIdle(deadline));
  return OkStatus();
}

Bytes SlotSet::bytes() const {
  Bytes sum = PiecesBytes(*layout_);
  for (const std::unique_ptr<Slot>& slot : slots_) sum += slot->bytes();
  return sum;
}

void SlotSet::Retire(std::unique_ptr<SlotSet> set, Deadline deadline,
                     const std::shared_ptr<MemoryBudget>& budget,
                     const MemoryBudget::User* user) noexcept {
  const Status status = set != nullptr ? set->WaitIdle(deadline) : OkStatus();
  // On a lost device there is nothing to wait for.
  if (status.ok() || !set->device().Health().ok()) {
    set.reset();
    if (budget != nullptr) budget->GiveBack(user);
    return;
  }
  hal::Device& device = set->device();
  const std::string name = set->program_->name();
  const std::string what = "memory of graph '" + name + "', which still runs";
  const auto remains = std::make_shared<Remains>(std::move(set), name);
  if (budget != nullptr) budget->Pass(user, remains);
  hal::internal::LeaveForRetry(device, status, what, [remains] { return remains->TryFree(); });
}

}  // namespace keel::graph
