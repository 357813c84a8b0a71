/* The C interface as a C99 program sees it, linked with libkeel.so like any user's. */
#include "capi/capi_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keel/c.h"

struct count {
  int calls;
  int64_t value;
  const char* key;
};

static void count_device(const keel_device_info* info, void* data) {
  struct count* count = data;
  if (strcmp(info->driver, "sim") == 0) ++count->calls;
}

static void count_stat(const char* key, int64_t value, void* data) {
  struct count* count = data;
  ++count->calls;
  if (strcmp(key, count->key) == 0) count->value = value;
}

static void test_versions(void) {
  CHECK(keel_version() == KEEL_VERSION);
  CHECK(strcmp(keel_version_string(), KEEL_VERSION_STRING) == 0);
  CHECK(keel_c_level() == KEEL_C_LEVEL);
  CHECK(strcmp(keel_status_name(KEEL_STATUS_DEVICE_LOST), "DEVICE_LOST") == 0);
  CHECK(strcmp(keel_status_name(42), "CODE_42") == 0);
  CHECK(strcmp(keel_last_error_message(), "") == 0);
  CHECK(keel_last_error_status() == KEEL_STATUS_OK);
  CHECK(keel_last_error_vendor_code() == 0);
  CHECK(strcmp(keel_last_error_vendor_name(), "") == 0);
}

static void test_devices(keel_device device) {
  struct count count = {0, 0, NULL};
  keel_device other = NULL;
  keel_device_info info;
  /* A caller of an older version, whose struct ends after `ordinal`, and one of a newer. */
  struct {
    keel_device_info info;
    uint64_t later;
  } longer;
  uint64_t free_bytes = 0, total_bytes = 0;

  CHECK(keel_for_each_device(count_device, &count) == KEEL_STATUS_OK && count.calls == 2);
  WRONG(keel_for_each_device(NULL, NULL), "visit");

  memset(&info, 0x55, sizeof info);
  info.struct_size = sizeof info;
  CHECK(keel_device_get_info(device, &info) == KEEL_STATUS_OK);
  CHECK(strcmp(info.driver, "sim") == 0 && info.ordinal == 0 && info.simulated == 1);
  CHECK(info.memory == (uint64_t)1 << 30 && info.name[0] != '\0' && info.reserved_0 == 0);
  memset(&info, 0x55, sizeof info);
  info.struct_size = offsetof(keel_device_info, ordinal) + sizeof info.ordinal;
  CHECK(keel_device_get_info(device, &info) == KEEL_STATUS_OK);
  CHECK(info.ordinal == 0 && info.simulated == 0x55555555);
  memset(&longer, 0x55, sizeof longer);
  longer.info.struct_size = sizeof longer;
  CHECK(keel_device_get_info(device, &longer.info) == KEEL_STATUS_OK);
  CHECK(longer.info.memory == (uint64_t)1 << 30 && longer.later == 0);
  info.struct_size = 0;
  WRONG(keel_device_get_info(device, &info), "info->struct_size is 0");
  WRONG(keel_device_get_info(device, NULL), "info is NULL");

  CHECK(keel_device_get_memory(device, &free_bytes, &total_bytes) == KEEL_STATUS_OK);
  CHECK(total_bytes == (uint64_t)1 << 30 && free_bytes <= total_bytes);
  WRONG(keel_device_get_memory(device, NULL, &total_bytes), "free_bytes");
  WRONG(keel_device_get_memory(device, &free_bytes, NULL), "total_bytes");

  WRONG(keel_device_open("sim:0", NULL), "device is NULL");
  WRONG(keel_device_open("simulated", &other), "'simulated'");
  REFUSED(keel_device_open("sim:7", &other), KEEL_STATUS_NOT_FOUND, "sim:7");
  REFUSED(keel_device_open("abacus:0", &other), KEEL_STATUS_NOT_FOUND, "abacus");
  CHECK(other == NULL);
}

static void test_handles(keel_device device) {
  keel_device other = NULL, closed = NULL;
  keel_stream stream = NULL, foreign = NULL;
  uint64_t address = 0, limit = 0, native = 0;
  int local = 0;

  CHECK(keel_device_open("sim:1", &other) == KEEL_STATUS_OK);
  CHECK(keel_device_open("sim:1", &closed) == KEEL_STATUS_OK && closed != other);
  CHECK(keel_device_close(closed) == KEEL_STATUS_OK);
  WRONG(keel_device_close(closed), "closed");
  WRONG(keel_get_limit(closed, &limit), "closed");
  WRONG(keel_get_limit(NULL, &limit), "device is NULL");
  WRONG(keel_get_limit((keel_device)(void*)&local, &limit), "not the handle of a device");
  CHECK(keel_get_limit(other, &limit) == KEEL_STATUS_OK);

  CHECK(keel_stream_create(device, &stream) == KEEL_STATUS_OK);
  CHECK(keel_stream_create(other, &foreign) == KEEL_STATUS_OK);
  WRONG(keel_malloc(device, foreign, 100, NULL, &address), "sim:1");
  WRONG(keel_malloc((keel_device)(void*)stream, NULL, 100, NULL, &address),
        "handle of a stream, not of a device");
  WRONG(keel_malloc(device, (keel_stream)(void*)other, 100, NULL, &address),
        "handle of a device, not of a stream");
  WRONG(keel_stream_create(device, NULL), "stream is NULL");
  WRONG(keel_stream_destroy(NULL), "stream is NULL");
  CHECK(keel_stream_get_native(device, stream, &native) == KEEL_STATUS_OK && native != 0);
  WRONG(keel_stream_get_native(device, stream, NULL), "native");
  CHECK(keel_stream_synchronize(device, stream, -1) == KEEL_STATUS_OK);
  CHECK(keel_stream_synchronize(device, NULL, 1000000000) == KEEL_STATUS_OK);
  CHECK(keel_stream_destroy(stream) == KEEL_STATUS_OK);
  WRONG(keel_stream_destroy(stream), "closed");
  WRONG(keel_stream_synchronize(device, stream, -1), "closed");
  CHECK(keel_stream_destroy(foreign) == KEEL_STATUS_OK);
  CHECK(keel_device_forget(other) == KEEL_STATUS_OK);
  WRONG(keel_device_forget(other), "closed");
}

