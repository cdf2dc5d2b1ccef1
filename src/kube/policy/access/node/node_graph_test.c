#include "kube/policy/access/node/node_graph.h"

#include "base/clock.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum {
    NAMES = 6,
    NODES = 3,
    PODS = 12,
    VOLUMES = 8,
    NAMED_MAX = 5,
    ROUNDS = 6000,
    NO_LIMIT = 64 << 20,
};

static const char *const names[NAMES] = {"a", "b", "c", "dd", "e-e", "default"};
static const char *const nodes[NODES] = {"one", "two", "three"};
static const char *const namespaces[2] = {"shop", "bank"};

/* A pod or volume of the model, which is compared with the graph by asking about everything. */
struct entry {
    bool exists;
    int node;
    int namespace; /* that of a pod */
    struct node_object claim, named[NAMED_MAX];
    size_t count;
};

struct fixture {
    struct node_graph graph;
    struct random random;
    struct entry pods[PODS], volumes[VOLUMES];
    char pod_names[PODS][8], volume_names[VOLUMES][8];
};

static struct slice text(const char *from)
{
    return slice_from_text(from);
}

static struct node_object make(enum node_kind kind, const char *namespace, const char *name)
{
    return (struct node_object){kind, text(namespace), text(name)};
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    node_graph_init(&f->graph, 7, NO_LIMIT);
    random_init(&f->random, 42);
    for (size_t i = 0; i < PODS; i++)
        snprintf(f->pod_names[i], sizeof(f->pod_names[i]), "p%zu", i);
    for (size_t i = 0; i < VOLUMES; i++)
        snprintf(f->volume_names[i], sizeof(f->volume_names[i]), "v%zu", i);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    while (!node_graph_drain(&f->graph, 3))
        ;
    free(f);
    return 0;
}

static bool reaches(struct fixture *f, const char *node, enum node_kind kind, const char *namespace,
                    const char *name)
{
    return node_graph_reaches(&f->graph, text(node), make(kind, namespace, name));
}

static bool put_pod(struct fixture *f, const char *name, const char *node,
                    const struct node_object *named, size_t count)
{
    return node_graph_put(&f->graph, make(NODE_POD, "shop", name), text(node), named, count);
}

/* -- The model -- */

static bool same(const struct node_object *a, const struct node_object *b)
{
    return a->kind == b->kind && slice_equal(a->namespace, b->namespace) &&
           slice_equal(a->name, b->name);
}

static bool names_it(const struct entry *entry, const struct node_object *object)
{
    for (size_t i = 0; i < entry->count; i++)
        if (same(&entry->named[i], object))
            return true;
    return false;
}

static bool pod_names_it(const struct fixture *f, int node, const struct node_object *object)
{
    for (size_t i = 0; i < PODS; i++)
        if (f->pods[i].exists && f->pods[i].node == node && names_it(&f->pods[i], object))
            return true;
    return false;
}

static bool model_reaches(const struct fixture *f, int node, const struct node_object *object)
{
    if (pod_names_it(f, node, object))
        return true;
    for (size_t i = 0; i < VOLUMES; i++) {
        const struct entry *v = &f->volumes[i];
        bool own = object->kind == NODE_VOLUME && slice_is(object->name, f->volume_names[i]);
        if (v->exists && (own || names_it(v, object)) && pod_names_it(f, node, &v->claim))
            return true;
    }
    return false;
}

