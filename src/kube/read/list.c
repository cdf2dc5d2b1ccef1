/*
 * GET of a collection: one range of the store at one revision, sent as it is read. A short list is
 * made first, so that it can be indented, has a length, and can fail with a Status.
 *
 *     kube_list ─► (wait for a revision) ─► range ─► head ─► item… ─► end
 *
 * Objects that are not sent in their stored form are copied, some at a time, and converted on the
 * worker (kube/call/call_offload.h). While such a batch is away, the worker owns the list.
 */
#include "base/log/log.h"
#include "base/memory/budget.h"
#include "base/turn.h"
#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/format.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/call/revision_wait.h"
#include "kube/call/shape.h"
#include "kube/read/object_writer.h"
#include "kube/read/read.h"
#include "kube/read/scope.h"
#include "kube/read/search_budget.h"
#include "kube/request/continue.h"
#include "zip/gzip.h"
#include "zip/gzip_source.h"

#include <stdio.h>

enum {
    SHORT_LIST_BYTES = 128 * 1024,
    SHORT_LIST_LOOK_BYTES = 1 << 20, /* of its objects with their defaults */
    BATCH_BYTES = 128 << 10,     /* of objects that are converted together; the last may be more */
    GATHER_BYTES_MAX = 64 << 20, /* of one list in protobuf */
    GATHER_BYTES_MAX_ALL = 128 << 20, /* of all lists of a shard */
    COMPRESSED = 16,                  /* compressing one byte takes as long as scanning this many */
    PACKERS_MAX = 256,                /* per shard; further lists are sent uncompressed */
};

/* The next part to make: HEAD ─► ITEMS ─► END ─► DONE; from END a protobuf list, whose items were
 * gathered first, returns to HEAD. */
enum list_phase { LIST_HEAD, LIST_ITEMS, LIST_END, LIST_DONE };

struct list_state {
    struct http_source source;
    struct kube_call *call;
    struct kube_scope scope;
    struct kube_shaping shaping;
    struct kube_object_writer writer;
    struct kube_searcher searcher;
    struct deferred again; /* continues gathering in the next turn */
    struct kube_revision_wait fresh;
    struct pb_range_request request;
    int64_t limit;            /* 0: none */
    int64_t given;            /* items so far */
    uint64_t fetched;         /* objects that were examined */
    int64_t revision;         /* of the list */
    struct slice rest_suffix; /* suffix of the key after the last item, once the limit is reached */
    bool more;                /* there are items after the limit */
    struct gzip_source *packer; /* owned; NULL: not compressed */
    struct buf batch;           /* fields to be converted, each after its length, a size_t */
    enum status batch_status;   /* set by the worker */
    uint64_t undecodable;       /* objects */
    struct buf text;            /* a whole short list */
    struct buf gathered;        /* items in protobuf, which follow their total length */
    size_t gathered_bytes;      /* share of api->gathered_bytes */
    size_t charged_bytes;       /* to the connection, for gathered */
    bool gathers;
    bool whole; /* it is made before it is sent, without the worker */
    bool range_open;
    bool metadata_sent;
    enum list_phase phase;
};

static void close_range(struct list_state *list)
{
    if (list->range_open)
        engine_range_close(&list->call->range);
    list->range_open = false;
}

static void drop_gathered(struct list_state *list)
{
    struct kube_call *call = list->call;
    call->api->gathered_bytes -= list->gathered_bytes;
    list->gathered_bytes = 0;
    buf_fini(&list->gathered);
    account_release(call->arena.account, list->charged_bytes);
    list->charged_bytes = 0;
}

