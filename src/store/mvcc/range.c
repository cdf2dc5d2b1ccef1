#include "store/mvcc/range.h"

#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "store/mvcc/version.h"

#include <stdlib.h>

/*
 * Up to this size, every checksum is verified before anything is sent. For longer lists that would
 * cost three quarters more: the index guarantees location and length, unless damage is known
 * (decision 17).
 */
enum { CHECKED_BYTES_MAX = 16 * 1024 };

/* -- Fields as they are sent -- */

/* Sorting by value has read it, so it is readable. */
static int64_t lease_of(const struct log *log, const struct range_kv *kv)
{
    if (kv->loc == kv->item->newest.loc)
        return kv->item->newest.lease;
    const struct change_head *change;
    if (change_get(log, kv->loc, &change) != ST_OK)
        return 0;
    struct change_kv full;
    change_read_kv(change, &full);
    return full.lease;
}

static size_t sent_bytes(const struct range *range, const struct range_kv *kv)
{
    if (!range->keys_only)
        return kv->field_bytes;
    /* The KeyValue without its value, and mostly without its lease. */
    size_t message =
        pb_bytes_size(1, kv->item->key_len) + pb_uint_size(2, (uint64_t)kv->create_revision) +
        pb_uint_size(3, (uint64_t)kv->mod_revision) + pb_uint_size(4, (uint64_t)kv->version);
    if (range->keep_lease)
        message += pb_uint_size(6, (uint64_t)lease_of(range->log, kv));
    return pb_message_head_size(2, message) + message;
}

/* Everything needed is in the index. */
static void key_field_begin(struct range *range, const struct range_kv *kv)
{
    range->body = index_item_key(kv->item);
    uint8_t *tail = range->tail;
    tail = pb_uint_write(tail, 2, (uint64_t)kv->create_revision);
    tail = pb_uint_write(tail, 3, (uint64_t)kv->mod_revision);
    tail = pb_uint_write(tail, 4, (uint64_t)kv->version);
    if (range->keep_lease)
        tail = pb_uint_write(tail, 6, (uint64_t)lease_of(range->log, kv));
    range->tail_bytes = (uint8_t)(tail - range->tail);
    size_t message = pb_bytes_size(1, range->body.len) + range->tail_bytes;
    uint8_t *head = pb_message_head_write(range->head, 2, message);
    head = pb_message_head_write(head, 1, range->body.len);
    range->head_bytes = (uint8_t)(head - range->head);
    assert(range->head_bytes <= sizeof(range->head));
    assert(range->tail_bytes <= sizeof(range->tail));
}

static void field_begin(struct range *range, const struct range_kv *kv)
{
    range->item = kv->item;
    range->field_done = 0;
    range->head_bytes = range->tail_bytes = 0;
    if (range->keys_only) {
        key_field_begin(range, kv);
        return;
    }
    const struct change_head *change;
    range->broken =
        change_get_known(range->log, kv->loc, kv->mod_revision, kv->field_bytes, &change);
    if (UNLIKELY(range->broken != ST_OK))
        version_name_damage(kv->item, kv->loc);
    range->body = range->broken == ST_OK ? change_field(change) : SLICE_EMPTY;
}

static size_t field_bytes(const struct range *range)
{
    return range->head_bytes + range->body.len + range->tail_bytes;
}

static size_t part_copy(struct slice part, size_t *skip, uint8_t *dst, size_t room)
{
    if (*skip >= part.len) {
        *skip -= part.len;
        return 0;
    }
    size_t n = size_min(part.len - *skip, room);
    memcpy(dst, part.ptr + *skip, n);
    *skip = 0;
    return n;
}

/* Copies the rest of the current field, up to the free room. */
static size_t field_copy(struct range *range, uint8_t *dst, size_t room)
{
    size_t skip = range->field_done;
    size_t n = part_copy(slice_of(range->head, range->head_bytes), &skip, dst, room);
    n += part_copy(range->body, &skip, dst + n, room - n);
    n += part_copy(slice_of(range->tail, range->tail_bytes), &skip, dst + n, room - n);
    range->field_done += n;
    return n;
}

/* -- Sorting and filtering -- */

struct range_pick {
    struct range_kv kv;
    struct slice value; /* if sorting by value */
    int64_t place;      /* among the keys: breaks ties, so that sorting is stable */
};

