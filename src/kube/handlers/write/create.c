#include "kube/handlers/write/create.h"

#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/admit.h"
#include "kube/handlers/write/apply.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/charge.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/handlers/write/reserve.h"
#include "kube/jobs/namespaces.h"
#include "kube/policy/admission/plugins/namespace_lifecycle.h"
#include "kube/types/defaults/defaults.h"
#include "kube/types/object/strategy.h"

#include <stdio.h>

enum { RENAMES_MAX = 8 }; /* names generated for generateName, as in Kubernetes */

/* -- The object -- */

enum kube_stepped kube_create_decode(struct kube_change *change)
{
    struct kube_call *call = change->call;
    change->operation = KUBE_ADMISSION_CREATE;
    change->arena = &call->arena;
    return kube_body_read_object(call, call->request, call->kind->kind, &change->object);
}

enum kube_stepped kube_create_complete(struct kube_change *change)
{
    struct kube_call *call = change->call;
    const struct kube_custom *custom = kube_custom_of(call->kind);
    const struct json_node *metadata = json_node_named(change->object, "metadata");
    struct slice name;
    if (custom && custom->definition->terminating)
        return json_node_text(json_node_named(metadata, "name"), &call->arena, &name) == ST_OK
                   ? kube_fail_forbidden(
                         &call->status, slice_from_text(call->kind->group),
                         slice_from_text(call->kind->plural), name,
                         "create not allowed while custom resource definition is terminating")
                   : kube_fail_engine(&call->status, ST_NOMEM);
    change->meta = kube_call_meta(call, change->arena);
    change->meta.goes_on = change->goes_on;
    if (!kube_meta_check(&change->meta, change->object) ||
        !kube_meta_begin(&change->meta, change->object))
        return KUBE_STEP_FAIL;
    metadata = json_node_named(change->object, "metadata");
    if (json_node_text(json_node_named(metadata, "name"), change->arena, &name) != ST_OK ||
        json_node_text(json_node_named(metadata, "resourceVersion"), change->arena,
                       &change->version) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    change->named = name.len;
    return KUBE_STEP_NEXT;
}

enum kube_stepped kube_create_default(struct kube_change *change)
{
    return kube_strategy_decode(&change->meta, change->object) &&
           kube_default(change->arena, change->call->kind, change->object, &change->call->status);
}

/* An apply that creates the object has set its managers. */
enum kube_stepped kube_create_own(struct kube_change *change)
{
    bool applied = change->of_update && change->patches;
    return applied || kube_apply_own_new(&change->meta, change->call, change->object);
}

/* The name that the object has by now, which may have been generated. A PUT or PATCH has the name
 * of its path. */
static bool take_name(struct kube_change *change)
{
    return change->of_update ||
           json_node_text(json_node_path(change->object, "metadata.name"), change->arena,
                          &change->name) == ST_OK ||
           kube_fail_engine(&change->call->status, ST_NOMEM);
}

enum kube_stepped kube_create_prepare(struct kube_change *change)
{
    return kube_meta_create(&change->meta, change->object) &&
           kube_strategy_create(&change->meta, change->object) && take_name(change);
}

enum kube_stepped kube_create_encode(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct json_node *object = change->object;
    if (!kube_body_zero_status(call, change->arena, object) ||
        (kube_conversion_concerns(call->kind) &&
         !kube_conversion_to_stored(call, change->arena, object)) ||
        !kube_meta_order(&change->meta, object))
        return KUBE_STEP_FAIL;
    /* The object of a dry run is not stored, so it may have a version. */
    if (change->dry_run && change->version.len &&
        !kube_meta_set_text(&change->meta, json_node_named(object, "metadata"), "resourceVersion",
                            change->version))
        return KUBE_STEP_FAIL;
    change->decision = KUBE_DECIDE_PUT;
    change->prepared = true; /* another attempt skips the steps that are marked ONCE */
    return kube_change_encode(change);
}

/* -- The namespace -- */

static bool look_at_namespace(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct slice field;
    if (call->range.op.status != ST_OK)
        return kube_call_set_engine(call, call->range.op.status);
    change->namespace_revision = 0;
    bool found = engine_range_next(&call->range, &field);
    if (!found && kube_is_default_namespace(call->path.namespace))
        return true;
    struct kube_kv kv = found ? kube_kv_of(field) : (struct kube_kv){0};
    change->namespace_revision = kv.mod_revision;
    struct kube_admission_write write =
        kube_admit_write(change, KUBE_ADMISSION_CREATE, change->object, NULL);
    return kube_namespace_accepts(&write, kv.value);
}

static void on_namespace(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    bool fine = look_at_namespace(call->handler.change);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (fine)
        kube_change_next(call->handler.change);
    else
        kube_call_fail(call);
}

enum kube_stepped kube_create_read_namespace(struct kube_change *change)
{
    struct kube_call *call = change->call;
    if (!call->path.namespace.len || !kube_admission_needs_namespace(call->api->admission))
        return KUBE_STEP_NEXT;
    if (kube_key_make(change->arena, "/registry/namespaces/", SLICE_EMPTY, call->path.namespace,
                      &change->namespace_key) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    change->request = (struct pb_range_request){.key = change->namespace_key};
    kube_call_range(call, &change->request, on_namespace);
    return KUBE_STEP_LEFT;
}

/* -- Names in use -- */

static void put_before(char message[KUBE_MESSAGE_BYTES], const char *text)
{
    size_t len = strlen(text), room = KUBE_MESSAGE_BYTES - len - 1;
    memmove(message + len, message, size_min(strlen(message), room) + 1);
    message[KUBE_MESSAGE_BYTES - 1] = '\0';
    memcpy(message, text, len);
}

/* On the worker if it is large: the object is encoded again, up to RENAMES_MAX times. */
static void rename_object(struct kube_call *call)
{
    struct kube_change *change = call->handler.change;
    if (kube_meta_rename(&change->meta, change->object) && take_name(change) &&
        kube_change_encode(change))
        kube_change_again(change, KUBE_AGAIN_READ);
    else
        kube_call_fail(call);
}

static void exists(struct kube_change *change)
{
    struct kube_call *call = change->call;
    bool made_up = json_node_path(change->object, "metadata.generateName");
    /* A PUT or apply found no object and meant to create it, but another client was faster. */
    if (change->of_update) {
        kube_change_as_update(change);
        return;
    }
    /* The client has left the name to the server, which generates another. */
    if (made_up && !change->named && change->renamed++ < RENAMES_MAX) {
        kube_call_work(call, change->encoded.len, rename_object);
        return;
    }
    kube_fail_exists(&call->status, slice_from_text(call->kind->group),
                     slice_from_text(call->kind->plural), change->name);
    if (change->deleting)
        put_before(call->status.message, "object is being deleted: ");
    if (made_up) {
        size_t len = strlen(call->status.message);
        snprintf(call->status.message + len, sizeof(call->status.message) - len,
                 ", the server was not able to generate a unique name for the object");
        call->status.retry_after_s = 1;
    }
    kube_call_fail(call);
}

static bool is_deleting(struct slice value)
{
    struct kube_object object;
    struct slice at;
    return kube_object_parse(value, &object) == ST_OK &&
           kube_object_field(&object, SLICE_LITERAL("metadata.deletionTimestamp"), &at) && at.len;
}

static void on_looked(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_change *change = call->handler.change;
    enum status status = op->status;
    bool taken = status == ST_OK && call->range.count;
    struct slice field;
    if (taken && engine_range_next(&call->range, &field))
        change->deleting = is_deleting(kube_kv_of(field).value);
    engine_range_close(&call->range);
    if (!kube_call_succeeded(call, status))
        return;
    if (taken)
        exists(change);
    else
        kube_change_answer(change);
}

/* A PUT or PATCH has its key already. */
static bool make_key(struct kube_change *change)
{
    struct kube_call *call = change->call;
    return change->of_update ||
           kube_key_make(change->arena, call->kind->storage_prefix, call->path.namespace,
                         change->name, &change->key) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

enum kube_stepped kube_create_look(struct kube_change *change)
{
    if (!change->dry_run)
        return KUBE_STEP_NEXT;
    if (!make_key(change))
        return KUBE_STEP_FAIL;
    change->request = (struct pb_range_request){.key = change->key};
    kube_call_range(change->call, &change->request, on_looked);
    return KUBE_STEP_LEFT;
}

/* -- Reservations in use -- */

static void settle_reservations(struct kube_change *change);

/* Whether the service that was read has what its reservation says. */
static bool is_reserved(struct kube_change *change, const struct kube_reservation *reservation)
{
    struct json_node *service;
    struct error error;
    struct slice field, copy;
    if (!engine_range_next(&change->call->range, &field))
        return false;
    if (arena_dup(change->arena, kube_kv_of(field).value, &copy) != ST_OK ||
        json_tree_read(change->arena, copy, &service, &error) != ST_OK)
        return true;
    return kube_reservations_has(change->reservations, reservation, service);
}

static void on_owner(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_change *change = call->handler.change;
    struct kube_reservation *reservation = kube_reservations_taken(change->reservations);
    enum status status = op->status;
    bool settled = status == ST_OK;
    /* A reservation without an owner is left over from a service that is gone. */
    if (settled && is_reserved(change, reservation))
        settled = kube_reserve_next(call, change->reservations, reservation, change->name);
    else if (settled)
        kube_reservations_forget(reservation);
    engine_range_close(&call->range);
    if (!kube_call_succeeded(call, status))
        return;
    if (settled)
        settle_reservations(change);
    else
        kube_call_fail(call);
}

static void encode_again(struct kube_call *call)
{
    struct kube_change *change = call->handler.change;
    if (kube_change_encode(change))
        kube_change_again(change, KUBE_AGAIN_READ);
    else
        kube_call_fail(call);
}

/* Reads the owners of all reservations that are in use, one after the other, and then tries again.
 */
static void settle_reservations(struct kube_change *change)
{
    struct kube_call *call = change->call;
    const struct kube_reservation *reservation = kube_reservations_taken(change->reservations);
    if (!reservation) {
        kube_call_work(call, change->encoded.len, encode_again);
        return;
    }
    change->request = (struct pb_range_request){0};
    if (kube_key_make(change->arena, call->kind->storage_prefix, reservation->owner_namespace,
                      reservation->owner_name, &change->request.key) == ST_OK)
        kube_call_range(call, &change->request, on_owner);
    else
        kube_call_fail_engine(call, ST_NOMEM);
}

/* -- Writing -- */

static void on_put(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_write(op);
    struct kube_change *change = call->handler.change;
    enum status status = op->status;
    struct kube_kv current = {0};
    bool held = status == ST_OK && kube_write_succeeded(&call->write, &current);
    bool taken = current.mod_revision;
    bool other_rule = status == ST_OK && !held && kube_write_rule_changed(&call->write);
    bool contended = status == ST_OK && !held && !taken && change->reservations &&
                     kube_reservations_look(change->reservations, &call->write);
    change->deleting = taken && is_deleting(current.value);
    engine_write_close(&call->write.engine);
    call->written = held;
    if (held)
        change->revision = op->revision;
    if (!kube_call_succeeded(call, status))
        return;
    if (held)
        kube_change_next(change);
    else if (taken)
        exists(change);
    else if (other_rule)
        kube_custom_fail_changed(call);
    else if (change->lost++ == KUBE_CHANGE_TRIES_MAX)
        kube_call_fail_engine(call, ST_TIMEOUT);
    else if (contended) /* another service has an address or port that this one wants */
        settle_reservations(change);
    else /* the namespace has changed, or a quota */
        kube_change_again(change, KUBE_AGAIN_READ);
}

enum kube_stepped kube_create_store(struct kube_change *change)
{
    struct kube_call *call = change->call;
    if (!make_key(change))
        return KUBE_STEP_FAIL;
    call->write = (struct kube_write){.key = change->key,
                                      .value = change->value,
                                      .guard = change->namespace_key,
                                      .guard_expected = change->namespace_revision};
    if ((change->reservations &&
         !kube_reserve_write(call, change->reservations, call->path.namespace, change->name)) ||
        (change->charges.count && !kube_charge_write(call, change->arena, &change->charges)))
        return KUBE_STEP_FAIL;
    kube_call_put(call, on_put);
    return KUBE_STEP_LEFT;
}

/* -- Answering -- */

static void make_answer(struct kube_call *call)
{
    struct kube_change *change = call->handler.change;
    struct slice json = change->value;
    if (change->revision ? kube_call_object(call, json, change->revision, &json)
                         : kube_conversion_bytes(call, json, 0, &json))
        kube_call_respond(call, 201, json);
    else
        kube_call_fail(call);
}

/* Without a revision it is a dry run. */
enum kube_stepped kube_create_answer(struct kube_change *change)
{
    struct kube_call *call = change->call;
    kube_call_work(call, kube_call_answer_work(call, change->value.len, change->revision),
                   make_answer);
    return KUBE_STEP_LEFT;
}