static void release(struct kube_call *call)
{
    struct list_state *list = call->handler;
    account_buf_fini(call->arena.account, &list->batch);
    buf_fini(&list->text);
    kube_count_total(&call->api->counter,
                     call->api->config->skip_undecodable ? KUBE_TOTAL_SKIPPED
                                                         : KUBE_TOTAL_UNDECODABLE,
                     list->undecodable);
    close_range(list);
    kube_object_writer_fini(&list->writer);
    kube_scope_fini(&list->scope);
    call->api->packers -= list->packer != NULL;
    gzip_source_free(list->packer);
    list->packer = NULL;
    drop_gathered(list);
    kube_count(&call->api->counter, call->kind, KUBE_COUNT_LISTS, 1);
    kube_count(&call->api->counter, call->kind, KUBE_COUNT_FETCHED, list->fetched);
    kube_count(&call->api->counter, call->kind, KUBE_COUNT_RETURNED, (uint64_t)list->given);
}

static void on_end(struct kube_call *call)
{
    struct list_state *list = call->handler;
    kube_searcher_fini(&list->searcher);
    loop_defer_cancel(&list->again);
    kube_revision_wait_cancel(&list->fresh);
    if (call->work.away)
        call->on_free = release; /* when it is back */
    else
        release(call);
}

#define TO(phase) (1u << LIST_##phase)

static const unsigned moves[] = {
    [LIST_HEAD] = TO(ITEMS), [LIST_ITEMS] = TO(END), [LIST_END] = TO(DONE) | TO(HEAD)};

static void move(struct list_state *list, enum list_phase next)
{
    assert(moves[list->phase] & 1u << next);
    list->phase = next;
}

/* -- Parts -- */

static enum status append_metadata(struct list_state *list, struct buf *to)
{
    struct kube_call *call = list->call;
    TRY(buf_append_format(to, "\"metadata\":{\"resourceVersion\":\"%lld\"",
                          (long long)list->revision));
    if (list->more) {
        struct slice token;
        TRY(kube_continue_write(&call->arena, list->revision, list->rest_suffix, &token));
        TRY(buf_append_format(to, ",\"continue\":\"%.*s\"", SLICE_ARGS(token)));
        if (!list->scope.selection->selects)
            TRY(buf_append_format(to, ",\"remainingItemCount\":%lld",
                                  (long long)(call->range.count - list->limit)));
    }
    list->metadata_sent = true;
    return buf_append_text(to, "}");
}

/* The continue token is known only after the last item; with a limit the metadata is at the end. */
static enum status make_head(struct list_state *list)
{
    struct buf *to = &list->writer.made;
    bool known = !list->limit || (!list->scope.selection->selects && !list->call->range.more);
    TRY(buf_append_text(to, "{"));
    TRY(kube_shape_list_head(&list->shaping, to));
    if (known) {
        TRY(append_metadata(list, to));
        TRY(buf_append_text(to, ","));
    }
    TRY(kube_shape_list_items(&list->shaping, to));
    move(list, LIST_ITEMS);
    return ST_OK;
}

static enum status make_end(struct list_state *list)
{
    struct buf *to = &list->writer.made;
    close_range(list);
    TRY(buf_append_text(to, "]"));
    if (!list->metadata_sent) {
        TRY(buf_append_text(to, ","));
        TRY(append_metadata(list, to));
    }
    move(list, LIST_DONE);
    return buf_append_text(to, "}\n");
}

/* The item just sent reached the limit. */
static enum status reach_limit(struct list_state *list, struct slice key)
{
    size_t prefix = list->scope.prefix.len;
    uint8_t *suffix = arena_alloc(&list->call->arena, key.len - prefix + 1);
    if (!suffix)
        return ST_NOMEM;
    slice_copy(suffix, slice_sub(key, prefix, key.len - prefix));
    suffix[key.len - prefix] = 0;
    list->rest_suffix = slice_of(suffix, key.len - prefix + 1);
    return ST_OK;
}

static enum status look(struct list_state *list, struct kube_kv kv, struct kube_object *ret_object,
                        bool *ret_selected)
{
    enum status looked =
        kube_scope_look(&list->scope, list->shaping.shape, kv, ret_object, ret_selected);
    if (!kube_is_undecodable(looked))
        return looked;
    log_warn("a stored value is not a JSON object", LOG_SLICE("key", kv.key),
             LOG_I64("revision", kv.mod_revision));
    list->undecodable++;
    *ret_selected = false;
    return list->call->api->config->skip_undecodable ? ST_OK : ST_MALFORMED;
}

