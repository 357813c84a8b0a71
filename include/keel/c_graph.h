/* The C interface of Keel: graphs that are recorded once and replayed while what they work on
 * moves.
 *
 * Part of keel/c.h, which includes it; the rules are there. A program is a list of commands over
 * bindings, an executable is a program on its device, a lease is one step of it, an output is a
 * result that is kept where it was made. docs/graphs.md explains them, and the headers in
 * keel/graph/ have the contract of what is behind each function.
 *
 * A builder, a lease, an output and a re-recorder are one thread's at a time: a call while another
 * one works with the same is KEEL_STATUS_FAILED_PRECONDITION. Everything else is any thread's.
 */
#ifndef KEEL_C_GRAPH_H_
#define KEEL_C_GRAPH_H_

/* NOLINTBEGIN(modernize-*): this is C. */
#include "keel/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Kernels ------------------------------------------------------------------------------------
 * A program keeps what its kernels need: module and kernel may be closed when they were used. */

typedef struct keel_module_object* keel_module;
typedef struct keel_kernel_object* keel_kernel;

/* The kernels that Keel brings (keel/hal/standard_kernels.h): "keel_add", "keel_matmul", ... */
KEEL_C_EXPORT keel_status keel_module_load_standard(keel_device device, keel_module* module);
/* Code in the device's own format; for the simulated device an ELF library. */
KEEL_C_EXPORT keel_status keel_module_load_image(keel_device device, const void* image,
                                                 uint64_t size, keel_module* module);
KEEL_C_EXPORT keel_status keel_module_load_file(keel_device device, const char* path,
                                                keel_module* module);
KEEL_C_EXPORT keel_status keel_module_close(keel_module module);

/* KEEL_STATUS_NOT_FOUND: the module has no kernel of that name. */
KEEL_C_EXPORT keel_status keel_kernel_find(keel_module module, const char* name,
                                           keel_kernel* kernel);
/* One that was loaded with the vendor's library, by its native value. It must outlive everything
 * that was recorded with it; whether it is one is seen when it is recorded. */
KEEL_C_EXPORT keel_status keel_kernel_borrow(keel_device device, uint64_t native,
                                             keel_kernel* kernel);
KEEL_C_EXPORT keel_status keel_kernel_close(keel_kernel kernel);

/* --- Programs -----------------------------------------------------------------------------------
 */

typedef struct keel_program_builder_object* keel_program_builder;
typedef struct keel_program_object* keel_program;

/* What a program does with a binding. */
typedef int32_t keel_binding_access;
enum {
  KEEL_BINDING_IN = 0,
  KEEL_BINDING_OUT = 1, /* all of it that matters */
  KEEL_BINDING_IN_OUT = 2,
  KEEL_BINDING_SCRATCH = 3, /* within a step; nobody else sees it */
  KEEL_BINDING_RESIDENT = 4 /* reads and writes; promised to stay where it is */
};

/* How a recording, whose addresses are fixed, gets to bytes that move. Bindings that share memory
 * which one of them writes see each other's writes where a command reaches the caller's memory, and
 * not where they are copied: give such bindings a policy, because AUTO changes between these. */
typedef int32_t keel_policy;
enum {
  /* The cheapest, as measured, of copy, patch (retrace where a library uses it) and, for buffers
   * that bring their physical memory, remap. Every change is reported. */
  KEEL_POLICY_AUTO = 0,
  KEEL_POLICY_RESIDENT = 1, /* a move is an error */
  KEEL_POLICY_IN_PLACE = 2, /* keel_lease_get_address, keel_lease_hold */
  KEEL_POLICY_COPY = 3,     /* into and out of the slot, by the graph */
  KEEL_POLICY_PATCH = 4,    /* explicit commands only */
  KEEL_POLICY_REMAP = 5,    /* keel_physical_memory is mapped under the slot's address */
  KEEL_POLICY_RETRACE = 6   /* traced commands are traced again */
};

/* What a command does with an operand. */
typedef int32_t keel_access;
enum { KEEL_ACCESS_READ = 1, KEEL_ACCESS_WRITE = 2, KEEL_ACCESS_READ_WRITE = 3 };

