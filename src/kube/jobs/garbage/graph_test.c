#include "kube/jobs/garbage/graph.h"

#include "base/clock.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct garbage_graph graph;
static int64_t revision;

static int begin(void **state)
{
    (void)state;
    garbage_graph_init(&graph, 1);
    revision = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    garbage_graph_check(&graph);
    while (!garbage_graph_drain(&graph, 1))
        ;
    return 0;
}

struct object {
    const char *uid;
    const char *owners[4]; /* uids; "!x" blocks x; "x@y" names it at another place */
    bool deleting, orphans, foreground;
};

static struct garbage_owner owner_of(const char *text)
{
    bool blocks = text[0] == '!';
    const char *uid = text + blocks, *at = strchr(uid, '@');
    size_t len = at ? (size_t)(at - uid) : strlen(uid);
    return (struct garbage_owner){
        .uid = slice_of(uid, len), .name = slice_from_text(at ? at : "x"), .blocks = blocks};
}

static void put_at(struct object object, int64_t at)
{
    struct garbage_owner owners[4];
    struct garbage_facts facts = {
        .uid = slice_from_text(object.uid),
        .owners = owners,
        .deleting = object.deleting,
        .orphans = object.orphans,
        .foreground = object.foreground,
    };
    while (facts.owner_count < 4 && object.owners[facts.owner_count]) {
        owners[facts.owner_count] = owner_of(object.owners[facts.owner_count]);
        facts.owner_count++;
    }
    garbage_graph_put(&graph, facts.uid, at, &facts);
    garbage_graph_check(&graph);
}

#define PUT(...) put_at((struct object){.uid = __VA_ARGS__}, ++revision)

static void delete (const char *uid)
{
    garbage_graph_delete(&graph, slice_from_text(uid), ++revision);
    garbage_graph_check(&graph);
}

/* The keys of the nodes to be examined, in their order; each is then done. */
static const char *queued(void)
{
    static char text[256];
    struct garbage_node *node;
    size_t len = 0;
    text[0] = '\0';
    while (garbage_graph_expand(&graph, 1))
        garbage_graph_check(&graph);
    while ((node = garbage_graph_take(&graph)) != NULL) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s ", SLICE_ARGS(node->key));
        garbage_graph_done(&graph, node, GARBAGE_EXAMINED, 0);
    }
    garbage_graph_check(&graph);
    return text;
}

static void found(const char *owner)
{
    struct garbage_owner ref = owner_of(owner);
    garbage_graph_found(&graph, ref.uid, garbage_place(&graph, &ref, SLICE_EMPTY), revision);
    garbage_graph_check(&graph);
}

static void objects_without_owners_and_dependents_have_no_nodes(void **state)
{
    (void)state;
    PUT("a");
    PUT("b", .deleting = true);
    assert_int_equal(graph.nodes.count, 0);
    PUT("c", .owners = {"a"});
    assert_int_equal(graph.nodes.count, 2);
    PUT("c");
    assert_int_equal(graph.nodes.count, 0);
}

static void one_dependent_finds_out_whether_an_owner_exists(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    PUT("b", .owners = {"owner"});
    assert_string_equal(queued(), "a ");
    found("owner");
    PUT("c", .owners = {"owner"});
    assert_string_equal(queued(), "");
}

static void another_dependent_is_examined_if_the_first_is_deleted(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    PUT("b", .owners = {"owner"});
    delete ("a");
    assert_string_equal(queued(), "b ");
}

static void all_dependents_of_a_missing_owner_are_examined(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    PUT("b", .owners = {"owner"});
    (void)queued();
    garbage_graph_missing(&graph, SLICE_LITERAL("owner"));
    assert_string_equal(queued(), "a b ");
    garbage_graph_missing(&graph, SLICE_LITERAL("owner"));
    assert_string_equal(queued(), "");
    PUT("c", .owners = {"owner"});
    assert_string_equal(queued(), "c ");
}

static void the_dependents_of_a_deleted_owner_are_examined(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    PUT("b", .owners = {"owner"});
    (void)queued();
    found("owner");
    assert_string_equal(queued(), "");
    delete ("owner");
    assert_string_equal(queued(), "a b ");
}

static void a_dependent_that_names_another_place_is_examined(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    PUT("b", .owners = {"owner"});
    PUT("c", .owners = {"owner@elsewhere"});
    assert_string_equal(queued(), "a c "); /* the kind that one of them names may be unknown */
    found("owner");
    assert_string_equal(queued(), "c ");
    PUT("d", .owners = {"owner@elsewhere"});
    assert_string_equal(queued(), "d ");
    /* Since it exists elsewhere, only the dependent that does not find it is concerned. */
    garbage_graph_missing(&graph, SLICE_LITERAL("owner"));
    assert_string_equal(queued(), "");
}

static void an_owner_waits_for_dependents_that_block_it(void **state)
{
    (void)state;
    PUT("a", .owners = {"!owner"});
    PUT("b", .owners = {"owner"});
    (void)queued();
    found("owner");
    assert_string_equal(queued(), "");
    PUT("owner", .deleting = true, .foreground = true);
    assert_string_equal(queued(), "owner a b ");
    delete ("b");
    assert_string_equal(queued(), "");
    delete ("a");
    assert_string_equal(queued(), "owner ");
    delete ("owner");
    assert_int_equal(graph.nodes.count, 0);
}

