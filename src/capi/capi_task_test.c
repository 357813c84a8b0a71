/* Devices as workers, as a C99 program sees them. Its arguments: orchestration code that adds, some
 * that crashes, and the program of a worker's process; or, in its place, "mpi": the program is rank
 * 0 of a run with two more ranks. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>

#include "capi/capi_test.h"
#include "keel/c.h"

enum { kFloats = 1000 };
static const uint64_t kBytes = kFloats * sizeof(float);

static float a[kFloats], b[kFloats], c[kFloats];

static void fill(float* values, float value) {
  int i;
  for (i = 0; i < kFloats; ++i) values[i] = value;
}

static int all(const float* values, float value) {
  int i;
  for (i = 0; i < kFloats; ++i) {
    if (values[i] != value) return 0;
  }
  return 1;
}

static keel_tensor host_tensor(float* values) {
  keel_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.address = (uint64_t)(uintptr_t)values;
  tensor.shape[0] = kFloats;
  tensor.rank = 1;
  tensor.type = KEEL_TYPE_FLOAT32;
  return tensor;
}

static keel_tensor resident_tensor(uint64_t address) {
  keel_tensor tensor = host_tensor(NULL);
  tensor.address = address;
  tensor.flags = KEEL_TENSOR_RESIDENT;
  return tensor;
}

/* The whole file; the caller frees it. */
static void* read_file(const char* path, uint64_t* size) {
  FILE* file = fopen(path, "rb");
  void* bytes = NULL;
  long end = 0;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0) {
    bytes = malloc((size_t)end);
    *size = fread(bytes, 1, (size_t)end, file);
  }
  fclose(file);
  return bytes;
}

/* An image with the kernel that adds, of `orchestration` or without; the caller frees it. */
static void* build_image(const char* orchestration, uint64_t* size) {
  keel_image_part part = {NULL, 0, "keel"};
  keel_image_kernel kernel = {"keel_add", 0, 0};
  keel_image_content content;
  uint64_t room = 0;
  void* image = NULL;
  void* code = NULL;
  memset(&content, 0, sizeof content);
  content.struct_size = sizeof content;
  content.parts = &part;
  content.part_count = 1;
  content.kernels = &kernel;
  content.kernel_count = 1;
  if (orchestration != NULL) {
    code = read_file(orchestration, &content.orchestration_size);
    CHECK(code != NULL);
    content.orchestration = code;
  }
  CHECK(keel_image_build(&content, NULL, size) == KEEL_STATUS_OK);
  image = malloc(*size);
  room = *size - 1;
  REFUSED(keel_image_build(&content, image, &room), KEEL_STATUS_OUT_OF_RANGE, "there is room for");
  CHECK(room == *size);
  CHECK(keel_image_build(&content, image, &room) == KEEL_STATUS_OK);
  kernel.reserved_0 = 1;
  WRONG(keel_image_build(&content, NULL, &room), "reserved_0 of kernel 0");
  kernel.reserved_0 = 0;
  kernel.part = 1;
  WRONG(keel_image_build(&content, NULL, &room), "kernel 0 is of part 1");
  kernel.name = NULL;
  WRONG(keel_image_build(&content, NULL, &room), "the name of kernel 0 is NULL");
  part.set = NULL;
  WRONG(keel_image_build(&content, NULL, &room), "part 0 has neither");
  content.kernels = NULL;
  WRONG(keel_image_build(&content, NULL, &room), "content->kernels is NULL");
  content.parts = NULL;
  WRONG(keel_image_build(&content, NULL, &room), "content->parts is NULL");
  WRONG(keel_image_build(NULL, NULL, &room), "content is NULL");
  WRONG(keel_image_build(&content, NULL, NULL), "size is NULL");
  free(code);
  return image;
}

