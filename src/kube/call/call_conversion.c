#include "kube/call/call_conversion.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "kube/call/conversion_batch.h"
#include "kube/call/respond.h"
#include "wire/peer/peer.h"

struct call_conversion {
    struct kube_call *call; /* held */
    struct arena *arena;
    void (*next)(struct kube_call *call, struct slice converted);
    struct timer patience;
};

static void on_patience(struct timer *timer)
{
    struct call_conversion *c = CONTAINER_OF(timer, struct call_conversion, patience);
    kube_write_queue_leave(&c->call->ticket);
    kube_write_queue_leave(&c->call->quota_ticket);
}

static void on_converted(struct kube_conversion_batch *batch)
{
    struct call_conversion *c = kube_conversion_batch_owner(batch);
    struct kube_call *call = c->call;
    struct arena *arena = c->arena;
    void (*next)(struct kube_call * made, struct slice converted) = c->next;
    struct slice converted = SLICE_EMPTY;
    int64_t ignored;
    loop_timer_cancel(call->api->loop, &c->patience);
    free(c);
    bool fine = kube_conversion_batch_status(batch)->reason == KUBE_OK ||
                kube_conversion_batch_fail(batch, &call->arena, &call->status);
    if (fine)
        fine = arena_dup(arena, kube_conversion_batch_get(batch, 0, &ignored).value, &converted) ==
                   ST_OK ||
               kube_fail_engine(&call->status, ST_NOMEM);
    kube_conversion_batch_free(batch);
    if (!kube_call_done(call))
        return;
    if (fine)
        next(call, converted);
    else
        kube_call_fail(call);
}

void kube_call_convert(struct kube_call *call, const struct kube_custom *to, struct slice json,
                       int64_t revision, struct arena *arena,
                       void (*next)(struct kube_call *call, struct slice converted))
{
    struct kube_conversion_batch *batch = kube_conversion_batch_new(
        call->api, to, call->arena.account, wire_peer_key(call->request->peer));
    enum status status =
        kube_conversion_batch_add(batch, (struct kube_kv){.value = json, .mod_revision = revision});
    if (status != ST_OK) {
        kube_conversion_batch_free(batch);
        kube_call_fail_engine(call, status);
        return;
    }
    struct call_conversion *c = xcalloc(1, sizeof(*c));
    *c = (struct call_conversion){
        .call = call, .arena = arena, .next = next, .patience = {.fn = on_patience}};
    kube_call_hold(call);
    loop_timer_set(call->api->loop, &c->patience,
                   clock_add(loop_now_ns(call->api->loop), KUBE_CONVERSION_PATIENCE_NS));
    kube_conversion_batch_start(batch, on_converted, c);
}
