/*
 * DELETE without a name: every object that the selectors match, page by page and one after another,
 * each like a DELETE of its own. The answer is the list of the deleted objects; after
 * ITEMS_BYTES_MAX objects are still deleted but not listed. With a limit it ends after that many
 * and returns a continue token, as a list does.
 *
 *     read a page of names ─► delete one ─► … ─► next page ─► … ─► answer
 *
 * Each step starts from the loop, so that steps that complete at once do not nest.
 */
#include "base/memory/budget.h"
#include "kube/call/call.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/read/scope.h"
#include "kube/handlers/write/delete.h"
#include "kube/handlers/write/policies.h"
#include "kube/handlers/write/write.h"
#include "kube/policy/policies/match.h"
#include "kube/request/continue.h"
#include "kube/types/object/kind_rules.h"

#include <stdio.h>

enum {
    PAGE_KEYS = 100,
    LOOKED_BYTES_MAX = 256 << 10, /* size of the objects in one turn; the last may be more */
    ITEMS_BYTES_MAX = 16 << 20,
};

struct collection {
    struct kube_change change;
    struct kube_delete_options options;
    struct kube_selection *selection; /* a reference */
    struct slice prefix, end;
    struct buf from; /* the first key of the next page */
    struct pb_range_request request;
    struct arena page;
    struct arena ops;              /* memory of the operations of one page or one object */
    struct slice names[PAGE_KEYS]; /* names in this page, in its arena */
    size_t count, at;
    bool page_open; /* its range has objects that have not been examined */
    bool more;
    struct buf items;
    int64_t revision;
    int64_t total;   /* number of keys in the range */
    int64_t deleted; /* so far, up to the limit */
    int64_t seen;    /* revision of the object that is being deleted; 0: gone or not selected */
    struct deferred next;
};

static void on_free(struct kube_change *change)
{
    struct collection *c = CONTAINER_OF(change, struct collection, change);
    if (c->page_open)
        engine_range_close(&change->call->range);
    c->page_open = false;
    arena_fini(&c->page);
    arena_fini(&c->ops);
    buf_fini(&c->from);
    account_buf_fini(change->call->arena.account, &c->items);
    kube_selection_unref(c->selection);
    c->selection = NULL;
}

/* -- The answer -- */

static enum status add_item(struct collection *c)
{
    AUTO(buf_fini) struct buf converted = {0};
    struct kube_object object;
    struct slice value, served = c->change.served;
    TRY(kube_conversion_json(c->change.call->kind, served.len ? served : c->change.stored,
                             served.len ? 0 : c->seen, &converted, &value));
    if (kube_object_parse(value, &object) != ST_OK)
        return ST_OK;
    bool bare = !(c->change.call->kind->flags & KUBE_CUSTOM);
    size_t size = kube_object_size(&object, c->seen, bare);
    if (c->items.len + size > ITEMS_BYTES_MAX)
        return ST_OK;
    TRY(account_reserve(c->change.call->arena.account, &c->items, size + 1));
    if (c->items.len)
        TRY(buf_append_text(&c->items, ","));
    kube_object_copy(&object, c->seen, bare, 0, c->items.ptr + c->items.len, size);
    c->items.len += size;
    return ST_OK;
}

static bool is_full(const struct collection *c)
{
    int64_t limit = c->change.call->query.limit;
    return limit && c->deleted == limit;
}

/* The continue token, if there are objects after the limit. */
static enum status append_rest(struct collection *c, struct buf *to)
{
    struct kube_call *call = c->change.call;
    AUTO(buf_fini) struct buf after = {0};
    struct slice token;
    if (!is_full(c) || !(c->more || c->at < c->count))
        return ST_OK;
    /* After the last name, whose object may still exist because of finalizers. */
    TRY(buf_append(&after, c->change.name));
    TRY(buf_append(&after, slice_of("", 1)));
    TRY(kube_continue_write(&call->arena, c->revision, buf_slice(&after), &token));
    TRY(buf_append_format(to, ",\"continue\":\"%.*s\"", SLICE_ARGS(token)));
    if (call->query.label_selector.len || call->query.field_selector.len)
        return ST_OK;
    return buf_append_format(to, ",\"remainingItemCount\":%lld",
                             (long long)(c->total - c->deleted));
}

