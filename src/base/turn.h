/*
 * How long the turns of a thread take, and what it does in them. Every thread that works in turns
 * (an I/O thread, the writer, the keeper) has a struct turn; it begins and ends its turns, and
 * names each piece of work as it begins:
 *
 *     turn_begin ─► turn_work("calling", path) ─► turn_work_done ─► … ─► turn_end
 *
 * Every turn is counted in a histogram of its kind of thread. One that took TURN_LONG_NS or more is
 * reported with its longest piece of work, so that an operator learns which request held up
 * everybody else on that thread.
 *
 * Ending a piece of work costs a read of the coarse clock, which is a few nanoseconds and right to
 * some milliseconds; nothing is formatted unless a piece of work was long. Code that names work
 * does not have to know who runs it: without a turn under way on this thread nothing happens.
 *
 * struct turns is shared by all threads; each struct turn belongs to one.
 */
#ifndef VIGIL_BASE_TURN_H
#define VIGIL_BASE_TURN_H

#include "base/clock.h"
#include "base/metric/page.h"
#include "base/slice.h"

struct turns;
struct turn;

#define TURN_LONG_NS (100 * NS_PER_MS)
enum {
    TURN_KINDS_MAX = 8,
    TURN_TEXT_BYTES = 192,
    TURN_REPORTS_BURST = 10, /* of one thread; afterwards one a second, the others are counted */
    TURN_REPORTS_PER_S = 1,
};

struct turn_report {
    const char *thread; /* kind of thread: "io" */
    int64_t took_ns;
    int64_t cpu_ns;   /* of the thread in that time, to about 10 ms; the rest it waited */
    const char *work; /* the longest piece of work: "calling /etcdserverpb.KV/Txn" */
    int64_t work_ns;
    const char *peer;    /* whose it was; "": not known */
    uint64_t suppressed; /* reports of this thread that were left out before this one */
};

struct turns_options {
    struct clock *clock;
    int64_t (*cpu_ns)(void *ctx); /* of the calling thread; NULL: the system's answer */
    /* On the thread whose turn it was, after the turn. NULL: only the histogram. */
    void (*on_long)(void *ctx, const struct turn_report *report);
    void *ctx;
};

MUST_CHECK
enum status turns_new(const struct turns_options *options, struct turns **ret_turns);
void turns_free(struct turns *turns); /* with every turn that joined */
DEFINE_CLEANUP(struct turns *, turns_free)

/* For one more thread of a kind, of which there are at most TURN_KINDS_MAX; kind is static text.
 * NULL turns give a NULL turn, which measures nothing. Any thread. */
MUST_CHECK
enum status turns_join(struct turns *turns, const char *kind, struct turn **ret_turn);

/* Any thread: the histograms. */
void turns_write(const struct turns *turns, struct metric_page *page);

/* -- The owner's side. A NULL turn is allowed. -- */

void turn_begin(struct turn *turn, int64_t now_ns);
void turn_end(struct turn *turn, int64_t now_ns);

/* -- Naming the work of this thread -- */

extern _Thread_local struct turn *turn_here; /* NULL outside of turns */

void turn_phase_in(struct turn *turn, const char *doing);
void turn_work_in(struct turn *turn, const char *doing, struct slice what);
void turn_work_copy_in(struct turn *turn, const char *doing, struct slice first,
                       struct slice second);
bool turn_work_done_in(struct turn *turn);

/* The part of the turn that begins: work in it that has no other name is called so. Static text. */
static inline void turn_phase(const char *doing)
{
    if (turn_here)
        turn_phase_in(turn_here, doing);
}

/* What the thread does from here on. doing is static text; what must outlive the turn, or be
 * empty. */
static inline void turn_work(const char *doing, struct slice what)
{
    if (turn_here)
        turn_work_in(turn_here, doing, what);
}

/* The same, for texts that go away: what fits of "first second" is copied. */
static inline void turn_work_copy(const char *doing, struct slice first, struct slice second)
{
    if (turn_here)
        turn_work_copy_in(turn_here, doing, first, second);
}

/* That work, and what came before it for the same peer, is over; what follows is the phase's. True:
 * some of it was long, and turn_peer may say whose it was. */
static inline bool turn_work_done(void)
{
    return turn_here && turn_work_done_in(turn_here);
}

void turn_peer(const char *peer);

#endif
