/*
 * A watch: the current objects, if the client asked for them, and then every change. HTTP pulls it:
 * for a client that does not read, the cursor stays where it is and nothing is buffered.
 *
 *     (range) ─► INITIAL ─► LIVE
 *        └──────────────────┘▲
 *     INITIAL, LIVE ─► FAILED: one ERROR event, then the end of the answer
 *
 * INITIAL: an ADDED event for each object of the range, while the cursor stays after its revision.
 * An open range pins the store, so the range of a client that reads nothing is closed after one or
 * two minutes. When it reads again, another one continues after the last object, at the same state.
 * LIVE: the events of the cursor.
 *
 * It ends with 410 when its generation ends, and when its user has lost the right to it.
 *
 * A version from before the first state of the mirror is not known here. A few watches from there
 * are passed on: their clients have listed before the mirror began, in a list that was passed on.
 */
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/call/format.h"
#include "kube/types/storage.h"
#include "tier/call/pass.h"
#include "tier/object/object.h"
#include "tier/object/table.h"
#include "tier/read/events.h"
#include "tier/read/request.h"
#include "tier/read/tags.h"

enum {
    REST_BYTES_MAX = 64 * 1024, /* unsent rest of an event that is copied; more is read again */
    MIN_TIMEOUT_S = 1800,       /* default timeout; jittered up to twice this */
    NEAR_REVISIONS = 1000,      /* a watch at most this far behind counts as following */
};
#define BOOKMARK_NS (60 * NS_PER_S)
#define LAST_BOOKMARK_NS (2 * NS_PER_S) /* before the deadline, as in Kubernetes */
#define FAREWELL_NS (10 * NS_PER_S)     /* for a client that does not read the end */

enum watch_phase { WATCH_INITIAL, WATCH_LIVE, WATCH_FAILED };

struct tier_watch {
    struct http_source source;
    struct kube_life life;
    struct http_exchange *exchange;
    struct tier_api *api;
    struct watch_cursor *cursor;        /* owned; NULL after a failure */
    struct kube_selection *selection;   /* a reference */
    struct tier_collection *collection; /* a reference */
    struct tier_tagged *tagged;         /* it is found by a tag; NULL: by its keys */
    const struct kube_kind *kind;
    uint64_t generation;
    uint64_t after; /* versions up to this one are not sent: the client has them */
    enum watch_phase phase : 8;
    enum tier_encoding encoding : 8;
    bool bookmarks : 1; /* were requested */
    bool bookmark_due : 1;
    bool ending : 1;      /* the deadline has passed, or the server stops */
    bool has_columns : 1; /* the columns of Tables were sent, with the first one */
    size_t at;            /* bytes of the cursor's event that were sent */
    struct buf made;      /* to be sent before anything else */
    size_t made_at, charged;
    uint64_t sent, sent_before;
    struct kube_shaping *table;   /* owned; objects are shown as Tables. NULL: as they are */
    struct tier_initial *initial; /* owned; NULL once the initial events are sent */
    struct kube_searcher searcher;
    struct tier_standing standing;
    struct tier_change_listener listener;
    struct timer bookmark;
    int64_t deadline_ns;
    uint64_t bookmark_version; /* no bookmark has a lower one */
};

/* State until the initial events are sent. */
struct tier_initial {
    struct tier_request *r; /* owned; its range is open, unless the client did not read */
    struct slice last;      /* the last object of the open range that was taken; empty: none */
    struct buf scratch;
    uint64_t version;       /* that of the state, as the client gets it */
    uint64_t state_version; /* and as the mirror has it */
    /* When the range is closed: */
    struct buf start;          /* the key where it continues, unless it has not begun */
    struct deferred continues; /* opens it, outside of a fill */
    enum status status;        /* why it could not be opened */
};

/* -- The end -- */

static void end_initial_state(struct tier_watch *w)
{
    if (!w->initial)
        return;
    loop_defer_cancel(&w->initial->continues);
    tier_request_free(w->initial->r);
    buf_fini(&w->initial->scratch);
    buf_fini(&w->initial->start);
    free(w->initial);
    w->initial = NULL;
}

