/* Requests to an API with roles and bindings: which clients are admitted, and what is refused at
 * the limits. */
#include "kube/policy/access/identity.h"

#include "base/memory/budget.h"
#include "kube/policy/access/rbac/binding.h"
#include "kube/policy/access/rbac/role.h"
#include "kube/server/bed_test.h"

#define ROLES "/registry/clusterroles/"
#define BINDINGS "/registry/clusterrolebindings/"

static void start(unsigned inline_percent)
{
    bed_authorization = KUBE_AUTHORIZATION_RBAC;
    begin(1, inline_percent);
    bed_authorization = KUBE_AUTHORIZATION_ALWAYS_ALLOW;
}

static void put(const char *prefix, const char *name, struct slice json)
{
    char key[256];
    snprintf(key, sizeof(key), "%s%s", prefix, name);
    store(key, json);
    run_watching();
}

static void put_role(const char *name, const char *rules)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(
        buf_append_format(&text, "{\"metadata\":{\"name\":\"%s\"},\"rules\":[%s]}", name, rules),
        ST_OK);
    put(ROLES, name, buf_slice(&text));
}

static void put_binding(const char *name, const char *role, const char *kind, const char *subject)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(
        buf_append_format(&text,
                          "{\"metadata\":{\"name\":\"%s\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                          "\"name\":\"%s\"},\"subjects\":[{\"kind\":\"%s\",\"name\":\"%s\"}]}",
                          name, role, kind, subject),
        ST_OK);
    put(BINDINGS, name, buf_slice(&text));
}

enum { OBJECT_BYTES_MAX = 1536 << 10 }; /* limit on an object that can be written through the API */

#define READS "{\"verbs\":[\"get\",\"list\"],\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"]}"

/* The answer to a list of config maps by this user; NULL: without credentials. */
static struct peer *list_as(const char *user)
{
    bed->peer_name = user;
    struct peer *peer = send_json("GET", CMS, "");
    bed->peer_name = NULL;
    run_watching();
    return peer;
}

static void users_may_do_what_their_bindings_allow(void **state)
{
    static const unsigned percents[] = {0, 50, 100};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(percents); i++) {
        start(percents[i]);
        assert_answer(list_as("jane"), 403,
                      "configmaps is forbidden: User \\\"jane\\\" cannot list resource "
                      "\\\"configmaps\\\" in API group \\\"\\\" in the namespace \\\"default\\\"");
        assert_answer(list_as(NULL), 403, "system:anonymous");
        put_role("reads", READS);
        put_binding("jane", "reads", "User", "jane");
        assert_answer(list_as("jane"), 200, NULL);
        assert_answer(list_as("joe"), 403, NULL);
        put_binding("all", "reads", "Group", "system:authenticated");
        assert_answer(list_as("joe"), 200, NULL);
        assert_answer(list_as(NULL), 403, NULL);
        assert_answer(send_json("GET", "/healthz", ""), 200, NULL);
        end();
    }
}

static void a_wrong_token_is_not_anonymous(void **state)
{
    (void)state;
    start(100);
    put_role("reads", READS);
    put_binding("all", "reads", "Group", "system:unauthenticated");
    struct peer *none = send_json("GET", CMS, "");
    struct peer *wrong = send_with("GET", CMS, "authorization", "Bearer wrong", "");
    struct peer *basic = send_with("GET", CMS, "authorization", "Basic dTpw", "");
    run_watching();
    assert_answer(none, 200, NULL);
    assert_answer(wrong, 401, "Unauthorized");
    assert_answer(basic, 200, NULL);
    end();
}

static void clients_may_leave_while_roles_are_read(void **state)
{
    (void)state;
    for (int turns = 0; turns < 12; turns++) {
        start(0);
        put_role("reads", READS);
        bed->peer_name = "jane";
        struct peer *gone = send_json("GET", CMS, ""), *stays = send_json("GET", CMS, "");
        for (int i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        leave(gone);
        run_watching();
        assert_answer(stays, 403, NULL);
        end();
    }
}

/* -- Roles and bindings that have just changed -- */

static struct slice binding_text(char (*to)[256], const char *role, const char *user)
{
    snprintf(*to, sizeof(*to),
             "{\"metadata\":{},\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"%s\"},"
             "\"subjects\":[{\"kind\":\"User\",\"name\":\"%s\"}]}",
             role, user);
    return slice_from_text(*to);
}

#define GRANTS                                                               \
    "{\"verbs\":[\"create\"],\"apiGroups\":[\"rbac.authorization.k8s.io\"]," \
    "\"resources\":[\"roles\"]}"
#define WRITES_ROLES "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"

static struct peer *grant_as(const char *user, const char *name)
{
    char body[256];
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"},\"rules\":[" READS "]}", name);
    bed->peer_name = user;
    struct peer *peer = send_json("POST", WRITES_ROLES, body);
    bed->peer_name = NULL;
    return peer;
}

