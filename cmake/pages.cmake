# Manual pages and shell completion, which the command itself prints from its tables of options. A command for another
# machine can do so only under an emulator (CMAKE_CROSSCOMPILING_EMULATOR); without one there are no pages.
set(PITH_PAGES_DIR ${PROJECT_BINARY_DIR}/pages)
set(PITH_COMPLETION_bash bash-completion/completions/pith)
set(PITH_COMPLETION_zsh zsh/site-functions/_pith)
set(PITH_COMPLETION_fish fish/vendor_completions.d/pith.fish)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()

# pith_page(FILE argument...): FILE below the pages' folder is what the command prints.
function(pith_page file)
  get_filename_component(folder ${PITH_PAGES_DIR}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${PITH_PAGES_DIR}/${file} COMMAND pith ${ARGN} > ${PITH_PAGES_DIR}/${file} DEPENDS pith VERBATIM)
  set(PITH_PAGES ${PITH_PAGES} ${PITH_PAGES_DIR}/${file} PARENT_SCOPE)
endfunction()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cli/verbs.def)
file(STRINGS cli/verbs.def verbs REGEX "^VERB")
pith_page(man/man1/pith.1 --man pith)
foreach(line ${verbs})
  string(REGEX REPLACE "VERB.(.*)." "\\1" verb ${line})
  pith_page(man/man1/pith-${verb}.1 --man ${verb})
endforeach()
foreach(shell bash zsh fish)
  pith_page(${PITH_COMPLETION_${shell}} --completion ${shell})
endforeach()
add_custom_target(pith_pages ALL DEPENDS ${PITH_PAGES})
