/* Calls, with configmaps: nothing else than the tests changes them. */
#include "suite.h"

#include <poll.h>
#include <time.h>

static void an_object_is_created_read_changed_and_deleted(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL), one = configmap("one");
    vigil_kube_call *call =
        must_run(vigil_kube_create(kube, &all, configmap_json("one", "1"), NULL));
    CHECK(vigil_kube_call_object(call));
    CHECK(strcmp(text_at(call, "data.key"), "1") == 0);
    CHECK(*text_at(call, "metadata.uid") && *text_at(call, "metadata.resourceVersion"));
    vigil_kube_call_free(call);

    call = must_run(vigil_kube_get(kube, &one));
    CHECK(strcmp(text_at(call, "data.key"), "1") == 0);
    CHECK(vigil_kube_object_version(vigil_kube_call_object(call)).size > 0);
    vigil_kube_call_free(call);

    call = must_run(vigil_kube_update(kube, &one, configmap_json("one", "2"), NULL));
    CHECK(strcmp(text_at(call, "data.key"), "2") == 0);
    vigil_kube_call_free(call);

    call = must_run(vigil_kube_delete(kube, &one, NULL));
    CHECK(strcmp(text_at(call, "status"), "Success") == 0);
    vigil_kube_call_free(call);
    EXPECT_REFUSAL(vigil_kube_get(kube, &one), 404, "NotFound");
    EXPECT_REFUSAL(vigil_kube_delete(kube, &one, NULL), 404, "NotFound");
    vigil_kube_free(kube);
}

static void conflicts_are_refused(void)
{
    char old[2048];
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL), one = configmap("conflict");
    vigil_kube_call *call =
        must_run(vigil_kube_create(kube, &all, configmap_json("conflict", "1"), NULL));
    vigil_bytes body = vigil_kube_call_body(call);
    CHECK(body.size < sizeof(old));
    memcpy(old, body.data, body.size);
    vigil_kube_call_free(call);
    EXPECT_REFUSAL(vigil_kube_create(kube, &all, configmap_json("conflict", "2"), NULL), 409,
                   "AlreadyExists");
    EXPECT(vigil_kube_update(kube, &one, configmap_json("conflict", "2"), NULL), VIGIL_OK);
    EXPECT_REFUSAL(vigil_kube_update(kube, &one, vigil_bytes_of(old, body.size), NULL), 409,
                   "Conflict");
    vigil_kube_free(kube);
}

static void invalid_objects_are_refused_with_causes(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL);
    vigil_kube_call *call = vigil_kube_create(kube, &all, configmap_json("Not_A_Name", "1"), NULL);
    CHECK(vigil_kube_call_run(call) == VIGIL_ERROR_SERVER);
    const vigil_kube_status *status = vigil_kube_call_status(call);
    CHECK(status->code == 422 && strcmp(status->reason, "Invalid") == 0);
    CHECK(status->cause_count > 0);
    CHECK(strcmp(status->causes[0].field, "metadata.name") == 0);
    vigil_kube_call_free(call);
    EXPECT_REFUSAL(vigil_kube_create(kube, &all, vigil_text("not json"), NULL), 400, "BadRequest");
    vigil_kube_free(kube);
}

static void expect_patched(vigil_kube *kube, int type, const char *patch, const char *value)
{
    vigil_kube_target one = configmap("patched");
    vigil_kube_call *call = must_run(vigil_kube_patch(kube, &one, type, vigil_text(patch), NULL));
    CHECK(strcmp(text_at(call, "data.key"), value) == 0);
    CHECK(strcmp(text_at(call, "metadata.labels.test"), "patched") == 0);
    vigil_kube_call_free(call);
}

static void patches_of_all_types_change_an_object(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target one = configmap("patched");
    create_configmap(kube, "patched", "0");
    expect_patched(kube, VIGIL_KUBE_PATCH_JSON,
                   "[{\"op\":\"replace\",\"path\":\"/data/key\",\"value\":\"1\"}]", "1");
    expect_patched(kube, VIGIL_KUBE_PATCH_MERGE, "{\"data\":{\"key\":\"2\"}}", "2");
    expect_patched(kube, VIGIL_KUBE_PATCH_STRATEGIC, "{\"data\":{\"key\":\"3\"}}", "3");
    vigil_kube_call *call = vigil_kube_patch(
        kube, &one, VIGIL_KUBE_PATCH_JSON,
        vigil_text("[{\"op\":\"test\",\"path\":\"/data/key\",\"value\":\"9\"}]"), NULL);
    EXPECT_REFUSAL(call, 422, "Invalid");
    vigil_kube_free(kube);
}

