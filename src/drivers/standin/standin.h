// The core of the stand-in driver libraries, for tests: what a vendor's driver library does, on the
// simulated device, without any vendor's names, numbers or structures.
//
// What it is for: a stand-in is a small shared object that exports a vendor's entry points. Keel's
// driver for that vendor is pointed to it (KEEL_<VENDOR>_LIBRARY) and then runs the conformance
// suite, a sweep over failing entry points and the tests of loading on any machine. It is never
// installed and no part of libkeel.so. A stand-in has its own copy of the simulated device, so that
// nothing but the vendor's binary interface connects it with the Keel that calls it.
//
// What it is not: a copy of the device layer's contracts. It behaves as real driver libraries do
// where those differ (what they answer was tried out on one): whoever has no context gets an error,
// a part of a mapping is a wrong value and never a wrong state, unmapping goes over holes, a lost
// context stays lost in this process, an imported descriptor has no size, a call inside a host
// function is not permitted.
//
// A vendor's file (src/drivers/<vendor>/<vendor>_standin.cc) exports functions that first ask
// Enter, then call one function here, and turn its Cause into the vendor's code. Handles are void*
// and opaque: any value may be passed, one that is not alive is kInvalidHandle. Out-pointers must
// not be null unless it says so; the vendor's file checks. Thread-safe.
//
// KEEL_STANDIN has the keys of KEEL_SIM (keel/drivers/sim.h) but for unified, which is always 1,
// and:
//   devices:N   0 is allowed: a driver without a device
//   init:CODE   initialising fails with this code of the vendor's
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "keel/base/export.h"
#include "keel/hal/capabilities.h"
#include "keel/hal/command.h"
#include "keel/hal/types.h"