static keel_orchestrator open_workers(keel_transport transport, const char* program) {
  const char* devices[2] = {"sim:0", "sim:1"};
  keel_orchestrator_options options;
  keel_orchestrator orchestrator = NULL;
  uint32_t count = 0;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  WRONG(keel_orchestrator_create(&options, &orchestrator), "at least one worker");
  options.device_count = 2;
  WRONG(keel_orchestrator_create(&options, &orchestrator), "options->devices is NULL");
  options.devices = devices;
  WRONG(keel_orchestrator_create(&options, NULL), "orchestrator is NULL");
  WRONG(keel_orchestrator_create(NULL, &orchestrator), "options is NULL");
  options.transport = 7;
  WRONG(keel_orchestrator_create(&options, &orchestrator), "no transport 7");
  options.transport = transport;
  options.orchestration = -1;
  WRONG(keel_orchestrator_create(&options, &orchestrator), "no orchestration -1");
  options.orchestration = KEEL_ORCHESTRATION_AUTO;
  options.stop_timeout_ns = -5;
  WRONG(keel_orchestrator_create(&options, &orchestrator), "stop_timeout_ns is negative");
  options.stop_timeout_ns = 0;
  options.worker_program = program;
  devices[1] = "sim:7";
  REFUSED(keel_orchestrator_create(&options, &orchestrator), KEEL_STATUS_NOT_FOUND, "sim:7");
  CHECK(orchestrator == NULL);
  devices[1] = "sim:1";
  CHECK(keel_orchestrator_create(&options, &orchestrator) == KEEL_STATUS_OK);
  CHECK(keel_orchestrator_get_worker_count(orchestrator, &count) == KEEL_STATUS_OK && count == 2);
  WRONG(keel_orchestrator_get_worker_count(orchestrator, NULL), "count is NULL");
  return orchestrator;
}

static void test_memory(keel_orchestrator orchestrator) {
  uint64_t address = 0;
  WRONG(keel_worker_malloc(orchestrator, 0, kBytes, NULL), "address is NULL");
  WRONG(keel_worker_malloc(orchestrator, 2, kBytes, &address), "no worker 2");
  WRONG(keel_worker_malloc(orchestrator, 0, 0, &address), "0 bytes");
  CHECK(address == 0);
  CHECK(keel_worker_malloc(orchestrator, 1, kBytes, &address) == KEEL_STATUS_OK && address != 0);
  fill(a, 4);
  fill(c, 0);
  CHECK(keel_worker_copy_to(orchestrator, 1, address, a, kBytes) == KEEL_STATUS_OK);
  CHECK(keel_worker_copy_from(orchestrator, 1, c, address, kBytes) == KEEL_STATUS_OK);
  CHECK(all(c, 4));
  WRONG(keel_worker_copy_to(orchestrator, 1, address, NULL, kBytes), "source is NULL");
  WRONG(keel_worker_copy_from(orchestrator, 1, NULL, address, kBytes), "destination is NULL");
  WRONG(keel_worker_copy_to(orchestrator, 1, address, a, kBytes + 4), "do not lie in one block");
  WRONG(keel_worker_register_memory(orchestrator, 5, address, 1), "no worker 5");
  REFUSED(keel_worker_register_memory(orchestrator, 1, address, kBytes), KEEL_STATUS_ALREADY_EXISTS,
          "");
  WRONG(keel_worker_unregister_memory(orchestrator, 1, address), "use Free");
  CHECK(keel_worker_free(orchestrator, 1, address) == KEEL_STATUS_OK);
  WRONG(keel_worker_free(orchestrator, 1, address), "was freed before");
}

