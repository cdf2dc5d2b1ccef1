#include "kube/handlers/read/event_cache.h"

#include "base/random.h"
#include "kube/types/storage.h"
#include "watch/history_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { CURSORS = 9, PODS = 5, TURNS = 400, TEXT_BYTES = 256 };

static const char *const selectors[] = {"", "app=a", "app!=a"};

struct fixture {
    struct memory_history memory;
    struct watch_hub *hub;
    struct random random;
    struct kube_selections selections;
    struct kube_event_cache *cache;
    struct kube_selection *selection[CURSORS];
    struct watch_cursor *cursors[CURSORS];
    _Atomic uint64_t watchers;
    int64_t now_ns;
    bool there[PODS];
    unsigned shared; /* bytes made for another watch */
};

static void wake(void *ctx)
{
    (void)ctx;
}

static void open_watch(struct fixture *f, unsigned i)
{
    struct error error;
    static const struct kube_kind none = {.kind = "Pod"};
    kube_selection_unref(f->selection[i]);
    watch_cursor_free(f->cursors[i]);
    assert_int_equal(kube_selection_get(&f->selections, slice_from_text(selectors[i % 3]),
                                        SLICE_EMPTY, &none, &f->selection[i], &error),
                     ST_OK);
    f->cursors[i] = watch_cursor_new(f->hub, &(struct watch_cursor_options){
                                                 .key = SLICE_LITERAL("/p/"),
                                                 .range_end = SLICE_LITERAL("/p0"),
                                                 .wake = wake,
                                             });
    assert_non_null(f->cursors[i]);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    memory_init(&f->memory);
    random_init(&f->random, 7);
    f->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &f->memory.history,
        .fragment_bytes = 1 << 20,
        .watchers_max = 100,
        .watchers_all = &f->watchers,
        .watchers_all_max = 100,
        .progress_interval_ns = 1000,
        .seed = 1,
    });
    f->cache = kube_event_cache_new();
    kube_selections_init(&f->selections, 3);
    for (unsigned i = 0; i < CURSORS; i++)
        open_watch(f, i);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < CURSORS; i++) {
        watch_cursor_free(f->cursors[i]);
        kube_selection_unref(f->selection[i]);
    }
    while (watch_hub_turn_begin(f->hub, ++f->now_ns))
        watch_hub_turn_end(f->hub);
    watch_hub_free(f->hub);
    kube_selections_fini(&f->selections);
    kube_event_cache_free(f->cache);
    memory_fini(&f->memory);
    free(f);
    return 0;
}

static void change_something(struct fixture *f)
{
    char key[TEXT_BYTES], value[TEXT_BYTES];
    unsigned pod = (unsigned)random_below(&f->random, PODS);
    snprintf(key, sizeof(key), "/p/%u", pod);
    snprintf(value, sizeof(value),
             "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\",\"labels\":{"
             "\"app\":\"%c\"}},\"n\":%u}",
             random_chance(&f->random, 1, 2) ? 'a' : 'b', (unsigned)random_below(&f->random, 1000));
    if (random_chance(&f->random, 1, 40))
        snprintf(value, sizeof(value), "no object");
    f->there[pod] = !f->there[pod] || random_chance(&f->random, 3, 4);
    if (f->there[pod])
        memory_put(&f->memory, key, value);
    else
        memory_delete(&f->memory, key);
}

/* 1: it matches, 0: it does not match or does not exist, -1: not an object. */
static int judge(const struct kube_selection *selection, struct slice field)
{
    struct kube_object object;
    if (!field.len)
        return 0;
    if (kube_object_parse(kube_kv_of(field).value, &object) != ST_OK)
        return -1;
    return kube_selection_matches(selection, &object);
}

/* Computed without the cache, from the objects before and after. */
static enum kube_event_type expect(const struct kube_selection *selection,
                                   struct watch_cursor *cursor, const struct watch_event *event)
{
    struct slice prev = event->created ? SLICE_EMPTY : watch_cursor_prev(cursor, event);
    bool needs_prev = event->tombstone || selection->selects;
    int after = event->tombstone ? 0 : judge(selection, event->field);
    int before = event->created ? 0 : needs_prev ? judge(selection, prev) : 1;
    if (after < 0 || before < 0)
        return KUBE_EVENT_UNDECODABLE;
    if (!after)
        return before ? KUBE_EVENT_DELETED : KUBE_EVENT_NONE;
    return before ? KUBE_EVENT_MODIFIED : KUBE_EVENT_ADDED;
}

static void check_bytes(struct fixture *f, unsigned i, struct kube_cached_event *cached,
                        const struct watch_event *event, int64_t revision,
                        enum kube_event_type change)
{
    struct kube_object object;
    struct slice wire, head = kube_event_head(change);
    uint8_t bytes[2 * TEXT_BYTES];
    assert_true(kube_cached_event_object(cached, f->cursors[i], event, f->selection[i], KUBE_WHOLE,
                                         change, &object));
    struct slice field =
        change == KUBE_EVENT_DELETED ? watch_cursor_prev(f->cursors[i], event) : event->field;
    assert_true(slice_equal(object.json, kube_kv_of(field).value));
    if (!kube_event_cache_wire(f->cache, cached, change, &wire))
        return;
    size_t size = kube_object_copy(&object, revision, false, 0, bytes, sizeof(bytes));
    f->shared++;
    assert_int_equal(wire.len, head.len + size + kube_event_tail().len);
    assert_memory_equal(wire.ptr, head.ptr, head.len);
    assert_memory_equal(wire.ptr + head.len, bytes, size);
}

static void take_all(struct fixture *f, unsigned i)
{
    const struct watch_event *event;
    int64_t revision;
    while (watch_cursor_next(f->cursors[i], &event, &revision) == ST_OK) {
        struct kube_cached_event *cached =
            kube_event_cache_find(f->cache, f->cursors[i], event, revision);
        enum kube_event_type change =
            kube_event_cache_type(cached, f->cursors[i], event, f->selection[i], KUBE_WHOLE);
        assert_int_equal(change, expect(f->selection[i], f->cursors[i], event));
        if (change != KUBE_EVENT_NONE && change != KUBE_EVENT_UNDECODABLE)
            check_bytes(f, i, cached, event, revision, change);
        watch_cursor_take(f->cursors[i]);
    }
}

static void shared_results_equal_separate_ones(void **state)
{
    struct fixture *f = *state;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (uint64_t n = random_below(&f->random, 4); n > 0; n--)
            change_something(f);
        memory_publish(&f->memory);
        (void)!watch_hub_turn_begin(f->hub, ++f->now_ns);
        for (unsigned i = 0; i < CURSORS; i++) {
            take_all(f, i);
            if (random_chance(&f->random, 1, 50))
                open_watch(f, i);
        }
        watch_hub_turn_end(f->hub);
        memory_turn_end(&f->memory);
    }
    assert_true(f->shared > TURNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shared_results_equal_separate_ones, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
