/* Physical memory that a graph maps under its own address, and the program recorded again in every
 * step, as a C99 program sees them. */
#include <stdio.h>
#include <string.h>

#include "capi/capi_test.h"
#include "keel/c.h"

enum { kFloats = 256, kBytes = kFloats * 4, kInputs = 3, kSteps = 7 };

struct sum_program {
  uint32_t x, w, y;
  keel_program program;
};

static keel_kernel_argument argument(uint32_t binding, keel_access access) {
  keel_kernel_argument made;
  memset(&made, 0, sizeof made);
  made.operand.binding = binding;
  made.operand.access = access;
  return made;
}

/* y = x + w; x and y have this policy. */
static struct sum_program make_sum(keel_device device, keel_policy policy) {
  struct sum_program made = {0, 0, 0, NULL};
  keel_module module = NULL;
  keel_kernel add = NULL;
  keel_program_builder builder = NULL;
  keel_kernel_argument arguments[4];
  const uint64_t count = kFloats;

  CHECK(keel_module_load_standard(device, &module) == KEEL_STATUS_OK);
  CHECK(keel_kernel_find(module, "keel_add", &add) == KEEL_STATUS_OK);
  CHECK(keel_module_close(module) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_create(device, "sum", &builder) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_bind(builder, "x", kBytes, KEEL_BINDING_IN, policy, &made.x) ==
        KEEL_STATUS_OK);
  CHECK(keel_program_builder_bind(builder, "w", kBytes, KEEL_BINDING_RESIDENT, KEEL_POLICY_AUTO,
                                  &made.w) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_bind(builder, "y", kBytes, KEEL_BINDING_OUT, policy, &made.y) ==
        KEEL_STATUS_OK);
  arguments[0] = argument(made.x, KEEL_ACCESS_READ);
  arguments[1] = argument(made.w, KEEL_ACCESS_READ);
  arguments[2] = argument(made.y, KEEL_ACCESS_WRITE);
  memset(&arguments[3], 0, sizeof arguments[3]);
  arguments[3].value = &count;
  arguments[3].value_size = sizeof count;
  CHECK(keel_program_builder_kernel(builder, add, NULL, arguments, 4) == KEEL_STATUS_OK);
  CHECK(keel_kernel_close(add) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_build(builder, &made.program) == KEEL_STATUS_OK);
  return made;
}

static keel_buffer buffer_of(keel_physical_memory memory) {
  keel_buffer buffer;
  memset(&buffer, 0, sizeof buffer);
  buffer.struct_size = sizeof buffer;
  buffer.memory = memory;
  return buffer;
}

static keel_buffer buffer_at(uint64_t address) {
  keel_buffer buffer = buffer_of(NULL);
  buffer.address = address;
  buffer.size = kBytes;
  return buffer;
}

static void fill_floats(float* to, float value) {
  int i;
  for (i = 0; i < kFloats; ++i) to[i] = value + (float)i;
}

/* How many of y = x + w are there, at `address`, after what is on the stream. */
static int right_at(keel_device device, keel_stream stream, uint64_t address, float x, float w) {
  float out[kFloats], in[kFloats], weights[kFloats];
  int i, right = 0;
  fill_floats(in, x);
  fill_floats(weights, w);
  CHECK(keel_copy_to_host(device, stream, out, address, kBytes) == KEEL_STATUS_OK);
  for (i = 0; i < kFloats; ++i) right += out[i] == in[i] + weights[i];
  return right;
}

struct memories {
  keel_physical_memory memory[kInputs];
  uint64_t address[kInputs];
};

static struct memories make_memories(keel_device device, uint64_t size) {
  struct memories made;
  uint64_t got = 0;
  int i;
  memset(&made, 0, sizeof made);
  for (i = 0; i < kInputs; ++i) {
    CHECK(keel_physical_memory_create(device, size, &made.memory[i]) == KEEL_STATUS_OK);
    CHECK(keel_physical_memory_get(made.memory[i], &made.address[i], &got) == KEEL_STATUS_OK);
    CHECK(got == size && made.address[i] != 0);
  }
  return made;
}