/* c = a + b, with a on the host, b on worker 1. */
static void test_task(keel_orchestrator orchestrator, uint64_t callable, uint64_t resident) {
  keel_tensor tensors[3];
  const keel_tag tags[3] = {KEEL_TAG_IN, KEEL_TAG_IN, KEEL_TAG_OUT};
  keel_task_arguments arguments;
  keel_submit_options options;
  keel_task task = NULL;
  uint32_t worker = 0;
  uint64_t id = 0;
  int32_t done = 0;
  tensors[0] = host_tensor(a);
  tensors[1] = resident_tensor(resident);
  tensors[2] = host_tensor(c);
  memset(&arguments, 0, sizeof arguments);
  arguments.struct_size = sizeof arguments;
  arguments.tensors = tensors;
  arguments.tags = tags;
  arguments.tensor_count = 3;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;

  fill(a, 1.5F);
  fill(c, 0);
  WRONG(keel_task_submit(orchestrator, callable, &arguments, NULL, NULL), "task is NULL");
  worker = 9;
  options.worker = &worker;
  WRONG(keel_task_submit(orchestrator, callable, &arguments, &options, &task), "no worker 9");
  worker = 0;
  WRONG(keel_task_submit(orchestrator, callable, &arguments, &options, &task), "on worker 1");
  REFUSED(keel_task_submit(orchestrator, 777, &arguments, NULL, &task), KEEL_STATUS_NOT_FOUND,
          "callable 777");
  arguments.tags = NULL;
  WRONG(keel_task_submit(orchestrator, callable, &arguments, NULL, &task), "tags is NULL");
  arguments.tags = tags;
  arguments.tensor_count = 257;
  WRONG(keel_task_submit(orchestrator, callable, &arguments, NULL, &task), "257 tensors");
  arguments.tensor_count = 3;
  tensors[0].reserved[2] = 1;
  WRONG(keel_task_submit(orchestrator, callable, &arguments, NULL, &task), "0");
  tensors[0].reserved[2] = 0;
  CHECK(task == NULL);

  options.worker = NULL;
  options.timeout_ns = -1;
  CHECK(keel_task_submit(orchestrator, callable, &arguments, &options, &task) == KEEL_STATUS_OK);
  CHECK(keel_task_wait(task, -1) == KEEL_STATUS_OK);
  CHECK(all(c, 3.75F));
  CHECK(keel_task_get_done(task, &done) == KEEL_STATUS_OK && done == 1);
  CHECK(keel_task_get_error(task) == KEEL_STATUS_OK);
  CHECK(keel_task_get_worker(task, &worker) == KEEL_STATUS_OK && worker == 1);
  CHECK(keel_task_get_id(task, &id) == KEEL_STATUS_OK && id != 0);
  WRONG(keel_task_get_done(task, NULL), "done is NULL");
  WRONG(keel_task_get_worker(task, NULL), "worker is NULL");
  WRONG(keel_task_get_id(task, NULL), "id is NULL");
  CHECK(keel_task_close(task) == KEEL_STATUS_OK);
  WRONG(keel_task_close(task), "task that was closed");
  WRONG(keel_task_wait(task, -1), "task that was closed");
  WRONG(keel_task_wait((keel_task)(void*)orchestrator, -1),
        "handle of an orchestrator, not of a task");
}

/* Two members, each on a worker of its own: a + a, b + b. */
static void test_group(keel_orchestrator orchestrator, uint64_t callable) {
  keel_tensor tensors[2][3];
  const keel_tag tags[3] = {KEEL_TAG_IN, KEEL_TAG_IN, KEEL_TAG_OUT};
  static float d[kFloats];
  keel_task_arguments members[2];
  const keel_task_arguments* both[2];
  const uint32_t workers[2] = {1, 0};
  const uint32_t twice[2] = {1, 1};
  const uint32_t second[2] = {KEEL_ANY_WORKER, 0};
  keel_task task = NULL;
  uint32_t worker = 9;
  int i;
  for (i = 0; i < 2; ++i) {
    tensors[i][0] = host_tensor(i == 0 ? a : b);
    tensors[i][1] = host_tensor(i == 0 ? a : b);
    tensors[i][2] = host_tensor(i == 0 ? c : d);
    memset(&members[i], 0, sizeof members[i]);
    members[i].struct_size = sizeof members[i];
    members[i].tensors = tensors[i];
    members[i].tags = tags;
    members[i].tensor_count = 3;
    both[i] = &members[i];
  }
  fill(a, 1);
  fill(b, 10);
  WRONG(keel_task_submit_group(orchestrator, callable, both, 2, twice, NULL, &task), "worker 1");
  WRONG(keel_task_submit_group(orchestrator, callable, NULL, 2, NULL, NULL, &task),
        "members is NULL");
  WRONG(keel_task_submit_group(orchestrator, callable, both, 3, NULL, NULL, &task),
        "a group of 3 members");
  WRONG(keel_task_submit_group(orchestrator, callable, both, 0, NULL, NULL, &task), "at least one");
  CHECK(keel_task_submit_group(orchestrator, callable, both, 2, workers, NULL, &task) ==
        KEEL_STATUS_OK);
  CHECK(keel_task_wait(task, -1) == KEEL_STATUS_OK);
  CHECK(all(c, 2) && all(d, 20));
  CHECK(keel_task_get_worker(task, &worker) == KEEL_STATUS_OK && worker == 1);
  CHECK(keel_task_close(task) == KEEL_STATUS_OK);

  fill(c, 0);
  CHECK(keel_task_submit_group(orchestrator, callable, both, 2, second, NULL, &task) ==
        KEEL_STATUS_OK);
  CHECK(keel_task_wait(task, -1) == KEEL_STATUS_OK);
  CHECK(all(c, 2));
  CHECK(keel_task_get_worker(task, &worker) == KEEL_STATUS_OK && worker == 1);
  CHECK(keel_task_close(task) == KEEL_STATUS_OK);
}