static void on_end(struct kube_life *life)
{
    struct tier_watch *w = CONTAINER_OF(life, struct tier_watch, life);
    end_initial_state(w);
    tier_count(w->api, TIER_TOTAL_WATCHES_ENDED);
    tier_standing_remove(&w->standing);
    tier_reader_unlisten(&w->listener);
    kube_searcher_fini(&w->searcher);
    loop_timer_cancel(w->api->loop, &w->bookmark);
    watch_cursor_free(w->cursor);
    tier_tags_leave(w->tagged);
    buf_fini(&w->made);
    (void)!account_follow(http_exchange_account(w->exchange), &w->made, &w->charged);
    kube_selection_unref(w->selection);
    tier_collection_close(w->collection);
    free(w->table);
    free(w);
}

/* Sends the status as an ERROR event, which is the last. */
static enum status fail(struct tier_watch *w, const struct kube_status *status)
{
    end_initial_state(w);
    watch_cursor_free(TAKE(w->cursor));
    w->phase = WATCH_FAILED;
    return kube_format_error(status, tier_encoding_is_protobuf(w->encoding), &w->made);
}

/* The history that the watch needs is gone. */
static enum status fail_expired(struct tier_watch *w)
{
    struct kube_status status = {0};
    struct tier_view view;
    tier_collection_look(w->collection, &view);
    (void)!kube_fail_expired(&status, (int64_t)w->bookmark_version, (int64_t)view.oldest);
    return fail(w, &status);
}

static enum status fail_engine(struct tier_watch *w, enum status engine)
{
    struct kube_status status = {0};
    if (engine == ST_COMPACTED)
        return fail_expired(w);
    (void)!kube_fail_engine(&status, engine);
    return fail(w, &status);
}

/* From outside of a fill: nothing can be sent in the middle of an event. */
static void fail_now(struct tier_watch *w, const struct kube_status *status)
{
    if (w->phase == WATCH_FAILED)
        return;
    if (!w->at && !w->made.len && fail(w, status) == ST_OK)
        http_wake(w->exchange);
    else
        http_abort(w->exchange);
}

/* -- Bookmarks -- */

static struct tier_kind kind_of(const struct tier_watch *w)
{
    struct tier_view view;
    tier_collection_look(w->collection, &view);
    return tier_kind_of(w->encoding, &view);
}

static enum status make_bookmark(struct tier_watch *w, uint64_t version, bool ends_initial)
{
    struct tier_kind kind = kind_of(w);
    w->bookmark_version = version;
    return tier_append_bookmark(w->encoding, &kind, version, ends_initial, &w->made);
}

static enum status make_due_bookmark(struct tier_watch *w)
{
    uint64_t version;
    w->bookmark_due = false;
    if (!tier_collection_version(w->collection, w->generation, watch_cursor_revision(w->cursor),
                                 &version))
        return fail_expired(w);
    return version < w->bookmark_version ? ST_OK : make_bookmark(w, version, false);
}

/* -- Objects -- */

/* An event: what precedes the object, the object, and what follows it. */
struct whole_event {
    uint8_t head[TIER_EVENT_HEAD_BYTES];
    struct slice pieces[3];
    size_t bytes;
};

static void set_event(struct whole_event *whole, enum tier_encoding encoding, enum tier_event event,
                      struct slice object)
{
    size_t head_bytes = tier_event_head(encoding, event, object.len, whole->head);
    whole->pieces[0] = slice_of(whole->head, head_bytes);
    whole->pieces[1] = object;
    whole->pieces[2] = tier_event_tail(encoding);
    whole->bytes = head_bytes + object.len + whole->pieces[2].len;
}

/* Copies from this byte on what fits, and returns its length. */
static size_t copy_event(const struct whole_event *whole, size_t at, uint8_t *dst, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(whole->pieces) && n < room; i++) {
        struct slice piece = whole->pieces[i];
        size_t skip = size_min(at, piece.len), len = size_min(piece.len - skip, room - n);
        slice_copy(dst + n, slice_sub(piece, skip, len));
        at -= skip;
        n += len;
    }
    return n;
}