/* Counts one more item; a comma precedes it, except the first. */
static enum status give(struct list_state *list, struct slice key, struct slice *ret_comma)
{
    *ret_comma = list->given++ ? SLICE_LITERAL(",") : SLICE_EMPTY;
    return list->given == list->limit ? reach_limit(list, key) : ST_OK;
}

/* Items of built-in kinds have no kind and apiVersion, those of custom resources do. */
static bool is_bare(const struct list_state *list)
{
    return !(list->shaping.kind->flags & KUBE_CUSTOM);
}

/* Prepares the next object for sending, unless it is not selected. ST_MALFORMED: not an object. */
static enum status make_item(struct list_state *list, struct kube_kv kv)
{
    struct kube_object object;
    struct slice comma;
    bool selected;
    TRY(look(list, kv, &object, &selected));
    if (!selected)
        return ST_OK;
    TRY(give(list, kv.key, &comma));
    if (list->shaping.shape == KUBE_WHOLE) {
        kube_object_writer_set_object(&list->writer, comma, &object, kv.mod_revision, is_bare(list),
                                      SLICE_EMPTY);
        return ST_OK;
    }
    TRY(buf_append(&list->writer.made, comma));
    TRY(kube_shape_item(&list->shaping, &object, kv.mod_revision, &list->writer.made));
    kube_object_writer_set_made(&list->writer);
    return ST_OK;
}

/* -- Batches -- */

static bool is_protobuf(const struct list_state *list)
{
    return list->call->accept.format == KUBE_PROTOBUF;
}

/* Sending the object takes more than scanning it. */
static bool converts(const struct list_state *list, int64_t revision)
{
    return is_protobuf(list) || list->shaping.shape == KUBE_TABLE ||
           !kube_conversion_is_plain(list->shaping.kind, revision);
}

static enum status append_item(const struct list_state *list, const struct kube_object *object,
                               int64_t revision, struct buf *to)
{
    if (list->shaping.shape != KUBE_WHOLE)
        return kube_shape_item(&list->shaping, object, revision, to);
    size_t size = kube_object_size(object, revision, is_bare(list));
    TRY(buf_reserve(to, size));
    to->len += kube_object_copy(object, revision, is_bare(list), 0, to->ptr + to->len, size);
    return ST_OK;
}

static enum status gather_item(struct list_state *list, const struct kube_object *object,
                               int64_t revision)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(append_item(list, object, revision, &text));
    return kube_format_list_field(list->call->kind, list->shaping.shape, "items", buf_slice(&text),
                                  &list->gathered);
}

static enum status convert_item(struct list_state *list, struct kube_kv kv)
{
    struct kube_object object;
    struct slice comma;
    bool selected;
    TRY(look(list, kv, &object, &selected));
    if (!selected)
        return ST_OK;
    TRY(give(list, kv.key, &comma));
    if (is_protobuf(list))
        return gather_item(list, &object, kv.mod_revision);
    TRY(buf_append(&list->writer.made, comma));
    return append_item(list, &object, kv.mod_revision, &list->writer.made);
}

/* Of objects after the limit only their existence matters. On any thread. */
static enum status convert_batch(struct list_state *list)
{
    struct slice rest = buf_slice(&list->batch);
    while (rest.len && !list->more) {
        size_t len;
        memcpy(&len, rest.ptr, sizeof(len));
        struct slice field = slice_sub(rest, sizeof(len), len);
        rest = slice_sub(rest, sizeof(len) + len, rest.len - sizeof(len) - len);
        list->more = list->limit && list->given == list->limit;
        if (!list->more)
            TRY(convert_item(list, kube_kv_of(field)));
    }
    return ST_OK;
}

static enum status finish_batch(struct list_state *list, enum status status)
{
    account_buf_reset(list->call->arena.account, &list->batch, BATCH_BYTES);
    if (list->more)
        move(list, LIST_END);
    if (status == ST_OK && list->writer.made.len)
        kube_object_writer_set_made(&list->writer);
    return status;
}

