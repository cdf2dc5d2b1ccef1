/*
 * How much memory clients may make the process hold, all together. A budget has a limit; every
 * connection has an account with it. Whatever a peer decides the size of is charged to the account
 * of its connection before it is allocated, and released when it is freed.
 *
 *     budget ──┬── account of a connection ◄── arenas and buffers of its calls
 *              ├── account …
 *              └── cells: what each thread has taken ahead, so that small charges of different
 *                         threads do not meet in one cache line
 *
 * When the budget runs short, those who hold much are refused first: an account may not grow past
 * what is left for all others, and the last eighth is left to accounts that hold little. So one
 * account never holds more than 7/16 of the budget. What a client does not take is only given back
 * by ending its connection: `on_short` is called when an account was refused or needed a part of
 * the last eighth, with what it wanted to hold in all. Whoever holds more than that may be ended
 * for it, the largest first (budget_may_end).
 *
 * Accounts may be used on any thread. Without one (NULL) nothing is counted and nothing refused.
 */
#ifndef VIGIL_BASE_MEMORY_BUDGET_H
#define VIGIL_BASE_MEMORY_BUDGET_H

#include "base/buf.h"

struct account;
struct budget;

/* An account with no more than this holds little: a page of metrics must always go. */
enum { BUDGET_LITTLE_BYTES = 256 * 1024 };

MUST_CHECK
enum status budget_new(size_t limit_bytes, struct budget **ret_budget);
/* After all of its accounts. NULL is fine. */
void budget_free(struct budget *budget);
DEFINE_CLEANUP(struct budget *, budget_free)

/* Before the first account. on_short is called on the thread that charges; see above. */
void budget_set_on_short(struct budget *budget, void (*on_short)(void *ctx, size_t wanted),
                         void *ctx);

/* Whether an account might hold so much now, and the last eighth is free. */
bool budget_has_room(const struct budget *budget, size_t wanted);
/* Whether a connection with so much may be ended for the sake of one that wants so much. */
static inline bool budget_may_end(size_t held, size_t wanted)
{
    return held > wanted;
}
/* An account's connection was ended to get back what it held. */
void budget_count_reclaim(struct budget *budget);

struct budget_stats {
    size_t limit_bytes, held_bytes;
    uint64_t refusals; /* charges that were refused */
    uint64_t reclaims; /* connections ended because others could not get their share */
};
struct budget_stats budget_stats(const struct budget *budget);

/* One reference for the caller. Without a budget there is no account either. */
MUST_CHECK
enum status account_new(struct budget *budget, struct account **ret_account);
void account_ref(struct account *account);
/* With the last reference nothing may be held any more. */
void account_unref(struct account *account);

/* False: refused, and nothing was charged. */
MUST_CHECK
bool account_charge(struct account *account, size_t bytes);
/* Charges most if that is possible, otherwise least (not 0). Returns which; 0: refused. */
MUST_CHECK
size_t account_charge_up_to(struct account *account, size_t least, size_t most);
/* Never refused: for control frames and for the few bytes of an answer that says no, which have
 * limits of their own. The budget may be passed by as much. */
void account_charge_anyway(struct account *account, size_t bytes);
void account_release(struct account *account, size_t bytes);
size_t account_held_bytes(const struct account *account);

/* Buffers whose capacity is charged. ST_NOMEM: refused, or there is no memory. */
MUST_CHECK
enum status account_reserve(struct account *account, struct buf *buf, size_t more);
MUST_CHECK
enum status account_append(struct account *account, struct buf *buf, struct slice bytes);
/* Not refused by the budget, which may be passed by as much. */
MUST_CHECK
enum status account_reserve_anyway(struct account *account, struct buf *buf, size_t more);
/* For a buffer that others fill, which know nothing of the account: charges or releases what its
 * capacity differs from *charged. ST_NOMEM: refused, and nothing has changed. */
MUST_CHECK
enum status account_follow(struct account *account, const struct buf *buf, size_t *charged);
/* As buf_fini and buf_reset. Most buffers of most calls hold nothing. */
static inline void account_buf_fini(struct account *account, struct buf *buf)
{
    if (!buf->capacity)
        return;
    account_release(account, buf->capacity);
    buf_fini(buf);
}

static inline void account_buf_reset(struct account *account, struct buf *buf, size_t keep_max)
{
    buf->len = 0;
    if (buf->capacity > keep_max)
        account_buf_fini(account, buf);
}

#endif
