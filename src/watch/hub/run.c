#include "watch/hub/run.h"

#include "watch/hub/hub_read.h"

static void begin(struct watch_run *run, const struct watch_batch *batch,
                  const struct watch_place *after)
{
    run->batch = *batch;
    run->first = batch->revision;
    run->after = *after;
    run->bytes = 0;
    for (size_t i = 0; batch->events && i < batch->count && i < WATCH_RUN_EVENTS; i++)
        run->bytes += batch->events[i].field.len;
}

/* Copies the events of a revision behind those that the run has. */
static void append(struct watch_run *run, const struct watch_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        run->events[run->batch.count] = batch->events[i];
        run->revisions[run->batch.count++] = batch->revision;
    }
    run->batch.revision = batch->revision;
}

/* Returns whether the revision was added. */
static bool add(struct watch_run *run, const struct watch_batch *batch)
{
    size_t bytes = run->bytes;
    if (!batch->events || batch->count > WATCH_RUN_EVENTS - run->batch.count)
        return false;
    for (size_t i = 0; i < batch->count; i++)
        bytes += batch->events[i].field.len;
    if (bytes > WATCH_RUN_BYTES)
        return false;
    if (run->batch.events != run->events) {
        /* The second revision: from now on the run has its own copy of the events. */
        struct watch_batch first = run->batch;
        run->batch.count = 0;
        run->batch.events = run->events;
        append(run, &first);
    }
    append(run, batch);
    run->bytes = bytes;
    return true;
}

/* Reads the revisions behind the first. An error of a later one is found again when it is first. */
static void extend(struct watch_hub *hub, struct watch_run *run, int64_t last)
{
    /* A long revision is alone in its run. */
    while (run->batch.events && run->batch.count < WATCH_RUN_EVENTS &&
           run->bytes < WATCH_RUN_BYTES && run->after.revision <= last) {
        struct watch_place after = run->after;
        struct watch_batch batch;
        if (hub_next(hub, &after, &batch) != ST_OK || batch.revision > last || !add(run, &batch))
            return;
        run->after = after;
    }
}

/* Whether the last run is the wanted one. One that ends at `last` is, whatever its limit was. */
static bool is_known(const struct watch_hub *hub, int64_t from, int64_t last)
{
    const struct watch_run *run = hub->run;
    return run->turn == hub->turn && run->from == from &&
           (run->last == last || run->batch.revision == last);
}

enum status run_next(struct watch_hub *hub, const struct watch_place *place, int64_t last,
                     const struct watch_run **ret_run)
{
    struct watch_run *run = hub->run;
    *ret_run = run;
    if (is_known(hub, place->revision, last))
        return ST_OK;
    struct watch_place after = *place;
    struct watch_batch batch;
    run->turn = 0;
    enum status status = hub_next(hub, &after, &batch);
    run->after = after;
    TRY(status);
    begin(run, &batch, &after);
    extend(hub, run, last);
    run->turn = hub->turn;
    run->from = place->revision;
    run->last = last;
    return ST_OK;
}

size_t run_find(const struct watch_run *run, int64_t from)
{
    assert(from <= run->batch.revision);
    size_t at = 0;
    while (run->revisions[at] < from)
        at++;
    return at;
}

struct watch_batch run_one(const struct watch_run *run, int64_t from)
{
    assert(run_is_joined(run));
    size_t at = run_find(run, from), end = at;
    while (end < run->batch.count && run->revisions[end] == run->revisions[at])
        end++;
    return (struct watch_batch){
        .revision = run->revisions[at], .events = run->events + at, .count = end - at};
}

void run_check(const struct watch_run *run)
{
    assert(run->first <= run->batch.revision);
    assert(run->after.revision > run->batch.revision);
    if (!run_is_joined(run))
        return;
    assert(run->batch.events == run->events && run->batch.count <= WATCH_RUN_EVENTS);
    assert(run->bytes <= WATCH_RUN_BYTES);
    assert(run->revisions[0] == run->first);
    assert(run->revisions[run->batch.count - 1] == run->batch.revision);
    for (size_t i = 1; i < run->batch.count; i++)
        assert(run->revisions[i - 1] <= run->revisions[i]);
}