/* Requests are answered, but watches are not woken. */
static void run_blindly(void)
{
    for (int i = 0; i < 40; i++) {
        loop_turn(bed->loop, 0);
        (void)!fake_step(bed->engine);
    }
}

/* A binding of jane, which the server has not read when this returns. replaces: it was stored last.
 */
static void put_unseen(const char *name, const char *role, bool replaces)
{
    char key[64], text[256];
    struct engine_status now;
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 16);
    engine_status_get(bed->shard, &now);
    snprintf(key, sizeof(key), BINDINGS "%s", name);
    struct kube_write write = {.key = slice_from_text(key),
                               .value = binding_text(&text, role, "jane"),
                               .expected = replaces ? now.revision : 0};
    write.engine.op =
        (struct engine_op){.done = on_stored, .arena = &arena, .principal = ENGINE_SERVER};
    kube_storage_put(bed->shard, &write);
    run_blindly();
    arena_fini(&arena);
}

/* The answer to a role that is created before the server has read what the store has. */
static struct peer *granted_at_once(const char *name)
{
    struct peer *peer = grant_as("jane", name);
    run_blindly();
    run_watching();
    bed->clock.mono_ns += 2 * NS_PER_MS;
    run();
    return peer;
}

static void a_role_is_compared_with_the_rights_that_its_writer_has_now(void **state)
{
    static const unsigned percents[] = {0, 50, 100};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(percents); i++) {
        start(percents[i]);
        put_role("grants", GRANTS);
        put_role("reads", READS);
        put_binding("grants", "grants", "User", "jane");
        assert_answer(granted_at_once("a"), 403, "permissions not currently held");
        put_unseen("reads", "reads", false);
        assert_answer(granted_at_once("a"), 201, NULL);
        end();
        start(percents[i]);
        put_role("grants", GRANTS);
        put_role("reads", READS);
        put_binding("grants", "grants", "User", "jane");
        put_binding("reads", "reads", "User", "jane");
        put_unseen("reads", "grants", true);
        assert_answer(granted_at_once("c"), 403, "permissions not currently held");
        end();
    }
}

static void a_server_may_stop_while_rights_are_compared(void **state)
{
    (void)state;
    start(0);
    put_role("grants", GRANTS);
    put_binding("grants", "grants", "User", "jane");
    assert_answer(granted_at_once("a"), 403, NULL);
    put_unseen("reads", "reads", false);
    (void)grant_as("jane", "a");
    run_blindly();
    end();
}

