/* The history of a mirrored collection: how its watch continues, and what happens if it cannot. */
#include "tier/mirror/world_sim_test.h"

static unsigned changed_calls;

static void on_changed(struct tier_change_listener *listener)
{
    (void)listener;
    changed_calls++;
}

static void on_changed_once(struct tier_change_listener *listener)
{
    changed_calls++;
    tier_reader_unlisten(listener);
}

/* -- The watch continues -- */

static void continues_after_the_last_version(void **state)
{
    static const enum api_end ends[] = {API_ENDS, API_BREAKS, API_FAILS};
    (void)state;
    tier_serve();
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        api_put(&api, 7);
        tier_run(2 * NS_PER_S);
        api_end_watches(&api, ends[i]);
        api_put(&api, 8);
        api_delete(&api, 8);
        api_put(&api, 9);
        TIER_RUN_UNTIL((int)tier_view().newest == api_version(&api));
        tier_check_state(api_history(&api));
    }
    assert_int_equal(tier_view().generation, 1);
    assert_int_equal(api.streams, 1);
    assert_int_equal(tier_check_watch(api_history(&api), 5), api_version(&api) - 5);
    tier_end();
}

static void bookmarks_advance_the_watch(void **state)
{
    (void)state;
    tier_serve();
    int64_t last = store_queue_revision(tier.mirror->follower.queue);
    for (int i = 0; i < 50; i++)
        api_other(&api);
    api_bookmark(&api);
    TIER_RUN_UNTIL(tier_view().newest == 55);
    assert_int_equal(tier_view().newest, 55);
    /* It costs the store nothing. */
    assert_int_equal(store_queue_revision(tier.mirror->follower.queue), last);
    tier_run(2 * NS_PER_S);
    api.forgotten = 55;
    api_end_watches(&api, API_ENDS);
    tier_run(5 * NS_PER_S);
    assert_non_null(strstr(api.last_watch, "resourceVersion=55"));
    assert_int_equal(tier_view().generation, 1);
    tier_end();
}

static void skips_what_a_server_repeats(void **state)
{
    (void)state;
    tier_serve();
    api_put(&api, 7);
    api_delete(&api, 1);
    api_put(&api, 1);
    TIER_RUN_UNTIL(tier_view().newest == 8);
    tier_run(2 * NS_PER_S);
    api.replays = 6;
    api_end_watches(&api, API_ENDS);
    tier_run(5 * NS_PER_S);
    api_put(&api, 2);
    TIER_RUN_UNTIL(tier_view().newest == 9);
    assert_int_equal(tier_view().generation, 1);
    assert_int_equal(tier_check_watch(api_history(&api), 5), 4);
    tier_end();
}

static void a_server_that_is_behind_delays_nothing_else(void **state)
{
    (void)state;
    tier_serve();
    api.lag = 2;
    api_put(&api, 7);
    api_put(&api, 8);
    api_put(&api, 9);
    tier_run(NS_PER_S);
    assert_int_equal(tier_view().newest, 6);
    tier_check_state(api_history(&api));
    api.lag = 0;
    api_send_changes(&api);
    TIER_RUN_UNTIL(tier_view().newest == 8);
    tier_check_state(api_history(&api));
    tier_end();
}

/* -- The history is limited -- */

static uint64_t history_bytes(void)
{
    return tier.mirror->follower.sweeper.usage.replaced - tier.mirror->compacted_replaced;
}

/* Each change replaces an object of about 1,300 bytes. */
static void history_has_a_limit_in_bytes(void **state)
{
    enum { MAX = 200000, CHANGES = 1500 };
    (void)state;
    tier_begin(NULL);
    api.pad_bytes = 1000;
    tier.options.history_ns = 3600 * NS_PER_S;
    tier.options.history_bytes_max = MAX;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    for (int i = 0; i < CHANGES; i++) {
        if (i % 3 == 2)
            api_delete(&api, i % 5);
        else
            api_put(&api, i % 5);
        tier_run(10 * NS_PER_MS);
        assert_in_range(history_bytes(), 0, MAX + MAX / 4);
        assert_in_range(tier.mirror->sample_count, 1, TIER_SAMPLES - 1);
    }
    tier_run(NS_PER_S);
    int version = api_version(&api);
    assert_int_equal(tier_view().newest, version);
    tier_check_state(api_history(&api));
    /* More than half of the limit is kept, and nothing from before. */
    int64_t revision;
    assert_in_range(history_bytes(), MAX / 2, MAX + MAX / 4);
    assert_int_equal(tier_check_watch(api_history(&api), (uint64_t)(version - 80)), 80);
    assert_in_range(tier_view().oldest, version - 250, version - 80);
    assert_false(tier_collection_revision(tier.collection, tier_view().generation, 5, &revision));
    assert_in_range(tier.collection->current.versions.count, 80, 250);
    tier_end();
}

