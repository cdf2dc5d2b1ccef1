#include "watch/trail.h"

#include "base/xalloc.h"

void trail_init(struct watch_trail *trail, int64_t from)
{
    *trail = (struct watch_trail){.first = 1, .end = 1, .from = from};
}

void trail_fini(struct watch_trail *trail)
{
    free(trail->marks);
}

void trail_drop(struct watch_trail *trail, int64_t from)
{
    trail->first = trail->end;
    trail->from = from;
}

/* NULL: it is gone, or there never was one. */
static struct trail_mark *mark_of(const struct watch_trail *trail, uint64_t number)
{
    bool there = number >= trail->first && number < trail->end;
    return there ? &trail->marks[number % WATCH_TRAIL_MARKS] : NULL;
}

void trail_add(struct watch_trail *trail, struct watch_range *tag, const struct watch_place *before,
               int64_t revision, size_t event)
{
    struct trail_mark *last = mark_of(trail, tag->trail_last);
    if (last && last->revision == revision && last->event == event)
        return;
    if (!trail->marks)
        trail->marks = xmalloc(WATCH_TRAIL_MARKS * sizeof(trail->marks[0]));
    if (trail->end - trail->first == WATCH_TRAIL_MARKS) {
        trail->from = mark_of(trail, trail->first)->revision + 1;
        trail->first++;
    }
    uint64_t number = trail->end++;
    if (last)
        last->next = number; /* before it is written over: it may just have gone */
    *mark_of(trail, number) = (struct trail_mark){
        .before = *before,
        .revision = revision,
        .event = event,
        .prev = tag->trail_last,
    };
    tag->trail_last = number;
}

static bool is_before(const struct trail_mark *mark, int64_t revision, size_t event)
{
    return mark->revision < revision || (mark->revision == revision && mark->event < event);
}

const struct trail_mark *trail_seek(struct watch_trail *trail, const struct watch_range *tag,
                                    int64_t revision, size_t event, uint64_t *number)
{
    assert(revision >= trail->from);
    const struct trail_mark *mark = mark_of(trail, *number), *older;
    if (!mark) {
        *number = tag->trail_last;
        mark = mark_of(trail, *number);
        while (mark && (older = mark_of(trail, mark->prev)) && !is_before(older, revision, event)) {
            *number = mark->prev;
            mark = older;
            trail->steps++;
        }
    }
    while (mark && is_before(mark, revision, event)) {
        if (!mark->next)
            return NULL;
        *number = mark->next;
        mark = mark_of(trail, *number);
        trail->steps++;
    }
    return mark;
}
