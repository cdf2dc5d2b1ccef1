/* Deletions that wait for finalizers of other clients, and are requested again. */
#include "kube/server/bed_test.h"

#include "base/clock.h"

enum { SEEDS = 10, HATS_KEPT = 3 };

static void set_up(uint64_t seed)
{
    begin(seed, 0);
    make_hats();
    for (int i = 0; i < HATS_KEPT; i++) {
        char hat[256];
        snprintf(hat, sizeof(hat),
                 "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":"
                 "\"h%d\",\"finalizers\":[\"example.com/a\"]}}",
                 i);
        ask("POST", HATS, hat, 201);
    }
    ask("DELETE", CRDS "/hats.example.com", "", 200);
}

/* Time passes while operations are under way. */
static void turn(int64_t ns)
{
    clock_sim_advance(&bed->clock, ns);
    fake_set_now(bed->engine, bed->clock.mono_ns);
    loop_turn(bed->loop, 0);
    (void)fake_step(bed->engine);
}

static void a_purge_that_is_started_again_runs_one_operation_at_a_time(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        set_up(seed);
        for (int i = 0; i < HATS_KEPT; i++) {
            char path[64];
            snprintf(path, sizeof(path), HATS "/h%d", i);
            (void)send_patch(path, "{\"metadata\":{\"finalizers\":null}}");
            (void)send_json("DELETE", CRDS "/hats.example.com", "");
            for (int n = 0; n < 60; n++)
                turn(300 * NS_PER_MS);
        }
        for (int i = 0; i < 40; i++) {
            run();
            turn(NS_PER_S);
        }
        run();
        ask("GET", CRDS "/hats.example.com", "", 404);
        end();
    }
}

#define IN_T "/api/v1/namespaces/t"
#define HELD "\"finalizers\":[\"example.com/b\",\"example.com/a\"]"
#define REMAIN "Some resources are remaining: "
#define REMAIN_FOR "Some content in the namespace has finalizers remaining: "

static void make_namespace(uint64_t seed, unsigned inline_percent)
{
    begin(seed, inline_percent);
    ask("POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"t\"}}", 201);
}

/* Waits for the next round of all purges. */
static void later(void)
{
    clock_sim_advance(&bed->clock, INT64_C(31000000000));
    fake_set_now(bed->engine, bed->clock.mono_ns);
    run();
}

static void tells(const char *path, const char *part)
{
    struct peer *peer = send_json("GET", path, "");
    run();
    assert_answer(peer, 200, part);
}

static void release(const char *path)
{
    struct peer *peer = send_patch(path, "{\"metadata\":{\"finalizers\":null}}");
    run();
    assert_answer(peer, 200, NULL);
}

static void pods_are_deleted_before_everything_else(void **state)
{
    (void)state;
    make_namespace(1, 50);
    ask("POST", IN_T "/configmaps", "{\"metadata\":{\"name\":\"c\"}}", 201);
    ask("POST", IN_T "/pods",
        "{\"metadata\":{\"name\":\"p\"," HELD "},\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}",
        201);
    ask("DELETE", IN_T, "", 200);
    later();
    ask("GET", IN_T "/configmaps/c", "", 200);
    tells(IN_T "/pods/p", "deletionTimestamp");
    tells(IN_T, REMAIN "pods. has 1 resource instances\"");
    release(IN_T "/pods/p");
    later();
    ask("GET", IN_T "/configmaps/c", "", 404);
    ask("GET", IN_T, "", 404);
    end();
}

static void conditions_report_the_remaining_objects(void **state)
{
    (void)state;
    make_namespace(2, 50);
    ask("POST", IN_T "/configmaps", "{\"metadata\":{\"name\":\"c\"," HELD "}}", 201);
    ask("POST", IN_T "/secrets", "{\"metadata\":{\"name\":\"s\"," HELD "}}", 201);
    ask("POST", "/apis/apps/v1/namespaces/t/controllerrevisions",
        "{\"metadata\":{\"name\":\"r\",\"finalizers\":[\"example.com/b\"]},"
        "\"data\":{},\"revision\":1}",
        201);
    ask("DELETE", IN_T, "", 200);
    later();
    tells(IN_T, "\"type\":\"NamespaceContentRemaining\",\"status\":\"True\"");
    tells(IN_T, "\"reason\":\"SomeResourcesRemain\",\"message\":\"" REMAIN
                "configmaps. has 1 resource instances, controllerrevisions.apps has 1 resource "
                "instances, secrets. has 1 resource instances\"");
    tells(IN_T, "\"reason\":\"SomeFinalizersRemain\",\"message\":\"" REMAIN_FOR
                "example.com/a in 2 resource instances, example.com/b in 3 resource instances\"");
    tells(IN_T, "\"type\":\"NamespaceDeletionContentFailure\",\"status\":\"False\"");
    release(IN_T "/configmaps/c");
    release("/apis/apps/v1/namespaces/t/controllerrevisions/r");
    later();
    tells(IN_T, REMAIN "secrets. has 1 resource instances\"");
    tells(IN_T, REMAIN_FOR "example.com/a in 1 resource instances, example.com/b in 1 resource "
                           "instances\"");
    struct peer *before = send_json("GET", IN_T, "");
    later();
    struct peer *after = send_json("GET", IN_T, "");
    run();
    assert_true(slice_equal(buf_slice(&before->answer), buf_slice(&after->answer)));
    release(IN_T "/secrets/s");
    later();
    ask("GET", IN_T, "", 404);
    end();
}

