/* Use Keel from C: device memory, a copy there and back, statistics, and a snapshot of it all.
 *
 *   c_memory [SNAPSHOT-FILE]
 *
 * docs/c-api.md walks through it. */
#include <stdio.h>
#include <stdlib.h>

#include "keel/c.h"

/* Every call returns a status; the message says what was wrong, to the thread that made it. */
static void check(keel_status status, const char* what) {
  if (status == KEEL_STATUS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, keel_status_name(status), keel_last_error_message());
  exit(1);
}

static void print_device(const keel_device_info* info, void* data) {
  (void)data;
  printf("%s:%d  %s, %llu MiB\n", info->driver, (int)info->ordinal, info->name,
         (unsigned long long)(info->memory >> 20));
}

int main(int argc, char** argv) {
  enum { kCount = 1 << 20 };
  static float in[kCount], out[kCount];
  keel_device device;
  keel_stream stream;
  keel_malloc_options options = {sizeof options, 0, "weights"};
  keel_memory_stats stats = {sizeof stats};
  uint64_t weights, copy;
  int i;

  printf("Keel %s\n", keel_version_string());
  check(keel_for_each_device(print_device, NULL), "listing the devices");

  /* The default device; "sim:0" would name one. */
  check(keel_device_open(NULL, &device), "opening the device");
  check(keel_stream_create(device, &stream), "making a stream");
  check(keel_history_enable(10000, 0), "recording the history");

  /* An address is a number: what is behind it is the device's, and not the host's to follow. */
  check(keel_malloc(device, stream, sizeof in, &options, &weights), "allocating");
  check(keel_malloc(device, stream, sizeof in, NULL, &copy), "allocating");

  for (i = 0; i < kCount; ++i) in[i] = (float)i;
  check(keel_copy_to_device(device, stream, weights, in, sizeof in), "copying in");
  check(keel_enqueue_copy(device, stream, copy, weights, sizeof in), "copying on the device");
  check(keel_enqueue_fill(device, stream, copy, 0, 4, 10), "filling");
  check(keel_copy_to_host(device, stream, out, copy, sizeof out), "copying out");
  for (i = 0; i < kCount; ++i) {
    if (out[i] != (i < 10 ? 0.0F : in[i])) {
      fprintf(stderr, "element %d is %f\n", i, (double)out[i]);
      return 1;
    }
  }

  check(keel_get_stats(device, &stats), "reading the statistics");
  printf("%lld blocks, %lld bytes; %lld held of the device\n", (long long)stats.blocks,
         (long long)stats.allocated_bytes, (long long)stats.reserved_bytes);
  if (argc > 1) check(keel_write_snapshot(device, argv[1], KEEL_SNAPSHOT_PICKLE), argv[1]);

  /* At once: what the stream still does with them comes before whatever it does next. */
  check(keel_free(device, copy), "freeing");
  check(keel_free(device, weights), "freeing");

  /* A mistake is a message, and not a crash. */
  if (keel_free(device, weights) != KEEL_STATUS_OK) {
    printf("freed twice: %s\n", keel_last_error_message());
  }
  check(keel_stream_destroy(stream), "destroying the stream");
  check(keel_device_close(device), "closing the device");
  return 0;
}
