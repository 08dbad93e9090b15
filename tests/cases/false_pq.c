/* false_pq.c - stands for libpq: a server with the table t of 300 rows. Its messages quote the
 * whole address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct option {
    char *keyword, *variable, *compiled, *value, *label, *shown;
    int size;
} option;

static option options[3];
static char address[4096], message[5000], value[64];
static enum { LIST, COLUMNS, LINKS, DATA } asked;
static int fetched;

typedef struct result {
    int status, rows;
} result;

static result *make(int status, int rows) {
    result *r = malloc(sizeof *r);
    *r = (result){ status, rows };
    return r;
}

option *PQconninfoParse(const char *text, char **why) {
    char *at = strstr(text, "//"), *colon = at ? strchr(at + 2, ':') : NULL,
         *host = at ? strrchr(at, '@') : NULL;
    snprintf(address, sizeof address, "%s", text);
    *why = NULL;
    memset(options, 0, sizeof options);
    options[0] = (option){ "host", NULL, NULL, "false.host", NULL, "", 40 };
    if (colon && host && colon < host)
        options[1] =
            (option){ "password", NULL, NULL, strndup(colon + 1, (size_t)(host - colon - 1)),
                      NULL,       "*",  40 };
    return options;
}

void PQconninfoFree(option *list) { (void)list; }
void PQfreemem(void *memory) { free(memory); }
void *PQconnectdb(const char *text) { return (void *)text; }
int PQstatus(void *connection) { return connection ? getenv("FALSE_PQ_DOWN") != NULL : 1; }
char *PQerrorMessage(void *connection) {
    snprintf(message, sizeof message, "the server says no to %s", address);
    return connection ? message : "";
}
void PQfinish(void *connection) { (void)connection; }
char *PQdb(void *connection) { return connection ? "shop" : ""; }
void *PQsetNoticeProcessor(void *connection, void (*each)(void *user, const char *text),
                           void *user) {
    PQerrorMessage(connection);
    each(user, message);
    return NULL;
}

void *PQexecParams(void *connection, const char *sql, int count, const unsigned *types,
                   const char *const *values, const int *lengths, const int *formats,
                   int result_format) {
    (void)connection, (void)count, (void)types, (void)values, (void)lengths, (void)formats,
        (void)result_format;
    if (strstr(sql, "SELECT broken")) return make(7, 0);
    if (!strncmp(sql, "DECLARE", 7)) {
        fetched = 0;
        asked = strstr(sql, "typcategory")     ? COLUMNS
                : strstr(sql, "contype = 'f'") ? LINKS
                : strstr(sql, "pg_class")      ? LIST
                                               : DATA;
    }
    if (strncmp(sql, "FETCH", 5) != 0) return make(1, 0);
    const int rows[] = { 1, 4, 0, 300 };
    return make(2, fetched++ ? 0 : rows[asked]);
}

/* Of calls that can be stopped, which no test makes. */
void *PQconnectStart(const char *text) { return (void *)text; }
int PQconnectPoll(void *connection) { return connection ? 3 : 0; }
int PQsocket(void *connection) { return connection ? -1 : -1; }
int PQsendQueryParams(void *connection) { return !connection; }
int PQconsumeInput(void *connection) { return !connection; }
int PQisBusy(void *connection) { return !connection; }
void *PQgetResult(void *connection) { return connection ? NULL : NULL; }
void *PQgetCancel(void *connection) { return connection ? NULL : NULL; }
int PQcancel(void *cancel, char *text, int size) { return cancel && text && size; }
void PQfreeCancel(void *cancel) { (void)cancel; }

int PQresultStatus(void *r) { return ((result *)r)->status; }
int PQntuples(void *r) { return ((result *)r)->rows; }
int PQnfields(void *r) { return r ? (int[]){ 1, 3, 4, 4 }[asked] : 0; }
char *PQfname(void *r, int column) {
    static char *const names[][4] = { { "relname" },
                                      { "attname", "category", "key" },
                                      { "conname", "relname", "attname", "other" },
                                      { "id", "at", "x", "y" } };
    return r ? names[asked][column] : "";
}
unsigned PQftype(void *r, int column) { return r && column ? 25 : 25; }
char *PQgetvalue(void *r, int row, int column) {
    static char *const columns[][3] = {
        { "id", "N", "1" }, { "at", "D", "0" }, { "x", "N", "0" }, { "y", "B", "0" }
    };
    if (!r) return "";
    if (asked == LIST) return "t";
    if (asked == COLUMNS) return columns[row][column];
    if (column == 0) snprintf(value, sizeof value, "%d", row);
    if (column == 1)
        snprintf(value, sizeof value, "2024-%02d-%02d 10:00:00", row / 25 + 1, row % 25 + 1);
    if (column == 2) snprintf(value, sizeof value, "%d", row * 7 % 13);
    if (column == 3) snprintf(value, sizeof value, "%s", row * 7 % 13 > 6 ? "t" : "f");
    return value;
}
int PQgetlength(void *r, int row, int column) { return (int)strlen(PQgetvalue(r, row, column)); }
int PQgetisnull(void *r, int row, int column) { return !r || row < 0 || column < 0; }
void PQclear(void *r) { free(r); }
