#include "watch/hub/long_revision.h"

#include "base/xalloc.h"

enum { SLOTS_MIN = 64 };

#define TO(state) (1u << LONG_##state)

/* Drawn in long_revision.h. */
static const unsigned long_moves[] = {
    [LONG_LOADING] = TO(SEARCHING) | TO(DAMAGED) | TO(GONE),
    [LONG_SEARCHING] = TO(KNOWN) | TO(GONE),
    [LONG_KNOWN] = TO(SEARCHING) | TO(GONE),
    [LONG_DAMAGED] = TO(GONE),
    [LONG_GONE] = 0,
};

static void long_revision_move(struct long_revision *long_rev, enum long_revision_state next)
{
    assert(long_moves[long_rev->state] & (1u << next));
    long_rev->state = next;
}

static struct long_revision *long_of(struct list *link)
{
    return LIST_ENTRY(link, struct long_revision, in_hub);
}

/* -- Life -- */

void long_revision_init(struct watch_hub *hub)
{
    list_init(&hub->long_revisions.held);
    list_init(&hub->long_revisions.gone);
    if (!hub->options.turn_units)
        hub->options.turn_units = LONG_REVISION_TURN_UNITS;
    hub->long_revisions.budget = hub->long_revisions.mark_budget = hub->options.turn_units;
}

static void long_revision_free(struct watch_hub *hub, struct long_revision *long_rev)
{
    list_remove(&long_rev->in_hub);
    hub->history->ops->release(long_rev->held);
    free(long_rev->hits);
    free(long_rev->slots);
    free(long_rev);
}

/* What it has handed out in this turn stays valid until the turn ends. */
static void long_revision_drop(struct watch_hub *hub, struct long_revision *long_rev)
{
    long_revision_move(long_rev, LONG_GONE);
    list_remove(&long_rev->in_hub);
    list_push_back(&hub->long_revisions.gone, &long_rev->in_hub);
    hub->long_revisions.count--;
}

static void free_gone(struct watch_hub *hub)
{
    while (!list_empty(&hub->long_revisions.gone))
        long_revision_free(hub, long_of(hub->long_revisions.gone.next));
}

void long_revision_fini(struct watch_hub *hub)
{
    while (!list_empty(&hub->long_revisions.held))
        long_revision_drop(hub, long_of(hub->long_revisions.held.next));
    free_gone(hub);
}

/* -- Places -- */

/* The one unused for longest, if it was not used in this turn or the one before; NULL: none. */
static struct long_revision *find_idle(const struct watch_hub *hub)
{
    struct long_revision *long_rev, *idle = NULL;
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub) {
        bool in_use = long_rev->marking || long_rev->used_turn + 1 >= hub->long_revisions.turn;
        if (!in_use && (!idle || long_rev->used_turn < idle->used_turn))
            idle = long_rev;
    }
    return idle;
}

/* The one that has served its readers for longest, and for long enough; NULL: none. */
static struct long_revision *find_served(const struct watch_hub *hub)
{
    struct long_revision *long_rev, *served = NULL;
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub) {
        bool loaded = long_rev->state == LONG_SEARCHING || long_rev->state == LONG_KNOWN;
        /* As long as its preparation took, or readers of many long revisions would only prepare. */
        uint64_t share =
            size_max(LONG_REVISION_TURNS_MIN, long_rev->ready_turn - long_rev->opened_turn);
        if (!long_rev->marking && loaded &&
            hub->long_revisions.turn - long_rev->ready_turn >= share &&
            (!served || long_rev->ready_turn < served->ready_turn))
            served = long_rev;
    }
    return served;
}

void long_revision_turn_end(struct watch_hub *hub)
{
    struct list *link = hub->long_revisions.held.next;
    while (link != &hub->long_revisions.held) {
        struct long_revision *long_rev = long_of(link);
        link = link->next;
        /* The tail needs it until it has passed it: marked, compacted, or without live watchers. */
        long_rev->marking = long_rev->marking && long_rev->revision > hub->tail;
        if (!long_rev->marking && hub->now_ns - long_rev->used_ns >= LONG_REVISION_KEPT_NS)
            long_revision_drop(hub, long_rev);
    }
    struct long_revision *served = hub->long_revisions.wanted ? find_served(hub) : NULL;
    if (served)
        long_revision_drop(hub, served);
    hub->long_revisions.wanted = false;
    free_gone(hub);
}

int64_t long_revision_next_ns(const struct watch_hub *hub)
{
    const struct long_revision *long_rev;
    int64_t next = CLOCK_NEVER;
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub) {
        int64_t ends =
            long_rev->marking ? CLOCK_NEVER : clock_add(long_rev->used_ns, LONG_REVISION_KEPT_NS);
        next = ends < next ? ends : next;
    }
    return next;
}

