#include "store/range_walk.h"

#include "store/change.h"

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

/* The last of the older versions with a revision of at most at_revision; -1 when there is none. */
int64_t range_older_at(const struct log *log, const struct index_item *item, int64_t at_revision)
{
    const uint64_t *older = index_item_older(item);
    int64_t low = 0, high = item->older_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (change_at(log_at(log, older[middle]))->revision <= at_revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

bool range_item_at(const struct log *log, const struct index_item *item, int64_t at_revision,
                   struct range_kv *ret_kv)
{
    if (at_revision == 0 || item->newest.mod_revision <= at_revision) {
        *ret_kv = (struct range_kv){
            .item = item,
            .loc = item->newest.loc,
            .mod_revision = item->newest.mod_revision,
            .create_revision = item->newest.create_revision,
            .version = item->newest.version,
            .field_bytes = item->newest.field_bytes,
        };
        return index_item_live(item);
    }
    int64_t place = range_older_at(log, item, at_revision);
    if (place < 0)
        return false;
    const struct change_head *head = change_at(log_at(log, index_item_older(item)[place]));
    if (change_is_tombstone(head))
        return false;
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
    return true;
}

/* -- Walking -- */

void range_walk_init(struct range_walk *walk, const struct range_state *state,
                     struct range_bounds bounds, int64_t at_revision)
{
    walk->log = state->log;
    walk->bounds = bounds;
    walk->at_revision = at_revision;
    walk->ended = walk->fetches = false;
    walk->ahead_next = walk->ahead_count = 0;
    if (!bounds.single) {
        index_cursor_init(&walk->cursor, &state->root, bounds.from);
        return;
    }
    walk->ended = true;
    const struct index_item *item = index_root_find(&state->root, bounds.from);
    if (item && range_item_at(walk->log, item, at_revision, &walk->ahead[0]))
        walk->ahead_count = 1;
}

/* Looks at `*keys` at most, which is reduced. */
static void walk_read_ahead(struct range_walk *walk, size_t *keys)
{
    walk->ahead_next = walk->ahead_count = 0;
    for (; !walk->ended && walk->ahead_count < RANGE_AHEAD && *keys; --*keys) {
        const struct index_item *item = index_cursor_next(&walk->cursor);
        if (!item || !bounds_before_end(&walk->bounds, index_item_key(item))) {
            walk->ended = true;
            return;
        }
        struct range_kv *kv = &walk->ahead[walk->ahead_count];
        if (!range_item_at(walk->log, item, walk->at_revision, kv))
            continue;
        if (walk->fetches) {
            const uint8_t *bytes = log_at(walk->log, kv->loc);
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

/* Looks into the log only for a key that was deleted and made again since. */
static bool item_exists_at(const struct log *log, const struct index_item *item,
                           int64_t at_revision)
{
    if (item->newest.mod_revision <= at_revision)
        return index_item_live(item);
    if (index_item_live(item) && item->newest.create_revision <= at_revision)
        return true;
    int64_t place = range_older_at(log, item, at_revision);
    return place >= 0 &&
           !change_is_tombstone(change_at(log_at(log, index_item_older(item)[place])));
}

bool range_walk_count(struct range_walk *walk, size_t *keys, int64_t *count)
{
    const struct index_item *item;
    for (; *keys; --*keys) {
        item = index_cursor_next(&walk->cursor);
        if (!item || !bounds_before_end(&walk->bounds, index_item_key(item)))
            return true;
        *count += item_exists_at(walk->log, item, walk->at_revision);
    }
    return false;
}

int64_t range_count(const struct range_state *state, struct range_bounds bounds,
                    int64_t at_revision)
{
    if (bounds.single || at_revision != 0) {
        struct range_walk walk;
        int64_t count = 0;
        size_t keys = SIZE_MAX;
        range_walk_init(&walk, state, bounds, at_revision);
        if (bounds.single || !range_walk_count(&walk, &keys, &count))
            return walk.ahead_count;
        return count;
    }
    return (int64_t)index_root_sum(&state->root, bounds.from, bounds.to, bounds.to_end).live_keys;
}
