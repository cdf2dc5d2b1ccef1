#include "kube/handlers/write/change.h"

#include "base/clock.h"
#include "kube/call/call.h"
#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/admit.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/handlers/write/reserve.h"
#include "kube/policy/access/access.h"
#include "kube/policy/access/guard.h"
#include "kube/policy/access/identity.h"
#include "kube/policy/access/rbac/rbac_fetch.h"

struct kube_meta kube_call_meta(struct kube_call *call, struct arena *arena)
{
    return (struct kube_meta){
        .arena = arena,
        .kind = call->kind,
        .namespace = call->path.namespace,
        .name = call->path.name,
        .now_s = clock_real_ns(call->api->clock) / NS_PER_S,
        .random = kube_call_random(call),
        .dry_run = call->query.dry_run,
        .status = &call->status,
    };
}

void kube_change_fini(struct kube_change *change)
{
    arena_fini(&change->scratch);
    buf_fini(&change->encoded);
    buf_fini(&change->key_bytes);
    change->scratch = (struct arena){0};
}

/* Initial capacity, so that an object of some kilobytes is not reallocated several times. */
enum { KUBE_OBJECT_BYTES_USUAL = 4096 };

enum status kube_object_encode(const struct json_node *object, struct buf *to)
{
    buf_reset(to, SIZE_MAX);
    TRY(buf_reserve(to, KUBE_OBJECT_BYTES_USUAL));
    TRY(json_tree_write(object, to));
    return to->len <= KUBE_OBJECT_BYTES_MAX ? ST_OK : ST_REQUEST_TOO_LARGE;
}

/* Copies the stored object into a new arena, which the next attempt uses. */
static bool take_stored(struct kube_change *change, struct kube_kv kv)
{
    arena_fini(&change->scratch);
    arena_init(&change->scratch, NULL, 0, change->call->api->attempt_bytes_max);
    arena_charge(&change->scratch, change->call->arena.account);
    change->revision = change->before = kv.mod_revision;
    change->stored = SLICE_EMPTY;
    return !kv.mod_revision || arena_dup(&change->scratch, kv.value, &change->stored) == ST_OK;
}

static void attempt(struct kube_change *change);

static void finish_call(struct kube_call *call);

/* The next change of this object need not wait until the answer is sent. */
static void finish(struct kube_change *change)
{
    if (kube_call_defers(change->call, finish_call))
        return;
    kube_write_queue_leave(&change->call->ticket);
    kube_charge_leave(change->call);
    if (change->follow && !change->dry_run)
        change->follow(change);
    change->done(change);
}

static void finish_call(struct kube_call *call)
{
    finish(call->handler);
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
    struct kube_change *change = call->handler;
    bool refused = false;
    enum status status = op->status;
    struct kube_kv current = {0};
    bool held = status == ST_OK && kube_write_succeeded(&call->write, &current);
    bool other_rule = status == ST_OK && !held && kube_write_rule_changed(&call->write);
    call->written = held;
    if (held)
        change->revision = op->revision;
    else if (status == ST_OK && !(refused = lacks_reservations(change, current.mod_revision)) &&
             !take_stored(change, current))
        status = ST_NOMEM;
    engine_write_close(&call->write.engine);
    if (!kube_call_done(call))
        return;
    if (status != ST_OK)
        kube_call_fail_engine(call, status);
    else if (held)
        finish(change);
    else if (other_rule)
        kube_custom_fail_changed(call);
    else if (refused)
        kube_call_fail(call);
    else
        attempt(change);
}

static void write_call(struct kube_call *call);

static void attempt_call(struct kube_call *call)
{
    attempt(call->handler);
}

static void write_it(struct kube_change *change)
{
    struct kube_call *call = change->call;
    if (change->charges.count && (kube_call_defers(call, write_call) ||
                                  !kube_charge_enter(call, &change->charges, attempt_call)))
        return;
    call->write = (struct kube_write){
        .key = change->key, .value = change->value, .expected = change->revision};
    bool puts = change->decision == KUBE_DECIDE_PUT;
    if (!(puts ? kube_reserve_write(call, change->reservations, change->namespace, change->name) &&
                     kube_charge_write(call, &change->scratch, &change->charges)
               : kube_reserve_delete(call, &change->scratch, change->stored)))
        kube_call_fail(call);
    else if (puts)
        kube_call_put(call, on_written);
    else
        kube_call_delete(call, on_written);
}