static void clients_may_leave_while_rights_are_compared(void **state)
{
    (void)state;
    for (int turns = 0; turns < 12; turns++) {
        start(0);
        put_role("grants", GRANTS);
        put_role("reads", READS);
        put_binding("grants", "grants", "User", "jane");
        assert_answer(granted_at_once("a"), 403, NULL);
        put_unseen("reads", "reads", false);
        struct peer *gone = grant_as("jane", "a"), *stays = grant_as("jane", "b");
        for (int i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        leave(gone);
        run_watching();
        bed->clock.mono_ns += 2 * NS_PER_MS;
        run();
        assert_answer(stays, 201, NULL);
        end();
    }
}

#define CHANGES                                                                       \
    "{\"verbs\":[\"patch\",\"update\"],\"apiGroups\":[\"\",\"coordination.k8s.io\"]," \
    "\"resources\":[\"configmaps\",\"leases\"]}"
#define CREATES "{\"verbs\":[\"create\"],\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"]}"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"

static struct peer *apply_as(const char *user, const char *name)
{
    char path[128], body[128];
    snprintf(path, sizeof(path), CMS "/%s?fieldManager=m", name);
    snprintf(body, sizeof(body),
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"}}", name);
    bed->peer_name = user;
    struct peer *peer = send("PATCH", path, "application/apply-patch+yaml", body);
    bed->peer_name = NULL;
    return peer;
}

static void a_write_that_creates_needs_the_right_to_create(void **state)
{
    static const unsigned percents[] = {0, 50, 100};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(percents); i++) {
        start(percents[i]);
        put_role("changes", CHANGES);
        put_role("creates", CREATES);
        put_binding("jane", "changes", "User", "jane");
        struct peer *applied = apply_as("jane", "a");
        bed->peer_name = "jane";
        struct peer *sent =
            send_json("PUT", LEASES "/a", "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}");
        bed->peer_name = NULL;
        run_watching();
        assert_answer(applied, 403,
                      "configmaps \\\"a\\\" is forbidden: User \\\"jane\\\" cannot create resource "
                      "\\\"configmaps\\\" in API group \\\"\\\" in the namespace \\\"default\\\"");
        assert_answer(sent, 403, "cannot create resource \\\"leases\\\"");
        put_binding("creates", "creates", "User", "jane");
        applied = apply_as("jane", "a");
        run_watching();
        assert_answer(applied, 201, NULL);
        applied = apply_as("jane", "a");
        run_watching();
        assert_answer(applied, 200, NULL);
        end();
    }
}

static void clients_may_leave_while_a_right_is_decided(void **state)
{
    (void)state;
    for (int turns = 0; turns < 40; turns++) {
        start(0);
        put_role("changes", CHANGES);
        put_binding("jane", "changes", "User", "jane");
        struct peer *gone = apply_as("jane", "a"), *stays = apply_as("jane", "b");
        for (int i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        leave(gone);
        run_watching();
        assert_answer(stays, 403, "cannot create");
        end();
    }
}

static void aggregated_roles_have_the_rules_of_those_they_select(void **state)
{
    (void)state;
    start(100);
    put(ROLES, "sum",
        SLICE_LITERAL("{\"metadata\":{\"name\":\"sum\",\"labels\":{\"to\":\"top\"}},\"rules\":[],"
                      "\"aggregationRule\":{\"clusterRoleSelectors\":[{\"matchLabels\":{\"to\":"
                      "\"sum\"}}]}}"));
    put(ROLES, "top",
        SLICE_LITERAL("{\"metadata\":{\"name\":\"top\",\"labels\":{\"to\":\"top\"}},\"rules\":[],"
                      "\"aggregationRule\":{\"clusterRoleSelectors\":[{\"matchExpressions\":[{"
                      "\"key\":\"to\",\"operator\":\"In\",\"values\":[\"top\"]}]}]}}"));
    put_binding("jane", "top", "User", "jane");
    assert_answer(list_as("jane"), 403, NULL);
    put(ROLES, "part",
        SLICE_LITERAL(
            "{\"metadata\":{\"name\":\"part\",\"labels\":{\"to\":\"sum\"}},\"rules\":[" READS
            "]}"));
    assert_answer(list_as("jane"), 200, NULL);
    end();
}

/* -- Past the limits -- */

/* Rules as short as they can be, and then the one that allows. */
static void a_role_may_have_as_many_rules_as_fit_into_an_object(void **state)
{
    static const char rule[] = "{\"verbs\":[\"\"],\"apiGroups\":[\"\"],\"resources\":[\"\"]},";
    AUTO(buf_fini) struct buf text = {0};
    (void)state;
    start(100);
    assert_int_equal(buf_append_text(&text, "{\"metadata\":{},\"rules\":["), ST_OK);
    while (text.len + sizeof(rule) + sizeof(READS) < OBJECT_BYTES_MAX)
        assert_int_equal(buf_append_text(&text, rule), ST_OK);
    assert_int_equal(buf_append_text(&text, READS "]}"), ST_OK);
    put(ROLES, "long", buf_slice(&text));
    put_binding("long", "long", "User", "jane");
    assert_answer(list_as("jane"), 200, NULL);
    end();
}

/* Each binding names a role of many rules; all together are too many for one decision. */
static void a_decision_examines_a_bounded_number_of_rules(void **state)
{
    AUTO(buf_fini) struct buf rules = {0};
    (void)state;
    start(100);
    for (int i = 0; i < 4000; i++)
        assert_int_equal(
            buf_append_format(&rules, "%s{\"verbs\":[\"a\",\"b\",\"c\",\"d\"]}", i ? "," : ""),
            ST_OK);
    assert_int_equal(buf_append(&rules, slice_of("", 1)), ST_OK);
    put_role("long", (const char *)rules.ptr);
    put_role("reads", READS);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "b%02d", i);
        put_binding(name, "long", "User", "jane");
    }
    put_binding("z", "reads", "Group", "system:authenticated");
    assert_answer(list_as("jane"), 403, "too many bindings and rules");
    assert_answer(list_as("joe"), 200, NULL);
    end();
}

