#include "fake/history.h"

#include "base/xalloc.h"

enum { TURN_BYTES_MAX = 1 << 30 };

struct fake_history {
    struct watch_history base; /* first */
    struct fake_model *model;
    struct arena arena; /* events returned in this turn */
    bool listens;
};

static struct fake_history *history_of(struct watch_history *base)
{
    return CONTAINER_OF(base, struct fake_history, base);
}

static enum status next(struct watch_history *base, struct watch_place *place, int64_t last,
                        struct watch_batch *ret_batch)
{
    struct fake_history *h = history_of(base);
    assert(last <= fake_model_revision(h->model));
    if (place->revision < fake_model_compact_revision(h->model))
        return ST_COMPACTED;
    for (; place->revision <= last; place->revision++) {
        struct fake_event *made;
        size_t count = fake_model_events(h->model, place->revision, &h->arena, &made);
        if (count == 0)
            continue; /* revision 1 has no events */
        size_t bytes = count * sizeof(struct watch_event);
        struct watch_event *events = xalloc_check(arena_alloc(&h->arena, bytes), bytes);
        for (size_t i = 0; i < count; i++)
            events[i] = (struct watch_event){
                .key = made[i].key,
                .field = made[i].field,
                .tombstone = made[i].tombstone,
                .created = made[i].created,
                .private = &made[i],
            };
        *ret_batch =
            (struct watch_batch){.revision = place->revision, .events = events, .count = count};
        place->revision++;
        return ST_OK;
    }
    return ST_END;
}

static struct slice prev(struct watch_history *base, const struct watch_event *event)
{
    (void)base;
    const struct fake_event *made = event->private;
    return made->prev_field;
}

static int64_t revision(struct watch_history *base)
{
    return fake_model_revision(history_of(base)->model);
}

static int64_t compact_revision(struct watch_history *base)
{
    return fake_model_compact_revision(history_of(base)->model);
}

static void listen(struct watch_history *base, bool wanted)
{
    history_of(base)->listens = wanted;
}

static const struct watch_history_ops history_ops = {
    .next = next,
    .prev = prev,
    .revision = revision,
    .compact_revision = compact_revision,
    .listen = listen,
};

struct fake_history *fake_history_new(struct fake_model *model)
{
    struct fake_history *h = xcalloc(1, sizeof(*h));
    h->base.ops = &history_ops;
    h->model = model;
    arena_init(&h->arena, NULL, 0, TURN_BYTES_MAX);
    return h;
}

void fake_history_free(struct fake_history *h)
{
    if (!h)
        return;
    arena_fini(&h->arena);
    free(h);
}

struct watch_history *fake_history_base(struct fake_history *h)
{
    return &h->base;
}

void fake_history_turn_end(struct fake_history *h)
{
    arena_fini(&h->arena);
    arena_init(&h->arena, NULL, 0, TURN_BYTES_MAX);
}

bool fake_history_listens(const struct fake_history *h)
{
    return h->listens;
}
