/* tables.c - prints the schema of a directory of tables. usage: tables DIR */
#include <pith/tables.h>

#include <stdio.h>

static void write_text(void *user, const char *text, size_t size) {
    fwrite(text, 1, size, (FILE *)user);
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    if (argc < 2) return puts("usage: tables DIR"), 2;
    if (pith_database_draft(argv[1], write_text, stdout, &err)) return puts(err.message), 1;
    return 0;
}
