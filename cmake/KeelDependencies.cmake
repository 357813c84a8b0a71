# Everything that is taken from the machine, in one place. Nothing is ever downloaded.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
if(KEEL_BUILD_TOOLS)
  find_package(CLI11 CONFIG REQUIRED)
endif()
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibLZMA)  # optional: see src/trace
find_package(MPI QUIET COMPONENTS C)  # optional: see src/task

# fmt and spdlog, both header-only, spdlog over the same fmt. The package's own target
# spdlog::spdlog_header_only is not used, because on Debian and Ubuntu it brings the shared libfmt.
# What is never shipped may take that one: compiling fmt into every file takes most of the time.
add_library(keel_fmt INTERFACE)
if(KEEL_SHARED_FMT)
  target_link_libraries(keel_fmt INTERFACE fmt::fmt)
else()
  target_link_libraries(keel_fmt INTERFACE fmt::fmt-header-only)
endif()
get_target_property(spdlog_include spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
add_library(keel_logging INTERFACE)
target_link_libraries(keel_logging INTERFACE keel_fmt)
target_include_directories(keel_logging SYSTEM INTERFACE ${spdlog_include})
target_compile_definitions(keel_logging INTERFACE SPDLOG_FMT_EXTERNAL)

if(BUILD_TESTING)
  find_package(GTest CONFIG REQUIRED)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  include(GoogleTest)
endif()

if(KEEL_BUILD_BENCHMARKS)
  find_package(benchmark CONFIG REQUIRED)
endif()