static void gather_on(struct list_state *list, enum status status);

static void batch_back(struct kube_call *call)
{
    struct list_state *list = call->handler;
    enum status status = finish_batch(list, list->batch_status);
    if (is_protobuf(list))
        gather_on(list, status);
    else if (status == ST_OK)
        http_wake(call->exchange);
    else
        http_abort(call->exchange);
}

static void batch_elsewhere(struct kube_call *call)
{
    struct list_state *list = call->handler;
    list->batch_status = convert_batch(list);
    bool defers = kube_call_defers(call, batch_back);
    assert(defers);
}

static enum status add_to_batch(struct list_state *list, struct slice field)
{
    struct account *account = list->call->arena.account;
    list->fetched++;
    TRY(account_append(account, &list->batch, slice_of(&field.len, sizeof(field.len))));
    return account_append(account, &list->batch, field);
}

/* Collects this object and those after it. The list may be away afterwards. */
static enum status begin_batch(struct list_state *list, struct slice field)
{
    do
        TRY(add_to_batch(list, field));
    while (list->batch.len < BATCH_BYTES && engine_range_next(&list->call->range, &field));
    if (kube_call_is_large(list->call, list->batch.len))
        return kube_call_send(list->call, batch_elsewhere);
    return finish_batch(list, convert_batch(list));
}

static enum status next_item(struct list_state *list)
{
    struct engine_range *range = &list->call->range;
    struct slice field;
    bool full = list->limit && list->given == list->limit;
    if (full && !list->scope.selection->selects)
        list->more = range->more;
    if ((!full || list->scope.selection->selects) && engine_range_next(range, &field)) {
        struct kube_kv kv = kube_kv_of(field);
        if (!full && !list->whole && converts(list, kv.mod_revision))
            return begin_batch(list, field);
        list->fetched++;
        if (!full)
            return make_item(list, kv);
        list->more = true;
    }
    move(list, LIST_END);
    return range->op.status;
}

/* Sends the gathered items between their head and tail. */
static enum status step_gathered(struct list_state *list)
{
    const struct kube_kind *kind = list->call->kind;
    AUTO(buf_fini) struct buf metadata = {0};
    AUTO(buf_fini) struct buf field = {0};
    switch (list->phase) {
    case LIST_HEAD: {
        size_t name = sizeof("\"metadata\":") - 1;
        TRY(append_metadata(list, &metadata));
        TRY(kube_format_list_field(kind, list->shaping.shape, "metadata",
                                   slice_sub(buf_slice(&metadata), name, metadata.len - name),
                                   &field));
        TRY(kube_format_list_head(kind, list->shaping.shape, field.len + list->gathered.len,
                                  &list->writer.made));
        move(list, LIST_ITEMS);
        return buf_append(&list->writer.made, buf_slice(&field));
    }
    case LIST_ITEMS:
        list->writer.made = list->gathered;
        list->gathered = (struct buf){0};
        move(list, LIST_END);
        return ST_OK;
    default:
        move(list, LIST_DONE);
        return buf_append(&list->writer.made, kube_format_list_tail());
    }
}

static enum status step(struct list_state *list)
{
    if (list->gathers) {
        TRY(step_gathered(list));
        kube_object_writer_set_made(&list->writer);
        return ST_OK;
    }
    switch (list->phase) {
    case LIST_HEAD:
        TRY(make_head(list));
        break;
    case LIST_ITEMS:
        return next_item(list);
    default:
        TRY(make_end(list));
        break;
    }
    kube_object_writer_set_made(&list->writer);
    return ST_OK;
}

/* Bytes that count against the budget; a converted object counts several times. */
static size_t looked(const struct list_state *list)
{
    enum { CONVERTED = 8 };
    const struct kube_accept *accept = &list->call->accept;
    bool converts = accept->shape != KUBE_WHOLE || accept->format != KUBE_JSON;
    return list->scope.looked * (converts ? CONVERTED : 1);
}

