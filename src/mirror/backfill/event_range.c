#include "mirror/backfill/event_range.h"

#include "base/xalloc.h"

/* -- Ranges -- */

struct event_range *event_range_ref(struct event_range *range)
{
    range->refs++;
    return range;
}

void event_range_unref(struct event_range *range)
{
    if (--range->refs)
        return;
    *range->counted -= sizeof(*range) + backfill_run_bytes(&range->run);
    backfill_run_fini(&range->run);
    free(range);
}

const struct backfill_revision *event_range_seek(const struct event_range *range, int64_t revision)
{
    size_t at = backfill_run_seek(&range->run, revision);
    return at < range->run.revision_count ? &range->run.revisions[at] : NULL;
}

/* -- The store -- */

void event_ranges_init(struct event_ranges *ranges)
{
    *ranges = (struct event_ranges){.turn = 1};
    list_init(&ranges->by_use);
}

/* The first range that ends behind the revision. */
static size_t store_seek(const struct event_ranges *ranges, int64_t revision)
{
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->all[middle]->to <= revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void store_remove(struct event_ranges *ranges, struct event_range *range)
{
    size_t at = store_seek(ranges, range->from);
    assert(ranges->all[at] == range);
    memmove(&ranges->all[at], &ranges->all[at + 1],
            (--ranges->count - at) * sizeof(ranges->all[0]));
    list_remove(&range->by_use);
    if (ranges->recent == range)
        ranges->recent = NULL;
    event_range_unref(range);
}

void event_ranges_clear(struct event_ranges *ranges)
{
    while (ranges->count)
        store_remove(ranges, ranges->all[ranges->count - 1]);
}

void event_ranges_fini(struct event_ranges *ranges)
{
    event_ranges_clear(ranges);
    free(TAKE(ranges->all));
}

static bool contains(const struct event_range *range, int64_t revision)
{
    return range->from <= revision && revision < range->to;
}

static void mark_used(struct event_ranges *ranges, struct event_range *range)
{
    if (range->used_turn == ranges->turn)
        return; /* it was moved to the end in this turn already */
    range->used_turn = ranges->turn;
    range->used_ns = ranges->now_ns;
    list_remove(&range->by_use);
    list_push_back(&ranges->by_use, &range->by_use);
}

struct event_range *event_ranges_find(struct event_ranges *ranges, int64_t revision)
{
    if (!ranges->recent || !contains(ranges->recent, revision)) {
        /* Readers mostly continue in the range where the last one was; this one does not. */
        size_t at = store_seek(ranges, revision);
        if (at == ranges->count || !contains(ranges->all[at], revision))
            return NULL;
        ranges->recent = ranges->all[at];
    }
    mark_used(ranges, ranges->recent);
    return ranges->recent;
}

int64_t event_ranges_gap_end(const struct event_ranges *ranges, int64_t revision)
{
    size_t at = store_seek(ranges, revision);
    return at < ranges->count ? ranges->all[at]->from : INT64_MAX;
}

void event_ranges_add(struct event_ranges *ranges, int64_t from, int64_t to,
                      struct backfill_run *run)
{
    size_t at = store_seek(ranges, from);
    assert(from < to);
    assert(at == ranges->count || ranges->all[at]->from >= to);
    struct event_range *range = xmalloc(sizeof(*range));
    *range = (struct event_range){
        .from = from,
        .to = to,
        .run = *run,
        .refs = 1,
        .counted = &ranges->bytes,
        .used_turn = ranges->turn,
        .used_ns = ranges->now_ns,
    };
    *run = (struct backfill_run){0};
    ranges->bytes += sizeof(*range) + backfill_run_bytes(&range->run);
    list_push_back(&ranges->by_use, &range->by_use);
    if (ranges->count == ranges->capacity) {
        ranges->capacity = size_max(16, ranges->capacity * 2);
        ranges->all = xrealloc(ranges->all, ranges->capacity * sizeof(ranges->all[0]));
    }
    memmove(&ranges->all[at + 1], &ranges->all[at],
            (ranges->count++ - at) * sizeof(ranges->all[0]));
    ranges->all[at] = range;
}

/* Those of the last turn stay, too, so that what was fetched for a reader is read before it is
 * dropped, however little memory there is. */
static struct event_range *least_used(const struct event_ranges *ranges)
{
    if (list_empty(&ranges->by_use))
        return NULL;
    struct event_range *first = LIST_ENTRY(ranges->by_use.next, struct event_range, by_use);
    return first->used_turn + 1 >= ranges->turn ? NULL : first;
}

void event_ranges_shrink(struct event_ranges *ranges, size_t bytes_max)
{
    struct event_range *first;
    while (ranges->bytes > bytes_max && (first = least_used(ranges)) != NULL)
        store_remove(ranges, first);
}

void event_ranges_drop_idle(struct event_ranges *ranges, int64_t before_ns)
{
    struct event_range *first;
    while ((first = least_used(ranges)) != NULL && first->used_ns < before_ns)
        store_remove(ranges, first);
}

void event_ranges_turn_end(struct event_ranges *ranges, int64_t now_ns)
{
    ranges->turn++;
    ranges->now_ns = now_ns;
}

static void event_range_check(const struct event_range *range)
{
    const struct backfill_run *run = &range->run;
    size_t events = 0;
    int64_t before = range->from - 1;
    for (size_t i = 0; i < run->revision_count; i++) {
        assert(run->revisions[i].revision > before);
        assert(run->revisions[i].first == events);
        assert(run->revisions[i].lost == !run->revisions[i].count);
        before = run->revisions[i].revision;
        events += run->revisions[i].count;
    }
    assert(before < range->to);
    assert(events == run->event_count);
}

void event_ranges_check(const struct event_ranges *ranges)
{
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < ranges->count; i++) {
        assert(ranges->all[i]->from >= end);
        assert(ranges->all[i]->from < ranges->all[i]->to);
        end = ranges->all[i]->to;
        event_range_check(ranges->all[i]);
    }
    assert(list_length(&ranges->by_use) == ranges->count);
}
