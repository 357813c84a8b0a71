/* The C interface of Keel: devices as workers. Memory on any of them, callables, and tasks whose
 * order follows from what they read and write.
 *
 * Part of keel/c.h, which includes it; the rules are there. An orchestrator is the context that
 * owns a worker for each device that it is given; workers are known by their numbers, from 0.
 * docs/tasks.md explains it, and the headers in keel/task/ have the contract of what is behind each
 * function.
 */
#ifndef KEEL_C_TASK_H_
#define KEEL_C_TASK_H_

/* NOLINTBEGIN(modernize-*): this is C. */
#include "keel/c.h"
#include "keel/c_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Orchestrators ------------------------------------------------------------------------------
 */

typedef struct keel_orchestrator_object* keel_orchestrator;
typedef struct keel_task_object* keel_task;
typedef struct keel_task_call_object* keel_task_call;

typedef int32_t keel_transport;
enum {
  KEEL_TRANSPORT_THREAD = 0,  /* a thread of this process; shares its allocators */
  KEEL_TRANSPORT_PROCESS = 1, /* a process of its own, over shared memory */
  KEEL_TRANSPORT_MPI = 2      /* a rank of an MPI run: docs/tasks.md */
};

/* Who runs orchestration code. */
typedef int32_t keel_orchestration;
enum {
  KEEL_ORCHESTRATION_AUTO = 0,   /* the device if it can, else the host */
  KEEL_ORCHESTRATION_DEVICE = 1, /* KEEL_STATUS_UNIMPLEMENTED where it cannot */
  KEEL_ORCHESTRATION_HOST = 2
};

/* Zeros are the defaults. */
typedef struct keel_orchestrator_options {
  size_t struct_size;
  const char* const* devices; /* of each worker: "sim:0"; NULL or "": the default device */
  size_t device_count;        /* at least 1 */
  keel_transport transport;
  keel_orchestration orchestration;
  int64_t task_timeout_ns;    /* how long a task may run; 0: for ever */
  int64_t control_timeout_ns; /* of a copy, an allocation, a registration; 0: 60 s */
  int64_t start_timeout_ns;   /* 0: 30 s */
  int64_t stop_timeout_ns;    /* 0: 5 s */
  uint64_t shared_memory;     /* of a process, for tensors on the host; 0: 16 GiB */
  const char* worker_program; /* of a process; NULL: keel-worker, beside the library or on PATH */
} keel_orchestrator_options;

/* Starts every worker. */
KEEL_C_EXPORT keel_status keel_orchestrator_create(const keel_orchestrator_options* options,
                                                   keel_orchestrator* orchestrator);
/* The handle is no more. Cancels what has not started, waits for what runs within
 * `stop_timeout_ns`, and ends the workers. Handles of tasks stay. */
KEEL_C_EXPORT keel_status keel_orchestrator_close(keel_orchestrator orchestrator);
KEEL_C_EXPORT keel_status keel_orchestrator_get_worker_count(keel_orchestrator orchestrator,
                                                             uint32_t* count);
/* Until everything that was submitted before is done, whatever came of it. `timeout_ns` < 0:
 * however long it takes. */
KEEL_C_EXPORT keel_status keel_orchestrator_wait_all(keel_orchestrator orchestrator,
                                                     int64_t timeout_ns);

/* --- Memory on a worker -------------------------------------------------------------------------
 */

KEEL_C_EXPORT keel_status keel_worker_malloc(keel_orchestrator orchestrator, uint32_t worker,
                                             uint64_t size, uint64_t* address);
/* Does not wait: the memory goes when the tasks that were submitted with it are done. */
KEEL_C_EXPORT keel_status keel_worker_free(keel_orchestrator orchestrator, uint32_t worker,
                                           uint64_t address);
/* Done when they return. They wait for the tasks, submitted before, that are in their way; the
 * range must lie in one block of keel_worker_malloc or keel_worker_register_memory. */