static bool is_default_order(const struct pb_range_request *request)
{
    return request->sort_order == PB_SORT_ORDER_NONE ||
           (request->sort_target == PB_SORT_TARGET_KEY &&
            request->sort_order == PB_SORT_ORDER_ASCEND);
}

static bool is_sorted(const struct pb_range_request *request)
{
    return request->sort_target != PB_SORT_TARGET_KEY ||
           request->sort_order == PB_SORT_ORDER_DESCEND;
}

static bool has_filters(const struct pb_range_request *request)
{
    return request->min_mod_revision || request->max_mod_revision || request->min_create_revision ||
           request->max_create_revision;
}

static bool passes_filters(const struct pb_range_request *request, const struct range_kv *kv)
{
    if (request->max_mod_revision && kv->mod_revision > request->max_mod_revision)
        return false;
    if (request->min_mod_revision && kv->mod_revision < request->min_mod_revision)
        return false;
    if (request->max_create_revision && kv->create_revision > request->max_create_revision)
        return false;
    return !request->min_create_revision || kv->create_revision >= request->min_create_revision;
}

static int number_compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int picks_compare(const void *left, const void *right, void *ctx)
{
    const struct range_pick *a = left, *b = right;
    const struct pb_range_request *request = ctx;
    int order = 0;
    switch (request->sort_target) {
    case PB_SORT_TARGET_VERSION:
        order = number_compare(a->kv.version, b->kv.version);
        break;
    case PB_SORT_TARGET_CREATE:
        order = number_compare(a->kv.create_revision, b->kv.create_revision);
        break;
    case PB_SORT_TARGET_MOD:
        order = number_compare(a->kv.mod_revision, b->kv.mod_revision);
        break;
    case PB_SORT_TARGET_VALUE:
        order = slice_compare(a->value, b->value);
        break;
    default: /* by key: positions are in that order, and no two are equal */
        order = number_compare(a->place, b->place);
        break;
    }
    if (request->sort_order == PB_SORT_ORDER_DESCEND)
        order = -order;
    return order ? order : number_compare(a->place, b->place);
}

static int compare_picks(const struct range *range, const struct range_pick *a,
                         const struct range_pick *b)
{
    return picks_compare(a, b, (void *)(uintptr_t)range->request);
}

/* Replaces the top of a heap, which is the last in the sort order, and restores the heap. */
static void heap_place(struct range *range, int64_t at, const struct range_pick *pick)
{
    struct range_pick *picks = range->picks;
    for (int64_t child; (child = 2 * at + 1) < range->picking.count; at = child) {
        if (child + 1 < range->picking.count &&
            compare_picks(range, &picks[child + 1], &picks[child]) > 0)
            child++;
        if (compare_picks(range, pick, &picks[child]) >= 0)
            break;
        picks[at] = picks[child];
    }
    picks[at] = *pick;
}

/* Once as many are held as wanted, they become a heap, and a later one replaces the last. */
static void picks_exchange(struct range *range, const struct range_pick *pick)
{
    struct range_pick *picks = range->picks;
    assert(range->picking.count == range->picking.keep);
    if (range->picking.passed == range->picking.keep) {
        for (int64_t at = range->picking.count / 2; at-- > 0;) {
            struct range_pick moved = picks[at];
            heap_place(range, at, &moved);
        }
    }
    if (compare_picks(range, pick, &picks[0]) < 0)
        heap_place(range, 0, pick);
}

static enum status picks_add(struct range *range, const struct range_pick *pick)
{
    struct range_picking *picking = &range->picking;
    assert(picking->count <= picking->capacity);
    if (picking->count == picking->capacity) {
        picking->capacity = picking->capacity ? picking->capacity * 2 : 64;
        void *grown = realloc(range->picks, (size_t)picking->capacity * sizeof(*range->picks));
        if (!grown)
            return ST_NOMEM;
        range->picks = grown;
    }
    range->picks[picking->count++] = *pick;
    return ST_OK;
}