/* A part of a binding. These two come in arrays, and never grow. */
typedef struct keel_operand {
  uint32_t binding;
  keel_access access; /* not looked at for copies and fills */
  uint64_t offset;
  uint64_t extent; /* 0: the rest of the binding */
} keel_operand;

/* An operand; or, where `value` is not NULL, the 1 to 16 bytes there, which are read at once. */
typedef struct keel_kernel_argument {
  keel_operand operand;
  const void* value;
  uint64_t value_size;
} keel_kernel_argument;

typedef struct keel_launch_dims {
  size_t struct_size;
  uint32_t grid[3]; /* a 0 is a 1 */
  uint32_t block[3];
  uint64_t shared_memory;
} keel_launch_dims;

/* `data` of a function goes with the last use of the program, by this; NULL: nothing to do. It is
 * called by any thread, once, and not at all if the function that took `data` failed. */
typedef void (*keel_destroy_function)(void* data);

/* Runs on a thread of the driver's when the stream reaches it. It calls nothing of the device, and
 * does not run if the device is lost before. */
typedef void (*keel_host_function)(void* data);

/* What a traced or eager command is called with; all of it is valid during the call only. */
typedef struct keel_trace_context {
  size_t struct_size;
  keel_device device;
  keel_stream stream;        /* where the work goes; for every function of keel/c.h */
  uint64_t native_stream;    /* the same for the vendor's library */
  const uint64_t* addresses; /* where each of the command's uses begins, in their order */
  size_t address_count;
  int32_t capturing;  /* 0 in an eager step, a warm-up for example */
  int32_t reserved_0; /* 0 */
  uint64_t* graph;    /* of a recorded command that is to give a graph: where to; else NULL */
} keel_trace_context;

/* Puts work on the stream. It may be called any number of times, by the thread that launches a
 * step, for different addresses. While it is captured nothing may wait for the stream, and memory
 * must not be allocated or freed on it. Another status than OK ends the step with that; the message
 * is that of the function's own newest call that failed, if that failed so. It may launch other
 * executables, not the one that calls it, nor one with the same scratch arena. */
typedef keel_status (*keel_trace_function)(const keel_trace_context* context, void* data);

/* For this device. Ends with keel_program_builder_build or _discard. */
KEEL_C_EXPORT keel_status keel_program_builder_create(keel_device device, const char* name,
                                                      keel_program_builder* builder);
KEEL_C_EXPORT keel_status keel_program_builder_discard(keel_program_builder builder);
/* `*binding` is its number: 0, 1, ... */
KEEL_C_EXPORT keel_status keel_program_builder_bind(keel_program_builder builder, const char* name,
                                                    uint64_t size, keel_binding_access access,
                                                    keel_policy policy, uint32_t* binding);

/* Commands run in the order in which they are added, each after the one before. What is wrong with
 * one is said by keel_program_builder_build. `dims` may be NULL: one thread. */
KEEL_C_EXPORT keel_status keel_program_builder_kernel(keel_program_builder builder,
                                                      keel_kernel kernel,
                                                      const keel_launch_dims* dims,
                                                      const keel_kernel_argument* arguments,
                                                      size_t argument_count);
KEEL_C_EXPORT keel_status keel_program_builder_copy(keel_program_builder builder,
                                                    const keel_operand* destination,
                                                    const keel_operand* source);
/* `value` is `width` bytes wide (1, 2 or 4) and fills the operand. */
KEEL_C_EXPORT keel_status keel_program_builder_fill(keel_program_builder builder,
                                                    const keel_operand* destination, uint32_t value,
                                                    uint32_t width);
KEEL_C_EXPORT keel_status keel_program_builder_call(keel_program_builder builder,
                                                    keel_host_function function, void* data,
                                                    keel_destroy_function destroy);
/* A library's work, which is captured from a stream and becomes a part of the graph. */
KEEL_C_EXPORT keel_status keel_program_builder_traced(keel_program_builder builder,
                                                      const char* name, const keel_operand* uses,
                                                      size_t use_count,
                                                      keel_trace_function function, void* data,
                                                      keel_destroy_function destroy);
