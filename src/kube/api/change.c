#include "kube/api/change.h"

#include "base/clock.h"
#include "kube/api/custom.h"

struct kube_meta kube_call_meta(struct kube_call *call, struct arena *arena)
{
    return (struct kube_meta){
        .arena = arena,
        .kind = call->kind,
        .namespace = call->path.namespace,
        .name = call->path.name,
        .now_s = clock_real_ns(call->face->clock) / 1000000000,
        .random = &call->face->random,
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

/* So many at first, so that an object of some kilobytes does not grow from nothing by doubling. */
enum { KUBE_OBJECT_BYTES_USUAL = 4096 };

enum status kube_object_encode(const struct json_node *object, struct buf *to)
{
    buf_reset(to, SIZE_MAX);
    TRY(buf_reserve(to, KUBE_OBJECT_BYTES_USUAL));
    TRY(json_tree_write(object, to));
    return to->len <= KUBE_OBJECT_BYTES_MAX ? ST_OK : ST_REQUEST_TOO_LARGE;
}

static void fail_engine(struct kube_change *change, enum status status)
{
    kube_fail_engine(&change->call->status, status);
    kube_call_fail(change->call);
}

/* Takes what is stored over into a new arena, in which the next attempt works. */
static bool take_stored(struct kube_change *change, struct kube_kv kv)
{
    arena_fini(&change->scratch);
    arena_init(&change->scratch, NULL, 0, KUBE_CALL_ARENA_BYTES_MAX);
    change->revision = kv.mod_revision;
    change->stored = SLICE_EMPTY;
    return !kv.mod_revision || arena_dup(&change->scratch, kv.value, &change->stored) == ST_OK;
}

static void finish(struct kube_change *change)
{
    if (change->follow && !change->dry_run)
        change->follow(change);
    change->done(change);
}

static void attempt(struct kube_change *change);

static void on_written(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_write(op);
    struct kube_change *change = call->handler;
    enum status status = op->status;
    struct kube_kv current = {0};
    bool held = status == ST_OK && kube_write_succeeded(&call->write, &current);
    bool unchanged = current.mod_revision == change->revision;
    if (held)
        change->revision = op->revision;
    else if (status == ST_OK && !take_stored(change, current))
        status = ST_NOMEM;
    engine_write_close(&call->write.engine);
    if (!kube_call_done(call))
        return;
    if (status != ST_OK)
        fail_engine(change, status);
    else if (held)
        finish(change);
    else if (unchanged && call->kind->flags & KUBE_CUSTOM)
        kube_custom_fail_changed(call);
    else
        attempt(change);
}

static void write_it(struct kube_change *change)
{
    struct kube_call *call = change->call;
    call->write = (struct kube_write){
        .key = change->key, .value = change->value, .expected = change->revision};
    if (change->decision == KUBE_DECIDE_PUT && !kube_custom_guard(call))
        kube_call_fail(call);
    else if (change->decision == KUBE_DECIDE_PUT)
        kube_call_put(call, on_written);
    else
        kube_call_delete(call, on_written);
}

static enum kube_decision decide(struct kube_change *change, struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    struct json_node *stored = NULL;
    struct error error;
    change->follow = NULL;
    change->meta = kube_call_meta(call, &change->scratch);
    change->meta.namespace = change->namespace;
    change->meta.name = change->name;
    if (change->tries++ == KUBE_CHANGE_TRIES_MAX) {
        kube_fail_conflict(&call->status, slice_from_text(call->kind->group),
                           slice_from_text(call->kind->plural), change->name, NULL);
        return KUBE_DECIDE_FAIL;
    }
    if (change->revision &&
        (json_tree_read(&change->scratch, change->stored, &stored, &error) != ST_OK ||
         stored->type != JSON_TYPE_OBJECT)) {
        kube_fail(&call->status, KUBE_STORAGE_READ_ERROR,
                  "Internal error occurred: what is stored here is no object in JSON");
        return KUBE_DECIDE_FAIL;
    }
    if (stored && !kube_custom_show(call, &change->scratch, stored, change->revision))
        return KUBE_DECIDE_FAIL;
    return change->decide(change, stored, ret_object);
}

static void attempt(struct kube_change *change)
{
    struct json_node *object = NULL;
    change->decision = decide(change, &object);
    change->value = change->stored;
    if (change->decision == KUBE_DECIDE_FAIL) {
        kube_call_fail(change->call);
        return;
    }
    if (change->decision != KUBE_DECIDE_KEEP && object) {
        if (!kube_custom_store(change->call, &change->scratch, object)) {
            kube_call_fail(change->call);
            return;
        }
        enum status status = kube_object_encode(object, &change->encoded);
        if (status != ST_OK) {
            fail_engine(change, status);
            return;
        }
        change->value = buf_slice(&change->encoded);
    }
    if (change->decision == KUBE_DECIDE_KEEP || change->dry_run)
        finish(change);
    else
        write_it(change);
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
        fail_engine(change, status);
}

static void on_free(struct kube_call *call)
{
    struct kube_change *change = call->handler;
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

void kube_change_start(struct kube_change *change)
{
    struct kube_call *call = change->call;
    call->handler = change;
    call->on_free = on_free;
    change->tries = 0;
    if (make_key(change) != ST_OK) {
        fail_engine(change, ST_NOMEM);
        return;
    }
    change->request = (struct pb_range_request){.key = change->key};
    kube_call_range(call, &change->request, on_read);
}

void kube_change_respond(struct kube_change *change, unsigned code)
{
    struct slice json;
    if (kube_call_object(change->call, change->value, change->revision, &json))
        kube_call_respond(change->call, code, json);
    else
        kube_call_fail(change->call);
}
