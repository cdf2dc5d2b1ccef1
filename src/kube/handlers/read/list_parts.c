/*
 * The parts of a list: its head, its items and its end. Objects that are not sent in their stored
 * form are copied, some at a time, and converted on the worker.
 */
#include "base/log/log.h"
#include "base/memory/budget.h"
#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/format.h"
#include "kube/handlers/read/list_private.h"
#include "kube/request/continue.h"

/* Size of the objects that are converted together; the last may be more. */
enum { BATCH_BYTES = 128 << 10 };

#define TO(phase) (1u << KUBE_LIST_##phase)

static const unsigned moves[] = {
    [KUBE_LIST_HEAD] = TO(ITEMS),
    [KUBE_LIST_ITEMS] = TO(END),
    [KUBE_LIST_END] = TO(DONE) | TO(HEAD),
    [KUBE_LIST_DONE] = 0,
};

void kube_list_move(struct kube_list *list, enum kube_list_phase next)
{
    assert(moves[list->phase] & 1u << next);
    list->phase = next;
}

void kube_list_close_range(struct kube_list *list)
{
    if (list->range_open)
        engine_range_close(&list->call->range);
    list->range_open = false;
}

static enum status append_metadata(struct kube_list *list, struct buf *to)
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
                                  (long long)(list->total - list->limit)));
    }
    list->metadata_sent = true;
    return buf_append_text(to, "}");
}

/* Once all items are known. */
static enum status make_gathered_head(struct kube_list *list, struct buf *to)
{
    TRY(buf_append_text(to, "{"));
    TRY(kube_shape_list_head(&list->shaping, to));
    TRY(append_metadata(list, to));
    TRY(buf_append_text(to, ","));
    return kube_shape_list_items(&list->shaping, to);
}

/* The continue token is known only after the last item; with a limit the metadata is at the end. */
static enum status make_head(struct kube_list *list)
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
    kube_list_move(list, KUBE_LIST_ITEMS);
    return ST_OK;
}

/* The item just sent reached the limit. */
static enum status reach_limit(struct kube_list *list, struct slice key)
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

static enum status look(struct kube_list *list, struct kube_kv kv, struct kube_object *ret_object,
                        bool *ret_selected)
{
    enum status looked =
        kube_scope_look(&list->scope, list->shaping.shape, kv, ret_object, ret_selected);
    if (!kube_is_undecodable(looked))
        return looked;
    if (kube_conversion_awaits(list->shaping.kind, kv.value)) {
        list->unexpected = true;
        return ST_MALFORMED;
    }
    log_warn("a stored value is not a JSON object", LOG_SLICE("key", kv.key),
             LOG_I64("revision", kv.mod_revision));
    list->undecodable++;
    *ret_selected = false;
    return list->call->api->config->skip_undecodable ? ST_OK : ST_MALFORMED;
}

/* Reads an object. If it is selected, it is the next item. ST_MALFORMED: it is not an object. */
static enum status take_item(struct kube_list *list, struct kube_kv kv,
                             struct kube_object *ret_object, struct slice *ret_comma,
                             bool *ret_selected)
{
    TRY(look(list, kv, ret_object, ret_selected));
    if (!*ret_selected)
        return ST_OK;
    *ret_comma = list->given++ ? SLICE_LITERAL(",") : SLICE_EMPTY; /* before all but the first */
    return list->given == list->limit ? reach_limit(list, kv.key) : ST_OK;
}

/* Prepares an object for sending if it is selected. */
static enum status make_item(struct kube_list *list, struct kube_kv kv)
{
    struct kube_object object;
    struct slice comma;
    bool selected;
    TRY(take_item(list, kv, &object, &comma, &selected));
    if (!selected)
        return ST_OK;
    if (list->shaping.shape == KUBE_WHOLE) {
        kube_object_writer_set_object(&list->writer, comma, &object, kv.mod_revision,
                                      !(list->shaping.kind->flags & KUBE_CUSTOM), SLICE_EMPTY);
        return ST_OK;
    }
    TRY(buf_append(&list->writer.made, comma));
    TRY(kube_shape_item(&list->shaping, &object, kv.mod_revision, &list->writer.made));
    kube_object_writer_set_made(&list->writer);
    return ST_OK;
}

/* -- Batches -- */

