/*
 * Objects in another version of a custom resource, for policies and webhooks whose rules name that
 * version (matchPolicy Equivalent), if a webhook converts them; and back, if a policy or an
 * admission webhook has mutated one. While it is done the write holds no place in a queue.
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

static const struct kube_kind *wanted_kind(const struct kube_policy_facts *f)
{
    if (f->back.len)
        return f->change->call->kind;
    return f->sights.leaving ? f->sights.leaving->to : f->sights.wanted;
}

static bool fill(const struct kube_policy_facts *f, struct kube_conversion_batch *batch)
{
    if (f->back.len)
        return add(batch, f->back);
    if (f->sights.leaving)
        return add(batch, f->sights.leaving->before);
    return add(batch, f->object_json) && add(batch, f->old_json);
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

static bool take_moved(struct kube_policy_facts *f, const struct kube_conversion_batch *batch,
                       struct slice error)
{
    struct kube_policy_moved *moved = TAKE(f->sights.leaving);
    moved->next = f->sights.moved;
    moved->error = error;
    f->sights.moved = moved;
    return error.len || get(f, batch, 0, &moved->after);
}

static bool take_sight(struct kube_policy_facts *f, const struct kube_conversion_batch *batch,
                       struct slice error)
{
    struct kube_policy_sights *sights = &f->sights;
    struct kube_policy_sight *items = arena_calloc(&f->arena, sights->count + 1, sizeof(*items));
    if (!items)
        return false;
    if (sights->count)
        memcpy(items, sights->items, sights->count * sizeof(*items));
    struct kube_policy_sight *sight = &items[sights->count++];
    *sight = (struct kube_policy_sight){.kind = sights->wanted, .error = error};
    sights->items = items;
    sights->wanted = NULL;
    return error.len || ((!f->object_json.len || get(f, batch, 0, &sight->object)) &&
                         (!f->old_json.len || get(f, batch, f->object_json.len != 0, &sight->old)));
}

/* The evaluation decides what an error of the webhook means. What was made by an admission webhook
 * and cannot be converted back is an error of the server, as in Kubernetes. */
static bool take(struct kube_policy_facts *f, const struct kube_conversion_batch *batch)
{
    struct kube_call *call = f->change->call;
    const struct kube_status *status = kube_conversion_batch_status(batch);
    struct slice error = SLICE_EMPTY;
    bool fine = status->reason == KUBE_OK;
    if (!fine && !kube_policies_time_left_ns(call))
        return kube_policies_fail_late(&call->status);
    if (!fine && status->reason != KUBE_UNKNOWN)
        return kube_conversion_batch_fail(batch, &call->arena, &call->status);
    if (!fine && arena_dup(&f->arena, status->long_message, &error) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!fine && f->back.len)
        return kube_fail(&call->status, KUBE_INTERNAL_ERROR, "Internal error occurred: %.*s",
                         (int)size_min(error.len, KUBE_MESSAGE_BYTES), (const char *)error.ptr);
    bool taken = f->back.len         ? take_back(f, batch)
                 : f->sights.leaving ? take_moved(f, batch, error)
                                     : take_sight(f, batch, error);
    return taken || kube_fail_engine(&call->status, ST_NOMEM);
}

static void on_converted(struct kube_call *call, struct kube_conversion_batch *batch)
{
    struct kube_change *change = call->handler.change;
    bool taken = take(change->policies, batch);
    kube_conversion_batch_free(batch);
    if (taken)
        kube_change_resume(change, ST_OK);
    else if (kube_call_done(call))
        kube_call_fail(call);
}

enum kube_stepped kube_policies_convert(struct kube_change *change)
{
    struct kube_call *call = change->call;
    const struct kube_policy_facts *f = change->policies;
    int64_t left_ns = kube_policies_time_left_ns(call);
    if (!left_ns)
        return kube_policies_fail_late(&call->status);
    struct kube_conversion_batch *batch =
        kube_conversion_batch_new(call->api, kube_custom_of(wanted_kind(f)), call->arena.account,
                                  wire_peer_key(call->request->peer));
    if (!fill(f, batch)) {
        kube_conversion_batch_free(batch);
        return kube_fail_engine(&call->status, ST_NOMEM);
    }
    kube_conversion_batch_limit(batch, left_ns + KUBE_POLICIES_TIME_LAG_NS);
    kube_write_queue_leave(&call->ticket);
    kube_write_queue_leave(&call->quota_ticket);
    kube_call_convert_batch(call, batch, on_converted);
    return KUBE_STEP_LEFT;
}
