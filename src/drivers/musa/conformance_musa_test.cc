// The MUSA driver in the conformance suite, on the machine's own devices or on those of a stand-in.

#include "drivers/shared/vendor_conformance_test.h"

int main(int argc, char** argv) {
  return keel::vendor::RunConformance(argc, argv,
                                      {.driver = "musa", .kernels_variable = "KEEL_MUSA_KERNELS"});
}
