// cuda_bench: streams, events, commands and kernels.

#include <atomic>

#include "drivers/cuda/cuda_bench.h"

namespace keel::cuda::benchmarks {
namespace {

void StreamsAndEvents() {
  Operation(
      "CreateStream + DestroyStream",
      [](Bench& b) {
        void* stream = nullptr;
        const Code code = b.raw.stream_create(&stream, abi::kStreamNonBlocking, 0);
        return Both(code, b.cu.stream_destroy(stream));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::StreamHandle stream, b.device->CreateStream({}));
        return b.device->DestroyStream(stream);
      },
      {.calls = 2});
  Operation(
      "BorrowStream",
      [](Bench& b) {
        void* context = nullptr;
        return b.cu.stream_context(Pointer(b.stream.value), &context);
      },
      [](Bench& b) { return b.device->BorrowStream(b.stream.value); });
  Operation(
      "QueryStream", [](Bench& b) { return b.cu.stream_query(Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->QueryStream(b.stream); });
  Operation(
      "SynchronizeStream idle",
      [](Bench& b) { return b.raw.stream_synchronize(Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->SynchronizeStream(b.stream, Deadline::Never()); });
  // The library's own wait for a context is not what a library inside a program may call: it breaks
  // every capture that is open there. So both ways ask the streams, one after the other.
  Operation(
      "Synchronize idle, 2 streams",
      [](Bench& b) {
        Code code = vendor::kSuccess;
        for (const hal::StreamHandle stream : {b.stream, b.recording}) {
          int state = 0;
          code = Both(code, b.raw.capture_info(Pointer(stream.value), &state, nullptr, nullptr,
                                               nullptr, nullptr));
          if (state == 0) code = Both(code, b.cu.stream_query(Pointer(stream.value)));
        }
        return Both(code, b.cu.stream_query(Pointer(b.cu.legacy_stream)));
      },
      [](Bench& b) { return b.device->Synchronize(Deadline::Never()); }, {.calls = 5});
  Operation(
      "Synchronize idle, against the library's own", [](Bench& b) { return b.raw.synchronize(); },
      [](Bench& b) { return b.device->Synchronize(Deadline::Never()); },
      {.unlike =
           "the library's own wait breaks every capture that is open, so Keel may not call it"});
  Operation(
      "CreateEvent + DestroyEvent",
      [](Bench& b) {
        void* event = nullptr;
        const Code code = b.raw.event_create(&event, abi::kEventDisableTiming);
        return Both(code, b.cu.event_destroy(event));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::EventHandle event, b.device->CreateEvent({}));
        return b.device->DestroyEvent(event);
      },
      {.calls = 2});
  Operation(
      "RecordEvent",
      [](Bench& b) { return b.cu.event_record(Pointer(b.event.value), Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->RecordEvent(b.event, b.stream); }, {.clock = Clock::kQueue});
  Operation(
      "WaitEvent",
      [](Bench& b) {
        return b.cu.stream_wait_event(Pointer(b.stream.value), Pointer(b.event.value), 0);
      },
      [](Bench& b) { return b.device->WaitEvent(b.stream, b.event); }, {.clock = Clock::kQueue});
  Operation(
      "QueryEvent", [](Bench& b) { return b.cu.event_query(Pointer(b.event.value)); },
      [](Bench& b) { return b.device->QueryEvent(b.event); });
  Operation(
      "SynchronizeEvent done",
      [](Bench& b) { return b.raw.event_synchronize(Pointer(b.event.value)); },
      [](Bench& b) { return b.device->SynchronizeEvent(b.event, Deadline::Never()); });
  for (const hal::EventHandle event : {bench->event, bench->later}) {
    if (!bench->device->RecordEvent(event, bench->stream).ok()) std::exit(1);
  }
  Operation(
      "ElapsedMilliseconds",
      [](Bench& b) {
        float milliseconds = 0;
        return b.cu.event_elapsed(&milliseconds, Pointer(b.event.value), Pointer(b.later.value));
      },
      [](Bench& b) { return b.device->ElapsedMilliseconds(b.event, b.later); });
}

// A copy, until it is queued or until it is done.
void CopyOperation(const std::string& name, std::size_t size, Code (*direct)(Bench&, std::size_t),
                   hal::Copy (*copy)(Bench&), Clock clock) {
  const bool wait = clock == Clock::kCall;
  Operation(
      fmt::format("{} {}{}", name, ToString(Bytes(size)), wait ? ", wait" : ""),
      [=](Bench& b) {
        const Code code = direct(b, size);
        return wait ? Both(code, b.raw.stream_synchronize(Pointer(b.stream.value))) : code;
      },
      [=](Bench& b) -> Status {
        hal::Copy what = copy(b);
        what.size = Bytes(size);
        KEEL_TRY(b.device->EnqueueCopy(b.stream, what));
        return wait ? b.device->SynchronizeStream(b.stream, Deadline::Never()) : OkStatus();
      },
      {.clock = clock, .calls = wait ? 2 : 1});
}

void Copies() {
  const auto within = [](Bench& b, std::size_t size) {
    return b.cu.copy_within(b.memory.value() + kGiB, b.memory.value(), size,
                            Pointer(b.stream.value));
  };
  const auto within_copy = [](Bench& b) {
    return hal::Copy{b.on_device(kGiB), b.on_device(), Bytes(0)};
  };
  const auto in = [](Bench& b, std::size_t size) {
    return b.cu.copy_in(b.memory.value(), b.pinned, size, Pointer(b.stream.value));
  };
  const auto in_copy = [](Bench& b) {
    return hal::Copy{b.on_device(), hal::Location::Host(b.pinned), Bytes(0)};
  };
  const auto out = [](Bench& b, std::size_t size) {
    return b.cu.copy_out(b.pinned, b.memory.value(), size, Pointer(b.stream.value));
  };
  const auto out_copy = [](Bench& b) {
    return hal::Copy{hal::Location::Host(b.pinned), b.on_device(), Bytes(0)};
  };
  const auto pageable = [](Bench& b, std::size_t size) {
    return b.cu.copy_in(b.memory.value(), b.pageable.data(), size, Pointer(b.stream.value));
  };
  const auto pageable_copy = [](Bench& b) {
    return hal::Copy{b.on_device(), hal::Location::Host(b.pageable.data()), Bytes(0)};
  };
  CopyOperation("Copy D2D", kMiB, within, within_copy, Clock::kQueue);
  CopyOperation("Copy H2D pinned", 64 * kKiB, in, in_copy, Clock::kQueue);
  CopyOperation("Copy D2H pinned", 64 * kKiB, out, out_copy, Clock::kQueue);
  CopyOperation("Copy D2D", kGiB, within, within_copy, Clock::kCall);
  for (const std::size_t size : {64 * kKiB, kMiB, 256 * kMiB}) {
    CopyOperation("Copy H2D pinned", size, in, in_copy, Clock::kCall);
    CopyOperation("Copy H2D pageable", size, pageable, pageable_copy, Clock::kCall);
  }
}

void Commands() {
  Operation(
      "Fill 1 MiB",
      [](Bench& b) { return b.cu.fill32(b.memory.value(), 7, kMiB / 4, Pointer(b.stream.value)); },
      [](Bench& b) {
        return b.device->EnqueueFill(
            b.stream, {.destination = b.memory, .value = 7, .width = 4, .count = kMiB / 4});
      },
      {.clock = Clock::kQueue});
  Operation(
      "WriteValue",
      [](Bench& b) { return b.cu.write_value(Pointer(b.stream.value), b.memory.value(), 7, 0); },
      [](Bench& b) {
        return b.device->WriteValue(b.stream, {.destination = b.memory, .value = 7});
      },
      {.clock = Clock::kQueue});
  Operation(
      "WaitValue",
      [](Bench& b) {
        return b.raw.wait_value(Pointer(b.stream.value), b.memory.value(), 0, abi::kWaitGeq);
      },
      [](Bench& b) { return b.device->WaitValue(b.stream, {.source = b.memory, .value = 0}); },
      {.clock = Clock::kQueue});
  static constexpr auto kNothing = [](void*) {};
  Operation(
      "CallHost",
      [](Bench& b) { return b.cu.call_host(Pointer(b.stream.value), kNothing, nullptr); },
      [](Bench& b) {
        return b.device->CallHost(b.stream, {.function = kNothing, .data = nullptr});
      },
      {.clock = Clock::kQueue});
  static const std::string image(reinterpret_cast<const char*>(bench->source.image.data()),
                                 bench->source.image.size());
  Operation(
      "LoadModule + UnloadModule",
      [](Bench& b) {
        void* module = nullptr;
        const Code code = b.cu.module_load(&module, image.c_str());
        return Both(code, b.cu.module_unload(module));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::ModuleHandle module, b.device->LoadModule(b.source));
        return b.device->UnloadModule(module);
      },
      {.calls = 2});
  Operation(
      "FindKernel",
      [](Bench& b) {
        static const std::string name(hal::kernels::kFill);
        void* kernel = nullptr;
        return b.cu.module_kernel(&kernel, Pointer(b.module.value), name.c_str());
      },
      [](Bench& b) { return b.device->FindKernel(b.module, hal::kernels::kFill); });
  Operation(
      "LaunchKernel", [](Bench& b) { return b.Launch(Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->LaunchKernel(b.stream, b.launch()); },
      {.clock = Clock::kQueue});
}

// From the call until the host reads the value.
void WriteUntilSeen() {
  static auto* const word = static_cast<std::uint64_t*>(bench->pinned);
  static const DeviceAddress at = Must(bench->device->GetHostAddress(word), "an address");
  static std::uint64_t next = 0;
  const auto await = [] {
    while (std::atomic_ref(*word).load(std::memory_order_acquire) != next) {
    }
  };
  Operation(
      "WriteValue, until the host sees it",
      [=](Bench& b) {
        const Code code = b.cu.write_value(Pointer(b.stream.value), at.value(), ++next, 0);
        if (code == vendor::kSuccess) await();
        return code;
      },
      [=](Bench& b) {
        Status status = b.device->WriteValue(b.stream, {.destination = at, .value = ++next});
        if (status.ok()) await();
        return status;
      });
}

}  // namespace

void AddWork() {
  StreamsAndEvents();
  Copies();
  Commands();
  WriteUntilSeen();
}

}  // namespace keel::cuda::benchmarks
