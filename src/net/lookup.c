/*
 * getaddrinfo(3) knows no deadline: it runs in a thread, which is left to itself when it is late.
 * Addresses need no thread and no lookup.
 */
#include "net/lookup.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

/* Shared by two threads; the last one frees it. */
struct asked {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *host;
    struct addrinfo *list;
    int result;
    bool done;
    bool abandoned;
};

static void asked_free(struct asked *a)
{
    if (a->list)
        freeaddrinfo(a->list);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    free(a->host);
    free(a);
}

static void *ask(void *arg)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct asked *a = arg;
    struct addrinfo *list = NULL;
    int result = getaddrinfo(a->host, NULL, &hints, &list);
    bool abandoned;

    pthread_mutex_lock(&a->lock);
    a->list = result == 0 ? list : NULL;
    a->result = result;
    a->done = true;
    abandoned = a->abandoned;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (abandoned)
        asked_free(a);
    return NULL;
}

/* A thread that no signal is delivered to. */
static int start(struct asked *a)
{
    sigset_t all, before;
    pthread_t thread;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&thread, NULL, ask, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        pthread_detach(thread);
    return -r;
}

/* False at the deadline; then a is the thread's. */
static bool wait_until(struct asked *a, uint64_t deadline_usec)
{
    struct timespec at = {.tv_sec = (time_t)(MIN_OF(deadline_usec, (uint64_t)INT64_MAX) / 1000000),
        .tv_nsec = (long)(deadline_usec % 1000000) * 1000};
    bool done;
    int r = 0;

    pthread_mutex_lock(&a->lock);
    while (!a->done && r != ETIMEDOUT)
        r = pthread_cond_clockwait(&a->changed, &a->lock, CLOCK_MONOTONIC, &at);
    done = a->done;
    a->abandoned = !done;
    pthread_mutex_unlock(&a->lock);
    return done;
}

static int look_up_name(const char *host, uint16_t port, uint64_t deadline_usec,
    union sock_address *to, unsigned *ret_count, struct err *err)
{
    struct asked *a = xnew(struct asked);
    int r;

    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->host = xstrdup(host);
    r = start(a);
    if (r < 0) {
        asked_free(a);
        return err_sys(err, r, "cannot resolve '%.100s'", host);
    }
    if (!wait_until(a, deadline_usec))
        return err_set(err, -ETIMEDOUT, "cannot resolve '%.100s' in time", host);
    *ret_count = sock_take(a->list, port, to);
    r = a->result;
    asked_free(a);
    if (r || !*ret_count)
        return err_set(err, -EHOSTUNREACH, "cannot resolve '%.100s': %s", host,
            r ? gai_strerror(r) : "it has no address");
    return 0;
}

int lookup(const char *host, uint16_t port, uint64_t deadline_usec, union sock_address *to,
    unsigned *ret_count, struct err *err)
{
    *ret_count = 1;
    if (sock_parse(host, port, to) == 0)
        return 0;
    return look_up_name(host, port, deadline_usec, to, ret_count, err);
}
