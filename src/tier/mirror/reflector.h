/*
 * Decides what the mirror requests of one collection, by the rules of client-go's reflector. It has
 * no connection, no clock and no objects of its own.
 *
 *     stopped ──► probing ──► streaming ──(end of the initial events)──► watching ──(ended)──┐
 *                  │ ▲            └──(refused)──► listing ──(complete)──► ▲ │ ▲              │
 *                  │ │                               │                      │ └──────────────┘
 *                  │ └── waiting ◄───────────────────┴──────────────────────┘
 *                  └──► refused
 *
 *     probing     a list with limit 1: whether the collection can be mirrored
 *     streaming   a watch that begins with the state (sendInitialEvents)
 *     listing     the state in pages, for servers that do not know this
 *     watching    changes after the last known version
 *     waiting     after errors, until tier_reflector_resume: then the request that failed is made
 *                 again, or everything begins with probing if that cannot help (410)
 *     refused     until it is started again
 *
 * A resource that the server does not know, or that we may not read, is refused: at once at the
 * start, but only after half a minute if it was watched before, because a server that restarts
 * answers the same until it has loaded its roles and custom resources.
 *
 * The state is always requested without a version, which is the most recent one. A server that
 * answers with an older one than is known lags behind, and the request is repeated; if that does
 * not pass, its history is another one: a restored backup.
 *
 * Exactly one request is under way while it is probing, streaming, listing or watching. The owner
 * makes it and reports what becomes of it with the functions below, which may begin the next
 * request before they return. The follower's thread.
 */
#ifndef VIGIL_TIER_MIRROR_REFLECTOR_H
#define VIGIL_TIER_MIRROR_REFLECTOR_H

#include "base/buf.h"
#include "base/random.h"
#include "kubeclient/data/received_event.h"

#include <vigil/kube/status.h>

enum tier_reflector_state {
    TIER_REFLECTOR_STOPPED,
    TIER_REFLECTOR_PROBING,
    TIER_REFLECTOR_STREAMING,
    TIER_REFLECTOR_LISTING,
    TIER_REFLECTOR_WATCHING,
    TIER_REFLECTOR_WAITING,
    TIER_REFLECTOR_REFUSED,
};

enum { TIER_PAGE_OBJECTS = 500, TIER_CONTINUE_BYTES_MAX = 16 << 10 };

struct tier_reflector_request {
    enum tier_reflector_state kind; /* probing, streaming, listing or watching */
    uint64_t version;               /* watching */
    struct slice token;             /* where a list continues after its first page */
    int limit;                      /* objects of a page; 0: everything at once */
    int timeout_s;                  /* when the server ends a watch */
};

struct tier_reflector_ops {
    /* Texts are borrowed until the function returns. */
    void (*request)(void *ctx, const struct tier_reflector_request *request);
    /* Ends the request under way. */
    void (*cancel)(void *ctx);
    /* Call tier_reflector_resume after this time. */
    void (*wait)(void *ctx, int64_t delay_ns);
    /* What was received of a state is dropped; if begins, that of another one follows. */
    void (*state)(void *ctx, bool begins);
    /* Something went wrong, and is tried again; or, if refused, it is not. */
    void (*failed)(void *ctx, const char *reason, bool refused);
};

/* It doubles with every failure. */
struct tier_reflector_delay {
    int64_t next_ns, failed_ns;
};

struct tier_reflector {
    enum tier_reflector_state state, again; /* waiting: what failed */
    const struct tier_reflector_ops *ops;
    void *ctx;
    struct random random;
    uint64_t version;   /* up to which everything is known, of the newest state; 0: nothing */
    bool lists;         /* the server refuses to stream */
    bool whole;         /* a list in pages took too long: everything at once the next time */
    struct buf token;   /* continues the list with its next page */
    size_t events;      /* events of the watch under way */
    bool serves;        /* a watch was accepted since it was started */
    int64_t refused_ns; /* all waits because of refusals since the last accepted watch */
    unsigned failures;  /* since the last event */
    unsigned too_large; /* refusals of the version since the last event */
    unsigned behind;    /* states in a row that were older than what is known */
    int64_t behind_ns;  /* the first of them */
    int64_t begun_ns;   /* the watch under way */
    struct tier_reflector_delay after_answer; /* an error */
    /* Refusals of a server that starts are many, and do not delay what follows them. */
    struct tier_reflector_delay after_refusal;
    struct tier_reflector_delay after_silence; /* the server could not be reached */
};

void tier_reflector_init(struct tier_reflector *reflector, const struct tier_reflector_ops *ops,
                         void *ctx, uint64_t seed);
void tier_reflector_fini(struct tier_reflector *reflector);

/* It is stopped or refused. */
void tier_reflector_start(struct tier_reflector *reflector);
/* Cancels the request under way. */
void tier_reflector_stop(struct tier_reflector *reflector);
void tier_reflector_resume(struct tier_reflector *reflector, int64_t now_ns);

/* Probing: the answer is one that can be mirrored. */
void tier_reflector_probed(struct tier_reflector *reflector, int64_t now_ns);
/* The server has accepted the request under way. */
void tier_reflector_accepted(struct tier_reflector *reflector);
/* Listing: a page has ended; there is another one, which is requested, if there is a token. */
void tier_reflector_page_ended(struct tier_reflector *reflector, struct slice token,
                               int64_t now_ns);
/* Streaming, or listing after the last page: the state is complete, and has this version. False: it
 * is older than what is known, and was dropped. Otherwise tier_reflector_loaded follows. */
MUST_CHECK
bool tier_reflector_believes(struct tier_reflector *reflector, uint64_t version, int64_t now_ns);
/* The watch continues from this version. */
void tier_reflector_loaded(struct tier_reflector *reflector, uint64_t version, int64_t now_ns);
/* An event of a watch has been used. Watching: everything up to this version is known, unless it is
 * 0. False: the watch is over, because of this event. */
MUST_CHECK
bool tier_reflector_received(struct tier_reflector *reflector, const struct received_event *event,
                             uint64_t version, int64_t now_ns);
/* The watch ended without an error: a timeout, or the connection was closed. */
void tier_reflector_watch_ended(struct tier_reflector *reflector, int64_t now_ns);
/* The request failed. status.code is 0 if the server could not be reached. */
void tier_reflector_failed(struct tier_reflector *reflector, const struct vigil_kube_status *status,
                           int64_t now_ns);

/* The request under way is ended by us, and made again after a while. */
void tier_reflector_retry(struct tier_reflector *reflector, const char *reason, int64_t now_ns);
/* The same, but what is known cannot be continued: the state is requested, at once if it has not
 * failed lately. Also while waiting. */
void tier_reflector_restart(struct tier_reflector *reflector, const char *reason, int64_t now_ns);
/* Gives up. In every state but stopped. */
void tier_reflector_refuse(struct tier_reflector *reflector, const char *reason);

/* Asserts every invariant; for tests. */
void tier_reflector_check(const struct tier_reflector *reflector);

#endif
