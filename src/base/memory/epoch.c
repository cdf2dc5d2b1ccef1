#include "base/memory/epoch.h"

#include "base/xalloc.h"

#include <string.h>

enum { CACHE_LINE = 64, BATCH_ENTRIES = 127, PINS_FIRST = 8 };
/* Objects that are fetched ahead of being freed: they were replaced long ago. */
enum { FREED_AHEAD = 8 };

/* The value of a slot whose reader pins nothing: later than any state. */
#define EPOCH_IDLE UINT64_MAX

/* How often the reader pins a number. */
struct epoch_pin_count {
    uint64_t number;
    uint64_t count; /* 0: unpinned, but an older one is still pinned */
};

struct epoch_slot {
    /* Written by the reader, read by the writer: the oldest number pinned. */
    _Alignas(CACHE_LINE) _Atomic uint64_t shown;
    /* Used by the reader only: pins[first … first + used), numbers rising, none unpinned at either end. */
    _Alignas(CACHE_LINE) struct epoch *epoch;
    struct epoch_pin_count *pins;
    size_t first;
    size_t used;
    size_t capacity;
};

struct epoch_retired {
    void *object;
    void (*free_fn)(void *ctx, void *object);
    void *ctx;
    uint64_t number; /* the first state that does not contain the object */
};

/* A part of the queue of retired objects. */
struct epoch_batch {
    struct epoch_batch *newer;
    uint32_t begin, end;
    struct epoch_retired entries[BATCH_ENTRIES];
};

struct epoch {
    _Alignas(CACHE_LINE) _Atomic uint64_t published;
    /* Used by the writer only. */
    _Alignas(CACHE_LINE) uint64_t building;
    struct epoch_batch *oldest, *newest; /* numbers never fall along the queue */
    struct epoch_batch *spare; /* one empty batch, so that a steady flow allocates nothing */
    size_t waiting;
    unsigned slots_max;
    _Atomic unsigned slots_used; /* may exceed slots_max only in a call that asserts */
    struct epoch_slot slots[];
};

struct epoch *epoch_new(unsigned slots_max)
{
    size_t bytes = sizeof(struct epoch) + slots_max * sizeof(struct epoch_slot);
    struct epoch *epoch = xalloc_check(aligned_alloc(CACHE_LINE, bytes), bytes);
    memset(epoch, 0, bytes);
    epoch->slots_max = slots_max;
    epoch->building = 1;
    atomic_init(&epoch->published, 0);
    atomic_init(&epoch->slots_used, 0);
    for (unsigned i = 0; i < slots_max; i++) {
        epoch->slots[i].epoch = epoch;
        atomic_init(&epoch->slots[i].shown, EPOCH_IDLE);
    }
    return epoch;
}

static void batch_pop(struct epoch *epoch);

/* Frees the entries with a number of at most `until`, at most max of them. */
static void epoch_free_until(struct epoch *epoch, uint64_t until, size_t max)
{
    while (max > 0 && epoch->oldest) {
        struct epoch_batch *batch = epoch->oldest;
        if (batch->begin == batch->end) {
            batch_pop(epoch);
            continue;
        }
        struct epoch_retired *entry = &batch->entries[batch->begin];
        if (entry->number > until)
            return;
        if (LIKELY(batch->begin + FREED_AHEAD < batch->end))
            __builtin_prefetch(entry[FREED_AHEAD].object, 1);
        batch->begin++;
        max--;
        epoch->waiting--;
        entry->free_fn(entry->ctx, entry->object);
    }
}

void epoch_free(struct epoch *epoch)
{
    if (!epoch)
        return;
    for (unsigned i = 0; i < epoch->slots_max; i++) {
        assert(epoch->slots[i].used == 0);
        free(epoch->slots[i].pins);
    }
    epoch_free_until(epoch, UINT64_MAX, SIZE_MAX);
    free(epoch->spare);
    free(epoch);
}

/* -- Readers -- */

struct epoch_slot *epoch_slot_add(struct epoch *epoch)
{
    unsigned place = atomic_fetch_add(&epoch->slots_used, 1);
    assert(place < epoch->slots_max);
    return &epoch->slots[place];
}

static void slot_note(struct epoch_slot *slot, uint64_t number)
{
    if (slot->used && slot->pins[slot->first + slot->used - 1].number == number) {
        slot->pins[slot->first + slot->used - 1].count++;
        return;
    }
    if (slot->first + slot->used == slot->capacity) {
        if (slot->first < slot->used || !slot->capacity) {
            slot->capacity = size_max(PINS_FIRST, slot->capacity * 2);
            slot->pins = xrealloc(slot->pins, slot->capacity * sizeof(*slot->pins));
        }
        memmove(slot->pins, slot->pins + slot->first, slot->used * sizeof(*slot->pins));
        slot->first = 0;
    }
    slot->pins[slot->first + slot->used++] = (struct epoch_pin_count){number, 1};
}

