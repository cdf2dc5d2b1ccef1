/* Candidates of one client and a server with one Lease, on a simulated network. */
#include "kubeclient/leader/candidate.h"

#include "kubeclient/call/kube_server_sim_test.h"

#include <vigil/kube/json.h>

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"

enum { CANDIDATES = 2 };

struct stand {
    vigil_kube_candidate *candidate;
    unsigned leading, not_leading, new_leader;
    char leader[64];
    bool leads;
    struct stand *frees; /* when this one learns of another leader or leads */
};

struct scene {
    struct kube_world world;
    struct stand stands[CANDIDATES];
    char spec[1024]; /* spec of the Lease; "": it does not exist */
    uint64_t version;
    unsigned writes;
    bool fails; /* the server answers 500 */
};

/* -- The server -- */

static void answer_lease(struct sim_reply *reply, const struct scene *s, unsigned code)
{
    char json[2048];
    snprintf(json, sizeof(json),
             "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"lock\",\"resourceVersion\":\"%llu\"},"
             "\"spec\":%s}",
             (unsigned long long)s->version, s->spec);
    sim_reply_json(reply, code, json);
}

static void on_get(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    struct scene *s = ctx;
    (void)request;
    if (s->fails)
        sim_reply_status(reply, 500, "InternalError", "the disk is full");
    else if (!s->spec[0])
        sim_reply_status(reply, 404, "NotFound", "leases \\\"lock\\\" not found");
    else
        answer_lease(reply, s, 200);
}

static bool is_current(const struct scene *s, vigil_bytes body)
{
    char version[32] = "", expected[32];
    vigil_bytes value;
    if (vigil_json_find(body, "metadata.resourceVersion", &value))
        assert_true(vigil_json_text(value, version, sizeof(version), NULL));
    snprintf(expected, sizeof(expected), "%llu", (unsigned long long)s->version);
    return strcmp(version, expected) == 0;
}

static void on_write(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    struct scene *s = ctx;
    bool creates = strcmp(request->method, "POST") == 0;
    vigil_bytes body = vigil_text(request->body), spec;
    if (s->fails) {
        sim_reply_status(reply, 500, "InternalError", "the disk is full");
    } else if (creates ? s->spec[0] != 0 : !is_current(s, body)) {
        sim_reply_status(reply, 409, "Conflict", "the lease was changed");
    } else {
        assert_true(vigil_json_find(body, "spec", &spec));
        snprintf(s->spec, sizeof(s->spec), "%.*s", VIGIL_ARGS(spec));
        s->version++;
        s->writes++;
        answer_lease(reply, s, creates ? 201 : 200);
    }
}

/* -- The program -- */

static void free_stand(struct stand *stand)
{
    vigil_kube_candidate_free(stand->candidate);
    stand->candidate = NULL;
}

static void on_news(vigil_kube_candidate *candidate, int news, const char *leader, void *user)
{
    struct stand *stand = user;
    assert_ptr_equal(stand->candidate, candidate);
    snprintf(stand->leader, sizeof(stand->leader), "%s", leader);
    if (news == VIGIL_KUBE_LEADING) {
        assert_false(stand->leads);
        assert_true(vigil_kube_candidate_is_leading(candidate));
        stand->leading++;
        stand->leads = true;
    } else if (news == VIGIL_KUBE_NOT_LEADING) {
        assert_true(stand->leads);
        assert_false(vigil_kube_candidate_is_leading(candidate));
        stand->not_leading++;
        stand->leads = false;
    } else {
        stand->new_leader++;
    }
    if (stand->frees)
        free_stand(stand->frees);
}

static void check(struct kube_world *w)
{
    struct scene *s = CONTAINER_OF(w, struct scene, world);
    unsigned leaders = 0;
    for (size_t i = 0; i < CANDIDATES; i++) {
        if (s->stands[i].candidate)
            candidate_check(s->stands[i].candidate);
        leaders += s->stands[i].candidate && s->stands[i].leads;
    }
    assert_true(leaders <= 1);
}

static bool scene_begin(struct scene *s, enum sim_protocol protocol)
{
    memset(s, 0, sizeof(*s));
    kube_world_init(&s->world, protocol, NULL);
    s->world.check = check;
    kube_server_route(&s->world.server, "GET", LEASES "/lock", on_get, s);
    kube_server_route(&s->world.server, "PUT", LEASES "/lock", on_write, s);
    kube_server_route(&s->world.server, "POST", LEASES, on_write, s);
    return kube_world_start(&s->world);
}

