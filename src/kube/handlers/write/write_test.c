/* Writes over an engine that completes at once, late or in any order, by clients that may
 * disconnect. */
#include "kube/handlers/write/change.h"
#include "kube/server/bed_test.h"
#include "kube/server/starved_test.h"

/* -- Tests -- */

/* How the body of a patch that sets data.kN is written, by its type. */
static const struct {
    const char *type, *format;
} patches[] = {
    {"application/merge-patch+json", "{\"data\":{\"k%d\":\"v\"}}"},
    {"application/json-patch+json", "[{\"op\":\"add\",\"path\":\"/data/k%d\",\"value\":\"v\"}]"},
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

static size_t patch_type; /* patch type of every_patch_arrives */

static void every_patch_arrives(void)
{
    char body[64];
    bed->spread = true;
    struct peer *made =
        send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}");
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

static void concurrent_patches_are_all_applied(void **state)
{
    (void)state;
    for (patch_type = 0; patch_type < COUNT_OF(patches); patch_type++)
        for_each_seed(every_patch_arrives);
}

/* More changes of one object than the queue holds: the others get 429, and no change that
 * was taken gets a conflict, though each write would make all other attempts fail. */
static void a_crowd_changes_one_object_without_conflicts(void **state)
{
    (void)state;
    enum { CROWD = KUBE_WRITE_QUEUE_WAITING_MAX + 101 };
    size_t fine = 0, refused = 0, missing = 0;
    char key[32];
    begin(11, 0);
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"},\"data\":{}}");
    run();
    assert_answer(made, 201, NULL);
    size_t first = bed->count;
    send_patches(2, CROWD);
    for (size_t i = 0; i < 50; i++) /* some leave while they wait */
        leave(bed->peers[first + 20 * i + 5]);
    run();
    struct peer *got = send_json("GET", CMS "/a", "");
    run();
    for (size_t i = 0; i < CROWD; i++) {
        struct peer *peer = bed->peers[first + i];
        snprintf(key, sizeof(key), "\"k%zu\":\"v\"", i);
        fine += peer->code == 200;
        refused += peer->code == 429;
        missing += peer->code == 200 && !said(got, key);
        if (peer->code != 200 && peer->code != 429)
            assert_true(peer->over);
    }
    assert_int_equal(missing, 0);
    assert_int_equal(refused, 100); /* one is under way, the others wait */
    assert_int_equal(fine, CROWD - 100 - 50);
    end();
}

#define ROLES "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"

/* One of several concurrent PUTs of a missing object creates it, and the others change it. */
static void put_by_many(void)
{
    char body[160];
    struct peer *peers[10];
    unsigned created = 0;
    bed->spread = true;
    for (int i = 0; i < 10; i++) {
        snprintf(body, sizeof(body),
                 "{\"metadata\":{\"name\":\"r\",\"resourceVersion\":\"%s\",\"labels\":{\"n\":"
                 "\"%d\"}}}",
                 i % 3 ? "" : "0", i);
        peers[i] = send_json(i == 5 ? "POST" : "PUT", i == 5 ? ROLES : ROLES "/r", body);
    }
    run();
    for (int i = 0; i < 10; i++) {
        created += peers[i]->code == 201;
        assert_true(peers[i]->code == 201 || peers[i]->code == (i == 5 ? 409 : 200));
    }
    assert_int_equal(created, 1);
}

static void concurrent_puts_create_once_and_then_update(void **state)
{
    (void)state;
    for_each_seed(put_by_many);
}

static void a_put_creates_whatever_version_it_names(void **state)
{
    (void)state;
    begin(12, 50);
    struct peer *made =
        send_json("PUT", ROLES "/r", "{\"metadata\":{\"name\":\"r\",\"resourceVersion\":\"77\"}}");
    struct peer *odd =
        send_json("PUT", ROLES "/s", "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"x\"}}");
    struct peer *other =
        send_json("PUT", ROLES "/t", "{\"metadata\":{\"name\":\"t\",\"uid\":\"u\"}}");
    struct peer *none =
        send_json("PUT", CMS "/c", "{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"77\"}}");
    run();
    assert_answer(made, 201, "\"resourceVersion\":\"6\"");
    assert_answer(odd, 500, "strconv.ParseUint: parsing \\\"x\\\": invalid syntax");
    assert_answer(other, 409, "UID in precondition: u, UID in object meta: \"");
    assert_answer(none, 404, NULL);
    end();
}

