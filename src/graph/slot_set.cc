#include "graph/slot_set.h"

#include <chrono>
#include <utility>

#include "keel/base/log.h"
#include "keel/hal/owned_handle.h"
#include "keel/hal/standard_kernels.h"

namespace keel::graph {
namespace {

// For the device to be ready with new memory, which nothing of the caller's can delay.
constexpr std::chrono::seconds kPatience{60};

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
                                                 int slots, int kept_traces, DeviceAddress arena) {
  std::unique_ptr<SlotSet> set(
      new SlotSet(std::move(program), std::move(layout), std::move(choices), std::move(memory)));
  SlotContext& context = set->context_;
  const std::shared_ptr<hal::Device>& device = set->memory_->device();
  KEEL_ASSIGN(set->module_, hal::Module::LoadStandard(device));
  KEEL_ASSIGN(context.fetch_kernel, set->module_.Find(hal::kernels::kCopyTable));
  KEEL_ASSIGN(context.copy_in_kernel,
              set->module_.Find(set->layout_->small_in   ? hal::kernels::kCopyInSmall
                                : set->layout_->by_value ? hal::kernels::kCopyInRows
                                                         : hal::kernels::kCopyIn));
  KEEL_ASSIGN(context.copy_out_kernel,
              set->module_.Find(set->layout_->small_out ? hal::kernels::kCopyOutSmall
                                                        : hal::kernels::kCopyOut));
  KEEL_ASSIGN(context.mark_kernel, set->module_.Find(hal::kernels::kMark));
  KEEL_ASSIGN(set->capture_stream_, hal::Stream::Create(device));
  context.capture_stream = set->capture_stream_.get();
  context.arena = arena;
  context.tag = telemetry::InternTag("graph:" + set->program_->name());
  context.kept_traces = static_cast<std::size_t>(kept_traces);
  KEEL_TRY(set->UploadPieces());
  for (int i = 0; i < slots; ++i) {
    set->slots_.push_back(std::make_unique<Slot>(context, static_cast<std::uint32_t>(i)));
    KEEL_TRY(set->slots_.back()->Allocate());
  }
  KEEL_TRY(set->capture_stream_.Synchronize(Deadline::After(kPatience)));
  return set;
}

Status SlotSet::UploadPieces() {
  const std::vector<CopyPiece> pieces = layout_->AllPieces();
  if (pieces.empty()) return OkStatus();
  const Bytes size = PiecesBytes(*layout_);
  KEEL_ASSIGN(context_.pieces,
              memory_->allocator().Allocate(size, context_.capture_stream, {.tag = context_.tag}));
  return memory_->CopyToDevice(context_.capture_stream, context_.pieces, pieces.data(), size,
                               Deadline::After(kPatience));
}

bool SlotSet::Idle() {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (!slot->Idle()) return false;
  }
  return true;
}

Status SlotSet::WaitIdle(Deadline deadline) {
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