static void write_call(struct kube_call *call)
{
    write_it(call->handler);
}

/* Removes the status and warnings of the previous attempt. */
static void forget_attempt(struct kube_change *change)
{
    struct kube_call *call = change->call;
    call->status = (struct kube_status){0};
    call->warnings.len = size_min(call->warnings.len, change->warned);
}

/* Clients of the etcd API can store objects without metadata. */
static bool complete(const struct kube_change *change, struct json_node *object)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    if (metadata && metadata->type != JSON_TYPE_OBJECT && metadata->type != JSON_TYPE_NULL)
        return kube_fail_stored(&change->call->status);
    return kube_meta_object(&change->meta, object, "metadata", &metadata);
}

static bool read_stored(struct kube_change *change, struct json_node **ret_stored)
{
    struct kube_status *status = &change->call->status;
    struct json_node *object;
    struct error error;
    *ret_stored = NULL;
    if (!change->revision)
        return true;
    enum status read = json_tree_read(&change->scratch, change->stored, &object, &error);
    if (read == ST_NOMEM)
        return kube_fail_engine(status, ST_NOMEM);
    if (read != ST_OK || object->type != JSON_TYPE_OBJECT)
        return kube_fail_stored(status);
    *ret_stored = object;
    return complete(change, object) &&
           kube_conversion_to_served(change->call, &change->scratch, object, change->revision);
}

static enum kube_decision decide(struct kube_change *change, struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    struct json_node *stored;
    change->follow = NULL;
    change->reservations = NULL;
    change->charges = (struct kube_charges){0};
    if (change->tries++)
        forget_attempt(change);
    change->meta = kube_call_meta(call, &change->scratch);
    change->meta.namespace = change->namespace;
    change->meta.name = change->name;
    if (change->tries > KUBE_CHANGE_TRIES_MAX) {
        kube_fail_conflict(&call->status, slice_from_text(call->kind->group),
                           slice_from_text(call->kind->plural), change->name, NULL);
        return KUBE_DECIDE_FAIL;
    }
    return read_stored(change, &stored) ? change->decide(change, stored, ret_object)
                                        : KUBE_DECIDE_FAIL;
}

/* A decision made after an allocation failed is neither written nor answered, unless it reports
 * that failure. */
static void check_memory(struct kube_change *change)
{
    struct kube_status *status = &change->call->status;
    if (!arena_ran_out(&change->scratch) && !arena_ran_out(&change->call->arena))
        return;
    if (change->decision != KUBE_DECIDE_FAIL || !kube_code_is_no_memory(kube_status_code(status)))
        kube_fail_engine(status, ST_NOMEM);
    change->decision = KUBE_DECIDE_FAIL;
}

static bool encode(struct kube_change *change, struct json_node *object)
{
    struct kube_call *call = change->call;
    change->value = change->stored;
    if (change->decision == KUBE_DECIDE_KEEP || !object)
        return true;
    if (!kube_conversion_to_stored(call, &change->scratch, object))
        return false;
    enum status status = kube_object_encode(object, &change->encoded);
    change->value = buf_slice(&change->encoded);
    if (arena_ran_out(&change->scratch))
        status = ST_NOMEM;
    return status == ST_OK || kube_fail_engine(&call->status, status);
}

bool kube_change_is_guarded(const struct kube_call *call)
{
    bool writes = call->verb == KUBE_VERB_POST || call->verb == KUBE_VERB_PUT ||
                  call->verb == KUBE_VERB_PATCH;
    return call->identity && writes &&
           kube_guard_applies(kube_identity_user(call->identity), call->kind,
                              call->path.subresource);
}

/* What is read for the check of an object (kube/policy/access/guard.h), in the arena of its call.
 */
struct kube_guard {
    struct kube_call *call;
    void (*again)(struct kube_call *call);
    struct kube_rbac_wait wait;
    bool current; /* roles and bindings are as new as the store was when the check began */
    /* Another object that the check needs, once it was read. */
    struct pb_range_request request;
    struct slice other;
    bool has_other;
    /* What the user has; the role of the binding; and both again if they have changed meanwhile. */
    struct kube_rbac_fetch *fetches[4];
    size_t count;
};

