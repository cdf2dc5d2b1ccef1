#include "kube/handlers/read/event_conversions.h"

#include "base/container/hash_map.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/call/conversion_batch.h"
#include "kube/custom/conversion_review.h"

/*
 * NEW: to be sent at the end of the turn; SENT: in a batch; READY, FAILED: it has its result.
 *
 *     NEW ─► SENT ─┬─► READY
 *      ▲       │   └─► FAILED
 *      └───────┘ (another object of its batch has failed: it is sent alone)
 */
enum entry_state { NEW, SENT, READY, FAILED };

#define TO(state) (1u << (state))
static const unsigned moves[] = {
    [NEW] = TO(SENT) | TO(FAILED),
    [SENT] = TO(NEW) | TO(READY) | TO(FAILED),
    [READY] = 0,
    [FAILED] = 0,
};

/* What the objects of one definition take, of whatever revision it is. It ends with the last. */
struct share {
    struct kube_event_conversions *conversions;
    size_t refs;             /* entries and batches */
    struct account *account; /* a reference; NULL without a budget */
    size_t pending_bytes;
    size_t name_len;
    uint8_t name[]; /* that of the definition */
};

struct kube_conversion_entry {
    enum entry_state state;
    struct share *share;                /* a reference */
    struct kube_definition *definition; /* a reference */
    const struct kube_custom *to;
    struct sent_batch *sent; /* while SENT */
    bool alone;              /* it is sent without others */
    bool listed;             /* the map finds it */
    bool waking;             /* its watches are being woken; it is not freed */
    struct list link;  /* in `fresh` while NEW, in the batch while SENT, in `kept` when READY */
    struct list waits; /* kube_conversion_wait.in_entry */
    struct buf json;   /* what is converted; when READY, the result */
    struct kube_kv kv; /* key and revision; the key is in `key` */
    struct kube_status *status; /* owned; when FAILED: it is long, and most entries never fail */
    struct buf why;             /* its text */
    size_t key_len;
    uint8_t key[]; /* in the map: `to`, the revision, the key */
};

struct sent_batch {
    struct kube_event_conversions *conversions;
    struct share *share; /* a reference */
    struct list link;    /* in `batches` */
    struct list entries; /* in the order of the batch */
    size_t count;
    size_t needed;                       /* entries for which watches wait */
    struct kube_conversion_batch *batch; /* owned */
};

struct kube_event_conversions {
    struct kube_api *api;
    struct budget *budget;
    struct hash_map by_key;
    struct hash_map shares; /* by the names of their definitions */
    struct list fresh;      /* entries that are NEW */
    struct list kept;       /* entries that are READY, the last used at the end */
    struct list batches;
    size_t kept_bytes, pending_bytes;
    struct deferred turn_end;
};

static struct slice key_of(const void *value)
{
    const struct kube_conversion_entry *e = value;
    return slice_of(e->key, e->key_len);
}

/* -- Definitions -- */

static struct slice share_name(const void *value)
{
    const struct share *share = value;
    return slice_of(share->name, share->name_len);
}

static struct share *new_share(struct kube_event_conversions *c, struct slice name)
{
    void *replaced;
    struct share *share = xcalloc(1, sizeof(*share) + name.len);
    share->conversions = c;
    share->name_len = name.len;
    slice_copy(share->name, name);
    if (account_new(c->budget, &share->account) != ST_OK ||
        hash_map_put(&c->shares, share, &replaced) != ST_OK)
        xalloc_check(NULL, 1); /* no memory, as elsewhere in the server */
    account_limit(share->account, KUBE_EVENT_CONVERSIONS_MEMORY_EACH);
    return share;
}

static struct share *share_ref(struct share *share)
{
    share->refs++;
    return share;
}

static void share_unref(struct share *share)
{
    if (--share->refs)
        return;
    assert(share->pending_bytes == 0);
    hash_map_remove(&share->conversions->shares, share_name(share));
    account_unref(share->account);
    free(share);
}

/* -- Entries -- */

/* The memory that it takes until it is freed, or has its result. */
static size_t cost_of(const struct kube_conversion_entry *e)
{
    return sizeof(*e) + e->key_len + e->json.capacity;
}

static void unlist(struct kube_event_conversions *c, struct kube_conversion_entry *e)
{
    if (e->listed)
        hash_map_remove(&c->by_key, key_of(e));
    e->listed = false;
}

