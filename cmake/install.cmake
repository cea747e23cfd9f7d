# What users get: one shared library with LLVM inside and only tenon's symbols visible, the command, the measuring
# program, headers and a CMake package. Configure with -DTENON_INSTALL=ON (it wants -DTENON_STATIC_LLVM=ON).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY TENON_ROOMS)

file(WRITE ${PROJECT_BINARY_DIR}/empty.cpp "")
add_library(tenon SHARED ${PROJECT_BINARY_DIR}/empty.cpp)
set_target_properties(tenon PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
list(JOIN rooms "," room_list)
target_link_libraries(tenon PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${room_list}>")
target_link_options(tenon PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tenon.map -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-Bsymbolic)
target_include_directories(tenon INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(tenon INTERFACE fmt::fmt)
target_compile_features(tenon INTERFACE cxx_std_20)

install(TARGETS tenon EXPORT tenonTargets)
install(DIRECTORY include/tenon TYPE INCLUDE)
install(TARGETS tenon_command tenon_runner RUNTIME)
install(EXPORT tenonTargets NAMESPACE tenon:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
configure_package_config_file(cmake/tenonConfig.cmake.in ${PROJECT_BINARY_DIR}/tenonConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenonConfig.cmake ${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