KEEL_C_EXPORT keel_status keel_worker_copy_to(keel_orchestrator orchestrator, uint32_t worker,
                                              uint64_t destination, const void* source,
                                              uint64_t size);
KEEL_C_EXPORT keel_status keel_worker_copy_from(keel_orchestrator orchestrator, uint32_t worker,
                                                void* destination, uint64_t source, uint64_t size);
/* Memory of the worker's device that somebody else allocated: resident tensors may be in it, and it
 * is never freed here. */
KEEL_C_EXPORT keel_status keel_worker_register_memory(keel_orchestrator orchestrator,
                                                      uint32_t worker, uint64_t address,
                                                      uint64_t size);
/* KEEL_STATUS_FAILED_PRECONDITION while tasks use it. */
KEEL_C_EXPORT keel_status keel_worker_unregister_memory(keel_orchestrator orchestrator,
                                                        uint32_t worker, uint64_t address);

/* The same, for programs whose workers may be lost: a worker that was started again is empty, and a
 * new block may have the address of one that was lost. `block` is the number of one block, which no
 * other has; calls with it are KEEL_STATUS_UNAVAILABLE once that was lost, whoever has the address
 * then. 0: the block that has the address now. For tasks: keel_submit_options. */
KEEL_C_EXPORT keel_status keel_worker_malloc_block(keel_orchestrator orchestrator, uint32_t worker,
                                                   uint64_t size, uint64_t* address,
                                                   uint64_t* block);
KEEL_C_EXPORT keel_status keel_worker_free_block(keel_orchestrator orchestrator, uint32_t worker,
                                                 uint64_t address, uint64_t block);
KEEL_C_EXPORT keel_status keel_worker_copy_to_block(keel_orchestrator orchestrator, uint32_t worker,
                                                    uint64_t destination, const void* source,
                                                    uint64_t size, uint64_t block);
KEEL_C_EXPORT keel_status keel_worker_copy_from_block(keel_orchestrator orchestrator,
                                                      uint32_t worker, void* destination,
                                                      uint64_t source, uint64_t size,
                                                      uint64_t block);
KEEL_C_EXPORT keel_status keel_worker_register_block(keel_orchestrator orchestrator,
                                                     uint32_t worker, uint64_t address,
                                                     uint64_t size, uint64_t* block);
KEEL_C_EXPORT keel_status keel_worker_unregister_block(keel_orchestrator orchestrator,
                                                       uint32_t worker, uint64_t address,
                                                       uint64_t block);

typedef struct keel_worker_report {
  size_t struct_size;
  char device[64];
  int32_t up;
  keel_status lost; /* why it is not, or was not last */
  char lost_message[256];
  uint64_t restarts;
  uint64_t tasks;           /* that ended there */
  uint64_t bytes_to_device; /* tensors and copies */
  uint64_t bytes_from_device;
  uint64_t uploads;   /* of callables */
  uint64_t callables; /* contents that are stored there now */
} keel_worker_report;

KEEL_C_EXPORT keel_status keel_worker_get_report(keel_orchestrator orchestrator, uint32_t worker,
                                                 keel_worker_report* report);

/* --- Tensors and arguments ----------------------------------------------------------------------
 */

typedef uint8_t keel_data_type;
enum {
  KEEL_TYPE_UINT8 = 0,
  KEEL_TYPE_INT8 = 1,
  KEEL_TYPE_UINT16 = 2,
  KEEL_TYPE_INT16 = 3,
  KEEL_TYPE_UINT32 = 4,
  KEEL_TYPE_INT32 = 5,
  KEEL_TYPE_UINT64 = 6,
  KEEL_TYPE_INT64 = 7,
  KEEL_TYPE_FLOAT16 = 8,
  KEEL_TYPE_BFLOAT16 = 9,
  KEEL_TYPE_FLOAT32 = 10,
  KEEL_TYPE_FLOAT64 = 11,
  KEEL_TYPE_BOOL = 12,
  KEEL_TYPE_COMPLEX64 = 13,
  KEEL_TYPE_COMPLEX128 = 14
};

