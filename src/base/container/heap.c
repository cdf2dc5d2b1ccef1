#include "base/container/heap.h"

#include <stdlib.h>

enum { CHILDREN = 4, CAPACITY_MIN = 16 };

void heap_fini(struct heap *heap)
{
    free(heap->entries);
    *heap = (struct heap){0};
}

static void heap_set(struct heap *heap, size_t at, struct heap_entry entry)
{
    heap->entries[at] = entry;
    entry.link->place = at + 1;
}

/* Moves the entry from `at` towards the first. */
static void heap_rise(struct heap *heap, size_t at, struct heap_entry entry)
{
    while (at > 0) {
        size_t parent = (at - 1) / CHILDREN;
        if (heap->entries[parent].number <= entry.number)
            break;
        heap_set(heap, at, heap->entries[parent]);
        at = parent;
    }
    heap_set(heap, at, entry);
}

static size_t heap_least_child(const struct heap *heap, size_t at)
{
    size_t first = at * CHILDREN + 1;
    size_t end = size_min(first + CHILDREN, heap->count);
    size_t least = first;
    for (size_t i = first + 1; i < end; i++)
        if (heap->entries[i].number < heap->entries[least].number)
            least = i;
    return least;
}

/* Moves the entry from `at` away from the first. */
static void heap_sink(struct heap *heap, size_t at, struct heap_entry entry)
{
    while (at * CHILDREN + 1 < heap->count) {
        size_t child = heap_least_child(heap, at);
        if (heap->entries[child].number >= entry.number)
            break;
        heap_set(heap, at, heap->entries[child]);
        at = child;
    }
    heap_set(heap, at, entry);
}

/* Puts the entry at `at`, in place of another one, and moves it to its proper place. */
static void heap_settle(struct heap *heap, size_t at, struct heap_entry entry)
{
    if (at > 0 && heap->entries[(at - 1) / CHILDREN].number > entry.number)
        heap_rise(heap, at, entry);
    else
        heap_sink(heap, at, entry);
}

MUST_CHECK
static enum status heap_resize(struct heap *heap, size_t capacity)
{
    struct heap_entry *entries = realloc(heap->entries, capacity * sizeof(entries[0]));
    if (!entries)
        return ST_NOMEM;
    heap->entries = entries;
    heap->capacity = capacity;
    return ST_OK;
}

enum status heap_put(struct heap *heap, struct heap_link *link, int64_t number)
{
    struct heap_entry entry = {.number = number, .link = link};
    if (link->place) {
        assert(heap->entries[link->place - 1].link == link);
        heap_settle(heap, link->place - 1, entry);
        return ST_OK;
    }
    if (heap->count == heap->capacity)
        TRY(heap_resize(heap, size_max(CAPACITY_MIN, heap->capacity * 2)));
    heap->count++;
    heap_rise(heap, heap->count - 1, entry);
    return ST_OK;
}

void heap_remove(struct heap *heap, struct heap_link *link)
{
    if (!link->place)
        return;
    size_t at = link->place - 1;
    assert(at < heap->count);
    assert(heap->entries[at].link == link);
    link->place = 0;
    struct heap_entry last = heap->entries[--heap->count];
    if (at < heap->count)
        heap_settle(heap, at, last);
    if (heap->capacity > CAPACITY_MIN && heap->count < heap->capacity / 4) {
        /* Shrinking may fail; then it stays large. */
        enum status ignored = heap_resize(heap, heap->capacity / 2);
        (void)ignored;
    }
}

struct heap_link *heap_pop(struct heap *heap, int64_t until)
{
    struct heap_link *first = heap_first(heap);
    if (!first || heap->entries[0].number > until)
        return NULL;
    heap_remove(heap, first);
    return first;
}

void heap_check(const struct heap *heap)
{
    assert(heap->count <= heap->capacity);
    for (size_t i = 0; i < heap->count; i++) {
        assert(heap->entries[i].link->place == i + 1);
        assert(i == 0 || heap->entries[(i - 1) / CHILDREN].number <= heap->entries[i].number);
    }
}
