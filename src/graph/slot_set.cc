#include "graph/slot_set.h"

#include <utility>

#include "keel/base/log.h"
#include "keel/hal/owned_handle.h"
#include "keel/hal/standard_kernels.h"

namespace keel::graph {
namespace {

Bytes PiecesBytes(const Layout& layout) {
  return Bytes((layout.pieces_in.size() + layout.pieces_out.size() + (layout.fetch ? 1 : 0)) *
               sizeof(CopyPiece));
}

}  // namespace

SlotSet::SlotSet(std::shared_ptr<const Program> program, std::shared_ptr<const Layout> layout,
                 std::shared_ptr<AutoPolicy> choices, std::shared_ptr<memory::DeviceMemory> memory)
    : program_(std::move(program)),
      layout_(std::move(layout)),
      choices_(std::move(choices)),
      memory_(std::move(memory)),
      context_{.program = *program_,
               .layout = *layout_,
               .choices = *choices_,
               .memory = *memory_,
               .fetch_kernel = {},
               .copy_in_kernel = {},
               .copy_out_kernel = {},
               .mark_kernel = {},
               .capture_stream = {},
               .pieces = {},
               .arena = {}} {}

SlotSet::~SlotSet() {
  slots_.clear();
  if (context_.pieces) {
    const Status status = memory_->allocator().Free(context_.pieces);
    if (!status.ok() && device().Health().ok()) {
      Log(LogLevel::kWarn, "a graph's table could not be freed: " + status.ToString());
    }
  }
  // Its memory was this stream's; nobody else's work is on it.
  if (capture_stream_) (void)memory_->allocator().ForgetStream(capture_stream_.get());
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

Result<std::unique_ptr<SlotSet>> SlotSet::Create(std::shared_ptr<const Program> program,
                                                 std::shared_ptr<const Layout> layout,
                                                 std::shared_ptr<AutoPolicy> choices,
                                                 std::shared_ptr<memory::DeviceMemory> memory,
                                                 int slots, int kept_traces, DeviceAddress arena,
                                                 Deadline deadline) {
  std::unique_ptr<SlotSet> set(
      new SlotSet(std::move(program), std::move(layout), std::move(choices), std::move(memory)));
  Status made = set->Make(slots, kept_traces, arena, deadline);
  if (made.ok()) return set;
  // What was queued may not be done, and writes to the memory.
  Retire(std::move(set), deadline);
  return made;
}

Status SlotSet::Make(int slots, int kept_traces, DeviceAddress arena, Deadline deadline) {
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
  KEEL_ASSIGN(capture_stream_, hal::Stream::Create(device));
  context_.capture_stream = capture_stream_.get();
  context_.arena = arena;
  context_.tag = telemetry::InternTag("graph:" + program_->name());
  context_.kept_traces = static_cast<std::size_t>(kept_traces);
  KEEL_TRY(UploadPieces(deadline));
  for (int i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<Slot>(context_, static_cast<std::uint32_t>(i)));
    KEEL_TRY(slots_.back()->Allocate(deadline));
  }
  KEEL_TRY(capture_stream_.Synchronize(deadline));
  ready_ = true;
  return OkStatus();
}

Status SlotSet::UploadPieces(Deadline deadline) {
  const std::vector<CopyPiece> pieces = layout_->AllPieces();
  if (pieces.empty()) return OkStatus();
  const Bytes size = PiecesBytes(*layout_);
  KEEL_ASSIGN(context_.pieces,
              memory_->allocator().Allocate(size, context_.capture_stream, {.tag = context_.tag}));
  return memory_->CopyToDevice(context_.capture_stream, context_.pieces, pieces.data(), size,
                               deadline);
}

bool SlotSet::Idle() {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (!slot->Idle()) return false;
  }
  return true;
}

Status SlotSet::WaitIdle(Deadline deadline) {
  if (!ready_ && capture_stream_) {
    KEEL_TRY(capture_stream_.Synchronize(deadline));
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

void SlotSet::Retire(std::unique_ptr<SlotSet> set, Deadline deadline) noexcept {
  if (set == nullptr) return;
  Status status = set->WaitIdle(deadline);
  // On a lost device there is nothing to wait for.
  if (status.ok() || !set->device().Health().ok()) return;
  hal::Device& device = set->device();
  const std::string what = "memory of graph '" + set->program_->name() + "', which still runs";
  std::shared_ptr<SlotSet> kept(std::move(set));
  hal::internal::LeaveForRetry(device, status, what, [kept]() mutable -> Status {
    if (kept == nullptr) return OkStatus();
    KEEL_TRY(kept->WaitIdle(Deadline::Now()));
    kept.reset();
    return OkStatus();
  });
}

}  // namespace keel::graph