static enum status append_answer(struct collection *c, struct buf *to)
{
    const struct kube_kind *kind = c->change.call->kind;
    char version[KUBE_API_VERSION_BYTES];
    TRY(buf_append_format(to,
                          "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
                          "\"resourceVersion\":\"%lld\"",
                          kind->list_kind, kube_kind_api_version(kind, version),
                          (long long)c->revision));
    TRY(append_rest(c, to));
    TRY(buf_append_text(to, "},\"items\":["));
    TRY(buf_append(to, buf_slice(&c->items)));
    return buf_append_text(to, "]}");
}

static void respond(struct collection *c)
{
    struct kube_call *call = c->change.call;
    struct buf text = {0};
    if (append_answer(c, &text) == ST_OK)
        kube_call_respond(call, 200, buf_slice(&text));
    else
        kube_call_fail_engine(call, ST_NOMEM);
    buf_fini(&text);
}

/* -- Steps -- */

/* The next step runs from the loop; until then it counts as an operation. */
static void step_later(struct collection *c)
{
    struct kube_call *call = c->change.call;
    call->under_way++;
    call->api->under_way++;
    loop_defer(call->api->loop, &c->next);
}

/* A value that is not an object does not match. */
static enum status matches(struct collection *c, struct slice stored, int64_t revision,
                           bool *ret_matches)
{
    AUTO(buf_fini) struct buf converted = {0};
    struct kube_object object;
    struct slice value;
    enum status status =
        kube_conversion_json(c->change.call->kind, stored, revision, &converted, &value);
    if (status == ST_OK)
        status = kube_object_parse(value, &object);
    if (status != ST_OK && status != ST_MALFORMED)
        return status;
    *ret_matches = status == ST_OK && kube_selection_matches(c->selection, &object);
    return ST_OK;
}

static void begin_arena(struct collection *c, struct arena *arena)
{
    struct kube_call *call = c->change.call;
    arena_fini(arena);
    arena_init(arena, NULL, 0, call->api->attempt_bytes_max);
    arena_charge(arena, call->arena.account);
}

/* Examines some objects of the page, and closes it after the last. */
static enum status look_on(struct collection *c)
{
    struct engine_range *range = &c->change.call->range;
    struct slice field;
    for (size_t looked = 0; looked < LOOKED_BYTES_MAX; looked += field.len) {
        if (!engine_range_next(range, &field)) {
            enum status status = range->op.status;
            engine_range_close(range);
            c->page_open = false;
            return status;
        }
        struct kube_kv kv = kube_kv_of(field);
        if (!slice_has_prefix(kv.key, c->prefix))
            return ST_MALFORMED;
        buf_reset(&c->from, SIZE_MAX);
        TRY(buf_append(&c->from, kv.key));
        TRY(buf_append(&c->from, slice_of("", 1)));
        struct slice name = slice_sub(kv.key, c->prefix.len, kv.key.len - c->prefix.len);
        /* One that a webhook converts is looked at when it is read again to be deleted. */
        bool selected = kube_conversion_awaits(c->change.call->kind, kv.value);
        if (!selected)
            TRY(matches(c, kv.value, kv.mod_revision, &selected));
        TRY(selected ? arena_dup(&c->page, name, &c->names[c->count++]) : ST_OK);
    }
    return ST_OK;
}

static void on_page(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct collection *c = CONTAINER_OF(call->handler.change, struct collection, change);
    enum status status = op->status;
    if (status == ST_OK) {
        struct engine_range *range = &c->change.call->range;
        begin_arena(c, &c->page);
        c->count = c->at = 0;
        c->more = range->more;
        if (!c->revision) {
            /* The first page decides at which revision all others are read. */
            c->revision = range->op.revision;
            c->total = range->count;
        }
        c->page_open = true;
    } else {
        engine_range_close(&call->range);
    }
    if (kube_call_succeeded(call, status))
        step_later(c);
}

static void read_page(struct collection *c)
{
    begin_arena(c, &c->ops);
    c->request = (struct pb_range_request){.key = c->from.len ? buf_slice(&c->from) : c->prefix,
                                           .range_end = c->end,
                                           .limit = PAGE_KEYS};
    kube_call_range(c->change.call, &c->request, on_page);
}

