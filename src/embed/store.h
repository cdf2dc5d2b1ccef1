/*
 * One store of this process: the local engine, and what etcd's API needs beside it. All clients
 * that have opened the same directory share it (embed/handle.h); embed/stores.h finds it, counts
 * them and closes it.
 *
 * If the log cannot be written, the process ends, unless the program has installed a handler: then
 * the store has failed, and its clients and its listener end what they have.
 *
 * The callbacks of the program are made on whichever thread has something to report, perhaps one
 * that calls wait for. Functions that would wait for the store are refused inside them: they are
 * scopes of the clients' drivers (client/driver/scope.h).
 */
#ifndef VIGIL_EMBED_STORE_H
#define VIGIL_EMBED_STORE_H

#include "base/error.h"
#include "base/lock.h"
#include "engine/engine.h"
#include "etcd/shared/config.h"
#include "server/auth.h"
#include "wire/limits.h"

#include <vigil/embed.h>

enum {
    STORE_FAILURE_BYTES = 160,
    STORE_LISTEN_THREADS = 2, /* threads of embed/listener.h */
    STORE_HISTORY_THREADS = 1,
};

/* Learns that the store has failed. Embedded in the part of a client. */
struct embed_member {
    struct list in_store; /* links embed_store.members; its links are NULL until then */
    void (*failed)(struct embed_member *member); /* with the store's lock held */
};

struct embed_history;  /* embed/history.h */
struct embed_listener; /* embed/listener.h */

struct embed_store {
    /* Constant while it is open. */
    vigil_embedded_options options; /* without client */
    struct engine *engine;          /* owned */
    struct etcd_config etcd;
    struct wire_limits wire;
    struct server_auth auth;
    struct embed_history *history; /* owned; NULL: the program compacts */

    _Atomic bool failed; /* set after failure */
    char failure[STORE_FAILURE_BYTES];

    struct lock lock;
    /* Protected by the lock. */
    struct list members;             /* embed_member.in_store */
    bool listens;                    /* or begins to */
    struct embed_listener *listener; /* owned; NULL: it does not listen */
};

/* options are complete and valid. On failure embed_store_fini must follow as well. */
MUST_CHECK
enum status embed_store_init(struct embed_store *store, const char *directory,
                             const vigil_embedded_options *options, struct error *error);
/* All clients have left. Finishes what was begun, and waits for callbacks. */
void embed_store_fini(struct embed_store *store);

void embed_store_join(struct embed_store *store, struct embed_member *member);
/* No effect if it has not joined. */
void embed_store_leave(struct embed_store *store, struct embed_member *member);

/* Serves the store. ST_EXISTS: it does so already; ST_STOPPED: it has failed. */
MUST_CHECK
enum status embed_store_listen(struct embed_store *store, const char *client_urls,
                               const char *kube_urls, char *urls, size_t size, struct error *error);

/* Any thread. NULL: it has not failed. */
const char *embed_store_failure(const struct embed_store *store);

#endif
