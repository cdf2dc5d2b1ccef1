#include "plan.h"

#include "base/random.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned percent; /* of the seeds */
} switches[SWITCHES] = {
    [SWITCH_CUT] = {"cut", 60},
    [SWITCH_KILL] = {"kill", 40},
    [SWITCH_STOP] = {"stop", 30},
    [SWITCH_ERRORS] = {"errors", 25},
    [SWITCH_FULL] = {"full", 15},
    [SWITCH_SLOW] = {"slow", 20},
    [SWITCH_MISDIRECT] = {"misdirect", 30},
    [SWITCH_ROT] = {"rot", 10},
    [SWITCH_BREAK] = {"break", 50},
    [SWITCH_SILENCE] = {"silence", 25},
    [SWITCH_DELAY] = {"delay", 25},
    [SWITCH_PAUSE] = {"pause", 40},
    [SWITCH_CLOCK] = {"clock", 25},
    [SWITCH_LEASES] = {"leases", 60},
    [SWITCH_WATCHES] = {"watches", 80},
    [SWITCH_COMPACTION] = {"compaction", 60},
    [SWITCH_MAINTENANCE] = {"maintenance", 50},
    [SWITCH_AUTH] = {"auth", 30},
    [SWITCH_KUBE] = {"kube", 25},
    [SWITCH_LARGE] = {"large", 40},
    [SWITCH_TLS] = {"tls", 25},
    [SWITCH_FRONT] = {"front", 25},
};

struct plan plan_make(uint64_t seed, const struct plan_limits *limits)
{
    struct random random;
    random_init(&random, seed);
    struct plan plan = {.seed = seed};
    for (size_t i = 0; i < SWITCHES; i++)
        plan.on[i] = random_chance(&random, switches[i].percent, 100);
    plan.clients = 2 + (unsigned)random_below(&random, 3);
    plan.operations = 10 + (unsigned)random_below(&random, 60);
    plan.shards = 1 + (unsigned)random_below(&random, 3);
    plan.on[SWITCH_KUBE] &= !plan.on[SWITCH_AUTH]; /* it would need credentials */
    if (plan.on[SWITCH_FRONT]) {
        plan.operations /= 2; /* two servers take twice as long */
        plan.on[SWITCH_FULL] |= random_chance(&random, 20, 100);
    }
    for (size_t i = 0; i < SWITCHES; i++)
        plan.on[i] &= !limits->off[i];
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

enum plan_switch switch_named(const char *name, size_t len)
{
    enum plan_switch which = 0;
    while (which < SWITCHES &&
           (strlen(switches[which].name) != len || strncmp(switches[which].name, name, len) != 0))
        which++;
    return which;
}