static void close_memories(struct memories* memories) {
  int i;
  for (i = 0; i < kInputs; ++i) {
    CHECK(keel_physical_memory_close(memories->memory[i], -1) == KEEL_STATUS_OK);
  }
}

static uint64_t make_weights(keel_device device, float value) {
  float weights[kFloats];
  uint64_t address = 0;
  fill_floats(weights, value);
  CHECK(keel_malloc(device, NULL, kBytes, NULL, &address) == KEEL_STATUS_OK);
  CHECK(keel_copy_to_device(device, NULL, address, weights, kBytes) == KEEL_STATUS_OK);
  return address;
}

/* One step with x and y there. */
static void step_with(keel_executable executable, const struct sum_program* its,
                      keel_physical_memory x, keel_physical_memory y, keel_step_report* report) {
  keel_lease lease = NULL;
  keel_buffer buffer = buffer_of(x);
  CHECK(keel_executable_acquire(executable, NULL, -1, &lease) == KEEL_STATUS_OK);
  CHECK(keel_lease_bind(lease, its->x, &buffer) == KEEL_STATUS_OK);
  buffer = buffer_of(y);
  CHECK(keel_lease_bind(lease, its->y, &buffer) == KEEL_STATUS_OK);
  CHECK(keel_lease_launch(lease, -1) == KEEL_STATUS_OK);
  memset(report, 0, sizeof *report);
  report->struct_size = sizeof *report;
  CHECK(keel_lease_get_report(lease, report) == KEEL_STATUS_OK);
  CHECK(keel_lease_wait(lease, -1) == KEEL_STATUS_OK);
  CHECK(keel_lease_close(lease) == KEEL_STATUS_OK);
}

/* With a policy that copies the same buffers are read and written at their own addresses. */
static void test_steps(keel_device device, keel_policy policy) {
  const struct sum_program its = make_sum(device, policy);
  const int remaps = policy == KEEL_POLICY_REMAP;
  struct memories x, y;
  keel_executable executable = NULL;
  keel_executable_options options;
  keel_buffer buffer;
  keel_step_report report;
  keel_policy found = -1;
  uint64_t granularity = 0;
  uint64_t w = make_weights(device, 1000);
  float in[kFloats];
  int step;

  CHECK(keel_physical_memory_get_granularity(device, &granularity) == KEEL_STATUS_OK);
  CHECK(granularity >= kBytes);
  x = make_memories(device, granularity);
  y = make_memories(device, granularity);
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.slots = 1;
  CHECK(keel_executable_create(its.program, &options, &executable) == KEEL_STATUS_OK);
  CHECK(keel_executable_get_policy(executable, its.x, &found) == KEEL_STATUS_OK && found == policy);
  buffer = buffer_at(w);
  CHECK(keel_executable_bind(executable, its.w, &buffer) == KEEL_STATUS_OK);
  for (step = 0; step < kSteps; ++step) {
    const int a = step % kInputs, b = (step / 2) % kInputs;
    fill_floats(in, (float)step);
    CHECK(keel_copy_to_device(device, NULL, x.address[a], in, kBytes) == KEEL_STATUS_OK);
    step_with(executable, &its, x.memory[a], y.memory[b], &report);
    CHECK(right_at(device, NULL, y.address[b], (float)step, 1000) == kFloats);
    CHECK(report.recorded == (step == 0) && report.patched == 0);
    CHECK(report.remapped == (remaps ? (step == 0 || step % 2 == 0 ? 2U : 1U) : 0U));
    CHECK(report.copied_in_bytes == (remaps ? 0U : (uint64_t)kBytes));
  }

  if (remaps) {
    /* The executable keeps what it has mapped, after the handles and the addresses are gone. */
    const int last = (kSteps - 1) % kInputs;
    keel_lease lease = NULL;
    buffer = buffer_of(x.memory[last]);
    CHECK(keel_executable_bind(executable, its.x, &buffer) == KEEL_STATUS_OK);
    buffer = buffer_of(y.memory[0]);
    CHECK(keel_executable_bind(executable, its.y, &buffer) == KEEL_STATUS_OK);
    CHECK(keel_physical_memory_close(x.memory[last], -1) == KEEL_STATUS_OK);
    CHECK(keel_executable_acquire(executable, NULL, -1, &lease) == KEEL_STATUS_OK);
    CHECK(keel_lease_launch(lease, -1) == KEEL_STATUS_OK);
    CHECK(keel_lease_close(lease) == KEEL_STATUS_OK);
    WRONG(keel_copy_to_device(device, NULL, x.address[last], in, kBytes), "no live block");
    WRONG(keel_physical_memory_close(x.memory[last], -1),
          "the handle of a physical memory that was closed");
    buffer = buffer_of(x.memory[last]);
    WRONG(keel_executable_bind(executable, its.x, &buffer), "a physical memory that was closed");
    CHECK(right_at(device, NULL, y.address[0], (float)(kSteps - 1), 1000) == kFloats);
    CHECK(keel_physical_memory_create(device, granularity, &x.memory[last]) == KEEL_STATUS_OK);
  }
  CHECK(keel_executable_close(executable) == KEEL_STATUS_OK);
  CHECK(keel_program_close(its.program) == KEEL_STATUS_OK);
  close_memories(&x);
  close_memories(&y);
  CHECK(keel_free(device, w) == KEEL_STATUS_OK);
}