/* Five objects of 30,000 bytes, which one revision deletes. */
static void a_state_that_is_deleted_becomes_history(void **state)
{
    enum { MAX = 100000 };
    (void)state;
    tier_begin(NULL);
    api.pad_bytes = 30000;
    tier.options.history_ns = 3600 * NS_PER_S;
    tier.options.history_bytes_max = MAX;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    assert_int_equal(history_bytes(), 0);
    for (int i = 0; i < 4; i++) {
        uint64_t generation = tier_view().generation;
        uint64_t replaced = tier.mirror->follower.sweeper.usage.replaced;
        api_end_watches(&api, API_BREAKS);
        api_put(&api, 7);
        api.forgotten = api_version(&api);
        TIER_RUN_UNTIL(tier_view().generation > generation);
        tier_run(5 * NS_PER_S);
        assert_in_range(tier.mirror->follower.sweeper.usage.replaced - replaced, 5 * 30000,
                        7 * 32000);
        tier_check_state(api_history(&api));
        assert_in_range(history_bytes(), 0, MAX);
    }
    tier_end();
}

/* -- The history is lost -- */

static void lose_history(bool as_event)
{
    api.forgotten = api_version(&api);
    api.forgets_as_event = as_event;
    api_end_watches(&api, as_event ? API_FORGETS : API_BREAKS);
}

static void reads_the_state_again_if_its_history_is_lost(void **state)
{
    struct tier_change_listener listener = {.changed = on_changed},
                                once = {.changed = on_changed_once};
    (void)state;
    for (int as_event = 0; as_event < 2; as_event++) {
        tier_serve();
        struct tier_view before = tier_view();
        int64_t revision;
        uint64_t version;
        changed_calls = 0;
        tier_reader_listen(tier.reader, &listener, tier.collection);
        tier_reader_listen(tier.reader, &once, tier.collection);
        api_end_watches(&api, API_BREAKS);
        api_put(&api, 7);
        api_put(&api, 8);
        lose_history(as_event);
        TIER_RUN_UNTIL(tier_view().phase != TIER_SERVING);
        /* Readers use the old state until the new one is complete. */
        assert_int_equal(tier_view().generation, before.generation);
        assert_int_equal(tier_view().newest, 5);
        assert_non_null(strstr(tier_view().reason, "Expired"));
        TIER_RUN_UNTIL(tier_serves());
        struct tier_view after = tier_view();
        assert_true(after.generation > before.generation);
        assert_int_equal(after.newest, 7);
        assert_int_equal(after.oldest, 7);
        assert_int_equal(after.void_after, after.void_until);
        tier_check_state(api_history(&api));
        tier_run(NS_PER_S);
        assert_int_equal(changed_calls, 2);
        tier_reader_unlisten(&listener);
        /* What was read of the old one before its end is still right, and nothing after it is. */
        assert_true(
            tier_collection_version(tier.collection, before.generation, after.began - 1, &version));
        assert_int_equal(version, 5);
        struct tier_state old = tier_read_view(&before, after.began - 1);
        assert_true(tier_is_state(&old, api_history(&api), 5));
        assert_false(
            tier_collection_version(tier.collection, before.generation, after.began, &version));
        assert_false(
            tier_collection_version(tier.collection, after.generation, after.began - 1, &version));
        assert_false(tier_collection_revision(tier.collection, before.generation, 5, &revision));
        /* Its keys are deleted. */
        old = tier_read_view(&before, 0);
        for (int name = 0; name < API_NAMES; name++)
            assert_int_equal(old.objects[name], 0);
        tier_end();
    }
}

