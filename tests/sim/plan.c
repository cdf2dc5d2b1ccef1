#include "plan.h"

#include "base/random.h"

#include <string.h>

static const struct {
    const char *name;
    const char *text; /* for the report */
    unsigned percent; /* percentage of the seeds */
} switches[SWITCHES] = {
    [SWITCH_CUT] = {"cut", "power cuts", 60},
    [SWITCH_KILL] = {"kill", "kills", 40},
    [SWITCH_STOP] = {"stop", "stops and starts", 30},
    [SWITCH_ERRORS] = {"errors", "disk calls that fail", 25},
    [SWITCH_FULL] = {"full", "a full disk", 15},
    [SWITCH_SLOW] = {"slow", "slow syncs", 20},
    [SWITCH_MISDIRECT] = {"misdirect", "sectors in the wrong place", 30},
    [SWITCH_ROT] = {"rot", "changed bits", 10},
    [SWITCH_BREAK] = {"break", "broken connections", 50},
    [SWITCH_SILENCE] = {"silence", "half-open connections", 25},
    [SWITCH_DELAY] = {"delay", "slow connections", 25},
    [SWITCH_PAUSE] = {"pause", "pauses of threads", 40},
    [SWITCH_CLOCK] = {"clock", "jumping clocks", 25},
    [SWITCH_LEASES] = {"leases", "leases", 60},
    [SWITCH_WATCHES] = {"watches", "watches", 80},
    [SWITCH_COMPACTION] = {"compaction", "compactions", 60},
    [SWITCH_MAINTENANCE] = {"maintenance", "snapshots, hashes and defragmentation", 50},
    [SWITCH_AUTH] = {"auth", "users and roles", 30},
    [SWITCH_KUBE] = {"kube", "the Kubernetes API", 25},
    [SWITCH_LARGE] = {"large", "large values", 40},
    [SWITCH_TLS] = {"tls", "TLS", 25},
    [SWITCH_FRONT] = {"front", "a server in front of another", 25},
    [SWITCH_TIER] = {"tier", "the watch tier in front of the Kubernetes API", 12},
    [SWITCH_REPLICA] = {"replica", "an older server at the address behind the watch tier", 40},
};

/* It takes the place of another server in front. */
static void place_tier(struct plan *plan)
{
    if (!plan->on[SWITCH_FRONT])
        plan->operations /= 2;
    plan->on[SWITCH_FRONT] = plan->on[SWITCH_AUTH] = false;
    plan->on[SWITCH_KUBE] = true;
}

struct plan plan_make(uint64_t seed, const struct plan_limits *limits)
{
    struct random random;
    random_init(&random, seed);
    struct plan plan = {.seed = seed};
    for (size_t i = 0; i < SWITCH_TIER; i++)
        plan.on[i] = random_chance(&random, switches[i].percent, 100);
    plan.clients = 2 + (unsigned)random_below(&random, 3);
    plan.operations = 10 + (unsigned)random_below(&random, 60);
    plan.shards = 1 + (unsigned)random_below(&random, 3);
    plan.on[SWITCH_KUBE] &= !plan.on[SWITCH_AUTH]; /* it would need credentials */
    if (plan.on[SWITCH_FRONT]) {
        plan.operations /= 2; /* two servers take twice as long */
        plan.on[SWITCH_FULL] |= random_chance(&random, 20, 100);
    }
    plan.on[SWITCH_TIER] = random_chance(&random, switches[SWITCH_TIER].percent, 100);
    if (plan.on[SWITCH_TIER])
        place_tier(&plan);
    plan.on[SWITCH_REPLICA] = random_chance(&random, switches[SWITCH_REPLICA].percent, 100);
    for (size_t i = 0; i < SWITCHES; i++)
        plan.on[i] &= !limits->off[i];
    plan.on[SWITCH_TIER] &= plan.on[SWITCH_KUBE];
    plan.on[SWITCH_REPLICA] &= plan.on[SWITCH_TIER];
    if (limits->operations && limits->operations < plan.operations)
        plan.operations = limits->operations;
    if (limits->clients && limits->clients < plan.clients)
        plan.clients = limits->clients;
    return plan;
}

const char *switch_name(enum plan_switch which)
{
    return switches[which].name;
}

const char *switch_text(enum plan_switch which)
{
    return switches[which].text;
}

enum plan_switch switch_named(const char *name, size_t len)
{
    enum plan_switch which = 0;
    while (which < SWITCHES &&
           (strlen(switches[which].name) != len || strncmp(switches[which].name, name, len) != 0))
        which++;
    return which;
}
