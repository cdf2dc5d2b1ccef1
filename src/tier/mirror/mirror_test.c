/* A mirror of a collection of a simulated kube-apiserver: its start, its life and its end. */
#include "base/metric/page.h"
#include "tier/mirror/world_sim_test.h"

static void reads_the_state_and_follows_changes(void **state)
{
    (void)state;
    tier_serve();
    struct tier_view view = tier_view();
    assert_string_equal(view.kind, "Pod");
    assert_string_equal(view.list_kind, "PodList");
    assert_string_equal(view.api_version, "v1");
    assert_int_equal(view.newest, 5);
    assert_int_equal(view.oldest, 5);
    assert_int_equal(api.probes, 1);
    assert_int_equal(api.streams, 1);
    assert_false(view.has_kinds);
    tier_check_state(api_history(&api));
    api_put(&api, 7);
    api_delete(&api, 2);
    api_put(&api, 1);
    TIER_RUN_UNTIL(tier_view().newest == 8);
    assert_int_equal(tier_view().newest, 8);
    tier_check_state(api_history(&api));
    assert_true(tier_is_complete());
    assert_int_equal(tier_check_watch(api_history(&api), 5), 3);
    assert_int_equal(tier_check_watch(api_history(&api), 7), 1);
    assert_int_equal(tier_check_watch(api_history(&api), 8), 0);
    assert_true(tier_view().connected);
    tier_end();
}

static void waits_for_a_state(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_begin(NULL);
    tier_start();
    tier_open();
    tier_wait_begin(&wait, TIER_WAIT_STATE, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    assert_int_equal(wait.wait.revision, tier_view().began);
    tier_end();
}

/* -- What cannot be mirrored -- */

static void assert_refused(const char *reason)
{
    struct tier_test_wait waits[3];
    TIER_RUN_UNTIL(tier_view().phase == TIER_REFUSED);
    assert_int_equal(tier_view().phase, TIER_REFUSED);
    assert_non_null(strstr(tier_view().reason, reason));
    assert_int_equal(tier_view().generation, 0);
    assert_false(tier_view().connected);
    tier_wait_begin(&waits[0], TIER_WAIT_STATE, 0, 60 * NS_PER_S);
    tier_wait_begin(&waits[1], TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
    tier_wait_begin(&waits[2], TIER_WAIT_VERSION, 1, 60 * NS_PER_S);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        TIER_RUN_UNTIL(waits[i].done);
        assert_int_equal(waits[i].status, ST_UNAVAILABLE);
    }
}

static void refuses_what_the_server_refuses(void **state)
{
    static const int codes[] = {403, 404, 405, 406, 415};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        tier_begin(NULL);
        api.refuses = codes[i];
        tier_start();
        tier_open();
        struct tier_test_wait waits[2];
        tier_wait_begin(&waits[0], TIER_WAIT_STATE, 0, 60 * NS_PER_S);
        tier_wait_begin(&waits[1], TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
        TIER_RUN_UNTIL(waits[0].done && waits[1].done);
        assert_int_equal(waits[0].status, ST_UNAVAILABLE);
        assert_int_equal(waits[1].status, ST_UNAVAILABLE);
        assert_refused("refused by the test");
        assert_int_equal(api.probes, 1);
        /* It is tried again later, and then it works. */
        api.refuses = 0;
        tier_run(29 * NS_PER_S);
        assert_int_equal(tier_view().phase, TIER_REFUSED);
        TIER_RUN_UNTIL(tier_serves());
        tier_check_state(api_history(&api));
        tier_end();
    }
}

static void refuses_versions_without_numbers(void **state)
{
    static const char *const versions[] = {"", "abc", "12a", "0", "1234567890123456789012"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        tier_begin(NULL);
        api.version_text = versions[i];
        tier_start();
        tier_open();
        assert_refused("no version that is a number");
        tier_end();
    }
}

static void refuses_what_cannot_be_watched(void **state)
{
    (void)state;
    for (int code = 403; code <= 405; code++) {
        tier_begin(NULL);
        api.refuses_watches = code;
        tier_start();
        tier_open();
        assert_refused("refused by the test");
        tier_end();
    }
}

static void refuses_another_encoding(void **state)
{
    (void)state;
    for (int encoding = TIER_PROTOBUF; encoding < TIER_ENCODINGS; encoding++) {
        tier_begin(NULL);
        tier_start();
        struct tier_name name = tier_pods((enum tier_encoding)encoding);
        tier.collection = tier_mirror_open(tier.mirror, &name);
        /* The simulated server answers with whole objects in JSON whatever is requested. */
        assert_refused(encoding == TIER_METADATA_JSON ? "metadata" : "encoding");
        assert_non_null(strstr(api.last_accept, encoding == TIER_METADATA_JSON
                                                    ? "application/json;as=PartialObjectMetadata"
                                                    : "application/vnd.kubernetes.protobuf"));
        tier_end();
    }
}

static void tries_again_after_errors_that_may_pass(void **state)
{
    (void)state;
    tier_begin(NULL);
    api.refuses = 503;
    tier_start();
    tier_open();
    tier_run(20 * NS_PER_S);
    assert_int_equal(tier_view().phase, TIER_STARTING);
    assert_non_null(strstr(tier_view().reason, "refused by the test"));
    /* The pause doubles: about 0.8, 1.6, 3.2 and 6.4 seconds, and up to as much again. */
    assert_in_range(api.probes, 3, 6);
    api.refuses = 0;
    api.throttles = 2;
    TIER_RUN_UNTIL(tier_serves());
    assert_string_equal(tier_view().reason, "");
    tier_end();
}

static void a_resource_that_is_defined_later_is_found_by_the_next_reader(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_begin(NULL);
    api.refuses = 404;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_view().phase == TIER_REFUSED);
    /* Not without a reader. */
    api.refuses = 0;
    tier_run(10 * NS_PER_S);
    assert_int_equal(tier_view().phase, TIER_REFUSED);
    assert_int_equal(api.probes, 1);
    tier_collection_close(tier.collection);
    tier_open();
    assert_int_equal(tier_view().phase, TIER_STARTING);
    tier_wait_begin(&wait, TIER_WAIT_STATE, 0, 10 * NS_PER_S);
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_OK);
    tier_check_state(api_history(&api));
    tier_end();
}