static void test_mistakes(keel_device device) {
  const struct sum_program its = make_sum(device, KEEL_POLICY_REMAP);
  keel_device other = NULL;
  keel_executable executable = NULL;
  keel_physical_memory memory = NULL, large = NULL, foreign = NULL, none = NULL;
  keel_memory_stats stats;
  keel_buffer buffer;
  uint64_t address = 0, size = 0, plain = 0, granularity = 0;
  char bytes[16];

  CHECK(keel_physical_memory_get_granularity(device, &granularity) == KEEL_STATUS_OK);
  WRONG(keel_physical_memory_get_granularity(device, NULL), "bytes is NULL");
  WRONG(keel_physical_memory_get_granularity(NULL, &size), "the device is NULL");
  WRONG(keel_physical_memory_create(device, granularity, NULL), "memory is NULL");
  WRONG(keel_physical_memory_create(device, 1000, &none),
        "physical memory of 1000 bytes: it comes in multiples of the device's granularity, 2 MiB");
  WRONG(keel_physical_memory_create(device, granularity + 512, &none), "in multiples of");
  WRONG(keel_physical_memory_create(device, 0, &none), "in multiples of");
  REFUSED(keel_physical_memory_create(device, (uint64_t)1 << 40, &none),
          KEEL_STATUS_RESOURCE_EXHAUSTED, "");
  CHECK(none == NULL);

  CHECK(keel_physical_memory_create(device, granularity, &memory) == KEEL_STATUS_OK);
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  CHECK(keel_get_stats(device, &stats) == KEEL_STATUS_OK);
  CHECK(stats.reserved_bytes >= (int64_t)granularity);
  WRONG(keel_physical_memory_get(memory, NULL, &size), "address is NULL");
  WRONG(keel_physical_memory_get(memory, &address, NULL), "size is NULL");
  WRONG(keel_physical_memory_get(NULL, &address, &size), "the physical memory is NULL");
  WRONG(keel_physical_memory_get((keel_physical_memory)(void*)device, &address, &size),
        "handle of a device, not of a physical memory");
  CHECK(keel_physical_memory_get(memory, &address, &size) == KEEL_STATUS_OK);
  CHECK(keel_enqueue_fill(device, NULL, address + size - 16, 7, 1, 16) == KEEL_STATUS_OK);
  CHECK(keel_copy_to_host(device, NULL, bytes, address + size - 16, 16) == KEEL_STATUS_OK);
  CHECK(bytes[0] == 7 && bytes[15] == 7);
  WRONG(keel_enqueue_fill(device, NULL, address + size - 16, 7, 1, 17), "not inside its block");
  WRONG(keel_copy_to_host(device, NULL, bytes, address + size, 1), "no live block");
  WRONG(keel_free(device, address), "");

  /* What a binding that is remapped takes. */
  CHECK(keel_device_open("sim:1", &other) == KEEL_STATUS_OK);
  CHECK(keel_physical_memory_create(device, 2 * granularity, &large) == KEEL_STATUS_OK);
  CHECK(keel_physical_memory_create(other, granularity, &foreign) == KEEL_STATUS_OK);
  CHECK(keel_malloc(device, NULL, granularity, NULL, &plain) == KEEL_STATUS_OK);
  CHECK(keel_executable_create(its.program, NULL, &executable) == KEEL_STATUS_OK);
  buffer = buffer_at(plain);
  WRONG(keel_executable_bind(executable, its.x, &buffer),
        "binding 'x' is remapped: the buffer must bring its physical memory");
  buffer = buffer_of(large);
  WRONG(keel_executable_bind(executable, its.x, &buffer),
        "binding 'x' is remapped: its memory must have 2 MiB, not 4 MiB");
  buffer = buffer_of(foreign);
  WRONG(keel_executable_bind(executable, its.x, &buffer),
        "the physical memory is of device sim:1, the executable of device sim:0");
  buffer = buffer_of((keel_physical_memory)(void*)executable);
  WRONG(keel_executable_bind(executable, its.x, &buffer),
        "handle of an executable, not of a physical memory");
  buffer = buffer_of(memory);
  CHECK(keel_executable_bind(executable, its.x, &buffer) == KEEL_STATUS_OK);
  /* A caller whose struct has no such field yet. */
  buffer.struct_size = offsetof(keel_buffer, memory);
  WRONG(keel_executable_bind(executable, its.x, &buffer), "must bring its physical memory");

  CHECK(keel_executable_close(executable) == KEEL_STATUS_OK);
  CHECK(keel_program_close(its.program) == KEEL_STATUS_OK);
  CHECK(keel_physical_memory_close(memory, 0) == KEEL_STATUS_OK);
  WRONG(keel_physical_memory_get(memory, &address, &size), "physical memory that was closed");
  CHECK(keel_physical_memory_close(large, -1) == KEEL_STATUS_OK);
  CHECK(keel_physical_memory_close(foreign, -1) == KEEL_STATUS_OK);
  CHECK(keel_free(device, plain) == KEEL_STATUS_OK);
  CHECK(keel_device_forget(other) == KEEL_STATUS_OK);
}