/* It is made whole: made once more, it could be of another length, because ages grow. */
static enum status make_table(struct tier_watch *w, enum tier_event event, struct slice bytes)
{
    TRY(tier_append_table_event(w->table, event, bytes, !w->has_columns, &w->made));
    w->has_columns = true;
    tier_count(w->api, TIER_TOTAL_EVENTS);
    return ST_OK;
}

/* Sends what fits. The rest is copied if the object may be gone when there is room again, unless it
 * is so long that it is read again. *ret_done: nothing of it is to be read again. */
static enum status send_object(struct tier_watch *w, enum tier_event event, struct slice bytes,
                               bool may_go, uint8_t *dst, size_t room, size_t *ret_len,
                               bool *ret_done)
{
    struct whole_event whole;
    *ret_done = true;
    if (w->table)
        return make_table(w, event, bytes);
    set_event(&whole, w->encoding, event, bytes);
    *ret_len = copy_event(&whole, w->at, dst, room);
    w->at += *ret_len;
    size_t rest = whole.bytes - w->at;
    *ret_done = !rest || (may_go && rest <= REST_BYTES_MAX);
    if (!*ret_done)
        return ST_OK;
    if (rest) {
        TRY(buf_reserve(&w->made, rest));
        w->made.len += copy_event(&whole, w->at, w->made.ptr + w->made.len, rest);
    }
    w->at = 0;
    tier_count(w->api, TIER_TOTAL_EVENTS);
    return ST_OK;
}

/* -- Initial events -- */

static enum status end_initial(struct tier_watch *w)
{
    uint64_t version = w->initial->version;
    end_initial_state(w);
    w->phase = WATCH_LIVE;
    w->bookmark_version = version;
    return w->bookmarks ? make_bookmark(w, version, true) : ST_OK;
}

/* False: JSON without what the selection requires, which need not be parsed. */
static bool may_match(const struct tier_watch *w, struct slice bytes)
{
    return tier_encoding_is_protobuf(w->encoding) || kube_selection_may_match(w->selection, bytes);
}

/* Continues with the object that was sent in part, or with the next one. ST_END: there is none. */
static enum status take_initial(struct tier_watch *w)
{
    struct tier_initial *initial = w->initial;
    struct engine_range *read = &initial->r->read;
    if (w->at && initial->last.len)
        return ST_OK;
    if (!engine_range_next(read, &initial->last))
        return read->op.status != ST_OK ? read->op.status : ST_END;
    bool is_same = slice_equal(kube_kv_of(initial->last).key, buf_slice(&initial->start));
    return !w->at || is_same ? ST_OK : ST_CLOSED;
}

/* ST_AGAIN: the range is being opened again, and the watch will be woken. */
static enum status await_range(struct tier_watch *w)
{
    struct tier_initial *initial = w->initial;
    if (initial->r->read_open)
        return ST_OK;
    if (initial->status != ST_OK)
        return initial->status;
    if (!initial->r->read_under_way)
        loop_defer(w->api->loop, &initial->continues);
    return ST_AGAIN;
}

static enum status step_initial(struct tier_watch *w, uint8_t *dst, size_t room, size_t *ret_len,
                                size_t *ret_looked)
{
    bool is_new = !w->at, done;
    enum status status = await_range(w);
    if (status == ST_AGAIN)
        return status;
    if (status == ST_OK)
        status = take_initial(w);
    if (status != ST_OK && w->at)
        return ST_CLOSED; /* an event that was sent in part is completed or cut off */
    if (status != ST_OK)
        return status == ST_END ? end_initial(w) : fail_engine(w, status);
    struct slice bytes = kube_kv_of(w->initial->last).value;
    if (is_new && w->selection->selects) {
        struct kube_object view;
        *ret_looked = bytes.len;
        if (!may_match(w, bytes) ||
            tier_object_view(w->encoding, w->kind, bytes, &w->initial->scratch, &view) != ST_OK ||
            !kube_selection_matches(w->selection, &view))
            return ST_OK;
    }
    if (w->table)
        *ret_looked = bytes.len;
    /* The range keeps the object. */
    return send_object(w, TIER_EVENT_ADDED, bytes, false, dst, room, ret_len, &done);
}