/* The reader who makes it try waits for the answer, and is passed on. */
static void a_resource_that_stays_unknown(void **state)
{
    struct tier_test_wait wait;
    (void)state;
    tier_begin(NULL);
    api.refuses = 404;
    tier_start();
    tier_open();
    for (unsigned i = 1; i < 6; i++) {
        TIER_RUN_UNTIL(tier_view().phase == TIER_REFUSED);
        assert_int_equal(api.probes, i);
        /* They share one attempt. */
        for (int k = 0; k < 100; k++) {
            tier_collection_close(tier.collection);
            tier_open();
        }
        tier_wait_begin(&wait, TIER_WAIT_STATE, 0, 60 * NS_PER_S);
        TIER_RUN_UNTIL(wait.done);
        assert_int_equal(wait.status, ST_UNAVAILABLE);
    }
    tier_end();
}

static void begin_to_wait_for_a_state(struct tier_test_wait *wait, bool ends_with_failure)
{
    *wait = (struct tier_test_wait){.wait = {.done = tier_wait_done,
                                             .kind = TIER_WAIT_STATE,
                                             .timeout_ns = 100 * NS_PER_S,
                                             .ends_with_failure = ends_with_failure}};
    loop_turn(tier.io, 0);
    tier_wait_start(tier.reader, &wait->wait, tier.collection);
}

static void readers_wait_for_a_state_unless_the_server_fails(void **state)
{
    struct tier_test_wait wait, late, patient;
    (void)state;
    tier_begin(NULL);
    api.refuses = 503;
    tier_start();
    tier_open();
    begin_to_wait_for_a_state(&wait, true);
    begin_to_wait_for_a_state(&patient, false);
    tier_run(5 * NS_PER_S);
    assert_false(wait.done);
    api.refuses = 500;
    TIER_RUN_UNTIL(wait.done);
    assert_int_equal(wait.status, ST_UNAVAILABLE);
    assert_int_equal(tier_view().phase, TIER_STARTING);
    begin_to_wait_for_a_state(&late, true);
    tier_run(100 * NS_PER_MS);
    assert_true(late.done);
    assert_int_equal(late.status, ST_UNAVAILABLE);
    tier_run(10 * NS_PER_S);
    assert_false(patient.done);
    api.refuses = 0;
    TIER_RUN_UNTIL(tier_serves() && patient.done);
    assert_int_equal(patient.status, ST_OK);
    begin_to_wait_for_a_state(&late, true);
    TIER_RUN_UNTIL(late.done);
    assert_int_equal(late.status, ST_OK);
    /* What has a state keeps it when the server fails afterwards. */
    api.refuses = 500;
    api_end_watches(&api, API_ENDS);
    tier_run(20 * NS_PER_S);
    begin_to_wait_for_a_state(&late, true);
    TIER_RUN_UNTIL(late.done);
    assert_int_equal(late.status, ST_OK);
    tier_end();
}

