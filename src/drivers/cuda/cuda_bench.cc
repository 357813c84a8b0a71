// What the device layer costs on a real device: every primitive through Keel beside the same call
// of the library (cuda_bench.h).

#include "drivers/cuda/cuda_bench.h"

#include "drivers/cuda/cuda_api.h"
#include "drivers/shared/library.h"
#include "keel/hal/driver.h"

namespace keel::cuda::benchmarks {

Result<Raw> Raw::Load() {
  Raw raw;
  KEEL_ASSIGN(vendor::Library library, vendor::Library::Open("CUDA", {"libcuda.so.1"}));
  library.Find(&raw.create, {"cuMemCreate"});
  library.Find(&raw.export_handle, {"cuMemExportToShareableHandle"});
  library.Find(&raw.import_handle, {"cuMemImportFromShareableHandle"});
  library.Find(&raw.set_access, {"cuMemSetAccess"});
  library.Find(&raw.get_access, {"cuMemGetAccess"});
  library.Find(&raw.host_allocate, {"cuMemHostAlloc"});
  library.Find(&raw.host_register, {"cuMemHostRegister_v2"});
  library.Find(&raw.synchronize, {"cuCtxSynchronize"});
  library.Find(&raw.stream_create, {"cuStreamCreateWithPriority"});
  library.Find(&raw.stream_synchronize, {"cuStreamSynchronize"});
  library.Find(&raw.event_create, {"cuEventCreate"});
  library.Find(&raw.event_synchronize, {"cuEventSynchronize"});
  library.Find(&raw.wait_value, {"cuStreamWaitValue64_v2"});
  library.Find(&raw.capture_info, {"cuStreamGetCaptureInfo_v2"});
  library.Find(&raw.add_kernel, {"cuGraphAddKernelNode_v2"});
  library.Find(&raw.set_kernel, {"cuGraphExecKernelNodeSetParams_v2"});
  library.Find(&raw.node_type, {"cuGraphNodeGetType"});
  library.Find(&raw.exec_update, {"cuGraphExecUpdate_v2"});
  KEEL_TRY(library.Missing());
  return raw;
}

namespace {

int Main(int argc, char** argv) {
  const auto driver = hal::Registry::Global().Find("cuda");
  const auto devices = (*driver)->Enumerate();
  if (!devices.ok() || devices->empty()) {
    std::fprintf(stderr, "cuda_bench: nothing to measure: %s\n",
                 devices.ok() ? "no CUDA device" : devices.status().ToString().c_str());
    return 0;
  }
  const VendorApi* const api = Must(LoadApi(), "the library");
  static Bench the_bench{*api, Must(Raw::Load(), "the library"), Must((*driver)->Open(0), "open")};
  bench = &the_bench;
  // The device has retained it: this only asks which one it is.
  if (api->context_retain(&bench->context, 0) != vendor::kSuccess) return 1;

  AddMemory();
  AddWork();
  AddGraphs();

  // Short turns, many of them; what the caller says comes later and wins.
  std::string time = "--benchmark_min_time=0.01";
  std::vector<char*> arguments = {argv[0], time.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  // The process's end gives everything back at once, an open capture too.
  std::fflush(nullptr);
  std::_Exit(0);
}

}  // namespace
}  // namespace keel::cuda::benchmarks

int main(int argc, char** argv) { return keel::cuda::benchmarks::Main(argc, argv); }