/* A list of items, the last of which is this one; the others are `filler`. */
static void append_many(struct buf *to, int count, const char *filler, const char *last)
{
    for (int i = 1; i < count; i++)
        assert_int_equal(buf_append_format(to, "%s,", filler), ST_OK);
    assert_int_equal(buf_append_text(to, last), ST_OK);
}

static void a_rule_may_have_as_many_items_as_fit_into_an_object(void **state)
{
    AUTO(buf_fini) struct buf text = {0};
    (void)state;
    start(100);
    assert_int_equal(buf_append_text(&text, "{\"metadata\":{},\"rules\":[{\"verbs\":[\"list\"],"
                                            "\"apiGroups\":[\"\"],\"resources\":["),
                     ST_OK);
    append_many(&text, (OBJECT_BYTES_MAX - 100) / 3, "\"\"", "\"configmaps\"]}]}");
    put(ROLES, "long", buf_slice(&text));
    put_binding("long", "long", "User", "jane");
    assert_answer(list_as("jane"), 200, NULL);
    end();
}

/* It cannot be written through the API. */
static void a_stored_role_with_too_many_selectors_is_named_in_refusals(void **state)
{
    AUTO(buf_fini) struct buf text = {0};
    (void)state;
    start(100);
    put(ROLES, "part",
        SLICE_LITERAL("{\"metadata\":{\"labels\":{\"to\":\"sum\"}},\"rules\":[" READS "]}"));
    for (int count = KUBE_ROLE_SELECTORS_MAX; count <= KUBE_ROLE_SELECTORS_MAX + 1; count++) {
        char name[16];
        snprintf(name, sizeof(name), "r%d", count);
        buf_reset(&text, SIZE_MAX);
        assert_int_equal(buf_append_text(&text, "{\"metadata\":{},\"aggregationRule\":{"
                                                "\"clusterRoleSelectors\":["),
                         ST_OK);
        append_many(&text, count, "{\"matchLabels\":{\"to\":\"none\"}}",
                    "{\"matchLabels\":{\"to\":\"sum\"}}]}}");
        put(ROLES, name, buf_slice(&text));
        put_binding(name, name, "User", name);
        if (count > KUBE_ROLE_SELECTORS_MAX)
            assert_answer(list_as(name), 403, "exceeds the limits of this server");
        else
            assert_answer(list_as(name), 200, NULL);
    }
    end();
}

static void put_level(int level)
{
    char name[32], text[256];
    snprintf(name, sizeof(name), "level%d", level);
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"labels\":{\"level\":\"%d\"}},\"aggregationRule\":{"
             "\"clusterRoleSelectors\":[{\"matchLabels\":{\"level\":\"%d\"}}]}}",
             level, level - 1);
    put(ROLES, name, slice_from_text(text));
}

/* level0 has rules, and each other level aggregates the one before it. */
static void roles_of_every_depth_are_aggregated(void **state)
{
    (void)state;
    start(100);
    put(ROLES, "level0",
        SLICE_LITERAL("{\"metadata\":{\"labels\":{\"level\":\"0\"}},\"rules\":[" READS "]}"));
    for (int level = 1; level <= 100; level++)
        put_level(level);
    put_binding("b", "level100", "User", "jane");
    assert_answer(list_as("jane"), 200, NULL);
    end();
}

/* Each of them selects all: every one is visited once, not in every order. */
static void roles_that_aggregate_each_other_are_examined_once(void **state)
{
    (void)state;
    start(100);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "all%02d", i);
        put(ROLES, name,
            SLICE_LITERAL("{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"aggregationRule\":{"
                          "\"clusterRoleSelectors\":[{\"matchLabels\":{\"a\":\"b\"}}]}}"));
    }
    put(ROLES, "z",
        SLICE_LITERAL("{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"rules\":[" READS "]}"));
    put_binding("b", "all00", "User", "jane");
    assert_answer(list_as("jane"), 200, NULL);
    end();
}

