# What users get: one shared library with LLVM inside and only tenon's symbols visible, the command and the measuring
# program (both on that library), headers, a CMake package, the shipped tuning logs and the schema of
# their lines. Configure with -DTENON_INSTALL=ON -DTENON_STATIC_LLVM=ON, as scripts/install.sh does.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY TENON_ROOMS)

# Every object of every room, whether the library itself needs it or not; the rooms bring what they link.
list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE room_objects)
add_library(tenon SHARED ${room_objects})
set_target_properties(tenon PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/tenon.map)
target_link_libraries(tenon PRIVATE ${rooms})
target_link_options(tenon PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tenon.map -Wl,--gc-sections -Wl,-Bsymbolic -Wl,--no-undefined)
target_include_directories(tenon INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(tenon INTERFACE fmt::fmt)
target_compile_features(tenon INTERFACE cxx_std_20)
set_target_properties(tenon_command tenon-runner PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS tenon EXPORT tenonTargets)
install(TARGETS tenon_command tenon-runner RUNTIME)
install(DIRECTORY include/tenon TYPE INCLUDE)
install(DIRECTORY tuning_logs/shipped/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon/tuning_logs OPTIONAL)
install(FILES autotvm/records/record.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon)
install(EXPORT tenonTargets NAMESPACE tenon:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
configure_package_config_file(cmake/tenonConfig.cmake.in ${PROJECT_BINARY_DIR}/tenonConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenonConfig.cmake ${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