static void on_continued(struct tier_request *r)
{
    struct tier_watch *w = r->watch;
    w->initial->status = r->read.op.status;
    http_wake(w->exchange);
}

/* At the revision of the state; or, if the history from there is gone, at one that has the same
 * state. */
static void continue_initial(struct deferred *deferred)
{
    struct tier_initial *initial = CONTAINER_OF(deferred, struct tier_initial, continues);
    struct tier_request *r = initial->r;
    struct tier_watch *w = r->watch;
    if (initial->start.len)
        r->wanted.key = buf_slice(&initial->start);
    if (tier_collection_revision(w->collection, w->generation, initial->state_version,
                                 &r->wanted.revision)) {
        tier_request_reopen(r, on_continued);
        return;
    }
    initial->status = ST_COMPACTED;
    http_wake(w->exchange);
}

/* Copies where the range continues, and the rest of an object unless it is long. */
static enum status keep_place(struct tier_watch *w)
{
    struct tier_initial *initial = w->initial;
    struct kube_kv last = kube_kv_of(initial->last);
    struct buf start = {0};
    bool done = true;
    size_t len;
    if (w->at)
        TRY(send_object(w, TIER_EVENT_ADDED, last.value, true, NULL, 0, &len, &done));
    TRY(buf_append(&start, last.key));
    if (done && buf_append(&start, slice_of("", 1)) != ST_OK) { /* the first key after it */
        buf_fini(&start);
        return ST_NOMEM;
    }
    buf_fini(&initial->start);
    initial->start = start;
    initial->last = SLICE_EMPTY;
    return ST_OK;
}

/* The client does not read: nothing is pinned for it any more. ST_NOMEM. */
static enum status park_initial(struct tier_watch *w)
{
    struct tier_request *r = w->initial->r;
    if (r->read_open && w->initial->last.len)
        TRY(keep_place(w));
    tier_request_close_range(r);
    return ST_OK;
}

/* -- Changes -- */

static enum status send_change(struct tier_watch *w, const struct watch_event *event,
                               int64_t revision, uint8_t *dst, size_t room, size_t *ret_len,
                               size_t *ret_looked)
{
    struct tier_watched watched = {w->encoding, w->kind, w->selection};
    struct tier_shown shown;
    uint64_t version;
    bool done;
    if (!event->tombstone)
        version = (uint64_t)kube_kv_of(event->field).version;
    else if (!tier_collection_change(w->collection, w->generation, revision, &version))
        return w->at ? ST_CLOSED : fail_expired(w);
    if (version <= w->after) {
        watch_cursor_take(w->cursor);
        return ST_OK;
    }
    *ret_looked = w->selection->selects || w->table ? event->field.len : 0;
    enum status status =
        tier_event_look(w->api->events, w->cursor, event, revision, version, &watched, &shown);
    if (status != ST_OK && status != ST_NOMEM && !w->at)
        return fail_engine(w, status == ST_MALFORMED ? ST_DAMAGED : status);
    TRY(status);
    done = true;
    if (shown.event != TIER_EVENT_NONE)
        TRY(send_object(w, shown.event, shown.bytes, true, dst, room, ret_len, &done));
    if (done)
        watch_cursor_take(w->cursor);
    return ST_OK;
}

/* ST_END, ST_AGAIN: there is nothing to send now; the watch will be woken. */
static enum status step_live(struct tier_watch *w, uint8_t *dst, size_t room, size_t *ret_len,
                             size_t *ret_looked)
{
    const struct watch_event *event;
    int64_t revision;
    enum status status = watch_cursor_next(w->cursor, &event, &revision);
    if (w->at && status != ST_OK)
        return status; /* an event that was sent in part is completed or cut off */
    if (w->bookmark_due && !w->at && (status == ST_END || w->ending))
        return make_due_bookmark(w);
    if (w->ending && !w->at)
        return ST_OK;
    if (status == ST_END || status == ST_AGAIN)
        return status;
    return status == ST_OK ? send_change(w, event, revision, dst, room, ret_len, ret_looked)
                           : fail_engine(w, status);
}