static void apply_keeps_the_fields_of_other_managers(void)
{
    static const char first[] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\n"
                                "data: {key: \"1\"}\n";
    static const char second[] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\n"
                                 "data: {key: \"2\"}\n";
    vigil_kube *kube = new_kube();
    vigil_kube_target one = configmap("applied");
    EXPECT(vigil_kube_apply(kube, &one, vigil_text(first), "anna", 0), VIGIL_OK);
    EXPECT_REFUSAL(vigil_kube_apply(kube, &one, vigil_text(second), "ben", 0), 409, "Conflict");
    vigil_kube_call *call = must_run(vigil_kube_apply(kube, &one, vigil_text(second), "ben", 1));
    CHECK(strcmp(text_at(call, "data.key"), "2") == 0);
    vigil_kube_call_free(call);
    vigil_kube_free(kube);
}

/* -- Collections -- */

enum { MANY = 25 };

static void create_many(vigil_kube *kube)
{
    for (int i = 0; i < MANY; i++) {
        char name[32], json[256];
        vigil_kube_target all = configmap(NULL);
        snprintf(name, sizeof(name), "many-%02d", i);
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"many\":\"yes\",\"odd\":\"%d\"}}}",
                 name, i % 2);
        EXPECT(vigil_kube_create(kube, &all, vigil_text(json), NULL), VIGIL_OK);
    }
}

static size_t items_of(const vigil_kube_call *call)
{
    vigil_bytes items, item;
    size_t count = 0;
    if (!vigil_json_find(vigil_kube_call_body(call), "items", &items))
        return 0;
    vigil_json_iterator iterator = vigil_json_iterate(items);
    while (vigil_json_next(&iterator, NULL, &item))
        count++;
    return count;
}

static size_t count_selected(vigil_kube *kube, const char *labels, const char *fields)
{
    vigil_kube_list_options options = {
        .size = sizeof(options), .label_selector = labels, .field_selector = fields};
    vigil_kube_target all = configmap(NULL);
    vigil_kube_call *call = must_run(vigil_kube_list(kube, &all, &options));
    CHECK(*vigil_kube_call_version(call));
    size_t count = items_of(call);
    vigil_kube_call_free(call);
    return count;
}

static void collections_are_listed_and_selected(void)
{
    vigil_kube *kube = new_kube();
    create_many(kube);
    CHECK(count_selected(kube, "many=yes", NULL) == MANY);
    CHECK(count_selected(kube, "many=yes,odd in (1)", NULL) == MANY / 2);
    CHECK(count_selected(kube, "many=no", NULL) == 0);
    CHECK(count_selected(kube, NULL, "metadata.name=many-07") == 1);
    vigil_selector *selector = vigil_selector_new();
    vigil_selector_equals(selector, "many", "yes");
    vigil_selector_not_equals(selector, "odd", "1");
    CHECK(count_selected(kube, vigil_selector_text(selector), NULL) == MANY - MANY / 2);
    vigil_selector_free(selector);
    vigil_kube_free(kube);
}

static void pages_continue_each_other(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL);
    vigil_kube_list_options options = {
        .size = sizeof(options), .label_selector = "many=yes", .limit = 10};
    char token[4096] = "", version[64] = "";
    size_t count = 0, pages = 0;
    create_many(kube);
    do {
        options.continue_token = token;
        vigil_kube_call *call = must_run(vigil_kube_list(kube, &all, &options));
        count += items_of(call);
        CHECK(pages == 0 || strcmp(version, vigil_kube_call_version(call)) == 0);
        snprintf(version, sizeof(version), "%s", vigil_kube_call_version(call));
        snprintf(token, sizeof(token), "%s", vigil_kube_call_continue(call));
        vigil_kube_call_free(call);
        pages++;
    } while (*token);
    CHECK(pages == 3 && count == MANY);
    vigil_kube_free(kube);
}

struct listed {
    size_t count;
    char last[64];
};

static void on_item(vigil_kube_call *call, const vigil_kube_object *object, void *user)
{
    struct listed *listed = user;
    vigil_bytes name = vigil_kube_object_name(object);
    char text[64];
    (void)call;
    snprintf(text, sizeof(text), "%.*s", VIGIL_ARGS(name));
    CHECK(strcmp(text, listed->last) > 0);
    memcpy(listed->last, text, sizeof(text));
    listed->count++;
}

