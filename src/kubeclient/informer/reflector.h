/*
 * Keeps a cache equal to a collection on a Kubernetes API server. It decides which request comes
 * next, and interprets the answers; it has no connection and no clock of its own.
 *
 *     stopped ──► streaming ──(end of the initial events)──► watching ──(ended)──┐
 *                  │     └──(failed)──► listing ──(complete)───► ▲ │ ▲           │
 *                  │                       │                       │ └───────────┘
 *                  └────► waiting ◄────────┴───────────────────────┘
 *
 *     streaming   a watch that begins with the state (sendInitialEvents)
 *     listing     the state in pages, for servers that do not know this
 *     watching    changes after the last known version
 *     waiting     after errors, until reflector_resume: then the request that failed is made
 *                 again, or the state is requested if that cannot help (410)
 *
 * The rules, delays and limits are those of client-go's reflector, with two differences: objects
 * enter the cache as they arrive (cache.h), and the versions in it never go back; and the delay
 * that has grown while the server could not be reached does not apply any more once it has
 * answered, so that a 410 after an outage is followed by the state within two seconds.
 *
 * Exactly one request is under way while it is streaming, listing or watching. The owner makes it
 * and reports what becomes of it with the functions below, which may begin the next request before
 * they return. Owned by an informer; its thread.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_REFLECTOR_H
#define VIGIL_KUBECLIENT_INFORMER_REFLECTOR_H

#include "base/random.h"
#include "kubeclient/data/received_event.h"
#include "kubeclient/informer/cache.h"

#include <vigil/kube/status.h>

enum { REFLECTOR_VERSION_BYTES = 128, REFLECTOR_CONTINUE_BYTES_MAX = 16 << 10 };
enum { REFLECTOR_PAGE_OBJECTS = 500 }; /* as in client-go */

enum reflector_state {
    REFLECTOR_STOPPED,
    REFLECTOR_STREAMING,
    REFLECTOR_LISTING,
    REFLECTOR_WATCHING,
    REFLECTOR_WAITING,
};

struct reflector_request {
    enum reflector_state kind;   /* streaming, listing or watching */
    const char *version;         /* resourceVersion; "" for the most recent state */
    struct slice continue_token; /* where a list continues after its first page */
    int limit;                   /* objects of a page; 0: everything at once */
    int timeout_s;               /* when the server ends a watch */
};

struct reflector_ops {
    /* Texts are borrowed until the function returns. */
    void (*request)(void *ctx, const struct reflector_request *request);
    /* Ends the request under way; nothing is reported about it any more. No effect if it is over:
     * that happens when the reflector is stopped within `failed`. */
    void (*cancel)(void *ctx);
    /* Call reflector_resume after this time. */
    void (*wait)(void *ctx, int64_t delay_ns);
    /* The cache has the whole state; called again after every further list. */
    void (*synced)(void *ctx);
    /* Something went wrong, and is tried again. */
    void (*failed)(void *ctx, const struct vigil_kube_status *status);
};

/* It doubles with every failure. */
struct reflector_delay {
    int64_t next_ns;
    int64_t failed_ns; /* the last failure */
};

struct reflector {
    enum reflector_state state;
    enum reflector_state again; /* waiting: what failed */
    struct cache *cache;        /* borrowed */
    const struct reflector_ops *ops;
    void *ctx;
    struct random random;
    char version[REFLECTOR_VERSION_BYTES]; /* up to which everything is known; "": unknown */
    char
        newest[REFLECTOR_VERSION_BYTES]; /* newest version in the cache: a list must not be older */
    bool version_unavailable;            /* the server does not have it any more, or not yet */
    bool lists;        /* the server refuses to stream; the owner may set it before the start */
    int page_objects;  /* objects of a page; the owner may change it before the start */
    bool whole;        /* a list in pages took too long: everything at once the next time */
    bool in_pages;     /* the server cuts lists into pages */
    struct buf token;  /* token of the next page */
    size_t events;     /* number of events of the watch under way */
    unsigned failures; /* since the last event */
    int64_t begun_ns;  /* the watch under way */
    struct reflector_delay after_answer, after_silence; /* the server could not be reached */
};

/* The cache is borrowed. */
void reflector_init(struct reflector *reflector, struct cache *cache,
                    const struct reflector_ops *ops, void *ctx, uint64_t seed);
void reflector_fini(struct reflector *reflector);

void reflector_start(struct reflector *reflector, int64_t now_ns);
/* Cancels the request under way. */
void reflector_stop(struct reflector *reflector);
void reflector_resume(struct reflector *reflector, int64_t now_ns);

/* An object of a page, and the end of the page. An object that cannot be kept fails the request,
 * so that a page without an end is not read for ever. */
void reflector_listed(struct reflector *reflector, struct slice object, int64_t now_ns);
void reflector_page_ended(struct reflector *reflector, struct slice version,
                          struct slice continue_token, int64_t now_ns);
/* An event of a watch. */
void reflector_received(struct reflector *reflector, const struct received_event *event,
                        int64_t now_ns);
/* The watch ended without an error: a timeout, or the connection was closed. */
void reflector_watch_ended(struct reflector *reflector, int64_t now_ns);
/* The request failed. status.code is 0 if the server could not be reached. */
void reflector_failed(struct reflector *reflector, const struct vigil_kube_status *status,
                      int64_t now_ns);

/* Asserts every invariant; for tests. */
void reflector_check(const struct reflector *reflector);

#endif