static void free_entry(struct kube_event_conversions *c, struct kube_conversion_entry *e)
{
    assert(list_empty(&e->waits));
    unlist(c, e);
    kube_definition_unref(e->definition);
    account_buf_fini(e->share->account, &e->json);
    buf_fini(&e->why);
    free(e->status);
    share_unref(e->share);
    free(e);
}

static void begin_pending(struct kube_event_conversions *c, struct kube_conversion_entry *e)
{
    c->pending_bytes += cost_of(e);
    e->share->pending_bytes += cost_of(e);
}

static void end_pending(struct kube_event_conversions *c, struct kube_conversion_entry *e)
{
    c->pending_bytes -= cost_of(e);
    e->share->pending_bytes -= cost_of(e);
}

/* The oldest that no watch needs now. */
static void trim(struct kube_event_conversions *c, size_t bytes_max, size_t count_max)
{
    struct kube_conversion_entry *e, *following;
    LIST_FOREACH_SAFE (e, following, &c->kept, link) {
        if (c->kept_bytes <= bytes_max && c->by_key.count <= count_max)
            return;
        if (!list_empty(&e->waits))
            continue;
        c->kept_bytes -= cost_of(e);
        list_remove(&e->link);
        free_entry(c, e);
    }
}

static void settle(struct kube_event_conversions *c, struct kube_conversion_entry *e,
                   enum entry_state state)
{
    struct kube_conversion_wait *wait, *following;
    STATE_MOVE(e->state, moves, state);
    if (state == READY) {
        list_push_back(&c->kept, &e->link);
        c->kept_bytes += cost_of(e);
    } else {
        unlist(c, e); /* a watch that needs it now tries again */
    }
    e->waking = true;
    LIST_FOREACH_SAFE (wait, following, &e->waits, in_entry)
        wait->wake(wait);
    e->waking = false;
    if (state == FAILED && list_empty(&e->waits))
        free_entry(c, e);
}

static void fail(struct kube_event_conversions *c, struct kube_conversion_entry *e,
                 const struct kube_status *status)
{
    end_pending(c, e);
    e->status = xmalloc(sizeof(*e->status));
    *e->status = *status;
    e->status->long_message = SLICE_EMPTY; /* the message has its beginning */
    if (buf_append(&e->why, status->long_message) == ST_OK)
        e->status->long_message = buf_slice(&e->why);
    settle(c, e, FAILED);
}

static void take(struct kube_event_conversions *c, struct kube_conversion_entry *e,
                 struct slice json)
{
    struct buf result = {0};
    if (account_append(e->share->account, &result, json) != ST_OK) {
        struct kube_status why = {0};
        kube_fail_engine(&why, ST_NOMEM);
        fail(c, e, &why);
        return;
    }
    end_pending(c, e);
    account_buf_fini(e->share->account, &e->json);
    e->json = result;
    settle(c, e, READY);
}

/* -- Batches -- */

static void send_later(struct kube_event_conversions *c, struct kube_conversion_entry *e)
{
    list_push_back(&c->fresh, &e->link);
    loop_defer(c->api->loop, &c->turn_end);
}

static void free_batch(struct sent_batch *sent)
{
    kube_conversion_batch_free(sent->batch);
    list_remove(&sent->link);
    share_unref(sent->share);
    free(sent);
}

static bool is_needed(const struct kube_conversion_entry *e)
{
    return !list_empty(&e->waits);
}

/* It is under way. */
static void drop_entry(struct kube_event_conversions *c, struct kube_conversion_entry *e)
{
    list_remove(&e->link);
    end_pending(c, e);
    free_entry(c, e);
}

static void drop_entries(struct kube_event_conversions *c, struct list *entries)
{
    struct kube_conversion_entry *e, *following;
    LIST_FOREACH_SAFE (e, following, entries, link)
        drop_entry(c, e);
}

/* No watch waits for any of it: the webhook is not called any more. */
static void drop_batch(struct sent_batch *sent)
{
    drop_entries(sent->conversions, &sent->entries);
    free_batch(sent);
}