static void lets_a_few_watches_from_before_its_first_state_pass(void **state)
{
    (void)state;
    for (int loses = 0; loses < 2; loses++) {
        tier_serve();
        struct tier_view first = tier_view();
        for (int i = 0; i < TIER_EARLY_WATCHES_MAX - loses; i++)
            assert_true(tier_collection_pass_early(tier.collection, first.generation));
        assert_int_equal(tier_collection_pass_early(tier.collection, first.generation + 1), false);
        if (loses) {
            api_end_watches(&api, API_BREAKS);
            api_put(&api, 7);
            api_put(&api, 8);
            lose_history(false);
            TIER_RUN_UNTIL(tier_view().generation > first.generation);
            uint64_t next = tier_view().generation;
            assert_int_equal(tier_collection_pass_early(tier.collection, next), false);
        }
        assert_int_equal(tier_collection_pass_early(tier.collection, first.generation), false);
        tier_end();
    }
}

/* It does not know its roles and custom resources yet. */
static void a_server_that_starts_takes_nothing_away(void **state)
{
    (void)state;
    for (int code = 403; code <= 404; code++) {
        for (unsigned loses = 0; loses < 2; loses++) {
            struct tier_change_listener listener = {.changed = on_changed};
            struct tier_test_wait wait;
            tier_serve();
            uint64_t first = tier_view().generation;
            changed_calls = 0;
            tier_reader_listen(tier.reader, &listener, tier.collection);
            api_end_watches(&api, API_BREAKS);
            api_put(&api, 7);
            api_put(&api, 8);
            if (loses) {
                lose_history(false);
                TIER_RUN_UNTIL(tier_view().phase != TIER_SERVING);
            }
            api.refuses = code;
            for (int i = 0; i < 25; i++) {
                tier_run(NS_PER_S);
                assert_int_not_equal(tier_view().phase, TIER_REFUSED);
                assert_int_equal(tier_view().generation, first);
            }
            assert_non_null(strstr(tier_view().reason, "refused by the test"));
            tier_wait_begin(&wait, TIER_WAIT_STATE, 0, NS_PER_S);
            TIER_RUN_UNTIL(wait.done);
            assert_int_equal(wait.status, ST_OK);
            assert_int_equal(changed_calls, 0);
            api.refuses = 0;
            TIER_RUN_UNTIL(tier_serves() && tier_is_complete());
            assert_true(tier_is_complete());
            tier_run(NS_PER_S);
            /* Watches end only because history was lost. */
            assert_int_equal(changed_calls, loses);
            assert_int_equal(tier_view().generation > first, loses);
            tier_reader_unlisten(&listener);
            tier_end();
        }
    }
}

static void a_resource_that_is_deleted_ends_after_half_a_minute(void **state)
{
    struct tier_change_listener listener = {.changed = on_changed};
    (void)state;
    tier_serve();
    changed_calls = 0;
    tier_reader_listen(tier.reader, &listener, tier.collection);
    for (int name = 0; name < 5; name++)
        api_delete(&api, name);
    api.refuses = 404;
    api_end_watches(&api, API_ENDS);
    int64_t begun_ns = kube_world_now(&world);
    tier_run(29 * NS_PER_S);
    /* Until then everything can be read, and its deletions are seen. */
    assert_int_equal(tier_check_watch(api_history(&api), 5), 5);
    assert_true(tier_is_complete());
    assert_int_equal(changed_calls, 0);
    TIER_RUN_UNTIL(tier_view().phase == TIER_REFUSED);
    assert_in_range(kube_world_now(&world) - begun_ns, 30 * NS_PER_S, 37 * NS_PER_S);
    assert_int_equal(tier_view().generation, 0);
    tier_run(NS_PER_S);
    assert_int_equal(changed_calls, 1);
    tier_reader_unlisten(&listener);
    /* The next reader finds the one that was made in its place. */
    api.refuses = 0;
    tier_collection_close(tier.collection);
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    tier_check_state(api_history(&api));
    tier_end();
}

static void lets_a_few_reads_of_a_late_state_pass(void **state)
{
    (void)state;
    tier_begin(NULL);
    tier_start();
    tier_open();
    int64_t now_ns = kube_world_now(&world);
    for (int n = 0; n < 100; n++) {
        bool passes = tier_collection_pass_late(tier.collection, now_ns);
        assert_int_equal(passes, n < TIER_LATE_READS_MAX);
    }
    unsigned passed = 0;
    for (int n = 0; n < 600; n++)
        passed += tier_collection_pass_late(tier.collection, now_ns += NS_PER_S);
    assert_int_equal(passed, 600 / 5);
    now_ns += 600 * NS_PER_S;
    for (int n = 0; n < 100; n++) {
        bool passes = tier_collection_pass_late(tier.collection, now_ns);
        assert_int_equal(passes, n < TIER_LATE_READS_MAX);
    }
    tier_end();
}