static enum status append_item(const struct kube_list *list, const struct kube_object *object,
                               int64_t revision, struct buf *to)
{
    if (list->shaping.shape != KUBE_WHOLE)
        return kube_shape_item(&list->shaping, object, revision, to);
    size_t size = kube_object_size(object, revision, !(list->shaping.kind->flags & KUBE_CUSTOM));
    TRY(buf_reserve(to, size));
    to->len += kube_object_copy(object, revision, !(list->shaping.kind->flags & KUBE_CUSTOM), 0,
                                to->ptr + to->len, size);
    return ST_OK;
}

/* revision: that of the object, which may differ from kv.mod_revision (conversion_batch.h). */
static enum status convert_item(struct kube_list *list, struct kube_kv kv, int64_t revision)
{
    struct kube_object object;
    struct slice comma;
    bool selected;
    TRY(take_item(list, kv, &object, &comma, &selected));
    if (!selected)
        return ST_OK;
    if (list->call->accept.format == KUBE_PROTOBUF) {
        AUTO(buf_fini) struct buf text = {0};
        TRY(append_item(list, &object, revision, &text));
        return kube_format_list_field(list->call->kind, list->shaping.shape, "items",
                                      buf_slice(&text), &list->gathered);
    }
    struct buf *to = list->converts ? &list->gathered : &list->writer.made;
    TRY(buf_append(to, comma));
    return append_item(list, &object, revision, to);
}

/* Objects after the limit are only counted. On any thread. */
static enum status convert_batch(struct kube_list *list)
{
    struct slice rest = buf_slice(&list->batch);
    while (rest.len && !list->more) {
        size_t len;
        memcpy(&len, rest.ptr, sizeof(len));
        struct slice field = slice_sub(rest, sizeof(len), len);
        rest = slice_sub(rest, sizeof(len) + len, rest.len - sizeof(len) - len);
        list->more = list->limit && list->given == list->limit;
        struct kube_kv kv = kube_kv_of(field);
        if (!list->more)
            TRY(convert_item(list, kv, kv.mod_revision));
    }
    return ST_OK;
}

/* The same for objects that a webhook has converted. */
static enum status convert_held(struct kube_list *list)
{
    const struct kube_conversion_batch *batch = list->converted.batch;
    size_t count = kube_conversion_batch_count(batch);
    for (size_t i = 0; i < count && !list->more; i++) {
        int64_t revision;
        struct kube_kv kv = kube_conversion_batch_get(batch, i, &revision);
        list->more = list->limit && list->given == list->limit;
        if (!list->more)
            TRY(convert_item(list, kv, revision));
    }
    return ST_OK;
}

static enum status finish_batch(struct kube_list *list, enum status status)
{
    account_buf_reset(list->call->arena.account, &list->batch, BATCH_BYTES);
    kube_conversion_batch_free(TAKE(list->converted.batch));
    if (list->more)
        kube_list_move(list, KUBE_LIST_END);
    if (status == ST_OK && list->writer.made.len)
        kube_object_writer_set_made(&list->writer);
    return status;
}

static void batch_back(struct kube_call *call)
{
    struct kube_list *list = call->handler.list;
    list->on_batch(list, finish_batch(list, list->batch_status));
}

static void batch_elsewhere(struct kube_call *call)
{
    struct kube_list *list = call->handler.list;
    list->batch_status = list->converts ? convert_held(list) : convert_batch(list);
    bool defers = kube_call_defers(call, batch_back);
    assert(defers);
}

static enum status add_to_batch(struct kube_list *list, struct slice field)
{
    struct account *account = list->call->arena.account;
    list->fetched++;
    TRY(account_append(account, &list->batch, slice_of(&field.len, sizeof(field.len))));
    return account_append(account, &list->batch, field);
}

enum status kube_list_next_item(struct kube_list *list)
{
    struct engine_range *range = &list->call->range;
    struct slice field;
    bool full = list->limit && list->given == list->limit;
    if (full && !list->scope.selection->selects)
        list->more = range->more;
    if ((!full || list->scope.selection->selects) && engine_range_next(range, &field)) {
        struct kube_kv kv = kube_kv_of(field);
        if (!full && !list->whole &&
            (list->call->accept.format == KUBE_PROTOBUF || list->shaping.shape == KUBE_TABLE ||
             !kube_conversion_is_plain(list->shaping.kind, kv.mod_revision))) {
            /* Converting takes long: this object and those after it are collected, and the list may
             * be away afterwards. */
            do
                TRY(add_to_batch(list, field));
            while (list->batch.len < BATCH_BYTES && engine_range_next(&list->call->range, &field));
            if (kube_call_is_large(list->call, list->batch.len))
                return kube_call_send(list->call, batch_elsewhere);
            return finish_batch(list, convert_batch(list));
        }
        list->fetched++;
        if (!full)
            return make_item(list, kv);
        list->more = true;
    }
    kube_list_move(list, KUBE_LIST_END);
    return range->op.status;
}

