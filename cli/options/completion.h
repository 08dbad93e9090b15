/* completion.h - the declarations as a script that completes words in a shell. */
#ifndef PITH_CLI_OPTIONS_COMPLETION_H
#define PITH_CLI_OPTIONS_COMPLETION_H

#include <stdio.h>

/* shell: index into the choices of --completion. */
void completion_print(int shell, FILE *out);

#endif