static void test_image(keel_orchestrator orchestrator, const char* code) {
  uint64_t size = 0, callable = 0, resident = 0;
  void* image = build_image(code, &size);
  keel_worker_report report;
  memset(&report, 0, sizeof report);
  report.struct_size = sizeof report;
  WRONG(keel_orchestrator_register_image(orchestrator, NULL, size, &callable), "image is NULL");
  WRONG(keel_orchestrator_register_image(orchestrator, image, size, NULL), "callable is NULL");
  WRONG(keel_orchestrator_register_image(orchestrator, image, size - 1, &callable), "image");
  CHECK(keel_orchestrator_register_image(orchestrator, image, size, &callable) == KEEL_STATUS_OK);
  free(image);
  fill(b, 2.25F);
  CHECK(keel_worker_malloc(orchestrator, 1, kBytes, &resident) == KEEL_STATUS_OK);
  CHECK(keel_worker_copy_to(orchestrator, 1, resident, b, kBytes) == KEEL_STATUS_OK);
  test_task(orchestrator, callable, resident);
  test_group(orchestrator, callable);
  CHECK(keel_orchestrator_unregister(orchestrator, callable) == KEEL_STATUS_OK);
  REFUSED(keel_orchestrator_unregister(orchestrator, callable), KEEL_STATUS_NOT_FOUND, "callable");
  CHECK(keel_worker_free(orchestrator, 1, resident) == KEEL_STATUS_OK);

  CHECK(keel_worker_get_report(orchestrator, 1, &report) == KEEL_STATUS_OK);
  CHECK(strcmp(report.device, "sim:1") == 0 && report.up == 1 && report.lost == KEEL_STATUS_OK);
  CHECK(report.tasks == 3 && report.restarts == 0 && report.uploads == 1 && report.callables == 0);
  CHECK(report.bytes_to_device >= 2 * kBytes && report.bytes_from_device >= kBytes);
  WRONG(keel_worker_get_report(orchestrator, 2, &report), "no worker 2");
  report.struct_size = 3;
  WRONG(keel_worker_get_report(orchestrator, 1, &report), "report->struct_size is 3");
}

struct state {
  int calls;
  int destroyed;
};

static void destroy_state(void* data) { ++((struct state*)data)->destroyed; }

