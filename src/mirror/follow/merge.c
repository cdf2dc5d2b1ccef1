#include "mirror/follow/merge.h"

#include "base/xalloc.h"
#include "codec/pb/kv.pb.h"

enum { CHANGE_BYTES = sizeof(struct merge_change) };

/* What one watch has delivered: changes in the order of their revisions. */
struct watch_queue {
    struct merge_change *first, *last;
    int64_t passed; /* nothing more of this revision and older ones follows */
    /* Revision of the last change that was added; at least passed while it is open. */
    int64_t newest;
    size_t open_bytes; /* size of the changes of `newest` */
};

struct merge {
    struct watch_queue *queues;
    size_t count;
    int64_t from;  /* everything up to here was known before; a server may repeat it */
    int64_t taken; /* everything up to here was taken */
    const struct slice *prefixes;
    size_t prefix_count;
    size_t bytes;
};

struct merge *merge_new(size_t watches, int64_t from, const struct slice *prefixes,
                        size_t prefix_count)
{
    assert(watches > 0);
    struct merge *merge = xcalloc(1, sizeof(*merge));
    merge->queues = xcalloc(watches, sizeof(*merge->queues));
    merge->count = watches;
    merge->from = merge->taken = from;
    merge->prefixes = prefixes;
    merge->prefix_count = prefix_count;
    for (size_t i = 0; i < watches; i++)
        merge->queues[i].passed = merge->queues[i].newest = from;
    return merge;
}

static void free_changes(struct merge_change *change)
{
    while (change) {
        struct merge_change *next = change->next;
        free(change);
        change = next;
    }
}

void merge_free(struct merge *merge)
{
    if (!merge)
        return;
    for (size_t i = 0; i < merge->count; i++)
        free_changes(merge->queues[i].first);
    free(merge->queues);
    free(merge);
}

static int64_t revision_of(const struct merge_change *change)
{
    return change->change.kv.mod_revision;
}

static size_t bytes_of(const struct merge_change *change)
{
    return CHANGE_BYTES + change->change.kv.key.len + change->change.kv.value.len;
}

static void check_queue(const struct watch_queue *queue, size_t *bytes)
{
    int64_t last = 0;
    for (const struct merge_change *c = queue->first; c; c = c->next) {
        assert(revision_of(c) >= last);
        assert(c->next || c == queue->last);
        last = revision_of(c);
        *bytes += bytes_of(c);
    }
    assert(queue->newest >= queue->passed);
    assert(last <= queue->newest);
}

void merge_check(const struct merge *merge)
{
    size_t bytes = 0;
    for (size_t i = 0; i < merge->count; i++) {
        check_queue(&merge->queues[i], &bytes);
        assert(merge->queues[i].passed >= merge->taken);
        assert(!merge->queues[i].first || revision_of(merge->queues[i].first) > merge->taken);
    }
    assert(bytes == merge->bytes);
}

/* -- Adding -- */

static bool is_wanted(const struct merge *merge, struct slice key)
{
    for (size_t i = 0; i < merge->prefix_count; i++)
        if (slice_has_prefix(key, merge->prefixes[i]))
            return true;
    return merge->prefix_count == 0;
}

static struct merge_change *change_new(const struct pb_event *event)
{
    const struct pb_key_value *kv = event->kv;
    bool deleted = event->type == PB_EVENT_TYPE_DELETE;
    size_t value_len = deleted ? 0 : kv->value.len;
    struct merge_change *change = xmalloc(sizeof(*change) + kv->key.len + value_len);
    slice_copy(change->bytes, kv->key);
    slice_copy(change->bytes + kv->key.len, slice_of(kv->value.ptr, value_len));
    change->next = NULL;
    change->change = (struct imported_change){
        .is_tombstone = deleted,
        .kv = {.key = slice_of(change->bytes, kv->key.len), .mod_revision = kv->mod_revision},
    };
    if (deleted)
        return change;
    change->change.kv.create_revision = kv->create_revision;
    change->change.kv.version = kv->version;
    change->change.kv.lease = kv->lease;
    change->change.kv.value = slice_of(change->bytes + kv->key.len, value_len);
    return change;
}

static void append(struct watch_queue *queue, struct merge_change *change)
{
    if (queue->last)
        queue->last->next = change;
    else
        queue->first = change;
    queue->last = change;
}

static enum status add_event(struct merge *merge, struct watch_queue *queue,
                             const struct pb_event *event)
{
    const struct pb_key_value *kv = event->kv;
    if (!kv || kv->key.len == 0)
        return ST_INVALID;
    if (kv->mod_revision <= merge->from)
        return ST_OK;
    if (kv->mod_revision <= queue->passed || kv->mod_revision < queue->newest)
        return ST_INVALID;
    if (kv->mod_revision > queue->newest) { /* nothing more of the one before follows */
        queue->passed = queue->newest;
        queue->newest = kv->mod_revision;
        queue->open_bytes = 0;
    }
    if (!is_wanted(merge, kv->key))
        return ST_OK;
    struct merge_change *change = change_new(event);
    append(queue, change);
    merge->bytes += bytes_of(change);
    queue->open_bytes += bytes_of(change);
    return queue->open_bytes > MERGE_REVISION_BYTES_MAX ? ST_LIMIT : ST_OK;
}

