/*
 * The parameters of admission policies for a write: those of each case, by name or by selector, as
 * they are stored when the write is decided. A part of kube_policies_gather.
 *
 * Those that a webhook converts are read, and then converted: one by its name, or all objects of a
 * page, because the selector counts for what the webhook has made of them. Nothing is held
 * meanwhile but the memory of the write: no snapshot of the store, no place in a queue.
 *
 *     page ─► its objects, in turns ─────────────────────────────► selected? ─► the next page
 *        └──► a batch ─► (the webhook) ─► its objects, in turns ───┘
 */
#include "base/metric/turn.h"
#include "kube/call/call_conversion.h"
#include "kube/call/conversion.h"
#include "kube/call/conversion_batch.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/types/object/label_match.h"
#include "wire/peer/peer.h"

#include <stdio.h>

enum {
    PAGE_KEYS = 500,
    TURN_BYTES = 64 << 10, /* examined in one turn */
};

/* -- Reading objects -- */

struct json_node *kube_policies_read_tree(struct kube_policy_facts *f, const struct kube_kind *kind,
                                          struct kube_kv kv, int64_t version)
{
    AUTO(buf_fini) struct buf converted = {0};
    struct slice json, copy;
    struct json_node *tree;
    struct error ignored;
    char text[24];
    if (kube_conversion_json(kind, kv.value, kv.mod_revision, &converted, &json) != ST_OK ||
        arena_dup(&f->arena, json, &copy) != ST_OK ||
        json_tree_read(&f->arena, copy, &tree, &ignored) != ST_OK)
        return NULL;
    struct json_node *metadata = json_node_named(tree, "metadata");
    snprintf(text, sizeof(text), "%lld", (long long)version);
    if (metadata && metadata->type == JSON_TYPE_OBJECT &&
        json_node_put(&f->arena, metadata, "resourceVersion",
                      json_node_new_text(&f->arena, slice_from_text(text))) != ST_OK)
        return NULL;
    return tree;
}

enum kube_stepped kube_policies_read_key(struct kube_policy_facts *f, const char *prefix,
                                         struct slice namespace, struct slice name,
                                         void (*done)(struct engine_op *op))
{
    struct kube_call *call = f->change->call;
    f->range = (struct pb_range_request){0};
    if (kube_key_make(&f->arena, prefix, namespace, name, &f->range.key) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    kube_call_range(call, &f->range, done);
    return KUBE_STEP_LEFT;
}

/* -- Parameters -- */

static const struct kube_policy *policy_of(const struct kube_policy_case *c)
{
    return c->policy_object->data;
}

static const struct kube_policy_binding *binding_of(const struct kube_policy_case *c)
{
    return c->binding_object->data;
}

static struct slice text_of(struct kube_policy_facts *f, const char *text, struct slice a,
                            struct slice b)
{
    AUTO(buf_fini) struct buf whole = {0};
    struct slice copy = SLICE_EMPTY;
    if (buf_append_format(&whole, text, SLICE_ARGS(a), SLICE_ARGS(b)) == ST_OK)
        (void)!arena_dup(&f->arena, buf_slice(&whole), &copy);
    return copy;
}

/* The case is done; nothing further is read for it. */
static enum kube_stepped next_case(struct kube_policy_facts *f)
{
    struct kube_policy_case *c = &f->cases[f->at];
    if (!c->param_count && !c->binding_error.len && !c->policy_error.len &&
        binding_of(c)->deny_without_params)
        c->binding_error =
            SLICE_LITERAL("no params found for policy binding with `Deny` parameterNotFoundAction");
    f->at++;
    f->param_begun = false;
    return KUBE_STEP_NEXT;
}

static enum kube_stepped fail_policy(struct kube_policy_facts *f, struct slice why)
{
    f->cases[f->at].policy_error = why;
    return next_case(f);
}

static enum kube_stepped fail_binding(struct kube_policy_facts *f, struct slice why, bool is_limit)
{
    f->cases[f->at].binding_error = why;
    f->cases[f->at].is_limit = is_limit;
    return next_case(f);
}

static bool add_param(struct kube_policy_facts *f, const struct json_node *param, size_t most)
{
    struct kube_policy_case *c = &f->cases[f->at];
    if (!c->params)
        c->params = arena_calloc(&f->arena, most, sizeof(*c->params));
    if (c->params)
        c->params[c->param_count++] = param;
    return c->params;
}

static const struct kube_kind *find_kind(struct kube_policy_facts *f, struct slice api,
                                         struct slice kind)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(f->kinds, &count);
    struct slice version = api, group = slice_cut(&version, '/');
    if (group.len == api.len) {
        version = group;
        group = SLICE_EMPTY;
    }
    for (size_t i = 0; i < count; i++)
        if (slice_is(group, rows[i]->group) && slice_is(version, rows[i]->version) &&
            slice_is(kind, rows[i]->kind))
            return rows[i];
    return NULL;
}

