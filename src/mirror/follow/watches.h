/*
 * The stream of the cluster's watches: one watch for all keys, or one for each prefix. What they
 * deliver goes to a merge.
 *
 *     closed ──► open ──► creating ──► live
 *       ▲          │         │          │
 *       └──────────┴─────────┴──────────┘ broken, refused, or a watch was canceled
 *
 * The stream opens again by itself after a break; the owner then decides from where its watches
 * begin. The follower's thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_WATCHES_H
#define VIGIL_MIRROR_FOLLOW_WATCHES_H

#include "mirror/follow/merge.h"
#include "mirror/load/ranges.h"

#include <vigil/client.h>

struct watches;

/* None is called from within a function of the owner's. */
struct watches_ops {
    void (*opened)(void *ctx);
    /* The watches are gone. is_only_that: none of the next three follows. */
    void (*broken)(void *ctx, bool is_only_that);
    /* After broken: the server has refused the stream or a watch, which is not opened again before
     * watches_open. */
    void (*refused)(void *ctx, enum grpc_code code, struct slice text);
    /* After broken: what is needed is compacted; the first revision that can be watched. */
    void (*compacted)(void *ctx, int64_t compact_revision);
    /* After broken: events are missing, because the server sent them after it had denied that they
     * exist, or because one revision has too many to be kept (MERGE_REVISION_BYTES_MAX). */
    void (*lost)(void *ctx);
    void (*live)(void *ctx); /* the server has all watches */
    /* The merge has got something. The header may be NULL. */
    void (*received)(void *ctx, const vigil_header *header, size_t events);
};

/* On the thread of the client's loop. Aborts without memory. */
struct watches *watches_new(vigil_client *client, const struct watches_ops *ops, void *ctx);
void watches_free(struct watches *watches); /* accepts NULL */

void watches_open(struct watches *watches);
bool watches_is_open(const struct watches *watches);
struct watches_request {
    const struct range *ranges;
    size_t count;
    int64_t revision;    /* the first one */
    bool trust_progress; /* otherwise progress is not requested, and ignored */
    struct merge *merge; /* borrowed until the stream breaks */
};
/* Creates a watch for each range. The stream is open and has none. */
void watches_create(struct watches *watches, const struct watches_request *request);
/* Gives the stream up, for instance because of an error of the server; broken is called later. */
void watches_give_up(struct watches *watches);
/* The server of this connection is of no use now: another one is tried, if there is one. */
void watches_avoid_server(struct watches *watches);

/* While paused, the server may send no more than a window. */
void watches_pause(struct watches *watches, bool paused);
/* Only while live. The answer is reported as received. */
void watches_request_progress(struct watches *watches);

/* Asserts every invariant; for tests. */
void watches_check(const struct watches *watches);

#endif
