#include "watch/long.h"

#include "base/xalloc.h"
#include "watch/stream_private.h"

enum { SLOTS_MIN = 64 };

#define TO(state) (1u << LONG_##state)

/* Drawn in long.h. */
static const unsigned long_moves[] = {
    [LONG_LOADING] = TO(SEARCHING) | TO(DAMAGED) | TO(GONE),
    [LONG_SEARCHING] = TO(KNOWN) | TO(GONE),
    [LONG_KNOWN] = TO(SEARCHING) | TO(GONE),
    [LONG_DAMAGED] = TO(GONE),
    [LONG_GONE] = 0,
};

static void long_move(struct watch_long *l, enum long_state next)
{
    assert(long_moves[l->state] & (1u << next));
    l->state = next;
}

static struct watch_long *long_of(struct list *link)
{
    return LIST_ENTRY(link, struct watch_long, in_hub);
}

/* -- Life -- */

void long_init(struct watch_hub *hub)
{
    list_init(&hub->longs.held);
    list_init(&hub->longs.gone);
    if (!hub->options.turn_units)
        hub->options.turn_units = LONG_TURN_UNITS;
    hub->longs.budget = hub->longs.mark_budget = hub->options.turn_units;
}

static void long_free(struct watch_hub *hub, struct watch_long *l)
{
    list_remove(&l->in_hub);
    hub->history->ops->release(l->held);
    free(l->hits);
    free(l->slots);
    free(l);
}

/* What it has given in this turn stays until the turn ends. */
static void long_let_go(struct watch_hub *hub, struct watch_long *l)
{
    long_move(l, LONG_GONE);
    list_remove(&l->in_hub);
    list_push_back(&hub->longs.gone, &l->in_hub);
    hub->longs.count--;
}

static void free_gone(struct watch_hub *hub)
{
    while (!list_empty(&hub->longs.gone))
        long_free(hub, long_of(hub->longs.gone.next));
}

void long_fini(struct watch_hub *hub)
{
    while (!list_empty(&hub->longs.held))
        long_let_go(hub, long_of(hub->longs.held.next));
    free_gone(hub);
}

/* -- Places -- */

/* The one that nobody has needed for longest, if that is not one of this turn; NULL: none. */
static struct watch_long *find_idle(const struct watch_hub *hub)
{
    struct watch_long *l, *idle = NULL;
    LIST_FOREACH (l, &hub->longs.held, in_hub) {
        bool in_use = l->marking || l->asked_turn + 1 >= hub->longs.turn;
        if (!in_use && (!idle || l->asked_turn < idle->asked_turn))
            idle = l;
    }
    return idle;
}

/* One that has served its readers for a while, of those the longest; NULL: none. */
static struct watch_long *find_served(const struct watch_hub *hub)
{
    struct watch_long *l, *served = NULL;
    LIST_FOREACH (l, &hub->longs.held, in_hub) {
        bool loaded = l->state == LONG_SEARCHING || l->state == LONG_KNOWN;
        if (!l->marking && loaded && hub->longs.turn - l->loaded_turn >= LONG_TURNS_MIN &&
            (!served || l->loaded_turn < served->loaded_turn))
            served = l;
    }
    return served;
}

void long_turn_begin(struct watch_hub *hub)
{
    hub->longs.turn++;
    hub->longs.budget = hub->longs.mark_budget = hub->options.turn_units;
}

void long_turn_end(struct watch_hub *hub)
{
    struct list *link = hub->longs.held.next;
    while (link != &hub->longs.held) {
        struct watch_long *l = long_of(link);
        link = link->next;
        /* The tail waits for it until it is past it: told, compacted, or nobody's concern. */
        l->marking = l->marking && l->revision > hub->tail;
        if (!l->marking && hub->now_ns - l->asked_ns >= LONG_KEPT_NS)
            long_let_go(hub, l);
    }
    struct watch_long *served = hub->longs.wanted ? find_served(hub) : NULL;
    if (served)
        long_let_go(hub, served);
    hub->longs.wanted = false;
    free_gone(hub);
}

int64_t long_next_ns(const struct watch_hub *hub)
{
    const struct watch_long *l;
    int64_t next = CLOCK_NEVER;
    LIST_FOREACH (l, &hub->longs.held, in_hub) {
        int64_t ends = l->marking ? CLOCK_NEVER : clock_add(l->asked_ns, LONG_KEPT_NS);
        next = ends < next ? ends : next;
    }
    return next;
}

static struct watch_long *find_open(const struct watch_hub *hub, int64_t revision)
{
    struct watch_long *l;
    LIST_FOREACH (l, &hub->longs.held, in_hub)
        if (l->revision == revision)
            return l;
    return NULL;
}

static enum status open_new(struct watch_hub *hub, const struct watch_place *place,
                            int64_t revision, struct watch_long **ret_long)
{
    struct watch_held *held;
    size_t count;
    TRY(hub->history->ops->hold(hub->history, place, revision, &held, &count));
    struct watch_long *l = xcalloc(1, sizeof(*l));
    *l = (struct watch_long){.revision = revision, .count = count, .before = *place, .held = held};
    list_push_back(&hub->longs.held, &l->in_hub);
    hub->longs.count++;
    *ret_long = l;
    return ST_OK;
}

