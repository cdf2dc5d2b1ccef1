#include "kubeclient/informer/indexer.h"

#include "base/failing_memory_test.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* An object on a node, with some labels: "l" contains a letter for each. */
static struct vigil_kube_object *object(const char *name, const char *node, const char *labels)
{
    char json[256];
    struct vigil_kube_object *made;
    int n = snprintf(
        json, sizeof(json),
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\"},\"node\":\"%s\",\"l\":\"%s\"}", name,
        node, labels);
    assert_int_equal(object_new(slice_of(json, (size_t)n), &made), ST_OK);
    return made;
}

static char marker; /* the user pointer of an index */

static void index_node(const struct vigil_kube_object *object,
                       struct vigil_kube_index_values *values, void *user)
{
    vigil_bytes node;
    assert_ptr_equal(user, &marker);
    if (vigil_json_find(vigil_kube_object_json(object), "node", &node) && node.size > 2)
        index_values_add(values, slice_of((const char *)node.data + 1, node.size - 2));
}

static void index_labels(const struct vigil_kube_object *object,
                         struct vigil_kube_index_values *values, void *user)
{
    vigil_bytes labels;
    (void)user;
    if (!vigil_json_find(vigil_kube_object_json(object), "l", &labels))
        return;
    for (size_t i = 1; i + 1 < labels.size; i++)
        index_values_add(values, slice_of((const char *)labels.data + i, 1));
}

static void add_indexes(struct indexer *indexer)
{
    assert_int_equal(indexer_add_index(indexer, "node", index_node, &marker), ST_OK);
    assert_int_equal(indexer_add_index(indexer, "label", index_labels, NULL), ST_OK);
}

/* Gives the reference to the indexer. */
static void put(struct indexer *indexer, struct vigil_kube_object *made)
{
    struct vigil_kube_object *old;
    assert_int_equal(indexer_put(indexer, made, &old), ST_OK);
    vigil_kube_object_unref(made);
    vigil_kube_object_unref(old);
    indexer_check(indexer);
}

static size_t count(const struct indexer *indexer, const char *index, const char *value)
{
    const struct hash_map *found = indexer_find(indexer, index, slice_from_text(value));
    return found ? found->count : 0;
}

static void objects_are_found_by_key_and_index(void **state)
{
    (void)state;
    struct indexer indexer;
    indexer_init(&indexer, 1);
    add_indexes(&indexer);
    put(&indexer, object("a", "n1", "xy"));
    put(&indexer, object("b", "n1", ""));
    put(&indexer, object("c", "", "x"));
    assert_int_equal(indexer_count(&indexer), 3);
    assert_non_null(indexer_get(&indexer, SLICE_LITERAL("n/a")));
    assert_null(indexer_get(&indexer, SLICE_LITERAL("a")));
    assert_int_equal(count(&indexer, "node", "n1"), 2);
    assert_int_equal(count(&indexer, "node", ""), 0);
    assert_int_equal(count(&indexer, "label", "x"), 2);
    assert_int_equal(count(&indexer, "label", "y"), 1);
    assert_int_equal(count(&indexer, "other", "y"), 0);

    put(&indexer, object("a", "n2", "yzz")); /* a value may be named twice */
    assert_int_equal(indexer_count(&indexer), 3);
    assert_int_equal(count(&indexer, "node", "n1"), 1);
    assert_int_equal(count(&indexer, "node", "n2"), 1);
    assert_int_equal(count(&indexer, "label", "x"), 1);
    assert_int_equal(count(&indexer, "label", "z"), 1);

    vigil_kube_object_unref(indexer_remove(&indexer, SLICE_LITERAL("n/a")));
    indexer_check(&indexer);
    assert_int_equal(count(&indexer, "label", "y"), 0);
    assert_null(indexer_remove(&indexer, SLICE_LITERAL("n/a")));
    indexer_fini(&indexer);
}

static void index_added_later_has_all_objects(void **state)
{
    (void)state;
    struct indexer indexer;
    indexer_init(&indexer, 1);
    put(&indexer, object("a", "n1", "x"));
    put(&indexer, object("b", "n1", "x"));
    add_indexes(&indexer);
    indexer_check(&indexer);
    assert_int_equal(count(&indexer, "node", "n1"), 2);
    assert_int_equal(indexer_add_index(&indexer, "node", index_labels, NULL), ST_EXISTS);
    indexer_fini(&indexer);
}