static void every_object_is_passed_on(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL);
    vigil_kube_list_options options = {
        .size = sizeof(options), .label_selector = "many=yes", .limit = 7};
    create_many(kube);
    for (int protobuf = 0; protobuf < 2; protobuf++) {
        struct listed listed = {0, ""};
        vigil_kube_call *call = vigil_kube_list_each(kube, &all, &options, on_item, &listed);
        if (protobuf)
            vigil_kube_call_want_protobuf(call);
        must_run(call);
        CHECK(listed.count == MANY);
        CHECK(*vigil_kube_call_version(call));
        vigil_kube_call_free(call);
    }
    vigil_kube_free(kube);
}

static void a_collection_is_deleted_by_its_labels(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL);
    vigil_kube_list_options odd = {.size = sizeof(odd), .label_selector = "many=yes,odd=1"};
    vigil_kube_delete_options options = {.size = sizeof(options), .propagation = "Background"};
    create_many(kube);
    EXPECT(vigil_kube_delete_collection(kube, &all, &options, &odd), VIGIL_OK);
    CHECK(count_selected(kube, "many=yes", NULL) == MANY - MANY / 2);
    EXPECT(vigil_kube_delete_collection(kube, &all, NULL, NULL), VIGIL_OK);
    CHECK(count_selected(kube, "many=yes", NULL) == 0);
    vigil_kube_free(kube);
}

/* -- Options -- */

static void preconditions_protect_an_object(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target one = configmap("guarded");
    vigil_kube_delete_options options = {.size = sizeof(options), .uid = "another"};
    create_configmap(kube, "guarded", "1");
    EXPECT_REFUSAL(vigil_kube_delete(kube, &one, &options), 409, "Conflict");
    options = (vigil_kube_delete_options){.size = sizeof(options), .version = "1"};
    EXPECT_REFUSAL(vigil_kube_delete(kube, &one, &options), 409, "Conflict");
    options = (vigil_kube_delete_options){.size = sizeof(options), .dry_run = 1};
    EXPECT(vigil_kube_delete(kube, &one, &options), VIGIL_OK);
    EXPECT(vigil_kube_get(kube, &one), VIGIL_OK);
    vigil_kube_free(kube);
}

static void a_dry_run_stores_nothing(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL), one = configmap("dry");
    vigil_kube_write_options options = {.size = sizeof(options), .dry_run = 1};
    EXPECT(vigil_kube_create(kube, &all, configmap_json("dry", "1"), &options), VIGIL_OK);
    EXPECT_REFUSAL(vigil_kube_get(kube, &one), 404, "NotFound");
    vigil_kube_free(kube);
}

static void an_object_with_a_finalizer_stays(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL), one = configmap("kept");
    static const char json[] = "{\"metadata\":{\"name\":\"kept\",\"finalizers\":"
                               "[\"example.com/wait\"]}}";
    EXPECT(vigil_kube_create(kube, &all, vigil_text(json), NULL), VIGIL_OK);
    vigil_kube_call *call = must_run(vigil_kube_delete(kube, &one, NULL));
    CHECK(vigil_kube_call_object(call));
    CHECK(*text_at(call, "metadata.deletionTimestamp"));
    vigil_kube_call_free(call);
    EXPECT(vigil_kube_patch(kube, &one, VIGIL_KUBE_PATCH_MERGE,
                            vigil_text("{\"metadata\":{\"finalizers\":null}}"), NULL),
           VIGIL_OK);
    EXPECT_REFUSAL(vigil_kube_get(kube, &one), 404, "NotFound");
    vigil_kube_free(kube);
}

static void protobuf_is_sent_on_request(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target one = configmap("binary");
    vigil_pb_value name;
    create_configmap(kube, "binary", "1");
    vigil_kube_call *call = vigil_kube_get(kube, &one);
    vigil_kube_call_want_protobuf(call);
    must_run(call);
    const vigil_kube_object *object = vigil_kube_call_object(call);
    CHECK(object && vigil_pb_find(vigil_kube_object_protobuf(object), "1.1", &name));
    CHECK(vigil_pb_is(name, "binary"));
    CHECK(vigil_kube_object_version(object).size > 0);
    vigil_kube_call_free(call);
    one.name = "missing";
    call = vigil_kube_get(kube, &one);
    vigil_kube_call_want_protobuf(call);
    EXPECT_REFUSAL(call, 404, "NotFound");
    vigil_kube_free(kube);
}

static void any_request_can_be_made(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_call *call =
        must_run(vigil_kube_request(kube, "GET", "/version", NULL, vigil_text("")));
    CHECK(*text_at(call, "gitVersion"));
    vigil_kube_call_free(call);
    EXPECT_REFUSAL(
        vigil_kube_request(kube, "GET", "/apis/no.such.group/v1/things", NULL, vigil_text("")), 404,
        "NotFound");
    vigil_kube_free(kube);
}

