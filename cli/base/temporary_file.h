/* temporary_file.h - temporary files that go when the process is ended before it has renamed or
 * removed them. */
#ifndef PITH_CLI_BASE_TEMPORARY_FILE_H
#define PITH_CLI_BASE_TEMPORARY_FILE_H

/* mkstemp that also removes the file on SIGINT, SIGTERM, SIGHUP, SIGQUIT and exit(). Returns the
 * descriptor or -1. */
int temporary_file_make(char *name);
/* The file has another name by now, or is gone, or is to stay. */
void temporary_file_forget(const char *name);

#endif
