/*
 * In front of a cluster: whether the cluster serves callers without a token of its own. It does
 * while authentication is disabled there. It is requested twice a second; when the cluster
 * cannot be reached, the last one stays valid.
 *
 *     unknown ──► admitted ◄──► refused
 *        └───────────────────────▲
 *
 * One for each API, on its thread. What one has learned is the beginning of the others, so that a
 * client that was served once is not sent away by another thread.
 */
#ifndef VIGIL_KUBE_CALL_ANONYMOUS_H
#define VIGIL_KUBE_CALL_ANONYMOUS_H

#include "engine/engine.h"
#include "io/timer.h"

enum kube_anonymous_state {
    KUBE_ANONYMOUS_UNKNOWN,
    KUBE_ANONYMOUS_ADMITTED,
    KUBE_ANONYMOUS_REFUSED,
};

struct kube_anonymous {
    enum kube_anonymous_state state;
    struct loop *loop;
    struct engine_shard *shard;
    size_t *under_way;  /* counter of the API */
    _Atomic int *first; /* enum kube_anonymous_state: the last answer on any thread; NULL: none */
    bool stopped;
    struct timer timer;
    struct engine_admission admission;
    struct arena arena;
    void (*on_refused)(void *ctx); /* callers were admitted until now */
    void *ctx;
};

/* on_refused, ctx and first are set. */
void kube_anonymous_start(struct kube_anonymous *anonymous, struct engine_shard *shard,
                          struct loop *loop, size_t *under_way);
enum kube_anonymous_state kube_anonymous_get(const struct kube_anonymous *anonymous);
/* Asks no more; a question may be under way. A zeroed one may be stopped. */
void kube_anonymous_stop(struct kube_anonymous *anonymous);

#endif
