#include "base/memory/budget.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    CELLS = 128,
    RESERVE_PART = 8, /* the last eighth is for accounts that hold little */
    STEP_PART = 1024, /* a thread takes this part of the limit in advance */
    STEP_BYTES_MAX = 256 * 1024,
    MUCH_PART = 4,
    FALL_PART = 16,
    FALL_BYTES_MIN = 1024 * 1024,
    CONNECTION_BYTES = 32 * 1024, /* a guess; 4 KiB to 40 KiB with TLS */
};

/* What a thread has taken from the budget in advance and not yet charged to an account. Written by
 * that thread alone. */
struct cell {
    _Alignas(64) _Atomic size_t ahead;
};

struct account {
    struct budget *budget;
    size_t bytes_max; /* its own limit */
    _Atomic size_t held;
    _Atomic unsigned refs;
};

struct budget {
    size_t limit;
    size_t step;
    void (*on_short)(void *ctx, size_t wanted);
    void *ctx;
    struct budget_levels levels;
    _Atomic bool much;   /* on_much was called */
    _Atomic size_t most; /* taken, and guessed for connections, since on_fall was called */
    _Atomic uint64_t refusals, reclaims;
    _Atomic size_t accounts;
    _Alignas(64) _Atomic size_t taken; /* held by accounts, or in cells */
    struct cell cells[CELLS];
};