static int stand_begin(struct scene *s, size_t i)
{
    static const char *const identities[] = {"first", "second"};
    vigil_kube_leader_options options;
    vigil_kube_leader_options_init(&options);
    options.name_space = "default";
    options.name = "lock";
    options.identity = identities[i];
    return vigil_kube_candidate_new(s->world.kube, &options, on_news, &s->stands[i],
                                    &s->stands[i].candidate);
}

static void scene_end(struct scene *s)
{
    kube_world_free_client(&s->world);
    for (size_t i = 0; i < CANDIDATES; i++)
        free_stand(&s->stands[i]);
    kube_world_fini(&s->world);
}

/* -- Tests -- */

static void a_candidate_leads_and_renews(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol < SIM_PROTOCOLS; protocol++) {
        struct scene s;
        assert_true(scene_begin(&s, protocol));
        assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
        kube_world_run(&s.world, 60 * NS_PER_S);
        assert_true(s.stands[0].leads);
        assert_int_equal(s.stands[0].leading, 1);
        assert_int_equal(s.stands[0].new_leader, 1);
        assert_string_equal(s.stands[0].leader, "first");
        /* One attempt in two seconds, and of these only the first one reads. */
        assert_in_range(s.writes, 28, 31);
        assert_int_equal(s.world.server.request_count, s.writes + 1);
        assert_non_null(strstr(s.spec, "\"holderIdentity\":\"first\",\"leaseDurationSeconds\":15"));
        assert_non_null(strstr(s.spec, "\"leaseTransitions\":0"));
        scene_end(&s);
    }
}

static void a_leader_that_is_freed_releases_the_lease(void **state)
{
    (void)state;
    struct scene s;
    assert_true(scene_begin(&s, SIM_HTTP2));
    assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
    kube_world_run(&s.world, 10 * NS_PER_S);
    s.stands[1].frees = &s.stands[0]; /* when it learns that the first one leads */
    assert_int_equal(stand_begin(&s, 1), VIGIL_OK);
    kube_world_run(&s.world, NS_PER_S);
    assert_null(s.stands[0].candidate);
    assert_non_null(strstr(s.spec, "\"holderIdentity\":\"\""));
    kube_world_run(&s.world, 6 * NS_PER_S);
    assert_true(s.stands[1].leads);
    assert_non_null(strstr(s.spec, "\"leaseTransitions\":1"));
    scene_end(&s);
}

static void a_leader_without_a_server_stops_and_leads_again(void **state)
{
    (void)state;
    struct scene s;
    assert_true(scene_begin(&s, SIM_HTTP2));
    assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
    kube_world_run(&s.world, 10 * NS_PER_S);
    kube_server_stop(&s.world.server);
    kube_world_run(&s.world, 8 * NS_PER_S);
    assert_true(s.stands[0].leads);
    kube_world_run(&s.world, 7 * NS_PER_S);
    assert_false(s.stands[0].leads);
    assert_false(vigil_kube_candidate_is_leading(s.stands[0].candidate));
    kube_server_start(&s.world.server);
    kube_world_run(&s.world, 10 * NS_PER_S);
    assert_true(s.stands[0].leads);
    assert_int_equal(s.stands[0].leading, 2);
    scene_end(&s);
}

static void a_server_that_does_not_answer_costs_the_leader_its_lease(void **state)
{
    (void)state;
    struct scene s;
    assert_true(scene_begin(&s, SIM_HTTP1));
    assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
    kube_world_run(&s.world, 10 * NS_PER_S);
    s.fails = true;
    kube_world_run(&s.world, 15 * NS_PER_S);
    assert_int_equal(s.stands[0].not_leading, 1);
    s.fails = false;
    kube_world_run(&s.world, 10 * NS_PER_S);
    assert_true(s.stands[0].leads);
    scene_end(&s);
}

static void a_silent_holder_is_replaced(void **state)
{
    (void)state;
    struct scene s;
    assert_true(scene_begin(&s, SIM_HTTP2));
    snprintf(s.spec, sizeof(s.spec),
             "{\"holderIdentity\":\"gone\",\"leaseDurationSeconds\":15,\"leaseTransitions\":3}");
    s.version = 1;
    assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
    kube_world_run(&s.world, 14 * NS_PER_S);
    assert_false(s.stands[0].leads);
    assert_string_equal(s.stands[0].leader, "gone");
    kube_world_run(&s.world, 7 * NS_PER_S);
    assert_true(s.stands[0].leads);
    assert_non_null(strstr(s.spec, "\"leaseTransitions\":4"));
    scene_end(&s);
}

