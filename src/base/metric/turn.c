#include "base/metric/turn.h"

#include "base/lock.h"
#include "base/rate_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* How old the last reading of the thread's processor time may be when a turn begins. Reading it is
 * a system call, too expensive for every turn. */
#define CPU_AGE_NS_MAX (10 * NS_PER_MS)

/* Shorter pieces of work are not recorded: the coarse clock may have ticked just then. */
#define WORTH_NOTING_NS (TURN_LONG_NS / 10)

static const int64_t bounds[] = {
    100 * NS_PER_US, 200 * NS_PER_US, 500 * NS_PER_US, 1 * NS_PER_MS,
    2 * NS_PER_MS,   5 * NS_PER_MS,   10 * NS_PER_MS,  20 * NS_PER_MS,
    50 * NS_PER_MS,  100 * NS_PER_MS, 200 * NS_PER_MS, 500 * NS_PER_MS,
    1 * NS_PER_S,    2 * NS_PER_S,    5 * NS_PER_S,    10 * NS_PER_S,
};
static const struct metric_buckets seconds = {bounds, COUNT_OF(bounds), NS_PER_S};

/* Belongs to its thread. */
struct turn {
    struct turns *turns;
    struct turn *next; /* in turns.all */
    const char *kind;
    struct metric_block *block;
    unsigned first_slot;
    int64_t begun_ns;

    const char *phase; /* the name of work without its own name */
    const char *doing; /* the current work; NULL: the previous one is over and no other has begun */
    struct slice what;
    int64_t since_ns; /* coarse */
    uint8_t copied[TURN_TEXT_BYTES];

    int64_t longest_ns; /* the longest of this turn's completed pieces of work; 0: none yet */
    char longest[2 * TURN_TEXT_BYTES];
    char peer[TURN_TEXT_BYTES];
    bool peer_wanted; /* the longest was recorded in this phase, and was long enough to find its
                         client */

    int64_t cpu_ns, cpu_at_ns; /* processor time of the thread, and when it was read */
    struct rate_limit reports;
    uint64_t suppressed;
};

struct turns {
    struct turns_options options;
    struct metric_set *set; /* owned */
    struct lock lock;       /* guards the following fields */
    struct turn *all;       /* owned */
    const char *kinds[TURN_KINDS_MAX];
    unsigned kind_count;
};

_Thread_local struct turn *turn_here;