/* The same of a library that makes graphs by itself. While it is captured the function puts nothing
 * on the stream and gives, by `*context->graph`, the vendor's value of a graph for the addresses.
 * It stays the function's, and is copied at once; what it works with must live as long as the
 * executable. In an eager step the function puts the work on the stream. */
KEEL_C_EXPORT keel_status keel_program_builder_recorded(keel_program_builder builder,
                                                        const char* name, const keel_operand* uses,
                                                        size_t use_count,
                                                        keel_trace_function function, void* data,
                                                        keel_destroy_function destroy);
/* Work that cannot be captured: called in every step, between two graphs. */
KEEL_C_EXPORT keel_status keel_program_builder_eager(keel_program_builder builder, const char* name,
                                                     const keel_operand* uses, size_t use_count,
                                                     keel_trace_function function, void* data,
                                                     keel_destroy_function destroy);
/* The builder is no more, also when it fails. */
KEEL_C_EXPORT keel_status keel_program_builder_build(keel_program_builder builder,
                                                     keel_program* program);

/* The number of a binding; KEEL_STATUS_NOT_FOUND names those that there are. */
KEEL_C_EXPORT keel_status keel_program_find(keel_program program, const char* name,
                                            uint32_t* binding);
/* What its scratch bindings take of a shared arena. */
KEEL_C_EXPORT keel_status keel_program_get_scratch_bytes(keel_program program, uint64_t* bytes);
/* The handle is no more. Executables keep the program. */
KEEL_C_EXPORT keel_status keel_program_close(keel_program program);

/* --- Memory that executables share --------------------------------------------------------------
 * Executables keep both: the handles may be closed. */

typedef struct keel_scratch_arena_object* keel_scratch_arena;
typedef struct keel_memory_budget_object* keel_memory_budget;

/* Scratch for executables whose steps follow each other (keel/graph/scratch_arena.h). */
KEEL_C_EXPORT keel_status keel_scratch_arena_create(keel_device device, uint64_t size,
                                                    keel_scratch_arena* arena);
KEEL_C_EXPORT keel_status keel_scratch_arena_close(keel_scratch_arena arena);
/* What the slots of several executables may hold together (keel/graph/memory_budget.h). */
KEEL_C_EXPORT keel_status keel_memory_budget_create(uint64_t limit, keel_memory_budget* budget);
KEEL_C_EXPORT keel_status keel_memory_budget_get_used(keel_memory_budget budget, uint64_t* bytes);
KEEL_C_EXPORT keel_status keel_memory_budget_close(keel_memory_budget budget);

/* --- Physical memory ----------------------------------------------------------------------------
 * For bindings that own whole handles, with the policy KEEL_POLICY_REMAP: the memory itself is
 * mapped where the graph looks, and nothing is copied (keel/memory/physical_block.h). */

typedef struct keel_physical_memory_object* keel_physical_memory;

/* What sizes are multiples of. KEEL_STATUS_UNIMPLEMENTED: the device has no virtual memory. */
KEEL_C_EXPORT keel_status keel_physical_memory_get_granularity(keel_device device, uint64_t* bytes);
/* A binding takes memory of its own size, rounded up to the granularity: no more and no less. Of
 * the limit and in the statistics of the device's allocator. */
KEEL_C_EXPORT keel_status keel_physical_memory_create(keel_device device, uint64_t size,
                                                      keel_physical_memory* memory);
/* Where the caller fills and reads it, with every function of keel/c.h that takes an address inside
 * a block, wherever else it is mapped. Not for keel_free. */
KEEL_C_EXPORT keel_status keel_physical_memory_get(keel_physical_memory memory, uint64_t* address,
                                                   uint64_t* size);
/* The handle and the address are no more. An executable keeps the memory until other memory is
 * mapped in its place. Waits until the device's own streams are past what they have queued;
 * KEEL_STATUS_DEADLINE_EXCEEDED: they are not, and nothing changed. Work on a borrowed stream that
 * uses the address must be done. `timeout_ns` < 0: however long it takes. */
