/* What the tests in C share: counting what failed. */
#ifndef KEEL_CAPI_TEST_H_
#define KEEL_CAPI_TEST_H_

#include <stdio.h>
#include <string.h>

#include "keel/c.h"

static int failures = 0;

static void fail(int line, const char* what) {
  fprintf(stderr, "line %d: %s; the newest error: %s: %s\n", line, what,
          keel_status_name(keel_last_error_status()), keel_last_error_message());
  ++failures;
}

#define CHECK(condition)                          \
  do {                                            \
    if (!(condition)) fail(__LINE__, #condition); \
  } while (0)

/* The call is refused so, and the message has this in it. */
static void refused(int line, keel_status got, keel_status wanted, const char* part) {
  char name[64]; /* the library's own is valid until the next, which fail() asks for */
  snprintf(name, sizeof name, "it was %s", keel_status_name(got));
  if (got != wanted) fail(line, name);
  if (got != keel_last_error_status()) fail(line, "another status was kept");
  if (strstr(keel_last_error_message(), part) == NULL) fail(line, part);
}
#define REFUSED(call, wanted, part) refused(__LINE__, (call), (wanted), (part))
#define WRONG(call, part) REFUSED(call, KEEL_STATUS_INVALID_ARGUMENT, part)

#endif /* KEEL_CAPI_TEST_H_ */