/* The next attempt begins with newer roles and bindings. */
static void free_guard(struct kube_call *call)
{
    struct kube_guard *guard = call->guard;
    while (guard->count)
        kube_rbac_fetch_free(guard->fetches[--guard->count]);
    guard->current = guard->has_other = false;
}

static void on_current(struct kube_rbac_wait *wait)
{
    struct kube_guard *guard = CONTAINER_OF(wait, struct kube_guard, wait);
    struct kube_call *call = guard->call;
    enum status status = wait->status;
    if (!kube_call_done(call))
        return;
    guard->current = true;
    if (status == ST_OK)
        guard->again(call);
    else
        kube_call_fail_engine(call, status);
}

static void on_fetched(void *ctx)
{
    struct kube_guard *guard = ctx;
    struct kube_call *call = guard->call;
    enum status status = kube_rbac_fetch_status(guard->fetches[guard->count - 1]);
    if (status != ST_OK || !call->exchange)
        free_guard(call);
    if (!kube_call_done(call))
        return;
    if (status == ST_OK)
        guard->again(call);
    else
        kube_call_fail_engine(call, status);
}

static void on_other(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_guard *guard = call->guard;
    enum status status = op->status;
    struct slice field;
    guard->other = SLICE_EMPTY;
    if (status == ST_OK && engine_range_next(&call->range, &field))
        status = arena_dup(&call->arena, kube_kv_of(field).value, &guard->other);
    engine_range_close(&call->range);
    guard->has_other = true;
    if (!kube_call_done(call))
        return;
    if (status == ST_OK)
        guard->again(call);
    else
        kube_call_fail_engine(call, status);
}

static void fetch_rights(struct kube_call *call)
{
    struct kube_rbac *rbac = call->api->access->rbac;
    struct kube_guard *guard = call->guard;
    if (guard->count == COUNT_OF(guard->fetches)) {
        free_guard(call);
        kube_call_fail_engine(call, ST_AGAIN);
        return;
    }
    kube_call_hold(call);
    guard->fetches[guard->count++] =
        kube_rbac_fetch_new(rbac, call->arena.account, &call->exchange, on_fetched, guard);
}

bool kube_change_guard(struct kube_call *call, struct slice value, struct slice old,
                       void (*again)(struct kube_call *call))
{
    struct kube_guard *guard = call->guard;
    if (!guard)
        guard = call->guard = arena_calloc(&call->arena, 1, sizeof(*guard));
    if (!guard) {
        kube_call_fail_engine(call, ST_NOMEM);
        return false;
    }
    guard->call = call;
    guard->again = again;
    /* A role that was acknowledged before this request counts, and one that was removed does not.
     */
    if (!guard->current) {
        kube_call_hold(call);
        guard->wait = (struct kube_rbac_wait){.current = true, .go = on_current};
        kube_rbac_wait(call->api->access->rbac, &guard->wait);
        return false;
    }
    static const char *const verbs[] = {
        [KUBE_VERB_POST] = "create", [KUBE_VERB_PUT] = "update", [KUBE_VERB_PATCH] = "patch"};
    struct kube_guarded_write write = {
        .rbac = call->api->access->rbac,
        .owner = guard,
        .user = kube_identity_user(call->identity),
        .kind = call->kind,
        .verb = slice_from_text(verbs[call->verb]),
        .namespace = call->path.namespace,
        .name = call->path.name,
        .subresource = call->path.subresource,
        .kinds = kube_registry_kinds(call->api->registry),
        .policy = guard->other,
        .arena = &call->arena,
        .status = &call->status,
    };
    if (!guard->has_other) {
        if (kube_guard_needs(&write, value, &guard->request.key) != ST_OK) {
            kube_call_fail_engine(call, ST_NOMEM);
            return false;
        }
        if (guard->request.key.len) {
            kube_call_range(call, &guard->request, on_other);
            return false;
        }
    }
    bool fine = kube_guard_check(&write, value, old);
    if (!fine && kube_rbac_lacks(write.rbac)) {
        fetch_rights(call);
        return false;
    }
    free_guard(call);
    if (!fine)
        kube_call_fail(call);
    return fine;
}

