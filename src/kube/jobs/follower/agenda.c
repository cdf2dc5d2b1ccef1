#include "kube/jobs/follower/agenda.h"

#include "base/clock.h"
#include "base/xalloc.h"

static struct slice key_of(const void *value)
{
    return kube_agenda_name(value);
}

void kube_agenda_init(struct kube_agenda *agenda, uint8_t name_bytes_max, uint64_t seed)
{
    *agenda = (struct kube_agenda){.name_bytes_max = name_bytes_max};
    hash_map_init(&agenda->items, key_of, seed);
}

void kube_agenda_fini(struct kube_agenda *agenda)
{
    struct kube_agenda_item *item;
    MAP_FOREACH (item, &agenda->items) {
        free(item);
    }
    hash_map_fini(&agenda->items);
    heap_fini(&agenda->times);
    *agenda = (struct kube_agenda){0};
}

struct slice kube_agenda_name(const struct kube_agenda_item *item)
{
    return slice_of(item->name, item->name_len);
}

struct kube_agenda_item *kube_agenda_find(const struct kube_agenda *agenda, struct slice name)
{
    return hash_map_get(&agenda->items, name);
}

struct kube_agenda_item *kube_agenda_add(struct kube_agenda *agenda, struct slice name)
{
    struct kube_agenda_item *item = kube_agenda_find(agenda, name);
    void *replaced;
    if (item || !name.len || name.len > agenda->name_bytes_max)
        return item;
    item = xcalloc(1, sizeof(*item) + name.len);
    item->name_len = (uint8_t)name.len;
    memcpy(item->name, name.ptr, name.len);
    list_init(&item->in_owner);
    if (hash_map_put(&agenda->items, item, &replaced) != ST_OK)
        xalloc_check(NULL, sizeof(*item));
    return item;
}

void kube_agenda_remove(struct kube_agenda *agenda, struct kube_agenda_item *item)
{
    hash_map_remove(&agenda->items, kube_agenda_name(item));
    heap_remove(&agenda->times, &item->in_times);
    list_remove(&item->in_owner);
    free(item);
}

static int64_t allowed(const struct kube_agenda_item *item, int64_t at_ns)
{
    return at_ns > item->not_before_ns ? at_ns : item->not_before_ns;
}

bool kube_agenda_has(const struct kube_agenda *agenda, const struct kube_agenda_item *item,
                     int64_t at_ns)
{
    return heap_has(&item->in_times) &&
           agenda->times.entries[item->in_times.place - 1].number <= allowed(item, at_ns);
}

/* Adds the item, or moves it. */
static void put(struct kube_agenda *agenda, struct kube_agenda_item *item, int64_t at_ns)
{
    if (heap_put(&agenda->times, &item->in_times, at_ns) != ST_OK)
        xalloc_check(NULL, sizeof(*item));
}

void kube_agenda_set(struct kube_agenda *agenda, struct kube_agenda_item *item, int64_t at_ns)
{
    if (!kube_agenda_has(agenda, item, at_ns))
        put(agenda, item, allowed(item, at_ns));
}

void kube_agenda_rest(struct kube_agenda *agenda, struct kube_agenda_item *item, int64_t until_ns)
{
    item->not_before_ns = until_ns;
    if (heap_has(&item->in_times) &&
        agenda->times.entries[item->in_times.place - 1].number < until_ns)
        put(agenda, item, until_ns);
}

struct kube_agenda_item *kube_agenda_pop(struct kube_agenda *agenda, int64_t now_ns)
{
    struct heap_link *link = heap_pop(&agenda->times, now_ns);
    return link ? CONTAINER_OF(link, struct kube_agenda_item, in_times) : NULL;
}

int64_t kube_agenda_next_ns(const struct kube_agenda *agenda)
{
    return heap_first_number(&agenda->times, CLOCK_NEVER);
}
