#include "kube/server/bed_test.h"

#define UID_BYTES 64
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define MANAGER LEASES "/kube-controller-manager"

static void wants_garbage(struct engine *engine)
{
    (void)engine;
    bed->config.garbage = true;
}

static int setup(void **state)
{
    (void)state;
    bed_alter = wants_garbage;
    return 0;
}

static void pass(int64_t seconds)
{
    bed->clock.mono_ns += seconds * NS_PER_S;
    run();
}

/* Returns the uid of a new ConfigMap. */
static const char *make(const char *name, const char *more)
{
    static char uids[16][UID_BYTES];
    static size_t at;
    char body[1024];
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"%s}}", name, more);
    struct peer *peer = ask("POST", CMS, body, 201);
    const char *uid = memmem(peer->answer.ptr, peer->answer.len, "\"uid\":\"", 7);
    assert_non_null(uid);
    at = (at + 1) % COUNT_OF(uids);
    snprintf(uids[at], UID_BYTES, "%.*s", 36, uid + 7);
    return uids[at];
}

static const char *owned_as(const char *kind, const char *name, const char *uid, const char *more)
{
    static char text[512];
    snprintf(text, sizeof(text),
             ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"name\":\"%s\","
             "\"uid\":\"%s\"%s}]",
             kind, name, uid, more);
    return text;
}

static const char *owned(const char *name, const char *uid)
{
    return owned_as("ConfigMap", name, uid, "");
}

static const char *blocked(const char *name, const char *uid)
{
    return owned_as("ConfigMap", name, uid, ",\"blockOwnerDeletion\":true");
}

static bool exists(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), CMS "/%s", name);
    struct peer *peer = send_json("GET", path, "");
    run();
    return peer->code == 200;
}

static void delete (const char *name, const char *policy)
{
    char path[256];
    snprintf(path, sizeof(path), CMS "/%s?propagationPolicy=%s", name, policy);
    ask("DELETE", path, "", 200);
}

static void dependents_of_a_deleted_owner_are_deleted(void)
{
    const char *uid = make("owner", "");
    make("child", owned("owner", uid));
    make("other", "");
    const char *child = make("second", owned("owner", uid));
    make("grandchild", owned("second", child));
    assert_true(exists("child") && exists("grandchild"));
    delete ("owner", "Background");
    assert_false(exists("owner") || exists("child") || exists("second") || exists("grandchild"));
    assert_true(exists("other"));
}

static void an_absent_owner_is_noticed(void)
{
    make("child", owned("never", "00000000-0000-0000-0000-000000000001"));
    assert_false(exists("child"));
    make("owner", "");
    make("child", owned("owner", "00000000-0000-0000-0000-000000000002")); /* another uid */
    assert_false(exists("child"));
}

static void a_dependent_with_another_owner_loses_only_the_reference(void)
{
    char refs[1024];
    char first[UID_BYTES];
    snprintf(first, sizeof(first), "%s", make("first", ""));
    const char *second = make("second", "");
    snprintf(refs, sizeof(refs),
             ",\"ownerReferences\":["
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"first\",\"uid\":\"%s\"},"
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"second\",\"uid\":\"%s\"}]",
             first, second);
    make("child", refs);
    delete ("first", "Background");
    struct peer *peer = ask("GET", CMS "/child", "", 200);
    assert_true(said(peer, second) && !said(peer, first));
    delete ("second", "Background");
    assert_false(exists("child"));
}

static void an_orphan_loses_its_reference_and_stays(void)
{
    const char *uid = make("owner", "");
    make("child", owned("owner", uid));
    delete ("owner", "Orphan");
    assert_false(exists("owner"));
    assert_false(said(ask("GET", CMS "/child", "", 200), "ownerReferences"));
}

static void a_foreground_deletion_waits_for_dependents_that_block(void)
{
    const char *uid = make("owner", "");
    char text[600];
    snprintf(text, sizeof(text), "%s,\"finalizers\":[\"example.com/hold\"]", blocked("owner", uid));
    make("child", text);
    make("free", owned("owner", uid));
    delete ("owner", "Foreground");
    assert_true(exists("owner"));
    assert_true(said(ask("GET", CMS "/child", "", 200), "deletionTimestamp"));
    assert_false(exists("free"));
    send_patch(CMS "/child", "{\"metadata\":{\"finalizers\":null}}");
    run();
    assert_false(exists("child") || exists("owner"));
}

static void objects_that_own_each_other_are_deleted(void)
{
    const char *a = make("a", "");
    char text[600];
    const char *b = make("b", blocked("a", a));
    snprintf(text, sizeof(text), "{\"metadata\":{%s}}", blocked("b", b) + 1);
    struct peer *peer = send_patch(CMS "/a", text);
    run();
    assert_answer(peer, 200, NULL);
    delete ("a", "Foreground");
    assert_false(exists("a") || exists("b"));
}

static void an_owner_of_a_kind_that_nobody_defines_is_not_missing(void)
{
    make("child", owned_as("Hat", "a", "00000000-0000-0000-0000-000000000001", ""));
    assert_true(exists("child"));
    pass(31);
    assert_true(exists("child"));
}

static void owners_of_custom_kinds_and_outside_of_namespaces_are_found(void)
{
    make_hats();
    struct peer *peer = ask(
        "POST", HATS,
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"metadata\":{\"name\":\"a\"}}", 201);
    const char *uid = memmem(peer->answer.ptr, peer->answer.len, "\"uid\":\"", 7);
    char text[512];
    snprintf(text, sizeof(text),
             ",\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"Hat\",\"name\":"
             "\"a\",\"uid\":\"%.36s\"}]",
             uid + 7);
    make("child", text);
    assert_true(exists("child"));
    ask("DELETE", HATS "/a", "", 200);
    assert_false(exists("child"));
}