static void refuse_at_length(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    char message[301];
    (void)request, (void)ctx;
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = 0;
    sim_reply_status(reply, 403, "Forbidden", message);
}

static void a_failure_that_stays_is_logged_once(void **state)
{
    (void)state;
    struct scene s;
    assert_true(scene_begin(&s, SIM_HTTP2));
    s.world.server.route_count = 0;
    kube_server_route(&s.world.server, "GET", LEASES "/lock", refuse_at_length, NULL);
    s.world.log[0] = 0;
    assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
    kube_world_run(&s.world, 30 * NS_PER_S);
    const char *first = strstr(s.world.log, "leader election by lease");
    assert_non_null(first);
    assert_null(strstr(first + 1, "leader election by lease"));
    scene_end(&s);
}

static void a_shutdown_ends_leading(void **state)
{
    (void)state;
    struct scene s;
    assert_true(scene_begin(&s, SIM_HTTP2));
    assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
    kube_world_run(&s.world, 5 * NS_PER_S);
    s.world.check = NULL; /* the candidates have ended */
    vigil_kube_shutdown(s.world.kube);
    kube_world_run(&s.world, NS_PER_S);
    assert_int_equal(s.stands[0].not_leading, 1);
    assert_int_equal(stand_begin(&s, 1), VIGIL_OK); /* ends at once */
    kube_world_run(&s.world, NS_PER_S);
    assert_int_equal(s.stands[1].leading, 0);
    scene_end(&s);
}

static void a_candidate_may_free_itself_in_every_callback(void **state)
{
    (void)state;
    struct scene s;
    assert_true(scene_begin(&s, SIM_HTTP2));
    s.stands[0].frees = &s.stands[0];
    assert_int_equal(stand_begin(&s, 0), VIGIL_OK);
    kube_world_run(&s.world, 30 * NS_PER_S);
    assert_null(s.stands[0].candidate);
    scene_end(&s);
}

static void options_are_checked(void **state)
{
    (void)state;
    struct scene s;
    vigil_kube_leader_options options;
    vigil_kube_candidate *candidate;
    assert_true(scene_begin(&s, SIM_HTTP1));
    vigil_kube_leader_options_init(&options);
    assert_int_equal(vigil_kube_candidate_new(s.world.kube, &options, on_news, NULL, &candidate),
                     VIGIL_ERROR_ARGUMENT); /* no name */
    options.name = "lock";
    options.renew_deadline_ms = options.lease_duration_ms;
    assert_int_equal(vigil_kube_candidate_new(s.world.kube, &options, on_news, NULL, &candidate),
                     VIGIL_ERROR_ARGUMENT);
    options.renew_deadline_ms = options.retry_period_ms;
    assert_int_equal(vigil_kube_candidate_new(s.world.kube, &options, on_news, NULL, &candidate),
                     VIGIL_ERROR_ARGUMENT);
    vigil_kube_leader_options_init(&options);
    options.name = "a/b"; /* cannot be requested */
    assert_int_equal(vigil_kube_candidate_new(s.world.kube, &options, on_news, NULL, &candidate),
                     VIGIL_ERROR_ARGUMENT);
    options.name = "lock";
    options.name_space = "..";
    assert_int_equal(vigil_kube_candidate_new(s.world.kube, &options, on_news, NULL, &candidate),
                     VIGIL_ERROR_ARGUMENT);
    scene_end(&s);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        struct scene s;
        faulty_memory_at = at;
        bool began = scene_begin(&s, SIM_HTTP2);
        if (began && stand_begin(&s, 0) == VIGIL_OK) {
            kube_world_run(&s.world, 30 * NS_PER_S);
            assert_true(s.stands[0].leads);
        }
        bool failed = faulty_memory_at == 0;
        faulty_memory_at = 0;
        scene_end(&s);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_candidate_leads_and_renews),
        cmocka_unit_test(a_leader_that_is_freed_releases_the_lease),
        cmocka_unit_test(a_leader_without_a_server_stops_and_leads_again),
        cmocka_unit_test(a_server_that_does_not_answer_costs_the_leader_its_lease),
        cmocka_unit_test(a_silent_holder_is_replaced),
        cmocka_unit_test(a_failure_that_stays_is_logged_once),
        cmocka_unit_test(a_shutdown_ends_leading),
        cmocka_unit_test(a_candidate_may_free_itself_in_every_callback),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
