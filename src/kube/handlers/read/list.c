/*
 * GET of a collection: one range of the store at one revision, sent as it is read. A short list is
 * made first, so that it can be indented, has a length, and can fail with a Status.
 *
 *     kube_list ─► (wait for a revision) ─► range ─► head ─► item… ─► end
 */
#include "base/memory/budget.h"
#include "base/metric/turn.h"
#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/read/list_private.h"
#include "kube/handlers/read/read.h"
#include "kube/request/continue.h"
#include "zip/gzip.h"
#include "zip/gzip_source.h"

enum {
    SHORT_LIST_BYTES = 128 * 1024,
    SHORT_LIST_LOOK_BYTES = 1 << 20,  /* size of its objects with their defaults */
    GATHER_BYTES_MAX = 64 << 20,      /* limit on the size of one list that is gathered */
    GATHER_BYTES_MAX_ALL = 128 << 20, /* limit on the size of all of them of a shard, in protobuf */
    CONVERT_BYTES_MAX_ALL = 256 << 20, /* the same of those that webhooks convert, */
    CONVERT_BYTES_MAX_EACH = CONVERT_BYTES_MAX_ALL / 4, /* and of one definition */
    COMPRESSED = 16,   /* compressing one byte takes as long as scanning this many */
    PACKERS_MAX = 256, /* per shard; further lists are sent uncompressed */
};

/* Lists that a webhook converts are counted for themselves, because they are held while they wait
 * for it. */
static void hold_gathered(struct kube_list *list, size_t bytes)
{
    struct kube_call *call = list->call;
    size_t *all = &call->api->gathered_bytes;
    if (list->converts) {
        size_t *each = &kube_custom_of(call->kind)->definition->webhook.list_bytes;
        *each = *each - list->gathered_bytes + bytes;
        all = &call->api->converted_bytes;
    }
    *all = *all - list->gathered_bytes + bytes;
    list->gathered_bytes = bytes;
}

static bool others_fit(const struct kube_list *list)
{
    const struct kube_call *call = list->call;
    if (!list->converts)
        return call->api->gathered_bytes <= GATHER_BYTES_MAX_ALL;
    return call->api->converted_bytes <= CONVERT_BYTES_MAX_ALL &&
           kube_custom_of(call->kind)->definition->webhook.list_bytes <= CONVERT_BYTES_MAX_EACH;
}

static void drop_gathered(struct kube_list *list)
{
    struct kube_call *call = list->call;
    hold_gathered(list, 0);
    buf_fini(&list->gathered);
    account_release(call->arena.account, list->charged_bytes);
    list->charged_bytes = 0;
}

/* Charges what is held until the client reads it. While the list is away, that belongs to the
 * worker. */
static enum status charge_made(struct kube_list *list)
{
    assert(!list->call->work.away);
    struct account *account = list->call->arena.account;
    TRY(account_follow(account, &list->writer.made, &list->charged_made));
    return account_follow(account, &list->text, &list->charged_text);
}

static void release(struct kube_call *call)
{
    struct kube_list *list = call->handler.list;
    struct kube_status ignored;
    if (list->unexpected)
        (void)kube_conversion_distrust(call->kind, &ignored);
    account_buf_fini(call->arena.account, &list->batch);
    list->fetched += list->converted.read;
    list->undecodable += list->converted.undecodable;
    if (list->converted.call)
        kube_converted_range_fini(&list->converted);
    buf_fini(&list->text);
    kube_count_total(&call->api->counter,
                     call->api->config->skip_undecodable ? KUBE_TOTAL_SKIPPED
                                                         : KUBE_TOTAL_UNDECODABLE,
                     list->undecodable);
    kube_list_close_range(list);
    kube_object_writer_fini(&list->writer);
    (void)!charge_made(list); /* releases it */
    kube_scope_fini(&list->scope);
    if (list->packer) {
        call->api->packers--;
        gzip_source_free(TAKE(list->packer));
    }
    drop_gathered(list);
    kube_count(&call->api->counter, call->kind, KUBE_COUNT_LISTS, 1);
    kube_count(&call->api->counter, call->kind, KUBE_COUNT_FETCHED, list->fetched);
    kube_count(&call->api->counter, call->kind, KUBE_COUNT_RETURNED, (uint64_t)list->given);
}

static void on_end(struct kube_call *call)
{
    struct kube_list *list = call->handler.list;
    kube_searcher_fini(&list->searcher);
    loop_defer_cancel(&list->again);
    kube_revision_wait_cancel(&list->fresh);
    if (call->work.away)
        call->on_free = release; /* when it is back */
    else
        release(call);
}

/* Bytes that count against the budget; a converted object counts several times. */
static size_t looked(const struct kube_list *list)
{
    enum { CONVERTED = 8 };
    const struct kube_accept *accept = &list->call->accept;
    bool converts = accept->shape != KUBE_WHOLE || accept->format != KUBE_JSON;
    return list->scope.looked * (converts ? CONVERTED : 1);
}