static void compare(struct fixture *f)
{
    static const enum node_kind kinds[] = {NODE_SECRET, NODE_CONFIG_MAP, NODE_ACCOUNT,
                                           NODE_RESOURCE_CLAIM, NODE_CLAIM};
    for (int node = 0; node < NODES; node++) {
        for (size_t i = 0; i < COUNT_OF(kinds) * 2 * NAMES; i++) {
            const struct node_object object =
                make(kinds[i % COUNT_OF(kinds)], namespaces[i / COUNT_OF(kinds) % 2],
                     names[i / COUNT_OF(kinds) / 2]);
            assert_int_equal(node_graph_reaches(&f->graph, text(nodes[node]), object),
                             model_reaches(f, node, &object));
        }
        for (size_t i = 0; i < VOLUMES; i++) {
            const struct node_object object = make(NODE_VOLUME, "", f->volume_names[i]);
            assert_int_equal(node_graph_reaches(&f->graph, text(nodes[node]), object),
                             model_reaches(f, node, &object));
        }
        for (size_t i = 0; i < PODS; i++) {
            const struct entry *pod = &f->pods[i];
            const struct node_object object =
                make(NODE_POD, namespaces[pod->namespace], f->pod_names[i]);
            assert_int_equal(node_graph_reaches(&f->graph, text(nodes[node]), object),
                             pod->exists && pod->node == node);
        }
    }
}

static void change_pod(struct fixture *f)
{
    static const enum node_kind kinds[] = {NODE_SECRET,         NODE_CONFIG_MAP, NODE_ACCOUNT,
                                           NODE_RESOURCE_CLAIM, NODE_CLAIM,      NODE_CLAIM};
    size_t at = random_below(&f->random, PODS);
    struct entry *pod = &f->pods[at];
    pod->namespace = at % 2;
    struct node_object object = make(NODE_POD, namespaces[pod->namespace], f->pod_names[at]);
    if (random_chance(&f->random, 1, 3)) {
        pod->exists = false;
        node_graph_remove(&f->graph, object);
        return;
    }
    pod->exists = random_chance(&f->random, 9, 10);
    pod->node = (int)random_below(&f->random, NODES);
    pod->count = random_below(&f->random, NAMED_MAX + 1);
    for (size_t i = 0; i < pod->count; i++)
        pod->named[i] = make(kinds[random_below(&f->random, COUNT_OF(kinds))],
                             namespaces[pod->namespace], names[random_below(&f->random, NAMES)]);
    assert_true(node_graph_put(&f->graph, object, text(pod->exists ? nodes[pod->node] : ""),
                               pod->named, pod->count));
}

static void change_volume(struct fixture *f)
{
    size_t at = random_below(&f->random, VOLUMES);
    struct entry *volume = &f->volumes[at];
    if (random_chance(&f->random, 1, 3)) {
        volume->exists = false;
        node_graph_remove(&f->graph, make(NODE_VOLUME, "", f->volume_names[at]));
        return;
    }
    volume->exists = true;
    volume->count = random_below(&f->random, 3);
    for (size_t i = 0; i < volume->count; i++)
        volume->named[i] = make(NODE_SECRET, namespaces[random_below(&f->random, 2)],
                                names[random_below(&f->random, NAMES)]);
    volume->claim = make(NODE_CLAIM, namespaces[random_below(&f->random, 2)],
                         names[random_below(&f->random, NAMES)]);
    assert_true(node_graph_put_volume(&f->graph, text(f->volume_names[at]), volume->claim,
                                      volume->named, volume->count));
}

/* -- Tests -- */

static void random_changes_are_answered_as_by_a_model(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < ROUNDS; i++) {
        if (random_chance(&f->random, 2, 3))
            change_pod(f);
        else
            change_volume(f);
        if (i % 5 == 0)
            compare(f);
        if (i % 50 == 0)
            node_graph_check(&f->graph);
    }
    for (size_t i = 0; i < PODS; i++)
        node_graph_remove(&f->graph,
                          make(NODE_POD, namespaces[f->pods[i].namespace], f->pod_names[i]));
    for (size_t i = 0; i < VOLUMES; i++)
        node_graph_remove(&f->graph, make(NODE_VOLUME, "", f->volume_names[i]));
    node_graph_check(&f->graph);
    assert_int_equal(f->graph.bytes, 0);
    assert_int_equal(f->graph.things.count, 0);
    assert_int_equal(f->graph.uses.count, 0);
}