/* Adds by kernel 0, or fails by the scalar. */
static keel_status add(const keel_task_context* context, void* data) {
  keel_launch_argument arguments[4];
  uint64_t count = kFloats;
  int i;
  ++((struct state*)data)->calls;
  if (context->scalar_count == 1 && context->scalars[0] == 1) return KEEL_STATUS_ALREADY_EXISTS;
  if (context->scalar_count == 1 && context->scalars[0] == 2) {
    return keel_task_call_launch(context->call, 5, NULL, NULL, 0);
  }
  if (context->scalar_count == 1 && context->scalars[0] == 3) {
    /* Refused, and not looked at. */
    memset(arguments, 0, sizeof arguments);
    WRONG(keel_task_call_launch(context->call, 0, NULL, arguments, 1), "no access 0");
    arguments[0].value = &count;
    WRONG(keel_task_call_launch(context->call, 0, NULL, arguments, 1), "a value of 0 bytes");
    memset(arguments, 0, sizeof arguments);
    arguments[0].access = KEEL_ACCESS_READ;
    arguments[0].reserved_0 = 1;
    WRONG(keel_task_call_launch(context->call, 0, NULL, arguments, 1), "reserved_0");
    return KEEL_STATUS_OK;
  }
  if (context->scalar_count == 1 && context->scalars[0] == 4) return KEEL_STATUS_UNAVAILABLE;
  CHECK(context->struct_size == sizeof *context && context->kernel_count == 1);
  CHECK(context->tensor_count == 3 && context->device != NULL && context->stream != NULL);
  CHECK(context->tags[0] == KEEL_TAG_IN && context->tags[2] == KEEL_TAG_OUT);
  memset(arguments, 0, sizeof arguments);
  for (i = 0; i < 3; ++i) {
    CHECK(context->tensors[i].shape[0] == kFloats && context->tensors[i].rank == 1);
    arguments[i].address = context->tensors[i].address;
    arguments[i].extent = kBytes;
    arguments[i].access = i == 2 ? KEEL_ACCESS_WRITE : KEEL_ACCESS_READ;
  }
  arguments[3].value = &count;
  arguments[3].value_size = sizeof count;
  return keel_task_call_launch(context->call, 0, NULL, arguments, 4);
}

/* What the function says to this scalar. */
static keel_status outcome_of(keel_orchestrator orchestrator, uint64_t callable, uint64_t scalar) {
  keel_task_arguments arguments;
  keel_task task = NULL;
  keel_status status;
  memset(&arguments, 0, sizeof arguments);
  arguments.struct_size = sizeof arguments;
  arguments.scalars = &scalar;
  arguments.scalar_count = 1;
  CHECK(keel_task_submit(orchestrator, callable, &arguments, NULL, &task) == KEEL_STATUS_OK);
  status = keel_task_wait(task, -1);
  CHECK(keel_task_get_error(task) == status);
  CHECK(keel_task_close(task) == KEEL_STATUS_OK);
  return status;
}

/* Memory that is registered again is another block. */
static void test_registered_block(keel_orchestrator orchestrator, uint64_t foreign) {
  uint64_t first = 0, second = 0;
  WRONG(keel_worker_register_block(orchestrator, 1, foreign, kBytes, NULL), "block is NULL");
  CHECK(keel_worker_register_block(orchestrator, 1, foreign, kBytes, &first) == KEEL_STATUS_OK);
  CHECK(keel_worker_unregister_block(orchestrator, 1, foreign, first) == KEEL_STATUS_OK);
  CHECK(keel_worker_register_block(orchestrator, 1, foreign, kBytes, &second) == KEEL_STATUS_OK);
  CHECK(first != 0 && second != 0 && first != second);
  REFUSED(keel_worker_unregister_block(orchestrator, 1, foreign, first), KEEL_STATUS_UNAVAILABLE,
          "another one is there now");
  CHECK(keel_worker_unregister_block(orchestrator, 1, foreign, second) == KEEL_STATUS_OK);
}

