#include "kube/handlers/write/store.h"

#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/admit.h"
#include "kube/handlers/write/charge.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/handlers/write/reserve.h"

/* -- Waiting for other changes of the object -- */

static void on_turn(struct kube_write_ticket *turn)
{
    struct kube_call *call = CONTAINER_OF(turn, struct kube_call, ticket);
    kube_change_next(call->handler.change);
}

static enum status make_key(struct kube_change *change)
{
    struct buf *key = &change->key_bytes;
    buf_reset(key, SIZE_MAX);
    TRY(buf_append_text(key, change->call->kind->storage_prefix));
    TRY(buf_append(key, change->namespace));
    if (change->namespace.len)
        TRY(buf_append_text(key, "/"));
    TRY(buf_append(key, change->name));
    change->key = buf_slice(key);
    return ST_OK;
}

enum kube_stepped kube_store_enter_queue(struct kube_change *change)
{
    struct kube_call *call = change->call;
    change->tries = 0;
    change->warned = call->warnings.len;
    if (make_key(change) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    /* A dry run makes no other attempt fail. */
    if (change->dry_run)
        return KUBE_STEP_NEXT;
    call->ticket = (struct kube_write_ticket){.key = change->key, .begin = on_turn};
    switch (kube_write_queue_enter(&call->api->write_queue, &call->ticket)) {
    case KUBE_WRITE_QUEUE_FIRST:
        return KUBE_STEP_NEXT;
    case KUBE_WRITE_QUEUE_WAITS:
        kube_count_total(&call->api->counter, KUBE_TOTAL_QUEUED, 1);
        return KUBE_STEP_LEFT;
    default:
        kube_fail(&call->status, KUBE_TOO_MANY_REQUESTS,
                  "too many requests change this object at the same time, please try again");
        call->status.retry_after_s = 1;
        return KUBE_STEP_FAIL;
    }
}

enum kube_stepped kube_store_leave_queues(struct kube_change *change)
{
    kube_write_queue_leave(&change->call->ticket);
    kube_write_queue_leave(&change->call->quota_ticket);
    /* The deletion of a namespace starts its purge, for which the answer need not wait. */
    if (change->follow && !change->dry_run)
        change->follow(change);
    return KUBE_STEP_NEXT;
}

/* -- Reading -- */

/* Copies the stored object into a new arena, which the next attempt uses. */
static bool take_stored(struct kube_change *change, struct kube_kv kv)
{
    arena_fini(&change->scratch);
    arena_init(&change->scratch, NULL, 0, change->call->api->attempt_bytes_max);
    arena_charge(&change->scratch, change->call->arena.account);
    change->revision = change->before = kv.mod_revision;
    change->stored = change->served = SLICE_EMPTY;
    return !kv.mod_revision || arena_dup(&change->scratch, kv.value, &change->stored) == ST_OK;
}

static void on_read(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_change *change = call->handler.change;
    enum status status = op->status;
    struct kube_kv kv = {0};
    struct slice field;
    if (status == ST_OK && engine_range_next(&call->range, &field))
        kv = kube_kv_of(field);
    if (status == ST_OK && !take_stored(change, kv))
        status = ST_NOMEM;
    engine_range_close(&call->range);
    if (kube_call_succeeded(call, status))
        kube_change_next(change);
}

enum kube_stepped kube_store_read(struct kube_change *change)
{
    change->request = (struct pb_range_request){.key = change->key};
    kube_call_range(change->call, &change->request, on_read);
    return KUBE_STEP_LEFT;
}

/* Clients of the etcd API can store objects without metadata. */
static bool complete(const struct kube_change *change, struct json_node *object)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    if (metadata && metadata->type != JSON_TYPE_OBJECT && metadata->type != JSON_TYPE_NULL)
        return kube_fail_stored(&change->call->status);
    return kube_meta_object(&change->meta, object, "metadata", &metadata);
}

