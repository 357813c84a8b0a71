// The functions that torch.cuda.memory.CUDAPluggableAllocator and torch.cuda.MemPool take, by name,
// from a shared object that needs no PyTorch to be built: for machines without a compiler, and for
// programs that want PyTorch's own allocator on top of Keel's memory.
//
// They throw std::runtime_error, which PyTorch hands on as RuntimeError. Any thread.
#pragma once

#include <cstddef>

#define KEEL_TORCH_EXPORT __attribute__((visibility("default")))

extern "C" {
// Null for no bytes. "CUDA out of memory. ..." begins what is thrown when there is none.
KEEL_TORCH_EXPORT void* keel_torch_alloc(std::ptrdiff_t size, int device, void* stream);
// The same, but null when there is none: for PyTorch's own allocator, which then looks into its
// cache before it fails.
KEEL_TORCH_EXPORT void* keel_torch_try_alloc(std::ptrdiff_t size, int device, void* stream);
// Never throws.
KEEL_TORCH_EXPORT void keel_torch_free(void* pointer, std::ptrdiff_t size, int device,
                                       void* stream);
// Of the block's own device.
KEEL_TORCH_EXPORT void keel_torch_record_stream(void* pointer, void* stream);
KEEL_TORCH_EXPORT void keel_torch_empty_cache();
KEEL_TORCH_EXPORT void keel_torch_set_fraction(double fraction, int device);
}
