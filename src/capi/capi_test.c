/* The C interface as a C99 program sees it, linked with libkeel.so like any user's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keel/c.h"

static int failures = 0;

static void fail(int line, const char* what) {
  fprintf(stderr, "capi_test.c:%d: %s; the newest error: %s: %s\n", line, what,
          keel_status_name(keel_last_error_status()), keel_last_error_message());
  ++failures;
}

#define CHECK(condition)                          \
  do {                                            \
    if (!(condition)) fail(__LINE__, #condition); \
  } while (0)

/* The call is refused so, and the message has this in it. */
static void refused(int line, keel_status got, keel_status wanted, const char* part) {
  if (got != wanted) fail(line, keel_status_name(got));
  if (got != keel_last_error_status()) fail(line, "another status was kept");
  if (strstr(keel_last_error_message(), part) == NULL) fail(line, part);
}
#define REFUSED(call, wanted, part) refused(__LINE__, (call), (wanted), (part))
#define WRONG(call, part) REFUSED(call, KEEL_STATUS_INVALID_ARGUMENT, part)

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
  test_history(device, argv[1]);
  /* With its last handle the device is closed, and its threads end. */
  CHECK(keel_device_forget(device) == KEEL_STATUS_OK);
  if (failures == 0) puts("the C interface does what keel/c.h says");
  return failures == 0 ? 0 : 1;
}
