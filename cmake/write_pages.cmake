# Manual pages and shell completion, all in one run: -DPITH=the command and what it is started with, -DDIR=folder of the
# pages, -DVERBS=..., -DBASH=, -DZSH=, -DFISH=files of the completions below DIR.
file(REMOVE_RECURSE ${DIR}) # pages of verbs that are gone too
# write_page(FILE argument...): FILE below DIR is what the command prints.
function(write_page file)
  get_filename_component(folder ${DIR}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${PITH} ${ARGN} OUTPUT_FILE ${DIR}/${file} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " line "${PITH};${ARGN}")
    message(FATAL_ERROR "${line}: ${status}")
  endif()
endfunction()

write_page(man/man1/pith.1 --man pith)
foreach(verb ${VERBS})
  write_page(man/man1/pith-${verb}.1 --man ${verb})
endforeach()
write_page(${BASH} --completion bash)
write_page(${ZSH} --completion zsh)
write_page(${FISH} --completion fish)
