/* temporary_file.c - see temporary_file.h. Names are kept in static storage, so that a signal
 * handler can read them at any time. */
#include "cli/base/temporary_file.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More files than any command writes at once. */
enum { PLACES = 4 };

static struct {
    atomic_bool taken;
    char name[PATH_MAX];
} places[PLACES];

static const int deadly[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
enum { DEADLY = sizeof deadly / sizeof deadly[0] };

static void remove_all(void) {
    for (int i = 0; i < PLACES; i++)
        if (atomic_exchange(&places[i].taken, false)) unlink(places[i].name);
}

/* The signal then ends the process as it would have without us, so that the shell sees it. */
static void remove_and_die(int number) {
    remove_all();
    raise(number); /* SA_RESETHAND has restored the default */
}

/* Signals that the caller ignores (nohup, background jobs) stay ignored. */
static void watch(void) {
    static bool watching;
    if (watching) return;
    watching = true;
    atexit(remove_all);
    for (int i = 0; i < DEADLY; i++) {
        struct sigaction old, action = { .sa_handler = remove_and_die, .sa_flags = SA_RESETHAND };
        sigemptyset(&action.sa_mask);
        if (!sigaction(deadly[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(deadly[i], &action, NULL);
    }
}

int temporary_file_make(char *name) {
    sigset_t set, before;
    watch();
    sigemptyset(&set);
    for (int i = 0; i < DEADLY; i++) sigaddset(&set, deadly[i]);
    pthread_sigmask(SIG_BLOCK, &set, &before); /* between making the file and noting its name */
    int fd = mkstemp(name), i = 0;
    while (i < PLACES && atomic_load(&places[i].taken)) i++;
    if (fd >= 0 && i < PLACES) {
        strncpy(places[i].name, name, PATH_MAX - 1);
        atomic_store(&places[i].taken, true);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fd;
}

void temporary_file_forget(const char *name) {
    for (int i = 0; i < PLACES; i++)
        if (atomic_load(&places[i].taken) && !strcmp(places[i].name, name))
            atomic_store(&places[i].taken, false);
}
