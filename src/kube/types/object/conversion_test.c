#include "kube/types/object/conversion.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct kube_kind *event_kind(void)
{
    return kube_builtin_find(SLICE_LITERAL("events.k8s.io"), SLICE_LITERAL("v1"),
                             SLICE_LITERAL("events"));
}

static const struct kube_kind *scaler_kind(void)
{
    return kube_builtin_find(SLICE_LITERAL("autoscaling"), SLICE_LITERAL("v1"),
                             SLICE_LITERAL("horizontalpodautoscalers"));
}

typedef enum status (*changer)(const struct kube_kind *kind, struct arena *arena,
                               struct json_node *object);

static void assert_converted(changer change, const struct kube_kind *kind, const char *from,
                             const char *to)
{
    struct arena arena;
    struct json_node *object, *expected;
    struct error error;
    AUTO(buf_fini) struct buf text = {0};
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(json_tree_read(&arena, slice_from_text(from), &object, &error), ST_OK);
    assert_int_equal(json_tree_read(&arena, slice_from_text(to), &expected, &error), ST_OK);
    assert_int_equal(change(kind, &arena, object), ST_OK);
    assert_int_equal(json_tree_write(object, &text), ST_OK);
    if (!json_node_equal(object, expected))
        fail_msg("%.*s", SLICE_ARGS(buf_slice(&text)));
    arena_fini(&arena);
}

/* Converts in both directions. */
static void assert_converts_both_ways(const struct kube_kind *kind, const char *stored,
                                      const char *shown)
{
    assert_converted(kube_convert_from_stored, kind, stored, shown);
    assert_converted(kube_convert_to_stored, kind, shown, stored);
}

static void event_fields_are_renamed(void **state)
{
    (void)state;
    assert_converts_both_ways(
        event_kind(),
        "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},"
        "\"eventTime\":null,\"reportingInstance\":\"\","
        "\"involvedObject\":{\"kind\":\"Pod\"},\"reason\":\"r\",\"message\":\"m\","
        "\"source\":{\"component\":\"c\"},\"firstTimestamp\":null,\"lastTimestamp\":\"t\","
        "\"count\":3,\"type\":\"Normal\",\"reportingComponent\":\"d\",\"action\":\"b\"}",
        "{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{\"name\":\"a\"},"
        "\"eventTime\":null,"
        "\"regarding\":{\"kind\":\"Pod\"},\"reason\":\"r\",\"note\":\"m\","
        "\"deprecatedSource\":{\"component\":\"c\"},\"deprecatedFirstTimestamp\":null,"
        "\"deprecatedLastTimestamp\":\"t\",\"deprecatedCount\":3,\"type\":\"Normal\","
        "\"reportingController\":\"d\",\"action\":\"b\"}");
}

static void cpu_utilization_is_a_field_in_version_1(void **state)
{
    (void)state;
    assert_converts_both_ways(
        scaler_kind(),
        "{\"apiVersion\":\"autoscaling/v2\",\"metadata\":{},\"spec\":{\"maxReplicas\":3,"
        "\"minReplicas\":1,\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"d\"},"
        "\"metrics\":[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":"
        "{\"type\":\"Utilization\",\"averageUtilization\":70}}}]},"
        "\"status\":{\"currentReplicas\":2,\"desiredReplicas\":2,\"currentMetrics\":[{\"type\":"
        "\"Resource\",\"resource\":{\"name\":\"cpu\",\"current\":{\"averageUtilization\":50}}}]}}",
        "{\"apiVersion\":\"autoscaling/v1\",\"metadata\":{},\"spec\":{\"maxReplicas\":3,"
        "\"minReplicas\":1,\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"d\"},"
        "\"targetCPUUtilizationPercentage\":70},\"status\":{\"currentReplicas\":2,"
        "\"desiredReplicas\":2,\"currentCPUUtilizationPercentage\":50}}");
}

