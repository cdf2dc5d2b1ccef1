#include "kube/handlers/read/watches.h"

enum { WAKE_AT_ONCE = 512 };

static void wake_some(struct deferred *deferred)
{
    struct kube_watches *watches = CONTAINER_OF(deferred, struct kube_watches, wake);
    size_t count = size_min(watches->left, WAKE_AT_ONCE);
    watches->left -= count;
    for (; count && !list_empty(&watches->all); count--) {
        struct list *in_api = list_pop_front(&watches->all);
        list_push_back(&watches->all, in_api);
        watches->check(in_api);
    }
    if (watches->left && !list_empty(&watches->all))
        loop_defer(watches->loop, &watches->wake);
}

void kube_watches_check_access(void *ctx)
{
    struct kube_watches *watches = ctx;
    watches->left = watches->count;
    if (watches->count)
        loop_defer(watches->loop, &watches->wake);
}

void kube_watches_init(struct kube_watches *watches, struct engine_shard *shard, struct loop *loop,
                       void (*check)(struct list *in_api))
{
    *watches = (struct kube_watches){
        .shard = shard,
        .loop = loop,
        .check = check,
        .rights = {.changed = kube_watches_check_access, .ctx = watches},
        .wake = {.fn = wake_some},
    };
    list_init(&watches->all);
    engine_auth_listen(shard, &watches->rights);
}

void kube_watches_fini(struct kube_watches *watches)
{
    if (!watches->shard)
        return;
    assert(watches->count == 0 && list_empty(&watches->all));
    loop_defer_cancel(&watches->wake);
    engine_auth_unlisten(watches->shard, &watches->rights);
}

void kube_watches_add(struct kube_watches *watches, struct list *in_api)
{
    list_push_back(&watches->all, in_api);
    watches->count++;
}

void kube_watches_remove(struct kube_watches *watches, struct list *in_api)
{
    list_remove(in_api);
    watches->count--;
}