static void a_dry_run_creates_whatever_version_it_names(void **state)
{
    (void)state;
    const char *body = "{\"metadata\":{\"name\":\"d\",\"resourceVersion\":\"5\"}}";
    const char *text = "{\"metadata\":{\"name\":\"e\",\"resourceVersion\":\"e\"}}";
    begin(13, 50);
    struct peer *dry = send_json("POST", CMS "?dryRun=All", body);
    struct peer *put = send_json("PUT", ROLES "/d?dryRun=All", body);
    struct peer *real = send_json("POST", CMS, body);
    struct peer *odd = send_json("POST", CMS, text);
    run();
    assert_answer(dry, 201, "\"resourceVersion\":\"5\"");
    assert_answer(put, 201, "\"resourceVersion\":\"5\"");
    assert_answer(real, 500, "resourceVersion should not be set on objects to be created");
    assert_answer(odd, 201, "\"resourceVersion\":\"6\"");
    end();
}

/* The warnings of an attempt are discarded with it: each is sent once, whatever the number of
 * tries. */
static void warned_once(void)
{
    struct peer *peers[8];
    bed->spread = true;
    send_json("POST", CMS, "{\"metadata\":{\"name\":\"w\"}}");
    run();
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        peers[i] = send_patch(CMS "/w", "{\"unheard\":1,\"data\":{\"a\":\"b\"}}");
    run();
    for (size_t i = 0; i < COUNT_OF(peers); i++) {
        struct slice fields = buf_slice(&peers[i]->opening.fields), at = fields;
        assert_answer(peers[i], 200, NULL);
        const uint8_t *once = memmem(at.ptr, at.len, "unheard", 7);
        assert_non_null(once);
        size_t behind = (size_t)(once - fields.ptr) + 7;
        assert_null(memmem(once + 7, fields.len - behind, "unheard", 7));
    }
}

static void an_attempt_leaves_nothing_for_the_next(void **state)
{
    (void)state;
    for_each_seed(warned_once);
}

/* The answer has the changed object with its previous version, as in Kubernetes. */
static void the_last_finalizer_is_answered_with_the_version_before(void **state)
{
    (void)state;
    begin(14, 50);
    send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"e.com/x\"]}}");
    run();
    struct peer *marked = send_json("DELETE", CMS "/a", "");
    run();
    assert_answer(marked, 200, "\"resourceVersion\":\"7\"");
    struct peer *freed = send_patch(CMS "/a", "{\"metadata\":{\"finalizers\":null}}");
    run();
    assert_answer(freed, 200, "\"resourceVersion\":\"7\"");
    assert_false(said(freed, "finalizers"));
    struct peer *gone = send_json("GET", CMS "/a", "");
    run();
    assert_answer(gone, 404, NULL);
    end();
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

static void of_two_creates_or_deletes_one_succeeds(void **state)
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

static void calls_end_after_their_client_has_disconnected(void **state)
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
    /* While it is emptied other clients continue to create objects. */
    for (int i = 0; i < 60; i++) {
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"d%d\"}}", i);
        send_json("POST", "/api/v1/namespaces/t/secrets", body);
        fake_step(bed->engine);
        loop_turn(bed->loop, 0);
    }
    run();
    /* Objects that were created just before the mark are deleted in the next round. */
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

static void an_unchanged_object_is_not_written(void **state)
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
                                  "\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":"
                                  "{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":"
                                  "{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
                                  "\"image\":\"i\"}]}}},\"status\":{\"replicas\":7}}");
    run();
    assert_answer(made, 201, "\"generation\":1");
    assert_answer(made, 201, "\"status\":{}");
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

static void an_error_of_the_engine_is_answered(void **state)
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

static void events_share_leases(void **state)
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
    assert_int_equal(count_leases(bed->api->event_lease.lease), 11);
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

/* Each 16 bytes of the patch would double the object. */
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

/* -- Memory that ends anywhere -- */

#define LABELS "\"labels\":{\"a\":\"\\u0062\",\"c\":\"\\u0064\"}"
#define CM "\"apiVersion\":\"v\\u0031\",\"kind\":\"ConfigM\\u0061p\""
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define JSON "application/json"
#define MERGE "application/merge-patch+json"
#define STRATEGIC "application/strategic-merge-patch+json"
#define JSON_PATCH "application/json-patch+json"
#define APPLY "application/apply-patch+yaml"