/* Each takes a third of the memory of a request, and all are in one page. */
enum { LARGE = 4, LARGE_ITEMS = 300000 };

static void a_page_of_large_objects_keeps_its_finalizers(void **state)
{
    (void)state;
    make_namespace(3, 50);
    struct buf text = {0};
    assert_int_equal(buf_append_text(&text, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
                                            "\"metadata\":{\"name\":\"x\",\"namespace\":\"t\"," HELD
                                            "},\"items\":[0"),
                     ST_OK);
    for (int i = 0; i < LARGE_ITEMS; i++)
        assert_int_equal(buf_append_text(&text, ",0"), ST_OK);
    assert_int_equal(buf_append_text(&text, "]}"), ST_OK);
    char key[64];
    for (int i = 0; i < LARGE; i++) {
        snprintf(key, sizeof(key), "/registry/configmaps/t/c%d", i);
        store(key, buf_slice(&text));
    }
    buf_fini(&text);
    ask("DELETE", IN_T, "", 200);
    for (int i = 0; i < LARGE; i++) {
        snprintf(key, sizeof(key), IN_T "/configmaps/c%d", i);
        tells(key, "deletionTimestamp");
    }
    tells(IN_T, REMAIN "configmaps. has 4 resource instances\"");
    end();
}

enum { RACED = 12 };

/* An object that another client deletes first counts as deleted by the purge. */
static void objects_deleted_by_other_clients_are_not_waited_for(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char text[128];
        make_namespace(seed, 0);
        for (int i = 0; i < RACED; i++) {
            snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"c%d\"}}", i);
            ask("POST", IN_T "/configmaps", text, 201);
        }
        (void)send_json("DELETE", IN_T, "");
        for (int i = 0; i < RACED; i++) {
            snprintf(text, sizeof(text), IN_T "/configmaps/c%d", i);
            (void)send_json("DELETE", text, "");
            loop_turn(bed->loop, 0);
            (void)fake_step(bed->engine);
        }
        run();
        ask("GET", IN_T, "", 404);
        end();
    }
}

/* After a restart the first read of the namespaces fails. */
static void a_start_that_cannot_read_tries_again(void **state)
{
    (void)state;
    make_namespace(5, 100); /* in order: the read of the namespaces fails */
    ask("POST", IN_T "/configmaps", "{\"metadata\":{\"name\":\"c\"," HELD "}}", 201);
    ask("DELETE", IN_T, "", 200);
    for (size_t i = 0; i < bed->count; i++)
        leave(bed->peers[i]);
    kube_api_stop(bed->api);
    run();
    kube_api_free(bed->api);
    assert_int_equal(kube_api_new(&bed->config, bed->engine, bed->shard, bed->loop, &bed->api),
                     ST_OK);
    fake_fail_next(bed->engine, ST_TIMEOUT, SLICE_EMPTY);
    kube_api_start_jobs(bed->api);
    run();
    release(IN_T "/configmaps/c");
    later();
    ask("GET", IN_T, "", 404);
    end();
}

static void an_event_that_is_marked_keeps_its_lease(void **state)
{
    (void)state;
    make_namespace(4, 50);
    ask("POST", IN_T "/events",
        "{\"metadata\":{\"name\":\"e\"," HELD "},\"involvedObject\":{\"namespace\":\"t\"}}", 201);
    assert_int_equal(count_leases(bed->api->event_lease.lease), 1);
    ask("DELETE", IN_T, "", 200);
    tells(IN_T "/events/e", "deletionTimestamp");
    assert_int_equal(count_leases(bed->api->event_lease.lease), 1);
    end();
}

/* A key of a client of the etcd API may be as long as a request. */
static void store_long(const char *prefix, const char *value)
{
    enum { NAME_BYTES = 1400 << 10 };
    struct buf key = {0};
    assert_int_equal(buf_append_text(&key, prefix), ST_OK);
    for (size_t i = 0; i < NAME_BYTES; i++)
        assert_int_equal(buf_append_text(&key, "n"), ST_OK);
    assert_int_equal(buf_append(&key, slice_of("", 1)), ST_OK);
    store((const char *)key.ptr, slice_from_text(value));
    buf_fini(&key);
}

