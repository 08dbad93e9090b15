/* Whether a call must end: the flag, the deadline, and the caller's function, which is asked on his
 * thread alone and at most every two milliseconds; runs on threads leave out what has not begun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/os/threads.h"
#include "base/stop.h"

#define MS 1000000u

typedef struct asked {
    pthread_t caller;
    atomic_int times, elsewhere;
    atomic_uint_fast64_t last, least; /* the shortest time between two questions */
    int32_t answer;
} asked;

static int32_t ask(void *user) {
    asked *a = user;
    const uint64_t now = pith__clock_ns(), last = atomic_exchange(&a->last, now);
    if (last && now - last < atomic_load(&a->least)) atomic_store(&a->least, now - last);
    if (!pthread_equal(pthread_self(), a->caller)) atomic_fetch_add(&a->elsewhere, 1);
    atomic_fetch_add(&a->times, 1);
    return a->answer;
}

static void asked_init(asked *a, int32_t answer) {
    memset(a, 0, sizeof *a);
    a->caller = pthread_self();
    a->answer = answer;
    atomic_store(&a->least, UINT64_MAX);
}

static pith_status check(pith__stop *s, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    const pith_status status = pith__stop_check(s, &err);
    if (status) assert_string_equal(err.message, says);
    return status;
}

static void nothing_stops(void **state) {
    (void)state;
    pith_call call = PITH_CALL_INIT;
    pith__stop s;
    assert_null(pith__stop_begin(&s, &call));
    assert_false(pith__stop_asked(NULL));
    assert_int_equal(pith__stop_check(NULL, NULL), PITH_OK);
    assert_true(pith__status_stops(PITH_ERR_CANCELLED) && pith__status_stops(PITH_ERR_DEADLINE));
    assert_false(pith__status_stops(PITH_OK) || pith__status_stops(PITH_ERR_RUN));
}

/* It stays, even if the flag is taken back. */
static void flag(void **state) {
    (void)state;
    volatile int set = 0;
    pith_call call = PITH_CALL_INIT;
    pith__stop own, *s;
    call.cancel = &set;
    s = pith__stop_begin(&own, &call);
    assert_non_null(s);
    assert_int_equal(check(s, ""), PITH_OK);
    set = 3;
    assert_int_equal(check(s, "cancelled"), PITH_ERR_CANCELLED);
    set = 0;
    assert_int_equal(check(s, "cancelled"), PITH_ERR_CANCELLED);
}

static void deadline(void **state) {
    (void)state;
    static const char says[] = "the deadline passed before the call was done";
    volatile int set = 0;
    pith_call call = PITH_CALL_INIT;
    pith__stop own, *s;
    call.deadline_ns = pith__clock_ns() + 20 * MS;
    call.cancel = &set;
    s = pith__stop_begin(&own, &call);
    assert_int_equal(check(s, ""), PITH_OK);
    while (!pith__stop_asked(s)) usleep(1000);
    assert_true(pith__clock_ns() >= call.deadline_ns);
    set = 1; /* the first reason stays */
    assert_int_equal(check(s, says), PITH_ERR_DEADLINE);
    call.deadline_ns = 1;
    assert_int_equal(check(pith__stop_begin(&own, &call), "cancelled"), PITH_ERR_CANCELLED);
    call.cancel = NULL;
    assert_int_equal(check(pith__stop_begin(&own, &call), says), PITH_ERR_DEADLINE);
}

static void function(void **state) {
    (void)state;
    asked a;
    pith_call call = PITH_CALL_INIT;
    pith__stop own, *s;
    asked_init(&a, 0);
    call.stop = ask;
    call.user = &a;
    s = pith__stop_begin(&own, &call);
    for (uint64_t end = pith__clock_ns() + 30 * MS; pith__clock_ns() < end;)
        assert_false(pith__stop_asked(s));
    assert_in_range(atomic_load(&a.times), 2, 16);
    assert_true(atomic_load(&a.least) >= 2 * MS - MS / 4);
    a.answer = 7;
    usleep(3000);
    assert_int_equal(check(s, "cancelled"), PITH_ERR_CANCELLED);
    const int times = atomic_load(&a.times);
    usleep(3000);
    assert_true(pith__stop_asked(s));
    assert_int_equal(atomic_load(&a.times), times); /* nobody is asked again */
}

