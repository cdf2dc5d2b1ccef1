#include "kube/call/call_conversion.h"

#include "base/xalloc.h"
#include "kube/call/conversion_batch.h"
#include "kube/call/deadline.h"
#include "kube/call/respond.h"
#include "wire/peer/peer.h"

struct conversion {
    struct kube_call *call; /* held */
    struct kube_conversion_batch *batch;
    kube_call_converted_fn *done;
    /* Unless done is set: see kube_call_convert. */
    struct arena *arena;
    void (*next)(struct kube_call *call, struct slice converted);
};

static void on_client_gone(void *outside)
{
    struct conversion *c = outside;
    kube_conversion_batch_free(c->batch);
    free(c);
}

static void fail_late(struct kube_call *call)
{
    (void)kube_call_fail_late(call, &call->status);
    kube_call_fail(call);
}

static void go_on(const struct conversion *c)
{
    struct kube_call *call = c->call;
    struct slice converted;
    int64_t ignored;
    bool fine = kube_conversion_batch_status(c->batch)->reason == KUBE_OK ||
                kube_conversion_batch_fail(c->batch, &call->arena, &call->status);
    if (fine)
        fine = arena_dup(c->arena, kube_conversion_batch_get(c->batch, 0, &ignored).value,
                         &converted) == ST_OK ||
               kube_fail_engine(&call->status, ST_NOMEM);
    kube_conversion_batch_free(c->batch);
    bool has_client = kube_call_done(call);
    assert(has_client); /* else it was dropped */
    if (fine)
        c->next(call, converted);
    else
        kube_call_fail(call);
}

static void on_converted(struct kube_conversion_batch *batch)
{
    struct conversion *owned = kube_conversion_batch_owner(batch);
    struct conversion c = *owned;
    c.call->outside = NULL;
    http_need_peer(c.call->exchange, false);
    free(owned);
    if (kube_conversion_batch_status(batch)->reason != KUBE_OK && !kube_call_time_left_ns(c.call)) {
        kube_conversion_batch_free(batch);
        bool has_client = kube_call_done(c.call);
        assert(has_client);
        fail_late(c.call);
    } else if (c.done) {
        c.done(c.call, batch);
    } else {
        go_on(&c);
    }
}

static void start(const struct conversion *conversion)
{
    struct kube_call *call = conversion->call;
    int64_t patience_ns = kube_call_patience_ns(call);
    if (!patience_ns) {
        kube_conversion_batch_free(conversion->batch);
        fail_late(call);
        return;
    }
    struct conversion *c = xmalloc(sizeof(*c));
    assert(!call->outside);
    *c = *conversion;
    call->outside = c;
    call->cancel = on_client_gone;
    kube_write_queue_leave(&call->ticket);
    kube_write_queue_leave(&call->quota_ticket);
    kube_call_hold(call);
    http_need_peer(call->exchange, true);
    kube_conversion_batch_limit(c->batch, patience_ns);
    kube_conversion_batch_start(c->batch, on_converted, c);
}

void kube_call_convert_batch(struct kube_call *call, struct kube_conversion_batch *batch,
                             kube_call_converted_fn *done)
{
    if (call->exchange)
        start(&(struct conversion){.call = call, .batch = batch, .done = done});
    else
        kube_conversion_batch_free(batch);
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
    start(&(struct conversion){.call = call, .batch = batch, .arena = arena, .next = next});
}