static void starts_before_the_server(void **state)
{
    (void)state;
    tier_begin(NULL);
    tier_start();
    kube_server_stop(&world.server);
    tier_open();
    tier_run(5 * NS_PER_S);
    assert_int_equal(tier_view().phase, TIER_STARTING);
    assert_true(tier_view().reason[0]);
    kube_server_start(&world.server);
    TIER_RUN_UNTIL(tier_serves());
    tier_check_state(api_history(&api));
    tier_end();
}

/* -- Kinds -- */

static void knows_whether_items_have_kinds(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool kinds = i & 1, empty = i & 2;
        tier_begin(NULL);
        api.has_kinds = kinds;
        for (int name = 0; empty && name < 5; name++)
            api_delete(&api, name);
        tier_start();
        tier_open();
        TIER_RUN_UNTIL(tier_serves());
        /* Pods are a built-in kind, whose items have none. */
        assert_int_equal(tier_view().has_kinds, kinds && !empty);
        assert_string_equal(tier_view().kind, "Pod");
        assert_true(tier_view().began > 0);
        tier_check_state(api_history(&api)); /* and all stored objects have them */
        tier_end();
    }
}

/* -- Lists in pages -- */

static void lists_where_the_server_does_not_stream(void **state)
{
    static const int codes[] = {400, 405, 422};
    (void)state;
    for (size_t i = 0; i <= COUNT_OF(codes); i++) {
        tier_begin(NULL);
        api.refuses_streams = i < COUNT_OF(codes) ? codes[i] : 0;
        api.ignores_streaming = i == COUNT_OF(codes);
        tier_start();
        tier_open();
        for (int n = 0; n < 20 && !tier_serves(); n++) {
            tier_run(NS_PER_S);
            api_bookmark(&api); /* shows that the state was not streamed */
        }
        assert_true(tier_serves());
        assert_int_equal(api.lists, 1);
        assert_int_equal(api.streams, 1);
        assert_int_equal(api.watch_requests, 1);
        assert_non_null(strstr(api.last_watch, "resourceVersion=5"));
        tier_check_state(api_history(&api));
        api_put(&api, 9);
        TIER_RUN_UNTIL(tier_view().newest == 6);
        assert_int_equal(tier_check_watch(api_history(&api), 5), 1);
        /* The next state is listed at once. */
        api.forgotten = 6;
        api_put(&api, 1);
        api_end_watches(&api, API_FORGETS);
        TIER_RUN_UNTIL(tier_view().generation > 1 && tier_serves());
        assert_int_equal(api.streams, 1);
        tier_end();
    }
}

static void lists_in_pages(void **state)
{
    (void)state;
    tier_begin(NULL);
    api.refuses_streams = 422;
    api.page_max = 2;
    for (int name = 0; name < API_NAMES; name++)
        api_put(&api, name);
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    assert_int_equal(api.lists, 1);
    assert_int_equal(api.pages, API_NAMES / 2 - 1);
    tier_check_state(api_history(&api));
    tier_end();
}

/* A list that takes longer than the server's history is requested as a whole. */
static void lists_everything_if_pages_expire(void **state)
{
    (void)state;
    tier_begin(NULL);
    api.refuses_streams = 422;
    api.page_max = 2;
    api.forgets_pages = true;
    for (int name = 0; name < API_NAMES; name++)
        api_put(&api, name);
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    assert_true(tier_serves());
    assert_int_equal(api.lists, 2);
    tier_check_state(api_history(&api));
    tier_end();
}

