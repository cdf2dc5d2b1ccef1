/*
 * Copies of what a kube-apiserver has. A collection is one resource in one version and encoding
 * (name.h): its objects, and its recent changes. All collections are in one store, a local engine
 * as a mirror (engine/local/mirror/mirror_store.h), so that lists are ranges of it and watches are
 * cursors over its log. The store counts revisions of its own, 1, 2, 3 …, over all collections; the
 * versions of a resource are the kube-apiserver's, and are never compared with those of another.
 *
 *     key:    prefix of the collection and its generation, then "namespace/name" or "name"
 *     value:  the object's bytes as they arrived; in JSON with its kind and apiVersion
 *     version of the key-value: the object's resourceVersion
 *     deletion: a tombstone; its version is that of its revision (tier_collection_change)
 *
 * A collection is made by the first request that opens it, and stopped when it has not been used
 * for a while:
 *
 *                      ┌────────────(after a pause)──────────────┐
 *                      ▼                                         │
 *     (opened) ──► STARTING ──► LOADING ──► SERVING ──┬──► STARTING (its history is lost)
 *                      │           │                  └──► REFUSED  (it has become too large …)
 *                      └───────────┴──► REFUSED: requests are passed on to the kube-apiserver
 *
 * STARTING: a list with limit 1 says whether it can be mirrored, and which kinds it has; LOADING:
 * a watch with the initial events, or a list in pages if the server does not know that; SERVING:
 * the watch continues, and is made again from the last version when it ends or breaks.
 *
 * If the history is lost (410), or is another one (a restored etcd), the state is read again as a
 * new generation: keys with another prefix. Reads use the old one until the new one is complete.
 * Afterwards the old keys are deleted; its watches end with 410, because the changes between two
 * states are not known.
 *
 * One thread, vigil-follower, does all of this with one client of libvigil-kube. Readers, the I/O
 * threads, look at what it has published under a lock.
 */
#ifndef VIGIL_TIER_MIRROR_MIRROR_H
#define VIGIL_TIER_MIRROR_MIRROR_H

#include "base/error.h"
#include "tier/mirror/collection.h"
#include "tier/mirror/wait.h"

#include <vigil/kube/client.h>

struct engine;
struct tier_rate;
struct turn;
struct metric_page;
struct network;
struct tier_mirror;

enum {
    TIER_COLLECTIONS_MAX = 1024, /* default of the option */
};

struct tier_mirror_options {
    struct engine *engine;            /* an empty mirror; borrowed */
    struct network *network;          /* NULL: the system's */
    const vigil_kube_options *client; /* the tier's own account; used only by new */
    unsigned collections_max;         /* 0: TIER_COLLECTIONS_MAX */
    uint64_t collection_bytes_max;    /* a larger collection is refused; 0: no limit */
    uint64_t bytes_max;               /* all together; beyond it one is refused; 0: no limit */
    uint64_t history_bytes_max;       /* the oldest changes beyond it are dropped; 0: no limit */
    int64_t idle_ns;                  /* a collection without users is dropped; 0: 10 minutes */
    int64_t history_ns;               /* other changes are kept at least so long; 0: 5 minutes */
    int64_t refused_ns;               /* a refused collection is tried again after this; 0: 30 s */
    int64_t fence_ns;                 /* what a fence of no objects may take; 0: 3 s */
    struct tier_rate *rate;           /* --upstream-qps; borrowed; NULL: no limit */
    struct turn *turn;                /* measures the thread; borrowed; may be NULL */
    /* One line about what has changed; an enum vigil_log_level. May be NULL. */
    void (*log)(void *ctx, int level, const char *text);
    void *log_ctx;
};

/* Starts the thread. The kube-apiserver need not be reachable. */
MUST_CHECK
enum status tier_mirror_new(const struct tier_mirror_options *options,
                            struct tier_mirror **ret_mirror, struct error *error);
/* Ends the thread; all collections and readers were closed. Accepts NULL. */
void tier_mirror_free(struct tier_mirror *mirror);
DEFINE_CLEANUP(struct tier_mirror *, tier_mirror_free)

/* -- Collections; any thread -- */

/* Takes a reference; makes the collection if there is none. NULL: there are as many as allowed, or
 * a part of the name is too long. */
struct tier_collection *tier_mirror_open(struct tier_mirror *mirror, const struct tier_name *name);
/* The same, but it makes none. NULL: there is none. */
struct tier_collection *tier_mirror_find(struct tier_mirror *mirror, const struct tier_name *name);
/* One that --upstream-resources names: it is started, and never idle. */
MUST_CHECK
enum status tier_mirror_keep(struct tier_mirror *mirror, const struct tier_name *name);

/* -- For operators; any thread -- */

/* Every collection that was named by tier_mirror_keep is serving. Otherwise the reason. */
MUST_CHECK
bool tier_mirror_is_ready(struct tier_mirror *mirror, char ret_reason[TIER_REASON_BYTES]);
void tier_mirror_write_metrics(struct tier_mirror *mirror, struct metric_page *page);

#endif