/* ST_AGAIN: enough keys were examined for now. */
static enum status picks_collect(struct range *range, size_t *keys)
{
    const struct pb_range_request *request = range->request;
    struct range_picking *picking = &range->picking;
    const struct range_kv *kv;
    while ((kv = range_walk_next_within(&range->walk, keys))) {
        if (!passes_filters(request, kv))
            continue;
        struct range_pick pick = {.kv = *kv, .place = picking->passed};
        if (request->sort_target == PB_SORT_TARGET_VALUE) {
            const struct change_head *change;
            struct change_kv full;
            range->item = kv->item;
            TRY(version_get(range->log, kv->item, kv->loc, &change));
            change_read_kv(change, &full);
            pick.value = full.value;
        }
        if (!picking->keep || picking->count < picking->keep)
            TRY(picks_add(range, &pick));
        else if (picking->sorts)
            picks_exchange(range, &pick);
        else
            return ST_OK; /* the first in key order are enough */
        picking->passed++;
    }
    if (range->walk.damaged)
        return ST_DAMAGED;
    return range->walk.ended ? ST_OK : ST_AGAIN;
}

/* In the order of sending. */
static const struct range_pick *pick_at(const struct range *range, int64_t i)
{
    assert(i >= 0 && i < range->picking.count);
    return range->sort.items ? range->sort.items[i] : &range->picks[i];
}

static void picks_begin(struct range *range)
{
    const struct pb_range_request *request = range->request;
    int64_t limit = request->limit > 0 ? request->limit : 0;
    bool limit_first = is_default_order(request) && !has_filters(request);
    range->picking = (struct range_picking){
        .sorts = is_sorted(request) && !limit_first,
        .keep = limit && limit < INT64_MAX ? limit + 1 : 0, /* one more shows that there are more */
    };
}

/* -- The phases -- */

#define TO(phase) (1u << RANGE_##phase)

/* Drawn in range.h. */
static const unsigned range_moves[] = {
    [RANGE_COUNTING] = TO(MEASURING) | TO(PICKING) | TO(READY),
    [RANGE_MEASURING] = TO(CHECKING),
    [RANGE_PICKING] = TO(SORTING) | TO(SUMMING),
    [RANGE_SORTING] = TO(SUMMING),
    [RANGE_SUMMING] = TO(CHECKING),
    [RANGE_CHECKING] = TO(READY),
    [RANGE_READY] = 0,
};

static void range_move(struct range *range, enum range_phase next)
{
    assert(range_moves[range->phase] & (1u << next));
    range->phase = next;
}

static enum status range_run_count(struct range *range, size_t *keys)
{
    const struct pb_range_request *request = range->request;
    struct range_walk *walk = &range->walk;
    struct range_bounds bounds = walk->bounds;
    if (bounds.single || walk->at_revision == 0)
        TRY(range_count(&range->state, bounds, walk->at_revision, &range->count));
    else if (!range_walk_count(walk, keys, &range->count))
        return ST_AGAIN;
    if (walk->damaged)
        return ST_DAMAGED;
    if (request->count_only) {
        walk->ended = true;
        walk->ahead_next = walk->ahead_count = 0;
        range_move(range, RANGE_READY);
        return ST_OK;
    }
    range_walk_init(walk, &range->state, bounds, walk->at_revision);
    walk->fetches = request->sort_target == PB_SORT_TARGET_VALUE;
    /* Keys in their order need no memory: they are walked again when they are sent. */
    if (is_default_order(request) && !has_filters(request) &&
        request->sort_target == PB_SORT_TARGET_KEY) {
        range_move(range, RANGE_MEASURING);
        return ST_OK;
    }
    range_move(range, RANGE_PICKING);
    picks_begin(range);
    return ST_OK;
}

/* From here on the range is walked from the start again, for sending. */
static void begin_checking(struct range *range)
{
    struct range_walk *walk = &range->walk;
    range_walk_init(walk, &range->state, walk->bounds, walk->at_revision);
    walk->fetches = true;
    range_move(range, RANGE_CHECKING);
}

static enum status range_run_measure(struct range *range, size_t *keys)
{
    struct range_walk *walk = &range->walk;
    int64_t limit = range->request->limit;
    range->more = limit > 0 && range->count > limit;
    bool index_has_sums = !walk->bounds.single && walk->at_revision == 0 && !range->keys_only;
    if (index_has_sums && !range->more) {
        /* The nodes of the index know how much is below them, so that nothing is walked. */
        struct index_sum sum = index_root_sum(&range->state.root, walk->bounds.from,
                                              walk->bounds.to, walk->bounds.to_end);
        range->kvs = (int64_t)sum.live_keys;
        range->kvs_bytes = sum.live_bytes;
        begin_checking(range);
        return ST_OK;
    }
    const struct range_kv *kv;
    while ((!range->more || range->kvs < limit) && (kv = range_walk_next_within(walk, keys))) {
        range->kvs++;
        range->kvs_bytes += sent_bytes(range, kv);
    }
    if (walk->damaged)
        return ST_DAMAGED;
    if (!walk->ended && !(range->more && range->kvs == limit))
        return ST_AGAIN;
    begin_checking(range);
    return ST_OK;
}

