/* Objects of events that a webhook converts for many watches: who shares a call, what is kept,
 * limits, watches that leave, and memory that fails. */
#include "base/memory/budget.h"
#include "kube/call/conversion_fixture_test.h"
#include "kube/handlers/read/event_conversions.h"

/* What a watch waits for. */
struct watcher {
    struct kube_conversion_wait wait;
    struct kube_event_conversions *conversions;
    const struct kube_custom *to;
    struct kube_kv kv;
    unsigned wakes;
    struct slice json;
    struct kube_status status;
};

struct event_world {
    struct conversion_world w; /* first */
    struct kube_event_conversions *conversions;
    struct budget *budget;
    struct arena arena;
};

enum { BUDGET_BYTES = 1 << 30 }; /* more than one definition may take */

static void world_init(struct event_world *e)
{
    conversion_world_init(&e->w);
    assert_int_equal(budget_new(BUDGET_BYTES, &e->budget), ST_OK);
    e->conversions = kube_event_conversions_new(&e->w.api, e->budget);
    arena_init(&e->arena, NULL, 0, SIZE_MAX);
}

static void world_fini(struct event_world *e)
{
    kube_event_conversions_free(e->conversions);
    arena_fini(&e->arena);
    assert_int_equal(budget_stats(e->budget).held_bytes, 0);
    conversion_world_fini(&e->w);
    budget_free(e->budget); /* no account is left */
}

static void on_wake(struct kube_conversion_wait *wait)
{
    CONTAINER_OF(wait, struct watcher, wait)->wakes++;
}

static enum status get(struct watcher *x)
{
    x->wait.wake = on_wake;
    return kube_event_conversions_get(x->conversions, &x->wait, x->to, x->kv, &x->json, &x->status);
}

static void drop(struct watcher *x)
{
    kube_conversion_wait_drop(x->conversions, &x->wait);
}

/* Wants the object of v1 with this name, as it was at the revision. */
static struct watcher watcher_of(struct event_world *e, const struct kube_custom *to,
                                 const char *name, int64_t revision)
{
    struct slice key = SLICE_EMPTY;
    assert_int_equal(arena_dup(&e->arena, slice_from_text(name), &key), ST_OK);
    return (struct watcher){
        .conversions = e->conversions,
        .to = to,
        .kv = {key, conversion_object(&e->arena, "v1", name, ""), .mod_revision = revision},
    };
}

static struct watcher watcher_of_number(struct event_world *e, int number, int64_t revision)
{
    char name[32];
    snprintf(name, sizeof(name), "g%d", number);
    return watcher_of(e, e->w.v2, name, revision);
}

static void run(struct event_world *e, int64_t ns)
{
    hook_run(&e->w.hooks, ns);
}

static unsigned calls(const struct event_world *e)
{
    return e->w.hooks.site.requests;
}

/* The object as soon as it is there. */
static void expect_known(struct watcher *x, const char *version, const char *name)
{
    assert_int_equal(get(x), ST_OK);
    conversion_expect(x->json, version, name);
}

/* -- Sharing -- */

static void event_is_converted_once_for_each_version(void **state)
{
    (void)state;
    enum { EACH = 20 };
    struct event_world e;
    struct watcher x[2 * EACH];
    world_init(&e);
    for (int i = 0; i < 2 * EACH; i++) {
        x[i] = watcher_of(&e, i % 2 ? e.w.v2 : e.w.v3, "a", 9);
        assert_int_equal(get(&x[i]), ST_AGAIN);
        assert_int_equal(get(&x[i]), ST_AGAIN); /* it asks again and waits on */
    }
    assert_int_equal(calls(&e), 0);
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), 2);
    for (int i = 0; i < 2 * EACH; i++) {
        assert_int_equal(x[i].wakes, 1);
        expect_known(&x[i], i % 2 ? "v2" : "v3", "a");
        assert_ptr_equal(x[i].json.ptr, x[i % 2].json.ptr);
    }
    for (int i = 0; i < 2 * EACH; i++)
        drop(&x[i]);
    /* A watch that comes later finds it; another revision is another object. */
    expect_known(&x[0], "v3", "a");
    x[0].kv.mod_revision++;
    assert_int_equal(get(&x[0]), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), 3);
    expect_known(&x[0], "v3", "a");
    drop(&x[0]);
    world_fini(&e);
}