static enum http_fill fill_with(struct list_state *list, unsigned *budget, uint8_t *dst,
                                size_t room, size_t *ret_len)
{
    size_t n = 0;
    while (n < room) {
        bool sends = !kube_object_writer_empty(&list->writer);
        *ret_len = n;
        if (!sends && list->phase == LIST_DONE)
            return HTTP_FILL_DONE;
        if (!*budget && (!sends || list->packer)) {
            kube_search_wait(list->call->api->search_budget, &list->searcher, false);
            return HTTP_FILL_PARKED;
        }
        if (sends) {
            size_t sent = kube_object_writer_fill(&list->writer, dst + n, room - n);
            *budget -= list->packer ? kube_search_cost(COMPRESSED * sent, *budget) : 0;
            n += sent;
            continue;
        }
        list->scope.looked = 0;
        if (step(list) != ST_OK) {
            http_abort(list->call->exchange);
            return HTTP_FILL_DONE;
        }
        if (list->call->work.away)
            return HTTP_FILL_PARKED;
        *budget -= kube_search_cost(looked(list), *budget);
    }
    *ret_len = n;
    return HTTP_FILL_MORE;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct list_state *list = CONTAINER_OF(source, struct list_state, source);
    struct kube_search_budget *budget = list->call->api->search_budget;
    *ret_len = 0;
    if (list->call->work.away)
        return HTTP_FILL_PARKED;
    unsigned taken = kube_search_take(budget, &list->searcher, false), left = taken;
    enum http_fill said = fill_with(list, &left, dst, room, ret_len);
    kube_search_spend(budget, &list->searcher, taken - left);
    return said;
}

/* -- Answers -- */

static bool is_made(const struct list_state *list)
{
    return list->phase == LIST_DONE && kube_object_writer_empty(&list->writer);
}

/* Makes the whole list, or stops when it becomes too long. */
static enum status make_short(struct list_state *list, struct buf *to)
{
    while (!is_made(list) && looked(list) <= SHORT_LIST_LOOK_BYTES) {
        if (kube_object_writer_empty(&list->writer))
            TRY(step(list));
        size_t left = list->writer.length - list->writer.at;
        TRY(buf_reserve(to, left));
        to->len += kube_object_writer_fill(&list->writer, to->ptr + to->len, left);
    }
    return ST_OK;
}

static void fail_made(struct list_state *list, enum status status)
{
    struct kube_call *call = list->call;
    close_range(list);
    if (status == ST_MALFORMED || status == ST_INVALID)
        kube_fail(&call->status, KUBE_STORAGE_READ_ERROR,
                  "Internal error occurred: what is stored here is no object in JSON");
    else
        kube_fail_engine(&call->status, status);
    kube_call_fail(call);
}

static void fail_yaml(struct list_state *list)
{
    struct kube_call *call = list->call;
    close_range(list);
    call->accept_fail = (struct kube_accept){0};
    kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
              "lists of more than %d bytes are not written in YAML: ask for application/json, "
              "or for pages by limit",
              SHORT_LIST_BYTES);
    kube_call_fail(call);
}

/* Compresses the list while it is sent, as Kubernetes does with lists of this length. */
static struct http_source *source_of(struct list_state *list)
{
    struct kube_call *call = list->call;
    list->source.fill = fill;
    if (call->api->packers >= PACKERS_MAX ||
        !http_accepts_gzip(http_exchange_request(call->exchange)) ||
        gzip_source_new(&list->source, &list->packer) != ST_OK)
        return &list->source;
    call->api->packers++;
    if (http_add_field(call->exchange, SLICE_LITERAL("Content-Encoding"), SLICE_LITERAL("gzip")) ==
        ST_OK)
        return gzip_source_output(list->packer);
    return &list->source;
}

static void answer_long(struct list_state *list)
{
    struct kube_call *call = list->call;
    http_make_bulk(call->exchange);
    struct http_source *source = source_of(list);
    kube_call_begin(call, 200, kube_format_type(call->accept.format));
    http_set_source(call->exchange, source);
}

/* The list was short as stored and has become long by conversion: the rest is made as it is sent.
 */
