/*
 * How long the turns of a thread take, and what it does in them. Every thread that works in turns
 * (an I/O thread, the writer, the keeper) has a struct turn; it begins and ends its turns, and
 * names each piece of work as it begins:
 *
 *     turn_begin ─► turn_work("calling", path) ─► turn_work_done ─► … ─► turn_end
 *
 * Every turn is counted in a histogram of its kind of thread. A turn of TURN_LONG_NS or more is
 * reported with its longest piece of work, so that an operator learns which request delayed the
 * other clients of that thread.
 *
 * Ending a piece of work reads the coarse clock, which takes a few nanoseconds and is accurate to
 * some milliseconds; nothing is formatted unless a piece of work was long. Code that names work
 * need not know which thread runs it: without a current turn on this thread nothing happens.
 *
 * struct turns is shared by all threads; each struct turn belongs to one.
 */
#ifndef VIGIL_BASE_METRIC_TURN_H
#define VIGIL_BASE_METRIC_TURN_H

#include "base/clock.h"
#include "base/metric/page.h"
#include "base/slice.h"

struct turns;
struct turn;

#define TURN_LONG_NS (100 * NS_PER_MS)
enum {
    TURN_KINDS_MAX = 8,
    TURN_TEXT_BYTES = 192,
    TURN_REPORTS_BURST = 10, /* per thread; afterwards one per second, and the others are counted */
    TURN_REPORTS_PER_S = 1,
};

struct turn_report {
    const char *thread; /* kind of thread: "io" */
    int64_t took_ns;
    int64_t cpu_ns;   /* CPU time of the thread in that time, accurate to about 10 ms; it waited for
                         the rest */
    const char *work; /* the longest piece of work: "calling /etcdserverpb.KV/Txn" */
    int64_t work_ns;
    const char *peer;    /* the client; "": unknown */
    uint64_t suppressed; /* reports of this thread that were omitted before this one */
};

struct turns_options {
    struct clock *clock;
    int64_t (*cpu_ns)(void *ctx); /* CPU time of the calling thread; NULL: asks the system */
    /* Called on the thread of the turn, after the turn. NULL: only the histogram is kept. */
    void (*on_long)(void *ctx, const struct turn_report *report);
    void *ctx;
};

MUST_CHECK
enum status turns_new(const struct turns_options *options, struct turns **ret_turns);
void turns_free(struct turns *turns); /* also frees every turn that joined */
DEFINE_CLEANUP(struct turns *, turns_free)

/* For one more thread of a kind, of which there are at most TURN_KINDS_MAX; kind is static text.
 * NULL turns give a NULL turn, which measures nothing. Any thread. */
MUST_CHECK
enum status turns_join(struct turns *turns, const char *kind, struct turn **ret_turn);

/* Any thread: the histograms. */
void turns_write(const struct turns *turns, struct metric_page *page);

/* -- For the owner. A NULL turn is allowed. -- */

void turn_begin(struct turn *turn, int64_t now_ns);
void turn_end(struct turn *turn, int64_t now_ns);

/* -- Naming the work of this thread -- */

extern _Thread_local struct turn *turn_here; /* NULL outside of turns */

void turn_phase_in(struct turn *turn, const char *doing);
void turn_work_in(struct turn *turn, const char *doing, struct slice what);
void turn_work_copy_in(struct turn *turn, const char *doing, struct slice first,
                       struct slice second);
bool turn_work_done_in(struct turn *turn);

/* Begins a part of the turn, which also names work that has no other name. Static text. */
static inline void turn_phase(const char *doing)
{
    if (turn_here)
        turn_phase_in(turn_here, doing);
}

/* Names what the thread does from here on. doing is static text; what must outlive the turn, or be
 * empty. */
static inline void turn_work(const char *doing, struct slice what)
{
    if (turn_here)
        turn_work_in(turn_here, doing, what);
}

/* The same for temporary texts: as much of "first second" as fits is copied. */
static inline void turn_work_copy(const char *doing, struct slice first, struct slice second)
{
    if (turn_here)
        turn_work_copy_in(turn_here, doing, first, second);
}

/* That work, and what preceded it for the same client, is over; what follows belongs to the phase.
 * True: some of it was long, and turn_peer may name the client. */
static inline bool turn_work_done(void)
{
    return turn_here && turn_work_done_in(turn_here);
}

void turn_peer(const char *peer);

#endif
