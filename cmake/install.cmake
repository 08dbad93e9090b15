# What is installed, in three parts: command, runtime (the shared library) and development (headers, static library,
# pkg-config and CMake files). Everything finds the rest by relative paths, so that the whole prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(PITH_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/pith)

if(PITH_BUILD_COMMAND)
  install(TARGETS pith COMPONENT command)
  if(TARGET pith_pages)
    install(DIRECTORY ${PITH_PAGES_DIR}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT command)
  endif()
endif()
foreach(kind SHARED STATIC)
  if(PITH_BUILD_${kind})
    string(TOLOWER ${kind} name)
    install(TARGETS pith_${name} EXPORT pith_${name} ARCHIVE COMPONENT development
      LIBRARY COMPONENT runtime NAMELINK_COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT pith_${name} NAMESPACE pith:: FILE pith_${name}.cmake DESTINATION ${PITH_PACKAGE_DIR} COMPONENT development)
  endif()
endforeach()
if(PITH_BUILD_IMAGE)
  install(TARGETS pith_image LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  install(TARGETS pith_image_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
if(NOT PITH_BUILD_SHARED AND NOT PITH_BUILD_STATIC)
  return()
endif()

install(DIRECTORY include/pith DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
# What pith_selected_library compiles: the lists, the table made from them, the headers that it includes, and the program
# that trims lists.
set(PITH_SELECT_DIR ${CMAKE_INSTALL_DATADIR}/pith)
if(PITH_BUILD_STATIC)
  install(DIRECTORY src DESTINATION ${PITH_SELECT_DIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "tables.c")
  install(FILES cli/piece_list.c cli/piece_list.h cli/piece_file.c cli/piece_file.h DESTINATION ${PITH_SELECT_DIR}/cli
    COMPONENT development)
  if(PITH_EXTRA_SOURCES) # the library has them, so its list does too
    install(FILES ${PITH_SELECT_FOLDER}/select/extra_ops.def DESTINATION ${PITH_SELECT_DIR}/src/select COMPONENT development)
  endif()
  install(FILES tools/trim.c DESTINATION ${PITH_SELECT_DIR}/tools COMPONENT development)
  install(FILES cmake/select.cmake DESTINATION ${PITH_SELECT_DIR}/cmake COMPONENT development)
endif()
configure_package_config_file(cmake/pithConfig.cmake.in pithConfig.cmake INSTALL_DESTINATION ${PITH_PACKAGE_DIR}
  PATH_VARS PITH_SELECT_DIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(pithConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pithConfig.cmake ${PROJECT_BINARY_DIR}/pithConfigVersion.cmake
  DESTINATION ${PITH_PACKAGE_DIR} COMPONENT development)

# Without a shared library every program needs what the static one needs.
if(PITH_BUILD_SHARED)
  set(PITH_PC_PRIVATE "Libs.private: -pthread -lm\nRequires.private: libpcre2-8")
else()
  set(PITH_PC_LIBS " -pthread -lm")
  set(PITH_PC_PRIVATE "Requires: libpcre2-8")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(PITH_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  set(PITH_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(dir LIB INCLUDE)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}DIR}")
    set(PITH_PC_${dir}DIR ${CMAKE_INSTALL_${dir}DIR})
  else()
    set(PITH_PC_${dir}DIR "\${prefix}/${CMAKE_INSTALL_${dir}DIR}")
  endif()
endforeach()
configure_file(cmake/pith.pc.in pith.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pith.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