static void objects_of_a_turn_are_sent_together(void **state)
{
    (void)state;
    enum { ALL = KUBE_CONVERSION_OBJECTS_MAX + 3 };
    struct event_world e;
    struct watcher *x = calloc(ALL, sizeof(*x));
    world_init(&e);
    for (int i = 0; i < ALL; i++) {
        x[i] = watcher_of_number(&e, i, 9);
        assert_int_equal(get(&x[i]), ST_AGAIN);
    }
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), 2);
    assert_int_equal(e.w.converter.counts[0], KUBE_CONVERSION_OBJECTS_MAX);
    assert_int_equal(e.w.converter.counts[1], 3);
    for (int i = 0; i < ALL; i++) {
        assert_int_equal(x[i].wakes, 1);
        assert_int_equal(get(&x[i]), ST_OK);
        drop(&x[i]);
    }
    free(x);
    world_fini(&e);
}

static void converter_that_hangs_delays_only_its_own_objects(void **state)
{
    (void)state;
    struct event_world e;
    world_init(&e);
    struct watcher a = watcher_of(&e, e.w.v2, "a", 9), b = watcher_of(&e, e.w.v2, "b", 10),
                   late = a;
    e.w.hooks.site.holds = true;
    assert_int_equal(get(&a), ST_AGAIN);
    run(&e, NS_PER_S);
    e.w.hooks.site.holds = false;
    assert_int_equal(get(&late), ST_AGAIN); /* it waits for the same call */
    assert_int_equal(get(&b), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), 2);
    assert_int_equal(b.wakes, 1);
    expect_known(&b, "v2", "b");
    assert_int_equal(a.wakes + late.wakes, 0);
    run(&e, KUBE_CONVERSION_NS);
    assert_true(a.wakes == 1 && late.wakes == 1);
    assert_int_equal(get(&a), ST_CANCELED);
    assert_non_null(strstr(a.status.message, "context deadline exceeded"));
    assert_int_equal(get(&late), ST_CANCELED);
    drop(&b);
    /* What has failed is not kept, even while a watch still has it: another one tries again. */
    drop(&late);
    assert_int_equal(get(&late), ST_AGAIN);
    run(&e, NS_PER_S);
    expect_known(&late, "v2", "a");
    drop(&late);
    drop(&a);
    world_fini(&e);
}

/* -- Failures -- */

static void object_that_fails_fails_no_other(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "bad", "c", "d"};
    struct event_world e;
    struct watcher x[COUNT_OF(names)];
    world_init(&e);
    e.w.converter.way = CONVERTER_RENAMES_BAD;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        x[i] = watcher_of(&e, e.w.v2, names[i], 9);
        assert_int_equal(get(&x[i]), ST_AGAIN);
    }
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), 1 + COUNT_OF(names));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(x[i].wakes, 1);
        if (i != 1) {
            expect_known(&x[i], "v2", names[i]);
        } else {
            assert_int_equal(get(&x[i]), ST_CANCELED);
            assert_non_null(strstr(x[i].status.message, "must have the same name: bad != other"));
        }
        drop(&x[i]);
    }
    world_fini(&e);
}

/* All of them fail, with one call. */
static void failed_call_fails_all_of_its_objects(void **state)
{
    (void)state;
    struct event_world e;
    world_init(&e);
    struct watcher a = watcher_of(&e, e.w.v2, "a", 9), b = watcher_of(&e, e.w.v2, "b", 9);
    e.w.hooks.site.code = 500;
    assert_int_equal(get(&a), ST_AGAIN);
    assert_int_equal(get(&b), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), 1);
    assert_true(a.wakes == 1 && b.wakes == 1);
    assert_int_equal(get(&a), ST_CANCELED);
    assert_int_equal(get(&b), ST_CANCELED);
    assert_non_null(strstr(b.status.message, "failed: an error on the server"));
    drop(&a);
    drop(&b);
    world_fini(&e);
}

