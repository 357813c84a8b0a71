# keel_layer(NAME <layer> SOURCES <file>... [TESTS <file>...] [LIBS <target>...] [TEST_LIBS <target>...])
#
# Adds one folder under src/ to the library. NAME is the folder's path under src/ ("base",
# "drivers/sim"). SOURCES go into libkeel.so. LIBS are further libraries that the sources need; they
# are private to the library.
#
# TESTS become one GoogleTest program, <layer>_test with "/" written "_", linked with the library's
# objects, so that it sees internals too. TEST_LIBS are further libraries for it alone.
function(keel_layer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;TESTS;LIBS;TEST_LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME)
    message(FATAL_ERROR "keel_layer(NAME ... SOURCES ...): unexpected '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(arg_SOURCES)
    target_sources(keel_objects PRIVATE ${arg_SOURCES})
  endif()
  if(arg_LIBS)
    target_link_libraries(keel_requirements INTERFACE ${arg_LIBS})
  endif()
  if(arg_TESTS)
    string(REPLACE "/" "_" program "${arg_NAME}_test")
    keel_test(NAME ${program} LABEL ${arg_NAME} SOURCES ${arg_TESTS} LIBS keel_internal ${arg_TEST_LIBS})
  endif()
endfunction()

# keel_test_code(<target>): the target is code of tests. It is compiled without optimisation but in a
# release: under a sanitizer that takes a third of the time, and how fast a test is does not matter.
# But for ThreadSanitizer, which is called for every access to memory that is not optimised away.
function(keel_test_code target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT KEEL_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# keel_test(NAME <program> SOURCES <file>... LIBS <target>... [LABEL <label>])
#
# One GoogleTest program. Its tests appear in ctest as <label>.<Suite>.<Test>. Link keel_internal to
# test internals, keel::keel to test what users get; never both, or there are two of everything.
function(keel_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;LABEL" "SOURCES;LIBS")
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL ${arg_NAME})
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  keel_test_code(${arg_NAME})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBS} GTest::gtest_main GTest::gmock)
  gtest_discover_tests(${arg_NAME}
    TEST_PREFIX ${arg_LABEL}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS ${arg_LABEL})
endfunction()

# keel_tool_test(NAME <test> LABEL <label> TOOL <program> COMMAND <program> <argument>...)
#
# A test that needs a program of the machine. It is always in ctest, and the program is looked for
# when it runs: what CMake did not find stays out of a tree until that is configured again, and nobody
# misses a test that is left out. Without the program the test is skipped, and says so.
function(keel_tool_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;LABEL;TOOL" "COMMAND")
  add_test(NAME ${arg_NAME}
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/if_installed.py
            ${arg_TOOL} ${arg_COMMAND})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS ${arg_LABEL} SKIP_RETURN_CODE 77)
endfunction()