static void on_kinds(struct kube_registry_wait *wait)
{
    struct kube_policy_facts *f = CONTAINER_OF(wait, struct kube_policy_facts, registry);
    kube_kinds_unref(f->kinds);
    f->kinds = kube_kinds_ref(kube_registry_kinds(f->change->call->api->registry));
    f->kinds_read = true;
    f->param_kind = NULL;
    f->read = NULL; /* their kinds may be gone */
    kube_policies_resume(f, ST_OK);
}

/* The case has the parameter that was read for it, or for another one. ST_NOMEM. */
static enum status take_param(struct kube_policy_facts *f, const struct kube_policy_param *param)
{
    if (param->error.len) {
        (void)fail_binding(f, param->error, false);
        return ST_OK;
    }
    if (param->tree && !add_param(f, param->tree, 1))
        return ST_NOMEM;
    (void)next_case(f);
    return ST_OK;
}

/* -- Conversion -- */

static struct kube_conversion_batch *new_batch(struct kube_policy_facts *f)
{
    struct kube_call *call = f->change->call;
    return kube_conversion_batch_new(call->api, kube_custom_of(f->param_kind), call->arena.account,
                                     wire_peer_key(call->request->peer));
}

static void drop_batch(struct kube_policy_facts *f)
{
    kube_conversion_batch_free(f->batch);
    f->batch = NULL;
}

static void fail(struct kube_policy_facts *f)
{
    struct kube_call *call = f->change->call;
    drop_batch(f);
    if (kube_call_done(call))
        kube_call_fail(call);
}

/* Continues in done, when the webhook has converted what is to be converted. */
static void convert(struct kube_policy_facts *f, kube_call_converted_fn *done)
{
    struct kube_call *call = f->change->call;
    kube_call_convert_batch(call, TAKE(f->batch), done);
    (void)!kube_call_done(call); /* what was read */
}

/* Why the webhook has not converted them, which is an error of the binding. False: the write is
 * answered instead, because this server could not call it. */