static void what_cannot_be_sent_fails_alone(void **state)
{
    (void)state;
    static char long_key[2048];
    struct event_world e;
    world_init(&e);
    struct watcher a = watcher_of(&e, e.w.v2, "a", 9), b = watcher_of(&e, e.w.v2, "b", 9), c = a;
    a.kv.value = SLICE_LITERAL("[]");
    assert_int_equal(get(&a), ST_AGAIN);
    assert_int_equal(get(&b), ST_AGAIN);
    memset(long_key, 'k', sizeof(long_key));
    c.kv.key = slice_of(long_key, sizeof(long_key));
    assert_int_equal(get(&c), ST_CANCELED);
    run(&e, NS_PER_S);
    assert_int_equal(get(&a), ST_CANCELED);
    assert_non_null(strstr(a.status.message, "the stored value is not a JSON object"));
    expect_known(&b, "v2", "b");
    /* Also if it is the only one. */
    drop(&a);
    assert_int_equal(get(&a), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(a.wakes, 2);
    assert_int_equal(calls(&e), 1);
    drop(&a);
    drop(&b);
    world_fini(&e);
}

/* -- Limits -- */

/* Whatever a converter makes of them. */
static void objects_are_kept_up_to_a_number_of_bytes(void **state)
{
    (void)state;
    enum { GROWS = 512 * 1024, FITS = KUBE_EVENT_CONVERSIONS_BYTES / GROWS - 1 };
    struct event_world e;
    world_init(&e);
    e.w.converter.grows = GROWS;
    struct watcher held = watcher_of(&e, e.w.v2, "held", 9), x = held;
    assert_int_equal(get(&held), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(get(&held), ST_OK);
    for (int i = 0; i < 2 * FITS; i++) {
        x = watcher_of_number(&e, i, 9);
        assert_int_equal(get(&x), ST_AGAIN);
        run(&e, NS_PER_S);
        assert_int_equal(get(&x), ST_OK);
        drop(&x);
    }
    unsigned before = calls(&e);
    x = watcher_of_number(&e, 2 * FITS - 1, 9);
    assert_int_equal(get(&x), ST_OK);
    drop(&x);
    x = watcher_of_number(&e, 0, 9);
    assert_int_equal(get(&x), ST_AGAIN);
    drop(&x);
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), before);
    /* What a watch uses stays, although it is the oldest. */
    x = held;
    x.wait = (struct kube_conversion_wait){0};
    assert_int_equal(get(&x), ST_OK);
    assert_ptr_equal(x.json.ptr, held.json.ptr);
    drop(&x);
    drop(&held);
    world_fini(&e);
}

static void objects_are_kept_up_to_a_number(void **state)
{
    (void)state;
    enum { MORE = 100, ALL = KUBE_EVENT_CONVERSIONS_COUNT + MORE };
    struct event_world e;
    struct watcher *x = calloc(ALL, sizeof(*x));
    unsigned known = 0;
    world_init(&e);
    for (int i = 0; i < ALL; i++) {
        x[i] = watcher_of_number(&e, i, 9);
        assert_int_equal(get(&x[i]), ST_AGAIN);
    }
    run(&e, 2 * NS_PER_S);
    for (int i = 0; i < ALL; i++) {
        assert_int_equal(get(&x[i]), ST_OK);
        drop(&x[i]);
    }
    /* They are dropped when others were converted. */
    struct watcher other = watcher_of(&e, e.w.v2, "other", 9);
    assert_int_equal(get(&other), ST_AGAIN);
    run(&e, NS_PER_S);
    drop(&other);
    for (int i = 0; i < ALL; i++) {
        known += get(&x[i]) == ST_OK;
        drop(&x[i]);
    }
    assert_in_range(known, KUBE_EVENT_CONVERSIONS_COUNT - MORE, KUBE_EVENT_CONVERSIONS_COUNT);
    free(x);
    world_fini(&e);
}

