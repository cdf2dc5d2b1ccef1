/*
 * GET of a collection: one range of the store at one revision, sent as it is read.
 *
 *     (SIZING ─► range again) ─► ITEMS ─► TAIL ─► DONE
 *
 * SIZING: the head of a list in protobuf has the length of all items, and with a limit and
 * selectors it is only known afterwards whether the list continues, which the head says. Such a
 * list is read twice, at the same revision.
 */
#include "kube/request/continue.h"
#include "kube/types/storage.h"
#include "tier/call/pass.h"
#include "tier/object/object.h"
#include "tier/object/table.h"
#include "tier/read/request.h"
#include "zip/gzip.h"
#include "zip/gzip_source.h"

enum {
    PACKED_BYTES_MIN = 128 * 1024, /* Kubernetes compresses what is longer */
    PACKERS_MAX = 256,             /* per thread; further lists are sent uncompressed */
    COMPRESSED = 16,               /* compressing one byte takes as long as scanning this many */
};

enum list_phase { LIST_SIZING, LIST_ITEMS, LIST_DONE };

struct tier_list {
    struct http_source source;
    struct gzip_source *packer; /* owned; NULL: not compressed */
    struct tier_request *r;
    struct kube_searcher searcher;
    struct deferred again; /* continues sizing in the next turn */
    enum list_phase phase;
    struct tier_kind kind;
    struct buf scratch;    /* what selectors see of protobuf */
    struct buf made;       /* the head; then, in a Table, the row */
    int64_t limit;         /* 0: none */
    int64_t given, total;  /* items sent; and to be sent, after SIZING */
    size_t items_bytes;    /* those of protobuf, with their heads */
    uint64_t sized_bytes;  /* those of all items, in any encoding, after SIZING */
    struct slice last_key; /* copy of the key of the last item, once the limit is reached */
    bool more;             /* there are items after the limit */
    uint64_t version;
    /* What is being sent: three pieces, of which `at` bytes were sent. */
    uint8_t head[TIER_ITEM_HEAD_BYTES];
    struct slice pieces[3];
    size_t at, length;
};

static void on_over(struct tier_request *r)
{
    struct tier_list *list = r->list;
    kube_searcher_fini(&list->searcher);
    loop_defer_cancel(&list->again);
    if (list->packer) {
        r->api->packers--;
        gzip_source_free(TAKE(list->packer));
    }
    buf_fini(&list->scratch);
    buf_fini(&list->made);
}

static bool is_protobuf(const struct tier_list *list)
{
    return tier_encoding_is_protobuf(list->r->ask.encoding);
}

/* -- Items -- */

static enum status is_selected(struct tier_list *list, struct slice bytes, bool *ret_selected)
{
    const struct tier_request *r = list->r;
    struct kube_object view;
    *ret_selected = true;
    if (!r->selection->selects)
        return ST_OK;
    if (!is_protobuf(list) && !kube_selection_may_match(r->selection, bytes)) {
        *ret_selected = false;
        return ST_OK;
    }
    TRY(tier_object_view(r->ask.encoding, r->ask.kind, bytes, &list->scratch, &view));
    *ret_selected = kube_selection_matches(r->selection, &view);
    return ST_OK;
}

/* The next object of the selection. ST_END: there is none. ST_AGAIN: one was examined that is not
 * selected. */
static enum status next_item(struct tier_list *list, struct kube_kv *ret_kv)
{
    struct slice field;
    bool selected;
    if (!engine_range_next(&list->r->read, &field)) {
        enum status status = list->r->read.op.status;
        return status == ST_OK ? ST_END : status;
    }
    *ret_kv = kube_kv_of(field);
    TRY(is_selected(list, ret_kv->value, &selected));
    return selected ? ST_OK : ST_AGAIN;
}

static void set_pieces(struct tier_list *list, struct slice a, struct slice b, struct slice c)
{
    list->pieces[0] = a;
    list->pieces[1] = b;
    list->pieces[2] = c;
    list->at = 0;
    list->length = a.len + b.len + c.len;
}

static enum status set_item(struct tier_list *list, struct slice bytes)
{
    const struct tier_ask *ask = &list->r->ask;
    struct slice comma = list->given ? SLICE_LITERAL(",") : SLICE_EMPTY;
    if (tier_ask_is_table(ask)) {
        list->made.len = 0;
        TRY(tier_append_row(&ask->shaping, bytes, &list->made));
        set_pieces(list, comma, buf_slice(&list->made), SLICE_EMPTY);
        return ST_OK;
    }
    if (is_protobuf(list)) {
        struct slice message = tier_object_message(bytes);
        size_t head = tier_list_item_head(message.len, list->head);
        set_pieces(list, slice_of(list->head, head), message, SLICE_EMPTY);
        return ST_OK;
    }
    struct slice head = SLICE_EMPTY, item = bytes;
    if (!list->kind.has_kinds)
        item = tier_object_item(bytes, &head);
    set_pieces(list, comma, head, item);
    return ST_OK;
}

