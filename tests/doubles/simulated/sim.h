/*
 * A simulated network: loops, sockets and time in one thread, with every choice drawn from a seed.
 * Code that uses struct network and struct loop runs here unchanged, and the same seed gives the
 * same run, byte for byte.
 *
 * A step runs one turn of a loop that has work, chosen by the seed; if none has, time advances to
 * the next event. As the options say, bytes are delayed and split, buffers are small, and
 * connections break. Bytes of one direction keep their order.
 *
 * There are no threads: mailboxes of simulated loops are checked when a step is chosen. For tests:
 * without memory the process aborts.
 */
#ifndef VIGIL_SIMULATED_SIM_H
#define VIGIL_SIMULATED_SIM_H

#include "base/clock.h"
#include "base/random.h"
#include "io/socket.h"

struct sim;

struct sim_options {
    uint64_t seed;
    int64_t delay_min_ns, delay_max_ns; /* delay of written bytes */
    size_t buffer_bytes;     /* bytes in flight and unread in one direction; beyond that there is no
                                room */
    uint32_t split_per_1000; /* reads and writes that transfer only a part */
    uint32_t reset_per_million; /* reads and writes at which the connection breaks */
    uint32_t skip_per_1000;     /* ready handles that a turn does not notice yet */
    int64_t real_ns;            /* the real-time clock at the start */
};

#define SIM_OPTIONS_DEFAULT                        \
    ((struct sim_options){                         \
        .seed = 1,                                 \
        .delay_min_ns = 10 * NS_PER_US,            \
        .delay_max_ns = 500 * NS_PER_US,           \
        .buffer_bytes = 256 * 1024,                \
        .split_per_1000 = 300,                     \
        .skip_per_1000 = 200,                      \
        .real_ns = INT64_C(1700000000) * NS_PER_S, \
    })

struct sim *sim_new(const struct sim_options *options);
void sim_free(struct sim *sim); /* after its loops are freed and its sockets and listeners closed */
DEFINE_CLEANUP(struct sim *, sim_free)

struct network *sim_network(struct sim *sim);
struct clock *sim_clock(struct sim *sim);
/* For the choices of the test itself. */
struct random *sim_random(struct sim *sim);

/* False: nothing will happen without new input: no bytes are in flight, no timer is set. */
bool sim_step(struct sim *sim);
/* Steps until that time or until nothing will happen; the clock is then at that time. */
void sim_run_until(struct sim *sim, int64_t mono_ns);

/* When sim_step does something besides advancing the time: now, later or CLOCK_NEVER. */
int64_t sim_next_ns(struct sim *sim);

/* The connection breaks: both ends read and write ST_CLOSED. */
void sim_reset(struct socket *socket);

enum sim_fault {
    SIM_BREAK,   /* both ends read and write ST_CLOSED */
    SIM_SILENCE, /* from now on nothing arrives; it breaks when TCP's keepalive notices that */
    SIM_SLOW,    /* from now on everything takes a second longer */
};
/* Happens to one of the open connections. False: there is none. */
bool sim_disturb(struct sim *sim, enum sim_fault fault);
/* The machine that listens there is gone: its connections break, and new ones are refused until
 * another listener has the address. */
void sim_unplug(struct sim *sim, const struct address *address);
/* Whether the network delivers anything to that address. If not, connections to it break, and new
 * ones are refused, although a server listens there. One address at a time is not reachable. */
void sim_set_reachable(struct sim *sim, const struct address *address, bool reachable);
/* Half of the connections to the address go to the other one from now on. One address at a time. */
void sim_share(struct sim *sim, const struct address *address, const struct address *other);

#endif
