/* A history in memory, for tests and benchmarks. It hands out copies that are freed at the end of
 * the turn, so that a later use is found. Header only; each test program has its own. */
#ifndef VIGIL_WATCH_HISTORY_TEST_H
#define VIGIL_WATCH_HISTORY_TEST_H

#include "base/buf.h"
#include "base/container/hash_map.h"
#include "base/xalloc.h"
#include "codec/pb/kv.pb.h"
#include "watch/index/history.h"

struct memory_event {
    struct buf key, field, prev;
    bool tombstone, created;
};

struct memory_revision {
    struct memory_event *events;
    size_t count;
};

/* The newest version of a key. The slices point into its event. */
struct memory_version {
    struct slice key;
    struct slice field; /* empty: deleted */
};

struct memory_block {
    struct memory_block *next;
};

struct memory_history {
    struct watch_history history;
    struct memory_revision *revisions; /* [i] is revision i; 0 and 1 have no events */
    int64_t revision, published, compacted;
    int64_t void_until; /* newer revisions up to this one are of another past */
    size_t capacity;
    struct hash_map newest;      /* by key */
    struct memory_block *blocks; /* handed out in this turn */
    int64_t damaged;             /* a revision that cannot be read; 0: none; negative: a long one */
    unsigned again_every;        /* every this many calls of next return ST_AGAIN; 0: none */
    unsigned calls;
    bool again_said, listening;
    size_t long_from; /* revisions of at least this many events are long; 0: none are */
    unsigned held;    /* long revisions that were not released */
    size_t looks;     /* at events of long revisions; reset by the test */
};

/* Hands out copies that are freed with it. */
struct watch_held {
    struct memory_history *memory;
    int64_t revision;
    size_t count, loaded;
    struct memory_block *blocks;
};

static inline struct memory_history *memory_of(struct watch_history *history)
{
    return CONTAINER_OF(history, struct memory_history, history);
}

static inline struct slice memory_keep(struct memory_history *memory, struct slice bytes)
{
    struct memory_block *block = xmalloc(sizeof(*block) + bytes.len);
    block->next = memory->blocks;
    memory->blocks = block;
    slice_copy(block + 1, bytes);
    return slice_of(block + 1, bytes.len);
}

