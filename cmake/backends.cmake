# Backends that need a toolkit: a folder each, with its sources and a file backend.cmake. docs/devices.md is the manual.
#
# pith_find_backends(FOLDER...) includes the backend.cmake of each folder, with PITH_BACKEND_FOLDER set to the folder. It looks
# for the toolkit, and sets
#   BACKEND_MISSING    why the backend cannot be built here; "": it can
#   BACKEND_SOURCES    its files; one of them defines pith__backend_NAME, where NAME is that of the folder
#   BACKEND_LIBRARIES  what they are linked with
#   BACKEND_INCLUDES   folders of the toolkit's headers
# A backend that is missing is left out with a status message; PITH_BACKENDS can make that an error, or leave out all.
# Afterwards PITH_BACKEND_NAMES, _SOURCES, _LIBRARIES and _INCLUDES are those of all that are there, in the order of the
# folders, and PITH_BACKEND_LIST are their lines in select/backends.def.
#
# It is a macro, so that a backend.cmake may call what only works at the top of a project, such as enable_language.
macro(pith_find_backends)
  foreach(kind NAMES SOURCES LIBRARIES INCLUDES)
    set(PITH_BACKEND_${kind} "")
  endforeach()
  set(PITH_BACKEND_LIST "")
  foreach(PITH_BACKEND_FOLDER ${ARGN})
    get_filename_component(PITH_BACKEND_FOLDER "${PITH_BACKEND_FOLDER}" ABSOLUTE)
    get_filename_component(PITH_BACKEND_NAME "${PITH_BACKEND_FOLDER}" NAME)
    set(BACKEND_MISSING "PITH_BACKENDS is ${PITH_BACKENDS}")
    set(BACKEND_SOURCES "")
    set(BACKEND_LIBRARIES "")
    set(BACKEND_INCLUDES "")
    if("${PITH_BACKENDS}" STREQUAL "" OR "${PITH_BACKENDS}" STREQUAL "AUTO" OR "${PITH_BACKEND_NAME}" IN_LIST PITH_BACKENDS)
      set(BACKEND_MISSING "")
      include(${PITH_BACKEND_FOLDER}/backend.cmake)
    endif()
    if(BACKEND_MISSING AND "${PITH_BACKEND_NAME}" IN_LIST PITH_BACKENDS)
      message(FATAL_ERROR "Pith: backend ${PITH_BACKEND_NAME}: ${BACKEND_MISSING}")
    elseif(BACKEND_MISSING)
      message(STATUS "Pith: backend ${PITH_BACKEND_NAME} is left out: ${BACKEND_MISSING}")
    else()
      message(STATUS "Pith: backend ${PITH_BACKEND_NAME}")
      list(APPEND PITH_BACKEND_NAMES ${PITH_BACKEND_NAME})
      foreach(source ${BACKEND_SOURCES})
        get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${PITH_BACKEND_FOLDER}")
        list(APPEND PITH_BACKEND_SOURCES ${source})
      endforeach()
      list(APPEND PITH_BACKEND_LIBRARIES ${BACKEND_LIBRARIES})
      list(APPEND PITH_BACKEND_INCLUDES ${BACKEND_INCLUDES})
      string(APPEND PITH_BACKEND_LIST "BACKEND(${PITH_BACKEND_NAME})\n")
    endif()
  endforeach()
endmacro()
