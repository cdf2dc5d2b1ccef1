/*
 * The limit of memory that clients together may make the process hold. A budget has a limit; every
 * connection has an account with it. Everything whose size a peer chooses is charged to the account
 * of its connection before it is allocated, and released when it is freed.
 *
 *     budget ──┬── account of a connection ◄── arenas and buffers of its calls
 *              ├── account …
 *              └── cells: what each thread has taken in advance, so that small charges of different
 *                         threads do not share a cache line
 *
 * When the budget runs short, the accounts that hold much are refused first: an account may not
 * grow beyond what is left for all others, and the last eighth is reserved for accounts that hold
 * little. So one account never holds more than 7/16 of the budget. Memory that a client does not
 * read from its connection can only be freed by closing the connection: `on_short` is called when
 * an account was refused or needed a part of the last eighth, with the total it wanted to hold.
 * Connections that hold clearly more may be closed for it, the largest first (budget_may_end).
 *
 * Accounts may be used on any thread. Without one (NULL) nothing is counted and nothing refused.
 */
#ifndef VIGIL_BASE_MEMORY_BUDGET_H
#define VIGIL_BASE_MEMORY_BUDGET_H

#include "base/buf.h"

struct account;
struct budget;

/* An account with at most this much holds little: a page of metrics must always be possible. */
enum { BUDGET_LITTLE_BYTES = 256 * 1024 };

MUST_CHECK
enum status budget_new(size_t limit_bytes, struct budget **ret_budget);
/* To be called after all of its accounts are freed. Accepts NULL. */
void budget_free(struct budget *budget);
DEFINE_CLEANUP(struct budget *, budget_free)

/* To be called before the first account. on_short is called on the thread that charges; see above.
 */
void budget_set_on_short(struct budget *budget, void (*on_short)(void *ctx, size_t wanted),
                         void *ctx);

/* What the owner of the allocator wants to know. Both are called on the thread that charges or
 * releases, and must not block. Accounts count here with a guess of what their connections take. */
struct budget_levels {
    void (*on_much)(void *ctx); /* more than a quarter is held; again after budget_calm */
    void (*on_fall)(void *ctx); /* a sixteenth less is held than at the most since the last call */
    void *ctx;
};
/* To be called while there is no account. */
void budget_set_levels(struct budget *budget, struct budget_levels levels);
/* What on_much has brought about was undone. */
void budget_calm(struct budget *budget);

/* Whether an account could hold this much now without using the last eighth. */
bool budget_has_room(const struct budget *budget, size_t wanted);
/* Whether a connection that holds `held` may be closed for the sake of one that wants `wanted`. It
 * must hold a quarter more, because a connection may have grown since it was refused itself. */
static inline bool budget_may_end(size_t held, size_t wanted)
{
    return held / 5 * 4 > wanted;
}
/* A connection was closed to free what its account held. */
void budget_count_reclaim(struct budget *budget);

struct budget_stats {
    size_t limit_bytes, held_bytes;
    uint64_t refusals; /* charges that were refused */
    uint64_t reclaims; /* connections closed because others could not get their share */
};
struct budget_stats budget_stats(const struct budget *budget);
/* Asserts that the budget is consistent. No thread may use it meanwhile. */
void budget_check(const struct budget *budget);

/* Returns one reference for the caller. Without a budget there is no account either. */
MUST_CHECK
enum status account_new(struct budget *budget, struct account **ret_account);
void account_ref(struct account *account);
/* With the last reference nothing may be held any more. */
void account_unref(struct account *account);

/* From now on the account is refused what would make it hold more than this, although the budget
 * has room. */
void account_limit(struct account *account, size_t bytes_max);

/* False: refused, and nothing was charged. */
MUST_CHECK
bool account_charge(struct account *account, size_t bytes);
/* Charges `most` if possible, otherwise `least` (not 0). Returns which; 0: refused. */
MUST_CHECK
size_t account_charge_up_to(struct account *account, size_t least, size_t most);
/* Never refused: for control frames and for short error answers, which have limits of their own.
 * The budget may be exceeded by as much. */
void account_charge_anyway(struct account *account, size_t bytes);
void account_release(struct account *account, size_t bytes);
size_t account_held_bytes(const struct account *account);

/* Buffers whose capacity is charged. ST_NOMEM: refused, or there is no memory. */
MUST_CHECK
enum status account_reserve(struct account *account, struct buf *buf, size_t more);
MUST_CHECK
enum status account_append(struct account *account, struct buf *buf, struct slice bytes);
/* Not refused by the budget, which may be exceeded by as much. */
MUST_CHECK
enum status account_reserve_anyway(struct account *account, struct buf *buf, size_t more);
/* For a buffer that is filled by code without access to the account: charges or releases the
 * difference between its capacity and *charged. ST_NOMEM: refused. The buffer is freed and empty
 * then, since it would otherwise be held without being counted. */
MUST_CHECK
enum status account_follow(struct account *account, struct buf *buf, size_t *charged);
/* As buf_fini and buf_reset. Most buffers of most calls are empty. */
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
