# Run by the test install_consumer with cmake -P; tests/CMakeLists.txt passes the variables.

set(prefix ${work_dir}/prefix)
set(consumer_build ${work_dir}/build)
file(REMOVE_RECURSE ${work_dir})

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nended with ${result}:\n${output}")
  endif()
  set(step_output "${output}" PARENT_SCOPE)
endfunction()

step(${CMAKE_COMMAND} --install ${build_dir} --prefix ${prefix} --config ${config})

# Moved as a whole, it must still work.
file(RENAME ${prefix} ${work_dir}/moved)
set(prefix ${work_dir}/moved)

step(${CMAKE_COMMAND} -S ${consumer_dir} -B ${consumer_build} -G ${generator}
  -D CMAKE_BUILD_TYPE=${config} -D CMAKE_C_COMPILER=${c_compiler}
  -D CMAKE_CXX_COMPILER=${cxx_compiler} -D CMAKE_CXX_FLAGS=${cxx_flags}
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  -D keel_expected_version=${version})
step(${CMAKE_COMMAND} --build ${consumer_build})
step(${consumer_build}/consumer)
if(NOT step_output MATCHES "keel ${version}")
  message(FATAL_ERROR "the consumer printed: ${step_output}")
endif()

# The installed command line finds its library by itself.
if(EXISTS ${prefix}/bin/keel)
  step(${prefix}/bin/keel --help)
endif()

# The program of worker processes finds it as well, and says that it is not for people.
execute_process(COMMAND ${prefix}/bin/keel-worker RESULT_VARIABLE result ERROR_VARIABLE output)
if(NOT result EQUAL 2 OR NOT output MATCHES "not by hand")
  message(FATAL_ERROR "bin/keel-worker ended with ${result}:\n${output}")
endif()

# pkg-config, where it is installed, must name the same files.
find_program(pkg_config NAMES pkg-config pkgconf)
if(pkg_config)
  file(GLOB_RECURSE pc ${prefix}/*/keel.pc)
  cmake_path(GET pc PARENT_PATH pc_dir)
  set(ENV{PKG_CONFIG_PATH} ${pc_dir})
  step(${pkg_config} --modversion keel)
  if(NOT step_output MATCHES "^${version}")
    message(FATAL_ERROR "keel.pc says version ${step_output}")
  endif()
  foreach(variable IN ITEMS includedir libdir)
    step(${pkg_config} --variable=${variable} keel)
    string(STRIP "${step_output}" directory)
    file(GLOB_RECURSE found ${directory}/version.h ${directory}/libkeel.so)
    if(NOT found)
      message(FATAL_ERROR "keel.pc's ${variable}, ${directory}, does not hold Keel")
    endif()
  endforeach()
endif()
