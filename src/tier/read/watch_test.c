/* Watches that begin with the state, whose client does not read: nothing is pinned for them, and
 * they continue where they were. All users may read here. */
#include "engine/local/shard/shard.h"
#include "tier/read/events.h"
#include "tier/read/request.h"
#include "tier/read/tags.h"
#include "wire/http/exchange_private.h"
/* This comes last, because it has an `api`, a name that the others use for something else. */
#include "tier/mirror/world_sim_test.h"

#define PATH "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
#define ANY PATH "&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=100000"

enum { OBJECTS = 5 }; /* tier_begin makes them, with the versions 1 to 5 */

static struct {
    struct tier_settings settings;
    struct tier_api api;
    struct tier_tags tags;
} bed;

/* -- Rights -- */

static struct tier_user somebody = {.refs = 1 << 20};

void __wrap_tier_identify(struct tier_rights *rights, struct tier_question *question,
                          const struct http_request *request);
void __wrap_tier_identify(struct tier_rights *rights, struct tier_question *question,
                          const struct http_request *request)
{
    const struct kube_status none = {0};
    (void)rights, (void)request;
    question->done(question, tier_user_ref(&somebody), &none);
}

void __wrap_tier_may(struct tier_rights *rights, struct tier_right_wait *wait,
                     struct tier_user *user, const struct tier_access *access);
void __wrap_tier_may(struct tier_rights *rights, struct tier_right_wait *wait,
                     struct tier_user *user, const struct tier_access *access)
{
    const struct kube_status none = {0};
    (void)rights, (void)user, (void)access;
    wait->done(wait, TIER_ALLOWED, &none);
}

enum status __wrap_tier_standing_add(struct tier_rights *rights, struct tier_standing *standing,
                                     struct tier_user *user, const struct tier_access *access);
enum status __wrap_tier_standing_add(struct tier_rights *rights, struct tier_standing *standing,
                                     struct tier_user *user, const struct tier_access *access)
{
    (void)rights, (void)standing, (void)user, (void)access;
    return ST_OK;
}

/* -- A client without a connection -- */

struct peer {
    struct http_exchange x; /* first */
    struct http_opening opening;
    struct http_routes *routes;
    struct buf answer;
    bool aborted;
    size_t read; /* bytes of the answer that were examined */
};

static enum status on_begin(struct http_exchange *x, unsigned status, struct slice content_type,
                            const size_t *length)
{
    (void)x, (void)content_type, (void)length;
    assert_int_equal(status, 200);
    return ST_OK;
}

static enum status on_write(struct http_exchange *x, struct slice bytes)
{
    return buf_append(&((struct peer *)x)->answer, bytes);
}

static void on_abort(struct http_exchange *x)
{
    ((struct peer *)x)->aborted = true;
}

static void ignore(struct http_exchange *x)
{
    (void)x;
}

static int64_t on_now(const struct http_exchange *x)
{
    (void)x;
    return loop_now_ns(tier.io);
}

static void on_request(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct arena arena;
    struct tier_ask ask;
    (void)service;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_true(tier_ask_read(&arena, request, &ask));
    tier_request_start(&bed.api, x, &arena, &ask);
}

static void on_end(struct http_exchange *x, void *service)
{
    struct kube_life *life = http_exchange_user(x);
    (void)service;
    life->end(life);
}

static struct peer *watch_begin(void)
{
    static const struct http_exchange_ops ops = {.begin = on_begin,
                                                 .write = on_write,
                                                 .end = ignore,
                                                 .abort = on_abort,
                                                 .wake = ignore,
                                                 .now = on_now};
    static const struct http_route route = {
        .path = "/", .on_request = on_request, .on_end = on_end};
    struct peer *peer = calloc(1, sizeof(*peer));
    assert_int_equal(http_routes_new(&peer->routes), ST_OK);
    assert_int_equal(http_routes_add(peer->routes, &route, 1, NULL), ST_OK);
    peer->x.ops = &ops;
    peer->x.opening = &peer->opening;
    peer->opening.request = (struct http_request){.method = SLICE_LITERAL("GET"),
                                                  .target = SLICE_LITERAL(ANY),
                                                  .host = SLICE_LITERAL("127.0.0.1")};
    http_split_target(peer->opening.request.target, &peer->opening.request);
    http_routes_dispatch(peer->routes, &peer->x);
    return peer;
}

/* The client reads at most this many bytes. */
static void pull(struct peer *peer, size_t max)
{
    uint8_t bytes[512];
    turn_shard(tier.f->shard, tier.f->loop, 0);
    engine_shard_turn_begin(tier.f->shard);
    while (max && http_exchange_flows(&peer->x)) {
        size_t n = http_exchange_fill(&peer->x, bytes, size_min(max, sizeof(bytes)));
        assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
        max -= n;
    }
    engine_shard_turn_end(tier.f->shard);
    engine_shard_flushed(tier.f->shard);
}

