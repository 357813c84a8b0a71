# Fuzz targets: they need clang, and are no part of a normal build. `./dev fuzz` builds the target
# `fuzzers` and runs each. An input that one finds goes into tests/data/fuzz/<name>.

set(KEEL_FUZZ_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all)
if(BUILD_TESTING AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(KEEL_CAN_FUZZ ON)
  add_custom_target(fuzzers)
endif()

# keel_fuzz_target(NAME SOURCE...): test/NAME_fuzz, of sources that it compiles for itself.
function(keel_fuzz_target name)
  add_executable(${name}_fuzz EXCLUDE_FROM_ALL ${ARGN})
  target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer ${KEEL_FUZZ_FLAGS} -O1)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer ${KEEL_FUZZ_FLAGS})
  target_link_libraries(${name}_fuzz PRIVATE keel_requirements)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_dependencies(fuzzers ${name}_fuzz)
endfunction()