static void on_next(struct deferred *deferred)
{
    struct collection *c = CONTAINER_OF(deferred, struct collection, next);
    if (!kube_call_done(c->change.call))
        return;
    if (c->page_open) {
        /* The page is examined to its end before an object of it is deleted. */
        enum status status = look_on(c);
        if (status == ST_OK)
            step_later(c);
        else
            kube_call_fail_engine(c->change.call, status);
    } else if (is_full(c)) {
        respond(c);
    } else if (c->at < c->count) {
        c->change.name = c->names[c->at++];
        begin_arena(c, &c->ops);
        kube_change_start(&c->change);
    } else if (c->more) {
        read_page(c);
    } else {
        respond(c);
    }
}

/* -- One object -- */

static enum kube_decision decide(struct kube_change *change, const struct json_node *stored,
                                 struct json_node **ret_object)
{
    struct collection *c = CONTAINER_OF(change, struct collection, change);
    bool selected = false;
    struct slice served = change->served;
    enum status status = ST_OK;
    if (stored)
        status = matches(c, served.len ? served : change->stored, served.len ? 0 : change->revision,
                         &selected);
    if (status != ST_OK) {
        kube_fail_engine(&change->call->status, status);
        return KUBE_DECIDE_FAIL;
    }
    /* Since the page was read the object may have been deleted, or may no longer match. */
    c->seen = selected ? change->revision : 0;
    if (!selected)
        return KUBE_DECIDE_KEEP;
    enum kube_decision decision = kube_delete_decide(change, &c->options, stored, ret_object);
    if (decision != KUBE_DECIDE_FAIL || change->call->status.reason != KUBE_NOT_FOUND)
        return decision;
    /* As in Kubernetes, an object that admission does not find stays, and nothing has failed. */
    change->call->status = (struct kube_status){0};
    return KUBE_DECIDE_KEEP;
}

static void done(struct kube_change *change)
{
    struct collection *c = CONTAINER_OF(change, struct collection, change);
    c->deleted += c->seen != 0;
    change->call->written = false; /* the client may ask for the rest again */
    if (c->seen && add_item(c) != ST_OK)
        kube_call_fail_engine(change->call, ST_NOMEM);
    else
        step_later(c);
}

/* -- Beginning -- */

/* Starts at the continue token of a list or of a delete like this one. */
static bool start_at_token(struct kube_call *call, struct collection *c)
{
    struct kube_continue from;
    if (!call->query.continue_token.len)
        return true;
    if (!kube_continue_read(&call->arena, call->query.continue_token, &from, &call->status))
        return false;
    return (buf_append(&c->from, c->prefix) == ST_OK &&
            buf_append(&c->from, from.suffix) == ST_OK) ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool begin(struct kube_call *call, const struct http_request *request, struct collection *c)
{
    bool namespaced = call->kind->flags & KUBE_NAMESPACED;
    if ((namespaced && !call->path.namespace.len) || call->rules & KUBE_IS_NAMESPACE)
        return kube_fail_not_allowed(&call->status);
    if (!kube_selectors_get(call, &c->selection) ||
        !kube_delete_options_read(call, request, &c->options))
        return false;
    if (kube_key_make(&call->arena, call->kind->storage_prefix, call->path.namespace, SLICE_EMPTY,
                      &c->prefix) != ST_OK ||
        kube_prefix_end(&call->arena, c->prefix, &c->end) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!start_at_token(call, c))
        return false;
    c->next = (struct deferred){.fn = on_next};
    c->change = (struct kube_change){
        .call = call,
        .namespace = call->path.namespace,
        .decide = decide,
        .done = done,
        .on_free = on_free,
        .dry_run = c->options.dry_run,
        .acts = KUBE_MATCH_DELETE,
        .delete_options = kube_delete_options_tree(call, &c->options),
    };
    return c->change.delete_options || kube_fail_engine(&call->status, ST_NOMEM);
}

static void call_free(struct kube_call *call)
{
    struct collection *c = CONTAINER_OF(call->handler.change, struct collection, change);
    kube_policies_free(&c->change);
    on_free(&c->change);
    kube_change_fini(&c->change);
}

void kube_delete_collection(struct kube_call *call)
{
    struct collection *c = arena_calloc(&call->arena, 1, sizeof(*c));
    if (c)
        c->change.call = call;
    else
        kube_fail_engine(&call->status, ST_NOMEM);
    if (!c || !begin(call, call->request, c)) {
        if (c)
            on_free(&c->change);
        kube_call_fail(call);
        return;
    }
    call->handler.change = &c->change;
    call->on_free = call_free;
    call->ops_arena = &c->ops;
    read_page(c);
}
