/* Informers with a server on a simulated network. */
#include "kubeclient/informer/follower_sim_test.h"

#include <poll.h>

/* -- Listing and watching -- */

static void copy_follows_the_server(void **state)
{
    (void)state;
    begin();
    follow_pods();
    assert_int_equal(vigil_kube_informer_has_synced(follower.informer), 0);
    assert_int_equal(vigil_kube_handler_has_synced(follower.handler), 0);
    run_until_synced();
    for (int i = 0; i < 20; i++) {
        change_some(10);
        kube_world_run(&world, 10 * NS_PER_MS);
    }
    run_until_complete();
    assert_int_equal(follower.initial, 5);
    assert_int_equal(stats().lists, 0);
    assert_int_equal(stats().watches, 1);
    assert_int_equal(stats().failures, 0);
    assert_int_equal(stats().relists, 0);
    assert_int_equal(stats().bookmarks, 1);
    assert_true(stats().last_event_ms > 0);
    assert_int_equal(stats().events, (uint64_t)collection.revision); /* 5 of them initial */
    for (int r = 6; r <= collection.revision; r++)
        assert_true(follower.delivered[r]);
    end();
}

/* TestNewReflectorWithDisablementWatchList: everything is listed, and the watch begins where the
 * list was made. */
static void list_and_watch_without_streaming(void **state)
{
    (void)state;
    vigil_kube_informer_options options = options_of_pods();
    begin();
    options.no_streaming = 1;
    options.page_limit = 2;
    options.label_selector = "app in (a,b)";
    options.field_selector = "spec.nodeName=n1";
    follow_with(options);
    run_until_synced();
    assert_int_equal(collection.lists, 1);
    assert_int_equal(collection.pages, 3);
    assert_int_equal(collection.streams, 0);
    assert_string_equal(collection.last_list,
                        "/api/v1/pods?continue=5.4&fieldSelector=spec.nodeName%3Dn1&labelSelector="
                        "app%20in%20%28a%2Cb%29&limit=2");
    KUBE_WORLD_RUN_UNTIL(&world, collection.watch_requests);
    assert_non_null(strstr(collection.last_watch, "allowWatchBookmarks=true"));
    assert_non_null(strstr(collection.last_watch, "resourceVersion=5&"));
    assert_non_null(strstr(collection.last_watch, "labelSelector=app%20in%20%28a%2Cb%29"));
    change_some(10);
    run_until_complete();
    assert_int_equal(stats().lists, 3);
    end();
}

static void server_that_does_not_stream_is_listed(void **state)
{
    (void)state;
    for (int ignores = 0; ignores < 2; ignores++) {
        begin();
        collection.no_streaming = !ignores;
        collection.ignores_streaming = ignores;
        follow_pods();
        if (ignores) { /* a bookmark shows that this one is not at the end of the state */
            KUBE_WORLD_RUN_UNTIL(&world, collection.streams);
            kube_world_run(&world, NS_PER_S);
            collection_bookmark(&collection);
        }
        run_until_synced();
        change_some(10);
        run_until_complete();
        assert_int_equal(collection.streams, 1);
        assert_int_equal(collection.lists, 1);
        assert_true(stats().failures == 1 && stats().last_failure.code != 0);
        end();
    }
}

static void large_objects_are_copied(void **state)
{
    (void)state;
    for (int lists = 0; lists < 2; lists++) {
        vigil_kube_informer_options options = options_of_pods();
        begin();
        collection.pad_bytes = 1500000;
        options.no_streaming = lists != 0;
        follow_with(options);
        run_until_synced();
        change_some(3);
        run_until_complete();
        assert_true(stats().bytes > stats().objects * 1500000);
        end();
    }
}

static void watch_continues_at_the_last_version(void **state)
{
    (void)state;
    for (int how = COLLECTION_ENDS; how <= COLLECTION_BREAKS; how++) {
        begin();
        follow_pods();
        run_until_synced();
        for (int i = 0; i < 5; i++) {
            change_some(3);
            kube_world_run(&world, 2 * NS_PER_S);
            collection_end_watches(&collection, (enum collection_end)how);
            change_some(3);
            kube_world_run(&world, 10 * NS_PER_S);
        }
        run_until_complete();
        assert_int_equal(stats().relists, 0);
        assert_int_equal(collection.watch_requests, 5);
        for (int r = 6; r <= collection.revision; r++)
            assert_true(follower.delivered[r]);
        end();
    }
}