/* Answers of every sort. */
static const struct starved_request writes[] = {
    {"POST", CMS, JSON, "{\"metadata\":{\"name\":\"\\u0061\"," LABELS "}}"},
    {"POST", CMS, JSON, "{\"metadata\":{\"generateName\":\"g\\u0061\"}}"},
    {"POST", CMS, JSON, "{\"metadata\":{\"name\":\"\\u0041\"}}"},
    {"PUT", CMS "/a", JSON, "{\"metadata\":{\"name\":\"\\u0061\"," LABELS "}}"},
    {"PUT", CMS "/a", JSON, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"\\u0031\"}}"},
    {"PUT", CMS "/a", JSON, "{\"metadata\":{\"name\":\"\\u0062\"}}"},
    {"PATCH", CMS "/a", MERGE, "{\"metadata\":{" LABELS "}}"},
    {"PATCH", CMS "/a", STRATEGIC, "{\"metadata\":{" LABELS "}}"},
    {"PATCH", CMS "/a", STRATEGIC, "{\"metadata\":{\"$retainKeys\":1}}"},
    {"PATCH", CMS "/a", JSON_PATCH,
     "[{\"op\":\"\\u0061dd\",\"path\":\"/data\",\"value\":{\"k\":\"\\u0061\"}}]"},
    {"PATCH", CMS "/a", JSON_PATCH,
     "[{\"op\":\"t\\u0065st\",\"path\":\"/data\",\"value\":\"\\u0061\"}]"},
    {"PATCH", CMS "/a?fieldManager=m", APPLY,
     "{" CM ",\"metadata\":{\"name\":\"a\"," LABELS "},\"data\":{\"k\":\"\\u0061\"}}"},
    {"PATCH", CMS "/a?fieldManager=n", APPLY,
     "{" CM ",\"metadata\":{\"name\":\"\\u0061\"},\"data\":{\"k\":\"\\u0062\"}}"},
    {"PATCH", CMS "/new?fieldManager=n", APPLY,
     "{" CM ",\"metadata\":{\"name\":\"new\"},\"data\":{\"k\":\"\\u0062\"}}"},
    {"PATCH", CMS "/a", MERGE, "{\"immutable\":true}"},
    {"PATCH", CMS "/a", MERGE, "{\"data\":{\"k\":\"\\u0063\"}}"},
    {"POST", DEPLOYMENTS, JSON, "{\"metadata\":{\"name\":\"\\u0064\"},\"spec\":{}}"},
    {"PATCH", DEPLOYMENTS "/d/scale", MERGE, "{\"spec\":{\"replicas\":3}}"},
    {"PATCH", DEPLOYMENTS "/d/status", MERGE,
     "{\"status\":{\"conditions\":[{\"type\":\"\\u0061\"}]}}"},
    {"DELETE", CMS "/a", JSON, "{\"preconditions\":{\"uid\":\"\\u0061\"}}"},
    {"DELETE", CMS "/a", JSON, "{\"propagationPolicy\":\"Orph\\u0061n\"}"},
};

static void an_answer_is_never_made_from_a_failed_allocation(void **state)
{
    (void)state;
    unsigned expected[COUNT_OF(writes)];
    for (int round = 0; round < 3; round++) {
        begin(15, 100);
        size_t *limit = round == 1 ? &bed->api->call_bytes_max : &bed->api->attempt_bytes_max;
        send_json("GET", CMS "/none", ""); /* creates the default namespaces */
        run();
        for (size_t i = 0; i < COUNT_OF(writes); i++) {
            if (round)
                starve(&writes[i], limit, expected[i]);
            else
                expected[i] = starved_send(&writes[i], limit, *limit);
        }
        end();
    }
    assert_true(written_and_starved > 0);
    assert_int_equal(expected[4], 409); /* answers of all sorts are among them */
    assert_int_equal(expected[12], 409);
    assert_int_equal(expected[15], 422);
}

/* -- Objects that a client of the etcd API has stored -- */