static enum http_fill fill_with(struct kube_list *list, unsigned *budget, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    size_t n = 0;
    while (n < room) {
        bool sends = !kube_object_writer_empty(&list->writer);
        *ret_len = n;
        if (!sends && list->phase == KUBE_LIST_DONE)
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
        if (kube_list_step(list) != ST_OK) {
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
    struct kube_list *list = CONTAINER_OF(source, struct kube_list, source);
    struct kube_search_budget *budget = list->call->api->search_budget;
    *ret_len = 0;
    if (list->call->work.away)
        return HTTP_FILL_PARKED;
    unsigned taken = kube_search_take(budget, &list->searcher, false), left = taken;
    enum http_fill said = fill_with(list, &left, dst, room, ret_len);
    kube_search_spend(budget, &list->searcher, taken - left);
    if (list->call->work.away || charge_made(list) == ST_OK)
        return said;
    http_abort(list->call->exchange);
    return HTTP_FILL_DONE;
}

/* -- Answers -- */

static bool is_made(const struct kube_list *list)
{
    return list->phase == KUBE_LIST_DONE && kube_object_writer_empty(&list->writer);
}

/* Makes the whole list, or stops when it becomes too long. */
static enum status make_short(struct kube_list *list, struct buf *to)
{
    while (!is_made(list) && looked(list) <= SHORT_LIST_LOOK_BYTES) {
        if (kube_object_writer_empty(&list->writer))
            TRY(kube_list_step(list));
        size_t left = list->writer.length - list->writer.at;
        TRY(buf_reserve(to, left));
        to->len += kube_object_writer_fill(&list->writer, to->ptr + to->len, left);
    }
    return ST_OK;
}

/* The token's revision is compacted: the client may continue with an inconsistent list. */
static void fail_expired(struct kube_list *list)
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

static void fail_made(struct kube_list *list, enum status status)
{
    struct kube_call *call = list->call;
    kube_list_close_range(list);
    if (list->unexpected)
        (void)kube_conversion_distrust(call->kind, &call->status);
    else if (status == ST_MALFORMED || status == ST_INVALID)
        kube_fail_stored(&call->status);
    else if (status == ST_COMPACTED)
        fail_expired(list);
    else if (status != ST_CANCELED) /* the webhook has failed: call->status says how */
        kube_fail_engine(&call->status, status);
    kube_call_fail(call);
}

static void fail_yaml(struct kube_list *list)
{
    struct kube_call *call = list->call;
    kube_list_close_range(list);
    call->accept_fail = (struct kube_accept){0};
    kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
              "lists of more than %d bytes are not written in YAML: ask for application/json, "
              "or for pages by limit",
              SHORT_LIST_BYTES);
    kube_call_fail(call);
}

/* Compresses the list while it is sent, as Kubernetes does with lists of this length. */
static struct http_source *source_of(struct kube_list *list)
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

static void answer_long(struct kube_list *list)
{
    struct kube_call *call = list->call;
    http_make_bulk(call->exchange);
    struct http_source *source = source_of(list);
    kube_call_begin(call, 200, kube_format_type(call->accept.format));
    http_set_source(call->exchange, source);
}

/* The list was short as stored and has become long by conversion: the rest is made as it is sent.
 */
static void answer_grown(struct kube_list *list, struct buf *begun)
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
    const struct kube_list *list = call->handler.list;
    kube_call_respond(call, 200, buf_slice(&list->text));
}

static void answer_short(struct kube_list *list)
{
    struct kube_call *call = list->call;
    list->whole = true;
    enum status status = make_short(list, &list->text);
    list->whole = false;
    if (status == ST_OK && !is_made(list)) {
        answer_grown(list, &list->text);
        return;
    }
    kube_list_close_range(list);
    if (status == ST_OK)
        status = charge_made(list);
    if (status == ST_OK)
        kube_call_work(call, kube_call_format_work(call, list->text.len), respond_short);
    else
        fail_made(list, status);
}

/* -- Gathered lists: in protobuf, or of objects that a webhook converts -- */

static bool charge_gathered(struct kube_list *list)
{
    size_t more = list->gathered.capacity - list->charged_bytes;
    if (more && !account_charge(list->call->arena.account, more))
        return false;
    list->charged_bytes += more;
    return true;
}

/* Counts the gathered bytes. False: too many; call->status says so. */
static bool count_gathered(struct kube_list *list)
{
    struct kube_call *call = list->call;
    hold_gathered(list, list->gathered.len);
    if (list->gathered.len > GATHER_BYTES_MAX)
        return kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                         list->converts
                             ? "this list is longer than %d bytes, and its objects are converted "
                               "by a webhook: ask for pages by limit"
                             : "this list is longer than %d bytes in protobuf: ask for "
                               "application/json, or for pages by limit",
                         GATHER_BYTES_MAX);
    if (others_fit(list) && charge_gathered(list))
        return true;
    kube_fail(&call->status, KUBE_TOO_MANY_REQUESTS,
              list->converts
                  ? "too many long lists are being converted by webhooks: ask for pages by limit, "
                    "or later"
                  : "too many long lists are being sent in protobuf: ask for application/json, or "
                    "later");
    call->status.retry_after_s = 1;
    return false;
}