/* -- Threads and loops -- */

enum { CALLS = 200 };

static void on_done(vigil_kube_call *call, void *user)
{
    CHECK(vigil_kube_call_error(call)->code == VIGIL_OK);
    CHECK(vigil_kube_call_run(call) == VIGIL_ERROR_WOULD_BLOCK);
    vigil_kube_call_free(call);
    latch_add(user, 1);
}

static void many_calls_run_at_the_same_time(void)
{
    vigil_kube_options options;
    vigil_kube *kube;
    struct latch latch = LATCH_INIT;
    vigil_kube_target one = configmap("shared");
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_kube_new(&options, &kube, NULL) == VIGIL_OK);
    create_configmap(kube, "shared", "1");
    for (int i = 0; i < CALLS; i++)
        CHECK(vigil_kube_call_start(vigil_kube_get(kube, &one), on_done, &latch) == VIGIL_OK);
    latch_wait(&latch, CALLS);
    vigil_kube_stats stats;
    vigil_kube_get_stats(kube, &stats, sizeof(stats));
    CHECK(stats.calls_completed >= CALLS && stats.connects >= 1);
    CHECK(stats.bytes_received > CALLS);
    vigil_kube_free(kube);
}

static void on_done_in_loop(vigil_kube_call *call, void *user)
{
    CHECK(vigil_kube_call_error(call)->code == VIGIL_OK);
    ++*(int *)user;
    vigil_kube_call_free(call);
}