static void names_may_be_very_long(void **state)
{
    (void)state;
    begin(7, 50);
    ask("POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"t\"}}", 201);
    store_long("/registry/configmaps/t/", "{}");
    store_long("/registry/secrets/t/", "{}");
    store_long("/registry/namespaces/",
               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\","
               "\"deletionTimestamp\":\"2023-01-01T00:00:00Z\"},\"spec\":{\"finalizers\":["
               "\"kubernetes\"]}}");
    kube_api_start_jobs(bed->api); /* as at the next start */
    ask("DELETE", IN_T, "", 200);
    later();
    struct peer *all = send_json("GET", "/api/v1/namespaces", "");
    run();
    assert_answer(all, 200, "\"default\"");
    assert_false(said(all, "deletionTimestamp"));
    end();
}

/* -- Beside a kube-controller-manager -- */

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define MANAGER LEASES "/kube-controller-manager"

/* As many seconds after the start of the simulated clock. */
static void renew(const char *method, const char *holder, int second)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"kube-controller-manager\"},\"spec\":{\"holderIdentity\":"
             "\"%s\",\"leaseDurationSeconds\":15,\"renewTime\":\"2023-11-14T22:%02d:%02d."
             "000000Z\"}}",
             holder, 13 + second / 60, second % 60);
    if (method[1] == 'O')
        (void)send_json(method, LEASES, body);
    else
        (void)send_patch(MANAGER, body);
    run();
}

static void pass(int seconds)
{
    for (int i = 0; i < seconds; i++) {
        clock_sim_advance(&bed->clock, NS_PER_S);
        fake_set_now(bed->engine, bed->clock.mono_ns);
        run();
    }
}

static void make_namespace_with_object(uint64_t seed)
{
    make_namespace(seed, 50);
    ask("POST", IN_T "/configmaps", "{\"metadata\":{\"name\":\"c\"}}", 201);
}

static void a_namespace_is_left_to_the_controller_manager(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        make_namespace_with_object(seed);
        renew("POST", "manager", 20);
        ask("DELETE", IN_T, "", 200);
        for (int second = 34; second < 90; second += 14) {
            pass(14);
            renew("PATCH", "manager", second);
        }
        ask("DELETE", IN_T, "", 200); /* requested again, it still waits */
        ask("GET", IN_T "/configmaps/c", "", 200);
        ask("GET", IN_T, "", 200);
        end();
    }
}

static void a_namespace_is_emptied_when_the_lease_is_not_renewed(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        make_namespace_with_object(seed);
        renew("POST", "manager", 20);
        ask("DELETE", IN_T, "", 200);
        pass(14);
        renew("PATCH", "manager", 34);
        pass(14);
        ask("GET", IN_T "/configmaps/c", "", 200);
        pass(18);
        ask("GET", IN_T, "", 404);
        end();
    }
}

/* As at a stop of the manager, which gives the lease back. */
static void a_lease_without_holder_is_not_waited_for(void **state)
{
    (void)state;
    make_namespace_with_object(1);
    renew("POST", "", 20);
    ask("DELETE", IN_T, "", 200);
    ask("GET", IN_T, "", 404);
    end();
}

/* What the manager does: it deletes the objects and removes the finalizer. */
static void a_purge_ends_when_the_manager_has_removed_the_namespace(void **state)
{
    (void)state;
    make_namespace_with_object(1);
    renew("POST", "manager", 20);
    ask("DELETE", IN_T, "", 200);
    ask("DELETE", IN_T "/configmaps/c", "", 200);
    ask("PUT", IN_T "/finalize", "{\"metadata\":{\"name\":\"t\"},\"spec\":{\"finalizers\":[]}}",
        200);
    ask("GET", IN_T, "", 404);
    ask("POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"t\"}}", 201);
    pass(60);
    ask("GET", IN_T, "", 200);
    end();
}

/* A kube-apiserver empties definitions itself. */
static void a_definition_is_emptied_beside_the_controller_manager(void **state)
{
    (void)state;
    begin(1, 50);
    make_hats();
    renew("POST", "manager", 20);
    ask("POST", HATS,
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":\"h\"}}", 201);
    ask("DELETE", CRDS "/hats.example.com", "", 200);
    ask("GET", CRDS "/hats.example.com", "", 404);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_deleted_before_everything_else),
        cmocka_unit_test(names_may_be_very_long),
        cmocka_unit_test(conditions_report_the_remaining_objects),
        cmocka_unit_test(a_page_of_large_objects_keeps_its_finalizers),
        cmocka_unit_test(an_event_that_is_marked_keeps_its_lease),
        cmocka_unit_test(objects_deleted_by_other_clients_are_not_waited_for),
        cmocka_unit_test(a_start_that_cannot_read_tries_again),
        cmocka_unit_test(a_purge_that_is_started_again_runs_one_operation_at_a_time),
        cmocka_unit_test(a_namespace_is_left_to_the_controller_manager),
        cmocka_unit_test(a_namespace_is_emptied_when_the_lease_is_not_renewed),
        cmocka_unit_test(a_lease_without_holder_is_not_waited_for),
        cmocka_unit_test(a_purge_ends_when_the_manager_has_removed_the_namespace),
        cmocka_unit_test(a_definition_is_emptied_beside_the_controller_manager),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