static void on_converted(struct kube_conversion_batch *batch)
{
    struct sent_batch *sent = kube_conversion_batch_owner(batch);
    struct kube_event_conversions *c = sent->conversions;
    const struct kube_status *status = kube_conversion_batch_status(batch);
    bool again = kube_conversion_batch_failure(batch) > CONVERSION_CALL_FAILED && sent->count > 1;
    struct list *link;
    for (size_t i = 0; (link = list_pop_front(&sent->entries)) != NULL; i++) {
        struct kube_conversion_entry *e = LIST_ENTRY(link, struct kube_conversion_entry, link);
        int64_t ignored;
        e->sent = NULL;
        if (status->reason == KUBE_OK) {
            take(c, e, kube_conversion_batch_get(batch, i, &ignored).value);
        } else if (again) {
            /* One object must not fail the watches of others. */
            STATE_MOVE(e->state, moves, NEW);
            e->alone = true;
            send_later(c, e);
        } else {
            fail(c, e, status);
        }
    }
    free_batch(sent);
    trim(c, KUBE_EVENT_CONVERSIONS_BYTES, KUBE_EVENT_CONVERSIONS_COUNT);
}

static void add(struct sent_batch *sent, struct kube_conversion_entry *e)
{
    struct kube_event_conversions *c = sent->conversions;
    struct kube_kv kv = {.value = buf_slice(&e->json), .mod_revision = e->kv.mod_revision};
    enum status status = kube_conversion_batch_add(sent->batch, kv);
    list_remove(&e->link);
    if (status == ST_OK) {
        STATE_MOVE(e->state, moves, SENT);
        list_push_back(&sent->entries, &e->link);
        e->sent = sent;
        sent->count++;
        sent->needed += is_needed(e);
    } else {
        struct kube_status why = {0};
        if (status == ST_MALFORMED)
            kube_fail_stored(&why);
        else
            kube_fail_engine(&why, status);
        fail(c, e, &why);
    }
}

/* Sends the first new entry and those that may be sent with it. */
static void send_some(struct kube_event_conversions *c)
{
    struct kube_conversion_entry *first =
        LIST_ENTRY(c->fresh.next, struct kube_conversion_entry, link);
    struct kube_conversion_entry *e, *following;
    struct sent_batch *sent = xcalloc(1, sizeof(*sent));
    sent->conversions = c;
    sent->share = share_ref(first->share);
    list_init(&sent->entries);
    list_push_back(&c->batches, &sent->link);
    sent->batch = kube_conversion_batch_new(c->api, first->to, sent->share->account, 0);
    bool alone = first->alone;
    const struct kube_custom *to = first->to;
    LIST_FOREACH_SAFE (e, following, &c->fresh, link) {
        if ((alone && e != first) || kube_conversion_batch_is_full(sent->batch))
            break;
        if (e == first || (e->to == to && !e->alone))
            add(sent, e);
    }
    if (sent->count)
        kube_conversion_batch_start(sent->batch, on_converted, sent);
    else
        free_batch(sent);
}

static void on_turn_end(struct deferred *deferred)
{
    struct kube_event_conversions *c =
        CONTAINER_OF(deferred, struct kube_event_conversions, turn_end);
    struct kube_conversion_entry *e, *next_entry;
    struct sent_batch *sent, *next_batch;
    LIST_FOREACH_SAFE (e, next_entry, &c->fresh, link)
        if (!is_needed(e))
            drop_entry(c, e);
    LIST_FOREACH_SAFE (sent, next_batch, &c->batches, link)
        if (!sent->needed)
            drop_batch(sent);
    while (!list_empty(&c->fresh))
        send_some(c);
}

/* -- Watches -- */

enum { KEY_HEAD_BYTES = sizeof(void *) + sizeof(int64_t), KEY_BYTES = 2048 };

static size_t make_key(const struct kube_custom *to, const struct kube_kv *kv, uint8_t *key)
{
    memcpy(key, &to, sizeof(to));
    memcpy(key + sizeof(to), &kv->mod_revision, sizeof(kv->mod_revision));
    slice_copy(key + KEY_HEAD_BYTES, kv->key);
    return KEY_HEAD_BYTES + kv->key.len;
}

static void join(struct kube_conversion_wait *wait, struct kube_conversion_entry *e)
{
    wait->entry = e;
    if (e->sent && !is_needed(e))
        e->sent->needed++;
    list_push_back(&e->waits, &wait->in_entry);
}