static void calls_run_in_the_programs_loop(void)
{
    vigil_kube_options options;
    vigil_kube *kube;
    int done = 0;
    vigil_kube_target one = configmap("looped");
    default_options(&options);
    options.own_thread = 0;
    CHECK(vigil_kube_new(&options, &kube, NULL) == VIGIL_OK);
    create_configmap(kube, "looped", "1");
    for (int i = 0; i < CALLS; i++)
        CHECK(vigil_kube_call_start(vigil_kube_get(kube, &one), on_done_in_loop, &done) ==
              VIGIL_OK);
    while (done < CALLS) {
        struct pollfd waited = {.fd = vigil_kube_fd(kube), .events = POLLIN};
        CHECK(poll(&waited, 1, vigil_kube_timeout_ms(kube)) >= 0);
        vigil_kube_process(kube);
    }
    vigil_kube_free(kube);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void calls_are_limited_by_default(void)
{
    vigil_kube_options options, defaults;
    vigil_kube *kube;
    vigil_kube_target all = configmap(NULL);
    default_options(&options);
    vigil_kube_options_init(&defaults);
    options.calls_per_second = defaults.calls_per_second;
    CHECK(vigil_kube_new(&options, &kube, NULL) == VIGIL_OK);
    int64_t from = now_ms();
    for (int i = 0; i < 15; i++)
        EXPECT(vigil_kube_list(kube, &all, NULL), VIGIL_OK);
    CHECK(now_ms() - from >= 900); /* 10 at once, and 5 more per second */
    vigil_kube_free(kube);
}

static void a_call_that_waits_for_its_turn_honours_its_timeout(void)
{
    vigil_kube_options options;
    vigil_kube *kube;
    vigil_kube_target all = configmap(NULL);
    default_options(&options);
    options.calls_per_second = 1;
    options.calls_burst = 1;
    CHECK(vigil_kube_new(&options, &kube, NULL) == VIGIL_OK);
    EXPECT(vigil_kube_list(kube, &all, NULL), VIGIL_OK);
    vigil_kube_call *call = vigil_kube_list(kube, &all, NULL);
    vigil_kube_call_set_timeout(call, 50);
    CHECK(vigil_kube_call_run(call) == VIGIL_ERROR_TIMEOUT);
    CHECK(vigil_kube_call_error(call)->outcome == VIGIL_NOT_SENT);
    vigil_kube_call_free(call);
    vigil_kube_free(kube);
}

static void an_unreachable_server_is_named(void)
{
    vigil_kube_options options;
    vigil_kube *kube;
    vigil_kube_target all = configmap(NULL);
    default_options(&options);
    options.server = "http://127.0.0.1:1";
    CHECK(vigil_kube_new(&options, &kube, NULL) == VIGIL_OK);
    vigil_kube_call *call = vigil_kube_list(kube, &all, NULL);
    CHECK(vigil_kube_call_run(call) == VIGIL_ERROR_UNAVAILABLE);
    CHECK(vigil_kube_call_error(call)->outcome == VIGIL_NOT_SENT);
    CHECK(strstr(vigil_kube_call_error(call)->text, "127.0.0.1:1"));
    vigil_kube_call_free(call);
    vigil_kube_free(kube);
}

static void calls_of_a_freed_client_are_harmless(void)
{
    struct latch latch = LATCH_INIT;
    vigil_kube *kube = new_kube();
    vigil_kube_target all = configmap(NULL);
    vigil_kube_call *started = vigil_kube_list(kube, &all, NULL);
    vigil_kube_call *unused = vigil_kube_list(kube, &all, NULL);
    CHECK(vigil_kube_call_start(started, NULL, &latch) == VIGIL_OK);
    vigil_kube_free(kube);
    CHECK(vigil_kube_call_run(unused) == VIGIL_ERROR_CANCELED);
    vigil_kube_call_free(started);
    vigil_kube_call_free(unused);
}

const struct suite_test call_tests[] = {
    {"an_object_is_created_read_changed_and_deleted",
     an_object_is_created_read_changed_and_deleted},
    {"conflicts_are_refused", conflicts_are_refused},
    {"invalid_objects_are_refused_with_causes", invalid_objects_are_refused_with_causes},
    {"patches_of_all_types_change_an_object", patches_of_all_types_change_an_object},
    {"apply_keeps_the_fields_of_other_managers", apply_keeps_the_fields_of_other_managers},
    {"collections_are_listed_and_selected", collections_are_listed_and_selected},
    {"pages_continue_each_other", pages_continue_each_other},
    {"every_object_is_passed_on", every_object_is_passed_on},
    {"a_collection_is_deleted_by_its_labels", a_collection_is_deleted_by_its_labels},
    {"preconditions_protect_an_object", preconditions_protect_an_object},
    {"a_dry_run_stores_nothing", a_dry_run_stores_nothing},
    {"an_object_with_a_finalizer_stays", an_object_with_a_finalizer_stays},
    {"protobuf_is_sent_on_request", protobuf_is_sent_on_request},
    {"any_request_can_be_made", any_request_can_be_made},
    {"many_calls_run_at_the_same_time", many_calls_run_at_the_same_time},
    {"calls_run_in_the_programs_loop", calls_run_in_the_programs_loop},
    {"calls_are_limited_by_default", calls_are_limited_by_default},
    {"a_call_that_waits_for_its_turn_honours_its_timeout",
     a_call_that_waits_for_its_turn_honours_its_timeout},
    {"an_unreachable_server_is_named", an_unreachable_server_is_named},
    {"calls_of_a_freed_client_are_harmless", calls_of_a_freed_client_are_harmless},
    {NULL, NULL},
};

/* -- A server that restarts -- */

static void reads_are_repeated_after_a_restart(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target one = configmap("durable");
    create_configmap(kube, "durable", "1");
    EXPECT(vigil_kube_get(kube, &one), VIGIL_OK);
    ask("restart");
    EXPECT(vigil_kube_get(kube, &one), VIGIL_OK);
    vigil_kube_stats stats;
    vigil_kube_get_stats(kube, &stats, sizeof(stats));
    CHECK(stats.connects >= 2);
    vigil_kube_free(kube);
}

const struct suite_test restart_tests[] = {
    {"reads_are_repeated_after_a_restart", reads_are_repeated_after_a_restart},
    {NULL, NULL},
};

/* -- A scripted server: it refuses the first request with 429 and Retry-After: 1 -- */

static void a_throttled_call_is_repeated(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_stats stats;
    int64_t from = now_ms();
    EXPECT(vigil_kube_request(kube, "POST", "/throttled", NULL, vigil_text("{}")), VIGIL_OK);
    CHECK(now_ms() - from >= 1000);
    vigil_kube_get_stats(kube, &stats, sizeof(stats));
    CHECK(stats.calls_retried == 1);
    vigil_kube_free(kube);
}

static void a_refusal_without_retry_after_is_final(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_call *call = vigil_kube_request(kube, "GET", "/refused", NULL, vigil_text(""));
    CHECK(vigil_kube_call_run(call) == VIGIL_ERROR_TOO_MANY_REQUESTS);
    CHECK(vigil_kube_call_status(call)->retry_after_s == -1);
    vigil_kube_call_free(call);
    vigil_kube_free(kube);
}

const struct suite_test script_tests[] = {
    {"a_throttled_call_is_repeated", a_throttled_call_is_repeated},
    {"a_refusal_without_retry_after_is_final", a_refusal_without_retry_after_is_final},
    {NULL, NULL},
};