static void test_memory(keel_device device) {
  enum { kSize = 6 << 20 };
  keel_stream stream = NULL;
  uint64_t a = 0, b = 0, none = 1;
  unsigned char* in = malloc(kSize);
  unsigned char* out = malloc(kSize);
  void* pinned = NULL;
  keel_malloc_options options;
  struct {
    keel_malloc_options options;
    uint64_t later;
  } longer;
  keel_block_info block;
  int i;

  CHECK(in != NULL && out != NULL);
  for (i = 0; i < kSize; ++i) in[i] = (unsigned char)(i * 31 + i / 257);
  CHECK(keel_stream_create(device, &stream) == KEEL_STATUS_OK);
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.alignment = 4096;
  options.tag = "weights";
  CHECK(keel_malloc(device, stream, kSize, &options, &a) == KEEL_STATUS_OK && a % 4096 == 0);
  CHECK(keel_malloc(device, NULL, kSize, NULL, &b) == KEEL_STATUS_OK);
  CHECK(keel_malloc(device, stream, 0, NULL, &none) == KEEL_STATUS_OK && none == 0);
  CHECK(keel_free(device, none) == KEEL_STATUS_OK);

  /* There and back: staged, from block to block, through pinned memory. */
  CHECK(keel_copy_to_device(device, stream, a, in, kSize) == KEEL_STATUS_OK);
  CHECK(keel_enqueue_copy(device, stream, b, a, kSize) == KEEL_STATUS_OK);
  CHECK(keel_record_use(device, b, stream) == KEEL_STATUS_OK);
  CHECK(keel_enqueue_fill(device, stream, b + 100, 0xabcd, 2, 10) == KEEL_STATUS_OK);
  CHECK(keel_copy_to_host(device, stream, out, b, kSize) == KEEL_STATUS_OK);
  CHECK(memcmp(in, out, 100) == 0 && memcmp(in + 120, out + 120, kSize - 120) == 0);
  for (i = 0; i < 20; i += 2) CHECK(out[100 + i] == 0xcd && out[101 + i] == 0xab);
  CHECK(keel_host_malloc(device, kSize, &pinned) == KEEL_STATUS_OK && pinned != NULL);
  CHECK(keel_enqueue_copy_to_host(device, stream, pinned, a, kSize) == KEEL_STATUS_OK);
  CHECK(keel_stream_synchronize(device, stream, -1) == KEEL_STATUS_OK);
  CHECK(memcmp(in, pinned, kSize) == 0);
  CHECK(keel_enqueue_copy_to_device(device, stream, b, pinned, kSize) == KEEL_STATUS_OK);
  CHECK(keel_host_record_use(device, pinned, stream) == KEEL_STATUS_OK);
  CHECK(keel_host_free(device, pinned) == KEEL_STATUS_OK);
  CHECK(keel_host_free(device, NULL) == KEEL_STATUS_OK);
  CHECK(keel_copy_to_host(device, stream, out, b, kSize) == KEEL_STATUS_OK);
  CHECK(memcmp(in, out, kSize) == 0);

  memset(&block, 0, sizeof block);
  block.struct_size = sizeof block;
  CHECK(keel_find(device, a + 5, &block) == KEEL_STATUS_OK);
  CHECK(block.address == a && block.requested == kSize && block.size >= kSize);
  CHECK(strcmp(block.tag, "weights") == 0);
  REFUSED(keel_find(device, 5, &block), KEEL_STATUS_NOT_FOUND, "0x5");
  WRONG(keel_find(device, a, NULL), "info");

  /* Mistakes. */
  WRONG(keel_malloc(device, stream, 100, NULL, NULL), "address is NULL");
  options.struct_size = 1;
  WRONG(keel_malloc(device, stream, 100, &options, &none), "options->struct_size is 1");
  options.struct_size = sizeof options;
  options.alignment = 3;
  WRONG(keel_malloc(device, stream, 100, &options, &none), "3");
  memset(&longer, 0, sizeof longer);
  longer.options.struct_size = sizeof longer;
  CHECK(keel_malloc(device, stream, 100, &longer.options, &none) == KEEL_STATUS_OK);
  CHECK(keel_free(device, none) == KEEL_STATUS_OK);
  longer.later = 1;
  REFUSED(keel_malloc(device, stream, 100, &longer.options, &none), KEEL_STATUS_UNIMPLEMENTED,
          "options");
  REFUSED(keel_malloc(device, stream, (uint64_t)1 << 50, NULL, &none),
          KEEL_STATUS_RESOURCE_EXHAUSTED, "out of memory");
  REFUSED(keel_malloc(device, stream, UINT64_MAX, NULL, &none), KEEL_STATUS_RESOURCE_EXHAUSTED, "");
  WRONG(keel_copy_to_device(device, stream, a, NULL, 10), "source is NULL");
  WRONG(keel_copy_to_host(device, stream, NULL, a, 10), "destination is NULL");
  WRONG(keel_copy_to_device(device, stream, a, in, (uint64_t)kSize + 1), "not inside its block");
  WRONG(keel_copy_to_device(device, stream, a + 1, in, UINT64_MAX), "not inside its block");
  WRONG(keel_copy_to_host(device, stream, out, a + kSize - 1, 2), "not inside its block");
  WRONG(keel_copy_to_device(device, stream, 64, in, 10), "no live block");
  WRONG(keel_enqueue_copy_to_device(device, stream, a, in, 10), "pinned");
  WRONG(keel_enqueue_copy_to_host(device, stream, out, a, 10), "pinned");
  WRONG(keel_enqueue_copy(device, stream, a, a + 5, 10), "overlap");
  WRONG(keel_enqueue_fill(device, stream, a, 1, 3, 1), "width is 3");
  WRONG(keel_enqueue_fill(device, stream, a, 1, 4, UINT64_MAX / 2), "count");
  WRONG(keel_enqueue_fill(device, stream, a, 1, 4, kSize / 4 + 1), "not inside its block");
  WRONG(keel_record_use(device, a + 512, stream), "no live block begins");
  WRONG(keel_free(device, a + 512), "no live block begins");
  WRONG(keel_host_malloc(device, 10, NULL), "pointer is NULL");
  WRONG(keel_host_malloc(device, 0, &pinned), "0");
  WRONG(keel_host_free(device, in), "");
  WRONG(keel_host_free(device, pinned), ""); /* freed before */
  WRONG(keel_host_record_use(device, NULL, stream), "pointer is NULL");

  CHECK(keel_free(device, a) == KEEL_STATUS_OK);
  WRONG(keel_free(device, a), "freed before");
  WRONG(keel_copy_to_device(device, stream, a, in, 10), "no live block");
  CHECK(keel_copy_to_device(device, stream, a, in, 0) == KEEL_STATUS_OK);
  CHECK(keel_host_memory_gone(in, kSize) == KEEL_STATUS_OK); /* nothing of it was pinned */
  CHECK(keel_host_memory_gone(NULL, 0) == KEEL_STATUS_OK);
  CHECK(keel_free(device, b) == KEEL_STATUS_OK);
  CHECK(keel_stream_destroy(stream) == KEEL_STATUS_OK);
  free(in);
  free(out);
}

