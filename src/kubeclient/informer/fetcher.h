/*
 * Makes the requests of a reflector, one at a time, and reports what becomes of them:
 *
 *     idle ──fetcher_request──► starting ──┬──► watching ──(events)──► ended or failed ──► idle
 *                                          └──► listing ──(objects)──► page ended or failed ──► idle
 *
 * A request starts at the end of the loop's turn, so none of the functions of fetcher_ops is called
 * from within fetcher_request, and each of them may make another request or cancel this one.
 * Embedded in an informer; the loop's thread.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_FETCHER_H
#define VIGIL_KUBECLIENT_INFORMER_FETCHER_H

#include "kubeclient/call/exchange.h"
#include "kubeclient/data/list_reader.h"
#include "kubeclient/informer/reflector.h"
#include "kubeclient/watch/watch_request.h"

#include <vigil/kube/target.h>

/* What is watched. Texts that are not given are NULL. */
struct fetcher_scope {
    struct vigil_kube_target target; /* a collection */
    const char *label_selector, *field_selector;
    bool protobuf;
    /* The Accept fields, constants; NULL: what protobuf says. */
    const char *accept_watch, *accept_list;
};

struct fetcher_ops {
    /* The request is about to be made. False: it waits for fetcher_admitted. NULL: it never waits.
     */
    bool (*admit)(void *ctx);
    /* The server has accepted the watch. May be NULL. */
    void (*accepted)(void *ctx);
    void (*received)(void *ctx, const struct received_event *event);
    /* Without an error. cut_off: not by the server. */
    void (*watch_ended)(void *ctx, bool cut_off);
    void (*listed)(void *ctx, struct slice object);
    void (*page_ended)(void *ctx, const struct list_info *info);
    /* The request is over. */
    void (*failed)(void *ctx, const struct vigil_kube_status *status);
};

enum fetcher_state { FETCHER_IDLE, FETCHER_STARTING, FETCHER_WATCHING, FETCHER_LISTING };

struct fetcher {
    enum fetcher_state state;
    const struct fetcher_ops *ops;
    void *ctx;
    struct vigil_kube *kube;           /* borrowed; the owner holds a reference */
    const struct fetcher_scope *scope; /* borrowed */
    struct deferred start;
    struct reflector_request request; /* starting: its texts are below */
    char version[REFLECTOR_VERSION_BYTES];
    struct buf token; /* with a final zero */
    bool no_memory;   /* the request could not be kept */
    struct watch_request watch;
    struct kube_exchange exchange;
    struct list_reader reader; /* listing */
    bool reads_nothing;        /* listing: no byte has arrived, so its format is not known */
    bool withheld;
};

void fetcher_init(struct fetcher *fetcher, struct vigil_kube *kube,
                  const struct fetcher_scope *scope, const struct fetcher_ops *ops, void *ctx);
/* It is idle, or was never initialized. */
void fetcher_fini(struct fetcher *fetcher);

/* While idle. Texts are copied. */
void fetcher_request(struct fetcher *fetcher, const struct reflector_request *request);
/* The request that was not admitted is made now; it was not cancelled. */
void fetcher_admitted(struct fetcher *fetcher);
/* Nothing is reported any more. No effect if it is idle. */
void fetcher_cancel(struct fetcher *fetcher);
/* While set, the server is made to stop sending; it stays set for the requests that follow. Objects
 * of a list that are on their way are still reported. */
void fetcher_withhold(struct fetcher *fetcher, bool withhold);
/* What the list under way has said about itself so far. */
struct list_info fetcher_list_info(const struct fetcher *fetcher);

/* Whether requests for this scope can be made. ST_INVALID, with a text for people; ST_NOMEM. */
MUST_CHECK
enum status fetcher_check_scope(const struct fetcher_scope *scope, struct error *error);

#endif
