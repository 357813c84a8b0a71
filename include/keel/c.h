/* The C interface of Keel: devices, device and pinned host memory, limits, statistics, snapshots;
 * graphs, in keel/c_graph.h; devices as workers, in keel/c_task.h.
 *
 * Everything works on the allocators of the process (keel/memory/process_memory.h), so that what C,
 * C++, Python and a framework's plugin use is one memory with one limit.
 *
 * Rules for every function:
 *  - It returns a keel_status: KEEL_STATUS_OK, or a code. keel_last_error_message() then says, to
 *    the thread that made the call, what was wrong. Outputs are written on success only.
 *  - Any thread may call it at any time. Nothing throws, and no mistake of a caller crashes: a null
 *    pointer, a handle that was closed or never was one, an address that was freed, a size that
 * does not fit is KEEL_STATUS_INVALID_ARGUMENT with a message that names it. What cannot be seen is
 * a pointer to host memory that is not there.
 *  - In a child that was forked after its parent used a device, everything that needs one is
 *    KEEL_STATUS_FAILED_PRECONDITION.
 *
 * It only grows: a function keeps its name, signature and meaning, an enumerator its value. A
 * struct begins with struct_size, which the caller sets to its sizeof and which tells the library
 * how much of it there is; it grows at its end.
 *
 * docs/c-api.md is the guide. C99 and C++.
 */
#ifndef KEEL_C_H_
#define KEEL_C_H_

/* NOLINTBEGIN(modernize-*): this is C. */
#include <stddef.h>
#include <stdint.h>

#include "keel/base/version.h"

#define KEEL_C_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* --- Versions and errors -----------------------------------------------------------------------
 */

/* Which functions there are: 1 is the first, 2 has graphs, 3 has tasks, 4 has physical memory and
 * re-recorders, 5 names a worker's blocks. Later ones have what earlier ones have. */
#define KEEL_C_LEVEL 5

/* Of the library that runs, which may be newer than this header. */
KEEL_C_EXPORT int32_t keel_c_level(void);
/* As KEEL_VERSION and KEEL_VERSION_STRING. */
KEEL_C_EXPORT int32_t keel_version(void);
KEEL_C_EXPORT const char* keel_version_string(void);

typedef int32_t keel_status;
enum {
  KEEL_STATUS_OK = 0,
  KEEL_STATUS_CANCELLED = 1,
  KEEL_STATUS_UNKNOWN = 2,
  KEEL_STATUS_INVALID_ARGUMENT = 3,  /* the call is wrong: fix the caller */
  KEEL_STATUS_DEADLINE_EXCEEDED = 4, /* the time was up; the work goes on */
  KEEL_STATUS_NOT_FOUND = 5,
  KEEL_STATUS_ALREADY_EXISTS = 6,
  KEEL_STATUS_PERMISSION_DENIED = 7,
  KEEL_STATUS_RESOURCE_EXHAUSTED = 8,  /* out of memory */
  KEEL_STATUS_FAILED_PRECONDITION = 9, /* right call, wrong state */
  KEEL_STATUS_ABORTED = 10,
  KEEL_STATUS_OUT_OF_RANGE = 11,
  KEEL_STATUS_UNIMPLEMENTED = 12,
  KEEL_STATUS_INTERNAL = 13,
  KEEL_STATUS_UNAVAILABLE = 14,
  KEEL_STATUS_DEVICE_LOST = 15, /* the device faulted, what it held is gone */
  KEEL_STATUS_UNAUTHENTICATED = 16
};

/* "INVALID_ARGUMENT"; "CODE_42" for what is none. Valid until the thread's next call of it. */
KEEL_C_EXPORT const char* keel_status_name(keel_status status);
/* Of the calling thread's newest call that failed; "" if none did. Valid until the next one fails.
 * The message of an allocation that failed has several lines. */
KEEL_C_EXPORT const char* keel_last_error_message(void);
KEEL_C_EXPORT keel_status keel_last_error_status(void);
/* The vendor's own code for that, and its name; 0 and "" if there is none. */
KEEL_C_EXPORT int64_t keel_last_error_vendor_code(void);
KEEL_C_EXPORT const char* keel_last_error_vendor_name(void);

/* --- Devices ------------------------------------------------------------------------------------
 */

/* Handles. Their values say nothing; one that was closed is never handed out again. */
typedef struct keel_device_object* keel_device;
typedef struct keel_stream_object* keel_stream;

typedef struct keel_device_info {
  size_t struct_size;
  char driver[32]; /* "sim" */
  int32_t ordinal; /* among the driver's devices */
  int32_t simulated;
  char name[128];     /* for people */
  char identity[64];  /* stable over processes: a UUID or a bus address */
  uint64_t memory;    /* capacity in bytes */
  int32_t numa_node;  /* -1: not known */
  int32_t reserved_0; /* 0 */
} keel_device_info;

typedef void (*keel_device_visitor)(const keel_device_info* info, void* data);
/* Calls `visit` for every device of every driver that can be used here; opens none. */
KEEL_C_EXPORT keel_status keel_for_each_device(keel_device_visitor visit, void* data);

