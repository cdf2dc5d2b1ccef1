#include "watch/index/tag_index.h"

#include "base/xalloc.h"

void tag_index_init(struct tag_index *index, int64_t from)
{
    *index = (struct tag_index){.first = 1, .end = 1, .from = from};
}

void tag_index_fini(struct tag_index *index)
{
    free(index->events);
}

void tag_index_drop(struct tag_index *index, int64_t from)
{
    index->first = index->end;
    index->from = from;
}

/* NULL: it was replaced, or never existed. */
static struct tag_event *event_of(const struct tag_index *index, uint64_t number)
{
    bool there = number >= index->first && number < index->end;
    return there ? &index->events[number % TAG_INDEX_EVENTS] : NULL;
}

void tag_index_add(struct tag_index *index, struct watch_range *tag,
                   const struct watch_place *before, int64_t revision, size_t event)
{
    struct tag_event *last = event_of(index, tag->tag_newest);
    if (last && last->revision == revision && last->event == event)
        return;
    if (!index->events)
        index->events = xmalloc(TAG_INDEX_EVENTS * sizeof(index->events[0]));
    if (index->end - index->first == TAG_INDEX_EVENTS) {
        index->from = event_of(index, index->first)->revision + 1;
        index->first++;
    }
    uint64_t number = index->end++;
    if (last)
        last->next = number; /* before the entry is overwritten: it may just have been replaced */
    *event_of(index, number) = (struct tag_event){
        .before = *before,
        .revision = revision,
        .event = event,
        .prev = tag->tag_newest,
    };
    tag->tag_newest = number;
}

static bool is_before(const struct tag_event *found, int64_t revision, size_t event)
{
    return found->revision < revision || (found->revision == revision && found->event < event);
}

const struct tag_event *tag_index_seek(struct tag_index *index, const struct watch_range *tag,
                                       int64_t revision, size_t event, uint64_t *number)
{
    assert(revision >= index->from);
    const struct tag_event *found = event_of(index, *number), *older;
    if (!found) {
        *number = tag->tag_newest;
        found = event_of(index, *number);
        while (found && (older = event_of(index, found->prev)) &&
               !is_before(older, revision, event)) {
            *number = found->prev;
            found = older;
            index->steps++;
        }
    }
    while (found && is_before(found, revision, event)) {
        if (!found->next)
            return NULL;
        *number = found->next;
        found = event_of(index, *number);
        index->steps++;
    }
    return found;
}
