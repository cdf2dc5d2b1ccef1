#include "base/memory/budget.h"

#include "base/memory/arena.h"
#include "base/random.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

enum { MIB = 1 << 20, LIMIT = 64 * MIB, CHUNK = 100 * 1000 };

static unsigned asked;
static size_t asked_for;

static void note_short(void *ctx, size_t wanted)
{
    (void)ctx;
    asked++;
    asked_for = wanted;
}

static struct budget *budget_of(size_t limit)
{
    struct budget *budget;
    assert_int_equal(budget_new(limit, &budget), ST_OK);
    budget_set_on_short(budget, note_short, NULL);
    asked = 0;
    return budget;
}

static struct account *account_of(struct budget *budget)
{
    struct account *account;
    assert_int_equal(account_new(budget, &account), ST_OK);
    return account;
}

/* Charges as much as the budget allows. */
static size_t hog(struct account *account)
{
    while (account_charge(account, CHUNK))
        continue;
    return account_held_bytes(account);
}

static void drop(struct account *account)
{
    account_release(account, account_held_bytes(account));
    account_unref(account);
}

static void charges_are_held_until_they_are_released(void **state)
{
    (void)state;
    struct budget *budget = budget_of(LIMIT);
    struct account *a = account_of(budget), *b = account_of(budget);
    assert_true(account_charge(a, 1000));
    assert_true(account_charge(b, 10));
    assert_true(account_charge(b, 0));
    assert_int_equal(account_held_bytes(a), 1000);
    assert_int_equal(budget_stats(budget).held_bytes, 1010);
    assert_int_equal(budget_stats(budget).limit_bytes, LIMIT);
    account_release(a, 400);
    assert_int_equal(budget_stats(budget).held_bytes, 610);
    budget_check(budget);
    drop(a);
    drop(b);
    assert_int_equal(budget_stats(budget).held_bytes, 0);
    assert_int_equal(budget_stats(budget).refusals, 0);
    budget_free(budget);
}

static void one_account_gets_less_than_half(void **state)
{
    (void)state;
    struct budget *budget = budget_of(LIMIT);
    struct account *a = account_of(budget);
    size_t held = hog(a);
    assert_true(held <= LIMIT / 16 * 7);
    assert_true(held > LIMIT / 16 * 7 - 2 * CHUNK);
    assert_int_equal(budget_stats(budget).refusals, 1);
    assert_int_equal(asked_for, held + CHUNK);
    assert_false(budget_may_end(held, asked_for)); /* it is not closed for its own sake */
    /* Nor when it has grown a little since it was refused. */
    assert_false(budget_may_end(held + held / 8, asked_for));
    drop(a);
    budget_free(budget);
}

/* Large accounts leave the last eighth free. */
static void small_account_is_served_while_others_hold_all_they_can(void **state)
{
    (void)state;
    enum { HOGS = 6, SMALL = 20 };
    struct budget *budget = budget_of(LIMIT);
    struct account *hogs[HOGS], *small[SMALL];
    for (size_t i = 0; i < HOGS; i++)
        hog(hogs[i] = account_of(budget));
    assert_true(budget_stats(budget).held_bytes <= LIMIT - LIMIT / 8);
    assert_true(budget_stats(budget).held_bytes > LIMIT - LIMIT / 4);
    asked = 0;
    for (size_t i = 0; i < SMALL; i++)
        assert_true(account_charge(small[i] = account_of(budget), BUDGET_LITTLE_BYTES));
    assert_true(asked > 0); /* the last eighth is in use */
    assert_false(account_charge(small[0], 1 * MIB));
    assert_int_equal(asked_for, BUDGET_LITTLE_BYTES + 1 * MIB);
    assert_false(budget_has_room(budget, asked_for));
    /* The largest is closed, and the others have room again. */
    assert_true(budget_may_end(account_held_bytes(hogs[0]), asked_for));
    drop(hogs[0]);
    assert_true(budget_has_room(budget, asked_for));
    assert_true(account_charge(small[0], 1 * MIB));
    for (size_t i = 1; i < HOGS; i++)
        drop(hogs[i]);
    for (size_t i = 0; i < SMALL; i++)
        drop(small[i]);
    budget_free(budget);
}

