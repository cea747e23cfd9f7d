# tenon_room(NAME [FOLDERS f g] DEPS a b LINK x y): one static library per room, named tenon_NAME.
# DEPS are other rooms (public), LINK are outside libraries (private). Sources are the room's *.cpp and those of
# the folders named.
set(TENON_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers)

# Flags every target shares: warnings as errors, sanitizers where asked.
add_library(tenon_flags INTERFACE)
target_compile_options(tenon_flags INTERFACE ${TENON_WARNINGS})
target_include_directories(tenon_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
if(TENON_SANITIZE)
  # Left out: checks at every pointer, which cost a third of the compile time and find what the address sanitizer
  # (or a crash) finds too.
  target_compile_options(tenon_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize=null,alignment,object-size,vptr
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(tenon_flags INTERFACE -fsanitize=address,undefined)
endif()

function(tenon_room name)
  cmake_parse_arguments(ROOM "" "" "FOLDERS;DEPS;LINK" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder ${ROOM_FOLDERS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  list(TRANSFORM ROOM_DEPS PREPEND tenon_)
  add_library(tenon_${name} STATIC ${sources})
  target_link_libraries(tenon_${name} PUBLIC tenon_flags ${ROOM_DEPS} PRIVATE ${ROOM_LINK})
  set_property(GLOBAL APPEND PROPERTY TENON_ROOMS tenon_${name})
endfunction()

# tenon_tests(NAME LABEL kind DEPS rooms... [TIMEOUT s]): one Catch2 program from the *.cpp of the current
# folder; each test case is registered with CTest under NAME/ and carries the label; the target tests_LABEL builds
# all programs of a label. A case that cannot run prints "SKIPPED: why" and returns.
function(tenon_tests name)
  cmake_parse_arguments(T "" "LABEL;TIMEOUT" "DEPS;LINK" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(TRANSFORM T_DEPS PREPEND tenon_)
  add_executable(test_${name} ${sources} $<TARGET_OBJECTS:tenon_catch_main>)
  target_link_libraries(test_${name} PRIVATE tenon_flags Catch2::Catch2 ${T_DEPS} ${T_LINK})
  target_compile_options(test_${name} PRIVATE $<IF:$<BOOL:${TENON_SANITIZE}>,-O0,-O1>)
  target_compile_definitions(test_${name} PRIVATE
    TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TENON_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(NOT TARGET tests_${T_LABEL})
    add_custom_target(tests_${T_LABEL})
  endif()
  add_dependencies(tests_${T_LABEL} test_${name})
  catch_discover_tests(test_${name} TEST_PREFIX "${name}/"
    PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT} SKIP_REGULAR_EXPRESSION "SKIPPED: ")
endfunction()