/* Of keel_tensor: it is on the worker's device already, and is passed through. */
enum { KEEL_TENSOR_RESIDENT = 1 };

/* Contiguous elements. 40 bytes, which never grow. */
typedef struct keel_tensor {
  uint64_t address;  /* of the host, or, resident, of the worker's device */
  uint32_t shape[6]; /* those from `rank` on are 0 */
  uint8_t rank;      /* 0: one element */
  keel_data_type type;
  uint8_t flags;
  uint8_t reserved[5]; /* 0 */
} keel_tensor;

/* What a task does with a tensor. */
typedef uint8_t keel_tag;
enum { KEEL_TAG_IN = 1, KEEL_TAG_OUT = 2, KEEL_TAG_IN_OUT = 3 };

/* What a task is called with. A scalar is up to 64 bits from the front, the rest zeros. A tensor on
 * the host must stay where it is until the task is done. */
typedef struct keel_task_arguments {
  size_t struct_size;
  const keel_tensor* tensors;
  const keel_tag* tags; /* of each tensor */
  size_t tensor_count;
  const uint64_t* scalars;
  size_t scalar_count;
} keel_task_arguments;

/* --- Callables ----------------------------------------------------------------------------------
 * Known by numbers of the orchestrator's. */

/* One module of kernels: `code` in the device's own format, or, if `code` is NULL, the name of a
 * registered set, "keel" for those that Keel brings. These two come in arrays, and never grow. */
typedef struct keel_image_part {
  const void* code;
  uint64_t size;
  const char* set;
} keel_image_part;

typedef struct keel_image_kernel {
  const char* name;
  uint32_t part;       /* its place in `parts` */
  uint32_t reserved_0; /* 0 */
} keel_image_kernel;

/* A kernel's number is its place in `kernels`. */
typedef struct keel_image_content {
  size_t struct_size;
  const void* orchestration; /* a shared object; NULL: kernels only, for a function */
  uint64_t orchestration_size;
  const keel_image_part* parts;
  size_t part_count;
  const keel_image_kernel* kernels;
  size_t kernel_count;
} keel_image_content;

/* The bytes of an image. `*size` is the room in `buffer` and becomes what is needed; with too
 * little room, or NULL, nothing is written: KEEL_STATUS_OUT_OF_RANGE, or OK for NULL. */
KEEL_C_EXPORT keel_status keel_image_build(const keel_image_content* content, void* buffer,
                                           uint64_t* size);

/* On every worker; equal images are stored once for each device, and counted. */
KEEL_C_EXPORT keel_status keel_orchestrator_register_image(keel_orchestrator orchestrator,
                                                           const void* image, uint64_t size,
                                                           uint64_t* callable);

/* What a function is called with; all of it is valid during the call only. Every tensor has an
 * address of the device by now. */
typedef struct keel_task_context {
  size_t struct_size;
  keel_task_call call;    /* for keel_task_call_launch */
  keel_device device;     /* where the task runs */
  keel_stream stream;     /* where the work goes; it is waited for before the task ends */
  uint64_t native_stream; /* the same for the vendor's library */
  const keel_tensor* tensors;
  const keel_tag* tags;
  size_t tensor_count;
  const uint64_t* scalars;
  size_t scalar_count;
  uint32_t kernel_count;
  uint32_t reserved_0; /* 0 */
} keel_task_context;

/* Called by the worker's thread for each task, one at a time for each worker; but after a timeout
 * the worker goes on in another thread, and the function, which may still run in the old one, can
 * launch nothing any more (KEEL_STATUS_CANCELLED). Another status than OK is the task's outcome;
 * the message is that of the function's own newest call that failed, if that failed so. */
typedef keel_status (*keel_task_function)(const keel_task_context* context, void* data);

/* A function of this process instead of orchestration code: KEEL_TRANSPORT_THREAD only. `kernels`
 * is an image whose kernels it launches, or NULL. `destroy` may be NULL; it is called by any
 * thread, once, when the function was unregistered and its last task has ended, and not at all if
 * this call fails. */
