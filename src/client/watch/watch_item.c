#include "client/watch/watch_item.h"

#include "client/connect/error.h"

#include <stdlib.h>

/* A batch with everything that it refers to, in one block of memory. */
struct batch_copy {
    struct list in_item;
    size_t bytes;     /* size of the block */
    int64_t revision; /* after which the program would resume when it has taken this */
    vigil_watch_batch batch;
    vigil_header header;
};

enum end_state { END_NOT_YET, END_QUEUED, END_TAKEN };

struct watch_item {
    struct queue_item item;
    struct vigil_watch *watch; /* borrowed: it owns this */
    const struct watch_item_hooks *hooks;
    size_t bytes_max;
    /* Revision of what the program has taken; written with the lock held. */
    _Atomic int64_t revision;
    _Atomic size_t bytes;   /* size of copies and taken */
    int64_t added_revision; /* revision of the newest copy; the loop's thread */

    /* Protected by the client's lock. */
    struct list copies; /* batch_copy.in_item */
    bool paused;
    enum end_state end;
    vigil_watch_batch end_batch; /* valid unless the end is not yet there */
    vigil_header end_header;
    vigil_error end_error;

    struct batch_copy *taken; /* copy that a thread has taken with the item; owned */
};

/* -- Copies -- */

/* Where a copy is being written: structs from the front, bytes behind all of them. */
struct copier {
    vigil_kv *kvs;
    uint8_t *bytes;
};

static vigil_bytes copy_slice(struct copier *to, vigil_bytes from)
{
    vigil_bytes copy = {to->bytes, from.size};
    if (from.size)
        memcpy(to->bytes, from.data, from.size);
    to->bytes += from.size;
    return copy;
}

static const vigil_kv *copy_kv(struct copier *to, const vigil_kv *from)
{
    if (!from)
        return NULL;
    vigil_kv *copy = to->kvs++;
    *copy = *from;
    copy->key = copy_slice(to, from->key);
    copy->value = copy_slice(to, from->value);
    return copy;
}

static const vigil_header *copy_header(vigil_header *to, const vigil_header *from)
{
    if (!from)
        return NULL;
    *to = *from;
    return to;
}

static struct batch_copy *copy_new(const vigil_watch_batch *batch)
{
    size_t bytes = sizeof(struct batch_copy) + batch->event_count * sizeof(vigil_event);
    size_t kvs = 0;
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_kv *pair[] = {batch->events[i].kv, batch->events[i].prev_kv};
        for (size_t k = 0; k < COUNT_OF(pair); k++) {
            kvs += pair[k] != NULL;
            bytes += pair[k] ? sizeof(*pair[k]) + pair[k]->key.size + pair[k]->value.size : 0;
        }
    }
    /* One block: the copy, its events, their pairs, and then all bytes. */
    struct batch_copy *copy = malloc(bytes);
    if (!copy)
        return NULL;
    copy->bytes = bytes;
    copy->batch = *batch;
    copy->batch.header = copy_header(&copy->header, batch->header);
    vigil_event *events = (vigil_event *)(copy + 1);
    struct copier to = {.kvs = (vigil_kv *)(events + batch->event_count)};
    to.bytes = (uint8_t *)(to.kvs + kvs);
    for (size_t i = 0; i < batch->event_count; i++) {
        events[i].type = batch->events[i].type;
        events[i].kv = copy_kv(&to, batch->events[i].kv);
        events[i].prev_kv = copy_kv(&to, batch->events[i].prev_kv);
    }
    assert(to.bytes == (uint8_t *)copy + copy->bytes);
    copy->batch.events = events;
    return copy;
}

/* -- Taking -- */

static void add_bytes(struct watch_item *item, int64_t bytes)
{
    struct client_counters *counters = &queue_client(item->item.queue)->counters;
    atomic_fetch_add_explicit(&item->bytes, (size_t)bytes, memory_order_relaxed);
    counter_add(&counters->queued_bytes, (uint64_t)bytes);
}

static void ref_item(struct queue_item *queued)
{
    struct watch_item *item = CONTAINER_OF(queued, struct watch_item, item);
    item->hooks->ref(item->watch);
}

static void unref_item(struct queue_item *queued)
{
    struct watch_item *item = CONTAINER_OF(queued, struct watch_item, item);
    item->hooks->unref(item->watch);
}

static void wake_item(struct queue_item *queued)
{
    struct watch_item *item = CONTAINER_OF(queued, struct watch_item, item);
    item->hooks->resume(item->watch);
}