static void answer_grown(struct list_state *list, struct buf *begun)
{
    if (list->call->accept.format != KUBE_JSON) {
        fail_yaml(list);
        return;
    }
    kube_object_writer_fini(&list->writer);
    list->writer.made = *begun;
    *begun = (struct buf){0};
    kube_object_writer_set_made(&list->writer);
    answer_long(list);
}

static void respond_short(struct kube_call *call)
{
    const struct list_state *list = call->handler;
    kube_call_respond(call, 200, buf_slice(&list->text));
}

static void answer_short(struct list_state *list)
{
    struct kube_call *call = list->call;
    list->whole = true;
    enum status status = make_short(list, &list->text);
    list->whole = false;
    if (status == ST_OK && !is_made(list)) {
        answer_grown(list, &list->text);
        return;
    }
    close_range(list);
    if (status == ST_OK)
        kube_call_work(call, kube_call_format_work(call, list->text.len), respond_short);
    else
        fail_made(list, status);
}

/* -- Protobuf -- */

static bool charge_gathered(struct list_state *list)
{
    size_t more = list->gathered.capacity - list->charged_bytes;
    if (more && !account_charge(list->call->arena.account, more))
        return false;
    list->charged_bytes += more;
    return true;
}

/* Counts the gathered bytes. False: too many; call->status says so. */
static bool count_gathered(struct list_state *list)
{
    struct kube_call *call = list->call;
    call->api->gathered_bytes += list->gathered.len - list->gathered_bytes;
    list->gathered_bytes = list->gathered.len;
    if (list->gathered.len > GATHER_BYTES_MAX)
        return kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                         "this list is longer than %d bytes in protobuf: ask for "
                         "application/json, or for pages by limit",
                         GATHER_BYTES_MAX);
    if (call->api->gathered_bytes <= GATHER_BYTES_MAX_ALL && charge_gathered(list))
        return true;
    kube_fail(&call->status, KUBE_TOO_MANY_REQUESTS,
              "too many long lists are being sent in protobuf: ask for application/json, or later");
    call->status.retry_after_s = 1;
    return false;
}

static void gather_on(struct list_state *list, enum status status)
{
    struct kube_call *call = list->call;
    if (status != ST_OK) {
        fail_made(list, status);
    } else if (!count_gathered(list)) {
        drop_gathered(list);
        close_range(list);
        kube_call_fail(call);
    } else if (list->phase == LIST_ITEMS) {
        loop_defer(call->api->loop, &list->again);
    } else {
        close_range(list);
        move(list, LIST_HEAD);
        list->gathers = true;
        answer_long(list);
    }
}

static void gather(struct list_state *list)
{
    enum status status = next_item(list);
    if (!list->call->work.away)
        gather_on(list, status);
}

/* A long list is sent as JSON if the client accepts it, because that is sent from the store. */
static void answer(struct list_state *list)
{
    struct kube_call *call = list->call;
    if (call->range.kvs_bytes <= SHORT_LIST_BYTES) {
        answer_short(list);
        return;
    }
    if (call->accept.format != KUBE_JSON && call->takes_json) {
        call->accept = call->accept_json;
        list->shaping = kube_shaping_of(call);
    }
    if (call->accept.format == KUBE_JSON) {
        answer_long(list);
    } else if (call->accept.format == KUBE_PROTOBUF) {
        move(list, LIST_ITEMS);
        gather(list);
    } else {
        fail_yaml(list);
    }
}

/* The token's revision is compacted: the client may continue with an inconsistent list. */
static void fail_expired(struct list_state *list)
{
    struct kube_call *call = list->call;
    struct kube_continue from;
    struct kube_status ignored;
    if (!call->query.continue_token.len) {
        kube_fail(&call->status, KUBE_EXPIRED,
                  "The resourceVersion for the provided list is too old.");
        return;
    }
    kube_fail(&call->status, KUBE_EXPIRED,
              "The provided continue parameter is too old to display a consistent list result. You "
              "can start a new list without the continue parameter, or use the continue token in "
              "this response to retrieve the remainder of the results. Continuing with the "
              "provided token results in an inconsistent list - objects that were created, "
              "modified, or deleted between the time the first chunk was returned and now may show "
              "up in the list.");
    if (kube_continue_read(&call->arena, call->query.continue_token, &from, &ignored) &&
        kube_continue_write(&call->arena, KUBE_AT_NEWEST, from.suffix,
                            &call->status.continue_token) != ST_OK)
        call->status.continue_token = SLICE_EMPTY;
}