/* They are stored before the first request reads them, and as events. */
static void many_bindings_and_subjects_have_their_effect(void **state)
{
    enum { BINDINGS_COUNT = 20001, SUBJECTS = 20000 };
    AUTO(buf_fini) struct buf subjects = {0};
    char key[64], text[256];
    (void)state;
    start(100);
    put_role("reads", READS);
    for (int i = 0; i < BINDINGS_COUNT; i++) {
        bool last = i == BINDINGS_COUNT - 1;
        snprintf(key, sizeof(key), BINDINGS "b%05d", i);
        store(key, binding_text(&text, last ? "reads" : "none", last ? "last" : "other"));
    }
    run_watching();
    assert_answer(list_as("last"), 200, NULL);
    assert_answer(list_as("more"), 403, NULL);
    assert_int_equal(buf_append_text(&subjects,
                                     "{\"metadata\":{},\"roleRef\":{\"kind\":\"ClusterRole\","
                                     "\"name\":\"reads\"},\"subjects\":["),
                     ST_OK);
    append_many(&subjects, SUBJECTS, "{\"kind\":\"Group\",\"name\":\"x\"}",
                "{\"kind\":\"User\",\"name\":\"more\"}]}");
    put(BINDINGS, "long", buf_slice(&subjects));
    assert_answer(list_as("more"), 200, NULL);
    end();
}

/* -- What is not held -- */

static struct budget *small_budget;

/* Each kind has 32 KiB. */
static void start_small(unsigned inline_percent)
{
    assert_int_equal(budget_new((32 << 10) * KUBE_LOOKUP_BUDGET_PART, &small_budget), ST_OK);
    bed_lookups = kube_lookup_pool_new(small_budget);
    start(inline_percent);
}

static void end_small(void)
{
    end();
    kube_lookup_pool_free(bed_lookups);
    budget_free(small_budget);
    bed_lookups = NULL;
}

#define ROLE_BINDINGS "/registry/rolebindings/"
#define ROLES_OF "/registry/roles/"

static void fill_up(const char *prefix, const char *text)
{
    for (int i = 0; i < 100; i++) {
        char key[64];
        snprintf(key, sizeof(key), "%sx%02d", prefix, i);
        store(key, slice_from_text(text));
    }
    run_watching();
}

static void put_in(const char *namespace, const char *name, const char *kind, const char *role,
                   const char *user)
{
    char key[128], text[256];
    snprintf(key, sizeof(key), ROLE_BINDINGS "%s/%s", namespace, name);
    snprintf(text, sizeof(text),
             "{\"metadata\":{},\"roleRef\":{\"kind\":\"%s\",\"name\":\"%s\"},"
             "\"subjects\":[{\"kind\":\"User\",\"name\":\"%s\"}]}",
             kind, role, user);
    put(key, "", slice_from_text(text));
}

static unsigned code_in(const char *namespace, const char *user)
{
    char path[128];
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/configmaps", namespace);
    bed->peer_name = user;
    struct peer *peer = send_json("GET", path, "");
    bed->peer_name = NULL;
    run_watching();
    return peer->code;
}

/* Whether they are there before the first request or arrive afterwards. */
static void bindings_of_a_namespace_do_not_crowd_out_others(void **state)
{
    char other[256];
    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        start_small(late ? 100 : 30);
        put_role("reads", READS);
        put_in("a", "jane", "ClusterRole", "reads", "jane");
        put_in("z", "joe", "ClusterRole", "reads", "joe");
        if (late)
            assert_int_equal(code_in("a", "jane"), 200);
        fill_up(ROLE_BINDINGS "m/", (const char *)binding_text(&other, "reads", "other").ptr);
        put_in("m", "jill", "ClusterRole", "reads", "jill");
        put_in("z", "jack", "ClusterRole", "reads", "jack");
        assert_int_equal(code_in("a", "jane"), 200);
        assert_int_equal(code_in("z", "joe"), 200);
        assert_int_equal(code_in("z", "jack"), 200);
        assert_int_equal(code_in("z", "jill"), 403);
        /* In the namespace itself they are read. */
        assert_int_equal(code_in("m", "jill"), 200);
        assert_int_equal(code_in("m", "other"), 200);
        assert_int_equal(code_in("m", "jane"), 403);
        put_in("m", "jane", "ClusterRole", "reads", "jane");
        assert_int_equal(code_in("m", "jane"), 200);
        end_small();
    }
}