/* -- Objects that a webhook converts -- */

static void take_held(struct kube_converted_range *range, enum status status)
{
    struct kube_list *list = CONTAINER_OF(range, struct kube_list, converted);
    struct kube_call *call = list->call;
    if (status == ST_OK && kube_call_is_large(call, kube_conversion_batch_bytes(range->batch)))
        status = kube_call_send(call, batch_elsewhere);
    else if (status == ST_OK)
        status = convert_held(list);
    if (!call->work.away)
        list->on_batch(list, finish_batch(list, status));
}

static void on_opened(struct engine_op *op)
{
    kube_converted_range_opened(&kube_call_of_range(op)->handler.list->converted, op);
}

void kube_list_begin_converted(struct kube_list *list)
{
    list->converts = true;
    list->converted = (struct kube_converted_range){
        .call = list->call,
        .request = &list->request,
        .open = &list->range_open,
        .revision = list->revision,
        .left = list->call->range.kvs,
        .opened = on_opened,
        .ready = take_held,
    };
}

enum status kube_list_next_converted(struct kube_list *list)
{
    bool selects = list->scope.selection->selects;
    bool full = list->limit && list->given == list->limit;
    if (!full && list->converted.left) {
        kube_converted_range_next(&list->converted);
        return ST_OK;
    }
    list->more = full && (selects ? list->converted.left > 0 : list->left_out);
    kube_list_move(list, KUBE_LIST_END);
    return ST_OK;
}

/* Sends the gathered items between their head and tail. */
static enum status step_gathered(struct kube_list *list)
{
    const struct kube_kind *kind = list->call->kind;
    AUTO(buf_fini) struct buf metadata = {0};
    AUTO(buf_fini) struct buf field = {0};
    switch (list->phase) {
    case KUBE_LIST_HEAD: {
        size_t name = sizeof("\"metadata\":") - 1;
        if (list->converts && list->call->accept.format != KUBE_PROTOBUF) {
            kube_list_move(list, KUBE_LIST_ITEMS);
            return make_gathered_head(list, &list->writer.made);
        }
        TRY(append_metadata(list, &metadata));
        TRY(kube_format_list_field(kind, list->shaping.shape, "metadata",
                                   slice_sub(buf_slice(&metadata), name, metadata.len - name),
                                   &field));
        TRY(kube_format_list_head(kind, list->shaping.shape, field.len + list->gathered.len,
                                  &list->writer.made));
        kube_list_move(list, KUBE_LIST_ITEMS);
        return buf_append(&list->writer.made, buf_slice(&field));
    }
    case KUBE_LIST_ITEMS:
        list->writer.made = list->gathered;
        list->gathered = (struct buf){0};
        list->charged_made += list->charged_bytes;
        list->charged_bytes = 0;
        kube_list_move(list, KUBE_LIST_END);
        return ST_OK;
    default:
        kube_list_move(list, KUBE_LIST_DONE);
        return buf_append(&list->writer.made,
                          list->converts && list->call->accept.format != KUBE_PROTOBUF
                              ? SLICE_LITERAL("]}\n")
                              : kube_format_list_tail());
    }
}

static enum status end(struct kube_list *list, struct buf *to)
{
    kube_list_close_range(list);
    TRY(buf_append_text(to, "]"));
    if (!list->metadata_sent) {
        TRY(buf_append_text(to, ","));
        TRY(append_metadata(list, to));
    }
    kube_list_move(list, KUBE_LIST_DONE);
    return buf_append_text(to, "}\n");
}

enum status kube_list_step(struct kube_list *list)
{
    if (list->gathers) {
        TRY(step_gathered(list));
        kube_object_writer_set_made(&list->writer);
        return ST_OK;
    }
    switch (list->phase) {
    case KUBE_LIST_HEAD:
        TRY(make_head(list));
        break;
    case KUBE_LIST_ITEMS:
        return kube_list_next_item(list);
    default:
        TRY(end(list, &list->writer.made));
        break;
    }
    kube_object_writer_set_made(&list->writer);
    return ST_OK;
}