KEEL_C_EXPORT keel_status keel_physical_memory_close(keel_physical_memory memory,
                                                     int64_t timeout_ns);

/* --- Executables --------------------------------------------------------------------------------
 */

typedef struct keel_executable_object* keel_executable;
typedef struct keel_lease_object* keel_lease;
typedef struct keel_output_object* keel_output;

typedef int32_t keel_executable_mode;
enum {
  KEEL_EXECUTABLE_GRAPH = 0, /* record and replay */
  KEEL_EXECUTABLE_EAGER = 1  /* every command on the stream, every time */
};

/* Zeros are the defaults. */
typedef struct keel_executable_options {
  size_t struct_size;
  int32_t slots; /* 1 to 64; 0: 2 */
  keel_executable_mode mode;
  int64_t patience_ns; /* for steps that run when it is closed; 0: 10 s, < 0: none */
  int32_t kept_traces; /* of a traced command, in each slot; 0: 8 */
  int32_t warm_up; /* eager steps before the first recording; 0: one if there are traced commands,
                      -1: none */
  keel_scratch_arena scratch; /* NULL: in the slots */
  keel_memory_budget budget;  /* NULL: as much as there is */
  int32_t alias_outputs; /* not 0: outputs that are held are read at a second, read-only address
                            of their memory; costs whole handles of each slot */
  int32_t reserved_0;    /* 0 */
} keel_executable_options;

/* Where a binding's bytes are. The same address with another `generation` is other memory; 0: not
 * known, and the address is all there is to compare. */
typedef struct keel_buffer {
  size_t struct_size;
  uint64_t address;
  uint64_t size;
  uint64_t generation;
  keel_physical_memory memory; /* that is remapped; with an address of 0, its own; or NULL */
} keel_buffer;

/* `options` may be NULL. Takes memory with the first step. */
KEEL_C_EXPORT keel_status keel_executable_create(keel_program program,
                                                 const keel_executable_options* options,
                                                 keel_executable* executable);
/* The handle is no more. Waits for steps that run, as long as `patience_ns` says; what runs even
 * then keeps its memory until it is done. Leases and outputs keep what they need. */
KEEL_C_EXPORT keel_status keel_executable_close(keel_executable executable);
/* From the next acquire on, for every step that does not say otherwise. */
KEEL_C_EXPORT keel_status keel_executable_bind(keel_executable executable, uint32_t binding,
                                               const keel_buffer* buffer);
/* A slot, for a step on this stream. `timeout_ns` < 0: however long it takes. The stream must live
 * until the step is done. */
KEEL_C_EXPORT keel_status keel_executable_acquire(keel_executable executable, keel_stream stream,
                                                  int64_t timeout_ns, keel_lease* lease);
/* What a binding is reached by now; never KEEL_POLICY_AUTO. */
KEEL_C_EXPORT keel_status keel_executable_get_policy(keel_executable executable, uint32_t binding,
                                                     keel_policy* policy);
/* Until every step that was launched is done. */
KEEL_C_EXPORT keel_status keel_executable_synchronize(keel_executable executable,
                                                      int64_t timeout_ns);
/* Gives its slots back; the next step takes and records them again.
 * KEEL_STATUS_FAILED_PRECONDITION: leases or outputs are held. */
KEEL_C_EXPORT keel_status keel_executable_give_back(keel_executable executable, int64_t timeout_ns);

/* How many there are of keel_action_kind. */
#define KEEL_ACTION_KINDS 9

typedef struct keel_executable_stats {
  size_t struct_size;
  uint64_t steps;
  uint64_t graphs_launched;
  uint64_t eager_steps;
  uint64_t rows_rebound;
  uint64_t commands_patched;
  uint64_t bindings_remapped;
  uint64_t graphs_recorded;
  uint64_t commands_traced;
  uint64_t traces_reused;
  uint64_t waits;
  uint64_t waited_ns;
  uint64_t policy_changes;
  uint64_t evictions;
  uint64_t failed_steps;
  uint64_t copied_in_bytes;
  uint64_t copied_out_bytes;
  uint64_t slot_bytes; /* held now; the others are totals */
  /* Of the calling threads, by the keel_action_kind that it was spent on. */
  int64_t host_ns[KEEL_ACTION_KINDS];
} keel_executable_stats;