static bool explain(struct kube_policy_facts *f, struct slice *ret_why)
{
    struct kube_call *call = f->change->call;
    const struct kube_status *status = kube_conversion_batch_status(f->batch);
    if (status->reason != KUBE_UNKNOWN)
        return kube_conversion_batch_fail(f->batch, &call->arena, &call->status);
    return arena_dup(&f->arena, status->long_message, ret_why) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool is_converted(const struct kube_policy_facts *f)
{
    return kube_conversion_batch_status(f->batch)->reason == KUBE_OK;
}

/* -- Parameters by their names -- */

static void on_param_converted(struct kube_call *call, struct kube_conversion_batch *batch)
{
    struct kube_policy_facts *f = call->handler.change->policies;
    struct kube_policy_param *param = f->read;
    int64_t version;
    f->batch = batch;
    if (is_converted(f)) {
        struct kube_kv kv = kube_conversion_batch_get(batch, 0, &version);
        param->tree = kube_policies_read_tree(f, f->param_kind, kv, version);
    } else if (!explain(f, &param->error)) {
        fail(f);
        return;
    }
    drop_batch(f);
    kube_policies_resume(f, arena_ran_out(&f->arena) ? ST_NOMEM : take_param(f, param));
}

static void look_later(struct kube_policy_facts *f)
{
    struct kube_call *call = f->change->call;
    kube_call_hold(call);
    loop_defer(call->api->loop, &f->more);
}

static void on_param_read(struct deferred *deferred)
{
    struct kube_policy_facts *f = CONTAINER_OF(deferred, struct kube_policy_facts, more);
    if (f->batch && f->read_status == ST_OK) {
        convert(f, on_param_converted);
        return;
    }
    kube_policies_resume(f, f->read_status == ST_OK ? take_param(f, f->read) : f->read_status);
}

/* The parameter, or a batch that converts it. */
static enum status begin_param(struct kube_policy_facts *f, struct kube_kv kv)
{
    if (kube_conversion_awaits(f->param_kind, kv.value)) {
        f->batch = new_batch(f);
        return kube_conversion_batch_add(f->batch, kv);
    }
    f->read->tree = kube_policies_read_tree(f, f->param_kind, kv, kv.mod_revision);
    return ST_OK;
}

/* The rest follows in another turn: a write may need thousands of parameters, each of which is
 * usually read at once, before the function returns that has begun it. */
static void on_param(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_policy_facts *f = call->handler.change->policies;
    struct slice field;
    f->read_status = op->status;
    if (op->status == ST_OK && engine_range_next(&call->range, &field))
        f->read_status = begin_param(f, kube_kv_of(field));
    engine_range_close(&call->range);
    if (arena_ran_out(&f->arena))
        f->read_status = ST_NOMEM;
    f->more = (struct deferred){.fn = on_param_read};
    look_later(f);
    (void)!kube_call_done(call);
}

static enum kube_stepped read_param(struct kube_policy_facts *f, struct slice namespace,
                                    struct slice name)
{
    struct kube_policy_param *param = f->read;
    while (param && !(param->kind == f->param_kind && slice_equal(param->name, name) &&
                      slice_equal(param->namespace, namespace)))
        param = param->next;
    if (param)
        return take_param(f, param) == ST_OK ||
               kube_fail_engine(&f->change->call->status, ST_NOMEM);
    param = arena_calloc(&f->arena, 1, sizeof(*param));
    if (!param)
        return kube_fail_engine(&f->change->call->status, ST_NOMEM);
    *param = (struct kube_policy_param){
        .next = f->read, .kind = f->param_kind, .namespace = namespace, .name = name};
    f->read = param;
    return kube_policies_read_key(f, f->param_kind->storage_prefix, namespace, name, on_param);
}

/* -- Parameters by their labels -- */

static enum kube_stepped read_page(struct kube_policy_facts *f);

/* Whether the selector of the binding selects a stored object. What it takes to find out is freed.
 */
static enum status selects(struct kube_policy_facts *f, struct slice value, bool *ret_selects)
{
    const struct kube_policy_binding *binding = binding_of(&f->cases[f->at]);
    struct arena arena;
    struct json_node *tree;
    struct error ignored;
    arena_init(&arena, NULL, 0, KUBE_POLICY_FACTS_BYTES_MAX);
    arena_charge(&arena, f->change->call->arena.account);
    enum status status = json_tree_read(&arena, value, &tree, &ignored);
    *ret_selects = status == ST_OK && kube_label_match(binding->param_selector,
                                                       json_node_path(tree, "metadata.labels"));
    arena_fini(&arena);
    return status == ST_NOMEM ? status : ST_OK;
}

/* The next page begins behind this key. */
static bool begin_behind(struct kube_policy_facts *f, struct slice key)
{
    enum { ROOM = 512 }; /* for all keys but those that only clients of etcd can write */
    size_t bytes = key.len + 1;
    uint8_t *room = (uint8_t *)(uintptr_t)f->from.ptr;
    if (bytes > f->from_room) {
        f->from_room = size_max(bytes, ROOM);
        room = arena_alloc(&f->arena, f->from_room);
    }
    if (!room)
        return false;
    slice_copy(room, key);
    room[key.len] = '\0';
    f->from = slice_of(room, bytes);
    return true;
}

/* The object is a parameter if it is selected. */
static enum status consider(struct kube_policy_facts *f, struct kube_kv kv, int64_t version)
{
    const struct kube_policy_case *c = &f->cases[f->at];
    bool selected;
    TRY(selects(f, kv.value, &selected));
    if (!selected || c->param_count > KUBE_PARAMS_MAX)
        return ST_OK;
    const struct json_node *param = kube_policies_read_tree(f, f->param_kind, kv, version);
    bool failed = arena_ran_out(&f->arena) || (param && !add_param(f, param, KUBE_PARAMS_MAX + 1));
    return failed ? ST_NOMEM : ST_OK;
}

/* An object of the page, which may have to be converted first. */
static enum status examine(struct kube_policy_facts *f, struct kube_kv kv)
{
    if (!f->batch)
        return consider(f, kv, kv.mod_revision);
    enum status status = kube_conversion_batch_add(f->batch, kv);
    return status == ST_MALFORMED ? ST_OK : status; /* it is not an object */
}

/* Examines some objects of a page. False: the page ends. */
static bool look_on(struct kube_policy_facts *f, enum status *ret_status)
{
    struct engine_range *range = &f->change->call->range;
    struct slice field;
    turn_work("reading the parameters of a policy", f->prefix);
    for (size_t bytes = 0; bytes < TURN_BYTES; bytes += field.len) {
        if (f->batch && kube_conversion_batch_is_full(f->batch)) {
            f->page_follows = true;
            return false;
        }
        if (!engine_range_next(range, &field)) {
            *ret_status = range->op.status;
            f->page_follows = range->more;
            return false;
        }
        struct kube_kv kv = kube_kv_of(field);
        f->examined++;
        f->examined_bytes += field.len;
        *ret_status = begin_behind(f, kv.key) ? examine(f, kv) : ST_NOMEM;
        if (*ret_status != ST_OK)
            return false;
    }
    return true;
}

static bool exceeds(const struct kube_policy_facts *f)
{
    return f->cases[f->at].param_count > KUBE_PARAMS_MAX || f->examined > KUBE_PARAM_OBJECTS_MAX ||
           f->examined_bytes > KUBE_PARAM_BYTES_MAX;
}

/* Another one may follow. */
static void end_page(struct kube_policy_facts *f, enum status status)
{
    drop_batch(f);
    if (status == ST_OK && exceeds(f))
        (void)fail_binding(f,
                           SLICE_LITERAL("this server considers at most 100 parameters that a "
                                         "selector finds among 10000 objects of 8 MiB"),
                           true);
    else if (status == ST_OK && !f->page_follows)
        (void)next_case(f);
    kube_policies_resume(f, status);
}

/* Examines some objects of a batch. False: there is none left. */
static bool look_on_converted(struct kube_policy_facts *f, enum status *ret_status)
{
    turn_work("examining converted parameters of a policy", f->prefix);
    for (size_t bytes = 0; bytes < TURN_BYTES && *ret_status == ST_OK; f->converted++) {
        int64_t version;
        if (f->converted == kube_conversion_batch_count(f->batch))
            return false;
        struct kube_kv kv = kube_conversion_batch_get(f->batch, f->converted, &version);
        bytes += kv.value.len;
        *ret_status = consider(f, kv, version);
    }
    return *ret_status == ST_OK;
}

static void on_more_converted(struct deferred *deferred)
{
    struct kube_policy_facts *f = CONTAINER_OF(deferred, struct kube_policy_facts, more);
    enum status status = ST_OK;
    if (look_on_converted(f, &status)) {
        look_later(f);
        (void)!kube_call_done(f->change->call);
        return;
    }
    end_page(f, status);
}

static void look_at_converted(struct kube_policy_facts *f)
{
    f->converted = 0;
    f->more = (struct deferred){.fn = on_more_converted};
    look_later(f);
    (void)!kube_call_done(f->change->call);
}

static void on_page_converted(struct kube_call *call, struct kube_conversion_batch *batch)
{
    struct kube_policy_facts *f = call->handler.change->policies;
    struct slice why;
    f->batch = batch;
    if (is_converted(f)) {
        look_at_converted(f);
    } else if (explain(f, &why)) {
        drop_batch(f);
        (void)fail_binding(f, why, false);
        kube_policies_resume(f, ST_OK);
    } else {
        fail(f);
    }
}

static void on_more(struct deferred *deferred)
{
    struct kube_policy_facts *f = CONTAINER_OF(deferred, struct kube_policy_facts, more);
    struct kube_call *call = f->change->call;
    enum status status = ST_OK;
    if (look_on(f, &status)) {
        look_later(f);
        (void)!kube_call_done(call);
        return;
    }
    f->page_open = false;
    engine_range_close(&call->range);
    if (!f->batch || status != ST_OK || exceeds(f)) {
        end_page(f, status);
    } else if (kube_conversion_batch_awaits(f->batch)) {
        convert(f, on_page_converted);
    } else {
        look_at_converted(f);
    }
}

static void on_page(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_policy_facts *f = call->handler.change->policies;
    enum status status = op->status;
    if (status == ST_OK) {
        f->page_open = true;
        f->more = (struct deferred){.fn = on_more};
        look_later(f);
        (void)!kube_call_done(call);
        return;
    }
    engine_range_close(&call->range);
    kube_policies_resume(f, status);
}

static enum kube_stepped read_page(struct kube_policy_facts *f)
{
    f->range = (struct pb_range_request){.range_end = f->end, .limit = PAGE_KEYS};
    if (kube_conversion_has_webhook(f->param_kind))
        f->batch = new_batch(f);
    if (arena_dup(&f->arena, f->from.len ? f->from : f->prefix, &f->range.key) != ST_OK)
        return kube_fail_engine(&f->change->call->status, ST_NOMEM);
    kube_call_range(f->change->call, &f->range, on_page);
    return KUBE_STEP_LEFT;
}

/* -- Parameters of a case -- */

static enum kube_stepped begin_params(struct kube_policy_facts *f, struct slice namespace)
{
    const struct kube_policy_binding *binding = binding_of(&f->cases[f->at]);
    f->param_begun = true;
    f->examined = f->examined_bytes = 0;
    f->from.len = 0;
    if (binding->param_name.len)
        return read_param(f, namespace, binding->param_name);
    if (!binding->param_selector)
        return fail_binding(f, SLICE_LITERAL("one of name or selector must be provided"), false);
    if (kube_key_make(&f->arena, f->param_kind->storage_prefix, namespace, SLICE_EMPTY,
                      &f->prefix) != ST_OK ||
        kube_prefix_end(&f->arena, f->prefix, &f->end) != ST_OK)
        return kube_fail_engine(&f->change->call->status, ST_NOMEM);
    return read_page(f);
}

enum kube_stepped kube_policies_gather_params(struct kube_policy_facts *f)
{
    struct kube_call *call = f->change->call;
    struct kube_policy_case *c = &f->cases[f->at];
    const struct kube_policy *policy = policy_of(c);
    const struct kube_policy_binding *binding = binding_of(c);
    if (f->param_begun)
        return read_page(f);
    if (!policy->has_params)
        return add_param(f, NULL, 1) ? next_case(f) : kube_fail_engine(&call->status, ST_NOMEM);
    f->param_kind = find_kind(f, policy->param_version, policy->param_kind);
    if (!f->param_kind && !f->kinds_read) {
        f->registry = (struct kube_registry_wait){.go = on_kinds};
        kube_call_hold(call);
        kube_registry_read(call->api->registry, &f->registry);
        return KUBE_STEP_LEFT;
    }
    if (!f->param_kind) {
        struct slice version = policy->param_version, group = slice_cut(&version, '/');
        bool core = group.len == policy->param_version.len;
        struct slice kind =
            text_of(f, "%.*s, Kind=%.*s", core ? group : version, policy->param_kind);
        return fail_policy(f, text_of(f,
                                      "failed to find resource referenced by paramKind: "
                                      "'%.*s/%.*s'",
                                      core ? SLICE_EMPTY : group, kind));
    }
    if (!binding->has_params)
        return add_param(f, NULL, 1) ? next_case(f) : kube_fail_engine(&call->status, ST_NOMEM);
    bool namespaced = f->param_kind->flags & KUBE_NAMESPACED;
    struct slice within =
        binding->param_namespace.len ? binding->param_namespace : f->request.namespace;
    if (namespaced && !within.len)
        return fail_binding(f,
                            SLICE_LITERAL("cannot use namespaced paramRef in policy binding that "
                                          "matches cluster-scoped resources"),
                            false);
    if (!namespaced && binding->param_namespace.len)
        return fail_binding(f,
                            SLICE_LITERAL("paramRef.namespace must not be provided for a "
                                          "cluster-scoped `paramKind`"),
                            false);
    return begin_params(f, namespaced ? within : SLICE_EMPTY);
}