static void test_function(keel_orchestrator orchestrator, keel_device device) {
  struct state state = {0, 0};
  uint64_t size = 0, callable = 0, foreign = 0;
  void* kernels = build_image(NULL, &size);
  keel_worker_report report;

  WRONG(keel_orchestrator_register_function(orchestrator, NULL, &state, destroy_state, kernels,
                                            size, &callable),
        "function is NULL");
  WRONG(keel_orchestrator_register_function(orchestrator, add, &state, destroy_state, kernels, size,
                                            NULL),
        "callable is NULL");
  WRONG(keel_orchestrator_register_function(orchestrator, add, &state, destroy_state, kernels, 5,
                                            &callable),
        "image");
  WRONG(keel_orchestrator_register_image(orchestrator, kernels, size, &callable),
        "register it with a function");
  CHECK(state.destroyed == 0);
  CHECK(keel_orchestrator_register_function(orchestrator, add, &state, destroy_state, kernels, size,
                                            &callable) == KEEL_STATUS_OK);
  free(kernels);

  /* Memory of the process's own allocators, on the device of worker 1. */
  CHECK(keel_malloc(device, NULL, kBytes, NULL, &foreign) == KEEL_STATUS_OK);
  fill(b, 2.25F);
  CHECK(keel_copy_to_device(device, NULL, foreign, b, kBytes) == KEEL_STATUS_OK);
  CHECK(keel_stream_synchronize(device, NULL, -1) == KEEL_STATUS_OK);
  CHECK(keel_worker_register_memory(orchestrator, 1, foreign, kBytes) == KEEL_STATUS_OK);
  test_task(orchestrator, callable, foreign);
  CHECK(state.calls == 1);
  CHECK(keel_worker_unregister_memory(orchestrator, 1, foreign) == KEEL_STATUS_OK);
  test_registered_block(orchestrator, foreign);
  CHECK(keel_free(device, foreign) == KEEL_STATUS_OK);

  REFUSED(outcome_of(orchestrator, callable, 1), KEEL_STATUS_ALREADY_EXISTS, "ALREADY_EXISTS");
  REFUSED(outcome_of(orchestrator, callable, 2), KEEL_STATUS_INVALID_ARGUMENT,
          "kernel 5, and has 1");
  REFUSED(outcome_of(orchestrator, callable, 3), KEEL_STATUS_INVALID_ARGUMENT, "no access 0");
  REFUSED(outcome_of(orchestrator, callable, 4), KEEL_STATUS_UNKNOWN, "UNAVAILABLE");
  CHECK(state.calls == 5);
  CHECK(keel_orchestrator_wait_all(orchestrator, -1) == KEEL_STATUS_OK);
  memset(&report, 0, sizeof report);
  report.struct_size = sizeof report;
  CHECK(keel_worker_get_report(orchestrator, 1, &report) == KEEL_STATUS_OK);
  CHECK(report.uploads == 1 && report.restarts == 0 && report.callables == 1);
  CHECK(state.destroyed == 0);
  CHECK(keel_orchestrator_unregister(orchestrator, callable) == KEEL_STATUS_OK);
  CHECK(state.destroyed == 1);
}

/* Ends the process of worker 0, which is started again when it is asked for something. */
static void lose_worker(keel_orchestrator orchestrator, uint64_t crash) {
  const uint32_t worker = 0;
  keel_submit_options options;
  keel_task task = NULL;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.worker = &worker;
  CHECK(keel_task_submit(orchestrator, crash, NULL, &options, &task) == KEEL_STATUS_OK);
  REFUSED(keel_task_wait(task, -1), KEEL_STATUS_UNAVAILABLE, "SIGSEGV");
  CHECK(keel_task_close(task) == KEEL_STATUS_OK);
}

/* c = a + a, with both a at `address`: as a group of one member, and alone. */
static keel_status submit_with(keel_orchestrator orchestrator, uint64_t add, uint64_t address,
                               const keel_submit_options* options) {
  keel_tensor tensors[3];
  const keel_tag tags[3] = {KEEL_TAG_IN, KEEL_TAG_IN, KEEL_TAG_OUT};
  keel_task_arguments arguments;
  const keel_task_arguments* const member = &arguments;
  keel_task task = NULL;
  keel_status status;
  int alone;
  tensors[0] = tensors[1] = resident_tensor(address);
  tensors[2] = host_tensor(c);
  memset(&arguments, 0, sizeof arguments);
  arguments.struct_size = sizeof arguments;
  arguments.tensors = tensors;
  arguments.tags = tags;
  arguments.tensor_count = 3;
  status = keel_task_submit_group(orchestrator, add, &member, 1, NULL, options, &task);
  for (alone = 0; alone < 2; ++alone) {
    if (alone) CHECK(keel_task_submit(orchestrator, add, &arguments, options, &task) == status);
    if (status != KEEL_STATUS_OK) continue;
    CHECK(keel_task_wait(task, -1) == KEEL_STATUS_OK);
    CHECK(keel_task_close(task) == KEEL_STATUS_OK);
  }
  return status;
}