enum kube_stepped kube_store_parse(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct json_node *object;
    struct error error;
    change->old = NULL;
    change->follow = NULL;
    change->reservations = NULL;
    change->charges = (struct kube_charges){0};
    /* The status and warnings of the attempt before are not those of this one. */
    if (change->tries++) {
        call->status = (struct kube_status){0};
        call->warnings.len = size_min(call->warnings.len, change->warned);
    }
    change->meta = kube_call_meta(call, &change->scratch);
    change->meta.namespace = change->namespace;
    change->meta.name = change->name;
    /* Other writes were faster each time. */
    if (change->tries > KUBE_CHANGE_TRIES_MAX)
        return kube_fail_conflict(&call->status, slice_from_text(call->kind->group),
                                  slice_from_text(call->kind->plural), change->name, NULL);
    /* None is stored. Whether the write then creates the object or fails is decided later. */
    if (!change->revision)
        return KUBE_STEP_NEXT;
    struct slice json = change->served.len ? change->served : change->stored;
    enum status read = json_tree_read(&change->scratch, json, &object, &error);
    if (read == ST_NOMEM)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (read != ST_OK || object->type != JSON_TYPE_OBJECT)
        return kube_fail_stored(&call->status);
    change->old = object;
    return complete(change, object) &&
           (!kube_conversion_concerns(call->kind) ||
            kube_conversion_to_served(call, &change->scratch, object,
                                      change->served.len ? 0 : change->revision));
}

/* -- Writing -- */

enum kube_stepped kube_store_encode(struct kube_change *change)
{
    struct kube_call *call = change->call;
    change->value = change->stored;
    /* Without another object, watches of a deletion and the answer get the stored one. */
    if (change->decision == KUBE_DECIDE_KEEP || !change->object)
        return KUBE_STEP_NEXT;
    if (kube_conversion_concerns(call->kind) &&
        !kube_conversion_to_stored(call, &change->scratch, change->object))
        return KUBE_STEP_FAIL;
    return kube_change_encode(change);
}

/* Whether the object is unchanged and wants an address or port that is in use; the next attempt
 * chooses others where the client has not named one. */
static bool lacks_reservations(struct kube_change *change, int64_t current_revision)
{
    struct kube_call *call = change->call;
    struct kube_reservation *reservation;
    if (!change->reservations || current_revision != change->revision ||
        !kube_reservations_look(change->reservations, &call->write))
        return false;
    while ((reservation = kube_reservations_taken(change->reservations)))
        if (!kube_reserve_next(call, change->reservations, reservation, change->name))
            return true;
    return false;
}

static void on_written(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_write(op);
    struct kube_change *change = call->handler.change;
    bool refused = false;
    enum status status = op->status;
    struct kube_kv current = {0};
    bool held = status == ST_OK && kube_write_succeeded(&call->write, &current);
    bool other_rule = status == ST_OK && !held && kube_write_rule_changed(&call->write);
    call->written = held;
    /* A transaction that was refused has returned the object that is stored now: the next attempt
     * need not read it. */
    if (held)
        change->revision = op->revision;
    else if (status == ST_OK && !(refused = lacks_reservations(change, current.mod_revision)) &&
             !take_stored(change, current))
        status = ST_NOMEM;
    engine_write_close(&call->write.engine);
    if (!kube_call_succeeded(call, status))
        return;
    if (held)
        kube_change_next(change);
    else if (other_rule)
        kube_custom_fail_changed(call);
    else if (refused)
        kube_call_fail(call);
    else /* another write was faster: its object is the stored one now */
        kube_change_again(change, KUBE_AGAIN_DECIDE);
}

enum kube_stepped kube_store_write(struct kube_change *change)
{
    struct kube_call *call = change->call;
    if (change->decision == KUBE_DECIDE_KEEP || change->dry_run)
        return KUBE_STEP_NEXT;
    call->write = (struct kube_write){
        .key = change->key, .value = change->value, .expected = change->revision};
    if (change->decision == KUBE_DECIDE_DELETE) {
        /* The addresses of a service become free in the same transaction. */
        if (!kube_reserve_delete(change))
            return KUBE_STEP_FAIL;
        kube_call_delete(call, on_written);
        return KUBE_STEP_LEFT;
    }
    /* Addresses that a service gets, and what is charged to quotas, are part of the transaction. */
    if ((change->reservations &&
         !kube_reserve_write(call, change->reservations, change->namespace, change->name)) ||
        (change->charges.count && !kube_charge_write(call, &change->scratch, &change->charges)))
        return KUBE_STEP_FAIL;
    kube_call_put(call, on_written);
    return KUBE_STEP_LEFT;
}
