/* python_program.h - the Python that reads files of Arrow for Pith: found in PATH, and run isolated
 * (-I), so that only its own packages are imported. */
#ifndef PITH_CLI_BASE_PYTHON_PROGRAM_H
#define PITH_CLI_BASE_PYTHON_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How a program in Python begins that reads .parquet files. Older versions of pyarrow unpickle, and
 * so run, what the metadata of a file hold. bound() limits a resource of the process. */
#define PYTHON_ARROW                                                                               \
    "import errno, os, re, resource, sys\n"                                                        \
    "try:\n"                                                                                       \
    "    import pyarrow, pyarrow.csv, pyarrow.parquet\n"                                           \
    "except ImportError:\n"                                                                        \
    "    sys.exit(f'.parquet files need the package pyarrow, which {sys.executable} does not "     \
    "have; install it '\n"                                                                         \
    "             '(pip install pyarrow), or name another Python with --python')\n"                \
    "if [int(n) for n in re.findall('[0-9]+', pyarrow.__version__)[:3]] < [14, 0, 1]:\n"           \
    "    sys.exit(f'pyarrow {pyarrow.__version__} runs code that a .parquet file holds; install "  \
    "14.0.1 or newer')\n"                                                                          \
    "def bound(which, most):\n"                                                                    \
    "    hard = resource.getrlimit(which)[1]\n"                                                    \
    "    resource.setrlimit(which, (most if hard < 0 else min(most, hard), hard))\n"

/* The path of a program, from malloc. A name with a slash is that program. Any other is searched in
 * the folders of PATH, but neither in one that is not named in full, nor in the current directory,
 * nor in `beside` (may be NULL): what lies beside the data is not run. NULL, and a message. */
char *python_program_find(const char *name, const char *beside, char *message, size_t size);

/* Starts a program, the text of it, in Python in the root folder with up to four arguments (NULL
 * ends them). out: where its standard output goes; -1: to that of this process. Its messages go to
 * standard error. Standard input is empty. 0, or errno. */
int python_program_start(pid_t *child, const char *python, const char *text,
                         const char *const *arguments, int out);
/* Waits for its end; true if it did what it should. */
bool python_program_end(pid_t child);

#endif
