#include "tier_users.h"

#include "actors.h"
#include "coverage.h"
#include "history.h"
#include "machine.h"
#include "operations.h"
#include "tier.h"
#include "tls.h"
#include "trace.h"

#include <stdio.h>

/* After this time a change without an answer is not made any more. */
#define LATE_NS (15 * NS_PER_S)
/* How long the tier may use an answer (tier.c), and a little more. */
#define LAG_NS (3 * NS_PER_S)

#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define API_VERSION "\"apiVersion\":\"rbac.authorization.k8s.io/v1\""

static const char role[] =
    "{" API_VERSION ",\"kind\":\"ClusterRole\",\"metadata\":{\"name\":\"readers\"},"
    "\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"],"
    "\"verbs\":[\"get\",\"list\",\"watch\"]}]}";
static const char binding[] =
    "{" API_VERSION ",\"kind\":\"ClusterRoleBinding\",\"metadata\":{\"name\":\"ann\"},"
    "\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\","
    "\"name\":\"readers\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"ann\","
    "\"apiGroup\":\"rbac.authorization.k8s.io\"}]}";

static const char *const names[TIER_USERS] = {"root", "ann", "eve", "dan"};

static struct {
    vigil_kube *kubes[TIER_USERS]; /* owned */
    vigil_kube *behind;            /* owned: root's, of the server behind the tier */
    bool granted, changing, uncertain;
    int64_t uncertain_since_ns;
    int64_t changed_ns;  /* when the last change was over */
    uint64_t generation; /* grows with every change */
    bool has_replica;
    int64_t expired_ns; /* dan's token; 0: it is valid */
} users;

/* -- Clients -- */

static vigil_kube *connect_as(const char *name, const char *endpoint)
{
    vigil_kube_options options;
    vigil_kube *kube;
    vigil_error error;
    vigil_kube_options_init(&options);
    options.server = sim_tls_endpoint(endpoint);
    options.ca_file = sim_tls_ca_file();
    options.token = name;
    options.calls_per_second = 0;
    options.call_timeout_ms = 5000;
    options.connect_timeout_ms = 1000;
    if (vigil_kube_new(&options, &kube, &error) != VIGIL_OK)
        violation("a client of the watch tier cannot be created: %s", error.text);
    return kube;
}

vigil_kube *tier_users_kube(enum tier_user user)
{
    return users.kubes[user];
}

vigil_kube *tier_users_behind(void)
{
    return users.behind;
}

const char *tier_user_name(enum tier_user user)
{
    return names[user];
}

/* -- Changes -- */

enum outcome { MADE, NOT_MADE, UNKNOWN };

/* done: a refusal that says that it was made before. */
static enum outcome run(vigil_kube_call *call, int done)
{
    int code = vigil_kube_call_run(call) == VIGIL_OK ? 0 : vigil_kube_call_status(call)->code;
    bool ok = vigil_kube_call_error(call)->code == VIGIL_OK;
    bool unsent = vigil_kube_call_error(call)->outcome != VIGIL_UNKNOWN;
    vigil_kube_call_free(call);
    if (ok || code == done)
        return MADE;
    return unsent && (code == 0 || code == 503 || code == 429) ? NOT_MADE : UNKNOWN;
}

static enum outcome change(bool grant)
{
    enum { CONFLICT = 409, NOT_FOUND = 404 };
    if (grant)
        return run(vigil_kube_request(users.behind, "POST", RBAC "clusterrolebindings", NULL,
                                      vigil_text(binding)),
                   CONFLICT);
    /* Also one of the operations that may have deleted the key. */
    struct operation *op = operation_new(OPERATION_DELETE, 101);
    snprintf(op->key, KEY_BYTES, "/registry/clusterrolebindings/ann");
    enum outcome outcome =
        run(vigil_kube_request(users.behind, "DELETE", RBAC "clusterrolebindings/ann", NULL,
                               vigil_text("")),
            NOT_FOUND);
    op->answer = outcome == NOT_MADE ? ANSWER_REFUSED : ANSWER_UNKNOWN;
    operation_done(op);
    return outcome;
}