static void bookmark_moves_the_version_on(void **state)
{
    (void)state;
    begin();
    follow_pods();
    run_until_synced();
    for (int i = 0; i < 10; i++) /* changes of other objects */
        collection.history[++collection.revision].name = COLLECTION_NAMES;
    struct sim_reply *reply;
    LIST_FOREACH (reply, &world.server.replies, in_server)
        ((struct collection_watch *)reply->later_ctx)->at = collection.revision;
    collection_bookmark(&collection);
    kube_world_run(&world, 2 * NS_PER_S);
    assert_string_equal(stats().version, "15");
    assert_int_equal(stats().bookmarks, 2);
    collection_end_watches(&collection, COLLECTION_ENDS);
    kube_world_run(&world, 10 * NS_PER_S);
    assert_non_null(strstr(collection.last_watch, "resourceVersion=15&"));
    end();
}

/* -- Gaps in the history -- */

/* TestSharedInformerWatchDisruption: the watch breaks, the server forgets what it had, and some
 * objects are deleted meanwhile. */
static void gap_is_closed_by_another_list(void **state)
{
    (void)state;
    for (int variant = 0; variant < 8; variant++) {
        begin();
        collection.no_streaming = variant & 1;
        collection.forgets_as_event = variant & 2;
        collection.stale = variant & 4;
        follow_pods();
        run_until_synced();
        change_some(10);
        kube_world_run(&world, 2 * NS_PER_S);
        collection_end_watches(&collection, COLLECTION_BREAKS);
        for (int name = 0; name < 4; name++)
            collection_delete(&collection, name);
        change_some(5);
        collection.forgotten = collection.revision;
        run_until_complete();
        assert_true(collection.stale ? stats().relists >= 1 : stats().relists == 1);
        assert_true(collection.too_old >= 1);
        assert_true(follower.unknown > 0); /* deletions that were not seen */
        change_some(5);
        run_until_complete();
        end();
    }
}

static void watch_whose_version_expires_lists_again(void **state)
{
    (void)state;
    begin();
    follow_pods();
    run_until_synced();
    collection_end_watches(&collection, COLLECTION_FORGETS);
    change_some(5);
    run_until_complete();
    assert_int_equal(stats().relists, 1);
    assert_string_equal(stats().last_failure.reason, "Expired");
    assert_int_equal(collection.streams, 2);
    end();
}

/* An error of the server is not a gap: the watch is tried again. */
static void watch_that_fails_continues(void **state)
{
    (void)state;
    begin();
    follow_pods();
    run_until_synced();
    collection_end_watches(&collection, COLLECTION_FAILS);
    change_some(5);
    run_until_complete();
    assert_int_equal(stats().relists, 0);
    assert_int_equal(stats().failures, 1);
    end();
}

static void page_that_expires_is_followed_by_a_whole_list(void **state)
{
    (void)state;
    vigil_kube_informer_options options = options_of_pods();
    begin();
    options.no_streaming = 1;
    options.page_limit = 2;
    follow_with(options);
    KUBE_WORLD_RUN_UNTIL(&world, collection.pages == 1);
    change_some(5);
    collection.forgotten = collection.revision;
    run_until_complete();
    assert_int_equal(collection.lists, 2);
    assert_null(strstr(collection.last_list, "limit="));
    end();
}

/* The server has lost some revisions, as after the restore of a backup. */
static void restored_server_is_believed(void **state)
{
    (void)state;
    for (int lists = 0; lists < 2; lists++) {
        begin();
        collection.no_streaming = lists;
        follow_pods();
        run_until_synced();
        change_some(20);
        run_until_complete();
        follower.restored = true;
        world.check = NULL; /* until it has seen that */
        kube_server_stop(&world.server);
        collection.revision = 5;
        kube_server_start(&world.server);
        KUBE_WORLD_RUN_UNTIL(&world, handler_has_all());
        assert_true(handler_has_all());
        assert_string_equal(stats().version, "5");
        end();
    }
}

/* -- Servers that misbehave -- */

