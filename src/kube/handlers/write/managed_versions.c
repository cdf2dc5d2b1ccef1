#include "kube/handlers/write/managed_versions.h"

#include "kube/call/call_conversion.h"
#include "kube/call/conversion_batch.h"
#include "wire/peer/peer.h"

/* One object in one version; in the arena of the call, as all of this. */
struct item {
    struct item *next;
    const struct kube_custom *to;
    struct slice json;      /* what is converted */
    struct slice converted; /* empty: it has failed */
};

struct kube_managed_versions {
    struct item *items;
    size_t count;
    struct item *wanted;        /* not among the items so far */
    struct kube_status failure; /* the last one */
    struct kube_change *change;
};

static struct kube_managed_versions *versions_of(struct kube_change *change)
{
    if (!change->versions) {
        change->versions = arena_calloc(&change->call->arena, 1, sizeof(*change->versions));
        if (change->versions)
            change->versions->change = change;
    }
    return change->versions;
}

static enum status want(struct kube_managed_versions *v, struct slice json,
                        const struct kube_custom *to)
{
    struct arena *arena = &v->change->call->arena;
    if (v->count == KUBE_MANAGED_VERSIONS_MAX)
        return ST_LIMIT;
    struct item *item = arena_calloc(arena, 1, sizeof(*item));
    if (!item)
        return ST_NOMEM;
    item->to = to;
    TRY(arena_dup(arena, json, &item->json));
    v->wanted = item;
    return ST_AGAIN;
}

enum status kube_managed_version(struct kube_change *change, struct arena *arena,
                                 const struct json_node *object, struct slice api_version,
                                 struct apply_type *ret_type, struct json_node **ret_object)
{
    const struct kube_custom *to =
        kube_definition_version(kube_custom_of(change->call->kind)->definition, api_version);
    struct kube_managed_versions *v = versions_of(change);
    AUTO(buf_fini) struct buf text = {0};
    struct error ignored;
    assert(to);
    *ret_type = (struct apply_type){.kind = APPLY_TYPE_RESOURCE,
                                    .of = kube_custom_schema((struct kube_custom *)(uintptr_t)to)};
    if (!v || !ret_type->of)
        return ST_NOMEM;
    TRY(json_tree_write(object, &text));
    const struct item *item = v->items;
    while (item && !(item->to == to && slice_equal(item->json, buf_slice(&text))))
        item = item->next;
    if (!item)
        return want(v, buf_slice(&text), to);
    if (!item->converted.len)
        return ST_INVALID;
    return json_tree_read(arena, item->converted, ret_object, &ignored);
}

bool kube_managed_versions_wanted(const struct kube_change *change)
{
    return change->versions && change->versions->wanted;
}

bool kube_managed_versions_fail(const struct kube_change *change)
{
    change->call->status = change->versions->failure;
    return false;
}

/* -- The step -- */

static void on_converted(struct kube_call *call, struct kube_conversion_batch *batch)
{
    struct kube_managed_versions *v = call->handler.change->versions;
    struct item *item = TAKE(v->wanted);
    enum status status = ST_OK;
    int64_t ignored;
    /* A failure is remembered: an update continues without managers, as in Kubernetes. */
    if (kube_conversion_batch_status(batch)->reason == KUBE_OK)
        status = arena_dup(&call->arena, kube_conversion_batch_get(batch, 0, &ignored).value,
                           &item->converted);
    else
        (void)kube_conversion_batch_fail(batch, &call->arena, &v->failure);
    item->next = v->items;
    v->items = item;
    v->count++;
    kube_conversion_batch_free(batch);
    kube_change_resume(v->change, status);
}

enum kube_stepped kube_convert_versions(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_managed_versions *v = change->versions;
    if (!kube_managed_versions_wanted(change))
        return KUBE_STEP_NEXT;
    struct kube_conversion_batch *batch = kube_conversion_batch_new(
        call->api, v->wanted->to, call->arena.account, wire_peer_key(call->request->peer));
    enum status status =
        kube_conversion_batch_add(batch, (struct kube_kv){.value = v->wanted->json});
    if (status != ST_OK) {
        kube_conversion_batch_free(batch);
        return kube_fail_engine(&call->status, status);
    }
    kube_call_convert_batch(call, batch, on_converted);
    return KUBE_STEP_LEFT;
}
