/* Informers and their handlers with a server on a simulated network. */
#include "kubeclient/informer/informer.h"

#include "kubeclient/data/objects_test.h"
#include "kubeclient/informer/collection_sim_test.h"
#include "kubeclient/informer/handler.h"

#include <poll.h>
#include <semaphore.h>

static struct kube_world world;
static struct collection collection;

/* -- A handler that knows what the server's history allows -- */

struct follower {
    vigil_kube_informer *informer;
    vigil_kube_handler *handler;
    int known[COLLECTION_NAMES]; /* the version that the handler saw last; 0: none */
    int newest[COLLECTION_NAMES];
    bool delivered[COLLECTION_CHANGES_MAX]; /* by revision */
    bool may_miss[COLLECTION_CHANGES_MAX];  /* the state was requested anew after it */
    int synced_at;                          /* the version of the first whole state; 0: none yet */
    int version;                            /* up to which everything is known */
    uint64_t relists;
    bool restored; /* the server went back to an older state, so versions may do so, too */
    unsigned initial, added, updated, deleted, resyncs, unknown;
    vigil_kube_informer *free_informer; /* in its function, after this many changes */
    bool free_handler;
    unsigned free_after;
};

static struct follower follower;

static void follow(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    struct follower *f = user;
    int name = test_number(object_sent(change->object).len
                               ? slice_of(vigil_kube_object_name(change->object).data,
                                          vigil_kube_object_name(change->object).size)
                               : SLICE_EMPTY);
    int version = test_number(object_version(change->object));
    int before = change->before ? test_number(object_version(change->before)) : 0;
    bool deleted = change->kind == VIGIL_KUBE_CHANGE_DELETED;
    assert_int_equal(f->known[name], before);
    assert_int_equal(change->kind == VIGIL_KUBE_CHANGE_ADDED, before == 0);
    assert_true(f->restored || version >= f->newest[name]);
    assert_true(f->restored || change->resync || deleted || version > f->newest[name]);
    f->known[name] = deleted ? 0 : version;
    f->newest[name] = version;
    f->delivered[version] = true;
    f->initial += change->initial;
    f->resyncs += change->resync;
    f->unknown += change->state_unknown;
    f->added += change->kind == VIGIL_KUBE_CHANGE_ADDED;
    f->updated += change->kind == VIGIL_KUBE_CHANGE_UPDATED && !change->resync;
    f->deleted += deleted;
    if (f->free_after && --f->free_after == 0) {
        vigil_kube_informer_free(f->free_informer);
        if (f->free_handler)
            vigil_kube_handler_free(handler);
    }
}

static int copied_version(struct follower *f, int name)
{
    char key[32];
    snprintf(key, sizeof(key), "%s/%d", name % 2 ? "odd" : "even", name);
    vigil_kube_object *object = vigil_kube_informer_get(f->informer, vigil_text(key));
    int version = object ? test_number(object_version(object)) : 0;
    vigil_kube_object_unref(object);
    return version;
}

/* What was changed before a list is not delivered one by one. */
static void note_relist(struct follower *f, int from, int to)
{
    for (int r = from + 1; r <= to; r++)
        f->may_miss[r] = true;
}

/* After every turn of the client: while it watches, the copy is exactly the state of the version
 * that it claims to know, and that version does not go back. */
static void check_follower(struct kube_world *w)
{
    struct follower *f = &follower;
    (void)w;
    if (!f->informer)
        return;
    informer_check(f->informer);
    vigil_kube_informer_stats stats;
    vigil_kube_informer_get_stats(f->informer, &stats, sizeof(stats));
    int version = test_number(slice_from_text(stats.version));
    if (f->informer->reflector.state != REFLECTOR_WATCHING || f->informer->copy->ended)
        return;
    assert_true(f->restored || version >= f->version);
    if (!f->synced_at || stats.relists > f->relists)
        note_relist(f, f->version, version);
    if (!f->synced_at)
        f->synced_at = version;
    f->relists = stats.relists;
    f->version = version;
    for (int name = 0; name < COLLECTION_NAMES; name++)
        assert_int_equal(copied_version(f, name), collection_version(&collection, name, version));
}

static void begin_over(enum sim_protocol protocol, const struct sim_options *options)
{
    kube_world_init(&world, protocol, options);
    collection_init(&collection, &world, options ? options->seed : 1);
    for (int name = 0; name < 5; name++)
        collection_put(&collection, name);
    world.check = check_follower;
    follower = (struct follower){0};
}

static void begin(void)
{
    begin_over(SIM_HTTP2, NULL);
    assert_true(kube_world_start(&world));
}

static void end(void)
{
    struct follower *f = &follower;
    vigil_kube_handler_free(TAKE(f->handler));
    vigil_kube_informer_free(TAKE(f->informer));
    kube_world_fini(&world);
}

static vigil_kube_informer_options options_of_pods(void)
{
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
    return options;
}