/* One definition has its share, and others have room meanwhile. */
static void objects_under_way_are_limited(void **state)
{
    (void)state;
    enum { EACH = 1 << 20, ALL = KUBE_EVENT_CONVERSIONS_PENDING_BYTES_EACH / EACH + 1 };
    struct event_world e;
    struct watcher *x = calloc(ALL + 1, sizeof(*x));
    char *more = conversion_long(EACH);
    int fits = 0;
    world_init(&e);
    struct kube_definition *doors = conversion_define(&e.w, "doors");
    const struct kube_custom *door =
        kube_definition_version(doors, SLICE_LITERAL("example.com/v2"));
    e.w.hooks.site.holds = true;
    for (int round = 0; round < 2; round++) {
        for (fits = 0; fits <= ALL; fits++) {
            x[fits] = watcher_of_number(&e, fits, 9 + round);
            x[fits].kv.value = conversion_object(&e.arena, "v1", "a", more);
            if (get(&x[fits]) != ST_AGAIN)
                break;
        }
        assert_in_range(fits, ALL / 2, ALL);
        assert_int_equal(x[fits].status.reason, KUBE_TOO_MANY_REQUESTS);
        assert_int_equal(x[fits].status.retry_after_s, 1);
        assert_non_null(strstr(x[fits].status.message, "too many events wait for the conversion "
                                                       "webhook of gates.example.com"));
        run(&e, NS_PER_S);
        struct watcher other = watcher_of(&e, door, "other", 9 + round);
        e.w.hooks.site.holds = false;
        assert_int_equal(get(&other), ST_AGAIN);
        run(&e, NS_PER_S);
        expect_known(&other, "v2", "other");
        drop(&other);
        e.w.hooks.site.holds = true;
        /* When the watches leave, all of it is free again: there is a second round. */
        for (int i = 0; i < fits; i++)
            drop(&x[i]);
        run(&e, 100 * NS_PER_MS);
        assert_int_equal(e.w.hooks.under_way, 0);
    }
    kube_definition_unref(doors);
    free(more);
    free(x);
    world_fini(&e);
}

/* All definitions together, each of which has a share. */
static void objects_under_way_of_all_definitions_are_limited(void **state)
{
    (void)state;
    enum { EACH = 1 << 20, ALL = 2 * KUBE_EVENT_CONVERSIONS_PENDING_BYTES / EACH, KINDS = 8 };
    struct event_world e;
    struct watcher *x = calloc(ALL, sizeof(*x));
    struct kube_definition *definitions[KINDS];
    char *more = conversion_long(EACH), plural[16];
    size_t fits = 0;
    world_init(&e);
    e.w.hooks.site.holds = true;
    struct slice large = conversion_object(&e.arena, "v1", "a", more);
    for (size_t kind = 0; kind < KINDS; kind++) {
        snprintf(plural, sizeof(plural), "kind%zu", kind);
        definitions[kind] = conversion_define(&e.w, plural);
        const struct kube_custom *to =
            kube_definition_version(definitions[kind], SLICE_LITERAL("example.com/v2"));
        size_t before = fits;
        do {
            x[fits] = watcher_of_number(&e, (int)fits, 9);
            x[fits].to = to;
            x[fits].kv.value = large;
        } while (get(&x[fits]) == ST_AGAIN && ++fits < ALL);
        assert_true(fits < ALL);
        assert_int_equal(x[fits].status.reason, KUBE_TOO_MANY_REQUESTS);
        if (kind == 0)
            assert_true(fits > 0);
        else if (kind == KINDS - 1)
            assert_int_equal(fits, before);
    }
    for (size_t i = 0; i < fits; i++)
        drop(&x[i]);
    run(&e, 100 * NS_PER_MS);
    for (size_t kind = 0; kind < KINDS; kind++)
        kube_definition_unref(definitions[kind]);
    free(more);
    free(x);
    world_fini(&e);
}

/* A converter makes small objects large, and no watch takes its event: each waits for its client.
 */