static void a_state_that_breaks_is_read_again(void **state)
{
    (void)state;
    tier_begin(NULL);
    api.pad_bytes = 100;
    api.breaks = 6;
    api.refuses_streams = 422;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    assert_int_equal(api.breaks, 0);
    tier_check_state(api_history(&api));
    /* Nothing remains of what was received in vain. */
    for (uint64_t number = 1; number < tier_view().generation; number++) {
        struct tier_view view = tier_view();
        lock_take(&tier.collection->lock);
        collection_prefix(tier.collection, number, view.prefix);
        lock_release(&tier.collection->lock);
        tier_run(NS_PER_S);
        struct tier_state rest = tier_read_view(&view, 0);
        for (int name = 0; name < API_NAMES; name++)
            assert_int_equal(rest.objects[name], 0);
    }
    tier_end();
}

static void never_goes_back_to_an_older_state(void **state)
{
    (void)state;
    tier_serve();
    for (int i = 0; i < 20; i++)
        api_put(&api, i % 5);
    TIER_RUN_UNTIL(tier_view().newest == 25);
    api.old_version = 20;
    api.states_behind = 2;
    lose_history(true);
    TIER_RUN_UNTIL(api.states_behind == 0);
    tier_run(100 * NS_PER_MS);
    assert_int_equal(tier_view().newest, 25);
    assert_int_equal(tier_view().generation, 1);
    TIER_RUN_UNTIL(tier_serves());
    assert_int_equal(tier_view().newest, 25);
    assert_int_equal(tier_view().void_after, tier_view().void_until);
    tier_end();
}

static void believes_an_older_state_that_does_not_pass(void **state)
{
    (void)state;
    tier_serve();
    for (int i = 0; i < 20; i++)
        api_put(&api, i % 5);
    TIER_RUN_UNTIL(tier_view().newest == 25);
    int64_t before_ns = kube_world_now(&world);
    api_restore(&api, 15);
    api_put(&api, 9);
    api.forgotten = 0;
    TIER_RUN_UNTIL(tier_view().generation > 1 && tier_serves());
    int64_t took_ns = kube_world_now(&world) - before_ns;
    assert_in_range(took_ns, 5 * NS_PER_S, 60 * NS_PER_S);
    assert_int_equal(tier_view().newest, 16);
    /* Clients may know versions of the history that is lost. */
    assert_int_equal(tier_view().void_after, 16);
    assert_int_equal(tier_view().void_until, 25);
    tier_check_state(api_history(&api));
    for (int i = 0; i < 20; i++)
        api_put(&api, i % 5);
    TIER_RUN_UNTIL(tier_view().newest == 36);
    assert_int_equal(tier_view().void_after, 16);
    assert_int_equal(tier_view().void_until, 25);
    assert_int_equal(tier_check_watch(api_history(&api), 16), 20);
    tier_end();
}

/* A restored server that has grown beyond what is known: only its objects show it. */
static void notices_another_history_after_an_outage(void **state)
{
    (void)state;
    tier_serve();
    for (int i = 0; i < 5; i++)
        api_put(&api, i);
    TIER_RUN_UNTIL(tier_view().newest == 10);
    kube_server_stop(&world.server);
    tier_run(2 * NS_PER_S);
    api_restore(&api, 5);
    for (int i = 0; i < 8; i++)
        api_put(&api, 6 + i % 3);
    kube_server_start(&world.server);
    TIER_RUN_UNTIL(tier_view().generation > 1 && tier_serves());
    assert_true(tier_view().generation > 1);
    tier_check_state(api_history(&api));
    tier_end();
}

/* -- Events that do not fit -- */

static void send_event(const char *type, int name, int version)
{
    char text[256];
    snprintf(text, sizeof(text),
             "{\"type\":\"%s\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
             "\"name\":\"%d\",\"namespace\":\"%s\",\"resourceVersion\":\"%d\"},\"pad\":\"0\"}}\n",
             type, name, name % 2 ? "odd" : "even", version);
    sim_reply_text(kube_server_reply(&world.server, "watch=true"), text);
    api_written(&api);
}