uint64_t epoch_pin(struct epoch_slot *slot)
{
    struct epoch *epoch = slot->epoch;
    uint64_t number = atomic_load(&epoch->published);
    if (slot->used == 0) {
        /* Either the writer reads the slots after our store and sees it, or our second load follows
         * its publishing and sees that: all four operations are sequentially consistent. */
        for (;;) {
            atomic_store(&slot->shown, number);
            uint64_t again = atomic_load(&epoch->published);
            if (LIKELY(again == number))
                break;
            number = again;
        }
    }
    slot_note(slot, number);
    return number;
}

static struct epoch_pin_count *slot_find(struct epoch_slot *slot, uint64_t number)
{
    size_t low = slot->first, high = slot->first + slot->used;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slot->pins[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low < slot->first + slot->used);
    assert(slot->pins[low].number == number);
    return &slot->pins[low];
}

void epoch_unpin(struct epoch_slot *slot, uint64_t number)
{
    struct epoch_pin_count *pin = slot_find(slot, number);
    assert(pin->count > 0);
    if (--pin->count > 0)
        return;
    while (slot->used && slot->pins[slot->first + slot->used - 1].count == 0)
        slot->used--;
    size_t first = slot->first;
    while (slot->used && slot->pins[slot->first].count == 0) {
        slot->first++;
        slot->used--;
    }
    /* Release: everything that was read in that state was read before the writer sees that we are
     * done. */
    if (slot->used == 0) {
        slot->first = 0;
        atomic_store_explicit(&slot->shown, EPOCH_IDLE, memory_order_release);
    } else if (slot->first != first) {
        atomic_store_explicit(&slot->shown, slot->pins[slot->first].number, memory_order_release);
    }
}

/* -- The writer -- */

uint64_t epoch_next(const struct epoch *epoch)
{
    return epoch->building;
}

uint64_t epoch_seal(struct epoch *epoch)
{
    return epoch->building++;
}

void epoch_publish_number(struct epoch *epoch, uint64_t number)
{
    assert(number < epoch->building);
    assert(number >= atomic_load_explicit(&epoch->published, memory_order_relaxed));
    atomic_store(&epoch->published, number);
}

void epoch_publish(struct epoch *epoch)
{
    epoch_publish_number(epoch, epoch_seal(epoch));
}

static void batch_push(struct epoch *epoch)
{
    struct epoch_batch *batch = epoch->spare ? TAKE(epoch->spare) : xmalloc(sizeof(*batch));
    batch->newer = NULL;
    batch->begin = batch->end = 0;
    if (epoch->newest)
        epoch->newest->newer = batch;
    else
        epoch->oldest = batch;
    epoch->newest = batch;
}

static void batch_pop(struct epoch *epoch)
{
    struct epoch_batch *batch = epoch->oldest;
    epoch->oldest = batch->newer;
    if (!epoch->oldest)
        epoch->newest = NULL;
    if (epoch->spare)
        free(batch);
    else
        epoch->spare = batch;
}

void epoch_retire(struct epoch *epoch, void *object, void (*free_fn)(void *ctx, void *object),
                  void *ctx)
{
    if (UNLIKELY(!epoch->newest || epoch->newest->end == BATCH_ENTRIES))
        batch_push(epoch);
    struct epoch_batch *batch = epoch->newest;
    batch->entries[batch->end++] = (struct epoch_retired){object, free_fn, ctx, epoch->building};
    epoch->waiting++;
}

uint64_t epoch_oldest(const struct epoch *epoch)
{
    uint64_t oldest = atomic_load(&epoch->published);
    /* A slot that is not counted yet cannot pin an older state: its reader counts it before it
     * loads the published number, and the writer has published before it loads the count. */
    unsigned used = atomic_load(&epoch->slots_used);
    for (unsigned i = 0; i < used; i++) {
        uint64_t shown = atomic_load(&epoch->slots[i].shown);
        if (shown < oldest)
            oldest = shown;
    }
    return oldest;
}

size_t epoch_waiting(const struct epoch *epoch)
{
    return epoch->waiting;
}

size_t epoch_reclaim(struct epoch *epoch, size_t max)
{
    if (epoch->waiting)
        epoch_free_until(epoch, epoch_oldest(epoch), max);
    return epoch->waiting;
}