static vigil_kube_informer *informer_new(vigil_kube_informer_options options)
{
    vigil_kube_informer *informer;
    assert_int_equal(vigil_kube_informer_new(world.kube, &options, &informer), VIGIL_OK);
    return informer;
}

static vigil_kube_handler_options handler_options(int place, vigil_kube_handler_fn fn, void *user)
{
    vigil_kube_handler_options options;
    vigil_kube_handler_options_init(&options);
    options.place = place;
    options.fn = fn;
    options.user = user;
    return options;
}

static vigil_kube_handler *handler_new(vigil_kube_informer *informer,
                                       vigil_kube_handler_options options)
{
    vigil_kube_handler *handler;
    assert_int_equal(vigil_kube_informer_add_handler(informer, &options, &handler), VIGIL_OK);
    return handler;
}

static void follow_with(vigil_kube_informer_options options)
{
    struct follower *f = &follower;
    f->informer = informer_new(options);
    f->handler = handler_new(f->informer, handler_options(VIGIL_KUBE_HANDLER_CALLBACK, follow, f));
    assert_int_equal(vigil_kube_informer_start(f->informer), VIGIL_OK);
}

static void follow_pods(void)
{
    follow_with(options_of_pods());
}

static void run_until_synced(void)
{
    KUBE_WORLD_RUN_UNTIL(&world, vigil_kube_informer_has_synced(follower.informer));
    assert_int_equal(vigil_kube_informer_has_synced(follower.informer), 1);
}

static bool handler_has_all(void)
{
    for (int name = 0; name < COLLECTION_NAMES; name++) {
        if (follower.known[name] != collection_version(&collection, name, collection.revision))
            return false;
    }
    return true;
}

/* The final state was delivered, and nothing was missed that the server still had. */
static void run_until_complete(void)
{
    struct follower *f = &follower;
    KUBE_WORLD_RUN_UNTIL(&world, handler_has_all() && f->synced_at);
    kube_world_run(&world, NS_PER_S);
    assert_true(handler_has_all());
    for (int r = f->synced_at + 1; r <= collection.revision; r++)
        assert_true(f->delivered[r] || f->may_miss[r]);
    for (int name = 0; name < COLLECTION_NAMES; name++)
        assert_int_equal(copied_version(f, name),
                         collection_version(&collection, name, collection.revision));
    assert_int_equal(vigil_kube_handler_has_synced(f->handler), 1);
}

static vigil_kube_informer_stats stats(void)
{
    vigil_kube_informer_stats read;
    vigil_kube_informer_get_stats(follower.informer, &read, sizeof(read));
    return read;
}

static void change_some(int count)
{
    for (int i = 0; i < count; i++)
        collection_change_one(&collection);
}

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

/* As client-go does it: everything is listed, and the watch begins where the list was made. */
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

/* The watch breaks, the server forgets what it had, and some objects are deleted meanwhile. */
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

static void watch_that_is_told_that_its_version_expired_lists_again(void **state)
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
    assert_null(strstr(collection.last_list, "resourceVersion="));
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
             "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"c\"},"
             "\"items\":[{\"metadata\":{\"name\":\"%d\",\"resourceVersion\":\"1\"}},"
             "{\"metadata\":{\"name\":\"%d\",\"resourceVersion\":\"1\"}}]}",
             e->name, e->name + 1);
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

/* -- Everything at once -- */

static void do_something(struct random *random)
{
    switch (random_below(random, 12)) {
    case 0:
        collection_end_watches(&collection, (enum collection_end)random_below(random, 4));
        break;
    case 1:
        collection.forgotten = collection.revision;
        break;
    case 2:
        collection_bookmark(&collection);
        break;
    case 3:
        collection.throttles = (unsigned)random_below(random, 3);
        break;
    case 4:
        collection.ends = (unsigned)random_below(random, 3);
        break;
    case 5:
        collection.breaks = (unsigned)random_below(random, 3);
        break;
    case 6:
        collection.stale = random_chance(random, 1, 2);
        collection.forgets_as_event = random_chance(random, 1, 2);
        break;
    case 7:
        kube_server_stop(&world.server);
        change_some((int)random_below(random, 5));
        kube_world_run(&world, (int64_t)random_below(random, 5) * NS_PER_S);
        kube_server_start(&world.server);
        break;
    default:
        change_some((int)random_below(random, 10));
    }
}

static void torture(uint64_t seed)
{
    struct random random;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    vigil_kube_informer_options watched = options_of_pods();
    random_init(&random, seed);
    options.seed = seed;
    options.reset_per_million = random_chance(&random, 1, 2) ? 2000 : 0;
    begin_over((enum sim_protocol)random_below(&random, 2), &options);
    collection.no_streaming = random_chance(&random, 1, 3);
    collection.pages_max = (int)random_below(&random, 5);
    collection.pad_bytes = 1 + (int)random_below(&random, 2000);
    watched.no_streaming = random_chance(&random, 1, 4);
    watched.page_limit = 1 + (int64_t)random_below(&random, 5);
    assert_true(kube_world_start(&world));
    follow_with(watched);
    for (int i = 0; i < 60; i++) {
        do_something(&random);
        kube_world_run(&world, (int64_t)random_below(&random, 3000) * NS_PER_MS);
    }
    collection.throttles = collection.ends = collection.breaks = 0;
    collection.stale = false;
    run_until_complete();
    end();
}