/* Leases count when they are closed. */
KEEL_C_EXPORT keel_status keel_executable_get_stats(keel_executable executable,
                                                    keel_executable_stats* stats);

/* --- Steps --------------------------------------------------------------------------------------
 */

/* For this step, instead of what keel_executable_bind said. */
KEEL_C_EXPORT keel_status keel_lease_bind(keel_lease lease, uint32_t binding,
                                          const keel_buffer* buffer);
/* The slot's own memory of a binding that is worked on in place, or of scratch. */
KEEL_C_EXPORT keel_status keel_lease_get_address(keel_lease lease, uint32_t binding,
                                                 uint64_t* address);
/* Queues the step on the stream, once; when it fails it may be tried again. `timeout_ns` is for the
 * slot's last step, and for another step that records, calls the functions of commands or has the
 * same scratch arena, where that must be waited for. KEEL_STATUS_FAILED_PRECONDITION while the
 * stream is being captured; a steady step, which does not ask, breaks the capture. */
KEEL_C_EXPORT keel_status keel_lease_launch(keel_lease lease, int64_t timeout_ns);
/* After the launch: an output of the policy in-place stays as it is until it is let go. */
KEEL_C_EXPORT keel_status keel_lease_hold(keel_lease lease, uint32_t binding, keel_output* output);
/* Of the step that was launched. One that was lost with its device has ended, too:
 * KEEL_STATUS_DEVICE_LOST, and `done` is 1. */
KEEL_C_EXPORT keel_status keel_lease_get_done(keel_lease lease, int32_t* done);
KEEL_C_EXPORT keel_status keel_lease_wait(keel_lease lease, int64_t timeout_ns);
/* Gives the slot back, which takes the next step when this one's is done. */
KEEL_C_EXPORT keel_status keel_lease_close(keel_lease lease);

/* What a step did to be able to replay, also one that failed. */
typedef struct keel_step_report {
  size_t struct_size;
  uint64_t step; /* of the executable, from 1 */
  uint32_t slot;
  uint32_t graphs;          /* launched */
  uint64_t copied_in_bytes; /* by the graph, into the slot */
  uint64_t copied_out_bytes;
  uint32_t rebound;  /* rows of the copies' table rewritten */
  uint32_t patched;  /* commands rewritten */
  uint32_t remapped; /* bindings */
  uint32_t recorded; /* graphs instantiated */
  uint32_t traced;   /* commands captured */
  uint32_t traces_reused;
  uint32_t chosen; /* bindings that `auto` reaches otherwise from now on */
  int32_t eager;
  int64_t waited_ns;
  uint32_t actions;          /* that keel_lease_for_each_action has */
  uint32_t actions_left_out; /* that had no room */
} keel_step_report;

KEEL_C_EXPORT keel_status keel_lease_get_report(keel_lease lease, keel_step_report* report);

typedef int32_t keel_action_kind;
enum {
  KEEL_ACTION_WAITED = 0,
  KEEL_ACTION_REBOUND = 1,
  KEEL_ACTION_PATCHED = 2,
  KEEL_ACTION_REMAPPED = 3,
  KEEL_ACTION_RECORDED = 4,
  KEEL_ACTION_TRACED = 5,
  KEEL_ACTION_TRACE_REUSED = 6,
  KEEL_ACTION_RAN_EAGERLY = 7,
  KEEL_ACTION_CHOSE = 8
};