/* Members are missing, null, or have another type. */
static const char *const odd_objects[] = {
    "{}",
    "{\"metadata\":null,\"spec\":null,\"status\":null}",
    "{\"metadata\":\"x\"}",
    "{\"metadata\":[],\"spec\":{}}",
    "{\"metadata\":{},\"spec\":\"x\",\"status\":[1],\"data\":7}",
    ("{\"kind\":7,\"apiVersion\":{},\"metadata\":{\"name\":7,\"namespace\":[],\"uid\":{},"
     "\"labels\":[1],\"annotations\":\"x\",\"finalizers\":{\"a\":1},\"ownerReferences\":7,"
     "\"managedFields\":{},\"generation\":\"x\",\"creationTimestamp\":7}}"),
    ("{\"metadata\":{\"name\":\"a\",\"finalizers\":[7,null,{}],\"ownerReferences\":[null],"
     "\"managedFields\":[null,7,{\"fieldsV1\":7}],\"labels\":{\"a\":{}},\"annotations\":{"
     "\"kubectl.kubernetes.io/last-applied-configuration\":\"[\"}}}"),
    ("{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":7,\"deletionGracePeriodSeconds\":\"x\"},"
     "\"spec\":{\"finalizers\":{},\"replicas\":\"x\",\"selector\":[],\"nodeName\":7,"
     "\"terminationGracePeriodSeconds\":[]},\"status\":{\"conditions\":{\"type\":7}}}"),
    ("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"names\":[],\"versions\":[7,{\"schema\":[]}]},"
     "\"status\":{\"acceptedNames\":7,\"storedVersions\":{},\"conditions\":\"x\"}}"),
    ("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"names\":{\"plural\":7,\"shortNames\":{}},"
     "\"versions\":{}},\"status\":7}"),
    ("{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"x\",\"deletionGracePeriodSeconds\":30},"
     "\"spec\":{\"selector\":{\"matchLabels\":[]}},\"status\":{\"conditions\":[null,7]}}"),
    "[]",
    "7",
    "{",
};

static const struct {
    const char *prefix; /* prefix of the key */
    const char *path;   /* path of the collection */
    const char *sub;    /* a subresource that can be written */
} odd_kinds[] = {
    {"/registry/configmaps/default/", CMS, ""},
    {"/registry/pods/default/", "/api/v1/namespaces/default/pods", "/status"},
    {"/registry/deployments/default/", "/apis/apps/v1/namespaces/default/deployments", "/scale"},
    {"/registry/namespaces/", "/api/v1/namespaces", "/finalize"},
    {"/registry/example.com/hats/", HATS, ""},
    {"/registry/apiextensions.k8s.io/customresourcedefinitions/", CRDS, "/status"},
    {"/registry/events/default/", "/apis/events.k8s.io/v1/namespaces/default/events", ""},
};

/* sub: after the name; NULL: the subresource of the kind. */
static const struct {
    const char *method, *sub, *type, *body;
} odd_writes[] = {
    {"PATCH", "", "application/merge-patch+json",
     "{\"metadata\":{\"name\":\"a\",\"labels\":{\"b\":\"c\"}}}"},
    {"PATCH", NULL, "application/merge-patch+json",
     "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":2,\"finalizers\":[]},\"status\":{}}"},
    {"PATCH", "", "application/json-patch+json",
     "[{\"op\":\"add\",\"path\":\"/metadata/name\",\"value\":\"a\"}]"},
    {"PATCH", "", "application/strategic-merge-patch+json",
     "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x.y/z\"],"
     "\"ownerReferences\":[{\"uid\":\"u\"}]}}"},
    {"PATCH", "?fieldManager=m&force=true", "application/apply-patch+yaml",
     "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}"},
    {"PUT", "", "application/json", "{\"metadata\":{\"name\":\"a\"}}"},
    {"PUT", NULL, "application/json", "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":2}}"},
    {"GET", NULL, "application/json", ""},
    {"POST", "/binding", "application/json",
     "{\"metadata\":{\"name\":\"a\"},\"target\":{\"name\":\"n\"}}"},
    {"POST", "/eviction", "application/json", "{\"metadata\":{\"name\":\"a\"}}"},
    {"DELETE", "?propagationPolicy=Foreground", "application/json", ""},
    {"DELETE", "?gracePeriodSeconds=1", "application/json", ""},
    {"DELETE", "", "application/json", ""},
};