static void a_secret_of_a_volume_is_that_of_the_nodes_of_its_claim(void **state)
{
    struct fixture *f = *state;
    const struct node_object claim = make(NODE_CLAIM, "shop", "data");
    const struct node_object secret = make(NODE_SECRET, "storage", "key");
    assert_true(put_pod(f, "p", "one", &claim, 1));
    assert_false(reaches(f, "one", NODE_VOLUME, "", "disk"));
    assert_true(node_graph_put_volume(&f->graph, text("disk"), claim, &secret, 1));
    assert_true(reaches(f, "one", NODE_VOLUME, "", "disk"));
    assert_true(reaches(f, "one", NODE_SECRET, "storage", "key"));
    assert_false(reaches(f, "one", NODE_SECRET, "shop", "key"));
    assert_false(reaches(f, "two", NODE_SECRET, "storage", "key"));
    /* The pod is bound to another node. */
    assert_true(put_pod(f, "p", "two", &claim, 1));
    assert_false(reaches(f, "one", NODE_SECRET, "storage", "key"));
    assert_true(reaches(f, "two", NODE_SECRET, "storage", "key"));
    /* The volume is for another claim. */
    assert_true(node_graph_put_volume(&f->graph, text("disk"), make(NODE_CLAIM, "shop", "other"),
                                      &secret, 1));
    assert_false(reaches(f, "two", NODE_VOLUME, "", "disk"));
    assert_false(reaches(f, "two", NODE_SECRET, "storage", "key"));
    node_graph_check(&f->graph);
}

static void what_is_assigned_by_name_is_its_node_s_alone(void **state)
{
    struct fixture *f = *state;
    const struct node_object attachment = make(NODE_ATTACHMENT, "", "x");
    const struct node_object slice = make(NODE_SLICE, "", "x");
    assert_true(node_graph_put(&f->graph, attachment, text("one"), NULL, 0));
    assert_true(node_graph_put(&f->graph, slice, text("two"), NULL, 0));
    assert_true(reaches(f, "one", NODE_ATTACHMENT, "", "x"));
    assert_false(reaches(f, "two", NODE_ATTACHMENT, "", "x"));
    assert_false(reaches(f, "one", NODE_SLICE, "", "x"));
    assert_true(reaches(f, "two", NODE_SLICE, "", "x"));
    assert_true(node_graph_put(&f->graph, attachment, text(""), NULL, 0));
    assert_false(reaches(f, "one", NODE_ATTACHMENT, "", "x"));
    assert_false(reaches(f, "", NODE_ATTACHMENT, "", "x"));
    node_graph_check(&f->graph);
}