static size_t copy_pieces(struct tier_list *list, uint8_t *dst, size_t room)
{
    size_t n = 0, start = 0;
    for (size_t i = 0; i < COUNT_OF(list->pieces) && n < room; i++) {
        struct slice piece = list->pieces[i];
        if (list->at < start + piece.len) {
            size_t from = list->at - start, len = size_min(piece.len - from, room - n);
            slice_copy(dst + n, slice_sub(piece, from, len));
            n += len;
            list->at += len;
        }
        start += piece.len;
    }
    if (list->at == list->length)
        list->at = list->length = 0;
    return n;
}

/* -- Sending -- */

/* Sets what is sent next. */
static enum status step(struct tier_list *list, size_t *ret_looked)
{
    struct kube_kv kv;
    enum status status = ST_END;
    if (list->given < list->total || list->total < 0)
        status = next_item(list, &kv);
    if (status == ST_END) {
        list->phase = LIST_DONE;
        set_pieces(list, tier_list_tail(list->r->ask.encoding), SLICE_EMPTY, SLICE_EMPTY);
        return list->total < 0 || list->given == list->total ? ST_OK : ST_CLOSED;
    }
    *ret_looked = kv.value.len;
    if (status != ST_OK)
        return status == ST_AGAIN ? ST_OK : status;
    TRY(set_item(list, kv.value));
    list->given++;
    return ST_OK;
}

static enum http_fill fill_with(struct tier_list *list, unsigned *budget, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    size_t n = 0;
    while (n < room) {
        *ret_len = n;
        if (!list->length && list->phase == LIST_DONE)
            return HTTP_FILL_DONE;
        if (!*budget && (!list->length || list->packer)) {
            kube_search_wait(&list->r->api->search_budget, &list->searcher, false);
            return HTTP_FILL_PARKED;
        }
        if (list->length) {
            size_t sent = copy_pieces(list, dst + n, room - n);
            *budget -= list->packer ? kube_search_cost(COMPRESSED * sent, *budget) : 0;
            n += sent;
            continue;
        }
        size_t looked = 0;
        if (step(list, &looked) != ST_OK) {
            http_abort(list->r->exchange);
            return HTTP_FILL_DONE;
        }
        bool looks = list->r->selection->selects || tier_ask_is_table(&list->r->ask);
        *budget -= kube_search_cost(looks ? looked : 0, *budget);
    }
    *ret_len = n;
    return HTTP_FILL_MORE;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct tier_list *list = CONTAINER_OF(source, struct tier_list, source);
    struct kube_search_budget *budget = &list->r->api->search_budget;
    unsigned taken = kube_search_take(budget, &list->searcher, false), left = taken;
    *ret_len = 0;
    enum http_fill said = fill_with(list, &left, dst, room, ret_len);
    kube_search_spend(budget, &list->searcher, taken - left);
    return said;
}

/* -- The head -- */

/* k8s counts what remains only without selectors. */
static enum status make_meta(struct tier_list *list, struct tier_list_meta *meta)
{
    struct tier_request *r = list->r;
    *meta = (struct tier_list_meta){.version = list->version, .remaining = -1};
    if (!list->more)
        return ST_OK;
    size_t before = TIER_PREFIX_BYTES + r->range.prefix.len;
    uint8_t *suffix = arena_alloc(&r->arena, list->last_key.len - before + 1);
    if (!suffix)
        return ST_NOMEM;
    struct slice rest = slice_sub(list->last_key, before, list->last_key.len - before);
    slice_copy(suffix, rest);
    suffix[rest.len] = 0; /* the first key after it */
    if (!r->selection->selects)
        meta->remaining = r->read.count - list->total;
    return kube_continue_write(&r->arena, (int64_t)list->version, slice_of(suffix, rest.len + 1),
                               &meta->continue_token);
}

static enum status append_head(struct tier_list *list, const struct tier_list_meta *meta)
{
    const struct tier_ask *ask = &list->r->ask;
    if (tier_ask_is_table(ask))
        return tier_append_table_head(&ask->shaping, meta, &list->made);
    return tier_append_list_head(ask->encoding, &list->kind, meta, list->items_bytes, &list->made);
}

/* Items of a list that is sent while it is read are as long as those of the collection on average,
 * and with a selector there are fewer. */
static uint64_t length_of(const struct tier_list *list)
{
    const struct tier_view *view = &list->r->view;
    if (list->total >= 0)
        return list->sized_bytes;
    return view->objects ? view->bytes / view->objects * (uint64_t)list->r->read.count : 0;
}