static void reads_the_state_again_if_an_event_does_not_fit(void **state)
{
    static const struct {
        const char *type;
        int name, version;
    } events[] = {
        {"ADDED", 1, 20},    /* it exists */
        {"MODIFIED", 9, 20}, /* it does not */
        {"DELETED", 9, 20},
        {"MODIFIED", 1, 8}, /* older than the last one, and newer than the beginning */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        tier_serve();
        for (int n = 0; n < 5; n++)
            api_put(&api, 0);
        TIER_RUN_UNTIL(tier_view().newest == 10);
        for (int n = 0; n < 20; n++)
            api_other(&api);
        send_event(events[i].type, events[i].name, events[i].version);
        TIER_RUN_UNTIL(tier_view().generation > 1 && tier_serves());
        assert_int_equal(tier_view().generation, 2);
        tier_check_state(api_history(&api));
        tier_end();
    }
}

static void gives_up_if_events_never_fit(void **state)
{
    (void)state;
    tier_serve();
    for (int i = 0; i < 4; i++) {
        uint64_t generation = tier_view().generation;
        assert_int_equal(tier_view().phase, TIER_SERVING);
        for (int n = 0; n < 20; n++)
            api_other(&api);
        send_event("ADDED", 1, api_version(&api));
        TIER_RUN_UNTIL(tier_view().phase == TIER_REFUSED ||
                       (tier_view().generation > generation && tier_serves()));
    }
    assert_int_equal(tier_view().phase, TIER_REFUSED);
    assert_int_equal(tier_view().generation, 0);
    tier_end();
}

static void survives_events_that_cannot_be_read(void **state)
{
    static const char *const events[] = {
        ("{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{}}}"
         "\n"),
        "{\"type\":\"ADDED\",\"object\":[]}\n",
        "{\"type\":\"STRANGE\",\"object\":{}}\n",
        "nothing\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        tier_serve();
        sim_reply_text(kube_server_reply(&world.server, "watch=true"), events[i]);
        api_written(&api);
        tier_run(NS_PER_S / 2);
        assert_false(tier_view().connected);
        assert_true(tier_view().reason[0]);
        assert_int_equal(tier_view().generation, 1);
        api_put(&api, 7);
        TIER_RUN_UNTIL(tier_view().newest == 6);
        assert_true(tier_view().connected);
        assert_int_equal(tier_view().generation, 1);
        tier_end();
    }
}

/* -- What is kept -- */

static void drops_what_is_older_than_the_history(void **state)
{
    int64_t revision;
    (void)state;
    tier_begin(NULL);
    tier.options.history_ns = 60 * NS_PER_S;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    for (int i = 0; i < 60; i++) {
        api_put(&api, i % 5);
        tier_run(2 * NS_PER_S);
    }
    struct tier_view view = tier_view();
    /* 120 seconds have passed, and 60 to 70 of them are kept. */
    assert_in_range(view.oldest, 65 - 37, 65 - 30);
    assert_false(
        tier_collection_revision(tier.collection, view.generation, view.oldest - 1, &revision));
    assert_int_equal(tier_check_watch(api_history(&api), view.oldest), 65 - (int)view.oldest);
    assert_true(local_mirror_compact_revision(tier.f->engine) > 20);
    /* A quiet collection keeps its last version, and a watch can begin there. */
    int64_t last;
    for (int i = 0; i < 5; i++) /* others have changes */
        assert_int_equal(store_queue_reach(tier.mirror->follower.queue, &last), ST_OK);
    tier_run(600 * NS_PER_S);
    assert_int_equal(local_mirror_compact_revision(tier.f->engine), last);
    assert_int_equal(tier_view().oldest, 65);
    assert_int_equal(tier_check_watch(api_history(&api), 65), 0);
    tier_check_state(api_history(&api));
    /* And what waits end with can be read. */
    for (int kind = TIER_WAIT_STATE; kind <= TIER_WAIT_CURRENT; kind++) {
        struct tier_test_wait wait;
        tier_wait_begin(&wait, (enum tier_wait_kind)kind, 65, 10 * NS_PER_S);
        TIER_RUN_UNTIL(wait.done);
        assert_int_equal(wait.status, ST_OK);
        view = tier_view();
        struct tier_state at_wait = tier_read_view(&view, wait.wait.revision);
        assert_int_equal(at_wait.status, ST_OK);
        assert_true(tier_is_state(&at_wait, api_history(&api), 65));
    }
    api_put(&api, 3);
    TIER_RUN_UNTIL(tier_view().newest == 66);
    assert_int_equal(tier_check_watch(api_history(&api), 65), 1);
    tier_end();
}

