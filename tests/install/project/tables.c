/* tables.c - prints the schema of a directory of tables. usage: tables DIR */
#include <pith/tables.h>

#include <stdio.h>

static int32_t write_text(void *user, const void *text, size_t size) {
    return fwrite(text, 1, size, (FILE *)user) != size;
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    if (argc < 2) return puts("usage: tables DIR"), 2;
    const pith_writer writer = { .write = write_text, .user = stdout };
    if (pith_database_draft(argv[1], NULL, &writer, &err)) return puts(err.message), 1;
    return 0;
}