static void object_that_a_reader_holds_outlives_the_indexer(void **state)
{
    (void)state;
    struct indexer indexer;
    indexer_init(&indexer, 1);
    put(&indexer, object("a", "n1", "x"));
    struct vigil_kube_object *held =
        vigil_kube_object_ref(indexer_get(&indexer, SLICE_LITERAL("n/a")));
    put(&indexer, object("a", "n2", "x"));
    indexer_fini(&indexer);
    assert_int_equal(vigil_kube_object_name(held).size, 1);
    vigil_kube_object_unref(held);
}

/* -- Random changes; some allocations fail -- */

enum { NAMES = 30, STEPS = 3000 };

static struct vigil_kube_object *random_object(struct random *random, uint64_t name)
{
    static const char *const labels[] = {"", "x", "xy", "yz", "xyz", "zz"};
    char text[16], node[16];
    snprintf(text, sizeof(text), "%d", (int)name);
    snprintf(node, sizeof(node), "n%d", (int)random_below(random, 4));
    return object(text, node, labels[random_below(random, COUNT_OF(labels))]);
}

static void change_randomly(struct indexer *indexer, struct random *random, bool *ret_failed)
{
    uint64_t name = random_below(random, NAMES);
    struct vigil_kube_object *made = random_object(random, name), *old = NULL;
    struct slice key = object_key(made);
    struct vigil_kube_object *before = indexer_get(indexer, key);
    enum status status = ST_OK;
    memory_fail_at = random_chance(random, 1, 3) ? 1 + (size_t)random_below(random, 12) : 0;
    if (random_chance(random, 1, 3))
        old = indexer_remove(indexer, key);
    else
        status = indexer_put(indexer, made, &old);
    memory_fail_at = 0;
    *ret_failed |= status == ST_NOMEM;
    if (status == ST_OK)
        assert_ptr_equal(old, before);
    else
        assert_ptr_equal(indexer_get(indexer, key), before);
    indexer_check(indexer);
    vigil_kube_object_unref(made);
    if (status == ST_OK)
        vigil_kube_object_unref(old);
}

static void failed_changes_change_nothing(void **state)
{
    (void)state;
    bool failed = false;
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct indexer indexer;
        struct random random;
        random_init(&random, seed);
        indexer_init(&indexer, seed);
        add_indexes(&indexer);
        for (int i = 0; i < STEPS; i++)
            change_randomly(&indexer, &random, &failed);
        indexer_fini(&indexer);
    }
    assert_true(failed);
}

enum { VALUES = 20000 };

static void index_many(const struct vigil_kube_object *object,
                       struct vigil_kube_index_values *values, void *user)
{
    (void)object;
    (void)user;
    for (uint32_t i = 0; i < VALUES; i++)
        index_values_add(values, slice_of(&i, sizeof(i)));
}

/* An object may have very many owners or labels. */
static void work_is_proportional_to_the_values(void **state)
{
    (void)state;
    struct indexer indexer;
    struct vigil_kube_object *old, *versions[2] = {object("a", "", ""), object("a", "", "x")};
    clock_t took[2];
    indexer_init(&indexer, 1);
    assert_int_equal(indexer_add_index(&indexer, "many", index_many, NULL), ST_OK);
    for (int i = 0; i < 2; i++) {
        clock_t from = clock();
        assert_int_equal(indexer_put(&indexer, versions[i], &old), ST_OK);
        took[i] = clock() - from;
        vigil_kube_object_unref(old);
        vigil_kube_object_unref(versions[i]);
    }
    assert_true(took[1] < 20 * took[0] + CLOCKS_PER_SEC / 20);
    indexer_check(&indexer);
    indexer_fini(&indexer);
}

static void index_without_memory_is_not_added(void **state)
{
    (void)state;
    struct indexer indexer;
    indexer_init(&indexer, 1);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        put(&indexer, object(name, i % 2 ? "n1" : "n2", "x"));
    }
    enum status status = ST_NOMEM;
    for (size_t at = 1; status != ST_OK; at++) {
        memory_fail_at = at;
        status = indexer_add_index(&indexer, "node", index_node, &marker);
        bool failed = memory_fail_at == 0;
        memory_fail_at = 0;
        assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
        indexer_check(&indexer);
    }
    assert_int_equal(count(&indexer, "node", "n1"), 10);
    indexer_fini(&indexer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_found_by_key_and_index),
        cmocka_unit_test(index_added_later_has_all_objects),
        cmocka_unit_test(object_that_a_reader_holds_outlives_the_indexer),
        cmocka_unit_test(failed_changes_change_nothing),
        cmocka_unit_test(work_is_proportional_to_the_values),
        cmocka_unit_test(index_without_memory_is_not_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
