/*
 * POST: a new object in a namespace that exists and is not being deleted. The namespace is read
 * first, and the write has its revision as a condition, so that nothing appears in a namespace that
 * is being emptied. Then come the facts for admission (kube/handlers/write/admit.h).
 *
 *     complete ─► read the namespace ─► facts ─► prepare once, check ─► put, if the key is free
 *                     ▲                                                  │ the namespace has changed,
 *                     └──────────────────────────────────────────────────┘ or the name is in use
 */
#include "kube/call/call.h"
#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/admit.h"
#include "kube/handlers/write/apply.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/builtin_rules.h"
#include "kube/handlers/write/certificate_request.h"
#include "kube/handlers/write/change.h"
#include "kube/handlers/write/charge.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/handlers/write/definition.h"
#include "kube/handlers/write/reserve.h"
#include "kube/handlers/write/subresource.h"
#include "kube/handlers/write/without_effect.h"
#include "kube/handlers/write/write.h"
#include "kube/jobs/namespaces.h"
#include "kube/policy/admission/plugins/namespace_lifecycle.h"
#include "kube/types/defaults/defaults.h"
#include "kube/types/object/strategy.h"

#include <stdio.h>

enum { TRIES_MAX = 8 }; /* names generated for generateName, as in Kubernetes */

struct create {
    struct json_node *object;
    struct arena *arena;        /* of the object */
    struct kube_change *change; /* which creates the object; NULL: a POST */
    struct kube_meta meta;
    struct kube_admission_write admitted;
    bool prepared;
    unsigned needs; /* facts: kube/handlers/write/admit.h */
    struct slice name;
    struct buf encoded;
    struct slice guard;
    int64_t guard_revision;
    unsigned renamed, guarded;
    bool named;           /* by the client: no other name is generated */
    bool deleting;        /* the existing object of that name is being deleted */
    int64_t revision;     /* of the answer; 0: a dry run */
    struct slice version; /* given by the client; the answer of a dry run repeats it */
    struct kube_reservations *reservations; /* of a service; NULL: none */
    bool contended;                         /* a reservation is in use */
};

static void on_free(struct kube_call *call)
{
    struct create *create = call->handler;
    kube_admit_release(call);
    buf_fini(&create->encoded);
    if (!create->change)
        return;
    call->handler = create->change;
    kube_change_free(call);
}

/* -- Preparing -- */