static void throttled_requests_are_repeated(void **state)
{
    (void)state;
    for (int lists = 0; lists < 2; lists++) {
        begin();
        collection.no_streaming = lists;
        collection.throttles = 30;
        follow_pods();
        run_until_complete();
        collection.throttles = 30;
        collection_end_watches(&collection, COLLECTION_BREAKS);
        change_some(5);
        run_until_complete();
        assert_int_equal(stats().relists, 0);
        end();
    }
}

static void watches_that_end_at_once_are_not_repeated_without_a_pause(void **state)
{
    (void)state;
    begin();
    follow_pods();
    run_until_synced();
    collection.ends = 1000;
    collection_end_watches(&collection, COLLECTION_ENDS);
    int64_t from = kube_world_now(&world);
    kube_world_run(&world, 300 * NS_PER_S);
    assert_true(collection.watch_requests + collection.streams < 40);
    assert_true(kube_world_now(&world) - from >= 300 * NS_PER_S);
    collection.ends = 0;
    change_some(5);
    run_until_complete();
    end();
}

static void server_that_restarts_is_found_again(void **state)
{
    (void)state;
    begin();
    follow_pods();
    run_until_synced();
    for (int i = 0; i < 5; i++) {
        change_some(5);
        kube_server_stop(&world.server);
        change_some(5);
        kube_world_run(&world, 5 * NS_PER_S);
        kube_server_start(&world.server);
        run_until_complete();
    }
    assert_int_equal(stats().relists, 0);
    end();
}

static void server_that_is_absent_at_first_is_awaited(void **state)
{
    (void)state;
    begin();
    kube_server_stop(&world.server);
    follow_pods();
    kube_world_run(&world, 60 * NS_PER_S);
    assert_int_equal(vigil_kube_informer_has_synced(follower.informer), 0);
    assert_true(stats().failures > 1 && stats().failures < 30);
    assert_int_equal(stats().last_failure.code, 0);
    assert_true(stats().last_failure.message[0] != 0);
    kube_server_start(&world.server);
    run_until_complete();
    end();
}

static void refuse(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    unsigned *count = ctx;
    (void)request;
    ++*count;
    sim_reply_status(reply, 403, "Forbidden", "pods is forbidden");
}

/* TestSharedInformerErrorHandling */
static void refusal_is_reported_and_tried_again(void **state)
{
    (void)state;
    unsigned refused = 0;
    begin();
    world.server.route_count = 0;
    kube_server_route(&world.server, "GET", "/api/v1/pods", refuse, &refused);
    follow_pods();
    kube_world_run(&world, 120 * NS_PER_S);
    assert_int_equal(vigil_kube_informer_has_synced(follower.informer), 0);
    assert_true(refused > 3 && refused < 40);
    assert_int_equal(stats().last_failure.code, 403);
    assert_string_equal(stats().last_failure.reason, "Forbidden");
    assert_string_equal(stats().last_failure.message, "pods is forbidden");
    world.server.route_count = 0; /* the program was given the permission */
    kube_server_route(&world.server, "GET", "/api/v1/pods", collection_answer, &collection);
    run_until_complete();
    end();
}

static void garbage(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    static const char *const bodies[] = {
        "<html>", "{\"items\":[{\"metadata\":{}}]}", "{\"items\":[{\"metadata\":{\"name\":\"a\"}}",
        "[]",     "{\"kind\":\"Status\"}",           "k8s",
        "",
    };
    unsigned *count = ctx;
    (void)request;
    sim_reply_json(reply, 200, bodies[(*count)++ % COUNT_OF(bodies)]);
}