static int64_t thread_cpu_ns(void *ctx)
{
    (void)ctx;
    struct timespec t;
    int failed = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    assert(!failed);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* -- Life -- */

enum status turns_new(const struct turns_options *options, struct turns **ret_turns)
{
    AUTO(turns_freep) struct turns *turns = calloc(1, sizeof(*turns));
    if (!turns)
        return ST_NOMEM;
    lock_init(&turns->lock);
    turns->options = *options;
    if (!turns->options.cpu_ns)
        turns->options.cpu_ns = thread_cpu_ns;
    TRY(metric_set_new(TURN_KINDS_MAX * METRIC_SLOTS, &turns->set));
    *ret_turns = TAKE(turns);
    return ST_OK;
}

void turns_free(struct turns *turns)
{
    if (!turns)
        return;
    while (turns->all) {
        struct turn *turn = turns->all;
        turns->all = turn->next;
        free(turn);
    }
    metric_set_free(turns->set);
    lock_fini(&turns->lock);
    free(turns);
}

/* The lock is held. */
static unsigned kind_index(struct turns *turns, const char *kind)
{
    for (unsigned i = 0; i < turns->kind_count; i++)
        if (strcmp(turns->kinds[i], kind) == 0)
            return i;
    assert(turns->kind_count < TURN_KINDS_MAX);
    turns->kinds[turns->kind_count] = kind;
    return turns->kind_count++;
}

enum status turns_join(struct turns *turns, const char *kind, struct turn **ret_turn)
{
    *ret_turn = NULL;
    if (!turns)
        return ST_OK;
    struct metric_block *block;
    TRY(metric_set_join(turns->set, &block));
    struct turn *turn = calloc(1, sizeof(*turn));
    if (!turn)
        return ST_NOMEM;
    turn->turns = turns;
    turn->kind = kind;
    turn->block = block;
    LOCK_SCOPE(&turns->lock);
    turn->first_slot = kind_index(turns, kind) * METRIC_SLOTS;
    turn->next = turns->all;
    turns->all = turn;
    *ret_turn = turn;
    return ST_OK;
}

void turns_write(const struct turns *turns, struct metric_page *page)
{
    static const char name[] = "vigil_turn_duration_seconds";
    metric_page_head(page, name, METRIC_HISTOGRAM,
                     "How long a turn of a thread took, in which nothing else on it was served.");
    struct lock *lock = (struct lock *)(uintptr_t)&turns->lock;
    lock_take(lock);
    unsigned count = turns->kind_count;
    lock_release(lock);
    for (unsigned i = 0; i < count; i++) {
        uint64_t slots[METRIC_SLOTS];
        char labels[64];
        metric_sum_histogram(turns->set, i * METRIC_SLOTS, slots);
        snprintf(labels, sizeof(labels), "thread=\"%s\"", turns->kinds[i]);
        metric_page_row_histogram(page, name, labels, &seconds, slots);
    }
}

/* -- The longest piece of work -- */

static void note_longest(struct turn *turn, int64_t took_ns)
{
    turn->longest_ns = took_ns;
    turn->peer[0] = 0;
    turn->peer_wanted = took_ns >= TURN_LONG_NS / 2;
    snprintf(turn->longest, sizeof(turn->longest), "%s%s%.*s",
             turn->doing ? turn->doing : turn->phase, turn->what.len ? " " : "",
             (int)size_min(turn->what.len, TURN_TEXT_BYTES), (const char *)turn->what.ptr);
}

/* The current work is over, or never began: the caller names what follows. */
static void end_work(struct turn *turn)
{
    int64_t now_ns = clock_coarse_ns(turn->turns->options.clock);
    int64_t took_ns = now_ns - turn->since_ns;
    if (UNLIKELY(took_ns > turn->longest_ns && took_ns >= WORTH_NOTING_NS))
        note_longest(turn, took_ns);
    turn->since_ns = now_ns;
    turn->doing = NULL;
    turn->what = SLICE_EMPTY;
}

/* -- Turns -- */

static void read_cpu(struct turn *turn, int64_t now_ns)
{
    turn->cpu_ns = turn->turns->options.cpu_ns(turn->turns->options.ctx);
    turn->cpu_at_ns = now_ns;
}

void turn_begin(struct turn *turn, int64_t now_ns)
{
    if (!turn)
        return;
    turn->begun_ns = now_ns;
    turn->phase = "beginning the turn";
    turn->doing = NULL;
    turn->what = SLICE_EMPTY;
    turn->since_ns = now_ns;
    turn->longest_ns = 0;
    turn->peer_wanted = false;
    if (now_ns - turn->cpu_at_ns > CPU_AGE_NS_MAX)
        read_cpu(turn, now_ns);
    turn_here = turn;
}

static void report(struct turn *turn, int64_t now_ns, int64_t took_ns)
{
    const struct turns_options *options = &turn->turns->options;
    int64_t cpu_before_ns = turn->cpu_ns;
    read_cpu(turn, now_ns);
    if (!options->on_long)
        return;
    if (!rate_limit_take(&turn->reports, TURN_REPORTS_BURST, TURN_REPORTS_PER_S, now_ns)) {
        turn->suppressed++;
        return;
    }
    int64_t cpu_ns = turn->cpu_ns - cpu_before_ns;
    options->on_long(options->ctx,
                     &(struct turn_report){
                         .thread = turn->kind,
                         .took_ns = took_ns,
                         .cpu_ns = cpu_ns < took_ns ? cpu_ns : took_ns,
                         .work = turn->longest_ns ? turn->longest : "many pieces of work",
                         .work_ns = turn->longest_ns,
                         .peer = turn->longest_ns ? turn->peer : "",
                         .suppressed = turn->suppressed,
                     });
    turn->suppressed = 0;
}

void turn_end(struct turn *turn, int64_t now_ns)
{
    if (!turn || turn_here != turn) /* the thread got it in this turn, whose beginning is unknown */
        return;
    int64_t took_ns = now_ns > turn->begun_ns ? now_ns - turn->begun_ns : 0;
    metric_observe(turn->block, turn->first_slot, &seconds, took_ns);
    if (UNLIKELY(took_ns >= TURN_LONG_NS)) {
        end_work(turn);
        report(turn, now_ns, took_ns);
    }
    turn_here = NULL;
}

/* -- Work -- */

/* Work in the phase since the last named piece ended, such as reading the request, counts for this
 * piece. Consecutive calls of one method are one piece. So a piece costs one read of the clock, and
 * many small ones cost no more. */
static void begin_work(struct turn *turn, const char *doing, struct slice what)
{
    if (turn->doing == doing && turn->what.ptr == what.ptr)
        return;
    if (turn->doing && turn->doing != turn->phase)
        end_work(turn);
    turn->doing = doing;
    turn->what = what;
}

void turn_work_in(struct turn *turn, const char *doing, struct slice what)
{
    begin_work(turn, doing, what);
}

void turn_work_copy_in(struct turn *turn, const char *doing, struct slice first,
                       struct slice second)
{
    begin_work(turn, doing, SLICE_EMPTY);
    size_t n = size_min(first.len, sizeof(turn->copied) - 1);
    slice_copy(turn->copied, slice_sub(first, 0, n));
    turn->copied[n++] = ' ';
    size_t rest = size_min(second.len, sizeof(turn->copied) - n);
    slice_copy(turn->copied + n, slice_sub(second, 0, rest));
    turn->what = slice_of(turn->copied, n + rest);
}

bool turn_work_done_in(struct turn *turn)
{
    end_work(turn);
    bool wanted = turn->peer_wanted;
    turn->peer_wanted = false;
    return wanted;
}

void turn_phase_in(struct turn *turn, const char *doing)
{
    if (turn->doing)
        end_work(turn);
    turn->phase = turn->doing = doing;
    turn->peer_wanted = false;
}

void turn_peer(const char *peer)
{
    if (turn_here)
        snprintf(turn_here->peer, sizeof(turn_here->peer), "%s", peer);
}
