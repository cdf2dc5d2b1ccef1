#include "mirror/backfill/fetch.h"

#include "base/xalloc.h"
#include "io/loop.h"

static const int64_t progress_ns = 100 * NS_PER_MS;

/* The cluster forgets a question that it cannot answer yet: it is repeated. */
static void on_progress(struct timer *timer)
{
    struct backfill_fetch *fetch = CONTAINER_OF(timer, struct backfill_fetch, progress);
    struct loop *loop = fetch->options.source.loop;
    if (!fetch->waiting)
        return;
    for (size_t i = 0; i < fetch->options.range_count; i++)
        if (fetch->sources[i].known == fetch->at)
            backfill_source_ask_progress(&fetch->sources[i]);
    loop_timer_set(loop, timer, clock_add(loop_now_ns(loop), progress_ns));
}

struct backfill_fetch *backfill_fetch_new(const struct backfill_fetch_options *options,
                                          int64_t from)
{
    assert(options->range_count > 0);
    struct backfill_fetch *fetch =
        xcalloc(1, sizeof(*fetch) + options->range_count * sizeof(fetch->sources[0]));
    fetch->options = *options;
    fetch->at = from;
    fetch->progress.fn = on_progress;
    for (size_t i = 0; i < options->range_count; i++) {
        struct backfill_source_options source = options->source;
        source.key = options->ranges[i].key;
        source.range_end = options->ranges[i].range_end;
        backfill_source_start(&fetch->sources[i], &source, from);
    }
    return fetch;
}

void backfill_fetch_free(struct backfill_fetch *fetch)
{
    loop_timer_cancel(fetch->options.source.loop, &fetch->progress);
    for (size_t i = 0; i < fetch->options.range_count; i++)
        backfill_source_stop(&fetch->sources[i]);
    list_remove(&fetch->in_backfill);
    free(fetch);
}

void backfill_fetch_go_ahead(struct backfill_fetch *fetch)
{
    fetch->credit = fetch->options.ahead_bytes;
    fetch->wanted_ns = loop_now_ns(fetch->options.source.loop);
}

void backfill_fetch_want(struct backfill_fetch *fetch)
{
    struct loop *loop = fetch->options.source.loop;
    backfill_fetch_go_ahead(fetch);
    fetch->waiting = true;
    if (!fetch->progress.set)
        loop_timer_set(loop, &fetch->progress, clock_add(loop_now_ns(loop), progress_ns));
}

/* Everything before this revision was received by all sources. */
static int64_t known(const struct backfill_fetch *fetch)
{
    int64_t lowest = INT64_MAX;
    for (size_t i = 0; i < fetch->options.range_count; i++)
        if (fetch->sources[i].known < lowest)
            lowest = fetch->sources[i].known;
    return lowest;
}

/* Stores what is complete, up to the next range that is stored already. */
static bool store(struct backfill_fetch *fetch)
{
    struct event_ranges *to = fetch->options.store;
    /* Another fetch may have stored what comes next. */
    int64_t end = known(fetch), gap_end = event_ranges_gap_end(to, fetch->at);
    end = gap_end < end ? gap_end : end;
    assert(fetch->options.range_count > 0);
    if (end <= fetch->at)
        return false; /* a source has not reached the next revision yet */
    struct backfill_run **runs = xcalloc(fetch->options.range_count, sizeof(runs[0]));
    for (size_t i = 0; i < fetch->options.range_count; i++)
        runs[i] = &fetch->sources[i].run;
    struct backfill_run run = {0};
    size_t before = to->bytes;
    backfill_run_merge(runs, fetch->options.range_count, end, &run);
    free(runs);
    event_ranges_add(to, fetch->at, end, &run);
    fetch->started_bytes += to->bytes - before;
    fetch->at = end;
    fetch->waiting = false;
    return true;
}

static void spend(struct backfill_fetch *fetch)
{
    uint64_t received = 0;
    for (size_t i = 0; i < fetch->options.range_count; i++)
        received += fetch->sources[i].received_bytes;
    fetch->credit -= size_min(fetch->credit, received - fetch->received_bytes);
    fetch->received_bytes = received;
}

bool backfill_fetch_step(struct backfill_fetch *fetch, size_t *units, bool *ret_stored)
{
    bool more = false;
    spend(fetch);
    for (size_t i = 0; i < fetch->options.range_count; i++)
        more |= backfill_source_step(&fetch->sources[i], units);
    *ret_stored = store(fetch);
    return more;
}

bool backfill_fetch_is_wanted(const struct backfill_fetch *fetch)
{
    return fetch->waiting || fetch->credit;
}

void backfill_fetch_flow(struct backfill_fetch *fetch, enum backfill_flow flow)
{
    size_t each = size_max(1, fetch->options.ahead_bytes / fetch->options.range_count);
    for (size_t i = 0; i < fetch->options.range_count; i++) {
        struct backfill_source *source = &fetch->sources[i];
        bool behind = source->known <= fetch->at;
        /* One that the others wait for is not limited by what it has, but by what it has not read.
         */
        size_t held = behind ? source->queue_bytes : backfill_source_bytes(source);
        bool may = flow == BACKFILL_FLOW_ALL || (flow == BACKFILL_FLOW_BEHIND && behind);
        backfill_source_pause(source, !may || held >= each);
    }
}

int64_t backfill_fetch_compact_revision(const struct backfill_fetch *fetch)
{
    for (size_t i = 0; i < fetch->options.range_count; i++)
        if (fetch->sources[i].state == BACKFILL_SOURCE_GONE)
            return fetch->sources[i].compact_revision;
    return 0;
}

bool backfill_fetch_is_over(const struct backfill_fetch *fetch)
{
    for (size_t i = 0; i < fetch->options.range_count; i++)
        if (fetch->sources[i].state == BACKFILL_SOURCE_GONE && fetch->sources[i].known <= fetch->at)
            return true;
    return false;
}

void backfill_fetch_check(const struct backfill_fetch *fetch)
{
    assert(!fetch->waiting || fetch->progress.set);
    for (size_t i = 0; i < fetch->options.range_count; i++) {
        backfill_source_check(&fetch->sources[i]);
        assert(fetch->sources[i].known >= fetch->at);
    }
}