static void roles_that_are_not_held_are_read(void **state)
{
    (void)state;
    start_small(50);
    fill_up(ROLES_OF "m/",
            "{\"metadata\":{},\"rules\":[{\"verbs\":[\"x\"],\"resources\":[\"y\"]}]}");
    put(ROLES_OF "m/reads", "", SLICE_LITERAL("{\"metadata\":{},\"rules\":[" READS "]}"));
    put_in("m", "jane", "Role", "reads", "jane");
    put_in("m", "joe", "Role", "x05", "joe");
    put_in("m", "jill", "Role", "missing", "jill");
    assert_int_equal(code_in("m", "jane"), 200);
    assert_int_equal(code_in("m", "joe"), 403);
    assert_int_equal(code_in("m", "jill"), 403);
    assert_int_equal(code_in("n", "jane"), 403);
    end_small();
}

/* Cluster roles with those that they aggregate, and cluster role bindings. */
static void what_has_no_namespace_is_read_if_it_is_not_held(void **state)
{
    char other[256];
    (void)state;
    start_small(50);
    fill_up(ROLES, "{\"metadata\":{},\"rules\":[{\"verbs\":[\"x\"],\"resources\":[\"y\"]}]}");
    fill_up(BINDINGS, (const char *)binding_text(&other, "x01", "other").ptr);
    put(ROLES, "sum",
        SLICE_LITERAL("{\"metadata\":{\"name\":\"sum\",\"labels\":{\"to\":\"top\"}},\"rules\":[],"
                      "\"aggregationRule\":{\"clusterRoleSelectors\":[{\"matchLabels\":{\"to\":"
                      "\"sum\"}}]}}"));
    put(ROLES, "top",
        SLICE_LITERAL("{\"metadata\":{\"name\":\"top\",\"labels\":{\"to\":\"top\"}},\"rules\":[],"
                      "\"aggregationRule\":{\"clusterRoleSelectors\":[{\"matchLabels\":{\"to\":"
                      "\"top\"}}]}}"));
    put_role("reads", READS);
    put_binding("jane", "top", "User", "jane");
    put_binding("joe", "reads", "User", "joe");
    put_in("m", "jill", "ClusterRole", "reads", "jill");
    assert_int_equal(code_in("m", "jane"), 403);
    put(ROLES, "part",
        SLICE_LITERAL("{\"metadata\":{\"labels\":{\"to\":\"sum\"}},\"rules\":[" READS "]}"));
    assert_int_equal(code_in("m", "jane"), 200);
    assert_int_equal(code_in("m", "joe"), 200);
    assert_int_equal(code_in("m", "jill"), 200);
    assert_int_equal(code_in("n", "jill"), 403);
    assert_int_equal(code_in("m", "other"), 403);
    end_small();
}

static void clients_may_leave_while_what_is_not_held_is_read(void **state)
{
    char other[256];
    (void)state;
    for (int turns = 0; turns < 12; turns++) {
        struct peer *peers[6];
        start_small(0);
        put_role("reads", READS);
        fill_up(ROLE_BINDINGS "default/", (const char *)binding_text(&other, "reads", "other").ptr);
        put_in("default", "jane", "ClusterRole", "reads", "jane");
        assert_int_equal(code_in("n", "jane"), 403);
        bed->peer_name = "jane";
        for (size_t i = 0; i < COUNT_OF(peers); i++)
            peers[i] = send_json("GET", CMS, "");
        for (int i = 0; i < turns; i++) {
            loop_turn(bed->loop, 0);
            fake_step(bed->engine);
        }
        for (size_t i = 0; i + 1 < COUNT_OF(peers); i++)
            leave(peers[i]);
        run_watching();
        assert_answer(peers[5], 200, NULL);
        end_small();
    }
}

