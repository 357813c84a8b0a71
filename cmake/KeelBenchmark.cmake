# keel_benchmark(NAME <name> SOURCES <file>... [LIBS <target>...])
#
# One Google Benchmark program, bin/<name>_bench, which `./dev bench` runs. It links libkeel.so, as
# users do, unless LIBS names keel_internal.
function(keel_benchmark)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBS")
  if(NOT KEEL_BUILD_BENCHMARKS)
    return()
  endif()
  if(NOT keel_internal IN_LIST arg_LIBS)
    list(APPEND arg_LIBS keel::keel)
  endif()
  add_executable(${arg_NAME}_bench ${arg_SOURCES})
  target_link_libraries(${arg_NAME}_bench PRIVATE ${arg_LIBS} benchmark::benchmark_main)
endfunction()