static void test_limits_and_statistics(keel_device device) {
  keel_memory_stats stats;
  struct count count = {0, -1, "allocated_bytes.all.current"};
  struct count host = {0, -1, "allocated_bytes.current"};
  uint64_t address = 0, limit = 0;
  size_t size = 0;
  char* text = NULL;

  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  CHECK(keel_trim(device, 0) == KEEL_STATUS_OK);
  CHECK(keel_host_trim(device, 0) == KEEL_STATUS_OK);
  CHECK(keel_reset_peak_stats(device) == KEEL_STATUS_OK);
  CHECK(keel_reset_accumulated_stats(device) == KEEL_STATUS_OK);
  CHECK(keel_get_stats(device, &stats) == KEEL_STATUS_OK);
  CHECK(stats.allocated_bytes == 0 && stats.reserved_bytes == 0 && stats.allocations == 0);
  CHECK(keel_malloc(device, NULL, 1000, NULL, &address) == KEEL_STATUS_OK);
  CHECK(keel_get_stats(device, &stats) == KEEL_STATUS_OK);
  CHECK(stats.allocated_bytes == 1024 && stats.requested_bytes == 1000 && stats.blocks == 1);
  CHECK(stats.reserved_bytes == 2 << 20 && stats.reserved_bytes_peak == 2 << 20);
  CHECK(stats.allocations == 1 && stats.frees == 0 && stats.driver_allocations == 1);
  CHECK(keel_for_each_stat(device, count_stat, &count) == KEEL_STATUS_OK);
  CHECK(count.calls > 50 && count.value == 1024);
  CHECK(keel_host_for_each_stat(device, count_stat, &host) == KEEL_STATUS_OK);
  CHECK(host.calls > 10 && host.value == 0);
  WRONG(keel_for_each_stat(device, NULL, NULL), "visit");
  WRONG(keel_host_for_each_stat(device, NULL, NULL), "visit");
  WRONG(keel_get_stats(device, NULL), "stats is NULL");
  stats.struct_size = 4;
  WRONG(keel_get_stats(device, &stats), "stats->struct_size is 4");

  CHECK(keel_report(device, NULL, &size) == KEEL_STATUS_OK && size > 100);
  text = malloc(size);
  CHECK(text != NULL && keel_report(device, text, &size) == KEEL_STATUS_OK);
  CHECK(strlen(text) + 1 == size && strstr(text, "1000 B requested") != NULL);
  size = 10;
  REFUSED(keel_report(device, text, &size), KEEL_STATUS_OUT_OF_RANGE, "10");
  CHECK(size > 100);
  WRONG(keel_report(device, text, NULL), "size is NULL");
  free(text);

  CHECK(keel_set_fraction(device, 0.5) == KEEL_STATUS_OK);
  CHECK(keel_get_limit(device, &limit) == KEEL_STATUS_OK && limit == (uint64_t)1 << 29);
  WRONG(keel_set_fraction(device, 1.5), "1.5");
  WRONG(keel_get_limit(device, NULL), "bytes is NULL");
  CHECK(keel_set_limit(device, 4 << 20) == KEEL_STATUS_OK);
  REFUSED(keel_malloc(device, NULL, 8 << 20, NULL, &limit), KEEL_STATUS_RESOURCE_EXHAUSTED,
          "limit");
  CHECK(keel_set_fraction(device, 1) == KEEL_STATUS_OK);
  CHECK(keel_host_set_limit(device, 0) == KEEL_STATUS_OK);
  CHECK(keel_free(device, address) == KEEL_STATUS_OK);
}

static void test_history(keel_device device, const char* path) {
  uint64_t address = 0, count = 0;
  FILE* file = NULL;
  char start[200];

  CHECK(keel_history_enable(1000, 1) == KEEL_STATUS_OK);
  WRONG(keel_history_enable(0, 0), "0");
  CHECK(keel_history_clear() == KEEL_STATUS_OK);
  CHECK(keel_malloc(device, NULL, 3 << 20, NULL, &address) == KEEL_STATUS_OK);
  CHECK(keel_history_get_count(&count) == KEEL_STATUS_OK && count >= 2);
  WRONG(keel_history_get_count(NULL), "count is NULL");
  CHECK(keel_write_snapshot(device, path, KEEL_SNAPSHOT_JSON) == KEEL_STATUS_OK);
  file = fopen(path, "rb");
  CHECK(file != NULL && fread(start, 1, sizeof start, file) == sizeof start);
  CHECK(memcmp(start, "{\"segments\"", 11) == 0);
  if (file != NULL) fclose(file);
  CHECK(keel_write_snapshot(NULL, path, KEEL_SNAPSHOT_PICKLE) == KEEL_STATUS_OK);
  WRONG(keel_write_snapshot(device, NULL, KEEL_SNAPSHOT_JSON), "path is NULL");
  WRONG(keel_write_snapshot(device, path, 7), "format 7");
  REFUSED(keel_write_snapshot(device, "/nowhere/at/all", KEEL_SNAPSHOT_JSON), KEEL_STATUS_NOT_FOUND,
          "/nowhere/at/all");
  CHECK(keel_history_disable() == KEEL_STATUS_OK);
  CHECK(keel_free(device, address) == KEEL_STATUS_OK);
  CHECK(remove(path) == 0);
}

