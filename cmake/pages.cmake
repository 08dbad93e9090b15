# Manual pages and shell completion, which the command itself prints from its tables of options. A command for another
# machine can do so only under an emulator (CMAKE_CROSSCOMPILING_EMULATOR); without one there are no pages.
set(PITH_PAGES_DIR ${PROJECT_BINARY_DIR}/pages)
set(PITH_COMPLETION_bash bash-completion/completions/pith)
set(PITH_COMPLETION_zsh zsh/site-functions/_pith)
set(PITH_COMPLETION_fish fish/vendor_completions.d/pith.fish)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cli/verbs.def)
if(PITH_SELECT_FOLDER)
  file(STRINGS ${PITH_SELECT_FOLDER}/cli/verbs.def verbs REGEX "^VERB")
else()
  file(STRINGS cli/verbs.def verbs REGEX "^VERB")
endif()
list(TRANSFORM verbs REPLACE "VERB.(.*)." "\\1")
set(PITH_PAGES man/man1/pith.1)
foreach(verb ${verbs})
  list(APPEND PITH_PAGES man/man1/pith-${verb}.1)
endforeach()
list(APPEND PITH_PAGES ${PITH_COMPLETION_bash} ${PITH_COMPLETION_zsh} ${PITH_COMPLETION_fish})
list(TRANSFORM PITH_PAGES PREPEND ${PITH_PAGES_DIR}/)
# One step for all pages: each change of the command makes them again.
add_custom_command(OUTPUT ${PITH_PAGES}
  COMMAND ${CMAKE_COMMAND} "-DPITH=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:pith>" -DDIR=${PITH_PAGES_DIR} "-DVERBS=${verbs}"
    -DBASH=${PITH_COMPLETION_bash} -DZSH=${PITH_COMPLETION_zsh} -DFISH=${PITH_COMPLETION_fish}
    -P ${CMAKE_CURRENT_LIST_DIR}/write_pages.cmake
  DEPENDS pith ${CMAKE_CURRENT_LIST_DIR}/write_pages.cmake COMMENT "Manual pages and shell completion" VERBATIM)
add_custom_target(pith_pages ALL DEPENDS ${PITH_PAGES})
