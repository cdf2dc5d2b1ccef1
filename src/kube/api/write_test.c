/* Writes over an engine that completes at once, late or in any order, and to peers that leave. */
#include "kube/api/bed_test.h"
#include "kube/api/purge.h"
#include "kube/api/schema.h"


/* -- Tests -- */

/* How the body of a patch that sets data.kN is written, by its type. */
static const struct {
    const char *type, *format;
} patches[] = {
    {"application/merge-patch+json", "{\"data\":{\"k%d\":\"v\"}}"},
    {"application/json-patch+json",
     "[{\"op\":\"add\",\"path\":\"/data/k%d\",\"value\":\"v\"}]"},
    {"application/strategic-merge-patch+json", "{\"data\":{\"k%d\":\"v\"}}"},
    {"application/apply-patch+yaml",
     "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},"
     "\"data\":{\"k%d\":\"v\"}}"},
};

static void send_patches(size_t type, int count)
{
    char path[128], body[256];
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), CMS "/a?fieldManager=m%d", i);
        snprintf(body, sizeof(body), patches[type].format, i);
        send("PATCH", path, patches[type].type, body);
    }
}

static size_t patch_type; /* of every_patch_arrives */

static void every_patch_arrives(void)
{
    char body[64];
    bed->config.schema = &kube_builtin_schema;
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"},\"data\":{}}");
    run();
    assert_answer(made, 201, "\"creationTimestamp\":\"2023-11-14T22:13:20Z\"");
    send_patches(patch_type, 20);
    run();
    struct peer *got = send_json("GET", CMS "/a", "");
    run();
    for (int i = 0; i < 20; i++) {
        snprintf(body, sizeof(body), "\"k%d\":\"v\"", i);
        assert_answer(got, 200, body);
    }
}

static void patches_that_meet_are_all_applied(void **state)
{
    (void)state;
    for (patch_type = 0; patch_type < COUNT_OF(patches); patch_type++)
        for_each_seed(every_patch_arrives);
}

static void one_of_two(void)
{
    struct peer *a = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    struct peer *b = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    run();
    assert_int_equal(a->code + b->code, 201 + 409);
    struct peer *first = send_json("DELETE", CMS "/a", "");
    struct peer *second = send_json("DELETE", CMS "/a", "");
    run();
    assert_int_equal(first->code + second->code, 200 + 404);
}

static void of_two_who_create_or_delete_one_does(void **state)
{
    (void)state;
    for_each_seed(one_of_two);
}

static void gone_peers(void)
{
    static const struct {
        const char *method, *path, *body;
    } requests[] = {
        {"POST", CMS, "{\"metadata\":{\"generateName\":\"a\"}}"},
        {"PUT", CMS "/kept", "{\"metadata\":{\"name\":\"kept\"},\"data\":{\"a\":\"b\"}}"},
        {"DELETE", CMS, ""},
        {"DELETE", CMS "/kept", ""},
        {"DELETE", "/api/v1/namespaces/kube-node-lease", ""},
    };
    send_json("POST", CMS, "{\"metadata\":{\"name\":\"kept\"}}");
    run();
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct peer *peer = send_json(requests[i].method, requests[i].path, requests[i].body);
        leave(peer);
        fake_step(bed->engine);
        loop_turn(bed->loop, 0);
    }
    run();
}

static void calls_whose_peers_have_gone_end_quietly(void **state)
{
    (void)state;
    for_each_seed(gone_peers);
}

static void emptied_for_good(void)
{
    char path[64], body[64];
    send_json("POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"t\"}}");
    run();
    for (int i = 0; i < 60; i++) {
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"c%d\"}}", i);
        send_json("POST", "/api/v1/namespaces/t/configmaps", body);
    }
    run();
    struct peer *deleted = send_json("DELETE", "/api/v1/namespaces/t", "");
    /* While it is emptied others go on creating. */
    for (int i = 0; i < 60; i++) {
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"d%d\"}}", i);
        send_json("POST", "/api/v1/namespaces/t/secrets", body);
        fake_step(bed->engine);
        loop_turn(bed->loop, 0);
    }
    run();
    /* What slipped in before the mark was found late: the next round takes it. */
    clock_sim_advance(&bed->clock, INT64_C(2000000000));
    run();
    assert_answer(deleted, 200, "\"phase\":\"Terminating\"");
    snprintf(path, sizeof(path), "/api/v1/namespaces/t");
    struct peer *namespace = send_json("GET", path, "");
    struct peer *secrets = send_json("GET", "/api/v1/namespaces/t/secrets/d0", "");
    struct peer *maps = send_json("GET", "/api/v1/namespaces/t/configmaps/c59", "");
    run();
    assert_answer(namespace, 404, NULL);
    assert_answer(secrets, 404, NULL);
    assert_answer(maps, 404, NULL);
}

