#include "base/container/chain_table.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct number {
    struct chain_link in_table;
    uint64_t value;
    bool inside, seen;
};

static uint64_t number_hash(const void *ctx, const struct chain_link *link)
{
    /* Few bits, so that chains become long. */
    return CONTAINER_OF(link, struct number, in_table)->value * *(const uint64_t *)ctx >> 50;
}

static const uint64_t factor = 0x9e3779b97f4a7c15u;

static bool has(const struct chain_table *table, struct number *number)
{
    struct chain_link *link = chain_table_chain(table, number_hash(&factor, &number->in_table));
    while (link && link != &number->in_table)
        link = link->next;
    return link != NULL;
}

static void random_members_match_a_list(void **state)
{
    (void)state;
    enum { NUMBERS = 3000 };
    static struct number numbers[NUMBERS];
    struct random random;
    random_init(&random, 3);
    struct chain_table table = {0};
    uint32_t count = 0;
    for (uint64_t i = 0; i < NUMBERS; i++)
        numbers[i].value = i;
    for (unsigned step = 0; step < 40000; step++) {
        struct number *number = &numbers[random_below(&random, NUMBERS)];
        bool fill = step % 20000 < 10000;
        assert_int_equal(has(&table, number), number->inside);
        if (number->inside && (!fill || random_chance(&random, 1, 4))) {
            chain_table_remove(&table, &number->in_table, number_hash, &factor);
            number->inside = false;
            count--;
        } else if (!number->inside && (fill || random_chance(&random, 1, 4))) {
            chain_table_add(&table, &number->in_table, number_hash, &factor);
            number->inside = true;
            count++;
        }
        assert_int_equal(table.count, count);
        if (step % 1000)
            continue;
        uint32_t found = 0;
        CHAIN_FOREACH(link, &table)
        found += CONTAINER_OF(link, struct number, in_table)->inside;
        assert_int_equal(found, count);
        assert_true(chain_table_buckets(&table) <= 8 || count + 1 >= chain_table_buckets(&table));
        assert_true(count <= CHAIN_FEW || count <= 2 * chain_table_buckets(&table));
        assert_true(table.bucket_count <= table.capacity);
    }
    chain_table_fini(&table);
}

static void few_members_need_no_memory(void **state)
{
    (void)state;
    struct number numbers[CHAIN_FEW + 1] = {0};
    struct chain_table table = {0};
    for (uint64_t i = 0; i < CHAIN_FEW; i++) {
        numbers[i].value = i;
        chain_table_add(&table, &numbers[i].in_table, number_hash, &factor);
        assert_int_equal(table.bucket_count, 0);
    }
    numbers[CHAIN_FEW].value = CHAIN_FEW;
    chain_table_add(&table, &numbers[CHAIN_FEW].in_table, number_hash, &factor);
    assert_true(table.bucket_count > 0);
    for (uint64_t i = 0; i <= CHAIN_FEW; i++)
        chain_table_remove(&table, &numbers[i].in_table, number_hash, &factor);
    assert_int_equal(table.bucket_count, 0);
    assert_null(table.few);
}

static void a_table_is_emptied_in_steps(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static struct number numbers[COUNT];
    struct chain_table table = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
        numbers[i].value = i;
        chain_table_add(&table, &numbers[i].in_table, number_hash, &factor);
    }
    uint32_t at = 0;
    for (size_t left = COUNT; left > 0; left--) {
        size_t seen = 0;
        CHAIN_FOREACH(link, &table)
        {
            assert_non_null(link);
            seen++;
        }
        assert_int_equal(seen, left);
        assert_non_null(chain_table_drain(&table, &at));
    }
    assert_null(chain_table_drain(&table, &at));
    chain_table_fini(&table);
}

/* Visits one bucket. Returns whether it was the last. */
static bool visit(const struct chain_table *table, uint32_t *at, size_t *visits)
{
    for (struct chain_link *link = chain_table_visit(table, at); link; link = link->next) {
        CONTAINER_OF(link, struct number, in_table)->seen = true;
        ++*visits;
    }
    return *at == 0;
}

static void set(struct chain_table *table, struct number *number, bool inside)
{
    if (number->inside && !inside)
        chain_table_remove(table, &number->in_table, number_hash, &factor);
    else if (!number->inside && inside)
        chain_table_add(table, &number->in_table, number_hash, &factor);
    number->inside = inside;
}

static void an_unchanged_table_is_visited_once(void **state)
{
    (void)state;
    enum { NUMBERS = 300 };
    static struct number numbers[NUMBERS];
    struct chain_table table = {0};
    for (uint32_t count = 0; count < NUMBERS; count++) {
        uint32_t at = 0, buckets = 0;
        size_t visits = 0;
        do
            buckets++;
        while (!visit(&table, &at, &visits));
        assert_int_equal(buckets, chain_table_buckets(&table));
        assert_int_equal(visits, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(numbers[i].seen);
            numbers[i].seen = false;
        }
        numbers[count].value = count;
        set(&table, &numbers[count], true);
    }
    chain_table_fini(&table);
}

static void members_that_stay_are_visited_while_others_come_and_go(void **state)
{
    (void)state;
    enum { NUMBERS = 2000, STAY = 10 }; /* each tenth stays */
    static struct number numbers[NUMBERS];
    struct random random;
    struct chain_table table = {0};
    random_init(&random, 5);
    for (uint64_t i = 0; i < NUMBERS; i++)
        numbers[i].value = i;
    for (unsigned round = 0; round < 200; round++) {
        bool many = random_chance(&random, 1, 2);
        for (size_t i = 0; i < NUMBERS; i++) {
            set(&table, &numbers[i], i % STAY == 0 ? round < 190 || i < 50 : many);
            numbers[i].seen = false;
        }
        uint32_t at = 0;
        size_t visits = 0;
        while (!visit(&table, &at, &visits)) {
            bool inside = random_chance(&random, 1, 2);
            for (uint64_t k = random_below(&random, 100); k; k--) {
                size_t i = (size_t)random_below(&random, NUMBERS);
                if (i % STAY)
                    set(&table, &numbers[i], inside);
            }
        }
        for (size_t i = 0; i < NUMBERS; i += STAY)
            assert_true(numbers[i].seen || !numbers[i].inside);
        assert_true(visits <= 2 * NUMBERS);
    }
    chain_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_members_match_a_list),
        cmocka_unit_test(few_members_need_no_memory),
        cmocka_unit_test(a_table_is_emptied_in_steps),
        cmocka_unit_test(an_unchanged_table_is_visited_once),
        cmocka_unit_test(members_that_stay_are_visited_while_others_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
