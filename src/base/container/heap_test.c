#include "base/container/heap.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct item {
    struct heap_link in_heap;
    int64_t number;
};

static void links_come_out_by_number(void **state)
{
    (void)state;
    enum { ITEMS = 1000 };
    static struct item items[ITEMS];
    struct heap heap = {0};
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < ITEMS; i++) {
        items[i].number = random_between(&random, -500, 500);
        assert_int_equal(heap_put(&heap, &items[i].in_heap, items[i].number), ST_OK);
    }
    heap_check(&heap);
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < ITEMS; i++) {
        assert_true(heap_first_number(&heap, INT64_MAX) >= last);
        last = heap_first_number(&heap, INT64_MAX);
        struct heap_link *link = heap_pop(&heap, INT64_MAX);
        assert_int_equal(CONTAINER_OF(link, struct item, in_heap)->number, last);
        assert_false(heap_has(link));
    }
    assert_null(heap_pop(&heap, INT64_MAX));
    assert_null(heap_first(&heap));
    assert_int_equal(heap_first_number(&heap, 7), 7);
    heap_fini(&heap);
}

static void pop_leaves_later_links(void **state)
{
    (void)state;
    struct heap heap = {0};
    struct item early = {.number = 5}, late = {.number = 10};
    assert_int_equal(heap_put(&heap, &late.in_heap, late.number), ST_OK);
    assert_int_equal(heap_put(&heap, &early.in_heap, early.number), ST_OK);

    assert_null(heap_pop(&heap, 4));
    assert_ptr_equal(heap_pop(&heap, 5), &early.in_heap);
    assert_null(heap_pop(&heap, 9));
    heap_fini(&heap);
}

static void any_link_can_be_moved_or_removed(void **state)
{
    (void)state;
    enum { ITEMS = 300 };
    static struct item items[ITEMS];
    struct heap heap = {0};
    struct random random;
    random_init(&random, 9);
    for (unsigned step = 0; step < 20000; step++) {
        struct item *item = &items[random_below(&random, ITEMS)];
        if (random_chance(&random, step < 10000 ? 1 : 3, 4)) {
            heap_remove(&heap, &item->in_heap);
            assert_false(heap_has(&item->in_heap));
        } else {
            item->number = random_between(&random, 0, 100);
            assert_int_equal(heap_put(&heap, &item->in_heap, item->number), ST_OK);
        }
        heap_check(&heap);
        int64_t least = INT64_MAX;
        for (size_t i = 0; i < ITEMS; i++)
            if (heap_has(&items[i].in_heap) && items[i].number < least)
                least = items[i].number;
        assert_int_equal(heap_first_number(&heap, INT64_MAX), least);
    }
    heap_fini(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_come_out_by_number),
        cmocka_unit_test(pop_leaves_later_links),
        cmocka_unit_test(any_link_can_be_moved_or_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