static struct long_revision *find_open(const struct watch_hub *hub, int64_t revision)
{
    struct long_revision *long_rev;
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub)
        if (long_rev->revision == revision)
            return long_rev;
    return NULL;
}

bool long_revision_is_held(const struct watch_hub *hub, int64_t revision)
{
    return find_open(hub, revision) != NULL;
}

static enum status open_new(struct watch_hub *hub, const struct watch_place *place,
                            int64_t revision, struct long_revision **ret_long)
{
    struct watch_held *held;
    size_t count;
    TRY(hub->history->ops->hold(hub->history, place, revision, &held, &count));
    struct long_revision *long_rev = xcalloc(1, sizeof(*long_rev));
    *long_rev = (struct long_revision){
        .revision = revision,
        .count = count,
        .before = *place,
        .held = held,
        .opened_turn = hub->long_revisions.turn,
    };
    list_push_back(&hub->long_revisions.held, &long_rev->in_hub);
    hub->long_revisions.count++;
    *ret_long = long_rev;
    return ST_OK;
}

static struct long_revision *mark_used(struct watch_hub *hub, struct long_revision *long_rev)
{
    long_rev->used_turn = hub->long_revisions.turn;
    long_rev->used_ns = hub->now_ns;
    return long_rev;
}

/* -- Units -- */

size_t long_revision_units(const struct watch_hub *hub)
{
    return size_min(hub->budget, hub->long_revisions.budget);
}

void long_revision_pay(struct watch_hub *hub, size_t units)
{
    hub->budget -= size_min(hub->budget, units);
    hub->long_revisions.budget -= size_min(hub->long_revisions.budget, units);
}

static void take_units(size_t *units, size_t cost)
{
    *units -= size_min(*units, cost);
}

/* -- Hits -- */

/* The slot of the range, or the free one where it belongs. */
static uint32_t *slot_of(const struct long_revision *long_rev, const struct watch_range *range)
{
    size_t mask = long_rev->slot_count - 1;
    size_t at = (size_t)(((uintptr_t)range >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (long_rev->slots[at] && long_rev->hits[long_rev->slots[at] - 1].range != range)
        at = (at + 1) & mask;
    return &long_rev->slots[at];
}

/* Rebuilds the table, at most a quarter full, without the slots of ranges that were freed. */
static void slots_rebuild(struct long_revision *long_rev)
{
    size_t used = 0;
    for (size_t i = 0; i < long_rev->hit_count; i++)
        used += long_rev->hits[i].range != NULL;
    long_rev->slot_count = size_max(SLOTS_MIN, long_rev->slot_count);
    while ((used + 1) * 4 > long_rev->slot_count)
        long_rev->slot_count *= 2;
    free(long_rev->slots);
    long_rev->slots = xcalloc(long_rev->slot_count, sizeof(long_rev->slots[0]));
    long_rev->slots_taken = used;
    for (size_t i = 0; i < long_rev->hit_count; i++)
        if (long_rev->hits[i].range)
            *slot_of(long_rev, long_rev->hits[i].range) = (uint32_t)i + 1;
}

static struct long_revision_hit *find_hit(const struct long_revision *long_rev,
                                          const struct watch_range *range)
{
    if (!long_rev->slot_count)
        return NULL;
    uint32_t slot = *slot_of(long_rev, range);
    return slot ? &long_rev->hits[slot - 1] : NULL;
}

/* Returns the index of a hit that is not in use. */
static uint32_t hit_take(struct long_revision *long_rev)
{
    if (long_rev->hit_unused) {
        /* A range was freed. The list of such hits is linked by `first`, numbers from 1 on. */
        uint32_t at = long_rev->hit_unused - 1;
        long_rev->hit_unused = long_rev->hits[at].first;
        return at;
    }
    if (long_rev->hit_count == long_rev->hit_capacity) {
        long_rev->hit_capacity = size_max(16, long_rev->hit_capacity * 2);
        long_rev->hits =
            xrealloc(long_rev->hits, long_rev->hit_capacity * sizeof(long_rev->hits[0]));
    }
    return (uint32_t)long_rev->hit_count++;
}

static struct long_revision_hit *hit_for(struct long_revision *long_rev, struct watch_range *range)
{
    struct long_revision_hit *hit = find_hit(long_rev, range);
    if (hit)
        return hit;
    if ((long_rev->slots_taken + 1) * 2 > long_rev->slot_count)
        slots_rebuild(long_rev);
    uint32_t *slot = slot_of(long_rev, range), at = hit_take(long_rev);
    *slot = at + 1;
    long_rev->slots_taken++;
    hit = &long_rev->hits[at];
    *hit = (struct long_revision_hit){.range = range, .first = UINT32_MAX};
    return hit;
}

const struct long_revision_hit *long_revision_find(const struct long_revision *long_rev,
                                                   const struct watch_range *range)
{
    return find_hit(long_rev, range);
}

int64_t long_revision_tagged_from(const struct watch_hub *hub)
{
    const struct long_revision *long_rev;
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub)
        if (long_rev->marking && long_rev->revision > hub->tail)
            return long_rev->revision +
                   1; /* part of it was searched before the caller's tag was added */
    return hub->tail + 1;
}

void long_revision_watcher_added(struct watch_hub *hub, const struct watcher *watcher)
{
    struct long_revision *long_rev;
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub) {
        bool looked = long_rev->searched || long_rev->passes;
        /* Events were compared without this range: it needs one more whole pass, which begins after
         * the one that is under way. */
        if (looked && watcher->from <= long_rev->revision)
            hit_for(long_rev, watcher->range)->passes =
                long_rev->passes + (long_rev->searched ? 2 : 1);
    }
}