static void an_owner_in_another_namespace_is_absent(void)
{
    const char *uid = make("owner", "");
    char body[600];
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"child\"%s}}", owned("owner", uid));
    make("first", owned("owner", uid));
    ask("POST", "/api/v1/namespaces/kube-public/configmaps", body, 201);
    ask("GET", "/api/v1/namespaces/kube-public/configmaps/child", "", 404);
    assert_true(exists("first"));
}

static void events_are_not_collected(void)
{
    ask("POST", "/api/v1/namespaces/default/events",
        "{\"metadata\":{\"name\":\"e\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
        "\"ConfigMap\",\"name\":\"x\",\"uid\":\"1\"}]},\"involvedObject\":{\"namespace\":"
        "\"default\"}}",
        201);
    ask("GET", "/api/v1/namespaces/default/events/e", "", 200);
}

static void renew(const char *method, const char *path, int64_t second)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"kube-controller-manager\"},\"spec\":{\"holderIdentity\":"
             "\"manager\",\"leaseDurationSeconds\":15,\"renewTime\":\"2023-11-14T22:%02d:%02d."
             "000000Z\"}}",
             (int)(13 + second / 60), (int)(second % 60));
    if (method[1] == 'O')
        ask("POST", path, body, 201);
    else
        send_patch(path, body);
    run();
}

static void the_controller_manager_goes_first(void)
{
    const char *uid = make("owner", "");
    make("child", owned("owner", uid));
    renew("POST", LEASES, 20);
    delete ("owner", "Background");
    assert_true(exists("child"));
    pass(14);
    renew("PATCH", MANAGER, 34);
    pass(14);
    assert_true(exists("child"));
    pass(3);
    assert_false(exists("child"));
}

static void what_the_last_run_has_left_is_collected(void)
{
    make("child", owned("owner", "00000000-0000-0000-0000-000000000001"));
    assert_true(exists("child"));
    bed->config.garbage = true;
    kube_api_start_jobs(bed->api);
    run();
    assert_false(exists("child"));
}

/* Nothing is read but the default namespace. */
static void an_unused_store_is_not_examined(void)
{
    store("/registry/configmaps/default/child",
          SLICE_LITERAL("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                        "\"child\",\"namespace\":\"default\",\"uid\":\"1\",\"ownerReferences\":[{"
                        "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"x\",\"uid\":"
                        "\"2\"}]}}"));
    pass(60);
    store("/registry/x", SLICE_LITERAL("y"));
    assert_true(exists("child"));
    assert_false(exists("child")); /* the first request has begun it */
}

/* Two collectors of one store do not disturb each other. */
static void two_collectors_work_together(void)
{
    kube_api_start_jobs(bed->other);
    run();
    dependents_of_a_deleted_owner_are_deleted();
    an_orphan_loses_its_reference_and_stays();
}

static void it_stops_in_the_middle(void)
{
    const char *uid = make("owner", "");
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "child%d", i);
        make(name, owned("owner", uid));
    }
    send_json("DELETE", CMS "/owner", "");
    for (uint64_t i = 0; i < bed->seed; i++) {
        turn_once();
        fake_step(bed->engine);
    }
}

#define TEST(name)                    \
    static void test_##name(void **s) \
    {                                 \
        (void)s;                      \
        for_each_seed(name);          \
    }
TEST(dependents_of_a_deleted_owner_are_deleted)
TEST(an_absent_owner_is_noticed)
TEST(a_dependent_with_another_owner_loses_only_the_reference)
TEST(an_orphan_loses_its_reference_and_stays)
TEST(a_foreground_deletion_waits_for_dependents_that_block)
TEST(objects_that_own_each_other_are_deleted)
TEST(an_owner_of_a_kind_that_nobody_defines_is_not_missing)
TEST(owners_of_custom_kinds_and_outside_of_namespaces_are_found)
TEST(an_owner_in_another_namespace_is_absent)
TEST(events_are_not_collected)
TEST(the_controller_manager_goes_first)

static void test_what_the_last_run_has_left_is_collected(void **state)
{
    (void)state;
    bed_alter = NULL;
    for_each_seed(what_the_last_run_has_left_is_collected);
    bed_alter = wants_garbage;
}

TEST(an_unused_store_is_not_examined)
TEST(two_collectors_work_together)
TEST(it_stops_in_the_middle)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dependents_of_a_deleted_owner_are_deleted),
        cmocka_unit_test(test_an_absent_owner_is_noticed),
        cmocka_unit_test(test_a_dependent_with_another_owner_loses_only_the_reference),
        cmocka_unit_test(test_an_orphan_loses_its_reference_and_stays),
        cmocka_unit_test(test_a_foreground_deletion_waits_for_dependents_that_block),
        cmocka_unit_test(test_objects_that_own_each_other_are_deleted),
        cmocka_unit_test(test_an_owner_of_a_kind_that_nobody_defines_is_not_missing),
        cmocka_unit_test(test_owners_of_custom_kinds_and_outside_of_namespaces_are_found),
        cmocka_unit_test(test_an_owner_in_another_namespace_is_absent),
        cmocka_unit_test(test_events_are_not_collected),
        cmocka_unit_test(test_the_controller_manager_goes_first),
        cmocka_unit_test(test_what_the_last_run_has_left_is_collected),
        cmocka_unit_test(test_an_unused_store_is_not_examined),
        cmocka_unit_test(test_two_collectors_work_together),
        cmocka_unit_test(test_it_stops_in_the_middle),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