/* -- Filling -- */

static size_t send_made(struct tier_watch *w, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, w->made.len - w->made_at);
    slice_copy(dst, slice_of(w->made.ptr + w->made_at, n));
    w->made_at += n;
    if (w->made_at == w->made.len) {
        buf_fini(&w->made);
        w->made_at = 0;
    }
    return n;
}

static bool follows(const struct tier_watch *w)
{
    return w->phase == WATCH_LIVE && watch_cursor_behind(w->cursor) <= NEAR_REVISIONS;
}

/* The answer cannot end properly in the middle of an event. */
static enum http_fill cut_off(struct tier_watch *w)
{
    http_abort(w->exchange);
    return HTTP_FILL_DONE;
}

static bool is_over(const struct tier_watch *w)
{
    return w->phase == WATCH_FAILED || (w->ending && !w->bookmark_due);
}

static enum http_fill fill_with(struct tier_watch *w, unsigned *budget, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    enum status status = ST_OK;
    size_t n = 0;
    while (n < room && status == ST_OK) {
        size_t len = 0, looked = 0;
        if (w->made.len) {
            len = send_made(w, dst + n, room - n);
        } else if (!w->at && is_over(w)) {
            return HTTP_FILL_DONE;
        } else if (!*budget) {
            kube_search_wait(&w->api->search_budget, &w->searcher, follows(w));
            return HTTP_FILL_PARKED;
        } else {
            status = w->phase == WATCH_INITIAL ? step_initial(w, dst + n, room - n, &len, &looked)
                                               : step_live(w, dst + n, room - n, &len, &looked);
            *budget -= len ? 0 : kube_search_cost(looked, *budget);
        }
        w->sent += len;
        *ret_len = n += len;
    }
    if (status == ST_END || status == ST_AGAIN)
        return HTTP_FILL_PARKED;
    return status == ST_OK ? HTTP_FILL_MORE : cut_off(w);
}

/* Only what is kept beyond the turn is charged to the connection. ST_NOMEM: it was refused. */
static enum status charge(struct tier_watch *w)
{
    if (LIKELY(w->made.capacity == w->charged))
        return ST_OK;
    enum status status = account_follow(http_exchange_account(w->exchange), &w->made, &w->charged);
    if (status != ST_OK)
        w->made_at = 0; /* the refused buffer is empty now */
    return status;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct tier_watch *w = CONTAINER_OF(source, struct tier_watch, source);
    struct kube_search_budget *budget = &w->api->search_budget;
    *ret_len = 0;
    unsigned taken = kube_search_take(budget, &w->searcher, follows(w)), left = taken;
    enum http_fill said = fill_with(w, &left, dst, room, ret_len);
    kube_search_spend(budget, &w->searcher, taken - left);
    return charge(w) == ST_OK ? said : cut_off(w);
}

/* -- What wakes it -- */

static void wake(void *ctx)
{
    struct tier_watch *w = ctx;
    if (w->phase == WATCH_LIVE)
        http_wake(w->exchange);
}

static void soon(void *ctx)
{
    const struct tier_watch *w = ctx;
    http_wake_soon(w->exchange);
    if (w->cursor)
        watch_cursor_fetch(w->cursor);
}

static void on_lost(struct tier_standing *standing, enum tier_verdict verdict,
                    const struct kube_status *status)
{
    (void)verdict;
    fail_now(CONTAINER_OF(standing, struct tier_watch, standing), status);
}

/* The generation has ended: what happened between the two states is not known. */
static void on_changed(struct tier_change_listener *listener)
{
    struct tier_watch *w = CONTAINER_OF(listener, struct tier_watch, listener);
    struct kube_status status = {0};
    struct tier_view view;
    tier_collection_look(w->collection, &view);
    if (view.generation == w->generation)
        return;
    (void)!kube_fail_expired(&status, (int64_t)w->bookmark_version, (int64_t)view.oldest);
    fail_now(w, &status);
}

