# The Windows seam: every folder but the platform ones, compiled (never linked) by a cross compiler, so that nothing
# outside src/os/<platform> and src/guard/<platform> comes to need one platform.
#
# The host's header-only libraries are reached through a folder of links: /usr/include itself must not be on the cross
# compiler's path, because the host's C library headers are there, too.
find_path(HOLDFAST_NLOHMANN_PARENT nlohmann/json.hpp HINTS /usr/include NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${HOLDFAST_NLOHMANN_PARENT}/nlohmann ${CMAKE_BINARY_DIR}/include/nlohmann SYMBOLIC)
include_directories(SYSTEM ${CMAKE_BINARY_DIR}/include)
