#include "engine/local/shard/history.h"

#include "base/crc32c.h"
#include "base/memory/arena.h"
#include "base/xalloc.h"
#include "store/log/damage.h"
#include "store/log/reader.h"
#include "store/record/change.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEPT_BYTES =
        32 * 1024, /* for the events of a turn; memory beyond this is freed after the turn */
    RECENT = 64,   /* revisions that are cached during a turn; a power of 2 */
};

/* A revision that was read in this turn, and the position of the reader after it. */
struct recent {
    uint64_t turn;
    struct watch_batch batch;
    struct log_reader after;
};

/* A long revision that is read over several turns. Its pin keeps the bytes of its events. */
struct watch_held {
    struct local_history *history;
    uint64_t pinned;
    struct log_record record;
    struct change_walk walk;
    uint32_t sum, wanted; /* checksum of what was read so far, and of the whole body */
    size_t summed;        /* bytes of the body that `sum` covers */
    size_t count, loaded;
    uint32_t *places; /* offsets of the changes in the body, in units of 8 bytes; owned */
};

struct local_history {
    struct watch_history base;
    struct local_history_options options;
    const struct log *log;
    bool listening;

    /* For this turn: */
    bool pinned;
    bool in_turn; /* the view does not change any more */
    uint64_t pin;
    const struct store_view *view;
    int64_t compact_revision;  /* the view's, or a newer one that has removed records */
    uint64_t readable_segment; /* known to stay readable until the pin ends; 0: none */
    struct arena arena;        /* events */
    uint64_t turn;             /* number of the turn; older entries of `recent` are invalid */
    /* The last long revision that was read, and its position: a search by revision would have to
     * read all of it. */
    int64_t long_revision;
    struct log_reader long_before;
    struct recent recent[RECENT];
    _Alignas(16) uint8_t kept[KEPT_BYTES];
};

static struct local_history *history_of(struct watch_history *base)
{
    return CONTAINER_OF(base, struct local_history, base);
}

/* -- Turns -- */

/* The oldest pin holds all newer states too, so a newer view needs no other pin. */
static void load_view(struct local_history *h)
{
    assert(h->pinned);
    h->view = store_view(h->options.store);
    h->compact_revision = h->view->compact_revision;
}

static void pin(struct local_history *h)
{
    if (h->pinned)
        return;
    h->pin = epoch_pin(h->options.slot);
    h->pinned = true;
    load_view(h);
}

/* Until the turn begins, each call uses the newest state: a client that got the answer to a write
 * through another shard must not get an older revision here. */
static void load_newest(struct local_history *h)
{
    pin(h);
    if (!h->in_turn)
        load_view(h);
}

void local_history_turn_begin(struct local_history *h)
{
    pin(h);
    load_view(h);
    h->in_turn = true;
}

void local_history_flushed(struct local_history *h)
{
    if (!h->pinned)
        return;
    epoch_unpin(h->options.slot, h->pin);
    arena_fini(&h->arena);
    arena_init(&h->arena, h->kept, KEPT_BYTES, SIZE_MAX);
    h->pinned = h->in_turn = false;
    h->view = NULL;
    h->readable_segment = 0;
    h->turn++;
}

bool local_history_wanted(const struct local_history *h)
{
    return h->listening || h->pinned;
}

static int64_t revision(struct watch_history *base)
{
    struct local_history *h = history_of(base);
    load_newest(h);
    return h->view->revision;
}

static int64_t compact_revision(struct watch_history *base)
{
    struct local_history *h = history_of(base);
    load_newest(h);
    return h->compact_revision;
}

static void listen(struct watch_history *base, bool wanted)
{
    struct local_history *h = history_of(base);
    h->listening = wanted;
    if (wanted) {
        /* A compaction need not wait for this shard because of what was published before. */
        uint64_t pinned = epoch_pin(h->options.slot);
        revision_notice_seen(h->options.notice, store_view(h->options.store)->revision);
        epoch_unpin(h->options.slot, pinned);
    }
    revision_notice_listen(h->options.notice, wanted);
}