void long_revision_range_gone(struct watch_hub *hub, const struct watch_range *range)
{
    struct long_revision *long_rev;
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub) {
        struct long_revision_hit *hit = find_hit(long_rev, range);
        if (!hit)
            continue;
        *hit = (struct long_revision_hit){.first = long_rev->hit_unused};
        long_rev->hit_unused = (uint32_t)(hit - long_rev->hits) + 1;
    }
}

/* -- Reading and searching -- */

static enum status load(struct watch_hub *hub, struct long_revision *long_rev, size_t *units)
{
    if (long_rev->state == LONG_DAMAGED)
        return ST_DAMAGED;
    if (long_rev->state != LONG_LOADING)
        return ST_OK; /* all of it was read */
    if (!*units)
        return ST_AGAIN;
    enum status status = hub->history->ops->load(long_rev->held, units);
    if (status == ST_AGAIN)
        return status;
    long_revision_move(long_rev, status == ST_OK ? LONG_SEARCHING : LONG_DAMAGED);
    long_rev->ready_turn = hub->long_revisions.turn;
    return status;
}

struct lookup {
    struct watch_hub *hub;
    struct long_revision *long_rev;
    size_t event;
    size_t *units;
};

static void add_hit(void *ctx, struct watch_range *range)
{
    struct lookup *lookup = ctx;
    struct long_revision_hit *hit = hit_for(lookup->long_rev, range);
    uint32_t event = (uint32_t)lookup->event;
    if (hit->first > hit->last || event < hit->first)
        hit->first = event;
    if (event > hit->last)
        hit->last = event;
    take_units(lookup->units, 1);
}

static void add_tag_hit(void *ctx, struct watch_range *range)
{
    struct lookup *lookup = ctx;
    const struct long_revision *long_rev = lookup->long_rev;
    if (!range->wide)
        tag_index_add(&lookup->hub->tag_index, range, &long_rev->before, long_rev->revision,
                      lookup->event);
    add_hit(ctx, range);
}

