#include "kube/handlers/write/change.h"

#include "base/clock.h"
#include "kube/call/call_offload.h"
#include "kube/call/respond.h"

struct kube_meta kube_call_meta(struct kube_call *call, struct arena *arena)
{
    return (struct kube_meta){
        .arena = arena,
        .kind = call->kind,
        .namespace = call->path.namespace,
        .name = call->path.name,
        .now_s = clock_real_ns(call->api->clock) / NS_PER_S,
        .random = &call->random,
        .dry_run = call->query.dry_run,
        .status = &call->status,
    };
}

void kube_change_drop_patched(struct kube_change *change)
{
    for (size_t i = 0; i < COUNT_OF(change->patched); i++) {
        arena_fini(&change->patched[i]);
        change->patched[i] = (struct arena){0};
    }
    change->patched_at = 0;
    change->patched_kept = COUNT_OF(change->patched) - 1; /* nothing is there */
}

bool kube_change_ran_out(const struct kube_change *change)
{
    bool ran_out = arena_ran_out(change->arena) || arena_ran_out(&change->call->arena);
    for (size_t i = 0; i < COUNT_OF(change->patched); i++)
        ran_out |= arena_ran_out(&change->patched[i]);
    return ran_out;
}

void kube_change_fini(struct kube_change *change)
{
    kube_change_drop_patched(change);
    arena_fini(&change->scratch);
    buf_fini(&change->encoded);
    buf_fini(&change->key_bytes);
    change->scratch = (struct arena){0};
}

/* Initial capacity, so that an object of some kilobytes is not reallocated several times. */
enum { KUBE_OBJECT_BYTES_USUAL = 8192 };

enum status kube_object_encode(const struct json_node *object, struct buf *to)
{
    buf_reset(to, SIZE_MAX);
    TRY(buf_reserve(to, KUBE_OBJECT_BYTES_USUAL));
    TRY(json_tree_write(object, to));
    return to->len <= KUBE_OBJECT_BYTES_MAX ? ST_OK : ST_REQUEST_TOO_LARGE;
}

bool kube_change_encode(struct kube_change *change)
{
    struct json_node *metadata = json_node_named(change->object, "metadata");
    struct json_node *list = json_node_named(metadata, "managedFields");
    enum status status = kube_object_encode(change->object, &change->encoded);
    if (status == ST_REQUEST_TOO_LARGE && list) {
        json_node_remove(metadata, list);
        status = kube_object_encode(change->object, &change->encoded);
    }
    change->value = buf_slice(&change->encoded);
    return status == ST_OK || kube_fail_engine(&change->call->status, status);
}

static void respond(struct kube_call *call)
{
    struct kube_change *change = call->handler.change;
    struct slice json;
    /* The trees of the attempt take several times as much as the object, and are not needed any
     * more. Otherwise the value is in their arena. */
    if (change->decision == KUBE_DECIDE_PUT) {
        arena_fini(&change->scratch);
        kube_change_drop_patched(change);
    }
    if (kube_call_object(call, change->value, change->revision, &json))
        kube_call_respond(call, change->code, json);
    else
        kube_call_fail(call);
}

void kube_change_respond(struct kube_change *change, unsigned code)
{
    change->code = code;
    kube_call_work(change->call,
                   kube_call_answer_work(change->call, change->value.len, change->revision),
                   respond);
}