/* -- Reading -- */

/* A reader at the place's position in the log, or, if that is not valid any more, at the position
 * found by its revision. */
static struct log_reader reader_at(const struct local_history *h, const struct watch_place *place)
{
    struct log_reader reader = {
        .log = h->log,
        .segment_id = place->hints[0],
        .offset = place->hints[1],
        .next_index = place->hints[2],
    };
    /* The place has no hints, but this long revision was read a moment ago. */
    if (!reader.segment_id && place->revision == h->long_revision)
        reader = h->long_before;
    bool valid = reader.segment_id &&
                 (reader.segment_id == h->readable_segment || log_reader_is_current(&reader));
    if (!valid)
        log_reader_seek_revision(&reader, h->log, place->revision);
    reader.checked_bytes_max = WATCH_WHOLE_BYTES;
    return reader;
}

static void keep_place(struct watch_place *place, int64_t next_revision,
                       const struct log_reader *reader)
{
    assert(next_revision > place->revision);
    place->revision = next_revision;
    place->hints[0] = reader->segment_id;
    place->hints[1] = reader->offset;
    place->hints[2] = reader->next_index;
}

/* Finds the first record of [from, last] and leaves the reader after it; if there is none, before
 * the first record after last. */
static enum status find_record(const struct local_history *h, struct log_reader *reader,
                               int64_t from, int64_t last, struct log_record *ret_record)
{
    assert(h->pinned);
    for (;;) {
        struct log_reader before = *reader;
        struct log_record record;
        TRY(change_record_next(reader, h->view->log_index, &record));
        if (record.revision < from)
            continue;
        if (record.revision > last) {
            *reader = before;
            return ST_END;
        }
        *ret_record = record;
        return ST_OK;
    }
}

static void fill_event(const struct change_head *change, int64_t revision,
                       struct watch_event *ret_event)
{
    struct change_kv kv;
    change_read_kv(change, &kv);
    *ret_event = (struct watch_event){
        .key = kv.key,
        .field = change_field(change),
        .tombstone = change_is_tombstone(change),
        .created = kv.create_revision == revision,
        .private = change,
    };
}

static enum status decode(struct local_history *h, const struct log_record *record,
                          struct watch_batch *ret_batch)
{
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    if (walk.left == 0 || walk.left > record->body.len / CHANGE_HEAD_BYTES)
        return ST_DAMAGED;
    size_t count = walk.left, bytes = count * sizeof(struct watch_event);
    if (count > WATCH_WHOLE_EVENTS || record->body.len > WATCH_WHOLE_BYTES) {
        /* A long revision, which is read over several turns: see `hold`. */
        *ret_batch = (struct watch_batch){.revision = record->revision, .count = count};
        return ST_OK;
    }
    struct watch_event *events = xalloc_check(arena_alloc(&h->arena, bytes), bytes);
    for (size_t i = 0; i < count; i++) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        fill_event(change, record->revision, &events[i]);
    }
    *ret_batch =
        (struct watch_batch){.revision = record->revision, .events = events, .count = count};
    return ST_OK;
}

/*
 * Segments are replaced while they are read: a record that a newer compaction has dropped may have
 * been missing from the segment just read. Compactions are published before the cleaner begins.
 */
static bool compacted_meanwhile(struct local_history *h, int64_t from)
{
    int64_t now = store_view(h->options.store)->compact_revision;
    if (from >= now)
        return false;
    h->compact_revision = now;
    return true;
}

/*
 * Finds the first record of keys after damage. If it has the wanted revision, only other records
 * were damaged (leases, a compaction). Otherwise revisions are lost: ST_DAMAGED. The reader is left
 * after that record, or after the damage.
 */