enum status merge_add(struct merge *merge, size_t watch, const struct pb_event *events,
                      size_t count, bool more)
{
    assert(watch < merge->count);
    struct watch_queue *queue = &merge->queues[watch];
    for (size_t i = 0; i < count; i++)
        TRY(add_event(merge, queue, &events[i]));
    if (!more)
        queue->passed = queue->newest;
    return ST_OK;
}

void merge_pass(struct merge *merge, size_t watch, int64_t revision)
{
    assert(watch < merge->count);
    struct watch_queue *queue = &merge->queues[watch];
    if (revision > queue->newest)
        queue->newest = revision;
    if (revision > queue->passed)
        queue->passed = revision;
}

void merge_pass_all(struct merge *merge, int64_t revision)
{
    for (size_t i = 0; i < merge->count; i++)
        merge_pass(merge, i, revision);
}

/* -- Taking -- */

int64_t merge_complete(const struct merge *merge)
{
    int64_t complete = INT64_MAX;
    for (size_t i = 0; i < merge->count; i++)
        if (merge->queues[i].passed < complete)
            complete = merge->queues[i].passed;
    return complete;
}

size_t merge_bytes(const struct merge *merge)
{
    return merge->bytes;
}

bool merge_waits(const struct merge *merge)
{
    int64_t complete = merge_complete(merge);
    for (size_t i = 0; i < merge->count; i++)
        if (merge->queues[i].passed > complete)
            return true;
    return false;
}

/* The oldest revision that is complete; INT64_MAX: none. */
static int64_t oldest_complete(const struct merge *merge, int64_t complete)
{
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < merge->count; i++) {
        const struct merge_change *first = merge->queues[i].first;
        if (first && revision_of(first) <= complete && revision_of(first) < oldest)
            oldest = revision_of(first);
    }
    return oldest;
}

static struct merge_change *pop(struct watch_queue *queue)
{
    struct merge_change *change = queue->first;
    queue->first = change->next;
    if (!queue->first)
        queue->last = NULL;
    change->next = NULL;
    return change;
}

/* Moves all changes of one revision to the end of a chain; returns its new end. */
static struct merge_change **take_revision(struct merge *merge, int64_t revision,
                                           struct merge_change **end, struct merge_taken *taken)
{
    uint32_t sub = 0;
    for (size_t i = 0; i < merge->count; i++) {
        struct watch_queue *queue = &merge->queues[i];
        while (queue->first && revision_of(queue->first) == revision) {
            struct merge_change *change = pop(queue);
            change->change.sub = sub++;
            taken->bytes += bytes_of(change);
            taken->change_count++;
            *end = change;
            end = &change->next;
        }
    }
    taken->count++;
    taken->reach = revision;
    return end;
}

static void fill_arrays(struct merge_taken *taken)
{
    struct mirror_revision *revision = NULL;
    size_t i = 0, revisions = 0;
    taken->revisions = xcalloc(taken->count, sizeof(*taken->revisions));
    taken->changes = xcalloc(taken->change_count, sizeof(*taken->changes));
    for (const struct merge_change *c = taken->owned; c; c = c->next, i++) {
        taken->changes[i] = c->change;
        if (!revision || revision->revision != revision_of(c)) {
            revision = &taken->revisions[revisions++];
            revision->revision = revision_of(c);
            revision->changes = &taken->changes[i];
        }
        revision->count++;
    }
    assert(i == taken->change_count && revisions == taken->count);
}

bool merge_take(struct merge *merge, size_t bytes_max, struct merge_taken *ret_taken)
{
    int64_t complete = merge_complete(merge), next;
    if (complete == merge->taken)
        return false;
    struct merge_taken taken = {0};
    struct merge_change **end = &taken.owned;
    while ((next = oldest_complete(merge, complete)) != INT64_MAX &&
           (taken.count == 0 || taken.bytes < bytes_max))
        end = take_revision(merge, next, end, &taken);
    if (next == INT64_MAX)
        taken.reach = complete; /* what remains has no changes */
    if (taken.count)
        fill_arrays(&taken);
    merge->taken = taken.reach;
    merge->bytes -= taken.bytes;
    *ret_taken = taken;
    return true;
}

void merge_taken_fini(struct merge_taken *taken)
{
    free(taken->revisions);
    free(taken->changes);
    free_changes(taken->owned);
    *taken = (struct merge_taken){0};
}
