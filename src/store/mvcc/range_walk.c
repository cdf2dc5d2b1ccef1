#include "store/mvcc/range_walk.h"

#include "base/yield_point.h"
#include "store/mvcc/version.h"

/* -- Bounds and versions -- */

struct range_bounds range_bounds_of(struct slice key, struct slice range_end)
{
    bool to_end = range_end.len == 1 && range_end.ptr[0] == 0;
    return (struct range_bounds){
        .from = key,
        .to = range_end,
        .single = range_end.len == 0,
        .to_end = to_end,
    };
}

static bool bounds_before_end(const struct range_bounds *bounds, struct slice key)
{
    return bounds->to_end || slice_compare(key, bounds->to) < 0;
}

/* Some versions cannot be read: the revision of such a version is known from the next newer one. */
static enum status older_among_damaged(const struct log *log, const struct index_item *item,
                                       int64_t at_revision, uint32_t *ret_place,
                                       const struct change_head **ret_head)
{
    const uint64_t *older = index_item_older(item);
    const struct change_head *head;
    bool known = version_get(log, item, item->newest.loc, &head) == ST_OK;
    int64_t revision = known ? head->prev_revision : 0; /* 0: unknown */
    for (uint32_t place = item->older_count; place-- > 0;) {
        enum status status = version_get(log, item, older[place], &head);
        if (status == ST_OK)
            revision = head->revision;
        if (revision <= at_revision) {
            *ret_place = place;
            *ret_head = head;
            return status;
        }
        revision = status == ST_OK ? head->prev_revision : 0;
    }
    return ST_NOT_FOUND;
}

/* The last of the older versions with a revision of at most at_revision. */
enum status range_older_at(const struct log *log, const struct index_item *item,
                           int64_t at_revision, uint32_t *ret_place,
                           const struct change_head **ret_head)
{
    const uint64_t *older = index_item_older(item);
    const struct change_head *head, *found = NULL;
    uint32_t low = 0, high = item->older_count;
    /* The index has only locations of older versions. Their revisions are read from the log, so few
     * are examined. */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (version_get(log, item, older[middle], &head) != ST_OK)
            return older_among_damaged(log, item, at_revision, ret_place, ret_head);
        if (head->revision <= at_revision) {
            low = middle + 1;
            found = head;
        } else {
            high = middle;
        }
    }
    if (!found)
        return ST_NOT_FOUND;
    assert(low > 0 && low <= item->older_count);
    *ret_place = low - 1;
    *ret_head = found;
    return ST_OK;
}

enum status range_item_at(const struct log *log, const struct index_item *item, int64_t at_revision,
                          struct range_kv *ret_kv)
{
    /* The newest version is in the index itself: the log is not read. */
    if (at_revision == 0 || item->newest.mod_revision <= at_revision) {
        *ret_kv = (struct range_kv){
            .item = item,
            .loc = item->newest.loc,
            .mod_revision = item->newest.mod_revision,
            .create_revision = item->newest.create_revision,
            .version = item->newest.version,
            .field_bytes = item->newest.field_bytes,
        };
        return index_item_live(item) ? ST_OK : ST_NOT_FOUND;
    }
    uint32_t place;
    const struct change_head *head;
    TRY(range_older_at(log, item, at_revision, &place, &head));
    if (change_is_tombstone(head))
        return ST_NOT_FOUND;
    struct change_kv kv;
    change_read_kv(head, &kv);
    *ret_kv = (struct range_kv){
        .item = item,
        .loc = index_item_older(item)[place],
        .mod_revision = kv.mod_revision,
        .create_revision = kv.create_revision,
        .version = kv.version,
        .field_bytes = head->field_bytes,
    };
    return ST_OK;
}

/* -- Walking -- */

/* Whether the item exists at the walk's revision; adds it to the read-ahead. */
static bool walk_takes(struct range_walk *walk, const struct index_item *item)
{
    assert(walk->ahead_count < RANGE_AHEAD);
    struct range_kv *kv = &walk->ahead[walk->ahead_count];
    enum status status = range_item_at(walk->log, item, walk->at_revision, kv);
    if (UNLIKELY(status == ST_DAMAGED))
        walk->damaged = walk->ended = true;
    return status == ST_OK;
}

