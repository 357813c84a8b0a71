// Keel's ranges (base/ranges.h) in the profilers of the vendor.
//
// A profiler announces itself by the environment variable NVTX_INJECTION64_PATH: the file of a
// library, which is given tables of functions that it fills in with its own. That is all of the
// vendor's NVTX that is needed, so neither its headers nor a library are.
#pragma once

namespace keel::cuda {

// Sets the sink of ranges, if a profiler is announced that takes ranges in domains; its library is
// never closed. The first call does it. What goes wrong is logged (KEEL_LOG=info): a program that
// cannot be profiled runs.
void AttachProfiler();

}  // namespace keel::cuda
