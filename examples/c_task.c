/* Tasks from C: two workers, weights that stay on one of them, and a function that launches a
 * kernel for each task.
 *
 * y += 0.5 * w, ten times, with w on worker 1: every task goes there, and none copies w.
 * docs/c-api.md and docs/tasks.md explain it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keel/c.h"

enum { kCount = 4096, kBytes = kCount * 4, kTasks = 10 };

static void check(keel_status status, const char* what) {
  if (status == KEEL_STATUS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, keel_status_name(status), keel_last_error_message());
  exit(1);
}

/* Called by the worker's thread: launches the kernel y += a * x, with addresses of the device. */
static keel_status axpy(const keel_task_context* context, void* data) {
  const keel_launch_dims dims = {sizeof dims, {8, 1, 1}, {256, 1, 1}, 0};
  const uint64_t count = kCount;
  keel_launch_argument arguments[4];
  (void)data;
  memset(arguments, 0, sizeof arguments);
  arguments[0].address = context->tensors[0].address;
  arguments[0].extent = kBytes;
  arguments[0].access = KEEL_ACCESS_READ;
  arguments[1].address = context->tensors[1].address;
  arguments[1].extent = kBytes;
  arguments[1].access = KEEL_ACCESS_READ_WRITE;
  arguments[2].value = &context->scalars[0];
  arguments[2].value_size = sizeof(float);
  arguments[3].value = &count;
  arguments[3].value_size = sizeof count;
  return keel_task_call_launch(context->call, 0, &dims, arguments, 4);
}

static keel_tensor tensor(uint64_t address, uint8_t flags) {
  keel_tensor made;
  memset(&made, 0, sizeof made);
  made.address = address;
  made.shape[0] = kCount;
  made.rank = 1;
  made.type = KEEL_TYPE_FLOAT32;
  made.flags = flags;
  return made;
}

/* Keel's own kernel, by number 0. */
static uint64_t register_axpy(keel_orchestrator orchestrator) {
  const keel_image_part part = {NULL, 0, "keel"};
  const keel_image_kernel kernel = {"keel_axpy", 0, 0};
  const keel_image_content content = {sizeof content, NULL, 0, &part, 1, &kernel, 1};
  uint64_t size = 0, callable = 0;
  void* image;
  check(keel_image_build(&content, NULL, &size), "the size of the kernels");
  image = malloc(size);
  check(keel_image_build(&content, image, &size), "the kernels");
  check(keel_orchestrator_register_function(orchestrator, axpy, NULL, NULL, image, size, &callable),
        "registering the function");
  free(image);
  return callable;
}

int main(void) {
  static float w[kCount], y[kCount];
  const char* const devices[] = {"", ""}; /* two workers on the default device */
  const keel_tag tags[] = {KEEL_TAG_IN, KEEL_TAG_IN_OUT};
  const float half = 0.5F;
  keel_orchestrator_options options;
  keel_orchestrator orchestrator;
  keel_task_arguments arguments;
  keel_tensor tensors[2];
  keel_worker_report report;
  uint64_t callable, weights, scalar = 0;
  int i;

  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.devices = devices;
  options.device_count = 2;
  check(keel_orchestrator_create(&options, &orchestrator), "starting the workers");
  callable = register_axpy(orchestrator);
  for (i = 0; i < kCount; ++i) w[i] = (float)i;
  check(keel_worker_malloc(orchestrator, 1, kBytes, &weights), "memory on worker 1");
  check(keel_worker_copy_to(orchestrator, 1, weights, w, kBytes), "copying the weights");

  tensors[0] = tensor(weights, KEEL_TENSOR_RESIDENT);
  tensors[1] = tensor((uintptr_t)y, 0);
  memcpy(&scalar, &half, sizeof half);
  memset(&arguments, 0, sizeof arguments);
  arguments.struct_size = sizeof arguments;
  arguments.tensors = tensors;
  arguments.tags = tags;
  arguments.tensor_count = 2;
  arguments.scalars = &scalar;
  arguments.scalar_count = 1;
  for (i = 0; i < kTasks; ++i) {
    keel_task task;
    check(keel_task_submit(orchestrator, callable, &arguments, NULL, &task), "submitting");
    if (i == kTasks - 1) check(keel_task_wait(task, -1), "the last task");
    check(keel_task_close(task), "a task's handle");
  }
  for (i = 0; i < kCount; ++i) {
    if (y[i] != 5 * w[i]) {
      fprintf(stderr, "element %d is %g\n", i, (double)y[i]);
      return 1;
    }
  }
  memset(&report, 0, sizeof report);
  report.struct_size = sizeof report;
  check(keel_worker_get_report(orchestrator, 1, &report), "the report");
  check(keel_worker_free(orchestrator, 1, weights), "freeing");
  check(keel_orchestrator_close(orchestrator), "ending the workers");
  printf("%d tasks on worker 1, verified; the weights were copied once: %lu bytes to the device\n",
         (int)report.tasks, (unsigned long)report.bytes_to_device);
  return report.tasks == kTasks && report.bytes_to_device == (kTasks + 1) * (uint64_t)kBytes ? 0
                                                                                             : 1;
}