/* -- The store -- */

static void waits_for_a_disk_that_is_full(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    store_sim.refuses = ST_DISK_FULL;
    for (int i = 0; i < 30; i++)
        api_put(&api, i % 5);
    tier_run(5 * NS_PER_S);
    assert_int_equal(tier_view().newest, 5);
    assert_false(tier_view().connected);
    assert_non_null(strstr(tier_view().reason, "no space left"));
    assert_int_equal(tier_view().phase, TIER_SERVING);
    tier_check_state(api_history(&api));
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_UNAVAILABLE);
    store_sim.refuses = ST_OK;
    TIER_RUN_UNTIL(tier_view().newest == 35);
    tier_run(NS_PER_S);
    assert_true(tier_view().connected);
    assert_string_equal(tier_view().reason, "");
    assert_int_equal(tier_check_watch(api_history(&api), 5), 30);
    tier_end();
}

/* A batch of which only the beginning was applied continues behind that. */
static void continues_within_a_batch(void **state)
{
    (void)state;
    tier_serve();
    store_sim.holds = true;
    api_put(&api, 7);
    tier_run(NS_PER_S);
    for (int i = 0; i < 30; i++)
        api_put(&api, i % 5);
    tier_run(NS_PER_S);
    /* Those in flight are applied. What follows is one batch, which has grown meanwhile. */
    store_sim_release();
    store_settle();
    uint64_t newest = tier_view().newest;
    assert_in_range(newest, 6, 20);
    store_sim.refuses = ST_DISK_FULL;
    store_sim.refuses_after = 3;
    tier_run(NS_PER_S / 2);
    assert_int_equal(tier_view().newest, newest + 3);
    tier_check_state(api_history(&api));
    tier_run(NS_PER_S);
    assert_int_equal(tier_view().newest, newest + 6);
    store_sim.refuses = ST_OK;
    TIER_RUN_UNTIL(tier_view().newest == 36);
    assert_int_equal(tier_check_watch(api_history(&api), 5), 31);
    tier_end();
}