static enum status range_run_pick(struct range *range, size_t *keys)
{
    TRY(picks_collect(range, keys));
    bool sorts = is_sorted(range->request) && range->picking.count > 1;
    range_move(range, sorts ? RANGE_SORTING : RANGE_SUMMING);
    if (sorts) {
        return resumable_sort_init(&range->sort, range->picks, (size_t)range->picking.count,
                                   sizeof(*range->picks));
    }
    return ST_OK;
}

static enum status range_run_sort(struct range *range, size_t *keys)
{
    size_t moves = size_min(*keys, SIZE_MAX / 2);
    *keys -= moves;
    if (!resumable_sort_step(&range->sort, moves, picks_compare, (void *)(uintptr_t)range->request))
        return ST_AGAIN;
    range_move(range, RANGE_SUMMING);
    return ST_OK;
}

static enum status range_run_sum(struct range *range, size_t *keys)
{
    int64_t limit = range->request->limit > 0 ? range->request->limit : 0;
    range->more = limit && range->picking.count > limit;
    int64_t all = range->more ? limit : range->picking.count;
    for (; range->kvs < all; range->kvs++, --*keys) {
        if (!*keys)
            return ST_AGAIN;
        range->kvs_bytes += sent_bytes(range, &pick_at(range, range->kvs)->kv);
    }
    range_move(range, RANGE_CHECKING);
    return ST_OK;
}

/* Short answers are read twice, so that a client gets either an error or the whole answer. */
/* NOLINTNEXTLINE(readability-non-const-parameter): all phases have one type. */
static enum status range_run_check(struct range *range, size_t *keys)
{
    (void)keys;
    range_move(range, RANGE_READY);
    if (range->keys_only || (range->kvs_bytes > CHECKED_BYTES_MAX && !range->walk.bounds.single))
        return ST_OK;
    struct range_walk walk = range->walk;
    for (int64_t i = 0; i < range->kvs; i++) {
        const struct range_kv *kv = range->picks ? &pick_at(range, i)->kv : range_walk_next(&walk);
        if (!kv)
            return ST_DAMAGED;
        const struct change_head *change;
        range->item = kv->item;
        TRY(version_get(range->log, kv->item, kv->loc, &change));
    }
    return ST_OK;
}

enum status range_step(struct range *range, size_t *keys)
{
    static enum status (*const phases[])(struct range * range, size_t * keys) = {
        [RANGE_COUNTING] = range_run_count, [RANGE_MEASURING] = range_run_measure,
        [RANGE_PICKING] = range_run_pick,   [RANGE_SORTING] = range_run_sort,
        [RANGE_SUMMING] = range_run_sum,    [RANGE_CHECKING] = range_run_check,
    };
    while (range->phase != RANGE_READY)
        TRY(phases[range->phase](range, keys));
    range->left = range->in_window = range->kvs;
    range->request = NULL;
    return ST_OK;
}

/* -- The range -- */

static enum status revision_check(const struct range_state *state, int64_t revision)
{
    if (revision > state->revision)
        return ST_FUTURE_REV;
    if (revision > 0 && revision < state->compact_revision)
        return ST_COMPACTED;
    return ST_OK;
}

/* Sums what a walk will send: at most max key-values (0: all). */
static void walk_measure(const struct range *range, struct range_walk *walk, int64_t max,
                         int64_t *ret_kvs, uint64_t *ret_bytes)
{
    int64_t kvs = 0;
    uint64_t bytes = 0;
    const struct range_kv *kv;
    while ((max == 0 || kvs < max) && (kv = range_walk_next(walk))) {
        kvs++;
        bytes += sent_bytes(range, kv);
    }
    *ret_kvs = kvs;
    *ret_bytes = bytes;
}