static struct watch_long *asked(struct watch_hub *hub, struct watch_long *l)
{
    l->asked_turn = hub->longs.turn;
    l->asked_ns = hub->now_ns;
    return l;
}

/* -- Units -- */

size_t long_units(const struct watch_hub *hub)
{
    return size_min(hub->budget, hub->longs.budget);
}

void long_pay(struct watch_hub *hub, size_t units)
{
    hub->budget -= size_min(hub->budget, units);
    hub->longs.budget -= size_min(hub->longs.budget, units);
}

static void take_units(size_t *units, size_t cost)
{
    *units -= size_min(*units, cost);
}

/* -- Hits -- */

/* The slot of the range, or the free one where it belongs. */
static uint32_t *slot_of(const struct watch_long *l, const struct watch_range *range)
{
    size_t mask = l->slot_count - 1;
    size_t at = (size_t)(((uintptr_t)range >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (l->slots[at] && l->hits[l->slots[at] - 1].range != range)
        at = (at + 1) & mask;
    return &l->slots[at];
}

static void slots_grow(struct watch_long *l)
{
    free(l->slots);
    l->slot_count = size_max(SLOTS_MIN, l->slot_count * 2);
    l->slots = xcalloc(l->slot_count, sizeof(l->slots[0]));
    for (size_t i = 0; i < l->hit_count; i++)
        if (l->hits[i].range)
            *slot_of(l, l->hits[i].range) = (uint32_t)i + 1;
}

static struct long_hit *find_hit(const struct watch_long *l, const struct watch_range *range)
{
    if (!l->slot_count)
        return NULL;
    uint32_t slot = *slot_of(l, range);
    return slot ? &l->hits[slot - 1] : NULL;
}

static struct long_hit *hit_for(struct watch_long *l, struct watch_range *range)
{
    struct long_hit *hit = find_hit(l, range);
    if (hit)
        return hit;
    if ((l->hit_count + 1) * 2 > l->slot_count)
        slots_grow(l);
    if (l->hit_count == l->hit_capacity) {
        l->hit_capacity = size_max(16, l->hit_capacity * 2);
        l->hits = xrealloc(l->hits, l->hit_capacity * sizeof(l->hits[0]));
    }
    l->hits[l->hit_count] = (struct long_hit){.range = range, .first = UINT32_MAX};
    *slot_of(l, range) = (uint32_t)++l->hit_count;
    return &l->hits[l->hit_count - 1];
}

const struct long_hit *long_find(const struct watch_long *l, const struct watch_range *range)
{
    return find_hit(l, range);
}

int64_t long_tagged_from(const struct watch_hub *hub)
{
    const struct watch_long *l;
    LIST_FOREACH (l, &hub->longs.held, in_hub)
        if (l->marking && l->revision > hub->tail)
            return l->revision + 1; /* some of it was looked up before */
    return hub->tail + 1;
}

void long_watcher_added(struct watch_hub *hub, const struct watcher *watcher)
{
    struct watch_long *l;
    LIST_FOREACH (l, &hub->longs.held, in_hub) {
        bool looked = l->searched || l->passes;
        if (looked && watcher->from <= l->revision)
            hit_for(l, watcher->range)->passes = l->passes + (l->searched ? 2 : 1);
    }
}

void long_range_gone(struct watch_hub *hub, const struct watch_range *range)
{
    struct watch_long *l;
    LIST_FOREACH (l, &hub->longs.held, in_hub) {
        struct long_hit *hit = find_hit(l, range);
        if (hit)
            hit->range = NULL;
    }
}

/* -- Reading and searching -- */

static enum status load(struct watch_hub *hub, struct watch_long *l, size_t *units)
{
    if (l->state == LONG_DAMAGED)
        return ST_DAMAGED;
    if (l->state != LONG_LOADING)
        return ST_OK;
    if (!*units)
        return ST_AGAIN;
    enum status status = hub->history->ops->load(l->held, units);
    if (status == ST_AGAIN)
        return status;
    long_move(l, status == ST_OK ? LONG_SEARCHING : LONG_DAMAGED);
    l->loaded_turn = hub->longs.turn;
    return status;
}

struct lookup {
    struct watch_hub *hub;
    struct watch_long *l;
    size_t event;
    size_t *units;
};

static void add_hit(void *ctx, struct watch_range *range)
{
    struct lookup *lookup = ctx;
    struct long_hit *hit = hit_for(lookup->l, range);
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
    const struct watch_long *l = lookup->l;
    if (!range->end_len)
        trail_add(&lookup->hub->trail, range, &l->before, l->revision, lookup->event);
    add_hit(ctx, range);
}

static void look_up_tags(struct lookup *lookup, const struct watch_event *event)
{
    struct watch_hub *hub = lookup->hub;
    struct slice tags[WATCH_TAGS_MAX];
    size_t count = hub->tagger(hub->tagger_ctx, hub->history, event, tags);
    take_units(lookup->units, LONG_TAGS_UNITS);
    if (count == WATCH_TAGS_UNKNOWN) {
        lookup->l->tags_unknown = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        range_index_visit(&hub->index, tags[i], add_tag_hit, lookup);
}

static void look_up(struct lookup *lookup)
{
    struct watch_hub *hub = lookup->hub;
    struct watch_event event;
    long_event(hub, lookup->l, lookup->event, &event);
    range_index_visit(&hub->index, event.key, add_hit, lookup);
    /* Those who read it later walk over their events, as they do in all of the past. */
    if (lookup->l->marking && hub->tagged && hub->tagger)
        look_up_tags(lookup, &event);
    take_units(lookup->units, LONG_SEARCH_UNITS);
}

static enum status search(struct watch_hub *hub, struct watch_long *l, uint32_t passes,
                          size_t *units)
{
    TRY(load(hub, l, units));
    if (l->passes < passes && l->state == LONG_KNOWN)
        long_move(l, LONG_SEARCHING);
    while (l->passes < passes) {
        if (!*units)
            return ST_AGAIN;
        look_up(&(struct lookup){hub, l, l->searched, units});
        if (++l->searched < l->count)
            continue;
        l->searched = 0;
        if (++l->passes == passes)
            long_move(l, LONG_KNOWN);
    }
    return ST_OK;
}

void long_event(const struct watch_hub *hub, const struct watch_long *l, size_t at,
                struct watch_event *ret_event)
{
    assert(l->state == LONG_SEARCHING || l->state == LONG_KNOWN || l->state == LONG_GONE);
    assert(at < l->count);
    hub->history->ops->event(l->held, at, ret_event);
}

/* -- Getting one -- */

static enum status get(struct watch_hub *hub, const struct watch_place *place, int64_t revision,
                       struct watch_long **ret_long)
{
    struct watch_long *l = find_open(hub, revision);
    if (!l && hub->longs.count >= LONG_OPEN_MAX) {
        struct watch_long *idle = find_idle(hub);
        hub->longs.wanted |= !idle;
        if (!idle)
            return ST_AGAIN;
        long_let_go(hub, idle);
    }
    if (!l)
        TRY(open_new(hub, place, revision, &l));
    l->marking = false; /* only the tail reads what is beyond it, so it is past this one */
    *ret_long = asked(hub, l);
    return ST_OK;
}

enum status long_get_loaded(struct watch_hub *hub, const struct watch_place *place,
                            int64_t revision, struct watch_long **ret_long)
{
    struct watch_long *l;
    TRY(get(hub, place, revision, &l));
    size_t before = long_units(hub), units = before;
    enum status status = load(hub, l, &units);
    long_pay(hub, before - units);
    *ret_long = l;
    return status;
}

enum status long_search_again(struct watch_hub *hub, struct watch_long *l, uint32_t passes)
{
    size_t before = long_units(hub), units = before;
    enum status status = search(hub, l, passes, &units);
    long_pay(hub, before - units);
    return status;
}

enum status long_get_searched(struct watch_hub *hub, const struct watch_place *place,
                              int64_t revision, struct watch_long **ret_long)
{
    struct watch_long *l;
    TRY(get(hub, place, revision, &l));
    TRY(long_search_again(hub, l, 1));
    *ret_long = l;
    return ST_OK;
}

enum status long_get_for_tail(struct watch_hub *hub, const struct watch_place *place,
                              int64_t revision, struct watch_long **ret_long)
{
    struct watch_long *l = find_open(hub, revision);
    if (!l && hub->longs.count > LONG_OPEN_MAX) {
        struct watch_long *idle = find_idle(hub);
        long_let_go(hub, idle ? idle : long_of(hub->longs.held.next));
    }
    if (!l) {
        TRY(open_new(hub, place, revision, &l));
        l->marking = true;
    }
    enum status status = search(hub, asked(hub, l), 1, &hub->longs.mark_budget);
    l->marking = status == ST_AGAIN;
    *ret_long = l;
    return status;
}

void long_check(const struct watch_hub *hub)
{
    const struct watch_long *l;
    unsigned count = 0;
    assert(list_empty(&hub->longs.gone));
    LIST_FOREACH (l, &hub->longs.held, in_hub) {
        count++;
        assert(l->state != LONG_GONE);
        assert(l->count > 0 && l->searched < l->count);
        assert(l->state != LONG_KNOWN || (l->passes > 0 && l->searched == 0));
        assert(!l->marking || l->revision > hub->tail);
        for (size_t i = 0; i < l->hit_count; i++) {
            const struct long_hit *hit = &l->hits[i];
            assert(!hit->range || find_hit(l, hit->range) == hit);
            assert(hit->first > hit->last || hit->last < l->count);
        }
    }
    assert(count == hub->longs.count);
    assert(count <= LONG_OPEN_MAX + 1);
}