static bool encode(struct kube_call *call, struct create *create)
{
    if (json_node_text(json_node_path(create->object, "metadata.name"), create->arena,
                       &create->name) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    enum status status = kube_object_encode(create->object, &create->encoded);
    return status == ST_OK || kube_fail_engine(&call->status, status);
}

/* The rules of definitions and built-in kinds, and the schema of a custom resource. */
static bool check(struct kube_call *call, struct create *create)
{
    struct slice name;
    if (json_node_text(json_node_path(create->object, "metadata.name"), create->arena, &name) !=
        ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    return kube_definition_create(call, &create->meta, create->object, name) &&
           kube_custom_validate(call, create->arena, create->object, NULL, name) &&
           kube_builtin_validate(call, create->arena, create->object, NULL, name) &&
           kube_without_effect(call, create->object, NULL, name);
}

/* The name and version that the client gives. */
static bool read_identity(struct kube_call *call, struct create *create)
{
    const struct json_node *metadata = json_node_named(create->object, "metadata");
    struct slice name;
    if (json_node_text(json_node_named(metadata, "name"), create->arena, &name) != ST_OK ||
        json_node_text(json_node_named(metadata, "resourceVersion"), create->arena,
                       &create->version) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    create->named = name.len;
    return true;
}

/* The object of a dry run is not stored, so it may have a version. */
static bool repeat_version(struct kube_call *call, struct create *create)
{
    struct json_node *metadata = json_node_named(create->object, "metadata");
    return !call->query.dry_run || !create->version.len ||
           kube_meta_set_text(&create->meta, metadata, "resourceVersion", create->version);
}

/* What a decoder does: the object is complete when it is admitted. */
static bool complete(struct kube_call *call, struct create *create)
{
    struct json_node *object = create->object;
    create->meta = kube_call_meta(call, create->arena);
    create->meta.goes_on = kube_builtin_validates(call);
    return kube_meta_check(&create->meta, object) && read_identity(call, create) &&
           kube_custom_default(call, create->arena, object) &&
           kube_default(create->arena, call->kind, object, &call->status);
}

static bool prepare(struct kube_call *call, struct create *create)
{
    struct json_node *object = create->object;
    create->meta.random = kube_call_random(call);
    return kube_admission_admit(call->api->admission, &create->admitted) &&
           kube_meta_create(&create->meta, object) && kube_strategy_create(&create->meta, object) &&
           kube_certificate_create(call, &create->meta, object) && check(call, create) &&
           kube_reserve(call, &create->meta, object, NULL, &create->reservations) &&
           kube_body_zero_status(call, create->arena, object) &&
           kube_conversion_to_stored(call, create->arena, object) &&
           kube_meta_order(&create->meta, object) && repeat_version(call, create) &&
           encode(call, create);
}

/* -- Writing -- */

static void read_namespace(struct kube_call *call);

static void make_answer(struct kube_call *call)
{
    struct create *create = call->handler;
    struct slice json = buf_slice(&create->encoded);
    if (create->revision ? kube_call_object(call, json, create->revision, &json)
                         : kube_conversion_bytes(call, json, 0, &json))
        kube_call_respond(call, 201, json);
    else
        kube_call_fail(call);
}

static void respond(struct kube_call *call, int64_t revision)
{
    struct create *create = call->handler;
    create->revision = revision;
    kube_call_work(call, kube_call_answer_work(call, create->encoded.len, revision), make_answer);
}

static void put_before(char message[KUBE_MESSAGE_BYTES], const char *text)
{
    size_t len = strlen(text), room = KUBE_MESSAGE_BYTES - len - 1;
    memmove(message + len, message, size_min(strlen(message), room) + 1);
    message[KUBE_MESSAGE_BYTES - 1] = '\0';
    memcpy(message, text, len);
}

/* On the worker if it is large: the object is encoded again, up to TRIES_MAX times. */
static void rename_object(struct kube_call *call)
{
    struct create *create = call->handler;
    create->meta.random = kube_call_random(call);
    if (kube_meta_rename(&create->meta, create->object) && encode(call, create))
        read_namespace(call);
    else
        kube_call_fail(call);
}

static void exists(struct kube_call *call)
{
    struct create *create = call->handler;
    struct slice group = slice_from_text(call->kind->group);
    struct slice plural = slice_from_text(call->kind->plural);
    bool made_up = json_node_path(create->object, "metadata.generateName");
    if (create->change) {
        buf_fini(&create->encoded);
        kube_change_again(create->change);
        return;
    }
    if (made_up && !create->named && create->renamed++ < TRIES_MAX) {
        kube_call_work(call, create->encoded.len, rename_object);
        return;
    }
    kube_fail_exists(&call->status, group, plural, create->name);
    if (create->deleting)
        put_before(call->status.message, "object is being deleted: ");
    if (made_up) {
        size_t len = strlen(call->status.message);
        snprintf(call->status.message + len, sizeof(call->status.message) - len,
                 ", the server was not able to generate a unique name for the object");
        call->status.retry_after_s = 1;
    }
    kube_call_fail(call);
}

/* -- Claims -- */

static void settle_reservations(struct kube_call *call);

static bool settle(struct kube_call *call, struct kube_reservation *reservation, bool owned)
{
    struct create *create = call->handler;
    if (owned)
        return kube_reserve_next(call, create->reservations, reservation, create->name);
    kube_reservations_forget(reservation);
    return true;
}

/* Whether the service that was read has what its reservation says. */
static bool has_reservation(struct kube_call *call, const struct kube_reservation *reservation)
{
    struct create *create = call->handler;
    struct json_node *service;
    struct error error;
    struct slice field, copy;
    if (!engine_range_next(&call->range, &field))
        return false;
    if (arena_dup(create->arena, kube_kv_of(field).value, &copy) != ST_OK ||
        json_tree_read(create->arena, copy, &service, &error) != ST_OK)
        return true;
    return kube_reservations_has(create->reservations, reservation, service);
}

static void on_owner(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct create *create = call->handler;
    struct kube_reservation *reservation = kube_reservations_taken(create->reservations);
    enum status status = op->status;
    bool settled = status == ST_OK && settle(call, reservation, has_reservation(call, reservation));
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (status != ST_OK)
        kube_call_fail_engine(call, status);
    else if (settled)
        settle_reservations(call);
    else
        kube_call_fail(call);
}

static void write_again(struct kube_call *call)
{
    if (encode(call, call->handler))
        read_namespace(call);
    else
        kube_call_fail(call);
}

/* Reads the owners of all reservations that are in use one after the other, then tries again. */
static void settle_reservations(struct kube_call *call)
{
    struct create *create = call->handler;
    const struct kube_reservation *reservation = kube_reservations_taken(create->reservations);
    struct pb_range_request *request = arena_calloc(create->arena, 1, sizeof(*request));
    if (!request) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    if (!reservation) {
        kube_call_work(call, create->encoded.len, write_again);
        return;
    }
    if (kube_key_make(create->arena, call->kind->storage_prefix, reservation->owner_namespace,
                      reservation->owner_name, &request->key) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    kube_call_range(call, request, on_owner);
}

/* The name is in use, or the definition or the namespace has changed since it was read. */
static void refused(struct kube_call *call, bool taken, bool other_rule)
{
    struct create *create = call->handler;
    if (taken)
        exists(call);
    else if (other_rule)
        kube_custom_fail_changed(call);
    else if (create->guarded++ == KUBE_CHANGE_TRIES_MAX)
        kube_call_fail_engine(call, ST_TIMEOUT);
    else if (create->contended)
        settle_reservations(call);
    else
        read_namespace(call);
}

static bool is_deleting(struct slice value)
{
    struct kube_object object;
    struct slice at;
    return kube_object_parse(value, &object) == ST_OK &&
           kube_object_field(&object, SLICE_LITERAL("metadata.deletionTimestamp"), &at) && at.len;
}

static void on_put(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_write(op);
    enum status status = op->status;
    int64_t revision = op->revision;
    struct kube_kv current = {0};
    bool held = status == ST_OK && kube_write_succeeded(&call->write, &current);
    bool taken = current.mod_revision;
    struct create *create = call->handler;
    create->contended = status == ST_OK && !held && !taken && create->reservations &&
                        kube_reservations_look(create->reservations, &call->write);
    bool other_rule = status == ST_OK && !held && kube_write_rule_changed(&call->write);
    create->deleting = taken && is_deleting(current.value);
    engine_write_close(&call->write.engine);
    call->written = held;
    if (held)
        kube_charge_leave(call);
    if (!kube_call_done(call))
        return;
    if (status != ST_OK)
        kube_call_fail_engine(call, status);
    else if (held)
        respond(call, revision);
    else
        refused(call, taken, other_rule);
}

static void on_looked(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    enum status status = op->status;
    bool taken = status == ST_OK && call->range.count;
    struct slice field;
    if (taken && engine_range_next(&call->range, &field))
        ((struct create *)call->handler)->deleting = is_deleting(kube_kv_of(field).value);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (status != ST_OK)
        kube_call_fail_engine(call, status);
    else if (taken)
        exists(call);
    else
        respond(call, 0);
}

static void gather(struct kube_call *call);

static void put(struct kube_call *call)
{
    struct create *create = call->handler;
    const struct kube_charges charges = {create->admitted.companions,
                                         create->admitted.companion_count};
    struct slice key;
    if (charges.count && !call->query.dry_run &&
        (kube_call_defers(call, put) || !kube_charge_enter(call, &charges, gather)))
        return;
    if (kube_change_is_guarded(call)) {
        if (kube_call_defers(call, put) ||
            !kube_change_guard(call, buf_slice(&create->encoded), SLICE_EMPTY, put))
            return;
    }
    struct pb_range_request *request = arena_calloc(create->arena, 1, sizeof(*request));
    if (!request || kube_key_make(create->arena, call->kind->storage_prefix, call->path.namespace,
                                  create->name, &key) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    if (call->query.dry_run) {
        request->key = key;
        kube_call_range(call, request, on_looked);
        return;
    }
    call->write = (struct kube_write){.key = key,
                                      .value = buf_slice(&create->encoded),
                                      .guard = create->guard,
                                      .guard_expected = create->guard_revision};
    if (kube_reserve_write(call, create->reservations, call->path.namespace, create->name) &&
        kube_charge_write(call, create->arena, &charges))
        kube_call_put(call, on_put);
    else
        kube_call_fail(call);
}

/* -- The namespace and the facts -- */

/* An object that was made after an allocation failed is not written. */
static bool is_whole(struct kube_call *call, const struct create *create, bool fine)
{
    if (!arena_ran_out(create->arena))
        return fine;
    if (fine || !kube_code_is_no_memory(kube_status_code(&call->status)))
        kube_fail_engine(&call->status, ST_NOMEM);
    return false;
}

/* The facts may be newer than those of the previous attempt. */
static void admit(struct kube_call *call)
{
    struct create *create = call->handler;
    create->admitted =
        kube_admit_write(call, create->arena, KUBE_ADMISSION_CREATE, create->object, NULL);
    bool fine = create->prepared || prepare(call, create);
    create->prepared = true;
    fine = fine && kube_admit_creates(call) &&
           kube_admission_check(call->api->admission, &create->admitted);
    if (is_whole(call, create, fine))
        put(call);
    else
        kube_call_fail(call);
}

static void on_facts(struct kube_call *call)
{
    const struct create *create = call->handler;
    kube_call_work(call, create->prepared ? 0 : call->request->body.len, admit);
}

static void gather(struct kube_call *call)
{
    struct create *create = call->handler;
    if (kube_call_defers(call, gather))
        return;
    kube_admit_gather(call, create->needs, create->object, SLICE_EMPTY, on_facts);
}

static bool look_at_namespace(struct kube_call *call)
{
    struct create *create = call->handler;
    struct slice field;
    if (call->range.op.status != ST_OK)
        return kube_call_set_engine(call, call->range.op.status);
    create->guard_revision = 0;
    bool found = engine_range_next(&call->range, &field);
    if (!found && kube_is_default_namespace(call->path.namespace))
        return true;
    struct kube_kv kv = found ? kube_kv_of(field) : (struct kube_kv){0};
    create->guard_revision = kv.mod_revision;
    struct kube_admission_write write =
        kube_admit_write(call, create->arena, KUBE_ADMISSION_CREATE, create->object, NULL);
    return kube_namespace_accepts(&write, kv.value);
}

static void on_namespace(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    bool fine = look_at_namespace(call);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (fine)
        gather(call);
    else
        kube_call_fail(call);
}

static void read_namespace(struct kube_call *call)
{
    struct create *create = call->handler;
    struct pb_range_request *request;
    if (!call->path.namespace.len || !kube_admission_needs_namespace(call->api->admission)) {
        gather(call);
        return;
    }
    request = arena_calloc(create->arena, 1, sizeof(*request));
    if (!request || kube_key_make(create->arena, "/registry/namespaces/", SLICE_EMPTY,
                                  call->path.namespace, &create->guard) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    request->key = create->guard;
    kube_call_range(call, request, on_namespace);
}

static void fail_terminating_definition(struct kube_call *call, struct json_node *object)
{
    struct slice name;
    if (json_node_text(json_node_path(object, "metadata.name"), &call->arena, &name) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    kube_fail_forbidden(&call->status, slice_from_text(call->kind->group),
                        slice_from_text(call->kind->plural), name,
                        "create not allowed while custom resource definition is terminating");
    kube_call_fail(call);
}

static void begin(struct kube_call *call, struct arena *arena, struct json_node *object,
                  struct kube_change *change)
{
    struct create *create = arena_calloc(arena, 1, sizeof(*create));
    struct kube_custom *custom = kube_custom_of(call->kind);
    if (!create) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    if (custom && custom->definition->terminating) {
        fail_terminating_definition(call, object);
        return;
    }
    *create = (struct create){.object = object,
                              .arena = arena,
                              .change = change,
                              .needs = kube_admit_needs(call, KUBE_ADMISSION_CREATE)};
    call->handler = create;
    call->on_free = on_free;
    if (is_whole(call, create, complete(call, create)))
        read_namespace(call);
    else
        kube_call_fail(call);
}

void kube_create_for(struct kube_change *change, struct json_node *object)
{
    begin(change->call, &change->scratch, object, change);
}

void kube_create(struct kube_call *call, const struct http_request *request)
{
    struct json_node *object;
    if (!kube_body_read_object(call, request, call->kind->kind, &object)) {
        kube_call_fail(call);
        return;
    }
    kube_apply_disown(object);
    begin(call, &call->arena, object, NULL);
}
