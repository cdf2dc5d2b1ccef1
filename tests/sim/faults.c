#include "faults.h"

#include "actors.h"
#include "coverage.h"
#include "supervisor.h"
#include "trace.h"

static struct {
    const struct plan *plan;
    struct sim *sim;
    struct random random;
    struct actor *maker;
    bool making;
    struct machine *front_machine, *replica_machine; /* NULL: there is none */
    struct supervisor server, front, replica;
} faults;

static uint64_t below(uint64_t n)
{
    return random_below(&faults.random, n);
}

static void jump(void)
{
    int64_t ns = (int64_t)below(20 * NS_PER_S);
    trace_line("the clock jumps");
    struct clock_sim *clock = CONTAINER_OF(sim_clock(faults.sim), struct clock_sim, clock);
    bool set = below(2);
    coverage_add(set ? COVERAGE_CLOCK_SET : COVERAGE_SUSPEND);
    if (set)
        clock->real_offset_ns += below(2) ? ns : -ns;
    else
        clock_sim_advance(clock, ns);
}

/* Two servers cannot reach each other for a while. A replica becomes older then. */
static void cut_link(void)
{
    bool is_replicas = faults.replica_machine && below(2);
    struct machine *machine = is_replicas ? faults.replica_machine : faults.front_machine;
    trace_line("the way between the servers is cut%s", is_replicas ? " (replica)" : "");
    coverage_add(COVERAGE_LINK);
    machine_set_link(machine, false);
    actor_sleep((int64_t)below(6 * NS_PER_S));
    if (!machine_has_died(machine))
        machine_set_link(machine, true);
}

static void disturb_connection(enum sim_fault fault, enum coverage what)
{
    if (sim_disturb(faults.sim, fault))
        coverage_add(what);
}

static void disturb(enum plan_switch which)
{
    switch (which) {
    case SWITCH_BREAK:
        if (faults.front_machine && below(2))
            cut_link();
        else
            disturb_connection(SIM_BREAK, COVERAGE_BREAK);
        break;
    case SWITCH_SILENCE:
        disturb_connection(SIM_SILENCE, COVERAGE_SILENCE);
        break;
    case SWITCH_DELAY:
        disturb_connection(SIM_SLOW, COVERAGE_DELAY);
        break;
    case SWITCH_PAUSE:
        coverage_add(COVERAGE_PAUSE);
        actors_pause_one(actors_now() + (int64_t)below(3 * NS_PER_S));
        break;
    case SWITCH_CLOCK:
        jump();
        break;
    default:
        break;
    }
}

static void cause(enum plan_switch which)
{
    /* A full disk is more interesting where a mirror has to wait for it. */
    bool at_front = faults.front_machine && below(which == SWITCH_FULL ? 4 : 2);
    bool at_replica = at_front && faults.replica_machine && below(2);
    trace_line("fault: %s%s", switch_name(which),
               at_replica ? " (replica)"
               : at_front ? " (front)"
                          : "");
    if (!supervisor_cause(at_replica ? &faults.replica
                          : at_front ? &faults.front
                                     : &faults.server,
                          which))
        disturb(which);
}

/* With two servers the clients do less, so that there is less time: one that is switched on is
 * preferred. */
static enum plan_switch choose(void)
{
    enum plan_switch which = (enum plan_switch)below(SWITCH_LEASES);
    for (int i = 0; i < 2 && faults.front_machine && !faults.plan->on[which]; i++)
        which = (enum plan_switch)below(SWITCH_LEASES);
    return which;
}

static void make_faults(void *arg)
{
    (void)arg;
    while (faults.making) {
        enum plan_switch which = choose();
        actor_sleep((int64_t)below(400 * NS_PER_MS));
        if (faults.making && faults.plan->on[which])
            cause(which);
    }
}

/* -- Life -- */

void faults_begin(const struct plan *plan, struct sim *sim, struct machine *machine)
{
    faults.plan = plan;
    faults.sim = sim;
    faults.making = false;
    faults.front_machine = faults.replica_machine = NULL;
    faults.front = faults.replica = (struct supervisor){0};
    random_init(&faults.random, plan->seed + 1);
    supervisor_begin(&faults.server, machine, plan, plan->seed + 6);
}

void faults_begin_front(struct machine *machine)
{
    faults.front_machine = machine;
    supervisor_begin(&faults.front, machine, faults.plan, faults.plan->seed + 7);
    faults.front.heals = true;
}

void faults_begin_replica(struct machine *machine)
{
    faults.replica_machine = machine;
    supervisor_begin(&faults.replica, machine, faults.plan, faults.plan->seed + 10);
    faults.replica.heals = true;
}

static void set_making(bool making)
{
    faults.making = faults.server.making = faults.front.making = faults.replica.making = making;
}

void faults_start(void)
{
    set_making(true);
    faults.maker = actor_start("faults", make_faults, NULL);
}

void faults_stop(void)
{
    set_making(false);
    actor_join(faults.maker);
    supervisor_repair(&faults.server);
    if (faults.front_machine)
        supervisor_repair(&faults.front);
    if (faults.replica_machine)
        supervisor_repair(&faults.replica);
    trace_line("nothing is wrong any more");
}

bool faults_have_rotted(void)
{
    return faults.server.rotted || faults.front.rotted || faults.replica.rotted;
}

bool faults_have_rotted_behind(void)
{
    return faults.server.rotted;
}

bool faults_have_damaged(void)
{
    return faults.server.damaged;
}

void faults_empty(void)
{
    coverage_add(COVERAGE_EMPTY);
    trace_line("the server loses its data");
    supervisor_empty(&faults.server);
}

void faults_end(void)
{
    if (faults.front_machine)
        supervisor_end(&faults.front);
    if (faults.replica_machine)
        supervisor_end(&faults.replica);
    supervisor_end(&faults.server);
}
