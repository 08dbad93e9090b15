# cmake [-DOPTION=VALUE]... -DPITH_SELECT_ROOT=SOURCE -DPITH_HOST_CC=cc -P options.cmake
# What the build's configuration says of these options, without a build. CALL: the arguments of pith_select_lists, as a
# project gives them to pith_selected_library.
cmake_minimum_required(VERSION 3.20)
include(${PITH_SELECT_ROOT}/cmake/select.cmake)
set(PITH_LEVELS scalar avx2 avx512)
if(CALL)
  pith_select_lists(${CALL} NAME own FOLDER folder LEVELS levels AVAILABLE ${PITH_LEVELS})
else()
  pith_select_options(folder PITH_LEVELS sources)
  set(levels "${PITH_LEVELS}")
endif()
message(STATUS "levels: ${levels}")