/* Jittered by a tenth, so that watches that began together are not all woken together; the last
 * bookmark comes shortly before the deadline. */
static void set_bookmark(struct tier_watch *w)
{
    int64_t now_ns = loop_now_ns(w->api->loop);
    int64_t last_ns = w->deadline_ns - LAST_BOOKMARK_NS;
    int64_t next_ns =
        now_ns + random_between(&w->api->random, BOOKMARK_NS / 10 * 9, BOOKMARK_NS / 10 * 11);
    w->sent_before = w->sent;
    if (now_ns < last_ns)
        loop_timer_set(w->api->loop, &w->bookmark, next_ns < last_ns ? next_ns : last_ns);
}

static void on_bookmark(struct timer *timer)
{
    struct tier_watch *w = CONTAINER_OF(timer, struct tier_watch, bookmark);
    bool reads = w->phase != WATCH_INITIAL || w->sent != w->sent_before;
    if (w->ending || (!reads && (park_initial(w) != ST_OK || charge(w) != ST_OK))) {
        http_abort(w->exchange);
        return;
    }
    set_bookmark(w);
    w->bookmark_due = w->bookmarks && w->phase == WATCH_LIVE;
    if (w->bookmark_due)
        http_wake(w->exchange);
}

static struct tier_watch *watch_of(const struct http_exchange *x)
{
    return CONTAINER_OF((struct kube_life *)http_exchange_user(x), struct tier_watch, life);
}

static void on_leave(struct http_exchange *x)
{
    struct tier_watch *w = watch_of(x);
    w->ending = true;
    w->bookmark_due = w->bookmarks && w->phase == WATCH_LIVE;
    loop_timer_set(w->api->loop, &w->bookmark, loop_now_ns(w->api->loop) + FAREWELL_NS);
    http_wake(x);
}

/* The last bookmark was sent before the deadline, or there is no time for one. */
static void on_deadline(struct http_exchange *x)
{
    on_leave(x);
    watch_of(x)->bookmark_due = false;
}

/* -- The beginning -- */

static bool open_cursor(struct tier_watch *w, const struct tier_request *r, int64_t from,
                        struct kube_status *status)
{
    uint8_t room[TIER_TAG_BYTES_MAX];
    struct slice tag = SLICE_EMPTY;
    w->tagged = tier_tags_join(w->api->tags, r->view.prefix, w->encoding, w->kind, w->selection,
                               room, &tag);
    struct watch_cursor_options options = {.key = r->range.key,
                                           .range_end = r->range.range_end,
                                           .tag = tag,
                                           .tag_within =
                                               !r->range.prefix.len && r->range.range_end.len,
                                           .from = from,
                                           .wake = wake,
                                           .soon = soon,
                                           .ctx = w};
    w->cursor = watch_cursor_new(engine_watch_hub(w->api->shard), &options);
    if (w->cursor)
        return true;
    (void)!kube_fail(status, KUBE_TOO_MANY_REQUESTS,
                     "there are as many watches as this server takes");
    status->retry_after_s = 1;
    return false;
}

static void begin_answer(struct tier_watch *w, int64_t seconds)
{
    struct http_exchange *x = w->exchange;
    if (seconds <= 0)
        seconds = random_between(&w->api->random, MIN_TIMEOUT_S, 2 * MIN_TIMEOUT_S - 1);
    if (seconds > INT32_MAX)
        seconds = INT32_MAX;
    http_begin(x, 200, tier_content_type(w->encoding, true));
    http_set_source(x, &w->source);
    w->deadline_ns = loop_now_ns(w->api->loop) + seconds * NS_PER_S;
    http_set_deadline(x, http_exchange_now(x) + seconds * NS_PER_S, on_deadline);
    set_bookmark(w);
    http_park(x, on_leave);
}