/* `name` is "sim:1", or "1" of the default driver; NULL or "" is its device 0 (`keel info` says
 * which driver that is). Every call gives a handle of its own to the one set of allocators that the
 * process has for the device; the first call makes that, as KEEL_ALLOC_CONF says. */
KEEL_C_EXPORT keel_status keel_device_open(const char* name, keel_device* device);
/* The handle is no more. Memory and streams stay. */
KEEL_C_EXPORT keel_status keel_device_close(keel_device device);
/* Closes the handle, and the next keel_device_open of this device makes new allocators: the way
 * back from KEEL_STATUS_DEVICE_LOST. The old ones end with their last handle and stream. */
KEEL_C_EXPORT keel_status keel_device_forget(keel_device device);
KEEL_C_EXPORT keel_status keel_device_get_info(keel_device device, keel_device_info* info);
/* What the device has free, for anybody, and in all. */
KEEL_C_EXPORT keel_status keel_device_get_memory(keel_device device, uint64_t* free_bytes,
                                                 uint64_t* total_bytes);

/* --- Streams ------------------------------------------------------------------------------------
 * Where a stream is asked for, NULL is the device's default stream, which all threads share. */

KEEL_C_EXPORT keel_status keel_stream_create(keel_device device, keel_stream* stream);
/* One that somebody made with the vendor's library, by its native value. It must outlive the handle
 * and is not destroyed with it. */
KEEL_C_EXPORT keel_status keel_stream_borrow(keel_device device, uint64_t native,
                                             keel_stream* stream);
/* Waits for its work, because memory that was freed on it may then be used by others. Memory that
 * was allocated for it stays. */
KEEL_C_EXPORT keel_status keel_stream_destroy(keel_stream stream);
/* `timeout_ns` < 0: however long it takes. */
KEEL_C_EXPORT keel_status keel_stream_synchronize(keel_device device, keel_stream stream,
                                                  int64_t timeout_ns);
/* The vendor's value, for its library. */
KEEL_C_EXPORT keel_status keel_stream_get_native(keel_device device, keel_stream stream,
                                                 uint64_t* native);

/* --- Device memory ------------------------------------------------------------------------------
 * Ordered by streams: a block that is freed is used again on its stream at once, elsewhere when the
 * work before the free is done. */

typedef struct keel_malloc_options {
  size_t struct_size;
  uint64_t alignment; /* a power of two; 0: 512 */
  const char* tag;    /* what it is for, in statistics and snapshots; NULL: none */
} keel_malloc_options;

/* `options` may be NULL. Of no bytes the address is 0, which may be freed. */
KEEL_C_EXPORT keel_status keel_malloc(keel_device device, keel_stream stream, uint64_t size,
                                      const keel_malloc_options* options, uint64_t* address);
KEEL_C_EXPORT keel_status keel_free(keel_device device, uint64_t address);
/* Work on `stream`, queued now or before keel_free, uses the block. */
KEEL_C_EXPORT keel_status keel_record_use(keel_device device, uint64_t address, keel_stream stream);

typedef struct keel_block_info {
  size_t struct_size;
  uint64_t address; /* of its first byte */
  uint64_t size;
  uint64_t requested;
  char tag[64];
} keel_block_info;

/* The live block that has the byte at `address`; KEEL_STATUS_NOT_FOUND. */
KEEL_C_EXPORT keel_status keel_find(keel_device device, uint64_t address, keel_block_info* info);

/* The device's side of a copy or a fill must be inside one live block of this device, one
 * keel_physical_memory, or one keel_output.
 *
 * Copies from and to host memory are over for the host when they return, in the order of the
 * stream: the source may be reused, the bytes are in the destination. Pageable memory goes through
 * pinned buffers. */
KEEL_C_EXPORT keel_status keel_copy_to_device(keel_device device, keel_stream stream,
                                              uint64_t destination, const void* source,
                                              uint64_t size);
KEEL_C_EXPORT keel_status keel_copy_to_host(keel_device device, keel_stream stream,
                                            void* destination, uint64_t source, uint64_t size);
/* These are queued when they return. The host memory must be pinned (keel_host_malloc) and stay as
 * it is until the stream is past them: see keel_host_record_use. */
KEEL_C_EXPORT keel_status keel_enqueue_copy_to_device(keel_device device, keel_stream stream,
                                                      uint64_t destination, const void* source,
                                                      uint64_t size);
KEEL_C_EXPORT keel_status keel_enqueue_copy_to_host(keel_device device, keel_stream stream,
                                                    void* destination, uint64_t source,
                                                    uint64_t size);
/* From block to block, queued; the ranges must not overlap. */
KEEL_C_EXPORT keel_status keel_enqueue_copy(keel_device device, keel_stream stream,
                                            uint64_t destination, uint64_t source, uint64_t size);
/* Writes `value`, `width` bytes wide (1, 2 or 4), `count` times; queued. */
KEEL_C_EXPORT keel_status keel_enqueue_fill(keel_device device, keel_stream stream,
                                            uint64_t address, uint32_t value, uint32_t width,
                                            uint64_t count);

/* --- Pinned host memory -------------------------------------------------------------------------
 */