static void list_that_is_not_one_is_a_failure(void **state)
{
    (void)state;
    unsigned count = 0;
    vigil_kube_informer_options options = options_of_pods();
    begin();
    world.server.route_count = 0;
    kube_server_route(&world.server, "GET", "/api/v1/pods", garbage, &count);
    options.no_streaming = 1;
    follower.informer = informer_new(options);
    assert_int_equal(vigil_kube_informer_start(follower.informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, count >= 14);
    assert_int_equal(vigil_kube_informer_has_synced(follower.informer), 0);
    assert_true(stats().failures >= 13);
    world.server.route_count = 0;
    kube_server_route(&world.server, "GET", "/api/v1/pods", collection_answer, &collection);
    run_until_synced();
    end();
}

struct endless {
    int name;
    unsigned pages;
    bool repeats; /* the continue token */
};

/* Every page has new objects, and another one follows it. */
static void list_without_end(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    struct endless *e = ctx;
    char json[512];
    (void)request;
    e->pages++;
    reply->server->request_count = 0;
    snprintf(json, sizeof(json),
             "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"%d\"},"
             "\"items\":[{\"metadata\":{\"name\":\"%d\",\"resourceVersion\":\"1\"}},"
             "{\"metadata\":{\"name\":\"%d\",\"resourceVersion\":\"1\"}}]}",
             e->repeats ? 0 : e->name, e->name, e->name + 1);
    e->name += 2;
    sim_reply_json(reply, 200, json);
}

static void list_without_end_is_limited(void **state)
{
    (void)state;
    struct endless endless = {.name = 0};
    vigil_kube_informer_options options = options_of_pods();
    begin();
    world.server.route_count = 0;
    kube_server_route(&world.server, "GET", "/api/v1/pods", list_without_end, &endless);
    options.no_streaming = 1;
    options.bytes_max = 4000;
    follower.informer = informer_new(options);
    assert_int_equal(vigil_kube_informer_start(follower.informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, stats().failures == 3);
    assert_int_equal(stats().failures, 3);
    assert_string_equal(stats().last_failure.reason, "CacheLimit");
    assert_in_range(stats().bytes, 3000, 8000); /* twice the limit while it lists again */
    assert_int_equal(vigil_kube_informer_has_synced(follower.informer), 0);
    assert_true(kube_world_now(&world) > NS_PER_S); /* with a pause between the attempts */
    end();
}

/* The beginning of a page that never ends. */
static void page_without_end(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    unsigned *pages = ctx;
    (void)request;
    ++*pages;
    sim_reply_begin(reply, 200, "application/json");
    sim_reply_text(reply, "{\"kind\":\"PodList\",\"items\":[");
    for (int name = 0; name < 100; name++) {
        char json[128];
        snprintf(json, sizeof(json), "%s{\"metadata\":{\"name\":\"%d\",\"resourceVersion\":\"1\"}}",
                 name ? "," : "", name);
        sim_reply_text(reply, json);
    }
}

static void page_without_end_is_not_read_beyond_the_limit(void **state)
{
    (void)state;
    unsigned pages = 0;
    vigil_kube_informer_options options = options_of_pods();
    begin();
    world.server.route_count = 0;
    kube_server_route(&world.server, "GET", "/api/v1/pods", page_without_end, &pages);
    options.no_streaming = 1;
    options.bytes_max = 1000;
    follower.informer = informer_new(options);
    assert_int_equal(vigil_kube_informer_start(follower.informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, pages == 3);
    assert_int_equal(pages, 3);
    assert_int_equal(stats().failures, 2);
    assert_string_equal(stats().last_failure.reason, "CacheLimit");
    assert_true(kube_world_now(&world) > NS_PER_S); /* with a pause between the attempts */
    end();
}

static void continue_token_that_is_repeated_is_a_failure(void **state)
{
    (void)state;
    struct endless endless = {.repeats = true};
    vigil_kube_informer_options options = options_of_pods();
    begin();
    world.server.route_count = 0;
    kube_server_route(&world.server, "GET", "/api/v1/pods", list_without_end, &endless);
    options.no_streaming = 1;
    follower.informer = informer_new(options);
    assert_int_equal(vigil_kube_informer_start(follower.informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, stats().failures == 2);
    assert_int_equal(endless.pages, 4);
    assert_string_equal(stats().last_failure.message,
                        "the server sent the same continue token again");
    end();
}

/* What is known stays known when the limit is reached, and new objects enter when there is room. */
static void limit_of_bytes_is_kept_and_recovers(void **state)
{
    (void)state;
    vigil_kube_informer_options options = options_of_pods();
    begin();
    options.bytes_max = 1500;
    follow_with(options);
    run_until_synced();
    for (int name = 0; name < COLLECTION_NAMES; name++)
        collection_put(&collection, name);
    world.check = NULL; /* the copy is behind now */
    kube_world_run(&world, 60 * NS_PER_S);
    assert_true(stats().bytes <= 2 * 1500);
    assert_string_equal(stats().last_failure.reason, "CacheLimit");
    for (int name = 2; name < COLLECTION_NAMES; name++)
        collection_delete(&collection, name);
    KUBE_WORLD_RUN_UNTIL(&world, handler_has_all());
    assert_true(handler_has_all());
    end();
}

/* -- Sharing, and the end -- */

static void equal_informers_are_one(void **state)
{
    (void)state;
    begin();
    follow_pods();
    vigil_kube_informer *same = informer_new(options_of_pods());
    assert_ptr_equal(same, follower.informer);
    vigil_kube_informer_options options = options_of_pods();
    options.target.group = options.label_selector = ""; /* the same as not given */
    options.page_limit = 10;                            /* those of the first informer count */
    vigil_kube_informer *third = informer_new(options);
    assert_ptr_equal(third, follower.informer);
    options.label_selector = "a=b";
    vigil_kube_informer *other = informer_new(options);
    assert_ptr_not_equal(other, follower.informer);
    run_until_synced();
    assert_int_equal(collection.streams, 1);
    vigil_kube_informer_free(same);
    vigil_kube_informer_free(third);
    change_some(5);
    run_until_complete(); /* it still has a user */
    vigil_kube_informer_free(other);
    end();
    begin();
    follow_pods();
    run_until_synced();
    vigil_kube_informer_free(follower.informer);
    vigil_kube_informer *again = informer_new(options_of_pods());
    assert_ptr_not_equal(again, follower.informer); /* ASan: the old one still has a handler */
    follower.informer = NULL;
    assert_int_equal(vigil_kube_informer_has_synced(again), 0);
    vigil_kube_informer_free(again);
    end();
}

static void last_reference_stops_the_watch(void **state)
{
    (void)state;
    begin();
    follow_pods();
    run_until_synced();
    kube_world_run(&world, NS_PER_S);
    assert_false(list_empty(&world.server.replies));
    vigil_kube_informer_free(TAKE(follower.informer));
    kube_world_run(&world, NS_PER_S);
    assert_true(list_empty(&world.server.replies));
    unsigned before = follower.added;
    change_some(10);
    kube_world_run(&world, NS_PER_S);
    assert_int_equal(follower.added, before);
    end();
}

/* TestStateSharedInformer */
static void client_ends_its_informers(void **state)
{
    (void)state;
    for (int frees = 0; frees < 3; frees++) {
        begin();
        follow_pods();
        vigil_kube_informer_options options = options_of_pods();
        options.label_selector = "not=started";
        vigil_kube_informer *idle = informer_new(options);
        vigil_kube_change change;
        vigil_kube_handler *taken =
            handler_new(idle, handler_options(VIGIL_KUBE_HANDLER_TAKE, NULL, NULL));
        if (frees < 2)
            run_until_synced();
        if (frees)
            kube_world_free_client(&world);
        else
            vigil_kube_shutdown(world.kube);
        kube_world_run(&world, NS_PER_S);
        assert_int_equal(vigil_kube_informer_wait_synced(idle, -1), VIGIL_ERROR_CANCELED);
        assert_int_equal(vigil_kube_informer_start(idle), VIGIL_ERROR_CANCELED);
        assert_int_equal(vigil_kube_handler_take(taken, -1, &change), VIGIL_ERROR_CANCELED);
        struct pollfd fd = {.fd = vigil_kube_handler_fd(taken), .events = POLLIN};
        assert_int_equal(poll(&fd, 1, 0), 1);
        if (frees < 2) /* what was known can still be read */
            assert_true(copied_version(&follower, 1) > 0);
        vigil_kube_handler_free(taken);
        vigil_kube_informer_free(idle);
        end();
    }
}

/* Informer and handler are freed inside the function of the handler. */
static void informer_and_handler_may_be_freed_in_a_callback(void **state)
{
    (void)state;
    for (int what = 1; what < 4; what++) {
        begin();
        follow_pods();
        follower.free_after = 3;
        follower.free_informer = what & 1 ? TAKE(follower.informer) : NULL;
        follower.free_handler = what & 2;
        kube_world_run(&world, 5 * NS_PER_S);
        assert_int_equal(follower.free_after, 0);
        assert_int_equal(follower.added, 3);
        if (follower.free_handler)
            follower.handler = NULL;
        end();
    }
}

/* -- Reading -- */

static void by_odd_version(const vigil_kube_object *object, vigil_kube_index_values *values,
                           void *user)
{
    (void)user;
    bool odd = test_number(object_version(object)) % 2;
    vigil_kube_index_values_add(values, vigil_text(odd ? "odd" : "even"));
    vigil_kube_index_values_add(values, vigil_text("all"));
}

static size_t found(const char *index, const char *value)
{
    vigil_kube_objects objects;
    assert_int_equal(
        vigil_kube_informer_find(follower.informer, index, vigil_text(value), &objects), VIGIL_OK);
    size_t count = objects.count;
    vigil_kube_objects_free(&objects);
    return count;
}

/* TestIndexer */
static void objects_are_found_by_index(void **state)
{
    (void)state;
    vigil_kube_objects objects;
    begin();
    follower.informer = informer_new(options_of_pods());
    vigil_kube_informer *informer = follower.informer;
    assert_int_equal(vigil_kube_informer_add_index(informer, "version", by_odd_version, NULL),
                     VIGIL_OK);
    assert_int_equal(vigil_kube_informer_add_index(informer, "version", by_odd_version, NULL),
                     VIGIL_ERROR_ARGUMENT);
    assert_int_equal(vigil_kube_informer_add_index(informer, "owner", by_odd_version, NULL),
                     VIGIL_ERROR_ARGUMENT);
    assert_int_equal(vigil_kube_informer_add_index(informer, "x", NULL, NULL),
                     VIGIL_ERROR_ARGUMENT);
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    assert_int_equal(vigil_kube_informer_add_index(informer, "late", by_odd_version, NULL),
                     VIGIL_ERROR_ARGUMENT);
    run_until_synced();
    assert_int_equal(informer->copy->cache.indexer.index_count, 1); /* others when they are read */
    assert_int_equal(found("namespace", "odd"), 2);
    assert_int_equal(found("namespace", "even"), 3);
    assert_int_equal(found("namespace", "none"), 0);
    assert_int_equal(found("owner", "o0"), 4);
    assert_int_equal(found("owner", "o1"), 1);
    assert_int_equal(informer->copy->cache.indexer.index_count, 3);
    assert_int_equal(found("version", "odd"), 3);
    assert_int_equal(found("version", "all"), 5);
    assert_int_equal(vigil_kube_informer_find(informer, "none", vigil_text(""), &objects),
                     VIGIL_ERROR_ARGUMENT);
    collection_delete(&collection, 1);
    collection_put(&collection, 0);
    kube_world_run(&world, NS_PER_S);
    assert_int_equal(found("namespace", "odd"), 1);
    assert_int_equal(found("owner", "o0"), 3);
    assert_int_equal(found("version", "odd"), 3); /* 3, 5, and 7 instead of 1 */
    end();
}

static void count_call(const vigil_kube_object *object, vigil_kube_index_values *values, void *user)
{
    (void)object, (void)values;
    ++*(unsigned *)user;
}

/* The program may free what they use. */
static void functions_of_indexes_are_not_called_after_the_end(void **state)
{
    (void)state;
    unsigned calls = 0;
    begin();
    world.check = NULL; /* which would call them */
    follower.informer = informer_new(options_of_pods());
    assert_int_equal(vigil_kube_informer_add_index(follower.informer, "count", count_call, &calls),
                     VIGIL_OK);
    assert_int_equal(vigil_kube_informer_start(follower.informer), VIGIL_OK);
    run_until_synced();
    change_some(20); /* on its way when the informer is freed */
    struct sim_reply *reply = LIST_ENTRY(world.server.replies.next, struct sim_reply, in_server);
    while (reply->body.len)
        collection_written(&collection);
    clock_sim_advance((struct clock_sim *)sim_clock(world.sim), NS_PER_S);
    unsigned before = calls;
    assert_int_equal(before, 5);
    vigil_kube_informer_free(TAKE(follower.informer));
    kube_world_run(&world, NS_PER_S);
    assert_int_equal(calls, before);
    end();
}

static void objects_stay_valid_while_they_are_held(void **state)
{
    (void)state;
    vigil_kube_objects objects;
    begin();
    follow_pods();
    run_until_synced();
    vigil_kube_object *held = vigil_kube_informer_get(follower.informer, vigil_text("odd/1"));
    assert_non_null(held);
    assert_null(vigil_kube_informer_get(follower.informer, vigil_text("odd/none")));
    assert_int_equal(vigil_kube_informer_list(follower.informer, &objects), VIGIL_OK);
    assert_int_equal(objects.count, 5);
    collection_put(&collection, 1);
    collection_delete(&collection, 1);
    run_until_complete();
    assert_int_equal(test_number(object_version(held)), 2);
    end();
    assert_int_equal(test_number(object_version(held)), 2);
    vigil_kube_object_unref(held);
    vigil_kube_objects_free(&objects);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    vigil_kube_informer *informer;
    vigil_kube_handler *handler;
    vigil_kube_handler_options handles = handler_options(VIGIL_KUBE_HANDLER_CALLBACK, NULL, NULL);
    begin();
    vigil_kube_informer_options good = options_of_pods(), bad = good;
    bad.target.name = "one";
    assert_int_equal(vigil_kube_informer_new(world.kube, &bad, &informer), VIGIL_ERROR_ARGUMENT);
    bad = good;
    bad.target.resource = NULL;
    assert_int_equal(vigil_kube_informer_new(world.kube, &bad, &informer), VIGIL_ERROR_ARGUMENT);
    bad = good;
    bad.target.resource = "po/ds";
    assert_int_equal(vigil_kube_informer_new(world.kube, &bad, &informer), VIGIL_ERROR_ARGUMENT);
    bad = good;
    bad.page_limit = 0;
    assert_int_equal(vigil_kube_informer_new(world.kube, &bad, &informer), VIGIL_ERROR_ARGUMENT);
    bad = good;
    bad.size = 0;
    assert_int_equal(vigil_kube_informer_new(world.kube, &bad, &informer), VIGIL_ERROR_ARGUMENT);
    bad.size = sizeof(bad) + 1;
    assert_int_equal(vigil_kube_informer_new(world.kube, &bad, &informer), VIGIL_ERROR_ARGUMENT);
    informer = informer_new(good);
    assert_int_equal(vigil_kube_informer_add_handler(informer, &handles, &handler),
                     VIGIL_ERROR_ARGUMENT);
    handles.fn = follow;
    handles.place = 17;
    assert_int_equal(vigil_kube_informer_add_handler(informer, &handles, &handler),
                     VIGIL_ERROR_ARGUMENT);
    handles.place = VIGIL_KUBE_HANDLER_THREAD;
    handles.resync_ms = -1;
    assert_int_equal(vigil_kube_informer_add_handler(informer, &handles, &handler),
                     VIGIL_ERROR_ARGUMENT);
    vigil_kube_informer_free(informer);
    vigil_kube_informer_free(NULL);
    vigil_kube_handler_free(NULL);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_follows_the_server),
        cmocka_unit_test(list_and_watch_without_streaming),
        cmocka_unit_test(server_that_does_not_stream_is_listed),
        cmocka_unit_test(large_objects_are_copied),
        cmocka_unit_test(watch_continues_at_the_last_version),
        cmocka_unit_test(bookmark_moves_the_version_on),
        cmocka_unit_test(gap_is_closed_by_another_list),
        cmocka_unit_test(watch_whose_version_expires_lists_again),
        cmocka_unit_test(watch_that_fails_continues),
        cmocka_unit_test(page_that_expires_is_followed_by_a_whole_list),
        cmocka_unit_test(restored_server_is_believed),
        cmocka_unit_test(throttled_requests_are_repeated),
        cmocka_unit_test(watches_that_end_at_once_are_not_repeated_without_a_pause),
        cmocka_unit_test(server_that_restarts_is_found_again),
        cmocka_unit_test(server_that_is_absent_at_first_is_awaited),
        cmocka_unit_test(refusal_is_reported_and_tried_again),
        cmocka_unit_test(list_that_is_not_one_is_a_failure),
        cmocka_unit_test(list_without_end_is_limited),
        cmocka_unit_test(page_without_end_is_not_read_beyond_the_limit),
        cmocka_unit_test(continue_token_that_is_repeated_is_a_failure),
        cmocka_unit_test(limit_of_bytes_is_kept_and_recovers),
        cmocka_unit_test(equal_informers_are_one),
        cmocka_unit_test(last_reference_stops_the_watch),
        cmocka_unit_test(client_ends_its_informers),
        cmocka_unit_test(informer_and_handler_may_be_freed_in_a_callback),
        cmocka_unit_test(objects_are_found_by_index),
        cmocka_unit_test(functions_of_indexes_are_not_called_after_the_end),
        cmocka_unit_test(objects_stay_valid_while_they_are_held),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
