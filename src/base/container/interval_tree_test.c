#include "base/container/interval_tree.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { RANGES = 400, KEY_BYTES = 3 };

struct range {
    struct interval_link in_tree;
    uint8_t from[KEY_BYTES], to[KEY_BYTES];
    size_t from_len, to_len;
    bool endless;
    bool inside;
    unsigned seen;
};

static struct range ranges[RANGES];

static struct interval range_interval(const struct interval_link *link)
{
    const struct range *range = CONTAINER_OF(link, struct range, in_tree);
    return (struct interval){
        .from = slice_of(range->from, range->from_len),
        .to = slice_of(range->to, range->to_len),
        .endless = range->endless,
    };
}

/* Short, of few letters: many ranges overlap, nest, touch and are equal. */
static size_t draw_key(struct random *random, uint8_t *key)
{
    size_t len = (size_t)random_below(random, KEY_BYTES + 1);
    for (size_t i = 0; i < len; i++)
        key[i] = (uint8_t)(random_below(random, 4) * 85);
    return len;
}

static void draw_range(struct random *random, struct range *range)
{
    range->from_len = draw_key(random, range->from);
    range->to_len = draw_key(random, range->to);
    range->endless = random_chance(random, 1, 10);
}

struct visited {
    size_t count;
    const struct interval_link *last;
};

static void visit(void *ctx, struct interval_link *link)
{
    struct visited *visited = ctx;
    CONTAINER_OF(link, struct range, in_tree)->seen++;
    visited->count++;
    visited->last = link;
}

static void stab_matches_list(const struct interval_tree *tree, struct slice key)
{
    struct visited visited = {0};
    interval_tree_stab(tree, key, visit, &visited);
    size_t expected = 0;
    for (size_t i = 0; i < RANGES; i++) {
        struct interval interval = range_interval(&ranges[i].in_tree);
        bool has = ranges[i].inside && interval_has(&interval, key);
        assert_int_equal(ranges[i].seen, has);
        expected += has;
        ranges[i].seen = 0;
    }
    assert_int_equal(visited.count, expected);
}

static void find_matches_list(const struct interval_tree *tree, const struct interval *interval)
{
    struct interval_link *found = interval_tree_find(tree, interval);
    bool any = false;
    for (size_t i = 0; i < RANGES && !any; i++) {
        struct interval here = range_interval(&ranges[i].in_tree);
        any = ranges[i].inside && slice_equal(here.from, interval->from) &&
              here.endless == interval->endless &&
              (here.endless || slice_equal(here.to, interval->to));
    }
    assert_int_equal(found != NULL, any);
    if (!found)
        return;
    struct interval here = range_interval(found);
    assert_true(slice_equal(here.from, interval->from));
    assert_int_equal(here.endless, interval->endless);
}

static void random_ranges_match_a_list(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 5);
    struct interval_tree tree;
    interval_tree_init(&tree, range_interval, random_u64(&random));
    for (unsigned step = 0; step < 20000; step++) {
        struct range *range = &ranges[random_below(&random, RANGES)];
        if (range->inside) {
            interval_tree_remove(&tree, &range->in_tree);
        } else {
            draw_range(&random, range);
            interval_tree_insert(&tree, &range->in_tree);
        }
        range->inside = !range->inside;
        if (step % 16 != 0)
            continue;
        uint8_t key[KEY_BYTES];
        size_t len = draw_key(&random, key);
        stab_matches_list(&tree, slice_of(key, len));
        struct range wanted;
        draw_range(&random, &wanted);
        struct interval interval = range_interval(&wanted.in_tree);
        find_matches_list(&tree, &interval);
        if (step % 256 == 0)
            interval_tree_check(&tree);
    }
    for (size_t i = 0; i < RANGES; i++)
        if (ranges[i].inside)
            interval_tree_remove(&tree, &ranges[i].in_tree);
    assert_null(tree.root);
    assert_int_equal(tree.count, 0);
}

static size_t depth(const struct interval_link *link)
{
    return link ? 1 + size_max(depth(link->left), depth(link->right)) : 0;
}

struct number {
    struct interval_link in_tree;
    uint8_t from[4], to[4];
};

static struct interval number_interval(const struct interval_link *link)
{
    const struct number *number = CONTAINER_OF(link, struct number, in_tree);
    return (struct interval){.from = slice_of(number->from, 4), .to = slice_of(number->to, 4)};
}

static void write_number(uint8_t *to, uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

static void ranges_added_in_order_stay_balanced(void **state)
{
    (void)state;
    enum { NUMBERS = 20000 };
    static struct number numbers[NUMBERS];
    struct interval_tree tree;
    interval_tree_init(&tree, number_interval, 99);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        write_number(numbers[i].from, i);
        write_number(numbers[i].to, i + 1);
        interval_tree_insert(&tree, &numbers[i].in_tree);
    }
    interval_tree_check(&tree);
    assert_true(depth(tree.root) < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ranges_match_a_list),
        cmocka_unit_test(ranges_added_in_order_stay_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
