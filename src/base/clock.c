#include "base/clock.h"

#include <time.h>

static int64_t read_system(clockid_t id)
{
    struct timespec t;
    int failed = clock_gettime(id, &t);
    assert(!failed);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int64_t system_mono_ns(struct clock *clock)
{
    (void)clock;
    return read_system(CLOCK_MONOTONIC);
}

static int64_t system_real_ns(struct clock *clock)
{
    (void)clock;
    return read_system(CLOCK_REALTIME);
}

static int64_t system_coarse_ns(struct clock *clock)
{
    (void)clock;
    return read_system(CLOCK_MONOTONIC_COARSE);
}

struct clock *clock_system(void)
{
    static const struct clock_ops ops = {
        .mono_ns = system_mono_ns, .real_ns = system_real_ns, .coarse_ns = system_coarse_ns};
    static struct clock clock = {.ops = &ops};
    return &clock;
}

static struct clock_sim *sim_of(struct clock *clock)
{
    return CONTAINER_OF(clock, struct clock_sim, clock);
}

static int64_t sim_mono_ns(struct clock *clock)
{
    return sim_of(clock)->mono_ns;
}

static int64_t sim_real_ns(struct clock *clock)
{
    struct clock_sim *sim = sim_of(clock);
    return sim->mono_ns + sim->real_offset_ns;
}

void clock_sim_init(struct clock_sim *sim, int64_t real_ns)
{
    static const struct clock_ops ops = {
        .mono_ns = sim_mono_ns, .real_ns = sim_real_ns, .coarse_ns = sim_mono_ns};
    *sim = (struct clock_sim){.clock.ops = &ops, .mono_ns = NS_PER_S};
    sim->real_offset_ns = real_ns - sim->mono_ns;
}

void clock_sim_advance(struct clock_sim *sim, int64_t by_ns)
{
    assert(by_ns >= 0);
    sim->mono_ns = clock_add(sim->mono_ns, by_ns);
}

void clock_sim_advance_to(struct clock_sim *sim, int64_t mono_ns)
{
    assert(mono_ns != CLOCK_NEVER);
    if (mono_ns > sim->mono_ns)
        sim->mono_ns = mono_ns;
}