enum status range_begin(struct range *range, const struct range_state *state,
                        const struct pb_range_request *request)
{
    TRY(revision_check(state, request->revision));
    /* Not cleared as a whole: the walk's read-ahead is large and needs no clearing. */
    memset(range, 0, offsetof(struct range, walk));
    range->log = state->log;
    range->revision = request->revision > 0 ? request->revision : state->revision;
    range->keys_only = request->keys_only;
    range->keep_lease = request->sort_target == PB_SORT_TARGET_VALUE;
    range->request = request;
    range->state = *state;
    int64_t at =
        request->revision > 0 && request->revision < state->revision ? request->revision : 0;
    range_walk_init(&range->walk, state, range_bounds_of(request->key, request->range_end), at);
    return ST_OK;
}

enum status range_init(struct range *range, const struct range_state *state,
                       const struct pb_range_request *request)
{
    TRY(range_begin(range, state, request));
    size_t keys = SIZE_MAX;
    enum status status = range_step(range, &keys);
    if (status != ST_OK)
        range_fini(range);
    return status;
}

void range_fini(struct range *range)
{
    free(range->picks);
    range->picks = NULL;
    resumable_sort_fini(&range->sort);
    buf_fini(&range->from);
}

static const struct range_kv *range_next(struct range *range)
{
    if (range->picks)
        return &pick_at(range, range->next_pick++)->kv;
    return range_walk_next(&range->walk);
}

void range_window(struct range *range, int64_t keys_max, int64_t *ret_keys, uint64_t *ret_bytes)
{
    int64_t keys = keys_max < range->left ? keys_max : range->left;
    uint64_t bytes = 0;
    assert(range->phase == RANGE_READY);
    if (range->picks) {
        for (int64_t i = 0; i < keys; i++)
            bytes += sent_bytes(range, &pick_at(range, range->next_pick + i)->kv);
    } else if (keys) {
        struct range_walk walk = range->walk;
        walk_measure(range, &walk, keys, &keys, &bytes);
        if (walk.damaged)
            range->broken = ST_DAMAGED;
    }
    range->in_window = keys;
    *ret_keys = keys;
    *ret_bytes = bytes;
}

/* False: the next one cannot be read. */
static bool next_begin(struct range *range)
{
    assert(range->in_window > 0 && range->in_window <= range->left);
    const struct range_kv *kv = range->broken == ST_OK ? range_next(range) : NULL;
    if (kv) {
        field_begin(range, kv);
        range->in_window--;
        range->left--;
    } else {
        range->broken = ST_DAMAGED;
    }
    return range->broken == ST_OK;
}

enum status range_status(const struct range *range)
{
    return range->broken;
}

size_t range_fill(struct range *range, uint8_t *dst, size_t room)
{
    size_t filled = 0;
    while (filled < room) {
        if (range->field_done == field_bytes(range)) {
            if (range->in_window == 0)
                break;
            if (!next_begin(range))
                break;
        }
        filled += field_copy(range, dst + filled, room - filled);
    }
    return filled;
}

bool range_take(struct range *range, struct slice *ret_field)
{
    assert(!range->keys_only && range->field_done == field_bytes(range));
    if (range->in_window == 0)
        return false;
    if (!next_begin(range))
        return false;
    range->field_done = field_bytes(range);
    /* A caller that takes fields reads their contents. */
    if (!change_field_is_sound(range->body, index_item_key(range->item))) {
        log_note_damage(range->log, range->item->newest.loc);
        version_name_damage(range->item, range->item->newest.loc);
        range->broken = ST_DAMAGED;
        return false;
    }
    *ret_field = range->body;
    return true;
}

/* -- Switching to a newer state -- */

/* The same version of the same key in the other state. */
static enum status find_again(const struct range *range, const struct range_state *state,
                              const struct index_item *item, struct range_kv *ret_kv)
{
    const struct index_item *now = index_root_find(&state->root, index_item_key(item));
    enum status status =
        now ? range_item_at(state->log, now, range->revision, ret_kv) : ST_NOT_FOUND;
    /* A revision that is not compacted is the same in every later state. */
    assert(status != ST_NOT_FOUND);
    return status;
}

/* The walk's next item, or NULL at its end. */
static const struct index_item *walk_next_item(const struct range_walk *walk)
{
    if (walk->ahead_next < walk->ahead_count)
        return walk->ahead[walk->ahead_next].item;
    if (walk->ended)
        return NULL;
    struct index_cursor copy = walk->cursor;
    return index_cursor_next(&copy);
}

