#include "mirror/backfill/run.h"

#include "base/xalloc.h"
#include "codec/pb/wire.h"

/* -- Bodies -- */

struct backfill_body *backfill_body_new(struct slice bytes, size_t *counted)
{
    struct backfill_body *body = xmalloc(sizeof(*body) + bytes.len);
    *body = (struct backfill_body){.refs = 1, .counted = counted, .len = bytes.len};
    slice_copy(body->bytes, bytes);
    *counted += sizeof(*body) + bytes.len;
    return body;
}

struct backfill_body *backfill_body_ref(struct backfill_body *body)
{
    body->refs++;
    return body;
}

void backfill_body_unref(struct backfill_body *body)
{
    if (!body || --body->refs)
        return;
    *body->counted -= sizeof(*body) + body->len;
    free(body);
}

struct slice backfill_event_prev(const struct watch_event *event)
{
    size_t distance = (uintptr_t)event->private >> 1;
    if (!distance)
        return SLICE_EMPTY;
    const uint8_t *start = event->field.ptr + distance;
    uint64_t len; /* complete, because the source has read it */
    const uint8_t *at = pb_varint_read(start + 1, start + 1 + PB_VARINT_BYTES_MAX, &len);
    return slice_of(start, (size_t)(at - start) + (size_t)len);
}

/* -- Runs -- */

void backfill_run_fini(struct backfill_run *run)
{
    for (size_t i = 0; i < run->body_count; i++)
        backfill_body_unref(run->bodies[i]);
    free(run->revisions);
    free(run->events);
    free(run->bodies);
    *run = (struct backfill_run){0};
}

/* Makes room for one more element of an array. */
static void *grown(void *array, size_t count, size_t *capacity, size_t bytes_each)
{
    if (count < *capacity)
        return array;
    *capacity = size_max(16, *capacity * 2);
    return xrealloc(array, *capacity * bytes_each);
}

void backfill_run_begin(struct backfill_run *run, int64_t revision)
{
    assert(!run->revision_count || run->revisions[run->revision_count - 1].revision < revision);
    run->revisions = grown(run->revisions, run->revision_count, &run->revision_capacity,
                           sizeof(run->revisions[0]));
    run->revisions[run->revision_count++] = (struct backfill_revision){
        .revision = revision,
        .first = run->event_count,
        .body = run->body_count,
    };
}

void backfill_run_add(struct backfill_run *run, struct backfill_body *body,
                      const struct watch_event *event)
{
    struct backfill_revision *last = &run->revisions[run->revision_count - 1];
    if (!run->body_count || run->bodies[run->body_count - 1] != body) {
        run->bodies =
            grown(run->bodies, run->body_count, &run->body_capacity, sizeof(run->bodies[0]));
        run->bodies[run->body_count++] = backfill_body_ref(body);
    }
    if (!last->count)
        last->body = run->body_count - 1;
    run->events =
        grown(run->events, run->event_count, &run->event_capacity, sizeof(run->events[0]));
    run->events[run->event_count++] = *event;
    last->count++;
    last->field_bytes += event->field.len;
    last->bytes += sizeof(*event) + event->field.len + backfill_event_prev(event).len;
}

/* Releases the bodies from the n-th on. */
static void cut_bodies(struct backfill_run *run, size_t n)
{
    while (run->body_count > n)
        backfill_body_unref(run->bodies[--run->body_count]);
}

void backfill_run_lose(struct backfill_run *run)
{
    struct backfill_revision *last = &run->revisions[run->revision_count - 1];
    run->event_count = last->first;
    cut_bodies(run, size_min(last->body + 1, run->body_count)); /* others may be in that one */
    last->count = last->bytes = last->field_bytes = 0;
    last->body = run->body_count;
    last->lost = true;
}

static bool body_has(const struct backfill_body *body, const struct watch_event *event)
{
    return event->field.ptr >= body->bytes && event->field.ptr < body->bytes + body->len;
}