namespace keel::standin {

// Why a call failed, for the vendor's file to put into the vendor's code.
enum class Cause {
  kOk,
  kInvalidValue,
  kOutOfMemory,
  kNotInitialized,  // also in a forked child, where no driver library works
  kNoDevice,
  kInvalidDevice,
  kInvalidImage,      // not a module, or a kernel that the stand-in has no body for
  kInvalidContext,    // none is current, or what was given is none
  kContextDestroyed,  // the current one is not retained any more
  kInvalidHandle,
  kIllegalState,
  kNotFound,
  kNotReady,  // of a query: still running. No error
  kLost,      // a fault: every later call of the context gives it again
  kPeerAlreadyEnabled,
  kPeerNotEnabled,
  kPeerUnsupported,
  kHostAlreadyRegistered,
  kHostNotRegistered,
  kNotPermitted,
  kNotSupported,
  kCaptureUnsupported,  // the call is not allowed while something is captured
  kCaptureInvalidated,
  kCaptureMerge,
  kCaptureUnmatched,
  kCaptureUnjoined,
  kCaptureIsolation,
  kCaptureImplicit,
  kCapturedEvent,
  kCaptureWrongThread,
  kUpdateRefused,
  kUnknown,
};

using Address = std::uint64_t;

// --- Entering ------------------------------------------------------------------------------------

enum class Needs { kNothing, kInitialized };

// What an entry point does before anything else; it goes on only when both are empty.
struct Gate {
  std::optional<int> code;  // the vendor's, that a test asked for
  Cause cause = Cause::kOk;
};

// Counts the call, fails it if a test wants that, and refuses it before Initialize, in a forked
// child and inside a host function. `entry` is the exported name.
Gate Enter(const char* entry, Needs needs = Needs::kInitialized);

// --- Devices and contexts ------------------------------------------------------------------------

// Reads KEEL_STANDIN, once. Fails with the code that it asks for (init:CODE), and in a child that
// was forked afterwards.
Gate Initialize();

int DeviceCount();
// Without driver. kInvalidDevice.
Cause DescribeDevice(int device, hal::DeviceInfo* info);
Cause DeviceCapabilities(int device, hal::Capabilities* capabilities);

// The primary context of a device: one object for ever, which works while it is retained. When the
// last reference goes, everything of it is gone but virtual memory, which belongs to no context.
// kLost for one that was lost, now and always.
Cause RetainPrimary(void** context, int device);
Cause ReleasePrimary(int device);
// Null without one.
Cause GetCurrent(void** context);
// Null for none.
Cause SetCurrent(void* context);
Cause DeviceOf(void* context, int* device);
// Waits for all work of the current context.
Cause SynchronizeContext();

// --- Memory --------------------------------------------------------------------------------------

// All three are of the current context. Free waits for all of its work.
Cause GetMemoryInfo(std::size_t* free, std::size_t* total);
Cause AllocatePlain(Address* address, std::size_t size);
Cause FreePlain(Address address);

// Virtual memory needs no context. Changes of mappings are for whole ones (kInvalidValue), memory
// is mapped whole (kNotSupported), Unmap may go over holes.
Cause CreateMemory(std::uint64_t* memory, std::size_t size, int device,
                   const hal::MemoryOptions& options);
Cause ReleaseMemory(std::uint64_t memory);
Cause ExportMemory(int* descriptor, std::uint64_t memory);
// kUnknown for a descriptor of something else.
Cause ImportMemory(std::uint64_t* memory, int descriptor);
Cause ReserveAddress(Address* address, std::size_t size, std::size_t alignment, Address hint);
Cause FreeAddress(Address address, std::size_t size);
Cause Map(Address address, std::size_t size, std::size_t offset, std::uint64_t memory);
Cause Unmap(Address address, std::size_t size);
struct Grant {
  int device = 0;
  hal::Access access = hal::Access::kNone;
};
Cause SetAccess(Address address, std::size_t size, std::span<const Grant> grants);
Cause GetAccess(hal::Access* access, Address address, int device);

// Of the current context.
Cause AllocateHost(void** pointer, std::size_t size, bool write_combined);
Cause FreeHost(void* pointer);
Cause RegisterHost(void* pointer, std::size_t size);
Cause UnregisterHost(void* pointer);
Cause GetHostAddress(Address* address, const void* pointer);

// What a library knows of an address: kPageable is all that it does not know.
enum class MemoryKind { kPageable, kPinned, kDevice };
MemoryKind KindOf(Address address);

// Not of itself: no device is its own peer.
Cause CanAccessPeer(bool* can, int device, int peer);
// Of the current context, to memory of the device of `context`.
Cause EnablePeer(void* context);
Cause DisablePeer(void* context);

// --- Streams and events --------------------------------------------------------------------------

// Instead of a handle: the default streams of the current context.
inline void* const kNullStream = nullptr;  // the legacy one
inline void* const kLegacyStream = reinterpret_cast<void*>(1);
inline void* const kPerThreadStream = reinterpret_cast<void*>(2);

// A stream that was made knows its context: calls with it need no current one, but for copies and
// fills. A query of the legacy default stream covers the blocking streams of the context too; that
// their work runs in the order of all of them is not simulated.
Cause CreateStream(void** stream, bool blocking, int priority);
Cause DestroyStream(void* stream);
Cause GetStreamContext(void* stream, void** context);
Cause QueryStream(void* stream);

Cause CreateEvent(void** event, bool timing);
Cause DestroyEvent(void* event);
Cause RecordEvent(void* event, void* stream);
Cause QueryEvent(void* event);
Cause GetElapsed(float* milliseconds, void* start, void* end);
Cause WaitEvent(void* stream, void* event);

// --- Kernels -------------------------------------------------------------------------------------

// One kernel of a module, as its image describes it.
struct KernelEntry {
  std::string name;
  std::vector<std::uint32_t> parameter_sizes;
};
// Kernels that the stand-in knows by name and parameters run on the host; a launch of any other is
// kInvalidImage. The bodies are those of hal/standard_kernels.h, and reach memory as a device does:
// pointers are values, and an address that is not mapped is a fault when the kernel runs.
Cause LoadModule(void** module, std::span<const KernelEntry> kernels);
Cause UnloadModule(void* module);
Cause FindKernel(void** kernel, void* module, std::string_view name);

// --- Work ----------------------------------------------------------------------------------------

// One side of a copy.
struct Place {
  enum class Side {
    kHost,
    kDevice,  // of the stream's device, or of any that can use the address
    kAny,     // whatever the address is
  };
  Side side = Side::kAny;
  Address address = 0;
  void* context = nullptr;  // kDevice: of this device, and no other
};
struct Transfer {
  Place to, from;
  std::size_t size = 0;
};
struct Launch {
  void* kernel = nullptr;
  hal::LaunchDims dims;
  void** arguments = nullptr;  // a pointer to each value, as many as the kernel has parameters
};
struct Child {
  void* graph = nullptr;
};

// What can be put on a stream (all but EmptyNode and Child), and what can be a node of a graph. In
// the order of hal::Command.
using Work = std::variant<hal::EmptyNode, Launch, Transfer, hal::Fill, hal::HostCall,
                          hal::ValueWrite, hal::ValueWait, Child>;

Cause Enqueue(void* stream, const Work& work);

// --- Captures and graphs -------------------------------------------------------------------------

// The thread's own mode of this library, with the numbers of hal::CaptureMode; global at first.
Cause ExchangeCaptureMode(int* mode);
Cause BeginCapture(void* stream, int mode);
Cause EndCapture(void* stream, void** graph);
struct CaptureInfo {
  hal::CaptureState state = hal::CaptureState::kNone;
  std::uint64_t id = 0;             // of the capture, while it is active
  void* const* frontier = nullptr;  // lives until the next call with this stream
  std::size_t frontier_size = 0;
};
Cause GetCaptureInfo(void* stream, CaptureInfo* info);

// A graph belongs to no device until its first node is added or it is instantiated.
Cause CreateGraph(void** graph);
Cause DestroyGraph(void* graph);
// `context` says whose node it is where the work does not; null: the current one.
Cause AddNode(void** node, void* graph, std::span<void* const> dependencies, const Work& work,
              void* context);
Cause GetNodes(void* graph, std::vector<void*>* nodes);
// The index in Work.
Cause GetNodeKind(void* node, std::size_t* kind);
// What a launch, a write or a wait does, but for the arguments of a launch; kInvalidValue for a
// node of another kind.
Cause GetNodeWork(void* node, Work* work);
Cause GetNodeDependencies(void* node, std::vector<void*>* dependencies);

Cause Instantiate(void** exec, void* graph);
Cause DestroyExec(void* exec);
Cause SetNode(void* exec, void* node, const Work& work, void* context);
struct UpdateOutcome {
  enum class Why { kNone, kTopologyChanged, kKindChanged };
  Why why = Why::kNone;
  void* node = nullptr;  // of the new graph, where one is to blame
};
// kUpdateRefused: *outcome says why.
Cause UpdateExec(void* exec, void* graph, UpdateOutcome* outcome);
Cause LaunchGraph(void* exec, void* stream);
// There is nowhere to hand it to: says whether it could be launched there.
Cause UploadGraph(void* exec, void* stream);

}  // namespace keel::standin

// --- For tests: exported by every stand-in -------------------------------------------------------

extern "C" {
// After `skip` more calls of `entry` (of any entry point if null) the next one fails with the
// vendor's `code`, once, and does nothing. A second call replaces the first; `skip` < 0 takes it
// back.
KEEL_EXPORT void keel_standin_fail(const char* entry, int skip, int code);
// The entry point that failed because of keel_standin_fail; null if none did since its last call.
KEEL_EXPORT const char* keel_standin_failed();
// Calls of entry points so far, but for those that only name errors.
KEEL_EXPORT unsigned long keel_standin_calls();
// Their names, each once and with a space after it. Lives until the thread asks again.
KEEL_EXPORT const char* keel_standin_called();
// What was created and not given back: memory, ranges, mappings, streams, events, modules, graphs,
// instantiated graphs, pinned memory, retained contexts.
KEEL_EXPORT int keel_standin_alive();
// The same in words, for messages. Lives until the thread asks again.
KEEL_EXPORT const char* keel_standin_describe_alive();
}
