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
 *     deletion: a tombstone; its version is that of its revision (tier_collection_version)
 *
 * A collection is made by the first request that opens it, and stopped when nobody has used it for
 * a while:
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

#include "base/container/list.h"
#include "base/error.h"
#include "io/loop.h"
#include "tier/mirror/name.h"

#include <vigil/kube/client.h>

struct engine;
struct metric_page;
struct network;
struct tier_collection;
struct tier_mirror;

enum {
    TIER_PREFIX_BYTES = 12, /* of every key: number of the collection and generation */
    TIER_REASON_BYTES = 256,
    TIER_COLLECTIONS_MAX = 1024, /* default of the option */
};

struct tier_mirror_options {
    struct engine *engine;            /* an empty mirror; borrowed */
    struct network *network;          /* NULL: the system's */
    const vigil_kube_options *client; /* of the tier's own account; used only by new */
    unsigned collections_max;         /* 0: TIER_COLLECTIONS_MAX */
    uint64_t collection_bytes_max; /* of the objects of one; a larger one is refused; 0: no limit */
    int64_t idle_ns;               /* a collection that nobody uses is dropped; 0: 10 minutes */
    int64_t history_ns;            /* changes are kept at least so long; 0: 5 minutes */
    int64_t refused_ns;            /* a refused collection is tried again after this; 0: 30 s */
    int64_t fence_ns;              /* what a fence may take; 0: 3 s */
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
/* One that --upstream-resources names: it is started, and never idle. */
MUST_CHECK
enum status tier_mirror_keep(struct tier_mirror *mirror, const struct tier_name *name);
struct tier_collection *tier_collection_ref(struct tier_collection *collection);
void tier_collection_close(struct tier_collection *collection); /* accepts NULL */
DEFINE_CLEANUP(struct tier_collection *, tier_collection_close)

enum tier_phase { TIER_STARTING, TIER_LOADING, TIER_SERVING, TIER_REFUSED };

/* What is known about a collection at one moment. */
struct tier_view {
    enum tier_phase phase;
    /* Of what reads may use, which is there while SERVING, and while another generation is LOADING;
     * 0: nothing yet. */
    uint64_t generation;
    uint8_t prefix[TIER_PREFIX_BYTES];
    int64_t began;   /* revision at which it was complete */
    uint64_t oldest; /* a watch may begin at this version or later */
    uint64_t newest; /* readers see everything up to this version */
    /* The versions (void_after, void_until] belong to a history that the kube-apiserver has lost: a
     * watch from one of them gets 410. Equal: there are none. */
    uint64_t void_after, void_until;
    bool has_kinds; /* items of its JSON lists have kind and apiVersion */
    bool connected; /* its watch is running */
    const char *kind, *list_kind,
        *api_version;               /* "Pod", "PodList", "v1"; valid with the reference */
    char reason[TIER_REASON_BYTES]; /* why it is refused, or not connected; "" otherwise */
};

void tier_collection_look(struct tier_collection *collection, struct tier_view *ret_view);
const struct tier_name *tier_collection_name(const struct tier_collection *collection);

/*
 * From versions to revisions and back, within a generation. Both are false if the generation has
 * ended at that revision, has not begun, or the answer is older than what is kept.
 */

/* The revision that has everything up to a version, and nothing newer: a watch from this version
 * begins after it. */
MUST_CHECK
bool tier_collection_revision(struct tier_collection *collection, uint64_t generation,
                              uint64_t version, int64_t *ret_revision);
/* The newest version of which everything is in the store at a revision: that of a list at it, of
 * a bookmark there, and of a tombstone with this revision. */
MUST_CHECK
bool tier_collection_version(struct tier_collection *collection, uint64_t generation,
                             int64_t revision, uint64_t *ret_version);

/* -- Waiting; one tier_reader for each I/O thread, on that thread -- */

struct tier_reader;

/* Aborts without memory. Before the mirror is used on this thread. */
struct tier_reader *tier_reader_new(struct tier_mirror *mirror, struct loop *loop);
void tier_reader_free(struct tier_reader *reader); /* nothing may wait; accepts NULL */

/* Called on the reader's thread when a generation of a collection has ended, or the collection was
 * refused: watches look at it again. The watcher is embedded; its links are NULL at first. */
struct tier_change_listener {
    void (*changed)(struct tier_change_listener *listener);
    struct list in_reader; /* private */
};
void tier_reader_listen(struct tier_reader *reader, struct tier_change_listener *listener,
                        struct tier_collection *collection);
void tier_reader_unlisten(
    struct tier_change_listener *listener); /* accepts one that is not added */

enum tier_wait_kind {
    TIER_WAIT_STATE,   /* until there is a generation that reads may use, or it is refused */
    TIER_WAIT_VERSION, /* until readers see everything up to a version, which a fence may show */
    /* Until readers see everything that happened before this wait began: a fence, one list of the
     * objects' metadata that was begun afterwards, is matched by what was received. Those who wait
     * share it, and there is one at a time for each resource. */
    TIER_WAIT_CURRENT,
};

/* Embedded by its owner; idle unless it was started. */
struct tier_wait {
    /* ST_OK; ST_TIMEOUT: not in time; ST_UNAVAILABLE: it is refused, or the fence has failed. Not
     * called from within start. */
    void (*done)(struct tier_wait *wait, enum status status);
    enum tier_wait_kind kind;
    uint64_t version;   /* TIER_WAIT_VERSION */
    int64_t timeout_ns; /* from now */
    /* Set before done with ST_OK: a read must see at least this revision of the store. */
    int64_t revision;
    /* private */
    struct tier_collection *collection;
    uint64_t fence;
    struct timer timer;
    struct deferred soon;
    struct tier_reader *reader;
    struct list in_reader;
};

void tier_wait_start(struct tier_reader *reader, struct tier_wait *wait,
                     struct tier_collection *collection);
void tier_wait_cancel(struct tier_wait *wait); /* no effect if it is idle */

/* -- For operators; any thread -- */

/* Every collection that was named by tier_mirror_keep is serving. Otherwise the reason. */
MUST_CHECK
bool tier_mirror_is_ready(struct tier_mirror *mirror, char ret_reason[TIER_REASON_BYTES]);
void tier_mirror_write_metrics(struct tier_mirror *mirror, struct metric_page *page);

#endif
