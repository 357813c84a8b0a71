# How everything in this tree is compiled: language, warnings, sanitizers, where outputs go.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Keel needs g++ 12 or later; this is ${CMAKE_CXX_COMPILER_VERSION}")
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(KEEL_CCACHE ccache)
if(KEEL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${KEEL_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${KEEL_CCACHE})
endif()

# Warnings. -Wsign-conversion stays off in both compilers (clang turns it on with -Wconversion);
# structs with default member initialisers are filled with designated initialisers, so a field that
# is left out is meant.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                    -Wno-missing-field-initializers
                    "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Woverloaded-virtual>")
if(KEEL_WERROR)
  add_compile_options(-Werror)
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety -Wthread-safety-beta)
  if(KEEL_WERROR)
    add_compile_options(-Werror=thread-safety -Werror=thread-safety-beta)
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Known false alarms: -Wrestrict on std::string concatenation (g++ 12), -Wdangling-reference on
  # functions that return a reference to a longer-lived object (g++ 13).
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  else()
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
  endif()
endif()

# Sanitizers. KEEL_SANITIZE_FLAGS is what a program outside this build needs to link with the result.
set(KEEL_SANITIZE_FLAGS "")
if(KEEL_SANITIZE)
  set(KEEL_SANITIZE_FLAGS -fsanitize=${KEEL_SANITIZE} -fno-sanitize-recover=all)
  add_compile_options(${KEEL_SANITIZE_FLAGS})
  add_link_options(${KEEL_SANITIZE_FLAGS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumentation hides from g++ what it would need to see that these are fine.
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()