/* It reads everything that comes. */
static void pull_all(struct peer *peer)
{
    for (int i = 0; i < 20; i++) {
        pull(peer, SIZE_MAX);
        tier_run(100 * NS_PER_MS);
    }
}

static void watch_end(struct peer *peer)
{
    http_exchange_end(&peer->x);
    http_exchange_fini(&peer->x);
    http_routes_free(peer->routes);
    buf_fini(&peer->answer);
    free(peer);
}

/* -- What it has got -- */

struct told {
    char type[12];
    int name, version, code;
};

static int number_after(const char *text, const char *what)
{
    const char *at = strstr(text, what);
    return at ? (int)strtol(at + strlen(what), NULL, 10) : -1;
}

/* False: there is no further complete event. */
static bool told_next(struct peer *peer, struct told *ret_told)
{
    uint8_t *start = peer->answer.ptr + peer->read;
    uint8_t *end =
        peer->answer.len > peer->read ? memchr(start, '\n', peer->answer.len - peer->read) : NULL;
    if (!end)
        return false;
    *end = 0;
    peer->read += (size_t)(end + 1 - start);
    const char *text = (const char *)start;
    assert_int_equal(strncmp(text, "{\"type\":\"", 9), 0);
    assert_string_equal((const char *)end - 2, "}}");
    snprintf(ret_told->type, sizeof(ret_told->type), "%.*s", (int)strcspn(text + 9, "\""),
             text + 9);
    ret_told->name = number_after(text, "\"name\":\"");
    ret_told->version = number_after(text, "\"resourceVersion\":\"");
    ret_told->code = number_after(text, "\"code\":");
    return true;
}

static void expect(struct peer *peer, const char *type, int name, int version)
{
    struct told told;
    assert_true(told_next(peer, &told));
    assert_string_equal(told.type, type);
    assert_int_equal(told.name, name);
    assert_int_equal(told.version, version);
}

/* The state of the beginning, and then every change once. */
static void expect_everything(struct peer *peer)
{
    const struct api_history *h = api_history(&api);
    static const int in_order_of_keys[OBJECTS] = {0, 2, 4, 1, 3};
    for (int i = 0; i < OBJECTS; i++)
        expect(peer, "ADDED", in_order_of_keys[i], in_order_of_keys[i] + 1);
    expect(peer, "BOOKMARK", -1, OBJECTS);
    for (int v = OBJECTS + 1; v <= h->version; v++) {
        const struct api_change *change = &h->changes[v];
        expect(peer,
               change->deletes   ? "DELETED"
               : change->creates ? "ADDED"
                                 : "MODIFIED",
               change->name, v);
    }
}

/* Bookmarks come about once a minute; there may be any number of them. */
static void expect_no_more(struct peer *peer)
{
    struct told told;
    while (told_next(peer, &told))
        assert_string_equal(told.type, "BOOKMARK");
    assert_false(peer->aborted);
}

/* -- The world -- */

static void bed_begin(int pad_bytes, int64_t history_ns)
{
    tier_begin(NULL);
    api.pad_bytes = pad_bytes;
    tier.options.history_ns = history_ns;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    bed.settings = (struct tier_settings){.mirror = tier.mirror};
    bed.api = (struct tier_api){.settings = &bed.settings,
                                .shard = tier.f->shard,
                                .loop = tier.io,
                                .reader = tier.reader,
                                .events = tier_event_cache_new(),
                                .tags = &bed.tags};
    random_init(&bed.api.random, 1);
    kube_search_init(&bed.api.search_budget, tier.io);
    kube_selections_init(&bed.api.selections, 1);
    tier_tags_init(&bed.tags, engine_watch_hub(tier.f->shard));
}

static void bed_end(void)
{
    tier_run(NS_PER_S);
    assert_int_equal(bed.api.under_way, 0);
    kube_search_stop(&bed.api.search_budget);
    tier_tags_fini(&bed.tags);
    kube_selections_fini(&bed.api.selections);
    tier_event_cache_free(bed.api.events);
    tier_end();
}

/* How many states of the store are kept for readers. */
static uint64_t pinned_states(void)
{
    struct local_shared *shared = CONTAINER_OF(tier.f->engine, struct local_shared, engine);
    struct local_shard *shard = CONTAINER_OF(tier.f->shard, struct local_shard, base.shard);
    uint64_t newest = epoch_pin(shard->slot);
    uint64_t oldest = epoch_oldest(store_epoch(shared->store));
    epoch_unpin(shard->slot, newest);
    return newest - oldest;
}

static void change_some(int count)
{
    for (int i = 0; i < count; i++) {
        if (i % 7 == 3)
            api_delete(&api, i % API_NAMES);
        else
            api_put(&api, i % API_NAMES);
        tier_run(100 * NS_PER_MS);
    }
    TIER_RUN_UNTIL((int)tier_view().newest == api_version(&api));
}