/* `size` > 0. */
KEEL_C_EXPORT keel_status keel_host_malloc(keel_device device, uint64_t size, void** pointer);
/* NULL is nothing to do. Memory that a stream was recorded for is kept until that is done. */
KEEL_C_EXPORT keel_status keel_host_free(keel_device device, void* pointer);
KEEL_C_EXPORT keel_status keel_host_record_use(keel_device device, const void* pointer,
                                               keel_stream stream);
/* With staging_pin_limit in KEEL_ALLOC_CONF: memory of the program's own, which copies used, is
 * about to be given back to the system. Call it before. No device has any of it pinned when it
 * returns KEEL_STATUS_OK; it waits for copies that are using it. After an error a part may still be
 * pinned: keep the memory, and call it again. Without that key there is nothing to do, and it costs
 * nothing. */
KEEL_C_EXPORT keel_status keel_host_memory_gone(const void* pointer, uint64_t size);

/* --- Limits -------------------------------------------------------------------------------------
 */

/* What the process may hold of the device. Lowering it disturbs no live block. */
KEEL_C_EXPORT keel_status keel_set_limit(keel_device device, uint64_t bytes);
/* The same as a part of the device's memory, in [0, 1]. */
KEEL_C_EXPORT keel_status keel_set_fraction(keel_device device, double fraction);
KEEL_C_EXPORT keel_status keel_get_limit(keel_device device, uint64_t* bytes);
/* Pinned memory; 0: no limit. */
KEEL_C_EXPORT keel_status keel_host_set_limit(keel_device device, uint64_t bytes);
/* Give free memory back until at most `target` bytes are held; 0: all that is free. May wait. */
KEEL_C_EXPORT keel_status keel_trim(keel_device device, uint64_t target);
KEEL_C_EXPORT keel_status keel_host_trim(keel_device device, uint64_t target);

/* --- Statistics ---------------------------------------------------------------------------------
 * docs/stats.md has the meaning of every key. */

typedef struct keel_memory_stats {
  size_t struct_size;
  int64_t allocated_bytes; /* in live blocks, as rounded */
  int64_t allocated_bytes_peak;
  int64_t requested_bytes; /* the same as asked for */
  int64_t requested_bytes_peak;
  int64_t reserved_bytes; /* held of the device */
  int64_t reserved_bytes_peak;
  int64_t active_bytes; /* live, or freed and still used by a stream */
  int64_t active_bytes_peak;
  int64_t blocks; /* live */
  int64_t blocks_peak;
  int64_t allocations;         /* so far */
  int64_t frees;               /* so far */
  int64_t out_of_memory_count; /* requests that failed */
  int64_t driver_allocations;  /* calls that took memory from the device */
  int64_t driver_frees;
} keel_memory_stats;

KEEL_C_EXPORT keel_status keel_get_stats(keel_device device, keel_memory_stats* stats);

typedef void (*keel_stat_visitor)(const char* key, int64_t value, void* data);
/* Every number under its key, PyTorch's first. Of pinned host memory: keel_host_for_each_stat. */
KEEL_C_EXPORT keel_status keel_for_each_stat(keel_device device, keel_stat_visitor visit,
                                             void* data);
KEEL_C_EXPORT keel_status keel_host_for_each_stat(keel_device device, keel_stat_visitor visit,
                                                  void* data);
/* Of device and host memory. */
KEEL_C_EXPORT keel_status keel_reset_peak_stats(keel_device device);
KEEL_C_EXPORT keel_status keel_reset_accumulated_stats(keel_device device);

/* A few lines for people. `*size` is the room in `buffer` and becomes what is needed, with the zero
 * at the end; with too little room, or NULL, nothing is written: KEEL_STATUS_OUT_OF_RANGE, or OK
 * for NULL. */
KEEL_C_EXPORT keel_status keel_report(keel_device device, char* buffer, size_t* size);

/* --- Snapshots and history ----------------------------------------------------------------------
 */

typedef int32_t keel_snapshot_format;
enum {
  KEEL_SNAPSHOT_JSON = 0,
  KEEL_SNAPSHOT_PICKLE = 1 /* as PyTorch writes it; its viewer opens both */
};

/* Every segment and block of a device, or of all that the process uses (NULL), with the history
 * that is recorded. Replaces the file in one step. */
KEEL_C_EXPORT keel_status keel_write_snapshot(keel_device device, const char* path,
                                              keel_snapshot_format format);

/* Keeps the newest `capacity` events of all devices, with the stack of each if `stacks` is not 0.
 * Again: changes that. */
KEEL_C_EXPORT keel_status keel_history_enable(uint64_t capacity, int32_t stacks);
/* Records no more; what is there stays. */
KEEL_C_EXPORT keel_status keel_history_disable(void);
KEEL_C_EXPORT keel_status keel_history_clear(void);
/* Events since the last clear, also those that are no longer kept. */
KEEL_C_EXPORT keel_status keel_history_get_count(uint64_t* count);

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-*) */

#include "keel/c_graph.h" /* IWYU pragma: export */
#include "keel/c_task.h"  /* IWYU pragma: export */

#endif /* KEEL_C_H_ */