KEEL_C_EXPORT keel_status keel_orchestrator_register_function(
    keel_orchestrator orchestrator, keel_task_function function, void* data,
    keel_destroy_function destroy, const void* kernels, uint64_t kernels_size, uint64_t* callable);
/* Tasks that were submitted with it still run. */
KEEL_C_EXPORT keel_status keel_orchestrator_unregister(keel_orchestrator orchestrator,
                                                       uint64_t callable);

/* Bytes of the device; or, where `value` is not NULL, the 1 to 16 bytes there, which are read at
 * once. They come in arrays, and never grow. */
typedef struct keel_launch_argument {
  uint64_t address;
  uint64_t extent;
  keel_access access;
  int32_t reserved_0; /* 0 */
  const void* value;
  uint64_t value_size;
} keel_launch_argument;

/* Launches a kernel of the callable by its number, in the order of the calls. `dims` may be NULL:
 * one thread. A launch that was refused makes the task fail even if the function ignores it. */
KEEL_C_EXPORT keel_status keel_task_call_launch(keel_task_call call, uint32_t kernel,
                                                const keel_launch_dims* dims,
                                                const keel_launch_argument* arguments,
                                                size_t argument_count);

/* --- Tasks --------------------------------------------------------------------------------------
 */

/* Zeros are the defaults. */
typedef struct keel_submit_options {
  size_t struct_size;
  const uint32_t* worker; /* NULL: where its resident tensors are, or anywhere */
  int64_t timeout_ns;     /* 0: as the orchestrator's tasks; < 0: for ever */
  /* Of each resident tensor that has elements, in their order, of a group all members' one after
   * the other: the number of its block (keel_worker_malloc_block), KEEL_STATUS_UNAVAILABLE if that
   * was lost; 0: the block that has the address now. None: their addresses decide. Read during the
   * call. */
  const uint64_t* blocks;
  size_t block_count;
} keel_submit_options;

/* `arguments` and `options` may be NULL. An error names the argument, and nothing was submitted. */
KEEL_C_EXPORT keel_status keel_task_submit(keel_orchestrator orchestrator, uint64_t callable,
                                           const keel_task_arguments* arguments,
                                           const keel_submit_options* options, keel_task* task);
/* In the list of keel_task_submit_group: this member names no worker. */
#define KEEL_ANY_WORKER UINT32_MAX

/* One task for each member, all started together or none; done when all are, with the first error.
 * `workers` names one for each, or KEEL_ANY_WORKER, or is NULL: who names none runs where its
 * resident tensors are, or anywhere. */
KEEL_C_EXPORT keel_status keel_task_submit_group(keel_orchestrator orchestrator, uint64_t callable,
                                                 const keel_task_arguments* const* members,
                                                 size_t member_count, const uint32_t* workers,
                                                 const keel_submit_options* options,
                                                 keel_task* task);
/* The outcome; KEEL_STATUS_DEADLINE_EXCEEDED if it is not done by then (it goes on: ask
 * keel_task_get_done). `timeout_ns` < 0: however long it takes. */
KEEL_C_EXPORT keel_status keel_task_wait(keel_task task, int64_t timeout_ns);
/* Never waits. */
KEEL_C_EXPORT keel_status keel_task_get_done(keel_task task, int32_t* done);
/* The outcome of a task that is done; OK before. */
KEEL_C_EXPORT keel_status keel_task_get_error(keel_task task);
/* Where it ran; of a group, its first member. KEEL_STATUS_FAILED_PRECONDITION before it started. */
KEEL_C_EXPORT keel_status keel_task_get_worker(keel_task task, uint32_t* worker);
/* As messages call it. */
KEEL_C_EXPORT keel_status keel_task_get_id(keel_task task, uint64_t* id);
/* The handle is no more. The task goes on. */
KEEL_C_EXPORT keel_status keel_task_close(keel_task task);

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-*) */

#endif /* KEEL_C_TASK_H_ */