/* The client has read this many bytes, and then nothing for this time. */
static struct peer *stopped_at(size_t bytes, int64_t ns)
{
    struct peer *peer = watch_begin();
    pull(peer, bytes);
    assert_int_equal(peer->answer.len, bytes);
    change_some(20);
    assert_in_range(pinned_states(), 15, 1000);
    tier_run(ns);
    assert_false(peer->aborted);
    change_some(20);
    assert_in_range(pinned_states(), 0, 4);
    return peer;
}

/* -- Tests -- */

static void a_client_that_stops_in_its_initial_events_sees_everything(void **state)
{
    /* Within an event, between two, and before the first; short objects, and long ones. */
    static const int pads[] = {3000, 200000};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pads); i++) {
        bed_begin(pads[i], 0);
        struct peer *first = watch_begin();
        pull(first, SIZE_MAX);
        struct slice event = buf_slice(&first->answer);
        size_t length = (size_t)((uint8_t *)memchr(event.ptr, '\n', event.len) + 1 - event.ptr);
        watch_end(first);
        size_t places[] = {0,
                           1,
                           length - 1,
                           length,
                           length + 1,
                           2 * length + 1500,
                           5 * length - 3 /* within the last one */};
        for (size_t k = 0; k < COUNT_OF(places); k++) {
            bed_end();
            bed_begin(pads[i], 0);
            struct peer *peer = stopped_at(places[k], 140 * NS_PER_S);
            pull_all(peer);
            expect_everything(peer);
            expect_no_more(peer);
            watch_end(peer);
        }
        bed_end();
    }
}

static void it_may_stop_again_and_again(void **state)
{
    (void)state;
    bed_begin(200000, 3600 * NS_PER_S);
    struct peer *peer = stopped_at(1000, 140 * NS_PER_S);
    pull(peer, 90000); /* the range is opened again, and the client does not read from it */
    tier_run(140 * NS_PER_S);
    for (int i = 0; i < 12; i++) {
        pull(peer, 90000);
        tier_run(NS_PER_S);
        pull(peer, 90000);
        tier_run(140 * NS_PER_S);
        assert_in_range(pinned_states(), 0, 4);
        change_some(1);
    }
    pull_all(peer);
    expect_everything(peer);
    expect_no_more(peer);
    watch_end(peer);
    bed_end();
}

static void it_continues_after_any_time_without_changes(void **state)
{
    (void)state;
    bed_begin(3000, 0);
    struct peer *peer = watch_begin();
    pull(peer, 5000);
    tier_run(1000 * NS_PER_S);
    pull_all(peer);
    change_some(5);
    pull_all(peer);
    struct told told;
    size_t added = 0;
    while (told_next(peer, &told))
        added += strcmp(told.type, "BOOKMARK") != 0;
    assert_int_equal(added, OBJECTS + 5);
    assert_false(peer->aborted);
    watch_end(peer);
    bed_end();
}

/* Short objects were completed, so that a last event can say why it ends. */
static void a_history_that_is_gone_ends_it_with_410(void **state)
{
    struct told told;
    (void)state;
    bed_begin(3000, 100 * NS_PER_S);
    struct peer *peer = stopped_at(5000, 300 * NS_PER_S);
    tier_run(300 * NS_PER_S);
    pull_all(peer);
    expect(peer, "ADDED", 0, 1);
    expect(peer, "ADDED", 2, 3);
    assert_true(told_next(peer, &told));
    assert_string_equal(told.type, "ERROR");
    assert_int_equal(told.code, 410);
    assert_false(told_next(peer, &told));
    assert_true(http_exchange_complete(&peer->x));
    watch_end(peer);
    bed_end();
}

/* Nothing else can follow the first part of an object. */
static void a_history_that_is_gone_cuts_a_long_object_off(void **state)
{
    (void)state;
    bed_begin(200000, 100 * NS_PER_S);
    struct peer *peer = stopped_at(5000, 300 * NS_PER_S);
    tier_run(300 * NS_PER_S);
    pull_all(peer);
    assert_int_equal(peer->answer.len, 5000);
    assert_true(peer->aborted);
    watch_end(peer);
    bed_end();
}

static void it_may_leave_at_any_time(void **state)
{
    (void)state;
    for (int wakes = 0; wakes < 2; wakes++) {
        bed_begin(3000, 0);
        struct peer *peer = stopped_at(5000, 140 * NS_PER_S);
        if (wakes)
            pull(peer, 10000); /* only the rest of the object is there */
        watch_end(peer);
        bed_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_stops_in_its_initial_events_sees_everything),
        cmocka_unit_test(it_may_stop_again_and_again),
        cmocka_unit_test(it_continues_after_any_time_without_changes),
        cmocka_unit_test(a_history_that_is_gone_ends_it_with_410),
        cmocka_unit_test(a_history_that_is_gone_cuts_a_long_object_off),
        cmocka_unit_test(it_may_leave_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