static void answer_gathered(struct kube_list *list)
{
    struct kube_call *call = list->call;
    bool protobuf = call->accept.format == KUBE_PROTOBUF;
    list->scope.looked = 0;
    if (!protobuf && list->gathered.len <= SHORT_LIST_BYTES) {
        answer_short(list);
        return;
    }
    if (!protobuf && call->accept.format != KUBE_JSON && call->takes_json &&
        call->accept_json.shape == call->accept.shape)
        call->accept = call->accept_json;
    if (protobuf || call->accept.format == KUBE_JSON)
        answer_long(list);
    else
        fail_yaml(list);
}

static void gather_on(struct kube_list *list, enum status status)
{
    struct kube_call *call = list->call;
    if (status != ST_OK) {
        fail_made(list, status);
    } else if (!count_gathered(list)) {
        drop_gathered(list);
        kube_list_close_range(list);
        kube_call_fail(call);
    } else if (list->phase == KUBE_LIST_ITEMS) {
        loop_defer(call->api->loop, &list->again);
    } else {
        kube_list_close_range(list);
        kube_list_move(list, KUBE_LIST_HEAD);
        list->gathers = true;
        answer_gathered(list);
    }
}

static void on_batch(struct kube_list *list, enum status status)
{
    if (list->converts || list->call->accept.format == KUBE_PROTOBUF)
        gather_on(list, status);
    else if (status == ST_OK && charge_made(list) == ST_OK)
        http_wake(list->call->exchange);
    else
        http_abort(list->call->exchange);
}

static void gather(struct kube_list *list)
{
    enum status status =
        list->converts ? kube_list_next_converted(list) : kube_list_next_item(list);
    if (!list->call->work.away && !list->converted.waits)
        gather_on(list, status);
}

/* A long list is sent as JSON if the client accepts it, because that is sent from the store. */
static void answer(struct kube_list *list)
{
    struct kube_call *call = list->call;
    if (kube_conversion_by_webhook(call->kind)) {
        kube_list_begin_converted(list);
        kube_list_move(list, KUBE_LIST_ITEMS);
        gather(list);
        return;
    }
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
        kube_list_move(list, KUBE_LIST_ITEMS);
        gather(list);
    } else {
        fail_yaml(list);
    }
}

static void on_range(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_list *list = call->handler.list;
    list->range_open = op->status == ST_OK;
    if (!call->exchange)
        kube_list_close_range(list); /* the client has gone */
    if (!kube_call_done(call))
        return;
    if (op->status == ST_OK) {
        list->revision = list->request.revision ? list->request.revision : op->revision;
        list->total = call->range.count;
        list->left_out = call->range.more;
        answer(list);
        return;
    }
    if (op->status == ST_COMPACTED)
        fail_expired(list);
    else if (op->status == ST_FUTURE_REV)
        kube_fail_future(&call->status, list->request.revision, op->revision);
    else
        (void)kube_call_set_engine(call, op->status);
    kube_call_fail(call);
}

/* -- Which revision -- */

static void on_fresh(struct kube_call *call, bool fresh)
{
    struct kube_list *list = call->handler.list;
    if (fresh)
        kube_call_range(call, &list->request, on_range);
    else
        kube_call_fail(call);
}

static void on_again(struct deferred *deferred)
{
    struct kube_list *list = CONTAINER_OF(deferred, struct kube_list, again);
    turn_work_copy("listing in protobuf", slice_from_text(list->call->kind->plural), SLICE_EMPTY);
    gather(list);
    (void)turn_work_done();
}

static bool set_continue(struct kube_list *list)
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

static bool prepare(struct kube_list *list)
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
    list->request.serializable = list->scope.revision_given; /* not older than that */
    return true;
}

void kube_list(struct kube_call *call)
{
    struct kube_list *list = arena_calloc(&call->arena, 1, sizeof(*list));
    if (!list) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    call->handler.list = list;
    call->on_end = on_end;
    list->call = call;
    kube_searcher_init(&list->searcher, call->exchange);
    list->again.fn = on_again;
    list->on_batch = on_batch;
    list->shaping = kube_shaping_of(call);
    if (!prepare(list) || !kube_shape_fits(call, true)) {
        kube_call_fail(call);
        return;
    }
    if (!list->scope.selection->selects)
        list->request.limit = list->limit;
    kube_revision_wait_start(&list->fresh, call, list->scope.revision, on_fresh);
}
