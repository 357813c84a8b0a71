/* A graph from C: recorded once, replayed for inputs that are somewhere else every time.
 *
 * y = x * w, a product of matrices by one of Keel's own kernels, then a "library" that works on the
 * stream it is given. docs/c-api.md walks through it. */
#include <stdio.h>
#include <stdlib.h>

#include "keel/c.h"

enum { kSide = 16, kCount = kSide * kSide, kBytes = kCount * 4, kSteps = 8 };

static void check(keel_status status, const char* what) {
  if (status == KEEL_STATUS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, keel_status_name(status), keel_last_error_message());
  exit(1);
}

/* What cannot be written as a command: it is captured from the stream, and then replayed. */
static keel_status library(const keel_trace_context* context, void* data) {
  ++*(int*)data;
  return keel_enqueue_fill(context->device, context->stream, context->addresses[0], 0, 4, 1);
}

static keel_kernel_argument buffer(uint32_t binding, keel_access access) {
  keel_kernel_argument argument = {{0, 0, 0, 0}, NULL, 0};
  argument.operand.binding = binding;
  argument.operand.access = access;
  return argument;
}

static keel_kernel_argument value(const void* of, uint64_t size) {
  keel_kernel_argument argument = {{0, 0, 0, 0}, NULL, 0};
  argument.value = of;
  argument.value_size = size;
  return argument;
}

/* x * w, with its first element set to zero, in y, which stays in the graph's own memory. */
static keel_program make_program(keel_device device, int* calls, uint32_t* x, uint32_t* w,
                                 uint32_t* y) {
  const uint32_t as_stored = 0;
  const uint64_t side = kSide;
  const keel_launch_dims dims = {sizeof dims, {4, 1, 1}, {64, 1, 1}, 0};
  keel_kernel_argument arguments[7];
  keel_operand written = {0, KEEL_ACCESS_READ_WRITE, 0, 0};
  keel_module module;
  keel_kernel matmul;
  keel_program_builder builder;
  keel_program program;

  check(keel_module_load_standard(device, &module), "loading Keel's kernels");
  check(keel_kernel_find(module, "keel_matmul", &matmul), "finding a kernel");
  check(keel_program_builder_create(device, "product", &builder), "beginning the program");
  check(keel_program_builder_bind(builder, "x", kBytes, KEEL_BINDING_IN, KEEL_POLICY_AUTO, x), "x");
  check(keel_program_builder_bind(builder, "w", kBytes, KEEL_BINDING_RESIDENT, KEEL_POLICY_AUTO, w),
        "w");
  check(keel_program_builder_bind(builder, "y", kBytes, KEEL_BINDING_OUT, KEEL_POLICY_IN_PLACE, y),
        "y");
  arguments[0] = buffer(*x, KEEL_ACCESS_READ);
  arguments[1] = buffer(*w, KEEL_ACCESS_READ);
  arguments[2] = buffer(*y, KEEL_ACCESS_WRITE);
  arguments[3] = value(&as_stored, sizeof as_stored);
  arguments[4] = arguments[5] = arguments[6] = value(&side, sizeof side);
  check(keel_program_builder_kernel(builder, matmul, &dims, arguments, 7), "adding the kernel");
  written.binding = *y;
  check(keel_program_builder_traced(builder, "library", &written, 1, library, calls, NULL),
        "adding the library");
  check(keel_program_builder_build(builder, &program), "building the program");
  check(keel_kernel_close(matmul), "closing the kernel"); /* the program keeps it */
  check(keel_module_close(module), "closing the module");
  return program;
}

static int verify(const float* out, float factor) {
  int i;
  for (i = 0; i < kCount; ++i) {
    const float expected = i == 0 ? 0 : factor * (float)i;
    if (out[i] == expected) continue;
    fprintf(stderr, "element %d is %f, not %f\n", i, (double)out[i], (double)expected);
    return 1;
  }
  return 0;
}

int main(void) {
  static float in[kCount], weights[kCount], out[kCount];
  keel_executable_options options = {sizeof options};
  keel_executable_stats stats = {sizeof stats};
  keel_buffer buffer = {sizeof buffer};
  keel_device device;
  keel_stream stream;
  keel_program program;
  keel_executable executable;
  uint32_t x, w, y;
  uint64_t weights_at, batch, result, size;
  int calls = 0, step, i;

  check(keel_device_open(NULL, &device), "opening the device");
  check(keel_stream_create(device, &stream), "making a stream");
  program = make_program(device, &calls, &x, &w, &y);
  options.slots = 2;
  check(keel_executable_create(program, &options, &executable), "making the executable");
  check(keel_program_close(program), "closing the program");

  check(keel_malloc(device, stream, kBytes, NULL, &weights_at), "allocating");
  for (i = 0; i < kSide; ++i) weights[i * kSide + i] = 3; /* three times the identity */
  check(keel_copy_to_device(device, stream, weights_at, weights, kBytes), "copying the weights");
  buffer.address = weights_at;
  buffer.size = kBytes;
  check(keel_executable_bind(executable, w, &buffer), "binding the weights");

  for (step = 1; step <= kSteps; ++step) {
    keel_lease lease;
    keel_output output;
    /* A batch that is wherever the allocator puts it. */
    check(keel_malloc(device, stream, kBytes, NULL, &batch), "allocating a batch");
    for (i = 0; i < kCount; ++i) in[i] = (float)(step * i);
    check(keel_copy_to_device(device, stream, batch, in, kBytes), "copying a batch");
    buffer.address = batch;
    check(keel_executable_acquire(executable, stream, 1000000000, &lease), "acquiring a slot");
    check(keel_lease_bind(lease, x, &buffer), "binding the batch");
    check(keel_lease_launch(lease, 1000000000), "launching");
    check(keel_lease_hold(lease, y, &output), "holding the result");
    check(keel_lease_close(lease), "giving the slot back");
    check(keel_free(device, batch), "freeing the batch"); /* in the order of the stream */
    check(keel_output_get(output, &result, &size), "looking at the result");
    check(keel_copy_to_host(device, stream, out, result, size), "copying the result");
    check(keel_output_close(output), "letting the result go");
    if (verify(out, 3 * (float)step) != 0) return 1;
  }

  check(keel_executable_get_stats(executable, &stats), "reading the statistics");
  printf("%llu steps, verified; %llu graphs recorded, the library called %d times\n",
         (unsigned long long)stats.steps, (unsigned long long)stats.graphs_recorded, calls);
  check(keel_executable_close(executable), "closing the executable");
  check(keel_free(device, weights_at), "freeing");
  check(keel_stream_destroy(stream), "destroying the stream");
  check(keel_device_close(device), "closing the device");
  return 0;
}