/* A block that was lost with its worker's process, and another one with its address. */
static void test_lost_block(keel_orchestrator orchestrator, uint64_t add, uint64_t crash,
                            int steady) {
  uint64_t lost = 0, address = 0, old = 0, fresh = 0;
  uint64_t two[3];
  keel_submit_options options;
  /* The first process may have other addresses than those that are started again. */
  lose_worker(orchestrator, crash);
  WRONG(keel_worker_malloc_block(orchestrator, 0, kBytes, &lost, NULL), "block is NULL");
  WRONG(keel_worker_malloc_block(orchestrator, 0, kBytes, NULL, &old), "address is NULL");
  CHECK(keel_worker_malloc_block(orchestrator, 0, kBytes, &lost, &old) == KEEL_STATUS_OK);
  fill(a, 4);
  CHECK(keel_worker_copy_to_block(orchestrator, 0, lost, a, kBytes, old) == KEEL_STATUS_OK);
  lose_worker(orchestrator, crash);
  CHECK(keel_worker_malloc_block(orchestrator, 0, kBytes, &address, &fresh) == KEEL_STATUS_OK);
  CHECK(old != 0 && fresh != 0 && old != fresh);
  if (steady) CHECK(address == lost); /* the premise */
  fill(a, 5);
  CHECK(keel_worker_copy_to_block(orchestrator, 0, address, a, kBytes, fresh) == KEEL_STATUS_OK);

  /* Who means the one that was lost gets nothing of the other, and does nothing to it. */
  fill(b, 7);
  fill(c, 0);
  REFUSED(keel_worker_copy_to_block(orchestrator, 0, lost, b, kBytes, old), KEEL_STATUS_UNAVAILABLE,
          "lost");
  REFUSED(keel_worker_copy_from_block(orchestrator, 0, c, lost, kBytes, old),
          KEEL_STATUS_UNAVAILABLE, "lost");
  CHECK(all(c, 0));
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.blocks = two;
  options.block_count = 2;
  two[0] = fresh;
  two[1] = old;
  REFUSED(submit_with(orchestrator, add, address, &options), KEEL_STATUS_UNAVAILABLE, "lost");
  REFUSED(keel_worker_free_block(orchestrator, 0, lost, old), KEEL_STATUS_UNAVAILABLE, "lost");
  WRONG(keel_worker_copy_to_block(orchestrator, 0, address, NULL, kBytes, fresh), "source is NULL");
  WRONG(keel_worker_copy_from_block(orchestrator, 0, NULL, address, kBytes, fresh),
        "destination is NULL");

  /* Who means the other, or whatever is there, gets it. */
  options.blocks = NULL;
  WRONG(submit_with(orchestrator, add, address, &options), "options->blocks is NULL");
  options.blocks = two;
  options.block_count = 1;
  WRONG(submit_with(orchestrator, add, address, &options), "1 blocks are named");
  options.block_count = 2;
  two[1] = 0;
  CHECK(submit_with(orchestrator, add, address, &options) == KEEL_STATUS_OK && all(c, 10));
  /* A caller from before there were numbers, whose struct ends there. */
  two[1] = old;
  options.struct_size = offsetof(keel_submit_options, blocks);
  fill(c, 0);
  CHECK(submit_with(orchestrator, add, address, &options) == KEEL_STATUS_OK && all(c, 10));
  CHECK(keel_worker_copy_from_block(orchestrator, 0, c, address, kBytes, fresh) == KEEL_STATUS_OK);
  CHECK(all(c, 5));
  CHECK(keel_worker_copy_from_block(orchestrator, 0, b, address, kBytes, 0) == KEEL_STATUS_OK);
  CHECK(all(b, 5));
  CHECK(keel_worker_free_block(orchestrator, 0, address, fresh) == KEEL_STATUS_OK);
  REFUSED(keel_worker_free_block(orchestrator, 0, address, fresh), KEEL_STATUS_UNAVAILABLE,
          "freed");
}