/* --- Graphs: y = 2 * x + w, by an explicit kernel, a library's and one that is called every step
 */

enum { kFloats = 256, kBytes = kFloats * 4, kSteps = 9 };

struct graph_state {
  int traced, captured, eager, called, destroyed;
  keel_status answer; /* of the traced function */
  int fails_inside;
  uint64_t native; /* of the newest call */
};

static void destroy_state(void* data) { ++((struct graph_state*)data)->destroyed; }
static void called_state(void* data) { ++((struct graph_state*)data)->called; }

/* scratch to y */
static keel_status traced_state(const keel_trace_context* context, void* data) {
  struct graph_state* state = data;
  uint64_t native = 0;
  ++state->traced;
  state->captured += context->capturing;
  state->native = context->native_stream;
  CHECK(context->struct_size >= sizeof *context && context->address_count == 2);
  CHECK(keel_stream_get_native(context->device, context->stream, &native) == KEEL_STATUS_OK);
  CHECK(native == context->native_stream);
  if (state->fails_inside) {
    return keel_enqueue_copy(context->device, context->stream, 0, context->addresses[0], 4);
  }
  if (state->answer != KEEL_STATUS_OK) return state->answer;
  return keel_enqueue_copy(context->device, context->stream, context->addresses[1],
                           context->addresses[0], kBytes);
}

static keel_status eager_state(const keel_trace_context* context, void* data) {
  ++((struct graph_state*)data)->eager;
  CHECK(context->capturing == 0 && context->address_count == 0);
  return KEEL_STATUS_OK;
}

struct graph_program {
  uint32_t x, w, s, y;
  keel_program program;
};

static keel_operand operand(uint32_t binding, keel_access access) {
  keel_operand made;
  memset(&made, 0, sizeof made);
  made.binding = binding;
  made.access = access;
  return made;
}

static keel_kernel_argument buffer_argument(uint32_t binding, keel_access access) {
  keel_kernel_argument made;
  memset(&made, 0, sizeof made);
  made.operand = operand(binding, access);
  return made;
}

static keel_kernel_argument value_argument(const void* value, uint64_t size) {
  keel_kernel_argument made;
  memset(&made, 0, sizeof made);
  made.value = value;
  made.value_size = size;
  return made;
}

static struct graph_program make_program(keel_device device, struct graph_state* state) {
  struct graph_program made = {0, 0, 0, 0, NULL};
  keel_module module = NULL;
  keel_kernel add = NULL, axpy = NULL, same = NULL;
  keel_program_builder builder = NULL;
  keel_launch_dims dims;
  keel_kernel_argument arguments[4];
  keel_operand uses[2], whole;
  const uint64_t count = kFloats;
  const float one = 1;

  CHECK(keel_module_load_standard(device, &module) == KEEL_STATUS_OK);
  CHECK(keel_kernel_find(module, "keel_add", &add) == KEEL_STATUS_OK);
  CHECK(keel_kernel_find(module, "keel_axpy", &axpy) == KEEL_STATUS_OK);
  CHECK(keel_module_close(module) == KEEL_STATUS_OK); /* its kernels keep it */
  CHECK(keel_program_builder_create(device, "scaled", &builder) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_bind(builder, "x", kBytes, KEEL_BINDING_IN, KEEL_POLICY_COPY,
                                  &made.x) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_bind(builder, "w", kBytes, KEEL_BINDING_RESIDENT, KEEL_POLICY_AUTO,
                                  &made.w) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_bind(builder, "s", kBytes, KEEL_BINDING_SCRATCH, KEEL_POLICY_AUTO,
                                  &made.s) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_bind(builder, "y", kBytes, KEEL_BINDING_OUT, KEEL_POLICY_IN_PLACE,
                                  &made.y) == KEEL_STATUS_OK);
  CHECK(made.x == 0 && made.w == 1 && made.s == 2 && made.y == 3);

  whole = operand(made.s, 0);
  CHECK(keel_program_builder_fill(builder, &whole, 0, 4) == KEEL_STATUS_OK);
  memset(&dims, 0, sizeof dims);
  dims.struct_size = sizeof dims;
  dims.block[0] = 64;
  arguments[0] = buffer_argument(made.x, KEEL_ACCESS_READ);
  arguments[1] = buffer_argument(made.w, KEEL_ACCESS_READ);
  arguments[2] = buffer_argument(made.s, KEEL_ACCESS_WRITE);
  arguments[3] = value_argument(&count, sizeof count);
  CHECK(keel_program_builder_kernel(builder, add, &dims, arguments, 4) == KEEL_STATUS_OK);
  uses[0] = operand(made.s, KEEL_ACCESS_READ);
  uses[1] = operand(made.y, KEEL_ACCESS_WRITE);
  CHECK(keel_program_builder_traced(builder, "library", uses, 2, traced_state, state,
                                    destroy_state) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_eager(builder, "between", NULL, 0, eager_state, state,
                                   destroy_state) == KEEL_STATUS_OK);
  arguments[1] = buffer_argument(made.y, KEEL_ACCESS_READ_WRITE);
  arguments[2] = value_argument(&one, sizeof one);
  CHECK(keel_program_builder_kernel(builder, axpy, NULL, arguments, 4) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_call(builder, called_state, state, destroy_state) == KEEL_STATUS_OK);