static void test_rerecorder(keel_device device, keel_rerecording how) {
  const struct sum_program its = make_sum(device, KEEL_POLICY_AUTO);
  const int updates = how == KEEL_RERECORDING_UPDATE;
  keel_rerecorder rerecorder = NULL;
  keel_rerecorder_stats stats;
  keel_stream stream = NULL;
  uint64_t x[kInputs], y[kInputs], addresses[3];
  float in[kFloats];
  int i, step;

  CHECK(keel_stream_create(device, &stream) == KEEL_STATUS_OK);
  for (i = 0; i < kInputs; ++i) {
    CHECK(keel_malloc(device, NULL, kBytes, NULL, &x[i]) == KEEL_STATUS_OK);
    CHECK(keel_malloc(device, NULL, kBytes, NULL, &y[i]) == KEEL_STATUS_OK);
  }
  addresses[1] = make_weights(device, 3);
  CHECK(keel_stream_synchronize(device, NULL, -1) == KEEL_STATUS_OK);
  CHECK(keel_rerecorder_create(its.program, how, &rerecorder) == KEEL_STATUS_OK);
  CHECK(keel_program_close(its.program) == KEEL_STATUS_OK); /* the re-recorder keeps it */
  for (step = 0; step < kSteps; ++step) {
    addresses[0] = x[step % kInputs];
    addresses[2] = y[(step / 2) % kInputs];
    fill_floats(in, (float)step);
    CHECK(keel_copy_to_device(device, stream, addresses[0], in, kBytes) == KEEL_STATUS_OK);
    CHECK(keel_rerecorder_run(rerecorder, stream, addresses, 3) == KEEL_STATUS_OK);
    CHECK(right_at(device, stream, addresses[2], (float)step, 3) == kFloats);
  }
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  CHECK(keel_rerecorder_get_stats(rerecorder, &stats) == KEEL_STATUS_OK);
  CHECK(stats.steps == kSteps && stats.captured == kSteps);
  CHECK(stats.instantiated == (updates ? 1 : kSteps) &&
        stats.updated == (updates ? kSteps - 1 : 0));

  WRONG(keel_rerecorder_create(its.program, how, &rerecorder), "program that was closed");
  WRONG(keel_rerecorder_run(rerecorder, stream, NULL, 3), "addresses is NULL");
  WRONG(keel_rerecorder_run(rerecorder, stream, addresses, 2),
        "2 addresses for the 3 bindings of 'sum'");
  addresses[2] = 0;
  WRONG(keel_rerecorder_run(rerecorder, stream, addresses, 3),
        "binding 'y' of program 'sum' has no address");
  WRONG(keel_rerecorder_get_stats(rerecorder, NULL), "stats is NULL");
  stats.struct_size = 2;
  WRONG(keel_rerecorder_get_stats(rerecorder, &stats), "stats->struct_size is 2");
  WRONG(keel_rerecorder_close((keel_rerecorder)(void*)stream),
        "handle of a stream, not of a re-recorder");
  CHECK(keel_rerecorder_close(rerecorder) == KEEL_STATUS_OK);
  WRONG(keel_rerecorder_close(rerecorder), "the handle of a re-recorder that was closed");
  WRONG(keel_rerecorder_run(rerecorder, stream, addresses, 3), "re-recorder that was closed");
  CHECK(keel_stream_destroy(stream) == KEEL_STATUS_OK);
  for (i = 0; i < kInputs; ++i) {
    CHECK(keel_free(device, x[i]) == KEEL_STATUS_OK);
    CHECK(keel_free(device, y[i]) == KEEL_STATUS_OK);
  }
  CHECK(keel_free(device, addresses[1]) == KEEL_STATUS_OK);
}