/* NULL: too much is being converted, or there is no memory. */
static struct kube_conversion_entry *new_entry(struct kube_event_conversions *c,
                                               const struct kube_custom *to,
                                               const struct kube_kv *kv)
{
    void *replaced;
    struct share *share = hash_map_get(&c->shares, to->definition->name);
    if (c->pending_bytes > KUBE_EVENT_CONVERSIONS_PENDING_BYTES ||
        (share && share->pending_bytes > KUBE_EVENT_CONVERSIONS_PENDING_BYTES_EACH))
        return NULL;
    struct kube_conversion_entry *e = xcalloc(1, sizeof(*e) + KEY_HEAD_BYTES + kv->key.len);
    e->key_len = make_key(to, kv, e->key);
    e->share = share_ref(share ? share : new_share(c, to->definition->name));
    e->to = to;
    e->definition = kube_definition_ref(to->definition);
    e->kv.mod_revision = kv->mod_revision;
    list_init(&e->waits);
    if (account_append(e->share->account, &e->json, kv->value) != ST_OK ||
        hash_map_put(&c->by_key, e, &replaced) != ST_OK) {
        free_entry(c, e);
        return NULL;
    }
    e->listed = true;
    begin_pending(c, e);
    send_later(c, e);
    return e;
}

static enum status result_of(struct kube_conversion_entry *e, struct slice *ret_json,
                             struct kube_status *ret_status)
{
    if (e->state == READY)
        *ret_json = buf_slice(&e->json);
    if (e->state == FAILED)
        *ret_status = *e->status;
    return e->state == READY ? ST_OK : e->state == FAILED ? ST_CANCELED : ST_AGAIN;
}

enum status kube_event_conversions_get(struct kube_event_conversions *c,
                                       struct kube_conversion_wait *wait,
                                       const struct kube_custom *to, struct kube_kv kv,
                                       struct slice *ret_json, struct kube_status *ret_status)
{
    uint8_t key[KEY_BYTES];
    if (kv.key.len > KEY_BYTES - KEY_HEAD_BYTES) {
        kube_fail_stored(ret_status); /* no object of the API has such a key */
        return ST_CANCELED;
    }
    struct slice wanted = slice_of(key, make_key(to, &kv, key));
    if (wait->entry && slice_equal(key_of(wait->entry), wanted))
        return result_of(wait->entry, ret_json, ret_status);
    kube_conversion_wait_drop(c, wait);
    struct kube_conversion_entry *e = hash_map_get(&c->by_key, wanted);
    if (e && e->state == READY) {
        list_remove(&e->link);
        list_push_back(&c->kept, &e->link);
    }
    if (!e)
        e = new_entry(c, to, &kv);
    if (!e) {
        kube_fail(ret_status, KUBE_TOO_MANY_REQUESTS,
                  "too many events wait for the conversion webhook of %.*s, please try again",
                  SLICE_ARGS(to->definition->name));
        ret_status->retry_after_s = 1;
        return ST_CANCELED;
    }
    join(wait, e);
    return result_of(e, ret_json, ret_status);
}

void kube_conversion_wait_drop(struct kube_event_conversions *c, struct kube_conversion_wait *wait)
{
    struct kube_conversion_entry *e = TAKE(wait->entry);
    if (!e)
        return;
    list_remove(&wait->in_entry);
    if (is_needed(e))
        return;
    if (e->sent)
        e->sent->needed--;
    if (e->state == FAILED && !e->waking)
        free_entry(c, e);
    else if (e->state == NEW || e->state == SENT)
        loop_defer(c->api->loop, &c->turn_end); /* it is dropped, unless another watch joins */
}

/* -- Life -- */

struct kube_event_conversions *kube_event_conversions_new(struct kube_api *api,
                                                          struct budget *budget)
{
    struct kube_event_conversions *c = xcalloc(1, sizeof(*c));
    c->api = api;
    c->budget = budget;
    c->turn_end.fn = on_turn_end;
    hash_map_init(&c->by_key, key_of, random_u64(&api->random));
    hash_map_init(&c->shares, share_name, random_u64(&api->random));
    list_init(&c->fresh);
    list_init(&c->kept);
    list_init(&c->batches);
    return c;
}

void kube_event_conversions_free(struct kube_event_conversions *c)
{
    if (!c)
        return;
    loop_defer_cancel(&c->turn_end);
    drop_entries(c, &c->fresh);
    trim(c, 0, 0);
    while (!list_empty(&c->batches))
        drop_batch(LIST_ENTRY(c->batches.next, struct sent_batch, link));
    hash_map_fini(&c->by_key);
    hash_map_fini(&c->shares);
    free(c);
}