static struct tier_watch *watch_new(struct tier_request *r)
{
    struct tier_watch *w = xcalloc(1, sizeof(*w));
    w->source.fill = fill;
    w->life.end = on_end;
    w->exchange = r->exchange;
    w->api = r->api;
    w->selection = kube_selection_ref(r->selection);
    w->collection = tier_collection_ref(r->collection);
    w->kind = r->ask.kind;
    w->generation = r->view.generation;
    w->encoding = r->ask.encoding;
    if (tier_ask_is_table(&r->ask)) {
        w->table = xcalloc(1, sizeof(*w->table));
        *w->table = r->ask.shaping;
    }
    w->bookmarks = r->ask.query.allow_bookmarks;
    w->bookmark.fn = on_bookmark;
    w->standing.lost = on_lost;
    w->listener.changed = on_changed;
    kube_searcher_init(&w->searcher, w->exchange);
    tier_reader_listen(w->api->reader, &w->listener, w->collection);
    tier_count(w->api, TIER_TOTAL_WATCHES);
    return w;
}

static bool begin_initial(struct tier_watch *w, struct tier_request *r)
{
    w->phase = WATCH_INITIAL;
    w->initial = xcalloc(1, sizeof(*w->initial));
    w->initial->r = r;
    w->initial->continues.fn = continue_initial;
    r->watch = w;
    if (!tier_request_version(r, &w->initial->version))
        return false;
    w->initial->state_version = w->initial->version;
    if (r->ask.freshness == TIER_NOT_OLDER && w->initial->version < r->ask.version)
        w->initial->version = r->ask.version; /* a fence has shown it */
    w->after = w->initial->version;
    return true;
}

/* The generation may have ended before the watch listened: while its objects were read. */
static bool has_ended(const struct tier_watch *w)
{
    struct tier_view view;
    tier_collection_look(w->collection, &view);
    return view.generation != w->generation;
}

static bool add_standing(struct tier_watch *w, struct tier_request *r, struct kube_status *status)
{
    return tier_standing_add(w->api->rights, &w->standing, r->user, &r->access) == ST_OK ||
           kube_fail_engine(status, ST_NOMEM);
}

/* Not `known`: the history from there is gone, and the answer is only the event that says so. */
static void begin(struct tier_request *r, int64_t from, bool initial, bool known)
{
    struct tier_watch *w = watch_new(r);
    struct kube_status status = {0};
    int64_t seconds = r->ask.query.timeout_s;
    struct http_exchange *x = r->exchange;
    w->phase = WATCH_LIVE;
    w->after = r->ask.freshness == TIER_AFTER ? r->ask.version : 0;
    w->bookmark_version = r->ask.version;
    bool fine = open_cursor(w, r, from, &status) && add_standing(w, r, &status);
    if (initial)
        known = begin_initial(w, r);
    tier_request_detach(r, &w->life); /* the watch owns the exchange */
    if (!initial)
        tier_request_free(r);
    if (!fine)
        tier_refuse(x, &status);
    else if ((!known || has_ended(w)) && fail_expired(w) != ST_OK)
        http_abort(x);
    else
        begin_answer(w, seconds);
}

static void on_state(struct tier_request *r)
{
    begin(r, tier_request_revision(r) + 1, true, true);
}

static bool is_void(const struct tier_view *view, uint64_t version)
{
    return version > view->void_after && version <= view->void_until;
}

void tier_watch(struct tier_request *r)
{
    int64_t revision = r->revision;
    bool after = r->ask.freshness == TIER_AFTER;
    if (r->ask.initial_events) {
        tier_request_range(r, on_state);
        return;
    }
    /* From now on: from the newest version that readers see. */
    uint64_t version = after ? r->ask.version : r->view.newest;
    bool known = tier_collection_revision(r->collection, r->view.generation, version, &revision) &&
                 !(after && is_void(&r->view, version));
    /* Its client has listed at the kube-apiserver, perhaps before the mirror began. */
    if (!known && after && tier_collection_pass_early(r->collection, r->view.generation))
        tier_request_pass_on(r);
    else
        begin(r, known ? revision + 1 : 0, false, known);
}