/* Writes a role or binding, on the thread of the API. */
static void write_checked(struct kube_call *call)
{
    struct kube_change *change = call->handler;
    if (kube_call_defers(call, write_checked))
        return;
    if (!kube_change_guard(call, change->value, change->stored, write_checked))
        return;
    if (change->dry_run)
        finish(change);
    else
        write_it(change);
}

static void try_once(struct kube_call *call)
{
    struct kube_change *change = call->handler;
    struct json_node *object = NULL;
    change->decision = decide(change, &object);
    check_memory(change);
    if (change->decision == KUBE_DECIDE_CREATE)
        kube_create_for(change, object);
    else if (change->decision == KUBE_DECIDE_FAIL || !encode(change, object))
        kube_call_fail(change->call);
    else if (change->decision == KUBE_DECIDE_PUT && kube_change_is_guarded(call))
        write_checked(call);
    else if (change->decision == KUBE_DECIDE_KEEP || change->dry_run)
        finish(change);
    else
        write_it(change);
}

static void on_facts(struct kube_call *call)
{
    const struct kube_change *change = call->handler;
    kube_call_work(call, change->stored.len + call->request->body.len, try_once);
}

static void attempt(struct kube_change *change)
{
    struct kube_call *call = change->call;
    kube_count_total(&call->api->counter, KUBE_TOTAL_ATTEMPTS, 1);
    kube_admit_gather(call, change->needs, NULL, change->stored, on_facts);
}

static void on_read(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_change *change = call->handler;
    enum status status = op->status;
    struct kube_kv kv = {0};
    struct slice field;
    if (status == ST_OK && engine_range_next(&call->range, &field))
        kv = kube_kv_of(field);
    if (status == ST_OK && !take_stored(change, kv))
        status = ST_NOMEM;
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (status == ST_OK)
        attempt(change);
    else
        kube_call_fail_engine(call, status);
}

void kube_change_free(struct kube_call *call)
{
    struct kube_change *change = call->handler;
    kube_admit_release(call);
    if (change->on_free)
        change->on_free(change);
    kube_change_fini(change);
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

void kube_change_again(struct kube_change *change)
{
    struct kube_call *call = change->call;
    call->handler = change;
    call->on_free = kube_change_free;
    kube_call_range(call, &change->request, on_read);
}

static void on_turn(struct kube_write_ticket *turn)
{
    struct kube_call *call = CONTAINER_OF(turn, struct kube_call, ticket);
    kube_change_again(call->handler);
}

static void too_many(struct kube_change *change)
{
    kube_fail(&change->call->status, KUBE_TOO_MANY_REQUESTS,
              "too many requests change this object at the same time, please try again");
    change->call->status.retry_after_s = 1;
    kube_call_fail(change->call);
}

static void start_call(struct kube_call *call)
{
    kube_change_start(call->handler);
}

void kube_change_start(struct kube_change *change)
{
    struct kube_call *call = change->call;
    call->handler = change;
    call->on_free = kube_change_free;
    if (kube_call_defers(call, start_call))
        return;
    change->tries = 0;
    change->warned = call->warnings.len;
    if (make_key(change) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    change->request = (struct pb_range_request){.key = change->key};
    call->ticket = (struct kube_write_ticket){.key = change->key, .begin = on_turn};
    switch (change->dry_run ? KUBE_WRITE_QUEUE_FIRST
                            : kube_write_queue_enter(&call->api->write_queue, &call->ticket)) {
    case KUBE_WRITE_QUEUE_FIRST:
        kube_change_again(change);
        break;
    case KUBE_WRITE_QUEUE_WAITS:
        kube_count_total(&call->api->counter, KUBE_TOTAL_QUEUED, 1);
        break;
    case KUBE_WRITE_QUEUE_REFUSED:
        too_many(change);
        break;
    }
}

static void respond(struct kube_call *call)
{
    struct kube_change *change = call->handler;
    struct slice json;
    /* The trees of the attempt take several times as much as the object, and are not needed any
     * more. Otherwise the value is in their arena. */
    if (change->decision == KUBE_DECIDE_PUT)
        arena_fini(&change->scratch);
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
