/*
 * The watches of an API. When permissions change, each is woken and checks whether its client still
 * has access; a bounded number per turn, because there may be very many. On the thread of the API.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_WATCHES_H
#define VIGIL_KUBE_HANDLERS_READ_WATCHES_H

#include "engine/engine.h"
#include "io/loop.h"

struct kube_watches {
    struct engine_shard *shard;
    struct loop *loop;
    struct list all;                    /* kube_watch.in_api */
    void (*check)(struct list *in_api); /* wakes a watch */
    size_t count;
    size_t left; /* at the front: still to be woken */
    struct engine_auth_listener rights;
    struct deferred wake;
};

/* Wakes all watches, some in each turn, so that those whose client has lost access end; ctx is the
 * struct kube_watches. */
void kube_watches_check_access(void *ctx);
void kube_watches_init(struct kube_watches *watches, struct engine_shard *shard, struct loop *loop,
                       void (*check)(struct list *in_api));
/* Must be empty. */
void kube_watches_fini(struct kube_watches *watches);

void kube_watches_add(struct kube_watches *watches, struct list *in_api);
void kube_watches_remove(struct kube_watches *watches, struct list *in_api);

#endif