static void test_rerecorder_mistakes(keel_device device) {
  const struct sum_program its = make_sum(device, KEEL_POLICY_AUTO);
  keel_rerecorder rerecorder = NULL;
  WRONG(keel_rerecorder_create(its.program, 2, &rerecorder), "there is no way 2 of re-recording");
  WRONG(keel_rerecorder_create(its.program, 0, NULL), "rerecorder is NULL");
  WRONG(keel_rerecorder_create(NULL, 0, &rerecorder), "the program is NULL");
  WRONG(keel_rerecorder_close(NULL), "the re-recorder is NULL");
  CHECK(rerecorder == NULL);
  CHECK(keel_program_close(its.program) == KEEL_STATUS_OK);
}

int main(void) {
  keel_device device = NULL;
  keel_memory_stats stats;
  if (keel_device_open(NULL, &device) != KEEL_STATUS_OK) {
    fail(__LINE__, "keel_device_open");
    return 1;
  }
  test_steps(device, KEEL_POLICY_REMAP);
  test_steps(device, KEEL_POLICY_COPY);
  test_mistakes(device);
  test_rerecorder(device, KEEL_RERECORDING_INSTANTIATE);
  test_rerecorder(device, KEEL_RERECORDING_UPDATE);
  test_rerecorder_mistakes(device);
  CHECK(keel_trim(device, 0) == KEEL_STATUS_OK);
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  CHECK(keel_get_stats(device, &stats) == KEEL_STATUS_OK && stats.reserved_bytes == 0);
  CHECK(keel_device_forget(device) == KEEL_STATUS_OK);
  if (failures == 0) puts("physical memory and re-recording do what keel/c_graph.h says");
  return failures == 0 ? 0 : 1;
}