static void fields_unknown_to_version_1_are_kept_in_annotations(void **state)
{
    (void)state;
    assert_converts_both_ways(
        scaler_kind(),
        "{\"apiVersion\":\"autoscaling/v2\",\"metadata\":{},\"spec\":{\"maxReplicas\":3,"
        "\"minReplicas\":1,\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"d\"},"
        "\"metrics\":[{\"type\":\"Pods\",\"pods\":{\"metric\":{\"name\":\"m\"},"
        "\"target\":{\"type\":\"Value\",\"value\":\"1\"}}}]},"
        "\"status\":{\"currentReplicas\":2,\"desiredReplicas\":2,\"currentMetrics\":null,"
        "\"conditions\":[{\"type\":\"A\\\"\",\"status\":\"True\",\"lastTransitionTime\":null}]}}",
        "{\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"annotations\":{"
        "\"autoscaling.alpha.kubernetes.io/metrics\":\"[{\\\"type\\\":\\\"Pods\\\",\\\"pods\\\":"
        "{\\\"metric\\\":{\\\"name\\\":\\\"m\\\"},\\\"target\\\":{\\\"type\\\":\\\"Value\\\","
        "\\\"value\\\":\\\"1\\\"}}}]\","
        "\"autoscaling.alpha.kubernetes.io/conditions\":\"[{\\\"type\\\":\\\"A\\\\\\\"\\\","
        "\\\"status\\\":\\\"True\\\",\\\"lastTransitionTime\\\":null}]\"}},"
        "\"spec\":{\"maxReplicas\":3,\"minReplicas\":1,\"scaleTargetRef\":{\"kind\":"
        "\"Deployment\",\"name\":\"d\"}},\"status\":{\"currentReplicas\":2,"
        "\"desiredReplicas\":2}}");
}

/* The annotation has what the client of version 2 wrote; the stored form is complete. */
static void a_behavior_from_an_annotation_gets_its_defaults(void **state)
{
    (void)state;
    assert_converted(
        kube_convert_to_stored, scaler_kind(),
        "{\"metadata\":{\"annotations\":{\"autoscaling.alpha.kubernetes.io/behavior\":"
        "\"{\\\"scaleDown\\\":{\\\"policies\\\":[{\\\"type\\\":\\\"Pods\\\",\\\"value\\\":1,"
        "\\\"periodSeconds\\\":2}]}}\"}},\"spec\":{\"maxReplicas\":3,"
        "\"targetCPUUtilizationPercentage\":5,\"scaleTargetRef\":{\"kind\":\"D\",\"name\":\"d\"}}}",
        "{\"apiVersion\":\"autoscaling/v2\",\"metadata\":{},\"spec\":{\"maxReplicas\":3,"
        "\"minReplicas\":1,\"scaleTargetRef\":{\"kind\":\"D\",\"name\":\"d\"},"
        "\"metrics\":[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":"
        "{\"type\":\"Utilization\",\"averageUtilization\":5}}}],\"behavior\":{"
        "\"scaleDown\":{\"policies\":[{\"type\":\"Pods\",\"value\":1,\"periodSeconds\":2}],"
        "\"selectPolicy\":\"Max\"},\"scaleUp\":{\"selectPolicy\":\"Max\","
        "\"stabilizationWindowSeconds\":0,\"policies\":["
        "{\"type\":\"Pods\",\"value\":4,\"periodSeconds\":15},"
        "{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]}}},"
        "\"status\":{\"currentMetrics\":null,\"desiredReplicas\":0}}");
}

static void values_of_unexpected_types_are_unchanged(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "{\"spec\":3,\"metadata\":[],\"status\":\"x\"}",
        "{\"spec\":{\"metrics\":7,\"targetCPUUtilizationPercentage\":null}}",
        "{\"metadata\":{\"annotations\":{\"autoscaling.alpha.kubernetes.io/metrics\":\"{\"}},"
        "\"spec\":{}}",
        "{\"metadata\":{\"annotations\":{\"autoscaling.alpha.kubernetes.io/metrics\":3}},"
        "\"spec\":{}}",
        "{\"regarding\":3,\"involvedObject\":4}",
        "{}",
    };
    struct arena arena;
    struct json_node *object;
    struct error error;
    arena_init(&arena, NULL, 0, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        for (int which = 0; which < 4; which++) {
            const struct kube_kind *kind = which & 1 ? event_kind() : scaler_kind();
            assert_int_equal(json_tree_read(&arena, slice_from_text(odd[i]), &object, &error),
                             ST_OK);
            assert_int_equal((which & 2 ? kube_convert_from_stored
                                        : kube_convert_to_stored)(kind, &arena, object),
                             ST_OK);
        }
    }
    assert_int_equal(json_tree_read(&arena, SLICE_LITERAL("[]"), &object, &error), ST_OK);
    assert_int_equal(kube_convert_from_stored(event_kind(), &arena, object), ST_MALFORMED);
    arena_fini(&arena);
    assert_converted(kube_convert_to_stored, event_kind(),
                     "{\"kind\":\"DeleteOptions\",\"note\":1}",
                     "{\"kind\":\"DeleteOptions\",\"note\":1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_fields_are_renamed),
        cmocka_unit_test(cpu_utilization_is_a_field_in_version_1),
        cmocka_unit_test(fields_unknown_to_version_1_are_kept_in_annotations),
        cmocka_unit_test(a_behavior_from_an_annotation_gets_its_defaults),
        cmocka_unit_test(values_of_unexpected_types_are_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
