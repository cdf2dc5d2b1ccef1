#include "kube/types/object/stored_fields.h"

#include "kube/types/object/qos.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct json_node *tree(struct arena *arena, const char *text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, slice_from_text(text), &root, &error), ST_OK);
    return root;
}

static void assert_class(const char *spec, const char *expected)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_string_equal(kube_qos_class(tree(&arena, spec)), expected);
    arena_fini(&arena);
}

#define CPU_AND_MEMORY "{\"cpu\":\"1\",\"memory\":\"1Gi\"}"
#define SAME "{\"cpu\":\"1000m\",\"memory\":\"1073741824\"}"

static void the_class_of_a_pod_depends_on_its_requests_and_limits(void **state)
{
    (void)state;
    assert_class("{}", "BestEffort");
    assert_class("{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"x\":\"1\",\"cpu\":\"0\"}"
                 "}}]}}",
                 "BestEffort");
    assert_class("{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
                 "Burstable");
    assert_class("{\"spec\":{\"containers\":[{\"resources\":{\"requests\":" CPU_AND_MEMORY
                 ",\"limits\":" SAME "}}]}}",
                 "Guaranteed");
    assert_class("{\"spec\":{\"containers\":[{\"resources\":{\"requests\":" CPU_AND_MEMORY
                 ",\"limits\":" SAME "}},{}]}}",
                 "Burstable");
    assert_class("{\"spec\":{\"containers\":[{}],\"resources\":{\"requests\":" CPU_AND_MEMORY
                 ",\"limits\":" SAME "}}}",
                 "Guaranteed");
    assert_class("{\"spec\":{\"containers\":[1,{\"resources\":[]}],\"initContainers\":{}}}",
                 "BestEffort");
}

/* -- Kinds -- */

struct case_of {
    struct arena arena;
    struct kube_status status;
    struct kube_meta meta;
};

static void begin(struct case_of *c, const char *group, const char *plural)
{
    *c = (struct case_of){0};
    arena_init(&c->arena, NULL, 0, 1 << 20);
    c->meta = (struct kube_meta){
        .arena = &c->arena,
        .status = &c->status,
        .kind =
            kube_builtin_find(slice_from_text(group), SLICE_LITERAL("v1"), slice_from_text(plural)),
    };
    assert_non_null(c->meta.kind);
}

static void assert_text(const struct json_node *object, const char *path, const char *key,
                        const char *expected)
{
    const struct json_node *node = json_node_named(json_node_path(object, path), key);
    if (expected ? !node || !json_node_is_text(node, expected) : node != NULL)
        fail_msg("%s %s", path, key);
}

static void the_pods_of_a_job_have_its_uid(void **state)
{
    struct case_of c;
    (void)state;
    begin(&c, "batch", "jobs");
    struct json_node *job = tree(&c.arena, "{\"metadata\":{\"name\":\"j\",\"uid\":\"u\"},"
                                           "\"spec\":{\"template\":{}}}");
    assert_true(kube_stored_fields_create(&c.meta, job));
    assert_text(job, "spec.template.metadata.labels", "controller-uid", "u");
    assert_text(job, "spec.template.metadata.labels", "batch.kubernetes.io/job-name", "j");
    assert_text(job, "spec.selector.matchLabels", "batch.kubernetes.io/controller-uid", "u");
    assert_text(job, "metadata.labels", "job-name", "j");
    job = tree(&c.arena, "{\"metadata\":{\"name\":\"j\",\"uid\":\"u\",\"labels\":{\"a\":\"b\"}},"
                         "\"spec\":{\"manualSelector\":true,\"template\":{}}}");
    assert_true(kube_stored_fields_create(&c.meta, job));
    assert_text(job, "spec", "selector", NULL);
    assert_text(job, "metadata.labels", "job-name", NULL);
    arena_fini(&c.arena);
}

#define GENERATION "deprecated.daemonset.template.generation"

static void a_daemon_set_counts_its_templates(void **state)
{
    struct case_of c;
    (void)state;
    begin(&c, "apps", "daemonsets");
    struct json_node *old = tree(&c.arena, "{\"metadata\":{},\"spec\":{\"template\":{\"a\":1}}}");
    struct json_node *same = tree(&c.arena, "{\"metadata\":{\"annotations\":{\"" GENERATION
                                            "\":\"7\"}},\"spec\":{\"template\":{\"a\":1}}}");
    struct json_node *other = tree(&c.arena, "{\"metadata\":{},\"spec\":{\"template\":{\"a\":2}}}");
    assert_true(kube_stored_fields_create(&c.meta, old));
    assert_text(old, "metadata.annotations", GENERATION, "1");
    assert_true(kube_stored_fields_update(&c.meta, old, same));
    assert_text(same, "metadata.annotations", GENERATION, "1");
    assert_true(kube_stored_fields_update(&c.meta, old, other));
    assert_text(other, "metadata.annotations", GENERATION, "2");
    arena_fini(&c.arena);
}

static void a_volume_knows_when_its_phase_changed(void **state)
{
    struct case_of c;
    (void)state;
    begin(&c, "", "persistentvolumes");
    struct json_node *old = tree(&c.arena, "{\"status\":{\"phase\":\"Pending\"}}");
    struct json_node *same = tree(&c.arena, "{\"status\":{\"phase\":\"Pending\"}}");
    struct json_node *bound = tree(&c.arena, "{\"status\":{\"phase\":\"Bound\"}}");
    assert_true(kube_stored_fields_create(&c.meta, old));
    assert_text(old, "status", "lastPhaseTransitionTime", "1970-01-01T00:00:00Z");
    assert_true(kube_stored_fields_update(&c.meta, old, same));
    assert_text(same, "status", "lastPhaseTransitionTime", NULL);
    assert_true(kube_stored_fields_update(&c.meta, old, bound));
    assert_text(bound, "status", "lastPhaseTransitionTime", "1970-01-01T00:00:00Z");
    arena_fini(&c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_class_of_a_pod_depends_on_its_requests_and_limits),
        cmocka_unit_test(the_pods_of_a_job_have_its_uid),
        cmocka_unit_test(a_daemon_set_counts_its_templates),
        cmocka_unit_test(a_volume_knows_when_its_phase_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