static void an_owner_that_orphans_waits_for_all(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    (void)queued();
    PUT("owner", .deleting = true, .orphans = true, .foreground = true);
    assert_string_equal(queued(), "owner a ");
    PUT("a");
    assert_string_equal(queued(), "owner ");
}

static void dependents_that_wait_are_counted(void **state)
{
    (void)state;
    PUT("a", .owners = {"!b"});
    PUT("b", .owners = {"!a"});
    PUT("a", .owners = {"!b"}, .deleting = true, .foreground = true);
    assert_int_equal(garbage_graph_find(&graph, SLICE_LITERAL("b"))->waiting, 1);
    PUT("a", .owners = {"!b"});
    assert_int_equal(garbage_graph_find(&graph, SLICE_LITERAL("b"))->waiting, 0);
    delete ("a");
    delete ("b");
    assert_int_equal(graph.nodes.count, 0);
}

static void older_news_is_ignored(void **state)
{
    (void)state;
    put_at((struct object){.uid = "a", .owners = {"new"}}, 10);
    put_at((struct object){.uid = "a", .owners = {"old"}}, 5);
    assert_non_null(garbage_graph_find(&graph, SLICE_LITERAL("new")));
    assert_null(garbage_graph_find(&graph, SLICE_LITERAL("old")));
    garbage_graph_delete(&graph, SLICE_LITERAL("a"), 7);
    assert_non_null(garbage_graph_find(&graph, SLICE_LITERAL("a")));
}

static void a_failed_node_is_examined_again_later(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    struct garbage_node *node = garbage_graph_take(&graph);
    garbage_graph_done(&graph, node, GARBAGE_FAILED, 0);
    assert_int_equal(garbage_graph_unpark(&graph, 1), GARBAGE_RETRY_S * NS_PER_S);
    assert_string_equal(queued(), "");
    assert_int_equal(garbage_graph_unpark(&graph, GARBAGE_RETRY_S * NS_PER_S), CLOCK_NEVER);
    assert_string_equal(queued(), "a ");
}

static void a_node_that_is_deleted_while_it_is_examined_lives_until_it_is_done(void **state)
{
    (void)state;
    PUT("a", .owners = {"owner"});
    struct garbage_node *node = garbage_graph_take(&graph);
    delete ("a");
    garbage_graph_done(&graph, node, GARBAGE_AGAIN, 0);
    assert_int_equal(graph.nodes.count, 0);
}

static void long_keys_are_ignored(void **state)
{
    (void)state;
    static uint8_t key[GARBAGE_KEY_BYTES_MAX + 1];
    struct garbage_owner owner = owner_of("owner");
    struct garbage_facts facts = {.uid = SLICE_LITERAL("a"), .owners = &owner, .owner_count = 1};
    garbage_graph_put(&graph, slice_of(key, sizeof(key)), 1, &facts);
    assert_int_equal(graph.nodes.count, 0);
    garbage_graph_put(&graph, slice_of(key, sizeof(key) - 1), 1, &facts);
    assert_int_equal(graph.nodes.count, 2);
}

static void random_changes_keep_the_graph_consistent(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "!a", "!b", "c@x"};
    struct random random;
    (void)state;
    random_init(&random, 1);
    for (int i = 0; i < 20000; i++) {
        struct object object = {.uid = names[random_below(&random, 5)]};
        size_t count = random_below(&random, 4);
        for (size_t j = 0; j < count; j++)
            object.owners[j] = names[random_below(&random, COUNT_OF(names))];
        object.deleting = random_chance(&random, 1, 3);
        object.foreground = random_chance(&random, 1, 3);
        object.orphans = random_chance(&random, 1, 6);
        if (random_chance(&random, 1, 3))
            delete (object.uid);
        else
            put_at(object, ++revision);
        if (random_chance(&random, 1, 4))
            (void)queued();
        if (random_chance(&random, 1, 4))
            found(names[random_below(&random, COUNT_OF(names))]);
    }
    for (size_t i = 0; i < 5; i++)
        delete (names[i]);
    assert_int_equal(graph.nodes.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(objects_without_owners_and_dependents_have_no_nodes),
        TEST(one_dependent_finds_out_whether_an_owner_exists),
        TEST(another_dependent_is_examined_if_the_first_is_deleted),
        TEST(all_dependents_of_a_missing_owner_are_examined),
        TEST(the_dependents_of_a_deleted_owner_are_examined),
        TEST(a_dependent_that_names_another_place_is_examined),
        TEST(an_owner_waits_for_dependents_that_block_it),
        TEST(an_owner_that_orphans_waits_for_all),
        TEST(dependents_that_wait_are_counted),
        TEST(older_news_is_ignored),
        TEST(a_failed_node_is_examined_again_later),
        TEST(a_node_that_is_deleted_while_it_is_examined_lives_until_it_is_done),
        TEST(long_keys_are_ignored),
        TEST(random_changes_keep_the_graph_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