static enum status find_after_damage(const struct local_history *h, struct log_reader *reader,
                                     int64_t from, int64_t last, struct log_record *ret_record,
                                     int64_t *ret_revision)
{
    struct log_reader ahead;
    enum status status;
    do {
        log_reader_pass_damage(reader);
        ahead = *reader;
        status = find_record(h, &ahead, from, last, ret_record);
    } while (status == ST_DAMAGED);
    *ret_revision = status == ST_OK ? ret_record->revision : last + 1;
    if (*ret_revision != from)
        return ST_DAMAGED;
    *reader = ahead;
    return ST_OK;
}

static enum status read_revision(struct local_history *h, struct watch_place *place, int64_t last,
                                 struct recent *ret_recent)
{
    struct log_reader reader = reader_at(h, place);
    struct log_record record;
    struct watch_batch batch;
    int64_t resume_at = last + 1;
    enum status status = find_record(h, &reader, place->revision, last, &record);
    if (status == ST_DAMAGED)
        status = find_after_damage(h, &reader, place->revision, last, &record, &resume_at);
    h->readable_segment = reader.segment_id;
    if (status == ST_OK)
        status = decode(h, &record, &batch);
    if (status == ST_OK && !batch.events) {
        h->long_revision = record.revision;
        log_reader_init_before(&h->long_before, h->log, &record);
    }
    if (compacted_meanwhile(h, place->revision))
        return ST_COMPACTED;
    if (status == ST_OK)
        *ret_recent = (struct recent){.turn = h->turn, .batch = batch, .after = reader};
    else
        keep_place(place, resume_at, &reader);
    /* The keys of the damaged records are unknown, so every reader gets the error and continues
     * after the damage. */
    if (status == ST_DAMAGED)
        h->options.on_damage(h->options.ctx, status);
    return status;
}

static enum status next(struct watch_history *base, struct watch_place *place, int64_t last,
                        struct watch_batch *ret_batch)
{
    struct local_history *h = history_of(base);
    pin(h);
    assert(last <= h->view->revision);
    if (place->revision < h->compact_revision)
        return ST_COMPACTED;
    if (place->revision > last)
        return ST_END;
    struct recent *recent = &h->recent[(uint64_t)place->revision % RECENT];
    bool known = recent->turn == h->turn && recent->batch.revision == place->revision;
    if (!known)
        TRY(read_revision(h, place, last, recent));
    keep_place(place, recent->batch.revision + 1, &recent->after);
    *ret_batch = recent->batch;
    return ST_OK;
}

/* -- Long revisions -- */

static enum status hold(struct watch_history *base, const struct watch_place *place,
                        int64_t revision, struct watch_held **ret_held, size_t *ret_count)
{
    struct local_history *h = history_of(base);
    pin(h);
    struct log_reader reader = reader_at(h, place);
    struct log_record record;
    struct change_walk walk;
    int64_t resume_at;
    enum status status = find_record(h, &reader, place->revision, revision, &record);
    if (status == ST_DAMAGED)
        status = find_after_damage(h, &reader, place->revision, revision, &record, &resume_at);
    if (status == ST_OK)
        status = change_walk_init(&walk, record.body);
    if (compacted_meanwhile(h, revision))
        return ST_COMPACTED;
    TRY(status);
    if (record.revision != revision || walk.left == 0 ||
        walk.left > record.body.len / CHANGE_HEAD_BYTES)
        return ST_DAMAGED;
    struct watch_held *held = xmalloc(sizeof(*held));
    *held = (struct watch_held){
        .history = h,
        .pinned = epoch_pin(h->options.slot),
        .record = record,
        .walk = walk,
        .count = walk.left,
        .places = xmalloc(walk.left * sizeof(held->places[0])),
    };
    log_record_sum(h->log, &record, &held->sum, &held->wanted);
    *ret_held = held;
    *ret_count = held->count;
    return ST_OK;
}

static enum status damaged(const struct watch_held *held)
{
    log_note_damage(held->history->log, held->record.body_loc);
    held->history->options.on_damage(held->history->options.ctx, ST_DAMAGED);
    return ST_DAMAGED;
}