static void *look_often(void *context) {
    pith__stop *s = context;
    for (uint64_t end = pith__clock_ns() + 20 * MS; pith__clock_ns() < end;)
        if (pith__stop_asked(s)) return s;
    return NULL;
}

/* Another thread sees the answer, and never asks. */
static void other_threads(void **state) {
    (void)state;
    asked a;
    pith_call call = PITH_CALL_INIT;
    pith__stop own, *s;
    pthread_t thread;
    void *seen;
    asked_init(&a, 1);
    call.stop = ask;
    call.user = &a;
    s = pith__stop_begin(&own, &call);
    assert_int_equal(pthread_create(&thread, NULL, look_often, s), 0);
    pthread_join(thread, &seen);
    assert_null(seen);
    assert_int_equal(atomic_load(&a.times), 0);
    assert_true(pith__stop_asked(s));
    assert_int_equal(pthread_create(&thread, NULL, look_often, s), 0);
    pthread_join(thread, &seen);
    assert_non_null(seen);
    assert_int_equal(atomic_load(&a.times), 1);
}

typedef struct long_run {
    pthread_t caller;
    pith__stop *stop;
    atomic_int begun;
} long_run;

/* Parts of other threads last as long as nobody stops; the caller's own end at once. */
static void long_part(void *context, size_t part, int worker) {
    long_run *l = context;
    (void)part;
    (void)worker;
    atomic_fetch_add(&l->begun, 1);
    if (pthread_equal(pthread_self(), l->caller)) {
        usleep(1000);
        return;
    }
    for (int i = 0; i < 10000 && !pith__stop_asked(l->stop); i++) usleep(1000);
}

/* The caller waits for another thread, spinning or asleep, and is asked meanwhile. */
static void asked_while_waiting(void **state) {
    (void)state;
    for (int spin = 0; spin < 2; spin++) {
        asked a;
        pith_call call = PITH_CALL_INIT;
        pith__stop own;
        bool shared = false;
        pith__threads_set_spin(spin ? 100000 : 0);
        /* until another thread took a part and the machine left this one enough time */
        for (int i = 0; i < 100; i++) {
            if (shared && atomic_load(&a.times) >= 5) break;
            asked_init(&a, 0);
            call.stop = ask;
            call.user = &a;
            call.deadline_ns = pith__clock_ns() + 60 * MS;
            long_run l = { .caller = pthread_self(), .stop = pith__stop_begin(&own, &call) };
            pith__threads_run_until(l.stop, long_part, &l, 2, 2);
            shared = pith__stop_asked(l.stop);
        }
        assert_true(shared);
        assert_in_range(atomic_load(&a.times), 5, 31);
        assert_int_equal(atomic_load(&a.elsewhere), 0);
        assert_int_equal(check(&own, "the deadline passed before the call was done"),
                         PITH_ERR_DEADLINE);
    }
    pith__threads_set_spin(-1);
}

typedef struct left_out {
    volatile int *flag;
    size_t at;
    atomic_int done;
} left_out;

static void set_flag(void *context, size_t part, int worker) {
    left_out *l = context;
    (void)worker;
    atomic_fetch_add(&l->done, 1);
    if (part == l->at) *l->flag = 1;
}

static void parts_are_left_out(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        volatile int set = 0;
        pith_call call = PITH_CALL_INIT;
        pith__stop own, *s;
        call.cancel = &set;
        s = pith__stop_begin(&own, &call);
        left_out l = { .flag = &set, .at = 10 };
        pith__threads_run_until(s, set_flag, &l, 100000, threads);
        assert_true(pith__stop_asked(s));
        if (threads == 1) assert_int_equal(atomic_load(&l.done), 11);
        assert_in_range(atomic_load(&l.done), 1, 99999);
        const int done = atomic_load(&l.done);
        pith__threads_run_until(s, set_flag, &l, 100, threads);
        assert_int_equal(atomic_load(&l.done), done);
        pith__threads_run_until(NULL, set_flag, &l, 100, threads);
        assert_int_equal(atomic_load(&l.done), done + 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_stops),      cmocka_unit_test(flag),
        cmocka_unit_test(deadline),           cmocka_unit_test(function),
        cmocka_unit_test(other_threads),      cmocka_unit_test(asked_while_waiting),
        cmocka_unit_test(parts_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