static enum outcome make_change(bool grant)
{
    bool late = actors_now() - users.uncertain_since_ns > LATE_NS;
    bool was_certain = !users.uncertain;
    users.changing = true;
    users.generation++;
    enum outcome outcome = change(grant);
    coverage_add(COVERAGE_RIGHT);
    trace_line("right of ann %s: %s", grant ? "granted" : "revoked",
               outcome == MADE       ? "ok"
               : outcome == NOT_MADE ? "not made"
                                     : "unknown");
    users.changing = false;
    users.changed_ns = actors_now();
    users.generation++;
    if (outcome != NOT_MADE)
        users.granted = grant;
    if (outcome == UNKNOWN) {
        users.uncertain = true;
        users.uncertain_since_ns = actors_now();
    } else if (outcome == MADE && (was_certain || late)) {
        users.uncertain = false;
    }
    return outcome;
}

void tier_users_change(void)
{
    if (!users.changing)
        (void)make_change(!users.granted);
}

void tier_users_set(bool granted)
{
    enum { ATTEMPTS_MAX = 60 };
    actor_sleep(LATE_NS);
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        if (make_change(granted) == MADE && !users.uncertain)
            return;
        actor_sleep(NS_PER_S);
    }
    violation("a right cannot be changed although nothing is wrong any more");
}

void tier_users_create(const char *name)
{
    enum { ATTEMPTS_MAX = 60, CONFLICT = 409 };
    char body[128];
    snprintf(body, sizeof(body),
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"},"
             "\"data\":{\"text\":\"%s\"}}",
             name, name);
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        vigil_kube_call *call = vigil_kube_request(
            users.behind, "POST", "/api/v1/namespaces/default/configmaps", NULL, vigil_text(body));
        if (run(call, CONFLICT) == MADE)
            return;
        actor_sleep(NS_PER_S);
    }
    violation("a ConfigMap cannot be created although nothing is wrong any more");
}

/* -- Judgements -- */

bool tier_users_expire(void)
{
    if (users.expired_ns)
        return false;
    users.expired_ns = actors_now();
    trace_line("the token of dan expires");
    coverage_add(COVERAGE_EXPIRED);
    tier_expire_token();
    return true;
}

/* Grows with every change of what the user may do. */
static uint64_t generation_of(enum tier_user user)
{
    return user == TIER_ANN ? users.generation : user == TIER_DAN ? !!users.expired_ns : 0;
}

static bool is_settled(enum tier_user user)
{
    if (user == TIER_DAN)
        return !users.expired_ns || actors_now() >= users.expired_ns + LAG_NS;
    return user != TIER_ANN || (!users.changing && !users.uncertain && !users.has_replica &&
                                actors_now() >= users.changed_ns + LAG_NS);
}

struct tier_judgement tier_users_look(enum tier_user user)
{
    bool has_right[TIER_USERS] = {
        [TIER_ROOT] = true, [TIER_ANN] = users.granted, [TIER_DAN] = !users.expired_ns};
    return (struct tier_judgement){
        .user = user,
        .granted = has_right[user],
        .known = is_settled(user),
        .generation = generation_of(user),
    };
}

static bool is_known(const struct tier_judgement *j)
{
    return j->known && j->generation == generation_of(j->user);
}

bool tier_users_had(const struct tier_judgement *j)
{
    return is_known(j) && j->granted;
}

bool tier_users_lacked(const struct tier_judgement *j)
{
    return is_known(j) && !j->granted;
}

void tier_users_judge(const struct tier_judgement *j, int code, const char *what)
{
    if (code == 401 && (j->user != TIER_DAN || tier_users_had(j)))
        violation("%s of %s: the token is refused", what, names[j->user]);
    if (code == 403 && tier_users_had(j))
        violation("%s of %s is forbidden, but the right was there", what, names[j->user]);
    if (code == 0 && tier_users_lacked(j))
        violation("%s of %s is answered without the right", what, names[j->user]);
}

/* -- Life -- */

void tier_users_begin(bool has_replica)
{
    users.has_replica = has_replica;
    users.expired_ns = 0;
    users.granted = users.changing = users.uncertain = false;
    users.uncertain_since_ns = users.changed_ns = 0;
    users.generation = 0;
    for (enum tier_user user = 0; user < TIER_USERS; user++)
        users.kubes[user] = connect_as(names[user], TIER_KUBE_ENDPOINT);
    users.behind = connect_as("root", MACHINE_KUBE_ENDPOINT);
    if (run(vigil_kube_request(users.behind, "POST", RBAC "clusterroles", NULL, vigil_text(role)),
            0) != MADE)
        violation("a role cannot be created although nothing is wrong");
}

void tier_users_end(void)
{
    for (enum tier_user user = 0; user < TIER_USERS; user++)
        vigil_kube_free(users.kubes[user]);
    vigil_kube_free(users.behind);
}