typedef int32_t keel_action_reason;
enum {
  KEEL_REASON_FIRST_STEP = 0,
  KEEL_REASON_WARM_UP = 1,
  KEEL_REASON_EAGER_MODE = 2,
  KEEL_REASON_MOVED = 3,
  KEEL_REASON_REALLOCATED = 4,
  KEEL_REASON_TOPOLOGY = 5,
  KEEL_REASON_SLOT_BUSY = 6,
  KEEL_REASON_TABLE_IN_USE = 7,
  KEEL_REASON_CHURNS = 8,
  KEEL_REASON_SETTLED = 9,
  KEEL_REASON_EVICTED = 10,
  KEEL_REASON_LAST_STEP_FAILED = 11,
  KEEL_REASON_AHEAD = 12,
  KEEL_REASON_MAPPABLE = 13,
  KEEL_REASON_MAPPING_DEAR = 14,
  KEEL_REASON_NO_MEMORY = 15,
  KEEL_REASON_COMMANDS_BUSY = 16,
  KEEL_REASON_SCRATCH_BUSY = 17,
  KEEL_REASON_MAPPING_FAILED = 18,
  KEEL_REASON_SLOT_LEASED = 19, /* by another */
  KEEL_REASON_SLOT_HELD = 20    /* it kept outputs that the caller had not let go */
};

#define KEEL_NO_BINDING UINT32_MAX

typedef struct keel_action {
  size_t struct_size;
  keel_action_kind kind;
  keel_action_reason reason;
  uint32_t binding; /* KEEL_NO_BINDING: of none */
  uint32_t count;   /* commands patched, graphs recorded */
  int64_t host_ns;  /* 0: not measured */
  /* For people, and never freed: "recorded", "the slot had no graph yet". */
  const char* kind_name;
  const char* reason_text;
} keel_action;

typedef void (*keel_action_visitor)(const keel_action* action, void* data);
KEEL_C_EXPORT keel_status keel_lease_for_each_action(keel_lease lease, keel_action_visitor visit,
                                                     void* data);

/* --- Held outputs -------------------------------------------------------------------------------
 */

/* In the slot's own memory: to be read, not written. */
KEEL_C_EXPORT keel_status keel_output_get(keel_output output, uint64_t* address, uint64_t* size);
/* Another stream than the step's reads it, with work that is queued before it is let go. */
KEEL_C_EXPORT keel_status keel_output_record_use(keel_output output, keel_stream stream);
/* Lets go. The handle is no more, also when it fails. */
KEEL_C_EXPORT keel_status keel_output_close(keel_output output);

/* --- The program recorded again in every step ---------------------------------------------------
 * What one does whose addresses move, without Keel's slots: to be compared with, and for programs
 * that run a few times only (keel/graph/rerecorder.h). */

typedef struct keel_rerecorder_object* keel_rerecorder;

/* How a step gets from what it recorded to a graph that can be launched. */
typedef int32_t keel_rerecording;
enum {
  KEEL_RERECORDING_INSTANTIATE = 0, /* makes a new one */
  KEEL_RERECORDING_UPDATE = 1       /* rewrites that of the last step, if the device can */
};

typedef struct keel_rerecorder_stats {
  size_t struct_size;
  uint64_t steps;
  uint64_t captured;     /* graphs */
  uint64_t instantiated; /* of these */
  uint64_t updated;
} keel_rerecorder_stats;

/* Takes the memory of scratch bindings, and keeps the program. */
KEEL_C_EXPORT keel_status keel_rerecorder_create(keel_program program, keel_rerecording how,
                                                 keel_rerecorder* rerecorder);
/* Queues a step on the stream, which must live until it is done. `addresses` has one for each
 * binding, in their order, `address_count` in all; those of scratch are not looked at. The first
 * step of a program with traced commands runs without a graph. */
KEEL_C_EXPORT keel_status keel_rerecorder_run(keel_rerecorder rerecorder, keel_stream stream,
                                              const uint64_t* addresses, size_t address_count);
KEEL_C_EXPORT keel_status keel_rerecorder_get_stats(keel_rerecorder rerecorder,
                                                    keel_rerecorder_stats* stats);
/* The handle is no more. Waits for nothing; steps that were launched run. */
KEEL_C_EXPORT keel_status keel_rerecorder_close(keel_rerecorder rerecorder);

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-*) */

#endif /* KEEL_C_GRAPH_H_ */