static void nothing_appears_in_a_namespace_that_is_emptied(void **state)
{
    (void)state;
    for_each_seed(emptied_for_good);
}

static void a_finalizer_keeps_its_namespace(void **state)
{
    (void)state;
    begin(1, 50);
    send_json("POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"t\"}}");
    run();
    send_json("POST", "/api/v1/namespaces/t/configmaps",
              "{\"metadata\":{\"name\":\"c\",\"finalizers\":[\"e.com/x\"]}}");
    run();
    send_json("DELETE", "/api/v1/namespaces/t", "");
    run();
    struct peer *kept = send_json("GET", "/api/v1/namespaces/t/configmaps/c", "");
    run();
    assert_answer(kept, 200, "\"deletionTimestamp\"");
    struct peer *late =
        send_json("POST", "/api/v1/namespaces/t/configmaps", "{\"metadata\":{\"name\":\"d\"}}");
    run();
    assert_answer(late, 403, "NamespaceTerminating");
    struct peer *freed =
        send_patch("/api/v1/namespaces/t/configmaps/c", "{\"metadata\":{\"finalizers\":null}}");
    run();
    assert_answer(freed, 200, NULL);
    clock_sim_advance(&bed->clock, INT64_C(31000000000));
    run();
    struct peer *gone = send_json("GET", "/api/v1/namespaces/t", "");
    run();
    assert_answer(gone, 404, "namespaces \\\"t\\\" not found");
    end();
}

static void a_collection_is_deleted_by_its_labels(void **state)
{
    (void)state;
    begin(7, 50);
    char body[96];
    for (int i = 0; i < 205; i++) {
        snprintf(body, sizeof(body),
                 "{\"metadata\":{\"name\":\"c%03d\",\"labels\":{\"n\":\"%d\"}}}", i, i % 2);
        send_json("POST", CMS, body);
    }
    run();
    struct peer *dry = send_json("DELETE", CMS "?labelSelector=n%3D1&dryRun=All", "");
    run();
    assert_answer(dry, 200, "\"name\":\"c203\"");
    struct peer *done = send_json("DELETE", CMS "?labelSelector=n%3D1", "");
    run();
    assert_answer(done, 200, "\"name\":\"c203\"");
    assert_false(said(done, "\"name\":\"c204\""));
    struct peer *gone = send_json("GET", CMS "/c203", ""),
                *kept = send_json("GET", CMS "/c204", "");
    run();
    assert_answer(gone, 404, NULL);
    assert_answer(kept, 200, NULL);
    end();
}

static void what_is_the_same_is_not_written(void **state)
{
    (void)state;
    begin(2, 100);
    struct peer *made = send_json(
        "POST", CMS, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"a\":\"b\",\"c\":\"d\"}}");
    run();
    assert_answer(made, 201, "\"resourceVersion\":\"6\"");
    struct peer *same = send_json(
        "PUT", CMS "/a", "{\"data\":{\"c\":\"d\",\"a\":\"b\"},\"metadata\":{\"name\":\"a\"}}");
    run();
    assert_answer(same, 200, "\"resourceVersion\":\"6\"");
    end();
}

static void generation_counts_what_is_not_status(void **state)
{
    (void)state;
    const char *path = "/apis/apps/v1/namespaces/default/deployments/d";
    char sub[128];
    begin(3, 50);
    struct peer *made = send_json("POST", "/apis/apps/v1/namespaces/default/deployments",
                                  "{\"metadata\":{\"name\":\"d\",\"generation\":9},"
                                  "\"spec\":{\"replicas\":1},\"status\":{\"replicas\":7}}");
    run();
    assert_answer(made, 201, "\"generation\":1");
    assert_false(said(made, "\"status\""));
    struct peer *labeled = send_patch(path, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    run();
    assert_answer(labeled, 200, "\"generation\":1");
    snprintf(sub, sizeof(sub), "%s/status", path);
    struct peer *status =
        send_patch(sub, "{\"status\":{\"replicas\":3},\"spec\":{\"replicas\":9}}");
    run();
    assert_answer(status, 200, "\"status\":{\"replicas\":3}");
    assert_answer(status, 200, "\"generation\":1");
    struct peer *spec = send_patch(path, "{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":8}}");
    run();
    assert_answer(spec, 200, "\"generation\":2");
    assert_answer(spec, 200, "\"status\":{\"replicas\":3}");
    snprintf(sub, sizeof(sub), "%s/scale", path);
    struct peer *scaled = send_patch(sub, "{\"spec\":{\"replicas\":5}}");
    struct peer *bad = send_patch(sub, "{\"spec\":{\"replicas\":-5}}");
    run();
    assert_answer(scaled, 200, "\"spec\":{\"replicas\":5}");
    assert_answer(bad, 422, "must be greater than or equal to 0");
    end();
}

