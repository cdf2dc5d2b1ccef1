#include "faults.h"

#include "actors.h"
#include "disk.h"
#include "history.h"
#include "machine.h"
#include "trace.h"

static struct {
    const struct plan *plan;
    struct sim *sim;
    struct random random;
    struct actor *keeper, *maker;
    bool making, ending;
    bool rotted;     /* a bit has changed */
    bool damaged;    /* the server has noticed that, and does not start */
    bool disk_fails; /* an error was planned, or the disk is full */
} faults;

static uint64_t below(uint64_t n)
{
    return random_below(&faults.random, n);
}

/* -- The one who starts the server -- */

static void repair_disk(void)
{
    disk_heal();
    faults.disk_fails = false;
}

/* True: the server runs, or has died again. False: its data is damaged, and it says so. */
static bool start_server(void)
{
    for (unsigned i = 0;; i++) {
        struct error error = {0};
        bool died = false;
        if (faults.making && faults.plan->on[SWITCH_CUT] && i < 3 && below(4) == 0)
            disk_plan_crash(1 + below(60));
        enum status status = machine_start(&died, &error);
        if (status == ST_OK)
            return true;
        if (faults.rotted && (status == ST_DAMAGED || status == ST_WRONG_FORMAT))
            return false;
        if (!died && !faults.disk_fails)
            violation("the server does not start: %s", error.text);
        if (i >= 3 || !faults.making)
            repair_disk();
        actor_sleep(100 * NS_PER_MS);
    }
}

static void keep_running(void *arg)
{
    (void)arg;
    while (!faults.ending || machine_has_died()) {
        if (machine_has_died() && !machine_is_down())
            machine_bury();
        if (machine_is_down() && !faults.ending && !faults.damaged) {
            actor_sleep((int64_t)below(2 * NS_PER_S));
            faults.damaged = !start_server();
        }
        if (!machine_has_died())
            actor_sleep(50 * NS_PER_MS);
    }
}

/* -- The one who causes faults -- */

static bool stop_server(void)
{
    return !machine_is_down() && !machine_has_died() && machine_stop();
}

/* What was written before a stop is known to be durable, so that every change must be noticed. */
static void rot(void)
{
    if (faults.rotted || faults.disk_fails || !stop_server() || !machine_is_down())
        return;
    faults.rotted = true;
    disk_rot();
}

static void jump(void)
{
    int64_t ns = (int64_t)below(20 * NS_PER_S);
    trace_line("the clock jumps");
    struct clock_sim *clock = CONTAINER_OF(sim_clock(faults.sim), struct clock_sim, clock);
    if (below(2))
        clock->real_offset_ns += below(2) ? ns : -ns;
    else
        clock_sim_advance(clock, ns);
}

static void die(enum machine_end_kind kind)
{
    if (!machine_is_down() && !machine_has_died())
        machine_die(kind);
}

static void cause(enum plan_switch which)
{
    trace_line("fault: %s", switch_name(which));
    switch (which) {
    case SWITCH_CUT:
        if (below(2))
            disk_plan_crash(1 + below(100));
        else
            die(MACHINE_CUT);
        break;
    case SWITCH_KILL:
        die(MACHINE_KILLED);
        break;
    case SWITCH_STOP:
        (void)stop_server();
        break;
    case SWITCH_ERRORS:
        faults.disk_fails = true;
        disk_plan_error(1 + below(50));
        break;
    case SWITCH_FULL:
        faults.disk_fails = true;
        disk_set_full(true);
        actor_sleep((int64_t)below(8 * NS_PER_S));
        disk_set_full(false);
        break;
    case SWITCH_ROT:
        rot();
        break;
    case SWITCH_BREAK:
        sim_disturb(faults.sim, SIM_BREAK);
        break;
    case SWITCH_SILENCE:
        sim_disturb(faults.sim, SIM_SILENCE);
        break;
    case SWITCH_DELAY:
        sim_disturb(faults.sim, SIM_SLOW);
        break;
    case SWITCH_PAUSE:
        actors_pause_one(actors_now() + (int64_t)below(2 * NS_PER_S));
        break;
    case SWITCH_CLOCK:
        jump();
        break;
    default:
        break;
    }
}

static void make_faults(void *arg)
{
    (void)arg;
    while (faults.making) {
        enum plan_switch which = (enum plan_switch)below(SWITCH_LEASES);
        actor_sleep((int64_t)below(400 * NS_PER_MS));
        if (faults.making && faults.plan->on[which])
            cause(which);
    }
}

/* -- Life -- */

static void await_server(void)
{
    while (!faults.damaged && (machine_is_down() || machine_has_died()))
        actor_sleep(10 * NS_PER_MS);
}

void faults_begin(const struct plan *plan, struct sim *sim)
{
    faults.plan = plan;
    faults.sim = sim;
    faults.making = faults.ending = faults.disk_fails = false;
    faults.rotted = faults.damaged = false;
    random_init(&faults.random, plan->seed + 1);
    faults.keeper = actor_start("supervisor", keep_running, NULL);
    await_server();
}

void faults_start(void)
{
    faults.making = true;
    faults.maker = actor_start("faults", make_faults, NULL);
}

void faults_stop(void)
{
    faults.making = false;
    disk_plan_crash(0);
    actor_join(faults.maker);
    disk_plan_crash(0);
    repair_disk();
    await_server();
    trace_line("nothing is wrong any more");
}

bool faults_have_rotted(void)
{
    return faults.rotted;
}

bool faults_have_damaged(void)
{
    return faults.damaged;
}

void faults_end(void)
{
    faults.ending = true;
    actor_join(faults.keeper);
    if (!machine_is_down())
        (void)machine_stop();
}