static void memory_of_a_definition_is_limited(void **state)
{
    (void)state;
    enum {
        GROWS = 6 << 20,
        ALL = KUBE_EVENT_CONVERSIONS_MEMORY_EACH / GROWS + 4,
    };
    struct event_world e;
    struct watcher x[ALL];
    size_t known = 0;
    world_init(&e);
    struct kube_definition *doors = conversion_define(&e.w, "doors");
    const struct kube_custom *door =
        kube_definition_version(doors, SLICE_LITERAL("example.com/v2"));
    e.w.converter.grows = GROWS;
    for (int i = 0; i < ALL; i++) {
        x[i] = watcher_of(&e, e.w.v2, "a", i);
        assert_int_equal(get(&x[i]), ST_AGAIN);
        run(&e, NS_PER_S);
        assert_in_range(budget_stats(e.budget).held_bytes, 0, KUBE_EVENT_CONVERSIONS_MEMORY_EACH);
        if (get(&x[i]) == ST_OK)
            known++;
        else
            assert_int_equal(x[i].status.reason, KUBE_TOO_MANY_REQUESTS);
    }
    assert_in_range(known, ALL / 4, ALL - 4);
    struct watcher other = watcher_of(&e, door, "other", 9);
    assert_int_equal(get(&other), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(get(&other), ST_OK);
    drop(&other);
    for (int i = 0; i < ALL; i++)
        drop(&x[i]);
    kube_definition_unref(doors);
    world_fini(&e);
}

/* -- Watches that leave -- */

static void call_is_given_up_with_its_last_watch(void **state)
{
    (void)state;
    struct event_world e;
    world_init(&e);
    struct watcher a = watcher_of(&e, e.w.v2, "a", 9), b = watcher_of(&e, e.w.v2, "b", 9), c = a;
    e.w.hooks.site.holds = true;
    assert_int_equal(get(&a), ST_AGAIN);
    assert_int_equal(get(&b), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(calls(&e), 1);
    drop(&a);
    run(&e, NS_PER_S);
    assert_int_equal(e.w.hooks.site.ends, 0);
    /* One that comes before the end of the turn takes it over. */
    drop(&b);
    assert_int_equal(get(&c), ST_AGAIN);
    run(&e, NS_PER_S);
    assert_int_equal(e.w.hooks.site.ends, 0);
    assert_int_equal(e.w.hooks.under_way, 1);
    drop(&c);
    run(&e, 100 * NS_PER_MS);
    assert_int_equal(e.w.hooks.site.ends, 1);
    assert_int_equal(e.w.hooks.under_way, 0);
    e.w.hooks.site.holds = false;
    assert_int_equal(get(&a), ST_AGAIN);
    run(&e, NS_PER_S);
    expect_known(&a, "v2", "a");
    drop(&a);
    assert_int_equal(calls(&e), 2);
    assert_int_equal(a.wakes, 1);
    assert_int_equal(b.wakes + c.wakes, 0);
    world_fini(&e);
}

static void object_without_a_watch_is_not_sent(void **state)
{
    (void)state;
    struct event_world e;
    world_init(&e);
    struct watcher a = watcher_of(&e, e.w.v2, "a", 9), b = watcher_of(&e, e.w.v2, "b", 9);
    assert_int_equal(get(&a), ST_AGAIN);
    assert_int_equal(get(&b), ST_AGAIN);
    drop(&a);
    drop(&a); /* idle */
    run(&e, NS_PER_S);
    assert_int_equal(e.w.converter.objects, 1);
    expect_known(&b, "v2", "b");
    /* Objects that are sent again, because another one has failed, too. */
    e.w.converter.way = CONVERTER_RENAMES_BAD;
    struct watcher bad = watcher_of(&e, e.w.v2, "bad", 10), c = watcher_of(&e, e.w.v2, "c", 10);
    assert_int_equal(get(&bad), ST_AGAIN);
    assert_int_equal(get(&c), ST_AGAIN);
    for (int i = 0; i < 1000 && e.w.converter.objects < 3; i++)
        sim_run_until(e.w.hooks.server.sim, conversion_now(&e.w) + NS_PER_MS / 20);
    drop(&c);
    run(&e, NS_PER_S);
    assert_int_equal(e.w.converter.objects, 4);
    assert_int_equal(get(&bad), ST_CANCELED);
    drop(&bad);
    drop(&b);
    world_fini(&e);
}

static void watches_leave_at_any_time(void **state)
{
    (void)state;
    enum { WATCHES = 40, TURNS = 3000 };
    struct event_world e;
    struct watcher x[WATCHES];
    bool waits[WATCHES] = {false};
    struct random random;
    unsigned known = 0, failed = 0;
    random_init(&random, 5);
    world_init(&e);
    e.w.converter.way = CONVERTER_RENAMES_BAD;
    for (int turn = 0; turn < TURNS; turn++) {
        size_t i = random_below(&random, WATCHES);
        if (waits[i]) {
            enum status status = get(&x[i]);
            known += status == ST_OK;
            failed += status == ST_CANCELED;
            if (status == ST_AGAIN && !random_chance(&random, 1, 3))
                continue;
            drop(&x[i]);
            waits[i] = false;
        } else {
            x[i] = random_chance(&random, 1, 10)
                       ? watcher_of(&e, e.w.v2, "bad", turn)
                       : watcher_of_number(&e, (int)random_below(&random, 5), turn / 20);
            waits[i] = true;
            if (get(&x[i]) == ST_OK)
                known++;
        }
        if (random_chance(&random, 1, 2))
            sim_run_until(e.w.hooks.server.sim,
                          conversion_now(&e.w) + (int64_t)random_below(&random, NS_PER_MS));
    }
    assert_true(known > 100 && failed > 10);
    for (size_t i = 0; i < WATCHES; i++)
        if (waits[i])
            drop(&x[i]);
    run(&e, 100 * NS_PER_MS);
    assert_int_equal(e.w.hooks.under_way, 0);
    world_fini(&e);
}

/* -- Life -- */

static void everything_is_freed_while_it_is_under_way(void **state)
{
    (void)state;
    for (int turns = 0; turns < 40; turns++) {
        struct event_world e;
        world_init(&e);
        struct watcher a = watcher_of(&e, e.w.v2, "a", 9), b = watcher_of(&e, e.w.v3, "b", 9);
        assert_int_equal(get(&a), ST_AGAIN);
        assert_int_equal(get(&b), ST_AGAIN);
        for (int i = 0; i < turns; i++)
            sim_run_until(e.w.hooks.server.sim, conversion_now(&e.w) + NS_PER_MS / 10);
        drop(&a);
        drop(&b);
        world_fini(&e);
    }
}

/* -- Memory -- */

struct starved {
    struct deferred start;
    struct watcher a, b, c;
    bool a_waits, b_waits;
};

/* In a turn, whose allocations fail. */
static void on_starved_start(struct deferred *deferred)
{
    struct starved *s = CONTAINER_OF(deferred, struct starved, start);
    s->a_waits = get(&s->a) == ST_AGAIN;
    s->b_waits = get(&s->b) == ST_AGAIN;
    if (get(&s->c) == ST_AGAIN)
        drop(&s->c);
}

static void expect_end(struct watcher *x, bool waits)
{
    if (!waits) {
        assert_int_equal(x->status.reason, KUBE_TOO_MANY_REQUESTS);
        return;
    }
    assert_int_equal(x->wakes, 1);
    enum status status = get(x);
    assert_true(status == ST_OK || status == ST_CANCELED);
    if (status == ST_OK)
        assert_non_null(memmem(x->json.ptr, x->json.len, "example.com/v2", 14));
    drop(x);
}

static void convert_with_failing_memory(struct conversion_world *w)
{
    struct event_world *e = (struct event_world *)w;
    struct starved s = {.start = {.fn = on_starved_start}};
    s.a = watcher_of(e, w->v2, "a", 9);
    s.b = watcher_of(e, w->v2, "b", 9);
    s.c = watcher_of(e, w->v2, "c", 9);
    loop_defer(w->api.loop, &s.start);
    run(e, NS_PER_S);
    expect_end(&s.a, s.a_waits);
    expect_end(&s.b, s.b_waits);
    run(e, 10 * NS_PER_MS);
    assert_int_equal(w->hooks.under_way, 0);
    kube_event_conversions_free(TAKE(e->conversions));
    assert_int_equal(w->api.under_way, 0);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    struct event_world e;
    world_init(&e);
    struct watcher first = watcher_of(&e, e.w.v2, "first", 9);
    assert_int_equal(get(&first), ST_AGAIN);
    run(&e, NS_PER_S); /* so that there is a connection */
    drop(&first);
    assert_true(conversion_starve(&e.w, convert_with_failing_memory) > 20);
    world_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_is_converted_once_for_each_version),
        cmocka_unit_test(objects_of_a_turn_are_sent_together),
        cmocka_unit_test(converter_that_hangs_delays_only_its_own_objects),
        cmocka_unit_test(object_that_fails_fails_no_other),
        cmocka_unit_test(failed_call_fails_all_of_its_objects),
        cmocka_unit_test(what_cannot_be_sent_fails_alone),
        cmocka_unit_test(objects_are_kept_up_to_a_number_of_bytes),
        cmocka_unit_test(objects_are_kept_up_to_a_number),
        cmocka_unit_test(objects_under_way_are_limited),
        cmocka_unit_test(objects_under_way_of_all_definitions_are_limited),
        cmocka_unit_test(memory_of_a_definition_is_limited),
        cmocka_unit_test(call_is_given_up_with_its_last_watch),
        cmocka_unit_test(object_without_a_watch_is_not_sent),
        cmocka_unit_test(watches_leave_at_any_time),
        cmocka_unit_test(everything_is_freed_while_it_is_under_way),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