/* What was received and is not applied does not exist for readers. */
static void readers_see_what_is_applied(void **state)
{
    struct tier_test_wait current, version;
    (void)state;
    tier_serve();
    store_sim.holds = true;
    api_put(&api, 7);
    tier_wait_begin(&current, TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
    tier_wait_begin(&version, TIER_WAIT_VERSION, 6, 60 * NS_PER_S);
    tier_run(5 * NS_PER_S);
    assert_int_equal(tier_follow()->reflector.version, 6);
    assert_int_equal(tier_view().newest, 5);
    assert_false(current.done || version.done);
    store_sim_release();
    TIER_RUN_UNTIL(current.done && version.done);
    assert_int_equal(current.status, ST_OK);
    assert_int_equal(version.status, ST_OK);
    assert_int_equal(tier_view().newest, 6);
    tier_check_current(&current);
    /* The same at the beginning. */
    store_sim.holds = true;
    api.forgotten = 6;
    api_end_watches(&api, API_FORGETS);
    TIER_RUN_UNTIL(tier_follow()->generations.next.number);
    api_put(&api, 8);
    tier_run(5 * NS_PER_S);
    assert_int_equal(tier_view().generation, 1);
    assert_int_equal(tier_view().phase, TIER_LOADING);
    store_sim_release();
    TIER_RUN_UNTIL(tier_serves());
    assert_int_equal(tier_view().generation, 2);
    tier_run(NS_PER_S);
    assert_int_equal(tier_check_watch(api_history(&api), 6), 1);
    tier_end();
}

/* One of the batches in flight returns; the others are applied after so many looks at the store. */
static void land_after(unsigned looks)
{
    assert_in_range(store_sim.held_count, 2, STORE_QUEUE_BATCHES_MAX);
    store_sim_release_first();
    store_settle();
    store_sim.lands_after = looks;
    tier_run(5 * NS_PER_S);
    assert_int_equal(store_sim.lands_after, 0);
    assert_int_equal(store_sim.held_count, 0);
}

static void what_the_store_applies_between_two_looks_is_not_overlooked(void **state)
{
    (void)state;
    for (unsigned looks = 1; looks <= 2; looks++) {
        struct tier_test_wait current;
        tier_serve();
        store_sim.holds = true;
        api_put(&api, 7);
        tier_run(NS_PER_S);
        api_put(&api, 8);
        tier_wait_begin(&current, TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
        tier_run(NS_PER_S);
        assert_false(current.done);
        land_after(looks);
        assert_true(current.done);
        assert_int_equal(current.status, ST_OK);
        tier_check_current(&current);
        /* The same with a state. */
        store_sim.holds = true;
        api_put(&api, 9);
        tier_run(NS_PER_S);
        api.forgotten = api_version(&api);
        api_end_watches(&api, API_FORGETS);
        TIER_RUN_UNTIL(tier_follow()->generations.next.number);
        tier_run(NS_PER_S);
        assert_int_equal(tier_view().generation, 1);
        land_after(looks);
        assert_true(tier_serves());
        assert_int_equal(tier_view().generation, 2);
        tier_check_state(api_history(&api));
        tier_end();
    }
}

static void a_fence_under_way_fails_when_the_disk_is_full(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_serve();
    api.lag = 1;
    api_put(&api, 7);
    tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
    tier_run(NS_PER_S);
    assert_false(wait.done);
    store_sim.refuses = ST_DISK_FULL;
    api.lag = 0;
    api_send_changes(&api);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_UNAVAILABLE);
    tier_end();
}

static void reads_no_more_than_the_store_takes(void **state)
{
    enum { OBJECT_BYTES = 1 << 20 };
    (void)state;
    tier_begin(NULL);
    api.pad_bytes = OBJECT_BYTES;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    store_sim.holds = true;
    for (int i = 0; i < 40; i++)
        api_put(&api, i % 5);
    tier_run(60 * NS_PER_S);
    size_t bytes = store_queue_bytes(tier.mirror->follower.queue);
    /* The limit, one object more, and none of the watch's own window. */
    assert_in_range(bytes, STORE_QUEUE_BYTES_MAX, STORE_QUEUE_BYTES_MAX + 2 * OBJECT_BYTES);
    store_sim_release();
    TIER_RUN_UNTIL(tier_view().newest == 45);
    assert_int_equal(tier_check_watch(api_history(&api), 5), 40);
    assert_int_equal(api.watch_requests, 0);
    tier_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(continues_after_the_last_version),
        cmocka_unit_test(bookmarks_advance_the_watch),
        cmocka_unit_test(skips_what_a_server_repeats),
        cmocka_unit_test(a_server_that_is_behind_delays_nothing_else),
        cmocka_unit_test(history_has_a_limit_in_bytes),
        cmocka_unit_test(a_state_that_is_deleted_becomes_history),
        cmocka_unit_test(reads_the_state_again_if_its_history_is_lost),
        cmocka_unit_test(lets_a_few_watches_from_before_its_first_state_pass),
        cmocka_unit_test(a_server_that_starts_takes_nothing_away),
        cmocka_unit_test(a_resource_that_is_deleted_ends_after_half_a_minute),
        cmocka_unit_test(lets_a_few_reads_of_a_late_state_pass),
        cmocka_unit_test(a_state_that_breaks_is_read_again),
        cmocka_unit_test(never_goes_back_to_an_older_state),
        cmocka_unit_test(believes_an_older_state_that_does_not_pass),
        cmocka_unit_test(notices_another_history_after_an_outage),
        cmocka_unit_test(reads_the_state_again_if_an_event_does_not_fit),
        cmocka_unit_test(gives_up_if_events_never_fit),
        cmocka_unit_test(survives_events_that_cannot_be_read),
        cmocka_unit_test(drops_what_is_older_than_the_history),
        cmocka_unit_test(waits_for_a_disk_that_is_full),
        cmocka_unit_test(continues_within_a_batch),
        cmocka_unit_test(readers_see_what_is_applied),
        cmocka_unit_test(what_the_store_applies_between_two_looks_is_not_overlooked),
        cmocka_unit_test(a_fence_under_way_fails_when_the_disk_is_full),
        cmocka_unit_test(reads_no_more_than_the_store_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