/* The code of the answer. Afterwards the collection is deleted. */
static unsigned write_odd(size_t object, size_t kind, size_t write)
{
    char key[96], path[192];
    const char *sub = odd_writes[write].sub ? odd_writes[write].sub : odd_kinds[kind].sub;
    begin(object, 50);
    make_hats();
    snprintf(key, sizeof(key), "%sa", odd_kinds[kind].prefix);
    snprintf(path, sizeof(path), "%s/a%s", odd_kinds[kind].path, sub);
    store(key, slice_from_text(odd_objects[object]));
    struct peer *peer =
        send(odd_writes[write].method, path, odd_writes[write].type, odd_writes[write].body);
    run();
    unsigned code = peer->code;
    send_json("DELETE", odd_kinds[kind].path, "");
    run();
    end();
    return code;
}

/* Every form of an answer. */
static void odd_objects_can_be_read(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    };
    static const char *const ends[] = {"", "?labelSelector=a%3Db&fieldSelector=metadata.name%3Da",
                                       "/a"};
    for (size_t object = 0; object < COUNT_OF(odd_objects); object++) {
        begin(object, 50);
        make_hats();
        for (size_t kind = 0; kind < COUNT_OF(odd_kinds); kind++) {
            char key[96], path[192];
            snprintf(key, sizeof(key), "%sa", odd_kinds[kind].prefix);
            store(key, slice_from_text(odd_objects[object]));
            for (size_t i = 0; i < COUNT_OF(forms) * COUNT_OF(ends); i++) {
                snprintf(path, sizeof(path), "%s%s", odd_kinds[kind].path,
                         ends[i % COUNT_OF(ends)]);
                struct peer *peer = send_with("GET", path, "accept", forms[i / COUNT_OF(ends)], "");
                run();
                assert_true(peer->code);
                leave(peer);
            }
        }
        end();
    }
}

static void odd_objects_can_be_written(void **state)
{
    (void)state;
    unsigned fine = 0;
    for (size_t object = 0; object < COUNT_OF(odd_objects); object++)
        for (size_t kind = 0; kind < COUNT_OF(odd_kinds); kind++)
            for (size_t write = 0; write < COUNT_OF(odd_writes); write++) {
                unsigned code = write_odd(object, kind, write);
                if (!code || (code != 500 && kube_code_is_no_memory(code)))
                    fail_msg("%zu, %zu, %zu: %u", object, kind, write, code);
                fine += code < 300;
            }
    assert_true(fine > 200);
    /* An object without metadata can be changed and deleted. */
    assert_int_equal(write_odd(0, 0, 0), 200);
    assert_int_equal(write_odd(1, 0, COUNT_OF(odd_writes) - 1), 200);
}

static void a_write_can_go_back_in_every_list_of_steps(void **state)
{
    (void)state;
    kube_steps_check();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_can_go_back_in_every_list_of_steps),
        cmocka_unit_test(concurrent_patches_are_all_applied),
        cmocka_unit_test(a_crowd_changes_one_object_without_conflicts),
        cmocka_unit_test(concurrent_puts_create_once_and_then_update),
        cmocka_unit_test(a_put_creates_whatever_version_it_names),
        cmocka_unit_test(a_dry_run_creates_whatever_version_it_names),
        cmocka_unit_test(an_attempt_leaves_nothing_for_the_next),
        cmocka_unit_test(the_last_finalizer_is_answered_with_the_version_before),
        cmocka_unit_test(of_two_creates_or_deletes_one_succeeds),
        cmocka_unit_test(calls_end_after_their_client_has_disconnected),
        cmocka_unit_test(nothing_appears_in_a_namespace_that_is_emptied),
        cmocka_unit_test(a_finalizer_keeps_its_namespace),
        cmocka_unit_test(a_collection_is_deleted_by_its_labels),
        cmocka_unit_test(an_unchanged_object_is_not_written),
        cmocka_unit_test(generation_counts_what_is_not_status),
        cmocka_unit_test(an_error_of_the_engine_is_answered),
        cmocka_unit_test(events_share_leases),
        cmocka_unit_test(a_patch_cannot_take_all_memory),
        cmocka_unit_test(an_answer_is_never_made_from_a_failed_allocation),
        cmocka_unit_test(odd_objects_can_be_written),
        cmocka_unit_test(odd_objects_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