static size_t load(const _Atomic size_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* -- Levels -- */

static size_t level(const struct budget *budget, size_t taken)
{
    return taken + load(&budget->accounts) * CONNECTION_BYTES;
}

/* Threads may overwrite each other's maximum by a smaller one: on_fall is then called a little
 * later. */
static void note_rise(struct budget *budget, size_t taken)
{
    size_t now = level(budget, taken);
    if (now > load(&budget->most))
        atomic_store_explicit(&budget->most, now, memory_order_relaxed);
    if (taken > budget->limit / MUCH_PART && budget->levels.on_much &&
        !atomic_load_explicit(&budget->much, memory_order_relaxed) &&
        !atomic_exchange(&budget->much, true))
        budget->levels.on_much(budget->levels.ctx);
}

static void note_fall(struct budget *budget, size_t taken)
{
    size_t now = level(budget, taken), most = load(&budget->most);
    if (most < now || most - now < size_max(budget->limit / FALL_PART, FALL_BYTES_MIN))
        return;
    /* Several threads may see it; one of them calls. */
    if (atomic_compare_exchange_strong(&budget->most, &most, now) && budget->levels.on_fall)
        budget->levels.on_fall(budget->levels.ctx);
}

void budget_set_levels(struct budget *budget, struct budget_levels levels)
{
    assert(load(&budget->accounts) == 0);
    budget->levels = levels;
}

void budget_calm(struct budget *budget)
{
    atomic_store(&budget->much, false);
}

/* -- Cells -- */

/* Threads are numbered in the order of their first use; one beyond the last cell takes nothing in
 * advance. */
static unsigned cell_index(void)
{
    static _Atomic unsigned next = 1;
    static _Thread_local unsigned mine;
    if (UNLIKELY(mine == 0))
        mine = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
    return mine - 1;
}

static struct cell *cell_of_thread(struct budget *budget)
{
    unsigned index = cell_index();
    return LIKELY(index < CELLS) ? &budget->cells[index] : NULL;
}

static bool take_shared(struct budget *budget, size_t bytes)
{
    size_t before = atomic_fetch_add_explicit(&budget->taken, bytes, memory_order_relaxed);
    if (LIKELY(bytes <= budget->limit && before <= budget->limit - bytes)) {
        note_rise(budget, before + bytes);
        return true;
    }
    atomic_fetch_sub_explicit(&budget->taken, bytes, memory_order_relaxed);
    return false;
}

static bool take(struct budget *budget, size_t bytes)
{
    struct cell *cell = cell_of_thread(budget);
    size_t ahead = cell ? load(&cell->ahead) : 0;
    if (LIKELY(ahead >= bytes)) {
        if (cell)
            atomic_store_explicit(&cell->ahead, ahead - bytes, memory_order_relaxed);
        return true;
    }
    size_t more = cell ? budget->step : 0, missing = bytes - ahead;
    if (more && !take_shared(budget, missing + more))
        more = 0;
    if (!more && !take_shared(budget, missing))
        return false;
    if (cell)
        atomic_store_explicit(&cell->ahead, more, memory_order_relaxed);
    return true;
}

static void give_back(struct budget *budget, size_t bytes)
{
    struct cell *cell = cell_of_thread(budget);
    size_t ahead = (cell ? load(&cell->ahead) : 0) + bytes;
    size_t keep = cell ? budget->step : 0;
    if (ahead > 2 * keep) {
        size_t before =
            atomic_fetch_sub_explicit(&budget->taken, ahead - keep, memory_order_relaxed);
        note_fall(budget, before - (ahead - keep));
        ahead = keep;
    }
    if (cell)
        atomic_store_explicit(&cell->ahead, ahead, memory_order_relaxed);
}

/* -- The budget -- */

enum status budget_new(size_t limit_bytes, struct budget **ret_budget)
{
    size_t bytes = align_up(sizeof(struct budget), _Alignof(struct budget));
    struct budget *budget = aligned_alloc(_Alignof(struct budget), bytes);
    if (!budget)
        return ST_NOMEM;
    memset(budget, 0, bytes);
    budget->limit = limit_bytes;
    budget->step = size_min(limit_bytes / STEP_PART, STEP_BYTES_MAX);
    *ret_budget = budget;
    return ST_OK;
}

static size_t held_bytes(const struct budget *budget)
{
    size_t ahead = 0, taken = load(&budget->taken);
    for (size_t i = 0; i < CELLS; i++)
        ahead += load(&budget->cells[i].ahead);
    return taken > ahead ? taken - ahead : 0; /* both read at about the same time */
}

void budget_check(const struct budget *budget)
{
    size_t ahead = 0;
    for (size_t i = 0; i < CELLS; i++) {
        assert(load(&budget->cells[i].ahead) <= 2 * budget->step);
        ahead += load(&budget->cells[i].ahead);
    }
    assert(load(&budget->taken) >= ahead);
    assert(load(&budget->accounts) > 0 || load(&budget->taken) == ahead);
}

void budget_free(struct budget *budget)
{
    if (!budget)
        return;
    assert(load(&budget->accounts) == 0);
    budget_check(budget);
    free(budget);
}

void budget_set_on_short(struct budget *budget, void (*on_short)(void *ctx, size_t wanted),
                         void *ctx)
{
    budget->on_short = on_short;
    budget->ctx = ctx;
}

static size_t free_bytes(const struct budget *budget)
{
    size_t taken = load(&budget->taken);
    return taken < budget->limit ? budget->limit - taken : 0;
}

static size_t reserve_bytes(const struct budget *budget)
{
    return budget->limit / RESERVE_PART;
}

/* An account that holds much may not hold more than stays free for all others. */
static bool leaves_enough(const struct budget *budget, size_t wanted, size_t bytes)
{
    size_t left = free_bytes(budget), reserve = reserve_bytes(budget);
    return wanted <= left && bytes + reserve <= left - wanted;
}

bool budget_has_room(const struct budget *budget, size_t wanted)
{
    return leaves_enough(budget, wanted, wanted); /* exactly this much, without a step in advance */
}

void budget_count_reclaim(struct budget *budget)
{
    atomic_fetch_add_explicit(&budget->reclaims, 1, memory_order_relaxed);
}

struct budget_stats budget_stats(const struct budget *budget)
{
    return (struct budget_stats){
        .limit_bytes = budget->limit,
        .held_bytes = held_bytes(budget),
        .refusals = atomic_load_explicit(&budget->refusals, memory_order_relaxed),
        .reclaims = atomic_load_explicit(&budget->reclaims, memory_order_relaxed),
    };
}

/* -- Accounts -- */

enum status account_new(struct budget *budget, struct account **ret_account)
{
    *ret_account = NULL;
    if (!budget)
        return ST_OK;
    struct account *account = calloc(1, sizeof(*account));
    if (!account)
        return ST_NOMEM;
    account->budget = budget;
    account->bytes_max = SIZE_MAX;
    account->refs = 1;
    atomic_fetch_add_explicit(&budget->accounts, 1, memory_order_relaxed);
    note_rise(budget, load(&budget->taken));
    *ret_account = account;
    return ST_OK;
}

void account_ref(struct account *account)
{
    if (account)
        atomic_fetch_add_explicit(&account->refs, 1, memory_order_relaxed);
}

void account_unref(struct account *account)
{
    if (!account || atomic_fetch_sub_explicit(&account->refs, 1, memory_order_acq_rel) > 1)
        return;
    assert(load(&account->held) == 0);
    struct budget *budget = account->budget;
    free(account);
    note_fall(budget, load(&budget->taken));
    atomic_fetch_sub_explicit(&budget->accounts, 1, memory_order_relaxed);
}

void account_limit(struct account *account, size_t bytes_max)
{
    if (account)
        account->bytes_max = bytes_max;
}

static void ask_for_more(struct budget *budget, size_t wanted)
{
    if (budget->on_short)
        budget->on_short(budget->ctx, wanted);
}

static bool charge(struct account *account, size_t bytes, size_t wanted)
{
    struct budget *budget = account->budget;
    bool little = wanted <= BUDGET_LITTLE_BYTES;
    if (wanted > account->bytes_max || (!little && !leaves_enough(budget, wanted, bytes)) ||
        !take(budget, bytes))
        return false;
    if (UNLIKELY(little && free_bytes(budget) < reserve_bytes(budget)))
        ask_for_more(budget, wanted);
    atomic_fetch_add_explicit(&account->held, bytes, memory_order_relaxed);
    return true;
}

size_t account_charge_up_to(struct account *account, size_t least, size_t most)
{
    assert(least <= most);
    if (!account)
        return most;
    size_t held = load(&account->held);
    if (LIKELY(charge(account, most, held + most)))
        return most;
    if (least < most && charge(account, least, held + least))
        return least;
    atomic_fetch_add_explicit(&account->budget->refusals, 1, memory_order_relaxed);
    /* Nothing that others free would help against its own limit. */
    if (held + least <= account->bytes_max)
        ask_for_more(account->budget, held + least);
    return 0;
}

bool account_charge(struct account *account, size_t bytes)
{
    return bytes == 0 || account_charge_up_to(account, bytes, bytes) > 0;
}

void account_charge_anyway(struct account *account, size_t bytes)
{
    if (account_charge(account, bytes))
        return;
    atomic_fetch_add_explicit(&account->budget->taken, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->held, bytes, memory_order_relaxed);
}

void account_release(struct account *account, size_t bytes)
{
    if (!account || bytes == 0)
        return;
    size_t before = atomic_fetch_sub_explicit(&account->held, bytes, memory_order_relaxed);
    assert(before >= bytes);
    give_back(account->budget, bytes);
}

size_t account_held_bytes(const struct account *account)
{
    return account ? load(&account->held) : 0;
}

/* -- Buffers -- */

static enum status grow(struct account *account, struct buf *buf, size_t more, bool anyway)
{
    size_t before = buf->capacity, after = buf_grown_capacity(buf, more);
    if (after == 0)
        return ST_NOMEM;
    if (anyway)
        account_charge_anyway(account, after - before);
    else if (!account_charge(account, after - before))
        return ST_NOMEM;
    enum status status = buf_grow(buf, more);
    if (status != ST_OK)
        account_release(account, after - before);
    assert(status != ST_OK || buf->capacity == after);
    return status;
}

enum status account_reserve(struct account *account, struct buf *buf, size_t more)
{
    if (LIKELY(more <= buf->capacity - buf->len))
        return ST_OK;
    return grow(account, buf, more, false);
}

enum status account_reserve_anyway(struct account *account, struct buf *buf, size_t more)
{
    if (LIKELY(more <= buf->capacity - buf->len))
        return ST_OK;
    return grow(account, buf, more, true);
}

enum status account_append(struct account *account, struct buf *buf, struct slice bytes)
{
    TRY(account_reserve(account, buf, bytes.len));
    return buf_append(buf, bytes);
}

enum status account_follow(struct account *account, struct buf *buf, size_t *charged)
{
    size_t before = *charged, now = buf->capacity;
    enum status status = ST_OK;
    if (LIKELY(now == before))
        return ST_OK;
    if (now > before && !account_charge(account, now - before)) {
        buf_fini(buf);
        status = ST_NOMEM;
        now = 0;
    }
    if (now < before)
        account_release(account, before - now);
    *charged = now;
    return status;
}