/* -- Use -- */

static void drops_what_is_not_used(void **state)
{
    (void)state;
    tier_serve();
    struct tier_view view = tier_view();
    struct tier_name name = tier_pods(TIER_JSON);
    tier_run(700 * NS_PER_S);
    assert_true(tier_serves()); /* it is open all the time */
    tier_collection_close(TAKE(tier.collection));
    tier_run(590 * NS_PER_S);
    assert_int_equal(tier.mirror->count, 1);
    tier.collection = tier_mirror_open(tier.mirror, &name);
    tier_run(20 * NS_PER_S);
    assert_int_equal(tier_view().generation, view.generation); /* it was used in time */
    tier_collection_close(TAKE(tier.collection));
    tier_run(620 * NS_PER_S);
    assert_int_equal(tier.mirror->count, 0);
    assert_null(kube_server_reply(&world.server, "watch=true"));
    /* Its keys are gone. */
    struct tier_state gone = tier_read_view(&view, 0);
    for (int i = 0; i < API_NAMES; i++)
        assert_int_equal(gone.objects[i], 0);
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    tier_check_state(api_history(&api));
    tier_end();
}

static void keeps_what_is_named(void **state)
{
    char reason[TIER_REASON_BYTES];
    struct tier_name name = tier_pods(TIER_JSON);
    (void)state;
    tier_begin(NULL);
    api.throttles = 1;
    tier_start();
    assert_int_equal(tier_mirror_keep(tier.mirror, &name), ST_OK);
    assert_false(tier_mirror_is_ready(tier.mirror, reason));
    assert_non_null(strstr(reason, "pods: "));
    tier_run(10 * NS_PER_S);
    assert_true(tier_mirror_is_ready(tier.mirror, reason));
    tier_run(2000 * NS_PER_S);
    assert_int_equal(tier.mirror->count, 1);
    assert_true(tier_mirror_is_ready(tier.mirror, reason));
    tier_end();
}

static void limits_the_collections(void **state)
{
    char long_text[TIER_NAME_PART_BYTES_MAX + 2];
    struct tier_name name = tier_pods(TIER_JSON), other = tier_pods(TIER_PROTOBUF), wrong = name;
    (void)state;
    tier_begin(NULL);
    tier.options.collections_max = 1;
    tier_start();
    tier_open();
    assert_ptr_equal(tier_mirror_open(tier.mirror, &name), tier.collection);
    tier_collection_close(tier.collection);
    assert_null(tier_mirror_open(tier.mirror, &other));
    tier.mirror->collections_max = 10;
    memset(long_text, 'a', sizeof(long_text));
    wrong.group = slice_of(long_text, TIER_NAME_PART_BYTES_MAX + 1);
    assert_null(tier_mirror_open(tier.mirror, &wrong));
    wrong.group = SLICE_LITERAL("a/b");
    assert_null(tier_mirror_open(tier.mirror, &wrong));
    wrong = name;
    wrong.resource = SLICE_EMPTY;
    assert_null(tier_mirror_open(tier.mirror, &wrong));
    tier_end();
}

/* A client that asks for many names must not keep others from being mirrored for long. */
static void forgets_names_that_are_refused(void **state)
{
    struct tier_name other = tier_pods(TIER_JSON);
    struct tier_collection *collection;
    (void)state;
    tier_begin(NULL);
    api.refuses = 404;
    tier.options.collections_max = 1;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_view().phase == TIER_REFUSED);
    tier_collection_close(TAKE(tier.collection));
    other.resource = SLICE_LITERAL("nodes");
    tier_run(25 * NS_PER_S);
    assert_null(tier_mirror_open(tier.mirror, &other));
    tier_run(10 * NS_PER_S);
    collection = tier_mirror_open(tier.mirror, &other);
    assert_non_null(collection);
    tier_collection_close(collection);
    tier_end();
}