/* The answer to a list by jane with these fields. */
static struct peer *list_with(const struct http_field *fields, size_t count)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    bed->peers[bed->count++] = peer;
    peer->text = strdup(CMS);
    peer->x.ops = &ops;
    peer->x.opening = &peer->opening;
    peer->opening.request = (struct http_request){.method = SLICE_LITERAL("GET"),
                                                  .target = slice_from_text(peer->text),
                                                  .host = SLICE_LITERAL("127.0.0.1"),
                                                  .peer_name = "jane",
                                                  .fields = fields,
                                                  .field_count = count};
    http_split_target(peer->opening.request.target, &peer->opening.request);
    peer->routes = kube_api_routes(bed->api);
    http_routes_dispatch(peer->routes, &peer->x);
    run_watching();
    return peer;
}

static void too_many_groups_cannot_be_impersonated(void **state)
{
    static struct http_field fields[KUBE_USER_GROUPS_MAX + 2];
    (void)state;
    fields[0] = (struct http_field){SLICE_LITERAL("impersonate-user"), SLICE_LITERAL("x")};
    for (size_t i = 1; i < COUNT_OF(fields); i++)
        fields[i] = (struct http_field){SLICE_LITERAL("Impersonate-Group"), SLICE_LITERAL("g")};
    start(100);
    for (size_t count = KUBE_USER_GROUPS_MAX; count <= KUBE_USER_GROUPS_MAX + 1; count++) {
        struct peer *peer = list_with(fields, count);
        if (count > KUBE_USER_GROUPS_MAX)
            assert_answer(peer, 400, "too many groups");
        else
            assert_answer(peer, 403, "cannot impersonate resource \\\"users\\\"");
    }
    end();
}

static void too_many_extra_keys_cannot_be_impersonated(void **state)
{
    static struct http_field fields[KUBE_USER_EXTRAS_MAX + 2];
    static char names[COUNT_OF(fields)][32];
    (void)state;
    fields[0] = (struct http_field){SLICE_LITERAL("impersonate-user"), SLICE_LITERAL("x")};
    for (size_t i = 1; i < COUNT_OF(fields); i++) {
        snprintf(names[i], sizeof(names[i]), "impersonate-extra-k%zu", i);
        fields[i] = (struct http_field){slice_from_text(names[i]), SLICE_LITERAL("v")};
    }
    start(100);
    assert_answer(list_with(fields, KUBE_USER_EXTRAS_MAX + 1), 403, "cannot impersonate resource");
    assert_answer(list_with(fields, KUBE_USER_EXTRAS_MAX + 2), 400, "too many groups or extras");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_may_do_what_their_bindings_allow),
        cmocka_unit_test(a_wrong_token_is_not_anonymous),
        cmocka_unit_test(clients_may_leave_while_roles_are_read),
        cmocka_unit_test(a_role_is_compared_with_the_rights_that_its_writer_has_now),
        cmocka_unit_test(clients_may_leave_while_rights_are_compared),
        cmocka_unit_test(a_server_may_stop_while_rights_are_compared),
        cmocka_unit_test(a_write_that_creates_needs_the_right_to_create),
        cmocka_unit_test(clients_may_leave_while_a_right_is_decided),
        cmocka_unit_test(aggregated_roles_have_the_rules_of_those_they_select),
        cmocka_unit_test(a_role_may_have_as_many_rules_as_fit_into_an_object),
        cmocka_unit_test(a_decision_examines_a_bounded_number_of_rules),
        cmocka_unit_test(a_rule_may_have_as_many_items_as_fit_into_an_object),
        cmocka_unit_test(a_stored_role_with_too_many_selectors_is_named_in_refusals),
        cmocka_unit_test(roles_of_every_depth_are_aggregated),
        cmocka_unit_test(roles_that_aggregate_each_other_are_examined_once),
        cmocka_unit_test(many_bindings_and_subjects_have_their_effect),
        cmocka_unit_test(bindings_of_a_namespace_do_not_crowd_out_others),
        cmocka_unit_test(roles_that_are_not_held_are_read),
        cmocka_unit_test(what_has_no_namespace_is_read_if_it_is_not_held),
        cmocka_unit_test(clients_may_leave_while_what_is_not_held_is_read),
        cmocka_unit_test(too_many_groups_cannot_be_impersonated),
        cmocka_unit_test(too_many_extra_keys_cannot_be_impersonated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
