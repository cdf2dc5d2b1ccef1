/* Stores that do the same work: see embedded_bench.c. A failure ends the program. */
#ifndef VIGIL_BENCH_EMBEDDED_STORES_H
#define VIGIL_BENCH_EMBEDDED_STORES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 20, VALUE_BYTES = 256 };

/* A session belongs to one thread. */
struct store_ops {
    void *(*open)(const char *place);
    void (*close)(void *session);
    /* For another thread: a session that is used beside this one. */
    void *(*join)(void *session);
    void (*leave)(void *session);
    void (*get)(void *session, const char *key); /* which exists */
    /* Durable when it returns, with everything before it, if `commit`. */
    void (*put)(void *session, const char *key, const char *value, bool commit);
};

extern const struct store_ops vigil_store, server_store, lmdb_store, sqlite_store;

/* NULL: there is none with this name. */
const struct store_ops *store_named(const char *name);
void vigil_events(const char *place, long count);

/* As "bench/%014ld" would print it, which takes as long as a get. */
static inline void make_key(char key[KEY_BYTES + 1], long i)
{
    static const char zeros[KEY_BYTES + 1] = "bench/00000000000000";
    memcpy(key, zeros, sizeof(zeros));
    for (char *digit = key + KEY_BYTES; i; i /= 10)
        *--digit = (char)('0' + i % 10);
}

static inline void must(bool true_, const char *what)
{
    if (true_)
        return;
    fprintf(stderr, "embedded_bench: %s failed\n", what);
    exit(1);
}

#endif