  /* What the builder says at once. */
  WRONG(keel_program_builder_bind(builder, NULL, 4, 0, 0, &made.x), "name is NULL");
  WRONG(keel_program_builder_bind(builder, "z", 4, 9, 0, &made.x), "access 9");
  WRONG(keel_program_builder_bind(builder, "z", 4, 0, 9, &made.x), "policy 9");
  WRONG(keel_program_builder_bind(builder, "z", 4, 0, 0, NULL), "binding is NULL");
  arguments[3] = value_argument(&count, 17);
  WRONG(keel_program_builder_kernel(builder, add, NULL, arguments, 4), "arguments[3].value_size");
  WRONG(keel_program_builder_kernel(builder, add, NULL, NULL, 4), "arguments is NULL");
  dims.struct_size = 0;
  WRONG(keel_program_builder_kernel(builder, add, &dims, NULL, 0), "dims->struct_size");
  WRONG(keel_program_builder_kernel(builder, NULL, NULL, NULL, 0), "the kernel is NULL");
  WRONG(keel_program_builder_copy(builder, NULL, &whole), "destination is NULL");
  WRONG(keel_program_builder_copy(builder, &whole, NULL), "source is NULL");
  WRONG(keel_program_builder_fill(builder, NULL, 0, 4), "destination is NULL");
  WRONG(keel_program_builder_call(builder, NULL, state, destroy_state), "function is NULL");
  WRONG(keel_program_builder_traced(builder, "a", NULL, 0, NULL, state, destroy_state), "function");
  WRONG(keel_program_builder_eager(builder, NULL, NULL, 0, eager_state, state, destroy_state),
        "name is NULL");
  WRONG(keel_program_builder_eager(builder, "a", NULL, 1, eager_state, state, destroy_state),
        "uses is NULL");
  CHECK(state->destroyed == 0);

  CHECK(keel_kernel_close(add) == KEEL_STATUS_OK);
  CHECK(keel_kernel_close(axpy) == KEEL_STATUS_OK);
  WRONG(keel_kernel_close(axpy), "the handle of a kernel that was closed");
  WRONG(keel_program_builder_build(builder, NULL), "program is NULL");
  CHECK(keel_program_builder_build(builder, &made.program) == KEEL_STATUS_OK);
  WRONG(keel_program_builder_build(builder, &made.program), "program builder that was closed");
  WRONG(keel_kernel_find(module, "keel_add", &same), "module that was closed");
  return made;
}

static void fill_floats(float* to, float value) {
  int i;
  for (i = 0; i < kFloats; ++i) to[i] = value + (float)i;
}

static keel_buffer buffer_at(uint64_t address) {
  keel_buffer buffer;
  memset(&buffer, 0, sizeof buffer);
  buffer.struct_size = sizeof buffer;
  buffer.address = address;
  buffer.size = kBytes;
  return buffer;
}

static void see_action(const keel_action* action, void* data) {
  struct count* count = data;
  ++count->calls;
  CHECK(action->struct_size >= sizeof *action);
  CHECK(action->binding == (action->kind == KEEL_ACTION_REBOUND ? 0 : KEEL_NO_BINDING)); /* x */
  if (action->kind == KEEL_ACTION_RAN_EAGERLY && action->reason == KEEL_REASON_WARM_UP &&
      strcmp(action->kind_name, "ran eagerly") == 0 && action->reason_text[0] != '\0') {
    ++count->value;
  }
}