/* Not even by very many small accounts. */
static void limit_is_never_exceeded(void **state)
{
    (void)state;
    enum { ACCOUNTS = 100 };
    struct budget *budget = budget_of(4 * MIB);
    struct account *accounts[ACCOUNTS];
    size_t refused = 0;
    for (size_t i = 0; i < ACCOUNTS; i++)
        refused += !account_charge(accounts[i] = account_of(budget), BUDGET_LITTLE_BYTES);
    assert_true(refused > 0);
    assert_true(asked > 0);
    budget_check(budget);
    assert_true(budget_stats(budget).held_bytes <= 4 * MIB);
    assert_true(budget_stats(budget).held_bytes > 3 * MIB);
    for (size_t i = 0; i < ACCOUNTS; i++)
        drop(accounts[i]);
    budget_free(budget);
}

static void arena_charges_its_blocks(void **state)
{
    (void)state;
    struct budget *budget = budget_of(4 * MIB);
    struct account *account = account_of(budget);
    uint8_t first[256];
    struct arena arena;
    arena_init(&arena, first, sizeof(first), SIZE_MAX);
    arena_charge(&arena, account);
    assert_non_null(arena_alloc(&arena, 100));
    assert_int_equal(account_held_bytes(account), 0);
    while (arena_alloc(&arena, 1000))
        assert_true(account_held_bytes(account) >= arena.held_bytes);
    assert_true(account_held_bytes(account) > MIB);
    assert_true(account_held_bytes(account) <= 4 * MIB / 16 * 7);
    arena_fini(&arena);
    assert_int_equal(account_held_bytes(account), 0);
    account_unref(account);
    budget_free(budget);
}

static void account_is_refused_beyond_its_own_limit(void **state)
{
    (void)state;
    struct budget *budget = budget_of(LIMIT);
    struct account *a = account_of(budget), *b = account_of(budget);
    account_limit(a, 3 * CHUNK);
    assert_int_equal(hog(a), 3 * CHUNK);
    assert_int_equal(account_charge_up_to(a, 1, CHUNK), 0);
    assert_int_equal(budget_stats(budget).refusals, 2);
    assert_int_equal(asked, 0); /* the budget has room */
    assert_true(hog(b) > 3 * CHUNK);
    account_release(a, CHUNK);
    assert_int_equal(account_charge_up_to(a, 1, 2 * CHUNK), 1);
    account_charge_anyway(a, CHUNK);
    assert_int_equal(account_held_bytes(a), 3 * CHUNK + 1);
    drop(a);
    drop(b);
    budget_check(budget);
    budget_free(budget);
}

static void buffer_charges_its_capacity(void **state)
{
    (void)state;
    struct budget *budget = budget_of(4 * MIB);
    struct account *account = account_of(budget);
    static const uint8_t bytes[1000];
    struct buf buf = {0};
    while (account_append(account, &buf, slice_of(bytes, sizeof(bytes))) == ST_OK)
        assert_int_equal(account_held_bytes(account), buf.capacity);
    assert_int_equal(account_held_bytes(account), buf.capacity);
    assert_true(buf.len > 512 * 1024);
    account_buf_reset(account, &buf, SIZE_MAX);
    assert_int_equal(account_held_bytes(account), buf.capacity);
    account_buf_reset(account, &buf, 10);
    assert_int_equal(account_held_bytes(account), 0);
    assert_int_equal(account_append(account, &buf, SLICE_LITERAL("x")), ST_OK);
    account_buf_fini(account, &buf);
    assert_int_equal(account_held_bytes(account), 0);
    assert_int_equal(account_reserve(account, &buf, SIZE_MAX / 2), ST_NOMEM);
    account_unref(account);
    budget_free(budget);
}