/* Whatever happens, the copy converges on the server's state, its versions do not go back, and the
 * handler misses nothing that the server still had. */
static void informer_converges_whatever_happens(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        torture(seed);
}

/* -- Faults of the network and of memory -- */

/* A life with a list, a watch, a gap and another list. The last part is without faults. */
static void live(bool lists)
{
    struct follower *f = &follower;
    vigil_kube_informer_options options = options_of_pods();
    vigil_kube_handler_options handles = handler_options(VIGIL_KUBE_HANDLER_CALLBACK, follow, f);
    options.no_streaming = lists;
    options.page_limit = 3;
    faulty_memory_begin();
    int code = vigil_kube_informer_new(world.kube, &options, &f->informer);
    if (code == VIGIL_OK)
        code = vigil_kube_informer_add_handler(f->informer, &handles, &f->handler);
    faulty_memory_end();
    if (code != VIGIL_OK) {
        assert_int_equal(code, VIGIL_ERROR_MEMORY);
        f->handler = NULL;
        return;
    }
    assert_int_equal(vigil_kube_informer_start(f->informer), VIGIL_OK);
    kube_world_run(&world, 2 * NS_PER_S);
    change_some(4);
    kube_world_run(&world, 2 * NS_PER_S);
    collection_end_watches(&collection, COLLECTION_BREAKS);
    collection_delete(&collection, 2);
    collection_put(&collection, 9);
    collection.forgotten = collection.revision;
    kube_world_run(&world, 2 * NS_PER_S);
    collection_delete(&collection, 9);
    kube_world_run(&world, 2 * NS_PER_S);
}

static size_t faulty_memory_left; /* allocations that would still have succeeded */

static void live_with_failing_memory(size_t at, bool lists)
{
    begin_over(SIM_HTTP2, NULL);
    assert_true(kube_world_start(&world));
    faulty_memory_at = at;
    live(lists);
    faulty_memory_left = faulty_memory_at;
    faulty_memory_at = 0;
    if (follower.handler)
        run_until_complete();
    end();
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int lists = 0; lists < 2; lists++) {
        live_with_failing_memory(1 << 20, lists);
        size_t total = (1 << 20) - faulty_memory_left;
        assert_in_range(total, 100, 3000);
        for (memory_fail_on = false;; memory_fail_on = true) {
            for (size_t at = 1; at <= total; at += memory_fail_on ? 7 : 1)
                live_with_failing_memory(at, lists);
            if (memory_fail_on)
                break;
        }
        memory_fail_on = false;
    }
}

static void live_with_fault(enum fault_kind kind, size_t at, enum sim_protocol protocol, bool lists)
{
    begin_over(protocol, NULL);
    assert_true(kube_world_start(&world));
    faults.kind = kind;
    faults.at = at;
    live(lists);
    faults.kind = FAULT_NONE;
    run_until_complete();
    end();
}

static void connection_may_fail_at_any_byte(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_LOST_WRITING, FAULT_RESET,
                                            FAULT_END, FAULT_CALL};
    for (int variant = 0; variant < 4; variant++) {
        enum sim_protocol protocol = variant & 1 ? SIM_HTTP1 : SIM_HTTP2;
        live_with_fault(FAULT_NONE, 0, protocol, variant & 2);
        struct faults totals = faults;
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            size_t places = fault_places(kinds[k], &totals);
            for (size_t at = 0; at < places; at += 1 + places / 60)
                live_with_fault(kinds[k], at, protocol, variant & 2);
        }
    }
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
    options.page_limit = 10;                            /* the first one's options count */
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
    assert_int_equal(found("namespace", "odd"), 2);
    assert_int_equal(found("namespace", "even"), 3);
    assert_int_equal(found("namespace", "none"), 0);
    assert_int_equal(found("owner", "o0"), 4);
    assert_int_equal(found("owner", "o1"), 1);
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
        cmocka_unit_test(watch_continues_at_the_last_version),
        cmocka_unit_test(bookmark_moves_the_version_on),
        cmocka_unit_test(gap_is_closed_by_another_list),
        cmocka_unit_test(watch_that_is_told_that_its_version_expired_lists_again),
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
        cmocka_unit_test(limit_of_bytes_is_kept_and_recovers),
        cmocka_unit_test(informer_converges_whatever_happens),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(connection_may_fail_at_any_byte),
        cmocka_unit_test(equal_informers_are_one),
        cmocka_unit_test(last_reference_stops_the_watch),
        cmocka_unit_test(client_ends_its_informers),
        cmocka_unit_test(informer_and_handler_may_be_freed_in_a_callback),
        cmocka_unit_test(objects_are_found_by_index),
        cmocka_unit_test(objects_stay_valid_while_they_are_held),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