static void look_up_tags(struct lookup *lookup, const struct watch_event *event)
{
    struct watch_hub *hub = lookup->hub;
    struct slice tags[WATCH_TAGS_MAX];
    size_t count = hub->tagger(hub->tagger_ctx, hub->history, event, tags);
    take_units(lookup->units, LONG_REVISION_TAGS_UNITS);
    if (count == WATCH_TAGS_UNKNOWN) {
        lookup->long_rev->tags_unknown = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        range_index_visit(&hub->index, tags[i], add_tag_hit, lookup);
}

static void look_up(struct lookup *lookup)
{
    struct watch_hub *hub = lookup->hub;
    struct watch_event event;
    long_revision_event(hub, lookup->long_rev, lookup->event, &event);
    range_index_visit(&hub->index, event.key, add_hit, lookup);
    /* Cursors that read it later examine its events one by one, as everywhere in the past. */
    if (lookup->long_rev->marking && hub->tagged && hub->tagger)
        look_up_tags(lookup, &event);
    take_units(lookup->units, LONG_REVISION_SEARCH_UNITS);
}

static enum status search(struct watch_hub *hub, struct long_revision *long_rev, uint32_t passes,
                          size_t *units)
{
    TRY(load(hub, long_rev, units));
    /* Watchers were added since it was known. */
    if (long_rev->passes < passes && long_rev->state == LONG_KNOWN)
        long_revision_move(long_rev, LONG_SEARCHING);
    /* Its readers cannot be served before the end of the first pass. */
    if (long_rev->passes < passes && long_rev->passes == 0)
        long_rev->ready_turn = hub->long_revisions.turn;
    while (long_rev->passes < passes) {
        if (!*units)
            return ST_AGAIN;
        look_up(&(struct lookup){hub, long_rev, long_rev->searched, units});
        if (++long_rev->searched < long_rev->count)
            continue;
        long_rev->searched = 0; /* the end of a pass over all events */
        if (++long_rev->passes == passes)
            long_revision_move(long_rev, LONG_KNOWN);
    }
    return ST_OK;
}

void long_revision_event(const struct watch_hub *hub, const struct long_revision *long_rev,
                         size_t at, struct watch_event *ret_event)
{
    assert(long_rev->state == LONG_SEARCHING || long_rev->state == LONG_KNOWN ||
           long_rev->state == LONG_GONE);
    assert(at < long_rev->count);
    hub->history->ops->event(long_rev->held, at, ret_event);
}

/* -- Getting one -- */

static enum status get(struct watch_hub *hub, const struct watch_place *place, int64_t revision,
                       struct long_revision **ret_long)
{
    struct long_revision *long_rev = find_open(hub, revision);
    if (!long_rev && hub->long_revisions.count >= LONG_REVISION_OPEN_MAX) {
        /* All places are taken. If none is idle, the end of this turn or a later one frees one. */
        struct long_revision *idle = find_idle(hub);
        hub->long_revisions.wanted |= !idle;
        if (!idle)
            return ST_AGAIN;
        long_revision_drop(hub, idle);
    }
    if (!long_rev)
        TRY(open_new(hub, place, revision, &long_rev));
    long_rev->marking =
        false; /* a reader is never beyond the tail, so the tail has passed this one */
    *ret_long = mark_used(hub, long_rev);
    return ST_OK;
}

enum status long_revision_get_loaded(struct watch_hub *hub, const struct watch_place *place,
                                     int64_t revision, struct long_revision **ret_long)
{
    struct long_revision *long_rev;
    TRY(get(hub, place, revision, &long_rev));
    size_t before = long_revision_units(hub), units = before;
    enum status status = load(hub, long_rev, &units);
    long_revision_pay(hub, before - units);
    *ret_long = long_rev;
    return status;
}

enum status long_revision_search_again(struct watch_hub *hub, struct long_revision *long_rev,
                                       uint32_t passes)
{
    size_t before = long_revision_units(hub), units = before;
    enum status status = search(hub, long_rev, passes, &units);
    long_revision_pay(hub, before - units);
    return status;
}

enum status long_revision_get_searched(struct watch_hub *hub, const struct watch_place *place,
                                       int64_t revision, struct long_revision **ret_long)
{
    struct long_revision *long_rev;
    TRY(get(hub, place, revision, &long_rev));
    TRY(long_revision_search_again(hub, long_rev, 1));
    *ret_long = long_rev;
    return ST_OK;
}

enum status long_revision_get_for_tail(struct watch_hub *hub, const struct watch_place *place,
                                       int64_t revision, struct long_revision **ret_long)
{
    struct long_revision *long_rev = find_open(hub, revision);
    /* The tail has one place more than the readers, because all watchers wait for it. */
    if (!long_rev && hub->long_revisions.count > LONG_REVISION_OPEN_MAX) {
        struct long_revision *idle = find_idle(hub);
        long_revision_drop(hub, idle ? idle : long_of(hub->long_revisions.held.next));
    }
    if (!long_rev) {
        TRY(open_new(hub, place, revision, &long_rev));
        long_rev->marking = true;
    }
    enum status status = search(hub, mark_used(hub, long_rev), 1, &hub->long_revisions.mark_budget);
    long_rev->marking = status == ST_AGAIN;
    *ret_long = long_rev;
    return status;
}

void long_revision_check(const struct watch_hub *hub)
{
    const struct long_revision *long_rev;
    unsigned count = 0;
    assert(list_empty(&hub->long_revisions.gone));
    LIST_FOREACH (long_rev, &hub->long_revisions.held, in_hub) {
        count++;
        assert(long_rev->state != LONG_GONE);
        assert(long_rev->count > 0 && long_rev->searched < long_rev->count);
        assert(long_rev->slots_taken * 2 <= long_rev->slot_count);
        assert(long_rev->state != LONG_KNOWN || (long_rev->passes > 0 && long_rev->searched == 0));
        assert(!long_rev->marking || long_rev->revision > hub->tail);
        for (size_t i = 0; i < long_rev->hit_count; i++) {
            const struct long_revision_hit *hit = &long_rev->hits[i];
            if (!hit->range)
                continue;
            assert(find_hit(long_rev, hit->range) == hit);
            assert(hit->first > hit->last || hit->last < long_rev->count);
        }
    }
    assert(count == hub->long_revisions.count);
    assert(count <= LONG_REVISION_OPEN_MAX + 1);
}