/* Steps with inputs that move, each result compared. */
static void test_graph_steps(keel_device device, keel_executable_mode mode) {
  struct graph_state state = {0, 0, 0, 0, 0, KEEL_STATUS_OK, 0, 0};
  struct graph_program its = make_program(device, &state);
  keel_executable executable = NULL;
  keel_executable_options options;
  keel_executable_stats stats;
  keel_stream stream = NULL, reader = NULL;
  keel_buffer buffer;
  keel_step_report report;
  keel_policy policy = -1;
  uint64_t x[3], w = 0, address = 0, size = 0, native = 0;
  float in[kFloats], weights[kFloats], out[kFloats];
  int32_t done = 0;
  int step, i, right = 0;

  CHECK(keel_stream_create(device, &stream) == KEEL_STATUS_OK);
  CHECK(keel_stream_create(device, &reader) == KEEL_STATUS_OK);
  for (i = 0; i < 3; ++i) {
    CHECK(keel_malloc(device, stream, kBytes, NULL, &x[i]) == KEEL_STATUS_OK);
  }
  CHECK(keel_malloc(device, stream, kBytes, NULL, &w) == KEEL_STATUS_OK);
  fill_floats(weights, 1000);
  CHECK(keel_copy_to_device(device, stream, w, weights, kBytes) == KEEL_STATUS_OK);
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.mode = mode;
  CHECK(keel_executable_create(its.program, &options, &executable) == KEEL_STATUS_OK);
  CHECK(keel_program_close(its.program) == KEEL_STATUS_OK);
  buffer = buffer_at(w);
  CHECK(keel_executable_bind(executable, its.w, &buffer) == KEEL_STATUS_OK);
  CHECK(keel_executable_get_policy(executable, its.x, &policy) == KEEL_STATUS_OK);
  CHECK(policy == KEEL_POLICY_COPY);

  for (step = 1; step <= kSteps; ++step) {
    keel_lease lease = NULL;
    keel_output output = NULL;
    struct count actions = {0, 0, NULL};
    fill_floats(in, (float)step);
    CHECK(keel_copy_to_device(device, stream, x[step % 3], in, kBytes) == KEEL_STATUS_OK);
    CHECK(keel_executable_acquire(executable, stream, -1, &lease) == KEEL_STATUS_OK);
    buffer = buffer_at(x[step % 3]);
    CHECK(keel_lease_bind(lease, its.x, &buffer) == KEEL_STATUS_OK);
    CHECK(keel_lease_get_address(lease, its.y, &address) == KEEL_STATUS_OK && address != 0);
    CHECK(keel_lease_launch(lease, -1) == KEEL_STATUS_OK);
    CHECK(keel_lease_hold(lease, its.y, &output) == KEEL_STATUS_OK);
    memset(&report, 0, sizeof report);
    report.struct_size = sizeof report;
    CHECK(keel_lease_get_report(lease, &report) == KEEL_STATUS_OK);
    CHECK(report.step == (uint64_t)step && report.eager == (mode || step == 1));
    CHECK(keel_lease_for_each_action(lease, see_action, &actions) == KEEL_STATUS_OK);
    CHECK((uint32_t)actions.calls == report.actions);
    CHECK(actions.value == (mode == KEEL_EXECUTABLE_GRAPH && step == 1));
    CHECK(keel_lease_wait(lease, -1) == KEEL_STATUS_OK);
    CHECK(keel_lease_get_done(lease, &done) == KEEL_STATUS_OK && done == 1);
    CHECK(keel_lease_close(lease) == KEEL_STATUS_OK);

    CHECK(keel_output_get(output, &native, &size) == KEEL_STATUS_OK);
    CHECK(native == address && size == kBytes);
    CHECK(keel_output_record_use(output, reader) == KEEL_STATUS_OK);
    CHECK(keel_copy_to_host(device, reader, out, address, kBytes) == KEEL_STATUS_OK);
    CHECK(keel_output_close(output) == KEEL_STATUS_OK);
    for (i = 0, right = 0; i < kFloats; ++i) right += out[i] == 2 * in[i] + weights[i];
    CHECK(right == kFloats);
  }
  CHECK(keel_executable_synchronize(executable, -1) == KEEL_STATUS_OK);
  CHECK(state.called == kSteps && state.eager == kSteps);
  /* One of a warm-up, and one captured for each slot; or all. */
  CHECK(state.traced == (mode ? kSteps : 3) && state.captured == (mode ? 0 : 2));
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  CHECK(keel_executable_get_stats(executable, &stats) == KEEL_STATUS_OK);
  CHECK(stats.steps == kSteps && stats.eager_steps == (mode ? kSteps : 1));
  CHECK(stats.commands_traced == (mode ? 0 : 2) && stats.slot_bytes >= 2 * kBytes);
  CHECK(stats.copied_in_bytes == (uint64_t)kSteps * kBytes && stats.failed_steps == 0);
  CHECK((stats.host_ns[KEEL_ACTION_RECORDED] > 0) == !mode);
  CHECK(stats.host_ns[KEEL_ACTION_RAN_EAGERLY] > 0 && stats.host_ns[KEEL_ACTION_REMAPPED] == 0);
  CHECK(keel_executable_give_back(executable, -1) == KEEL_STATUS_OK);
  CHECK(keel_executable_get_stats(executable, &stats) == KEEL_STATUS_OK && stats.slot_bytes == 0);

  CHECK(state.destroyed == 0);
  CHECK(keel_executable_close(executable) == KEEL_STATUS_OK);
  CHECK(state.destroyed == 3); /* with the last that can call them */
  WRONG(keel_executable_close(executable), "the handle of an executable that was closed");
  for (i = 0; i < 3; ++i) CHECK(keel_free(device, x[i]) == KEEL_STATUS_OK);
  CHECK(keel_free(device, w) == KEEL_STATUS_OK);
  CHECK(keel_stream_destroy(stream) == KEEL_STATUS_OK);
  CHECK(keel_stream_destroy(reader) == KEEL_STATUS_OK);
}