static void fill_item(struct queue_item *queued)
{
    struct watch_item *item = CONTAINER_OF(queued, struct watch_item, item);
    struct list *link = list_pop_front(&item->copies);
    if (link) {
        item->taken = LIST_ENTRY(link, struct batch_copy, in_item);
        queued->shown.batch = &item->taken->batch;
        atomic_store_explicit(&item->revision, item->taken->revision, memory_order_relaxed);
    } else {
        assert(item->end == END_QUEUED);
        item->end = END_TAKEN;
        queued->shown.batch = &item->end_batch;
    }
    queued->shown.error = queued->shown.batch->error;
}

static void clear_item(struct queue_item *queued)
{
    struct watch_item *item = CONTAINER_OF(queued, struct watch_item, item);
    if (item->taken)
        add_bytes(item, -(int64_t)item->taken->bytes);
    free(item->taken);
    item->taken = NULL;
}

static struct queue_item_next settle_item(struct queue_item *queued)
{
    struct watch_item *item = CONTAINER_OF(queued, struct watch_item, item);
    struct queue_item_next next = {
        .more = !list_empty(&item->copies) || item->end == END_QUEUED,
        /* Not as soon as there is any room: the watch would be paused and resumed with every batch.
         */
        .wake = item->paused && watch_item_bytes(item) <= item->bytes_max / 2,
    };
    item->paused = item->paused && !next.wake;
    return next;
}

/* -- Adding -- */

/* The end needs no memory. */
static void set_end(struct watch_item *item, const vigil_watch_batch *batch)
{
    if (item->end != END_NOT_YET)
        return;
    item->end = END_QUEUED;
    item->end_batch = *batch;
    item->end_error = *batch->error;
    item->end_batch.error = &item->end_error;
    item->end_batch.header = copy_header(&item->end_header, batch->header);
    queue_item_push(&item->item);
}

bool watch_item_add(struct watch_item *item, const vigil_watch_batch *batch, int64_t revision)
{
    bool ends = batch->what == VIGIL_WATCH_ENDED;
    struct batch_copy *copy = ends ? NULL : copy_new(batch);
    if (!ends && !copy) {
        /* What follows is lost, so it is not delivered. */
        struct vigil_client *client = queue_client(item->item.queue);
        vigil_error error;
        client_error_set(&error, VIGIL_ERROR_MEMORY, VIGIL_REFUSED, "out of memory");
        vigil_watch_batch end = {
            .what = VIGIL_WATCH_ENDED, .revision = item->added_revision, .error = &error};
        lock_take(&client->driver.lock);
        set_end(item, &end);
        lock_release(&client->driver.lock);
        item->hooks->end(item->watch);
        return true;
    }
    LOCK_SCOPE(&queue_client(item->item.queue)->driver.lock);
    if (ends) {
        set_end(item, batch);
        return false;
    }
    if (item->end != END_NOT_YET) {
        free(copy);
        return true;
    }
    item->added_revision = copy->revision = revision;
    add_bytes(item, (int64_t)copy->bytes);
    list_push_back(&item->copies, &copy->in_item);
    item->paused = item->paused || watch_item_bytes(item) >= item->bytes_max;
    queue_item_push(&item->item);
    return item->paused;
}

/* -- Life -- */

struct watch_item *watch_item_new(const struct watch_item_options *options)
{
    static const struct queue_item_ops ops = {
        .ref = ref_item,
        .unref = unref_item,
        .fill = fill_item,
        .clear = clear_item,
        .settle = settle_item,
        .wake = wake_item,
    };
    struct watch_item *item = calloc(1, sizeof(*item));
    if (!item)
        return NULL;
    item->watch = options->watch;
    item->hooks = options->hooks;
    item->bytes_max = options->bytes_max;
    item->revision = item->added_revision = options->revision;
    list_init(&item->copies);
    queue_item_init(&item->item, options->queue, &ops);
    item->item.shown =
        (vigil_item){.what = VIGIL_ITEM_WATCH, .user = options->user, .watch = options->watch};
    return item;
}

void watch_item_free(struct watch_item *item)
{
    if (!item)
        return;
    assert(!item->taken);
    for (struct list *link; (link = list_pop_front(&item->copies));)
        free(LIST_ENTRY(link, struct batch_copy, in_item));
    add_bytes(item, -(int64_t)watch_item_bytes(item));
    queue_item_fini(&item->item);
    free(item);
}

void watch_item_drop(struct watch_item *item)
{
    queue_item_drop(&item->item);
}

int64_t watch_item_revision(const struct watch_item *item)
{
    return atomic_load_explicit(&item->revision, memory_order_relaxed);
}

size_t watch_item_bytes(const struct watch_item *item)
{
    return atomic_load_explicit(&item->bytes, memory_order_relaxed);
}