static inline void memory_blocks_free(struct memory_block *blocks)
{
    while (blocks) {
        struct memory_block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

static inline void memory_turn_end(struct memory_history *memory)
{
    memory_blocks_free(memory->blocks);
    memory->blocks = NULL;
}

static enum status memory_next(struct watch_history *history, struct watch_place *place,
                               int64_t last, struct watch_batch *ret_batch)
{
    struct memory_history *memory = memory_of(history);
    assert(last <= memory->published);
    assert(place->hints[0] == 0 || place->hints[0] == (uint64_t)place->revision);
    if (place->revision < memory->compacted)
        return ST_COMPACTED;
    if (memory->again_every && ++memory->calls % memory->again_every == 0) {
        memory->again_said = true;
        return ST_AGAIN;
    }
    int64_t at = place->revision < 2 ? 2 : place->revision;
    if (at > last) {
        place->revision = last + 1;
        place->hints[0] = 0;
        return ST_END;
    }
    if (at == memory->damaged) {
        *place = (struct watch_place){.revision = at + 1};
        return ST_DAMAGED;
    }
    const struct memory_revision *revision = &memory->revisions[at];
    if (memory->long_from && revision->count >= memory->long_from) {
        *ret_batch = (struct watch_batch){.revision = at, .count = revision->count};
        place->revision = at + 1;
        place->hints[0] = (uint64_t)place->revision;
        return ST_OK;
    }
    struct watch_event *events = xcalloc(revision->count, sizeof(*events));
    for (size_t i = 0; i < revision->count; i++)
        events[i] = (struct watch_event){
            .key = memory_keep(memory, buf_slice(&revision->events[i].key)),
            .field = memory_keep(memory, buf_slice(&revision->events[i].field)),
            .tombstone = revision->events[i].tombstone,
            .created = revision->events[i].created,
            .private = &revision->events[i],
        };
    *ret_batch = (struct watch_batch){
        .revision = at,
        .events = (const struct watch_event *)(const void *)memory_keep(
                      memory, slice_of(events, revision->count * sizeof(*events)))
                      .ptr,
        .count = revision->count,
    };
    free(events);
    place->revision = at + 1;
    place->hints[0] = (uint64_t)place->revision;
    return ST_OK;
}

static enum status memory_hold(struct watch_history *history, const struct watch_place *place,
                               int64_t revision, struct watch_held **ret_held, size_t *ret_count)
{
    struct memory_history *memory = memory_of(history);
    assert(place->revision <= revision);
    assert(place->hints[0] == 0 || place->hints[0] == (uint64_t)place->revision);
    if (revision < memory->compacted)
        return ST_COMPACTED;
    struct watch_held *held = xcalloc(1, sizeof(*held));
    *held = (struct watch_held){
        .memory = memory, .revision = revision, .count = memory->revisions[revision].count};
    memory->held++;
    *ret_held = held;
    *ret_count = held->count;
    return ST_OK;
}

static enum status memory_load(struct watch_held *held, size_t *units)
{
    assert(*units > 0);
    size_t more = size_min(*units, held->count - held->loaded);
    held->loaded += more;
    *units -= more;
    held->memory->looks += more;
    if (held->revision == -held->memory->damaged)
        return ST_DAMAGED;
    return held->loaded == held->count ? ST_OK : ST_AGAIN;
}

static void memory_event(const struct watch_held *held, size_t at, struct watch_event *ret_event)
{
    const struct memory_event *own = &held->memory->revisions[held->revision].events[at];
    struct watch_held *changed = (struct watch_held *)(uintptr_t)held;
    assert(held->loaded == held->count && at < held->count);
    held->memory->looks++;
    struct memory_block *others = held->memory->blocks;
    held->memory->blocks = changed->blocks;
    *ret_event = (struct watch_event){
        .key = memory_keep(held->memory, buf_slice(&own->key)),
        .field = memory_keep(held->memory, buf_slice(&own->field)),
        .tombstone = own->tombstone,
        .created = own->created,
        .private = own,
    };
    changed->blocks = held->memory->blocks;
    held->memory->blocks = others;
}

static void memory_release(struct watch_held *held)
{
    held->memory->held--;
    memory_blocks_free(held->blocks);
    free(held);
}

static struct slice memory_prev(struct watch_history *history, const struct watch_event *event)
{
    const struct memory_event *own = event->private;
    return memory_keep(memory_of(history), buf_slice(&own->prev));
}

static int64_t memory_revision(struct watch_history *history)
{
    return memory_of(history)->published;
}

static int64_t memory_compact_revision(struct watch_history *history)
{
    return memory_of(history)->compacted;
}

static bool memory_is_void(struct watch_history *history, int64_t revision)
{
    const struct memory_history *memory = memory_of(history);
    return revision > memory->published + 1 && revision <= memory->void_until;
}

static void memory_listen(struct watch_history *history, bool wanted)
{
    struct memory_history *memory = memory_of(history);
    assert(memory->listening != wanted);
    memory->listening = wanted;
}

static inline struct slice memory_version_key(const void *version)
{
    return ((const struct memory_version *)version)->key;
}

static inline void memory_init(struct memory_history *memory)
{
    static const struct watch_history_ops ops = {
        .next = memory_next,
        .prev = memory_prev,
        .hold = memory_hold,
        .load = memory_load,
        .event = memory_event,
        .release = memory_release,
        .revision = memory_revision,
        .compact_revision = memory_compact_revision,
        .is_void = memory_is_void,
        .listen = memory_listen,
    };
    *memory =
        (struct memory_history){.history.ops = &ops, .revision = 1, .published = 1, .capacity = 16};
    memory->revisions = xcalloc(memory->capacity, sizeof(memory->revisions[0]));
    hash_map_init(&memory->newest, memory_version_key, 1);
}

static inline void memory_fini(struct memory_history *memory)
{
    memory_turn_end(memory);
    assert(memory->held == 0);
    for (int64_t i = 0; i <= memory->revision; i++) {
        for (size_t k = 0; k < memory->revisions[i].count; k++) {
            buf_fini(&memory->revisions[i].events[k].key);
            buf_fini(&memory->revisions[i].events[k].field);
            buf_fini(&memory->revisions[i].events[k].prev);
        }
        free(memory->revisions[i].events);
    }
    free(memory->revisions);
    struct memory_version *newest;
    MAP_FOREACH (newest, &memory->newest)
        free(newest);
    hash_map_fini(&memory->newest);
}

/* The encoded newest version of a key; empty if it does not exist. */
static inline struct slice memory_newest(struct memory_history *memory, struct slice key)
{
    const struct memory_version *newest = hash_map_get(&memory->newest, key);
    return newest ? newest->field : SLICE_EMPTY;
}

/* Replaces the newest version of the event's key. */
static inline void memory_set_newest(struct memory_history *memory,
                                     const struct memory_event *event)
{
    struct memory_version *newest = hash_map_get(&memory->newest, buf_slice(&event->key));
    if (!newest) {
        void *replaced;
        newest = xmalloc(sizeof(*newest));
        newest->key = buf_slice(&event->key);
        enum status status = hash_map_put(&memory->newest, newest, &replaced);
        assert(status == ST_OK && !replaced);
    }
    newest->field = event->tombstone ? SLICE_EMPTY : buf_slice(&event->field);
}

static inline struct memory_event *memory_new_event(struct memory_revision *revision)
{
    /* The array grows whenever its length is a power of two. */
    if (!(revision->count & (revision->count - 1)))
        revision->events =
            xrealloc(revision->events, (2 * revision->count + 1) * sizeof(revision->events[0]));
    return &revision->events[revision->count++];
}

/* Begins a revision; the puts and deletes that follow are its events. */
static inline void memory_begin(struct memory_history *memory)
{
    if ((size_t)++memory->revision == memory->capacity) {
        memory->capacity *= 2;
        memory->revisions =
            xrealloc(memory->revisions, memory->capacity * sizeof(memory->revisions[0]));
    }
    memory->revisions[memory->revision] = (struct memory_revision){0};
}

static inline void memory_add(struct memory_history *memory, struct slice key, struct slice value,
                              bool tombstone)
{
    struct slice prev = memory_newest(memory, key);
    struct memory_event *event = memory_new_event(&memory->revisions[memory->revision]);
    *event = (struct memory_event){.tombstone = tombstone, .created = !tombstone && !prev.len};
    struct pb_key_value kv = {.key = key, .mod_revision = memory->revision};
    if (!tombstone) {
        kv.value = value;
        kv.version = 1;
        kv.create_revision = memory->revision;
    }
    struct pb_event wrapped = {.kv = &kv};
    enum status status = buf_append(&event->key, key);
    assert(status == ST_OK);
    status = pb_append(&pb_event_table, &wrapped, &event->field);
    assert(status == ST_OK);
    status = buf_append(&event->prev, prev);
    assert(status == ST_OK);
    memory_set_newest(memory, event);
}

static inline void memory_publish(struct memory_history *memory)
{
    memory->published = memory->revision;
}

static inline void memory_put(struct memory_history *memory, const char *key, const char *value)
{
    memory_begin(memory);
    memory_add(memory, slice_from_text(key), slice_from_text(value), false);
    memory_publish(memory);
}

static inline void memory_delete(struct memory_history *memory, const char *key)
{
    memory_begin(memory);
    memory_add(memory, slice_from_text(key), SLICE_EMPTY, true);
    memory_publish(memory);
}

#endif
