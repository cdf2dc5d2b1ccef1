#include "run.h"

#include "actors.h"
#include "checks.h"
#include "clients.h"
#include "faults.h"
#include "front.h"
#include "kube.h"
#include "kube_model.h"
#include "leases.h"
#include "machine.h"
#include "maintenance.h"
#include "operations.h"
#include "tier.h"
#include "tier_clients.h"
#include "tier_states.h"
#include "tier_watches.h"
#include "tls.h"
#include "trace.h"
#include "watchers.h"
#include "wraps.h"

#include <stdio.h>
#include <string.h>

/* A watch may take this long after everything was repaired: connections that fell silent have to be
 * noticed, and servers that are slow. */
#define ARRIVAL_NS_MAX (60 * NS_PER_S)

struct run {
    const struct plan *plan;
    struct sim *sim;
    struct machine *server, *front; /* owned; front: NULL if there is none; or the tier */
    struct machine *replica;        /* owned; behind a tier; NULL: there is none */
};

/* A bit has changed on the disk, and the server has noticed it: the run ends here. */
static bool is_damaged(void)
{
    return faults_have_damaged() || (faults_have_rotted() && watchers_audit_has_ended());
}

/* Reads everything, and waits until the watches have delivered it. */
static void settle(vigil_client *client)
{
    if (is_damaged())
        return;
    int64_t revision = client_read_all(client), until = actors_now() + ARRIVAL_NS_MAX;
    while (!watchers_have_reached(revision) && !is_damaged()) {
        if (actors_now() > until)
            violation("watches have not delivered revision %lld after a minute",
                      (long long)revision);
        watchers_ask();
        watchers_resume();
        actor_sleep(100 * NS_PER_MS);
    }
}

static const struct version *leased_key(void)
{
    const struct version *left[RANGE_MAX];
    size_t count = history_range(" ", "~", history_revision(), left);
    for (size_t i = 0; i < count; i++)
        if (left[i]->lease)
            return left[i];
    return NULL;
}

/* A start of the server renews all leases, and so does a stall of the machine. */
static void await_leases(vigil_client *client)
{
    int64_t until = actors_now() + CLIENTS_TTL_MAX_S * NS_PER_S + ARRIVAL_NS_MAX;
    const struct version *left;
    settle(client);
    while (!is_damaged() && (left = leased_key())) {
        if (actors_now() > until)
            violation("%s still exists, but its lease %lld is over", left->key,
                      (long long)left->lease);
        actor_sleep(NS_PER_S);
    }
    settle(client);
}

/* What is damaged on the disk of the front must be there again; the server behind has no other copy
 * of its own. */
static void compare_servers(const struct run *run)
{
    if (!run->plan->on[SWITCH_FRONT] || faults_have_rotted_behind())
        return;
    const char *user = run->plan->on[SWITCH_AUTH] ? "root" : NULL;
    vigil_client *front = client_connect(user, FRONT_ENDPOINT);
    vigil_client *behind = client_connect(user, MACHINE_ENDPOINT);
    front_compare(front, behind);
    vigil_client_free(front);
    vigil_client_free(behind);
}

/* The server behind a tier is restored without data: its versions go back. The models begin again,
 * and so does the audit. */
static void lose_history(vigil_client *auditor)
{
    faults_empty();
    history_begin();
    operations_end();
    operations_begin();
    kube_model_begin();
    tier_states_begin();
    tier_watches_lose();
    watchers_audit(auditor, false);
    tier_clients_lose();
    settle(auditor);
    tier_states_finish();
    checks_finish(false);
    watchers_end();
}

