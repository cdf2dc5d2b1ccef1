#include "kube/handlers/read/search_budget.h"

#include "base/clock.h"
#include "wire/http/exchange_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LOOKERS = 100, SHARE = KUBE_SEARCH_PER_TURN };

struct peer {
    struct http_exchange x; /* first */
    struct http_source source;
    struct kube_searcher searcher;
    unsigned left; /* to be examined */
    bool woken, follows;
};

struct bed {
    struct clock_sim clock;
    struct loop *loop;
    struct kube_search_budget looks;
    struct peer peers[LOOKERS];
    unsigned looked; /* in this turn, by all */
};

static void on_wake(struct http_exchange *x)
{
    ((struct peer *)x)->woken = true;
}

static const struct http_exchange_ops ops = {.wake = on_wake};

static struct bed *bed_new(void)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    clock_sim_init(&bed->clock, 0);
    assert_int_equal(loop_new(&bed->clock.clock, &bed->loop), ST_OK);
    kube_search_init(&bed->looks, bed->loop);
    for (size_t i = 0; i < LOOKERS; i++) {
        struct peer *peer = &bed->peers[i];
        peer->x.ops = &ops;
        peer->x.source = &peer->source;
        kube_searcher_init(&peer->searcher, &peer->x);
    }
    return bed;
}

static void bed_free(struct bed *bed)
{
    for (size_t i = 0; i < LOOKERS; i++)
        kube_searcher_fini(&bed->peers[i].searcher);
    kube_search_stop(&bed->looks);
    loop_free(bed->loop);
    free(bed);
}

/* Like the fill function of a list. */
static void look(struct bed *bed, struct peer *peer)
{
    unsigned taken = kube_search_take(&bed->looks, &peer->searcher, peer->follows);
    unsigned used = peer->left < taken ? peer->left : taken;
    peer->left -= used;
    bed->looked += used;
    peer->woken = false;
    peer->x.source_parked = true;
    if (peer->left)
        kube_search_wait(&bed->looks, &peer->searcher, peer->follows);
    kube_search_spend(&bed->looks, &peer->searcher, used);
}

static void turn(struct bed *bed)
{
    bed->looked = 0;
    loop_turn(bed->loop, 0);
    for (size_t i = 0; i < LOOKERS; i++) {
        if (bed->peers[i].woken)
            look(bed, &bed->peers[i]);
    }
    assert_true(bed->looked <= KUBE_SEARCH_SHARES * SHARE);
}

static void all_together_examine_at_most_a_few_shares_per_turn(void **state)
{
    (void)state;
    struct bed *bed = bed_new();
    unsigned turns = 0, left = LOOKERS;
    for (size_t i = 0; i < LOOKERS; i++) {
        bed->peers[i].left = 3 * SHARE;
        look(bed, &bed->peers[i]);
    }
    assert_int_equal(bed->looked, KUBE_SEARCH_SHARES * SHARE);
    for (; left && turns < 3 * LOOKERS; turns++) {
        turn(bed);
        left = 0;
        for (size_t i = 0; i < LOOKERS; i++)
            left += bed->peers[i].left > 0;
    }
    assert_int_equal(left, 0);
    assert_int_equal(turns, 3 * LOOKERS / KUBE_SEARCH_SHARES - 1);
    bed_free(bed);
}

static void waiting_searchers_come_before_new_ones(void **state)
{
    (void)state;
    struct bed *bed = bed_new();
    for (size_t i = 0; i < LOOKERS; i++) {
        bed->peers[i].left = SHARE;
        look(bed, &bed->peers[i]);
    }
    for (unsigned turns = 0; turns < 10; turns++) {
        bed->looked = 0;
        loop_turn(bed->loop, 0);
        struct peer *first = &bed->peers[0]; /* arrives in every turn, before the others */
        first->left = SHARE;
        kube_searcher_fini(&first->searcher);
        assert_int_equal(kube_search_take(&bed->looks, &first->searcher, false), 0);
        for (size_t i = 1; i < LOOKERS; i++) {
            if (bed->peers[i].woken)
                look(bed, &bed->peers[i]);
        }
        assert_int_equal(bed->looked, KUBE_SEARCH_SHARES * SHARE);
    }
    bed_free(bed);
}

static void following_watches_do_not_wait_for_searchers(void **state)
{
    (void)state;
    struct bed *bed = bed_new();
    struct peer *last = &bed->peers[LOOKERS - 1];
    for (size_t i = 0; i < LOOKERS - 1; i++) {
        bed->peers[i].left = SHARE;
        look(bed, &bed->peers[i]);
    }
    last->follows = true;
    last->left = KUBE_SEARCH_OWN;
    look(bed, last);
    assert_int_equal(last->left, 0);
    last->left = KUBE_SEARCH_OWN + SHARE;
    look(bed, last);
    assert_int_equal(last->left, SHARE);
    turn(bed);
    assert_int_equal(last->left, 0);
    bed_free(bed);
}

static void a_share_that_is_not_taken_in_its_turn_is_lost(void **state)
{
    (void)state;
    struct bed *bed = bed_new();
    for (size_t i = 0; i < LOOKERS; i++) {
        bed->peers[i].left = SHARE;
        look(bed, &bed->peers[i]);
    }
    for (unsigned turns = 0; turns < LOOKERS; turns++)
        loop_turn(bed->loop, 0); /* no searcher has budget to continue */
    bed->looked = 0;
    for (size_t i = 0; i < LOOKERS; i++)
        look(bed, &bed->peers[i]);
    assert_int_equal(bed->looked, KUBE_SEARCH_SHARES * SHARE);
    bed_free(bed);
}

static void a_searcher_that_ends_stops_waiting(void **state)
{
    (void)state;
    struct bed *bed = bed_new();
    for (size_t i = 0; i < LOOKERS; i++) {
        bed->peers[i].left = SHARE;
        look(bed, &bed->peers[i]);
    }
    for (size_t i = 0; i < LOOKERS; i++)
        kube_searcher_fini(&bed->peers[i].searcher);
    turn(bed);
    turn(bed);
    assert_int_equal(bed->looked, 0);
    assert_true(loop_next_ns(bed->loop) == CLOCK_NEVER);
    bed_free(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_together_examine_at_most_a_few_shares_per_turn),
        cmocka_unit_test(waiting_searchers_come_before_new_ones),
        cmocka_unit_test(following_watches_do_not_wait_for_searchers),
        cmocka_unit_test(a_share_that_is_not_taken_in_its_turn_is_lost),
        cmocka_unit_test(a_searcher_that_ends_stops_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