void range_walk_init(struct range_walk *walk, const struct range_state *state,
                     struct range_bounds bounds, int64_t at_revision)
{
    walk->log = state->log;
    walk->bounds = bounds;
    walk->at_revision = at_revision;
    walk->ended = walk->damaged = walk->fetches = false;
    walk->ahead_next = walk->ahead_count = 0;
    if (!bounds.single) {
        index_cursor_init(&walk->cursor, &state->root, bounds.from);
        return;
    }
    /* A single key is found now, and needs no cursor. */
    walk->ended = true;
    const struct index_item *item = index_root_find(&state->root, bounds.from);
    if (item && walk_takes(walk, item))
        walk->ahead_count = 1;
}

/* Examines at most *keys keys, and subtracts them. */
static void walk_read_ahead(struct range_walk *walk, size_t *keys)
{
    assert(!walk->bounds.single);
    assert(walk->ahead_next == walk->ahead_count);
    yield_point_pass(RANGE_AHEAD);
    walk->ahead_next = walk->ahead_count = 0;
    for (; !walk->ended && walk->ahead_count < RANGE_AHEAD && *keys; --*keys) {
        const struct index_item *item = index_cursor_next(&walk->cursor);
        if (!item || !bounds_before_end(&walk->bounds, index_item_key(item))) {
            walk->ended = true;
            return;
        }
        if (!walk_takes(walk, item))
            continue;
        /* The records are read soon. Fetching them now hides most of the latency of memory. */
        if (walk->fetches) {
            const uint8_t *bytes = log_rest_at(walk->log, walk->ahead[walk->ahead_count].loc).ptr;
            __builtin_prefetch(bytes);
            __builtin_prefetch(bytes + 64);
            __builtin_prefetch(bytes + 128);
        }
        walk->ahead_count++;
    }
}

const struct range_kv *range_walk_next_within(struct range_walk *walk, size_t *keys)
{
    if (walk->ahead_next == walk->ahead_count) {
        if (!walk->ended)
            walk_read_ahead(walk, keys);
        if (walk->ahead_next == walk->ahead_count)
            return NULL;
    }
    return &walk->ahead[walk->ahead_next++];
}

const struct range_kv *range_walk_next(struct range_walk *walk)
{
    size_t keys = SIZE_MAX;
    return range_walk_next_within(walk, &keys);
}

/* Reads the log only for a key that was deleted and created again since. */
static bool item_exists_at(struct range_walk *walk, const struct index_item *item)
{
    int64_t at_revision = walk->at_revision;
    if (item->newest.mod_revision <= at_revision)
        return index_item_live(item);
    if (index_item_live(item) && item->newest.create_revision <= at_revision)
        return true;
    uint32_t place;
    const struct change_head *head;
    enum status status = range_older_at(walk->log, item, at_revision, &place, &head);
    walk->damaged |= status == ST_DAMAGED;
    return status == ST_OK && !change_is_tombstone(head);
}

bool range_walk_count(struct range_walk *walk, size_t *keys, int64_t *count)
{
    const struct index_item *item;
    assert(!walk->bounds.single);
    assert(walk->ahead_count == 0); /* it counts only from the start of the walk on */
    for (; *keys; --*keys) {
        item = index_cursor_next(&walk->cursor);
        if (!item || !bounds_before_end(&walk->bounds, index_item_key(item)))
            return true;
        *count += item_exists_at(walk, item);
        if (walk->damaged)
            return true;
    }
    return false;
}

enum status range_count(const struct range_state *state, struct range_bounds bounds,
                        int64_t at_revision, int64_t *ret_count)
{
    /* The tree's sums are those of the newest revision. */
    if (bounds.single || at_revision != 0) {
        struct range_walk walk;
        int64_t count = 0;
        size_t keys = SIZE_MAX;
        range_walk_init(&walk, state, bounds, at_revision);
        if (bounds.single || !range_walk_count(&walk, &keys, &count))
            count = walk.ahead_count;
        *ret_count = count;
        return walk.damaged ? ST_DAMAGED : ST_OK;
    }
    *ret_count =
        (int64_t)index_root_sum(&state->root, bounds.from, bounds.to, bounds.to_end).live_keys;
    return ST_OK;
}