/* Compresses the list while it is sent. */
static struct http_source *source_of(struct tier_list *list)
{
    struct tier_api *api = list->r->api;
    struct http_exchange *x = list->r->exchange;
    list->source.fill = fill;
    if (length_of(list) <= PACKED_BYTES_MIN || api->packers >= PACKERS_MAX ||
        !http_accepts_gzip(http_exchange_request(x)) ||
        gzip_source_new(&list->source, &list->packer) != ST_OK)
        return &list->source;
    api->packers++;
    if (http_add_field(x, SLICE_LITERAL("Content-Encoding"), SLICE_LITERAL("gzip")) != ST_OK ||
        http_add_field(x, SLICE_LITERAL("Vary"), SLICE_LITERAL("Accept-Encoding")) != ST_OK)
        return NULL;
    return gzip_source_output(list->packer);
}

static void send_list(struct tier_request *r)
{
    struct tier_list *list = r->list;
    struct tier_list_meta meta;
    list->phase = LIST_ITEMS;
    if (make_meta(list, &meta) != ST_OK || append_head(list, &meta) != ST_OK) {
        http_abort(r->exchange);
        return;
    }
    set_pieces(list, buf_slice(&list->made), SLICE_EMPTY, SLICE_EMPTY);
    struct http_source *source = source_of(list);
    if (!source) {
        http_abort(r->exchange);
        return;
    }
    http_make_bulk(r->exchange);
    http_begin(r->exchange, 200, tier_content_type(r->ask.encoding, false));
    http_set_source(r->exchange, source);
}

/* -- Sizing -- */

static bool is_full(const struct tier_list *list)
{
    return list->limit && list->total == list->limit;
}

static void fail_sizing(struct tier_list *list, enum status status)
{
    if (status == ST_NOMEM)
        http_abort(list->r->exchange);
    else
        tier_request_pass_on(list->r);
}

/* The range is read once more, at the same revision, and sent. */
static void read_again(struct tier_list *list)
{
    struct tier_request *r = list->r;
    if (!r->wanted.revision)
        r->wanted.revision = tier_request_revision(r);
    tier_request_range(r, send_list);
}

static void size(struct tier_list *list)
{
    struct tier_request *r = list->r;
    struct kube_search_budget *budget = &r->api->search_budget;
    unsigned taken = kube_search_take(budget, &list->searcher, false), left = taken;
    enum status status = ST_OK;
    while (left && (status == ST_OK || status == ST_AGAIN)) {
        struct kube_kv kv = {0};
        status = next_item(list, &kv);
        if (status != ST_OK && status != ST_AGAIN)
            break;
        left -= kube_search_cost(r->selection->selects ? kv.value.len : 0, left);
        if (status == ST_AGAIN)
            continue;
        if (is_full(list)) {
            list->more = true;
            status = ST_END;
            break;
        }
        list->total++;
        list->sized_bytes += kv.value.len;
        list->items_bytes +=
            is_protobuf(list) ? tier_list_item_bytes(tier_object_message(kv.value).len) : 0;
        if (is_full(list) && arena_dup(&r->arena, kv.key, &list->last_key) != ST_OK)
            status = ST_NOMEM;
    }
    kube_search_spend(budget, &list->searcher, taken - left);
    if (status == ST_END)
        read_again(list);
    else if (status == ST_OK || status == ST_AGAIN)
        loop_defer(r->api->loop, &list->again);
    else
        fail_sizing(list, status);
}

static void on_again(struct deferred *deferred)
{
    size(CONTAINER_OF(deferred, struct tier_list, again));
}

static void on_open(struct tier_request *r)
{
    struct tier_list *list = r->list;
    if (!tier_request_version(r, &list->version)) {
        tier_request_pass_on(r);
        return;
    }
    /* The state at a version that a token or the request has named is called by that. */
    if (r->ask.freshness == TIER_EXACT)
        list->version = r->ask.version;
    /* A fence has shown that the state has everything up to the requested version. */
    if (r->ask.freshness == TIER_NOT_OLDER && list->version < r->ask.version)
        list->version = r->ask.version;
    if (is_protobuf(list) || list->limit) {
        list->phase = LIST_SIZING;
        size(list);
        return;
    }
    list->total = -1;
    send_list(r);
}

void tier_list(struct tier_request *r)
{
    struct tier_list *list = arena_calloc(&r->arena, 1, sizeof(*list));
    if (!list) {
        http_abort(r->exchange);
        return;
    }
    r->list = list;
    r->on_over = on_over;
    list->r = r;
    list->limit = r->ask.limit;
    list->kind = tier_kind_of(r->ask.encoding, &r->view);
    list->again.fn = on_again;
    kube_searcher_init(&list->searcher, r->exchange);
    tier_count(r->api, TIER_TOTAL_LISTS);
    if (r->ask.freshness == TIER_EXACT &&
        !tier_collection_revision(r->collection, r->view.generation, r->ask.version,
                                  &r->wanted.revision)) {
        tier_request_pass_on(r);
        return;
    }
    if (!r->selection->selects && list->limit)
        r->wanted.limit = list->limit + 1;
    tier_request_range(r, on_open);
}
