/*
 * A network that is not there: loops, sockets and time in one thread, every choice drawn from a
 * seed. What runs over struct network and struct loop runs here unchanged, and the same seed gives
 * the same run, byte for byte.
 *
 * A step lets one loop that has something to do take a turn, chosen by the seed; when none has,
 * time jumps to the next thing that will happen. Bytes take a while, arrive split anywhere, meet
 * small buffers, and connections break, as the options say. Bytes of one direction keep their
 * order.
 *
 * Threads do not exist here: mailboxes of simulated loops are looked at when steps are chosen.
 * Without memory the process ends: this is for tests.
 */
#ifndef VIGIL_IO_SIM_H
#define VIGIL_IO_SIM_H

#include "base/clock.h"
#include "base/random.h"
#include "io/socket.h"

struct sim;

struct sim_options {
    uint64_t seed;
    int64_t delay_min_ns, delay_max_ns; /* of a write's bytes on their way */
    size_t buffer_bytes;                /* on the way and unread in one direction; then "no room" */
    uint32_t split_per_1000;    /* reads and writes that take only part of what they could */
    uint32_t reset_per_million; /* reads and writes at which the connection breaks */
    uint32_t skip_per_1000;     /* ready handles a turn does not notice yet */
    int64_t real_ns;            /* the real clock at the start */
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
void sim_free(struct sim *sim); /* its loops are freed, its sockets and listeners closed */
DEFINE_CLEANUP(struct sim *, sim_free)

struct network *sim_network(struct sim *sim);
struct clock *sim_clock(struct sim *sim);
/* For the choices of the test itself. */
struct random *sim_random(struct sim *sim);

/* False when nothing will ever happen by itself: no bytes on the way, no timer set. */
bool sim_step(struct sim *sim);
/* Steps until the time is reached or nothing will happen; the clock then stands at that time. */
void sim_run_until(struct sim *sim, int64_t mono_ns);

/* The connection breaks: both ends read and write ST_CLOSED. */
void sim_reset(struct socket *socket);

#endif