static void test_graph_mistakes(keel_device device) {
  struct graph_state state = {0, 0, 0, 0, 0, KEEL_STATUS_OK, 0, 0};
  struct graph_program its = make_program(device, &state);
  keel_device other = NULL;
  keel_module module = NULL, foreign_module = NULL;
  keel_kernel kernel = NULL, foreign = NULL;
  keel_program_builder builder = NULL;
  keel_program broken = NULL;
  keel_executable executable = NULL, closed = NULL;
  keel_executable_options options;
  keel_executable_stats stats;
  keel_step_report report;
  keel_memory_budget budget = NULL;
  keel_scratch_arena arena = NULL;
  keel_lease lease = NULL, second = NULL, none = NULL;
  keel_output output = NULL;
  keel_buffer buffer;
  keel_operand range;
  keel_policy policy = 0;
  uint32_t binding = 0;
  uint64_t x = 0, w = 0, address = 0, bytes = 0;
  int32_t done = 0;
  float out[kFloats];

  /* Kernels. */
  CHECK(keel_device_open("sim:1", &other) == KEEL_STATUS_OK);
  CHECK(keel_module_load_standard(device, &module) == KEEL_STATUS_OK);
  WRONG(keel_module_load_standard(device, NULL), "module is NULL");
  WRONG(keel_module_load_image(device, NULL, 4, &module), "image is NULL");
  WRONG(keel_module_load_image(device, "no library", 10, &module), "");
  WRONG(keel_module_load_file(device, NULL, &module), "path is NULL");
  REFUSED(keel_module_load_file(device, "/nowhere.so", &module), KEEL_STATUS_NOT_FOUND, "nowhere");
  REFUSED(keel_kernel_find(module, "keel_nothing", &kernel), KEEL_STATUS_NOT_FOUND, "keel_nothing");
  WRONG(keel_kernel_find(module, NULL, &kernel), "name is NULL");
  WRONG(keel_kernel_find(module, "keel_add", NULL), "kernel is NULL");
  WRONG(keel_kernel_find(NULL, "keel_add", &kernel), "module is NULL");
  WRONG(keel_kernel_borrow(device, 0, &kernel), "no kernel");
  WRONG(keel_kernel_borrow(device, 1, NULL), "kernel is NULL");
  CHECK(keel_module_load_standard(other, &foreign_module) == KEEL_STATUS_OK);
  CHECK(keel_kernel_find(foreign_module, "keel_add", &foreign) == KEEL_STATUS_OK);

  /* Programs. */
  WRONG(keel_program_builder_create(device, NULL, &builder), "name is NULL");
  WRONG(keel_program_builder_create(device, "a", NULL), "builder is NULL");
  CHECK(keel_program_builder_create(device, "broken", &builder) == KEEL_STATUS_OK);
  WRONG(keel_program_builder_kernel(builder, foreign, NULL, NULL, 0), "sim:1");
  WRONG(keel_program_builder_discard((keel_program_builder)(void*)module), "handle of a module");
  CHECK(keel_program_builder_bind(builder, "a", 16, KEEL_BINDING_IN, 0, &binding) ==
        KEEL_STATUS_OK);
  range = operand(binding, 0);
  CHECK(keel_program_builder_fill(builder, &range, 1, 4) == KEEL_STATUS_OK);
  WRONG(keel_program_builder_build(builder, &broken), "command 0: writes 'a'");
  WRONG(keel_program_builder_discard(builder), "closed");
  CHECK(keel_program_builder_create(device, "discarded", &builder) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_call(builder, called_state, &state, destroy_state) == KEEL_STATUS_OK);
  CHECK(keel_program_builder_discard(builder) == KEEL_STATUS_OK && state.destroyed == 1);
  state.destroyed = 0;
  CHECK(keel_program_find(its.program, "y", &binding) == KEEL_STATUS_OK && binding == its.y);
  REFUSED(keel_program_find(its.program, "z", &binding), KEEL_STATUS_NOT_FOUND, "x, w, s, y");
  WRONG(keel_program_find(its.program, NULL, &binding), "name is NULL");
  WRONG(keel_program_find(its.program, "y", NULL), "binding is NULL");
  CHECK(keel_program_get_scratch_bytes(its.program, &bytes) == KEEL_STATUS_OK && bytes == kBytes);
  WRONG(keel_program_get_scratch_bytes(its.program, NULL), "bytes is NULL");

  /* Options. */
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  WRONG(keel_executable_create(its.program, NULL, NULL), "executable is NULL");
  WRONG(keel_executable_create(NULL, NULL, &executable), "the program is NULL");
  options.slots = 65;
  WRONG(keel_executable_create(its.program, &options, &executable), "65 slots");
  options.slots = 1;
  options.mode = 2;
  WRONG(keel_executable_create(its.program, &options, &executable), "mode 2");
  options.mode = 0;
  options.warm_up = -2;
  WRONG(keel_executable_create(its.program, &options, &executable), "warm_up is -2");
  options.warm_up = -1;
  options.kept_traces = -1;
  WRONG(keel_executable_create(its.program, &options, &executable), "kept_traces is -1");
  options.kept_traces = 4;
  options.patience_ns = 1000000000;
  CHECK(keel_scratch_arena_create(device, 512, &arena) == KEEL_STATUS_OK);
  WRONG(keel_scratch_arena_create(device, 512, NULL), "arena is NULL");
  options.scratch = arena;
  WRONG(keel_executable_create(its.program, &options, &executable), "of scratch; the arena has");
  CHECK(keel_scratch_arena_close(arena) == KEEL_STATUS_OK);
  WRONG(keel_executable_create(its.program, &options, &executable),
        "scratch arena that was closed");
  CHECK(keel_scratch_arena_create(device, kBytes, &arena) == KEEL_STATUS_OK);
  options.scratch = arena;
  CHECK(keel_memory_budget_create(16, &budget) == KEEL_STATUS_OK);
  WRONG(keel_memory_budget_create(16, NULL), "budget is NULL");
  options.budget = budget;
  CHECK(keel_executable_create(its.program, &options, &closed) == KEEL_STATUS_OK);
  REFUSED(keel_executable_acquire(closed, NULL, -1, &lease), KEEL_STATUS_RESOURCE_EXHAUSTED,
          "budget");
  CHECK(keel_executable_close(closed) == KEEL_STATUS_OK);
  CHECK(keel_memory_budget_close(budget) == KEEL_STATUS_OK);
  CHECK(keel_memory_budget_create(1 << 20, &budget) == KEEL_STATUS_OK);
  options.budget = budget;
  CHECK(keel_executable_create(its.program, &options, &executable) == KEEL_STATUS_OK);
  CHECK(keel_program_close(its.program) == KEEL_STATUS_OK);
  CHECK(keel_scratch_arena_close(arena) == KEEL_STATUS_OK); /* the executable keeps it */

  /* Buffers and steps. */
  CHECK(keel_malloc(device, NULL, kBytes, NULL, &x) == KEEL_STATUS_OK);
  CHECK(keel_malloc(device, NULL, kBytes, NULL, &w) == KEEL_STATUS_OK);
  CHECK(keel_enqueue_fill(device, NULL, x, 0x3f800000, 4, kFloats) == KEEL_STATUS_OK); /* 1.0f */
  CHECK(keel_enqueue_fill(device, NULL, w, 0x40000000, 4, kFloats) == KEEL_STATUS_OK); /* 2.0f */
  buffer = buffer_at(x);
  WRONG(keel_executable_bind(executable, 9, &buffer), "no binding 9");
  WRONG(keel_executable_bind(executable, its.x, NULL), "buffer is NULL");
  WRONG(keel_executable_bind(closed, its.x, &buffer), "closed");
  buffer.size = 4;
  WRONG(keel_executable_bind(executable, its.x, &buffer), "binding 'x' needs 1 KiB");
  buffer.size = kBytes;
  REFUSED(keel_executable_bind(executable, its.y, &buffer), KEEL_STATUS_FAILED_PRECONDITION, "'y'");
  WRONG(keel_executable_get_policy(executable, 9, &policy), "no binding 9");
  WRONG(keel_executable_get_policy(executable, 0, NULL), "policy is NULL");
  WRONG(keel_executable_get_stats(executable, NULL), "stats is NULL");
  stats.struct_size = 3;
  WRONG(keel_executable_get_stats(executable, &stats), "stats->struct_size is 3");
  WRONG(keel_executable_acquire(executable, NULL, -1, NULL), "lease is NULL");
  CHECK(keel_executable_acquire(executable, NULL, -1, &lease) == KEEL_STATUS_OK);
  CHECK(keel_memory_budget_get_used(budget, &bytes) == KEEL_STATUS_OK && bytes >= 2 * kBytes);
  WRONG(keel_memory_budget_get_used(budget, NULL), "bytes is NULL");
  REFUSED(keel_executable_acquire(executable, NULL, 1000, &second), KEEL_STATUS_DEADLINE_EXCEEDED,
          "1 are leased");
  REFUSED(keel_executable_give_back(executable, 0), KEEL_STATUS_FAILED_PRECONDITION, "in use");
  WRONG(keel_lease_get_address(lease, its.y, NULL), "address is NULL");
  REFUSED(keel_lease_get_address(lease, its.x, &bytes), KEEL_STATUS_FAILED_PRECONDITION, "'x'");
  REFUSED(keel_lease_launch(lease, -1), KEEL_STATUS_FAILED_PRECONDITION, "'x'");
  REFUSED(keel_lease_hold(lease, its.y, &output), KEEL_STATUS_FAILED_PRECONDITION, "launched");
  REFUSED(keel_lease_wait(lease, 0), KEEL_STATUS_FAILED_PRECONDITION, "launched");
  WRONG(keel_lease_bind(lease, 9, &buffer), "no binding 9");
  CHECK(keel_lease_bind(lease, its.x, &buffer) == KEEL_STATUS_OK);
  buffer = buffer_at(w);
  CHECK(keel_lease_bind(lease, its.w, &buffer) == KEEL_STATUS_OK);

  /* What a function answers is what the step ends with. */
  state.answer = KEEL_STATUS_ABORTED;
  REFUSED(keel_lease_launch(lease, -1), KEEL_STATUS_ABORTED, "it returned ABORTED");
  state.answer = 1234;
  REFUSED(keel_lease_launch(lease, -1), KEEL_STATUS_UNKNOWN, "it returned 1234");
  state.answer = KEEL_STATUS_OK;
  state.fails_inside = 1;
  WRONG(keel_lease_launch(lease, -1), "'library'");
  WRONG(keel_lease_launch(lease, -1), "destination, 0x0, is in no live block");
  state.fails_inside = 0;
  CHECK(keel_lease_launch(lease, -1) == KEEL_STATUS_OK);
  REFUSED(keel_lease_launch(lease, -1), KEEL_STATUS_FAILED_PRECONDITION, "already");
  REFUSED(keel_lease_bind(lease, its.x, &buffer), KEEL_STATUS_FAILED_PRECONDITION, "already");
  WRONG(keel_lease_hold(lease, its.y, NULL), "output is NULL");
  REFUSED(keel_lease_hold(lease, its.x, &output), KEEL_STATUS_FAILED_PRECONDITION, "'x'");
  WRONG(keel_lease_get_done(lease, NULL), "done is NULL");
  WRONG(keel_lease_get_report(lease, NULL), "report is NULL");
  report.struct_size = 1;
  WRONG(keel_lease_get_report(lease, &report), "report->struct_size is 1");
  WRONG(keel_lease_for_each_action(lease, NULL, NULL), "visit is NULL");
  CHECK(keel_lease_hold(lease, its.y, &output) == KEEL_STATUS_OK);
  CHECK(keel_lease_close(lease) == KEEL_STATUS_OK);
  WRONG(keel_lease_close(lease), "lease that was closed");
  WRONG(keel_lease_launch(lease, -1), "lease that was closed");
  WRONG(keel_lease_get_done(none, &done), "the lease is NULL");
  WRONG(keel_lease_wait((keel_lease)(void*)output, -1), "handle of an output, not of a lease");
  REFUSED(keel_executable_acquire(executable, NULL, 1000, &second), KEEL_STATUS_DEADLINE_EXCEEDED,
          "1 hold outputs");

  /* The output outlives the executable, and the program with it. */
  CHECK(keel_executable_close(executable) == KEEL_STATUS_OK);
  WRONG(keel_output_get(output, NULL, &bytes), "address is NULL");
  WRONG(keel_output_get(output, &bytes, NULL), "size is NULL");
  CHECK(keel_output_get(output, &address, &bytes) == KEEL_STATUS_OK);
  CHECK(keel_copy_to_host(device, NULL, out, address, kBytes) == KEEL_STATUS_OK);
  CHECK(out[0] == 4 && out[kFloats - 1] == 4);
  CHECK(state.destroyed == 0);
  CHECK(keel_output_close(output) == KEEL_STATUS_OK && state.destroyed == 3);
  WRONG(keel_output_close(output), "output that was closed");
  WRONG(keel_output_record_use(output, NULL), "output that was closed");
  CHECK(keel_memory_budget_get_used(budget, &bytes) == KEEL_STATUS_OK && bytes == 0);
  CHECK(keel_memory_budget_close(budget) == KEEL_STATUS_OK);
  CHECK(keel_free(device, x) == KEEL_STATUS_OK);
  CHECK(keel_free(device, w) == KEEL_STATUS_OK);
  CHECK(keel_module_close(module) == KEEL_STATUS_OK);
  CHECK(keel_kernel_close(foreign) == KEEL_STATUS_OK);
  CHECK(keel_module_close(foreign_module) == KEEL_STATUS_OK);
  CHECK(keel_device_close(other) == KEEL_STATUS_OK);
}

int main(int argc, char** argv) {
  keel_device device = NULL;
  if (argc != 2) {
    fputs("usage: capi_c_test FILE-TO-WRITE\n", stderr);
    return 2;
  }
  test_versions();
  if (keel_device_open(NULL, &device) != KEEL_STATUS_OK) {
    fail(__LINE__, "keel_device_open");
    return 1;
  }
  test_devices(device);
  test_handles(device);
  test_memory(device);
  test_limits_and_statistics(device);
  test_graph_steps(device, KEEL_EXECUTABLE_GRAPH);
  test_graph_steps(device, KEEL_EXECUTABLE_EAGER);
  test_graph_mistakes(device);
  test_history(device, argv[1]);
  /* With its last handle the device is closed, and its threads end. */
  CHECK(keel_device_forget(device) == KEEL_STATUS_OK);
  if (failures == 0) puts("the C interface does what keel/c.h says");
  return failures == 0 ? 0 : 1;
}
