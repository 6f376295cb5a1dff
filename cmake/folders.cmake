# holdfast_folder(NAME USES… SOURCES…): one static library per folder of src/, which sees only the folders that it may
# use. ARCHITECTURE.md has the table; tests/tidy checks the includes against it.
function(holdfast_folder name)
  cmake_parse_arguments(ARG "" "" "USES;SOURCES" ${ARGN})
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "src/${name} has no source")
  endif()
  add_library(holdfast_${name} STATIC ${ARG_SOURCES})
  # nlohmann/json is the bulk of every translation unit: parsed once, it saves a third of the whole build.
  if(HOLDFAST_PRECOMPILE AND name STREQUAL "base")
    target_precompile_headers(holdfast_base PRIVATE <map> <memory> <string> <vector> <nlohmann/json.hpp>)
  elseif(HOLDFAST_PRECOMPILE)
    target_precompile_headers(holdfast_${name} REUSE_FROM holdfast_base)
  endif()
  target_include_directories(holdfast_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  foreach(used IN LISTS ARG_USES)
    target_link_libraries(holdfast_${name} PUBLIC holdfast_${used})
  endforeach()
endfunction()