static bool walk_rebase(struct range *range, const struct range_state *state)
{
    struct range_walk *walk = &range->walk;
    const struct index_item *next = walk_next_item(walk);
    struct range_bounds bounds = walk->bounds;
    bool fetches = walk->fetches;
    if (!next) {
        walk->ended = true;
        return true;
    }
    range->from.len = 0;
    if (buf_append(&range->from, index_item_key(next)) != ST_OK)
        return false;
    bounds.from = buf_slice(&range->from);
    range_walk_init(walk, state, bounds, range->revision);
    walk->fetches = fetches;
    return true;
}

bool range_rebase_begin(struct range *range, const struct range_state *state)
{
    assert(state->revision >= range->revision);
    if (state->compact_revision > range->revision)
        return false;
    if (!range->picks && range->left > 0 && !walk_rebase(range, state))
        return false;
    range->state = *state;
    range->rebased = 0;
    return true;
}

static void field_rebase(struct range *range)
{
    size_t done = range->field_done;
    if (done == field_bytes(range))
        return;
    struct range_kv kv;
    range->broken = find_again(range, &range->state, range->item, &kv);
    if (range->broken == ST_OK)
        field_begin(range, &kv);
    range->field_done = range->broken == ST_OK ? done : field_bytes(range);
}

bool range_rebase_step(struct range *range, size_t *keys)
{
    int64_t end = range->picks ? range->next_pick + range->left : 0;
    if (range->rebased < range->next_pick)
        range->rebased = range->next_pick; /* sent meanwhile */
    for (; range->rebased < end; range->rebased++, --*keys) {
        if (!*keys)
            return false;
        struct range_pick *pick = (struct range_pick *)(uintptr_t)pick_at(range, range->rebased);
        range->broken = find_again(range, &range->state, pick->kv.item, &pick->kv);
        if (range->broken != ST_OK)
            return true;
    }
    field_rebase(range);
    return true;
}

/* -- Within a transaction -- */

static enum status answer_field(struct range *range, const struct range_kv *kv, struct arena *arena,
                                struct slice *ret_field)
{
    if (!range->keys_only) {
        /* Where readers will find it; before it is written, the writer has it elsewhere. */
        const struct change_head *checked;
        TRY(version_get(range->log, kv->item, kv->loc, &checked));
        const uint8_t *change = log_mapped_at(range->log, kv->loc);
        *ret_field = slice_of(change + CHANGE_HEAD_BYTES, kv->field_bytes);
        return ST_OK;
    }
    field_begin(range, kv);
    size_t bytes = field_bytes(range);
    uint8_t *copy = arena_alloc(arena, bytes);
    if (!copy)
        return ST_NOMEM;
    field_copy(range, copy, bytes);
    *ret_field = slice_of(copy, bytes);
    return ST_OK;
}

static enum status answer_begin(const struct range *range, struct arena *arena,
                                struct kv_range_answer *answer)
{
    *answer = (struct kv_range_answer){
        .fields = arena_calloc(arena, (size_t)range->kvs, sizeof(*answer->fields)),
        .fields_bytes = range->kvs_bytes,
        .count = range->count,
        .more = range->more,
    };
    return answer->fields ? ST_OK : ST_NOMEM;
}

enum status range_answer_step(struct range *range, struct arena *arena,
                              struct kv_range_answer *answer, size_t *keys)
{
    assert(range->phase == RANGE_READY);
    if (!answer->fields)
        TRY(answer_begin(range, arena, answer));
    struct slice *fields = (struct slice *)(uintptr_t)answer->fields;
    for (; answer->field_count < (size_t)range->kvs; answer->field_count++, --*keys) {
        if (!*keys)
            return ST_AGAIN;
        const struct range_kv *kv = range_next(range);
        if (!kv)
            return ST_DAMAGED;
        TRY(answer_field(range, kv, arena, &fields[answer->field_count]));
    }
    return ST_OK;
}

enum status range_answer(const struct range_state *state, const struct pb_range_request *request,
                         struct arena *arena, struct kv_range_answer *ret_answer)
{
    struct range range;
    struct kv_range_answer answer = {0};
    size_t keys = SIZE_MAX;
    TRY(range_init(&range, state, request));
    enum status status = range_answer_step(&range, arena, &answer, &keys);
    range_fini(&range);
    if (status == ST_OK)
        *ret_answer = answer;
    return status;
}