static void a_fault_of_the_engine_is_told(void **state)
{
    (void)state;
    begin(4, 100);
    send_json("GET", CMS, ""); /* the first request makes the default namespaces */
    run();
    fake_fail_next(bed->engine, ST_TIMEOUT, SLICE_EMPTY);
    struct peer *peer = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    run();
    assert_answer(peer, 504, "Timeout");
    fake_fail_next(bed->engine, ST_NO_SPACE, SLICE_EMPTY);
    peer = send_json("DELETE", CMS "/a", "");
    run();
    assert_answer(peer, 500, "database space exceeded");
    end();
}

static void events_hang_on_leases_that_they_share(void **state)
{
    (void)state;
    const char *path = "/api/v1/namespaces/default/events";
    begin(6, 50);
    for (int i = 0; i < 10; i++) {
        struct peer *peer = send_json("POST", path, "{\"metadata\":{\"generateName\":\"e\"}}");
        run();
        assert_answer(peer, 201, NULL);
    }
    struct peer *first = send_json("POST", path, "{\"metadata\":{\"name\":\"first\"}}");
    run();
    assert_answer(first, 201, NULL);
    struct peer *again = send_patch("/api/v1/namespaces/default/events/first", "{\"count\":2}");
    run();
    assert_answer(again, 200, "\"count\":2");
    assert_int_equal(count_leases(0), 1);
    assert_int_equal(count_leases(bed->face->expiry.lease), 11);
    clock_sim_advance(&bed->clock, INT64_C(61000000000));
    send_json("POST", path, "{\"metadata\":{\"name\":\"later\"}}");
    run();
    assert_int_equal(count_leases(0), 2);
    fake_fail_next(bed->engine, ST_NO_SPACE, SLICE_EMPTY);
    clock_sim_advance(&bed->clock, INT64_C(61000000000));
    struct peer *gone = send_json("POST", path, "{\"metadata\":{\"name\":\"gone\"}}");
    leave(gone);
    run();
    end();
}

/* Each 16 bytes of the patch would double what is there. */
static void a_patch_cannot_take_all_memory(void **state)
{
    (void)state;
    begin(5, 100);
    struct buf patch = {0};
    send_json(
        "POST", CMS,
        "{\"metadata\":{\"name\":\"a\"},\"data\":{\"a\":\"0123456789abcdef0123456789abcdef\"}}");
    assert_int_equal(buf_append_text(&patch, "["), ST_OK);
    for (int i = 0; i < 40; i++)
        assert_int_equal(buf_append_format(&patch,
                                           "%s{\"op\":\"copy\",\"from\":\"/data\",\"path\":"
                                           "\"/data/x%d\"}",
                                           i ? "," : "", i),
                         ST_OK);
    assert_int_equal(buf_append(&patch, slice_of("]", 2)), ST_OK);
    struct peer *peer =
        send("PATCH", CMS "/a", "application/json-patch+json", (const char *)patch.ptr);
    run();
    assert_answer(peer, 413, "RequestEntityTooLarge");
    buf_fini(&patch);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches_that_meet_are_all_applied),
        cmocka_unit_test(of_two_who_create_or_delete_one_does),
        cmocka_unit_test(calls_whose_peers_have_gone_end_quietly),
        cmocka_unit_test(nothing_appears_in_a_namespace_that_is_emptied),
        cmocka_unit_test(a_finalizer_keeps_its_namespace),
        cmocka_unit_test(a_collection_is_deleted_by_its_labels),
        cmocka_unit_test(what_is_the_same_is_not_written),
        cmocka_unit_test(generation_counts_what_is_not_status),
        cmocka_unit_test(a_fault_of_the_engine_is_told),
        cmocka_unit_test(events_hang_on_leases_that_they_share),
        cmocka_unit_test(a_patch_cannot_take_all_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