static uint64_t register_code(keel_orchestrator orchestrator, const char* code) {
  uint64_t size = 0, callable = 0;
  void* image = build_image(code, &size);
  CHECK(keel_orchestrator_register_image(orchestrator, image, size, &callable) == KEEL_STATUS_OK);
  free(image);
  return callable;
}

static keel_orchestrator test_workers(keel_transport transport, const char* program,
                                      const char* add) {
  keel_orchestrator orchestrator = open_workers(transport, program);
  test_memory(orchestrator);
  test_image(orchestrator, add);
  return orchestrator;
}

static int finish(void) {
  if (failures == 0) puts("tasks in C do what keel/c_task.h says");
  return failures == 0 ? 0 : 1;
}

/* The addresses of ranks are as their own processes have them. */
static int test_ranks(const char* add, const char* crash) {
  keel_orchestrator orchestrator = test_workers(KEEL_TRANSPORT_MPI, NULL, add);
  test_lost_block(orchestrator, register_code(orchestrator, add),
                  register_code(orchestrator, crash), 0);
  CHECK(keel_orchestrator_close(orchestrator) == KEEL_STATUS_OK);
  return finish();
}

/* With addresses that are the same in every process, where the system lets it. */
static void test_lost_blocks(const char* add, const char* crash, const char* program) {
  const int before = personality(0xffffffff);
  int steady;
  keel_orchestrator orchestrator;
  personality((unsigned long)before | ADDR_NO_RANDOMIZE);
  steady = (personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0;
  if (!steady) puts("the system gives every process other addresses: blocks have none twice");
  orchestrator = open_workers(KEEL_TRANSPORT_PROCESS, program);
  test_lost_block(orchestrator, register_code(orchestrator, add),
                  register_code(orchestrator, crash), steady);
  CHECK(keel_orchestrator_close(orchestrator) == KEEL_STATUS_OK);
  personality((unsigned long)before);
}

int main(int argc, char** argv) {
  keel_orchestrator orchestrator = NULL;
  keel_device device = NULL, other = NULL;
  struct state state = {0, 0};
  uint64_t callable = 0;
  if (argc != 4) {
    fputs("usage: capi_task_c_test ADDING-CODE CRASHING-CODE WORKER-PROGRAM|mpi\n", stderr);
    return 2;
  }
  if (strcmp(argv[3], "mpi") == 0) return test_ranks(argv[1], argv[2]);
  if (keel_device_open("sim:1", &device) != KEEL_STATUS_OK) {
    fail(__LINE__, "keel_device_open");
    return 1;
  }
  orchestrator = test_workers(KEEL_TRANSPORT_THREAD, NULL, argv[1]);
  test_function(orchestrator, device);
  CHECK(keel_orchestrator_close(orchestrator) == KEEL_STATUS_OK);
  WRONG(keel_orchestrator_close(orchestrator), "orchestrator that was closed");
  WRONG(keel_orchestrator_wait_all(orchestrator, 0), "orchestrator that was closed");

  orchestrator = test_workers(KEEL_TRANSPORT_PROCESS, argv[3], argv[1]);
  REFUSED(keel_orchestrator_register_function(orchestrator, add, &state, destroy_state, NULL, 0,
                                              &callable),
          KEEL_STATUS_UNIMPLEMENTED, "register an image");
  CHECK(state.destroyed == 0); /* it stays the caller's */
  CHECK(keel_orchestrator_close(orchestrator) == KEEL_STATUS_OK);
  test_lost_blocks(argv[1], argv[2], argv[3]);

  /* With their last handles the devices are closed, and their threads end. */
  CHECK(keel_device_open("sim:0", &other) == KEEL_STATUS_OK);
  CHECK(keel_device_forget(other) == KEEL_STATUS_OK);
  CHECK(keel_device_forget(device) == KEEL_STATUS_OK);
  return finish();
}