static void sum_up_to(struct watch_held *held, size_t end)
{
    assert(end >= held->summed && end <= held->record.body.len);
    held->sum = crc32c(held->sum, slice_sub(held->record.body, held->summed, end - held->summed));
    held->summed = end;
}

/* Reading and checksumming this many bytes takes about as long as one event. */
enum { BYTES_PER_UNIT = 256 };

static enum status load(struct watch_held *held, size_t *units)
{
    while (held->loaded < held->count) {
        const struct change_head *change;
        size_t offset;
        if (!*units) {
            sum_up_to(held, held->walk.offset);
            return ST_AGAIN;
        }
        if (change_walk_next(&held->walk, &change, &offset) != ST_OK)
            return damaged(held);
        held->places[held->loaded++] = (uint32_t)(offset / CHANGE_ALIGN);
        *units -= size_min(*units, 1 + (held->walk.offset - offset) / BYTES_PER_UNIT);
    }
    sum_up_to(held, held->record.body.len); /* the rows after the changes */
    return held->sum == held->wanted ? ST_OK : damaged(held);
}

static void event(const struct watch_held *held, size_t at, struct watch_event *ret_event)
{
    assert(at < held->loaded);
    const uint8_t *body = held->record.body.ptr;
    fill_event(change_at(body + (size_t)held->places[at] * CHANGE_ALIGN), held->record.revision,
               ret_event);
}

static void release(struct watch_held *held)
{
    epoch_unpin(held->history->options.slot, held->pinned);
    free(held->places);
    free(held);
}

/* -- Previous versions -- */

/* NULL if it cannot be read. */
static const struct change_head *get(const struct log *log, uint64_t loc)
{
    const struct change_head *head;
    return change_get(log, loc, &head) == ST_OK ? head : NULL;
}

/* NULL if it does not exist. It is nearly always the newest of the older versions. */
static const struct change_head *find_version(const struct log *log, const struct index_item *item,
                                              int64_t revision, uint32_t sub)
{
    if (item->newest.mod_revision == revision && item->newest.sub_revision == sub)
        return get(log, item->newest.loc);
    const uint64_t *older = index_item_older(item);
    uint32_t low = 0, high = item->older_count;
    for (uint32_t at = high - 1; low < high; at = low + (high - low) / 2) {
        const struct change_head *version = get(log, older[at]);
        if (!version)
            return NULL;
        if (version->revision == revision && version->sub == sub)
            return version;
        if (version->revision < revision || (version->revision == revision && version->sub < sub))
            low = at + 1;
        else
            high = at;
    }
    return NULL;
}

static struct slice prev(struct watch_history *base, const struct watch_event *event)
{
    struct local_history *h = history_of(base);
    const struct change_head *change = event->private;
    pin(h);
    if (event->created || change->prev_revision == 0)
        return SLICE_EMPTY;
    /* A version that a compaction has removed is left out, as in etcd. */
    const struct index_item *item = index_root_find(&h->view->root, event->key);
    const struct change_head *version =
        item ? find_version(h->log, item, change->prev_revision, change->prev_sub) : NULL;
    return version && !change_is_tombstone(version) ? change_field(version) : SLICE_EMPTY;
}

/* -- Life -- */

static const struct watch_history_ops history_ops = {
    .next = next,
    .hold = hold,
    .load = load,
    .event = event,
    .release = release,
    .prev = prev,
    .revision = revision,
    .compact_revision = compact_revision,
    .listen = listen,
};

struct local_history *local_history_new(const struct local_history_options *options)
{
    struct local_history *h = xcalloc(1, sizeof(*h));
    h->base.ops = &history_ops;
    h->options = *options;
    h->log = store_log(options->store);
    h->turn = 1;
    arena_init(&h->arena, h->kept, KEPT_BYTES, SIZE_MAX);
    return h;
}

void local_history_free(struct local_history *h)
{
    if (!h)
        return;
    assert(!h->pinned);
    arena_fini(&h->arena);
    free(h);
}

struct watch_history *local_history_base(struct local_history *h)
{
    return &h->base;
}
