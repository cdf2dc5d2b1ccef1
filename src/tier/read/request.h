/*
 * A read of the mirror, from its arrival to its answer. Who it is and what they may do is decided
 * before anything else, so that a user without rights learns nothing and starts nothing.
 *
 *     IDENTIFYING ──► DECIDING ──► OPENING ──► FRESHENING ──► READING ──► answered
 *          │              │           │             │            │
 *          └── 401, 503   └── 403     └─────────────┴────────────┴──► passed on, 429
 *
 *     OPENING      until the collection has a state
 *     FRESHENING   until the mirror has what the request must see
 *     READING      a range of the store
 *
 * What the mirror cannot answer (soon enough) is passed on to the kube-apiserver; while it reads a
 * state, or fences fail, only a few of the lists and watches that wait for that are.
 */
#ifndef VIGIL_TIER_READ_REQUEST_H
#define VIGIL_TIER_READ_REQUEST_H

#include "codec/pb/rpc.pb.h"
#include "engine/keys.h"
#include "kube/request/life.h"
#include "tier/call/api.h"
#include "tier/object/frame.h"
#include "tier/read/ask.h"

enum tier_request_phase {
    TIER_REQUEST_NEW,
    TIER_REQUEST_IDENTIFYING,
    TIER_REQUEST_DECIDING,
    TIER_REQUEST_OPENING,
    TIER_REQUEST_FRESHENING,
    TIER_REQUEST_READING,
    TIER_REQUEST_ANSWERING,
    TIER_REQUEST_OVER,
};

struct tier_list;
struct tier_watch;

struct tier_request {
    struct kube_life life; /* owner of the exchange */
    struct tier_api *api;
    struct http_exchange *exchange; /* NULL once it has ended, or has another owner */
    enum tier_request_phase phase;
    struct arena arena;
    struct tier_ask ask;
    struct tier_access access;
    struct kube_selection *selection;   /* a reference */
    struct tier_user *user;             /* a reference */
    struct tier_collection *collection; /* a reference */
    struct tier_view view;
    struct tier_range range;
    struct tier_question question;
    struct tier_right_wait right;
    struct tier_wait wait;
    struct timer again;     /* FRESHENING: the next attempt to find out what is current */
    int64_t fresh_until_ns; /* until then */
    int64_t revision;       /* the store's, which the answer must have at least */
    /* What the answer must have: everything up to this version. The state at `revision` has it,
     * also if its own version is lower; a later one only if its version is not lower. 0: anything.
     */
    uint64_t floor;
    struct pb_range_request wanted;
    struct engine_range read;
    struct arena read_arena; /* used by a range that was opened again */
    bool read_open, read_under_way;
    bool is_abandoned; /* it is freed when the operation under way is done */
    unsigned retries;
    /* READING: the range is open, or op->status says why not. */
    void (*on_range)(struct tier_request *r);
    /* It is over, or begins again: for the answer of its verb. NULL: nothing is to be done. */
    void (*on_over)(struct tier_request *r);
    struct tier_list *list;   /* in the arena */
    struct tier_watch *watch; /* the owner that it was detached for; NULL: none */
};

/* Takes over an exchange whose request was read as an ask, which is copied with its arena. */
void tier_request_start(struct tier_api *api, struct http_exchange *x, struct arena *arena,
                        const struct tier_ask *ask);

/* -- For the answers of each verb: get.c, list.c, watch.c -- */

void tier_get(struct tier_request *r);
void tier_list(struct tier_request *r);
void tier_watch(struct tier_request *r);

/* Starts the range in r->wanted. The generation has ended meanwhile: it is begun again. */
void tier_request_range(struct tier_request *r, void (*on_range)(struct tier_request *r));
void tier_request_close_range(struct tier_request *r);
/* The revision of the state that the range has. */
int64_t tier_request_revision(const struct tier_request *r);
/* The version of the state that the range has. False: its generation has ended. */
MUST_CHECK
bool tier_request_version(struct tier_request *r, uint64_t *ret_version);
/* The request is passed on to the kube-apiserver, and freed. */
void tier_request_pass_on(struct tier_request *r);
/* Answers with a status. */
void tier_request_fail(struct tier_request *r, const struct kube_status *status);
struct tier_kind tier_kind_of(enum tier_encoding encoding, const struct tier_view *view);
/* The exchange gets another owner. The request, with its range, belongs to the caller until it is
 * freed. */
void tier_request_detach(struct tier_request *r, struct kube_life *life);
void tier_request_free(struct tier_request *r);
/* The request was detached and has closed its range: starts the range in r->wanted. Then it
 * is open, or op->status says why not; done may be called from within. */
void tier_request_reopen(struct tier_request *r, void (*done)(struct tier_request *r));

#endif
