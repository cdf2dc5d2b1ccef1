/*
 * Objects in another version of a custom resource, for policies and webhooks whose rules name that
 * version (matchPolicy Equivalent), if a webhook converts them; and back, if an admission webhook
 * has mutated one. While it is done the write holds no place in a queue.
 */
#include "base/clock.h"
#include "kube/call/call_conversion.h"
#include "kube/call/conversion_batch.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/policies_private.h"
#include "wire/peer/peer.h"

/* -- Time -- */

int64_t kube_policies_time_left_ns(const struct kube_call *call)
{
    int64_t most = KUBE_REQUEST_TIMEOUT_S * NS_PER_S;
    int64_t asked = call->query.request_timeout_ns;
    int64_t spent = clock_mono_ns(call->api->clock) - call->started_ns;
    int64_t left = (asked > 0 && asked < most ? asked : most) - spent;
    return left > 0 ? left : 0;
}

bool kube_policies_fail_late(struct kube_status *status)
{
    return kube_fail(status, KUBE_TIMEOUT,
                     "Timeout: request did not complete within requested "
                     "timeout - context deadline exceeded");
}

/* -- Objects -- */

static bool add(struct kube_conversion_batch *batch, struct slice json)
{
    return !json.len || kube_conversion_batch_add(batch, (struct kube_kv){.value = json}) == ST_OK;
}

/* Item i, in the arena of the facts. */
static bool get(struct kube_policy_facts *f, const struct kube_conversion_batch *batch, size_t i,
                struct slice *ret_json)
{
    int64_t revision;
    struct kube_kv kv = kube_conversion_batch_get(batch, i, &revision);
    return arena_dup(&f->arena, kv.value, ret_json) == ST_OK;
}

static bool take_back(struct kube_policy_facts *f, const struct kube_conversion_batch *batch)
{
    f->back = SLICE_EMPTY;
    return get(f, batch, 0, &f->taken);
}

static bool take_sight(struct kube_policy_facts *f, const struct kube_conversion_batch *batch)
{
    struct kube_policy_sights *sights = &f->sights;
    struct kube_policy_sight *items = arena_calloc(&f->arena, sights->count + 1, sizeof(*items));
    if (!items)
        return false;
    if (sights->count)
        memcpy(items, sights->items, sights->count * sizeof(*items));
    struct kube_policy_sight *sight = &items[sights->count];
    sight->kind = sights->wanted;
    if ((f->object_json.len && !get(f, batch, 0, &sight->object)) ||
        (f->old_json.len && !get(f, batch, f->object_json.len != 0, &sight->old)))
        return false;
    *sights = (struct kube_policy_sights){.items = items, .count = sights->count + 1};
    return true;
}

/* Kubernetes answers that admission could not convert an object with an error of the server. */
static void fail(struct kube_call *call, const struct kube_status *why)
{
    const char *text = why->long_message.len ? (const char *)why->long_message.ptr : why->message;
    size_t len = why->long_message.len ? why->long_message.len : strlen(why->message);
    (void)kube_fail(&call->status, KUBE_INTERNAL_ERROR, "Internal error occurred: %.*s",
                    (int)size_min(len, KUBE_MESSAGE_BYTES), text);
}

static void on_converted(struct kube_call *call, struct kube_conversion_batch *batch)
{
    struct kube_change *change = call->handler.change;
    struct kube_policy_facts *f = change->policies;
    const struct kube_status *status = kube_conversion_batch_status(batch);
    enum status taken = ST_OK;
    bool converted = status->reason == KUBE_OK;
    if (!converted)
        fail(call, status);
    else if (!(f->back.len ? take_back(f, batch) : take_sight(f, batch)))
        taken = ST_NOMEM;
    kube_conversion_batch_free(batch);
    if (converted)
        kube_change_resume(change, taken);
    else if (kube_call_done(call))
        kube_call_fail(call);
}

enum kube_stepped kube_policies_convert(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_policy_facts *f = change->policies;
    if (!kube_policies_time_left_ns(call))
        return kube_policies_fail_late(&call->status);
    const struct kube_kind *to = f->back.len ? call->kind : f->sights.wanted;
    struct kube_conversion_batch *batch = kube_conversion_batch_new(
        call->api, kube_custom_of(to), call->arena.account, wire_peer_key(call->request->peer));
    if (f->back.len ? !add(batch, f->back)
                    : !add(batch, f->object_json) || !add(batch, f->old_json)) {
        kube_conversion_batch_free(batch);
        return kube_fail_engine(&call->status, ST_NOMEM);
    }
    kube_write_queue_leave(&call->ticket);
    kube_write_queue_leave(&call->quota_ticket);
    kube_call_convert_batch(call, batch, on_converted);
    return KUBE_STEP_LEFT;
}
