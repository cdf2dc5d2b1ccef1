/*
 * The line in which questions wait for a review, and the reviews under way.
 *
 *     idle ──add──► queued ──────► asked ──────► answered, idle
 *                    ▲ └──────────────────────────▲   (it has waited too long)
 *                    └──────────────┘ the server is busy
 *
 * Askers take turns: users, and addresses of clients whose tokens are not known. Each has two
 * queues: questions that a request waits for go first, except that every fourth review is one of
 * the others. An asker has at most TIER_USER_REVIEWS_MAX reviews under way, so that one whose
 * reviews take long does not keep the others from being answered.
 *
 * While --upstream-qps allows no more calls, the questions wait; and while the server is restarting
 * or throttles, nothing is sent for a while, and the questions stay in line. An urgent one is
 * answered with a failure after TIER_ANSWER_NS; or at once, if no connection can be made. This is
 * shared for a moment: questions that arrive then fail without another attempt.
 *
 * Nothing is answered from within a function of the line. One for each tier_rights, on its thread.
 */
#ifndef VIGIL_TIER_RIGHTS_LINE_H
#define VIGIL_TIER_RIGHTS_LINE_H

#include "base/buf.h"
#include "base/container/hash_map.h"
#include "base/container/list.h"
#include "base/random.h"
#include "io/loop.h"
#include "tier/link/link.h"
#include "tier/link/rate.h"

struct tier_asker;
struct tier_line;

enum tier_urgency { TIER_URGENT, TIER_LATER, TIER_URGENCIES };

enum tier_ask_state { TIER_ASK_IDLE, TIER_ASK_QUEUED, TIER_ASK_ASKED };

struct tier_ask_answer {
    unsigned code;      /* HTTP's; 0: there is no answer, and the reason says why */
    struct slice body;  /* borrowed */
    const char *reason; /* borrowed */
};

/* A question. Embedded by its owner; zeroed except for what the owner sets, it is idle. */
struct tier_ask {
    /* Set by the owner. */
    const char *path;
    /* Appends the review to be sent now. ST_NOMEM. */
    enum status (*write)(struct tier_ask *ask, struct buf *to);
    /* Idle again; may add the question again, and free it. */
    void (*answered)(struct tier_ask *ask, const struct tier_ask_answer *answer);

    /* For the owner to read. */
    enum tier_ask_state state;
    int64_t sent_ns;     /* in answered: when it was sent last */
    uint32_t connection; /* that over which it was answered, as in tier_call */

    /* Private. */
    struct tier_line *line;
    struct tier_asker *asker;
    enum tier_urgency urgency;
    size_t bytes;
    struct list in_asker; /* links asker.queued while queued, line.asked while asked */
    struct timer deadline;
    int64_t deadline_ns; /* valid if it is urgent */
    struct tier_call call;
};

struct tier_line {
    struct loop *loop;
    struct tier_link *link;
    struct tier_lane lane; /* --upstream-qps */
    struct random random;
    struct hash_map askers; /* struct tier_asker, owned */
    struct list turns[TIER_URGENCIES];
    struct list asked; /* tier_ask.in_asker */
    size_t asked_count;
    size_t urgent_count, queued_count; /* queued */
    size_t bytes;                      /* what waits with urgent questions */
    unsigned sent;                     /* reviews, for the turns of those that are not urgent */
    struct deferred send;
    struct timer resume; /* set: the server is away */
    bool unreached;      /* valid while it is away: no connection can be made */
    unsigned failures;   /* in a row */
    char reason[256];    /* why the server is away */
    struct buf body;     /* for writing */
    /* For counters; may be NULL. A review has ended, with HTTP's code or 0; and, at the end of a
     * turn, the numbers of questions may have changed. */
    void (*ended)(struct tier_line *line, unsigned code, int64_t elapsed_ns);
    void (*changed)(struct tier_line *line);
};

/* rate: borrowed; NULL: no limit. */
void tier_line_init(struct tier_line *line, struct loop *loop, struct tier_link *link,
                    struct tier_rate *rate, uint64_t seed);
/* All questions are idle. A zeroed line may be finished. */
void tier_line_fini(struct tier_line *line);

/*
 * Puts an idle question into the line. key: of the asker; copied. bytes: what waits with it.
 * ST_REQUEST_TOO_MANY_REQUESTS: too much waits (only for urgent ones); ST_NOMEM.
 */
MUST_CHECK
enum status tier_line_add(struct tier_line *line, struct tier_ask *ask, struct slice key,
                          enum tier_urgency urgency, size_t bytes);
/* A request waits for it now; it is not idle. The same errors; then nothing is changed. */
MUST_CHECK
enum status tier_line_urge(struct tier_ask *ask);
/* Idle, without an answer. No effect if it is idle. */
void tier_line_remove(struct tier_ask *ask);

/* Asserts every invariant; for tests. */
void tier_line_check(const struct tier_line *line);

#endif