static void on_range(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct list_state *list = call->handler;
    list->range_open = op->status == ST_OK;
    if (!call->exchange)
        close_range(list);
    if (!kube_call_done(call))
        return;
    if (op->status == ST_OK) {
        list->revision = list->request.revision ? list->request.revision : op->revision;
        answer(list);
        return;
    }
    if (op->status == ST_COMPACTED)
        fail_expired(list);
    else if (op->status == ST_FUTURE_REV)
        kube_fail_future(&call->status, list->request.revision, op->revision);
    else
        kube_fail_engine(&call->status, op->status);
    kube_call_fail(call);
}

/* -- Which revision -- */

static void on_fresh(struct kube_call *call, bool fresh)
{
    struct list_state *list = call->handler;
    if (fresh)
        kube_call_range(call, &list->request, on_range);
    else
        kube_call_fail(call);
}

static void on_again(struct deferred *deferred)
{
    struct list_state *list = CONTAINER_OF(deferred, struct list_state, again);
    turn_work_copy("listing in protobuf", slice_from_text(list->call->kind->plural), SLICE_EMPTY);
    gather(list);
    (void)turn_work_done();
}

static bool set_continue(struct list_state *list)
{
    struct kube_call *call = list->call;
    struct kube_continue from;
    struct slice prefix = list->scope.prefix;
    if (list->scope.revision)
        return kube_fail(&call->status, KUBE_BAD_REQUEST,
                         "specifying resource version is not allowed when using continue");
    if (!kube_continue_read(&call->arena, call->query.continue_token, &from, &call->status))
        return false;
    uint8_t *key = arena_alloc(&call->arena, prefix.len + from.suffix.len);
    if (!key)
        return kube_fail_engine(&call->status, ST_NOMEM);
    slice_copy(key, prefix);
    slice_copy(key + prefix.len, from.suffix);
    list->request.key = slice_of(key, prefix.len + from.suffix.len);
    list->request.revision = from.revision == KUBE_AT_NEWEST ? 0 : from.revision;
    return true;
}

static bool prepare(struct list_state *list)
{
    struct kube_call *call = list->call;
    const struct kube_query *query = &call->query;
    if (!kube_scope_init(&list->scope, call, false))
        return false;
    list->request.key = list->scope.key;
    list->request.range_end = list->scope.range_end;
    list->limit = query->limit;
    if (query->continue_token.len)
        return set_continue(list);
    /* As in Kubernetes: resourceVersion 0 means any version, and the limit is ignored. */
    if (list->scope.revision_given && !list->scope.revision && query->match != KUBE_MATCH_EXACT)
        list->limit = 0;
    bool exact = query->match == KUBE_MATCH_EXACT ||
                 (query->match == KUBE_MATCH_UNSET && list->limit && list->scope.revision);
    if (exact)
        list->request.revision = list->scope.revision;
    return true;
}

void kube_list(struct kube_call *call)
{
    struct list_state *list = arena_calloc(&call->arena, 1, sizeof(*list));
    if (!list) {
        kube_fail_engine(&call->status, ST_NOMEM);
        kube_call_fail(call);
        return;
    }
    call->handler = list;
    call->on_end = on_end;
    list->call = call;
    kube_searcher_init(&list->searcher, call->exchange);
    list->again.fn = on_again;
    list->shaping = kube_shaping_of(call);
    if (!prepare(list) || !kube_shape_fits(call, true)) {
        kube_call_fail(call);
        return;
    }
    if (!list->scope.selection->selects)
        list->request.limit = list->limit;
    kube_revision_wait_start(&list->fresh, call, list->scope.revision, on_fresh);
}