static void refuses_what_becomes_too_large(void **state)
{
    (void)state;
    for (int at_start = 0; at_start < 2; at_start++) {
        tier_begin(NULL);
        api.pad_bytes = 1000;
        tier.options.collection_bytes_max = at_start ? 5000 : 9000;
        tier_start();
        tier_open();
        struct tier_view view = {0};
        if (!at_start) {
            TIER_RUN_UNTIL(tier_serves());
            view = tier_view();
            api_put(&api, 5);
            api_put(&api, 6);
        }
        assert_refused("too large");
        tier_run(NS_PER_S);
        for (int i = 0; !at_start && i < API_NAMES; i++)
            assert_int_equal(tier_read_view(&view, 0).objects[i], 0);
        /* The state is not read again and again: the pause doubles. */
        unsigned streams = api.streams;
        tier_run(100 * NS_PER_S);
        assert_in_range(api.streams - streams, 1, 2);
        api_delete(&api, 6);
        api_delete(&api, 5);
        api_delete(&api, 4);
        api_delete(&api, 3);
        TIER_RUN_UNTIL(tier_serves());
        tier_check_state(api_history(&api));
        tier_end();
    }
}

/* The values alone would fit. */
static void counts_keys_for_the_size(void **state)
{
    (void)state;
    tier_serve();
    uint64_t values = tier_view().bytes;
    tier_end();
    tier_begin(NULL);
    tier.options.collection_bytes_max = 2 * values;
    tier_start();
    tier_open();
    assert_refused("too large");
    tier_end();
}

static enum tier_phase phase_of(struct tier_collection *collection)
{
    struct tier_view view;
    tier_collection_look(collection, &view);
    return view.phase;
}

/* The second collection has the same objects, in another encoding. */
static struct tier_collection *open_second(void)
{
    struct tier_name name = tier_pods(TIER_METADATA_JSON);
    struct tier_collection *second = tier_mirror_open(tier.mirror, &name);
    assert_non_null(second);
    return second;
}

static void serve_first(int pad_bytes, uint64_t bytes_max)
{
    tier_begin(NULL);
    api.has_metadata = true;
    api.pad_bytes = pad_bytes;
    tier.options.bytes_max = bytes_max;
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    assert_true(tier_serves());
}

static void assert_goes(struct tier_collection *goes, struct tier_collection *stays)
{
    struct tier_view view;
    TIER_RUN_UNTIL(phase_of(goes) == TIER_REFUSED && phase_of(stays) == TIER_SERVING);
    assert_int_equal(phase_of(stays), TIER_SERVING);
    tier_collection_look(goes, &view);
    assert_int_equal(view.phase, TIER_REFUSED);
    assert_non_null(strstr(view.reason, "all resources together have become too large"));
    assert_in_range(tier.mirror->follower.sweeper.usage.held, 1, tier.mirror->follower.bytes_max);
}

/* An object takes about 1,430 bytes. */
static void gives_up_a_new_collection_that_does_not_fit(void **state)
{
    (void)state;
    serve_first(1000, 13000);
    struct tier_collection *second = open_second();
    assert_goes(second, tier.collection);
    /* It is tried again, and fits. */
    for (int name = 1; name < 5; name++)
        api_delete(&api, name);
    TIER_RUN_UNTIL(phase_of(second) == TIER_SERVING);
    assert_int_equal(phase_of(second), TIER_SERVING);
    tier_check_state(api_history(&api));
    tier_collection_close(second);
    tier_end();
}

static void gives_up_what_was_named_last(void **state)
{
    (void)state;
    struct tier_name name = tier_pods(TIER_METADATA_JSON);
    serve_first(1000, 13000);
    struct tier_collection *second = open_second();
    assert_int_equal(tier_mirror_keep(tier.mirror, &name), ST_OK);
    assert_goes(tier.collection, second);
    tier_collection_close(second);
    tier_end();
}

/* The second state of a collection counts, too. */
static void gives_up_the_newest_if_a_state_does_not_fit_twice(void **state)
{
    (void)state;
    serve_first(1000, 20000);
    struct tier_collection *second = open_second();
    TIER_RUN_UNTIL(phase_of(second) == TIER_SERVING);
    api_end_watches(&api, API_BREAKS);
    api_put(&api, 1);
    api.forgotten = api_version(&api);
    TIER_RUN_UNTIL(phase_of(second) == TIER_REFUSED);
    assert_goes(second, tier.collection);
    tier_collection_close(second);
    tier_end();
}