static void charges_that_cannot_be_refused_are_counted(void **state)
{
    (void)state;
    struct budget *budget = budget_of(4 * MIB);
    struct account *account = account_of(budget), *other = account_of(budget);
    struct buf buf = {0};
    hog(account);
    assert_int_equal(account_reserve(account, &buf, 200000), ST_NOMEM);
    size_t before = account_held_bytes(account);
    assert_int_equal(account_reserve_anyway(account, &buf, 5 * MIB), ST_OK);
    assert_int_equal(account_held_bytes(account), before + buf.capacity);
    assert_int_equal(budget_stats(budget).held_bytes, before + buf.capacity);
    assert_false(account_charge(other, 10000)); /* the limit is exceeded already */
    account_buf_fini(account, &buf);
    assert_true(account_charge(other, 10000));
    drop(account);
    drop(other);
    assert_int_equal(budget_stats(budget).held_bytes, 0);
    budget_free(budget);
}

static void without_an_account_everything_is_granted(void **state)
{
    (void)state;
    struct account *none = account_of(NULL);
    struct buf buf = {0};
    assert_null(none);
    assert_true(account_charge(none, SIZE_MAX));
    account_release(none, SIZE_MAX);
    assert_int_equal(account_append(none, &buf, SLICE_LITERAL("x")), ST_OK);
    account_buf_fini(none, &buf);
    account_ref(none);
    account_unref(none);
    budget_free(NULL);
}

struct worker {
    pthread_t thread;
    struct budget *budget;
    struct account
        *shared; /* charged by all threads, like an arena that was handed to another thread */
    uint64_t seed;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct account *own = account_of(w->budget);
    struct random random;
    random_init(&random, w->seed);
    for (size_t i = 0; i < 20000; i++) {
        struct account *account = random_u64(&random) % 2 ? own : w->shared;
        size_t bytes = 1 + random_u64(&random) % 30000;
        if (account_charge(account, bytes)) {
            assert_true(budget_stats(w->budget).held_bytes <= 4 * MIB);
            account_release(account, bytes);
        }
    }
    account_unref(own);
    return NULL;
}