size_t backfill_run_seek(const struct backfill_run *run, int64_t revision)
{
    size_t low = 0, high = run->revision_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->revisions[middle].revision < revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Drops the first n revisions. */
static void drop_first(struct backfill_run *run, size_t n)
{
    const struct backfill_revision *next = n < run->revision_count ? &run->revisions[n] : NULL;
    size_t events = next ? next->first : run->event_count;
    size_t bodies = next ? next->body : run->body_count;
    for (size_t i = 0; i < bodies; i++)
        backfill_body_unref(run->bodies[i]);
    run->body_count -= bodies;
    run->event_count -= events;
    run->revision_count -= n;
    if (run->body_count)
        memmove(run->bodies, run->bodies + bodies, run->body_count * sizeof(run->bodies[0]));
    if (run->event_count)
        memmove(run->events, run->events + events, run->event_count * sizeof(run->events[0]));
    if (run->revision_count)
        memmove(run->revisions, run->revisions + n,
                run->revision_count * sizeof(run->revisions[0]));
    for (size_t i = 0; i < run->revision_count; i++) {
        run->revisions[i].first -= events;
        run->revisions[i].body -= bodies;
    }
}

/* How far a run was merged. */
struct merged {
    const struct backfill_run *run;
    size_t end, at; /* revisions */
    size_t body;
};

static void append_events(struct backfill_run *run, struct merged *from)
{
    const struct backfill_revision *revision = &from->run->revisions[from->at++];
    run->revisions[run->revision_count - 1].lost |= revision->lost;
    for (size_t i = 0; i < revision->count; i++) {
        const struct watch_event *event = &from->run->events[revision->first + i];
        while (!body_has(from->run->bodies[from->body], event))
            from->body++;
        backfill_run_add(run, from->run->bodies[from->body], event);
    }
}

/* The next revision of all; INT64_MAX: none is left. */
static int64_t lowest(const struct merged from[], size_t count)
{
    int64_t revision = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (from[i].at == from[i].end)
            continue;
        int64_t next = from[i].run->revisions[from[i].at].revision;
        revision = next < revision ? next : revision;
    }
    return revision;
}

static void merge_next(struct backfill_run *run, struct merged from[], size_t count,
                       int64_t revision)
{
    backfill_run_begin(run, revision);
    for (size_t i = 0; i < count; i++)
        if (from[i].at < from[i].end && from[i].run->revisions[from[i].at].revision == revision)
            append_events(run, &from[i]);
    if (run->revisions[run->revision_count - 1].lost)
        backfill_run_lose(run);
}

void backfill_run_merge(struct backfill_run *runs[], size_t count, int64_t to,
                        struct backfill_run *ret_run)
{
    assert(!ret_run->revision_count);
    if (count == 1 && backfill_run_seek(runs[0], to) == runs[0]->revision_count) {
        backfill_run_fini(ret_run);
        *ret_run = *runs[0]; /* a long revision is not copied */
        *runs[0] = (struct backfill_run){0};
        return;
    }
    struct merged *from = xcalloc(count, sizeof(*from));
    for (size_t i = 0; i < count; i++)
        from[i] = (struct merged){.run = runs[i], .end = backfill_run_seek(runs[i], to)};
    for (int64_t next; (next = lowest(from, count)) != INT64_MAX;)
        merge_next(ret_run, from, count, next);
    for (size_t i = 0; i < count; i++)
        drop_first(runs[i], from[i].end);
    free(from);
}

void backfill_run_cut(struct backfill_run *run, int64_t from)
{
    size_t n = backfill_run_seek(run, from);
    if (n == run->revision_count)
        return;
    run->event_count = run->revisions[n].first;
    run->revision_count = n;
    if (!n)
        cut_bodies(run, 0);
}

size_t backfill_run_bytes(const struct backfill_run *run)
{
    return run->revision_capacity * sizeof(run->revisions[0]) +
           run->event_capacity * sizeof(run->events[0]) +
           run->body_capacity * sizeof(run->bodies[0]);
}
