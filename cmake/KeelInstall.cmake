# What `cmake --install` puts where: headers, libkeel.so, the command line, the program of
# worker processes, a CMake package and a pkg-config file. The result can be moved as a whole.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/keel)

install(TARGETS keel EXPORT keelTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/keel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(EXPORT keelTargets NAMESPACE keel:: DESTINATION ${package_dir})

file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
# In a wheel it lies beside the library.
set_target_properties(keel_worker PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/${bin_to_lib}")
install(TARGETS keel_worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

if(TARGET keel_mpi)
  install(TARGETS keel_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

if(TARGET keel_cli)
  set_target_properties(keel_cli PROPERTIES OUTPUT_NAME keel INSTALL_RPATH $ORIGIN/${bin_to_lib})
  install(TARGETS keel_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/keelConfig.cmake.in ${PROJECT_BINARY_DIR}/package/keelConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may break its users, so it does not satisfy them.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/keelConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/keelConfig.cmake
              ${PROJECT_BINARY_DIR}/package/keelConfigVersion.cmake
  DESTINATION ${package_dir})

set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_to_prefix /${pc_dir} /)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/keel.pc.in ${PROJECT_BINARY_DIR}/package/keel.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/keel.pc DESTINATION ${pc_dir})