static void threads_lose_and_gain_nothing(void **state)
{
    (void)state;
    struct budget *budget = budget_of(4 * MIB);
    budget_set_on_short(budget, NULL, NULL);
    struct account *shared = account_of(budget);
    struct worker workers[4];
    for (size_t i = 0; i < COUNT_OF(workers); i++) {
        workers[i] = (struct worker){.budget = budget, .shared = shared, .seed = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(workers); i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    assert_int_equal(budget_stats(budget).held_bytes, 0);
    account_unref(shared);
    budget_free(budget);
}

static void buffer_filled_by_others_is_charged(void **state)
{
    (void)state;
    struct budget *budget;
    struct account *account;
    struct buf buf = {0};
    size_t charged = 0;
    assert_int_equal(budget_new(10000, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    assert_int_equal(account_follow(account, &buf, &charged), ST_OK);
    assert_int_equal(buf_reserve(&buf, 3000), ST_OK);
    assert_int_equal(account_follow(account, &buf, &charged), ST_OK);
    assert_int_equal(account_held_bytes(account), buf.capacity);
    buf_fini(&buf);
    assert_int_equal(account_follow(account, &buf, &charged), ST_OK);
    assert_int_equal(account_held_bytes(account), 0);
    assert_int_equal(buf_reserve(&buf, 3000), ST_OK);
    assert_int_equal(account_follow(account, &buf, &charged), ST_OK);
    /* What is refused is not kept. */
    assert_int_equal(buf_reserve(&buf, 50000), ST_OK);
    assert_int_equal(account_follow(account, &buf, &charged), ST_NOMEM);
    assert_int_equal(account_held_bytes(account), 0);
    assert_int_equal(charged, 0);
    assert_int_equal(buf.capacity, 0);
    account_unref(account);
    budget_free(budget);
}

static unsigned rises, falls;

static void note_much(void *ctx)
{
    (void)ctx;
    rises++;
}

static void note_less(void *ctx)
{
    (void)ctx;
    falls++;
}

static void rise_and_fall_are_reported_once(void **state)
{
    (void)state;
    struct budget *budget = budget_of(LIMIT);
    budget_set_levels(budget, (struct budget_levels){note_much, note_less, NULL});
    rises = falls = 0;
    struct account *a = account_of(budget);
    for (unsigned round = 1; round <= 3; round++) {
        assert_true(account_charge(a, LIMIT / 8));
        assert_int_equal(rises, round - 1);
        assert_true(account_charge(a, LIMIT / 4));
        assert_true(account_charge(a, MIB));
        assert_int_equal(rises, round);
        /* Small changes up and down are not reported. */
        for (int i = 0; i < 100; i++) {
            account_release(a, 3 * MIB);
            assert_true(account_charge(a, 3 * MIB));
        }
        assert_int_equal(falls, 2 * (round - 1));
        account_release(a, MIB + LIMIT / 8);
        assert_int_equal(falls, 2 * round - 1);
        account_release(a, LIMIT / 4);
        assert_int_equal(falls, 2 * round);
        budget_calm(budget);
    }
    drop(a);
    budget_set_levels(budget, (struct budget_levels){0});
    budget_free(budget);
}

static void connections_count_for_the_fall(void **state)
{
    (void)state;
    struct account *accounts[1000];
    struct budget *budget = budget_of(LIMIT);
    budget_set_levels(budget, (struct budget_levels){note_much, note_less, NULL});
    rises = falls = 0;
    for (size_t i = 0; i < COUNT_OF(accounts); i++)
        accounts[i] = account_of(budget);
    assert_int_equal(rises, 0);
    for (size_t i = 0; i < COUNT_OF(accounts); i++)
        account_unref(accounts[i]);
    assert_in_range(falls, 1, 20);
    budget_free(budget);
}

/* Each block begins with a pointer to the one before it. */
static size_t taken_of(const struct arena *arena)
{
    size_t taken = 0;
    for (void **block = (void **)arena->blocks; block; block = *block)
        taken += malloc_usable_size(block) + sizeof(size_t);
    return taken;
}

static void arenas_are_charged_for_what_their_blocks_take(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 1008, 5000, 70000, 131072, 200000, 1 << 20};
    struct budget *budget;
    struct account *account;
    assert_int_equal(budget_new(64 << 20, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct arena arena;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        arena_charge(&arena, account);
        for (size_t allocated = 0; allocated < 4 << 20 && allocated < 1000 * sizes[i];
             allocated += sizes[i])
            assert_non_null(arena_alloc(&arena, sizes[i]));
        assert_true(account_held_bytes(account) >= taken_of(&arena));
        arena_fini(&arena);
        assert_int_equal(account_held_bytes(account), 0);
    }
    account_unref(account);
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_filled_by_others_is_charged),
        cmocka_unit_test(charges_are_held_until_they_are_released),
        cmocka_unit_test(one_account_gets_less_than_half),
        cmocka_unit_test(small_account_is_served_while_others_hold_all_they_can),
        cmocka_unit_test(limit_is_never_exceeded),
        cmocka_unit_test(account_is_refused_beyond_its_own_limit),
        cmocka_unit_test(arena_charges_its_blocks),
        cmocka_unit_test(arenas_are_charged_for_what_their_blocks_take),
        cmocka_unit_test(buffer_charges_its_capacity),
        cmocka_unit_test(charges_that_cannot_be_refused_are_counted),
        cmocka_unit_test(without_an_account_everything_is_granted),
        cmocka_unit_test(rise_and_fall_are_reported_once),
        cmocka_unit_test(connections_count_for_the_fall),
        cmocka_unit_test(threads_lose_and_gain_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
