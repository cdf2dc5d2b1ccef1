/*
 * The watches of a face, so that each can be asked again whether it may go on when rights change.
 * They are woken some in a turn, for there may be very many. Of the face's thread.
 */
#ifndef VIGIL_KUBE_READ_WATCHES_H
#define VIGIL_KUBE_READ_WATCHES_H

#include "engine/engine.h"
#include "io/loop.h"

struct http_exchange;

struct kube_watches {
    struct engine_shard *shard;
    struct loop *loop;
    struct list all; /* struct kube_watches_link */
    size_t count;
    size_t left; /* of those at the front: to be woken yet */
    struct engine_auth_listener rights;
    struct deferred wake;
};

/* Embedded in a watch. */
struct kube_watches_link {
    struct list in_all;
    struct http_exchange *exchange; /* that is woken */
};

void kube_watches_init(struct kube_watches *watches, struct engine_shard *shard, struct loop *loop);
/* None may be left. */
void kube_watches_fini(struct kube_watches *watches);

void kube_watches_add(struct kube_watches *watches, struct kube_watches_link *link,
                      struct http_exchange *exchange);
void kube_watches_remove(struct kube_watches *watches, struct kube_watches_link *link);

#endif
