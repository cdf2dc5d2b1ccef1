/*
 * Objects in another version of a custom resource, for policies and webhooks whose rules name that
 * version (matchPolicy Equivalent), if a webhook converts them; and back, if a policy or an
 * admission webhook has mutated one.
 */
#include "kube/call/call_conversion.h"
#include "kube/call/conversion_batch.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/policies_private.h"
#include "wire/peer/peer.h"

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
    struct kube_conversion_batch *batch =
        kube_conversion_batch_new(call->api, kube_custom_of(wanted_kind(f)), call->arena.account,
                                  wire_peer_key(call->request->peer));
    if (!fill(f, batch)) {
        kube_conversion_batch_free(batch);
        return kube_fail_engine(&call->status, ST_NOMEM);
    }
    kube_call_convert_batch(call, batch, on_converted);
    return KUBE_STEP_LEFT;
}