/* Giving up many small ones would not help for long. */
static void gives_up_a_large_collection_rather_than_small_ones(void **state)
{
    (void)state;
    serve_first(100000, 600000);
    api.pad_bytes = 0;
    struct tier_collection *second = open_second();
    TIER_RUN_UNTIL(phase_of(second) == TIER_SERVING);
    tier.mirror->follower.bytes_max = 300000;
    api_delete(&api, 0);
    assert_goes(tier.collection, second);
    tier_collection_close(second);
    tier_end();
}

static void ends_while_requests_are_under_way(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms < 40; ms++) {
        struct tier_test_wait wait;
        tier_begin(NULL);
        api.refuses_streams = ms % 2 ? 422 : 0;
        tier_start();
        tier_open();
        tier_wait_begin(&wait, TIER_WAIT_CURRENT, 0, 10 * NS_PER_S);
        tier_run(ms * NS_PER_MS / 4);
        if (ms % 3 == 0)
            api_put(&api, 7);
        tier_wait_cancel(&wait.wait);
        tier_end();
    }
}

static void writes_metrics(void **state)
{
    struct metric_page page = {0};
    (void)state;
    tier_serve();
    api_put(&api, 7);
    tier_run(5 * NS_PER_S);
    tier_mirror_write_metrics(tier.mirror, &page);
    assert_int_equal(page.status, ST_OK);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    const char *text = (const char *)page.text.ptr;
    static const char *const rows[] = {
        "vigil_tier_collections{phase=\"serving\"} 1\n",
        "vigil_tier_objects{group=\"\",version=\"v1\",resource=\"pods\",encoding=\"json\"} 6\n",
        "vigil_tier_states_total{group=\"\",version=\"v1\",resource=\"pods\",encoding=\"json\"} "
        "1\n",
        "vigil_tier_upstream_events_total{group=\"\",version=\"v1\",resource=\"pods\",encoding="
        "\"json\"} "
        "1\n",
        "vigil_tier_collection_info{group=\"\",version=\"v1\",resource=\"pods\",encoding=\"json\","
        "phase=\"serving\",reason=\"\"} 1\n",
        "vigil_tier_connected{group=\"\",version=\"v1\",resource=\"pods\",encoding=\"json\"} 1\n",
        "vigil_tier_age_seconds{group=\"\",version=\"v1\",resource=\"pods\",encoding=\"json\"} ",
        "vigil_tier_lag_seconds{group=\"\",version=\"v1\",resource=\"pods\",encoding=\"json\"} 4",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (!strstr(text, rows[i]))
            fail_msg("%s is missing in\n%s", rows[i], text);
    metric_page_fini(&page);
    tier_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_state_and_follows_changes),
        cmocka_unit_test(waits_for_a_state),
        cmocka_unit_test(refuses_what_the_server_refuses),
        cmocka_unit_test(refuses_versions_without_numbers),
        cmocka_unit_test(refuses_what_cannot_be_watched),
        cmocka_unit_test(refuses_another_encoding),
        cmocka_unit_test(tries_again_after_errors_that_may_pass),
        cmocka_unit_test(a_resource_that_is_defined_later_is_found_by_the_next_reader),
        cmocka_unit_test(a_resource_that_stays_unknown),
        cmocka_unit_test(readers_wait_for_a_state_unless_the_server_fails),
        cmocka_unit_test(starts_before_the_server),
        cmocka_unit_test(knows_whether_items_have_kinds),
        cmocka_unit_test(lists_where_the_server_does_not_stream),
        cmocka_unit_test(lists_in_pages),
        cmocka_unit_test(lists_everything_if_pages_expire),
        cmocka_unit_test(drops_what_is_not_used),
        cmocka_unit_test(keeps_what_is_named),
        cmocka_unit_test(limits_the_collections),
        cmocka_unit_test(forgets_names_that_are_refused),
        cmocka_unit_test(refuses_what_becomes_too_large),
        cmocka_unit_test(counts_keys_for_the_size),
        cmocka_unit_test(gives_up_a_new_collection_that_does_not_fit),
        cmocka_unit_test(gives_up_what_was_named_last),
        cmocka_unit_test(gives_up_the_newest_if_a_state_does_not_fit_twice),
        cmocka_unit_test(gives_up_a_large_collection_rather_than_small_ones),
        cmocka_unit_test(ends_while_requests_are_under_way),
        cmocka_unit_test(writes_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
