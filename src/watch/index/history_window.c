#include "watch/index/history_window.h"

#include "base/xalloc.h"

enum {
    SLOTS_MIN = 64,
    /* A larger array is freed at the end of the turn. */
    KEPT_FOUND = WINDOW_FOUND_MAX + WINDOW_EVENTS_MAX,
};

void history_window_fini(struct history_window *window)
{
    free(window->found);
    free(window->lists);
    free(window->slots);
    *window = (struct history_window){0};
}

void history_window_drop(struct history_window *window)
{
    window->from = 0;
    if (window->found_capacity > KEPT_FOUND) {
        history_window_fini(window);
        return;
    }
    window->found_count = window->list_count = window->events = 0;
    window->partial = false;
    if (window->slots)
        memset(window->slots, 0, window->slot_count * sizeof(window->slots[0]));
}

/* -- Lists -- */

/* The slot of the range, or the free one where it belongs. */
static uint32_t *slot_of(const struct history_window *window, const struct watch_range *range)
{
    size_t mask = window->slot_count - 1;
    size_t at = (size_t)(((uintptr_t)range >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (window->slots[at] && window->lists[window->slots[at] - 1].range != range)
        at = (at + 1) & mask;
    return &window->slots[at];
}

static void slots_grow(struct history_window *window)
{
    free(window->slots);
    window->slot_count = size_max(SLOTS_MIN, window->slot_count * 2);
    window->slots = xcalloc(window->slot_count, sizeof(window->slots[0]));
    for (size_t i = 0; i < window->list_count; i++)
        *slot_of(window, window->lists[i].range) = (uint32_t)i + 1;
}

static struct window_list *list_add(struct history_window *window, struct watch_range *range)
{
    if (window->list_count == window->list_capacity) {
        window->list_capacity = size_max(16, window->list_capacity * 2);
        window->lists = xrealloc(window->lists, window->list_capacity * sizeof(window->lists[0]));
    }
    window->lists[window->list_count] = (struct window_list){range, WINDOW_NONE, WINDOW_NONE};
    *slot_of(window, range) = (uint32_t)++window->list_count;
    if (window->list_count * 2 > window->slot_count)
        slots_grow(window);
    return &window->lists[window->list_count - 1];
}

const struct window_list *history_window_find(const struct history_window *window,
                                              const struct watch_range *range)
{
    if (!window->slot_count)
        return NULL;
    uint32_t slot = *slot_of(window, range);
    return slot ? &window->lists[slot - 1] : NULL;
}

/* NULL: the window is full. */
static struct window_list *list_for(struct history_window *window, struct watch_range *range,
                                    int64_t revision)
{
    if (!window->slot_count)
        slots_grow(window);
    uint32_t slot = *slot_of(window, range);
    if (slot)
        return &window->lists[slot - 1];
    if (window->found_count >= WINDOW_FOUND_MAX) {
        if (revision < window->lacks)
            window->lacks = revision;
        return NULL;
    }
    return list_add(window, range);
}

/* The event was already added, for another watcher of the same range. */
static bool already_found(const struct history_window *window, const struct window_list *list,
                          const struct watch_event *event, int64_t revision)
{
    if (list->last == WINDOW_NONE)
        return false;
    const struct window_found *last = &window->found[list->last];
    return last->revision == revision && last->event == event;
}

void history_window_add(struct history_window *window, struct watch_range *range,
                        const struct watch_event *event, int64_t revision)
{
    struct window_list *list = list_for(window, range, revision);
    if (!list || already_found(window, list, event, revision))
        return;
    if (window->found_count == window->found_capacity) {
        window->found_capacity = size_max(256, window->found_capacity * 2);
        window->found = xrealloc(window->found, window->found_capacity * sizeof(window->found[0]));
    }
    uint32_t at = (uint32_t)window->found_count++;
    window->found[at] = (struct window_found){event, revision, WINDOW_NONE};
    if (list->last == WINDOW_NONE)
        list->first = at;
    else
        window->found[list->last].next = at;
    list->last = at;
}
