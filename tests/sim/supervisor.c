#include "supervisor.h"

#include "actors.h"
#include "disk.h"
#include "history.h"

static uint64_t below(struct supervisor *s, uint64_t n)
{
    return random_below(&s->random, n);
}

static struct disk *disk_of(const struct supervisor *s)
{
    return machine_disk(s->machine);
}

/* -- Starting -- */

static void repair_disk(struct supervisor *s)
{
    disk_heal(disk_of(s));
    s->disk_fails = false;
}

/* True: the server runs, or has died again. False: its data is damaged, and it says so. */
static bool start_server(struct supervisor *s)
{
    for (unsigned i = 0;; i++) {
        struct error error = {0};
        bool died = false;
        if (s->making && s->plan->on[SWITCH_CUT] && i < 3 && below(s, 4) == 0)
            disk_plan_crash(disk_of(s), 1 + below(s, 60));
        enum status status = machine_start(s->machine, &died, &error);
        if (status == ST_OK)
            return true;
        if (s->rotted && !s->heals && (status == ST_DAMAGED || status == ST_WRONG_FORMAT))
            return false;
        if (!died && !s->disk_fails)
            violation("the server does not start: %s", error.text);
        if (i >= 3 || !s->making)
            repair_disk(s);
        actor_sleep(100 * NS_PER_MS);
    }
}

static void keep_running(void *arg)
{
    struct supervisor *s = arg;
    struct machine *machine = s->machine;
    while (!s->ending || machine_has_died(machine)) {
        if (machine_has_died(machine) && !machine_is_down(machine))
            machine_bury(machine);
        if (machine_has_void_mirror(machine))
            machine_discard_mirror(machine);
        if (machine_is_down(machine) && !s->ending && !s->damaged) {
            actor_sleep((int64_t)below(s, 2 * NS_PER_S));
            s->damaged = !start_server(s);
        }
        if (!machine_has_died(machine))
            actor_sleep(50 * NS_PER_MS);
    }
}

/* -- Faults -- */

static bool stop_server(struct supervisor *s)
{
    return !machine_is_down(s->machine) && !machine_has_died(s->machine) &&
           machine_stop(s->machine);
}

/* What was written before a stop is known to be durable, so that every change must be noticed. */
static void rot(struct supervisor *s)
{
    if (s->rotted || s->disk_fails || !stop_server(s) || !machine_is_down(s->machine))
        return;
    s->rotted = true;
    disk_rot(disk_of(s));
}

static void die(struct supervisor *s, enum machine_end_kind kind)
{
    if (!machine_is_down(s->machine) && !machine_has_died(s->machine))
        machine_die(s->machine, kind);
}

bool supervisor_cause(struct supervisor *s, enum plan_switch which)
{
    switch (which) {
    case SWITCH_CUT:
        if (below(s, 2))
            disk_plan_crash(disk_of(s), 1 + below(s, 100));
        else
            die(s, MACHINE_CUT);
        return true;
    case SWITCH_KILL:
        die(s, MACHINE_KILLED);
        return true;
    case SWITCH_STOP:
        (void)stop_server(s);
        return true;
    case SWITCH_ERRORS:
        s->disk_fails = true;
        disk_plan_error(disk_of(s), 1 + below(s, 50));
        return true;
    case SWITCH_FULL:
        s->disk_fails = true;
        disk_set_full(disk_of(s), true);
        actor_sleep((int64_t)below(s, 8 * NS_PER_S));
        disk_set_full(disk_of(s), false);
        return true;
    case SWITCH_ROT:
        rot(s);
        return true;
    default:
        return false;
    }
}

/* -- Life -- */

static void await_server(const struct supervisor *s)
{
    while (!s->damaged && (machine_is_down(s->machine) || machine_has_died(s->machine)))
        actor_sleep(10 * NS_PER_MS);
}

void supervisor_begin(struct supervisor *s, struct machine *machine, const struct plan *plan,
                      uint64_t seed)
{
    *s = (struct supervisor){.machine = machine, .plan = plan};
    random_init(&s->random, seed);
    s->actor = actor_start("supervisor", keep_running, s);
    await_server(s);
}

void supervisor_repair(struct supervisor *s)
{
    disk_plan_crash(disk_of(s), 0);
    repair_disk(s);
    await_server(s);
}

void supervisor_empty(struct supervisor *s)
{
    while (!stop_server(s) || !machine_is_down(s->machine))
        actor_sleep(10 * NS_PER_MS);
    disk_remove_tree(disk_of(s), MACHINE_DIR);
    await_server(s);
}

void supervisor_end(struct supervisor *s)
{
    s->ending = true;
    actor_join(s->actor);
    if (!machine_is_down(s->machine))
        (void)machine_stop(s->machine);
}