static void names_that_no_object_can_have_are_ignored(void **state)
{
    struct fixture *f = *state;
    char longest[NODE_NAME_BYTES_MAX + 1], longer[NODE_NAME_BYTES_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    memset(longer, 'x', sizeof(longer));
    longest[sizeof(longest) - 1] = longer[sizeof(longer) - 1] = 0;
    const struct node_object named[] = {make(NODE_SECRET, "shop", ""),
                                        make(NODE_SECRET, "shop", longer),
                                        make(NODE_SECRET, "shop", longest)};
    assert_true(put_pod(f, "p", "one", named, COUNT_OF(named)));
    assert_true(put_pod(f, "p", "one", named, COUNT_OF(named)));
    assert_false(reaches(f, "one", NODE_SECRET, "shop", ""));
    assert_false(reaches(f, "one", NODE_SECRET, "shop", longer));
    assert_true(reaches(f, "one", NODE_SECRET, "shop", longest));
    assert_true(put_pod(f, "q", longer, named, COUNT_OF(named)));
    assert_false(reaches(f, longer, NODE_POD, "shop", "q"));
    node_graph_check(&f->graph);
}

static void beyond_the_limit_pods_are_left_out_until_there_is_room(void **state)
{
    struct fixture *f = *state;
    const struct node_object secret = make(NODE_SECRET, "shop", "a");
    f->graph.bytes_max = 4096;
    char name[16];
    int last = 0;
    do
        snprintf(name, sizeof(name), "pod-%d", last++);
    while (put_pod(f, name, "one", &secret, 1));
    assert_in_range(last, 20, 100);
    assert_int_equal(f->graph.left_out, 1);
    assert_false(reaches(f, "one", NODE_POD, "shop", name));
    node_graph_remove(&f->graph, make(NODE_POD, "shop", "pod-0"));
    assert_true(put_pod(f, name, "one", &secret, 1));
    assert_true(reaches(f, "one", NODE_POD, "shop", name));
    node_graph_check(&f->graph);
}

static void a_claim_has_a_limited_number_of_volumes(void **state)
{
    struct fixture *f = *state;
    const struct node_object claim = make(NODE_CLAIM, "shop", "data");
    char name[16];
    assert_true(put_pod(f, "p", "one", &claim, 1));
    for (int i = 0; i < NODE_CLAIM_VOLUMES_MAX; i++) {
        snprintf(name, sizeof(name), "v-%d", i);
        assert_true(node_graph_put_volume(&f->graph, text(name), claim, NULL, 0));
    }
    assert_false(node_graph_put_volume(&f->graph, text("more"), claim, NULL, 0));
    assert_false(reaches(f, "one", NODE_VOLUME, "", "more"));
    node_graph_remove(&f->graph, make(NODE_VOLUME, "", "v-0"));
    assert_true(node_graph_put_volume(&f->graph, text("more"), claim, NULL, 0));
    assert_true(reaches(f, "one", NODE_VOLUME, "", "more"));
    node_graph_check(&f->graph);
}

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* 1,000 nodes with 30 pods each, which name what a pod usually names. */
static void a_large_cluster_takes_little_memory_and_time(void **state)
{
    struct fixture *f = *state;
    enum { MANY_NODES = 1000, EACH = 30, ASKED = 200000 };
    char node[16], pod[40], space[32], secret[32];
    for (int i = 0; i < MANY_NODES * EACH; i++) {
        int of = i / EACH;
        snprintf(node, sizeof(node), "node-%d", of);
        snprintf(space, sizeof(space), "namespace-%d", i * 7 % 200);
        snprintf(pod, sizeof(pod), "deployment-5d8c7b9f4-%05d", i);
        snprintf(secret, sizeof(secret), "secret-%d", i % 3000);
        const struct node_object named[] = {
            make(NODE_ACCOUNT, space, "default"), make(NODE_CONFIG_MAP, space, "kube-root-ca.crt"),
            make(NODE_CONFIG_MAP, space, "settings"), make(NODE_SECRET, space, secret)};
        assert_true(node_graph_put(&f->graph, make(NODE_POD, space, pod), text(node), named,
                                   COUNT_OF(named)));
    }
    size_t links = (f->graph.things.capacity + f->graph.uses.capacity) * sizeof(void *);
    size_t each = (f->graph.bytes + links) / f->graph.pods;
    int found = 0;
    int64_t start_ns = cpu_ns();
    for (int i = 0; i < ASKED; i++) {
        snprintf(node, sizeof(node), "node-%d", i % MANY_NODES);
        found += reaches(f, node, NODE_ACCOUNT, "namespace-7", "default");
    }
    int64_t taken_ns = cpu_ns() - start_ns;
    print_message("%zu bytes for each pod, %lld ns for each question\n", each,
                  (long long)(taken_ns / ASKED));
    assert_in_range(found, 1, ASKED - 1);
    assert_in_range(each, 100, 450);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_changes_are_answered_as_by_a_model, setup, teardown),
        cmocka_unit_test_setup_teardown(a_secret_of_a_volume_is_that_of_the_nodes_of_its_claim,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_assigned_by_name_is_its_node_s_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_that_no_object_can_have_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(beyond_the_limit_pods_are_left_out_until_there_is_room,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_claim_has_a_limited_number_of_volumes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_cluster_takes_little_memory_and_time, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