static void control(void *arg)
{
    const struct run *run = arg;
    const struct plan *plan = run->plan;
    faults_begin(plan, run->sim, run->server);
    if (run->replica)
        faults_begin_replica(run->replica);
    if (plan->on[SWITCH_AUTH])
        clients_enable_auth();
    if (run->front)
        faults_begin_front(run->front);
    if (plan->on[SWITCH_TIER])
        tier_clients_begin(plan);
    const char *endpoints = front_endpoints(plan->on[SWITCH_FRONT], (unsigned)plan->seed);
    vigil_client *auditor = client_connect(plan->on[SWITCH_AUTH] ? "root" : NULL, endpoints);
    watchers_audit(auditor, strcmp(endpoints, MACHINE_ENDPOINT) != 0);
    clients_start(plan);
    if (plan->on[SWITCH_KUBE])
        kube_start(plan);
    if (plan->on[SWITCH_TIER])
        tier_clients_start();
    faults_start();
    clients_join();
    if (plan->on[SWITCH_KUBE])
        kube_join();
    if (plan->on[SWITCH_TIER])
        tier_clients_join();
    faults_stop();
    leases_release();
    settle(auditor);
    if (plan->on[SWITCH_LEASES])
        await_leases(auditor);
    if (plan->on[SWITCH_KUBE] && !is_damaged())
        kube_settle();
    if (plan->on[SWITCH_TIER] && !is_damaged())
        tier_clients_settle();
    compare_servers(run);
    checks_finish(is_damaged());
    watchers_end();
    if (plan->on[SWITCH_KUBE])
        kube_end();
    if (plan->on[SWITCH_TIER] && !plan->on[SWITCH_REPLICA] && !faults_have_rotted())
        lose_history(auditor);
    if (plan->on[SWITCH_TIER])
        tier_clients_end();
    clients_free();
    vigil_client_free(auditor);
    faults_end();
}

static struct sim *make_sim(const struct plan *plan)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.seed = plan->seed + 2;
    return sim_new(&options);
}

static struct machine *make_machine(const struct plan *plan, struct sim *sim,
                                    enum machine_role role)
{
    bool is_replica = role == MACHINE_FRONT && plan->on[SWITCH_TIER];
    return machine_new(&(struct machine_options){
        .sim = sim,
        .role = role,
        .seed = plan->seed + (role == MACHINE_FIRST ? 5
                              : is_replica          ? 11
                                                    : 8),
        .shards = plan->shards,
        .kube = plan->on[SWITCH_KUBE],
        .slow_disk = plan->on[SWITCH_SLOW],
        .misdirects = plan->on[SWITCH_MISDIRECT],
        .has_tier = role != MACHINE_TIER && plan->on[SWITCH_TIER],
        .user = plan->on[SWITCH_AUTH] ? "root" : NULL,
    });
}

struct run_result run_plan(const struct plan *plan, bool prints)
{
    struct run run = {.plan = plan, .sim = make_sim(plan)};
    actors_begin(run.sim, plan->seed + 3);
    wraps_begin(run.sim, plan->seed + 4);
    trace_begin(prints);
    coverage_begin(plan->on[SWITCH_FRONT] || plan->on[SWITCH_TIER]);
    history_begin();
    operations_begin();
    watchers_begin();
    kube_model_begin();
    tier_states_begin();
    maintenance_begin();
    front_begin();
    if (plan->on[SWITCH_TIER])
        tier_begin(plan->seed);
    if (plan->on[SWITCH_TLS])
        sim_tls_begin(plan->seed + 9);
    run.server = make_machine(plan, run.sim, MACHINE_FIRST);
    if (plan->on[SWITCH_FRONT] || plan->on[SWITCH_TIER])
        run.front =
            make_machine(plan, run.sim, plan->on[SWITCH_TIER] ? MACHINE_TIER : MACHINE_FRONT);
    if (plan->on[SWITCH_REPLICA])
        run.replica = make_machine(plan, run.sim, MACHINE_FRONT);
    if (!actors_run(actor_start("control", control, &run)))
        violation("every actor waits, and nothing will happen");
    struct run_result result = {
        .hash = trace_hash(),
        .steps = actors_steps(),
        .operations = operations_count(),
        .revisions = (uint64_t)history_revision(),
        .seconds = (double)actors_now() / 1e9,
        .coverage = *coverage_counts(),
    };
    machine_free(run.replica);
    machine_free(run.front);
    machine_free(run.server);
    tier_end();
    sim_tls_end();
    operations_end();
    maintenance_end();
    history_end();
    actors_end();
    wraps_end();
    sim_free(run.sim);
    return result;
}

void run_print(const struct plan *plan, const struct run_result *result)
{
    printf("seed %llu: trace %016llx, %llu steps, %llu operations, %llu revisions, %.1f s\n",
           (unsigned long long)plan->seed, (unsigned long long)result->hash,
           (unsigned long long)result->steps, (unsigned long long)result->operations,
           (unsigned long long)result->revisions, result->seconds);
}
