#include "kube/policy/admission/amounts/limit_range.h"

#include "base/buf.h"
#include "kube/policy/admission/trees_test.h"

static struct json_node *range_of(const char *limits)
{
    char text[4096];
    snprintf(text, sizeof(text), "{'spec':{'limits':[%s]}}", limits);
    return tree(text);
}

static void assert_default(const char *limits, const char *pod, const char *expected)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *object = tree(pod);
    assert_int_equal(kube_limit_range_default(&arena, range_of(limits), object), ST_OK);
    if (json_node_equal(object, tree(expected)))
        return;
    assert_int_equal(json_tree_write(object, &text), ST_OK);
    fail_msg("%.*s", SLICE_ARGS(buf_slice(&text)));
}

static void assert_pod(const char *limits, const char *spec, const char *why)
{
    char text[4096];
    struct slice found;
    snprintf(text, sizeof(text), "{'spec':{%s}}", spec);
    assert_int_equal(kube_limit_range_check_pod(&arena, range_of(limits), tree(text), &found),
                     ST_OK);
    if (!slice_is(found, why))
        fail_msg("%.*s\ninstead of\n%s", SLICE_ARGS(found), why);
}

static void assert_claim(const char *limits, const char *claim, const char *why)
{
    struct slice found;
    assert_int_equal(kube_limit_range_check_claim(&arena, range_of(limits), tree(claim), &found),
                     ST_OK);
    if (!slice_is(found, why))
        fail_msg("%.*s\ninstead of\n%s", SLICE_ARGS(found), why);
}

static void containers_get_what_they_do_not_have(void **state)
{
    (void)state;
    assert_default(
        "{'type':'Container','default':{'memory':'2Gi','cpu':'1'},"
        "'defaultRequest':{'cpu':'500m'}},{'type':'Pod','max':{'cpu':'4'}}",
        "{'spec':{'containers':[{'name':'a'},{'name':'b','resources':{'limits':{'cpu':'2'},"
        "'requests':{'cpu':'1'}}},{'name':'c','resources':{'limits':{'cpu':'2','memory':'1'},"
        "'requests':{'cpu':'1'}}}],'initContainers':[{'name':'i','resources':{}}]}}",
        "{'spec':{'containers':[{'name':'a','resources':{'limits':{'cpu':'1','memory':'2Gi'},"
        "'requests':{'cpu':'500m'}}},{'name':'b','resources':{'limits':{'cpu':'2','memory':'2Gi'},"
        "'requests':{'cpu':'1'}}},{'name':'c','resources':{'limits':{'cpu':'2','memory':'1'},"
        "'requests':{'cpu':'1'}}}],'initContainers':[{'name':'i','resources':{'limits':{'cpu':'1',"
        "'memory':'2Gi'},'requests':{'cpu':'500m'}}}]},"
        "'metadata':{'annotations':{'kubernetes.io/limit-ranger':'LimitRanger plugin set: "
        "cpu request for container a; cpu, memory limit for container a; "
        "memory limit for container b; cpu request for init container i; "
        "cpu, memory limit for init container i'}}}");
}

static void a_pod_that_has_everything_is_not_annotated(void **state)
{
    (void)state;
    const char *pod = "{'spec':{'containers':[{'name':'a','resources':{'limits':{'cpu':'1'}}}]}}";
    assert_default("{'type':'Container','default':{'cpu':'2'}}", pod, pod);
    assert_default("{'type':'Pod','default':{'memory':'2'}}", pod, pod);
    assert_default("{'type':'Container','max':{'memory':'2'}}", pod, pod);
}

#define CONTAINER(requests, limits) \
    "'containers':[{'name':'a','resources':{'requests':{" requests "},'limits':{" limits "}}}]"

static void containers_are_bounded(void **state)
{
    (void)state;
    const char *min = "{'type':'Container','min':{'cpu':'100m'}}";
    assert_pod(min, CONTAINER("'cpu':'100m'", ""), "");
    assert_pod(min, CONTAINER("", "'cpu':'1'"),
               "minimum cpu usage per Container is 100m.  No request is specified");
    assert_pod(min, CONTAINER("'cpu':'99m'", ""),
               "minimum cpu usage per Container is 100m, but request is 99m");
    assert_pod(min, CONTAINER("'cpu':'1'", "'cpu':'50m'"),
               "minimum cpu usage per Container is 100m, but limit is 50m");
    const char *max = "{'type':'Container','max':{'memory':'1Gi'}}";
    assert_pod(max, CONTAINER("", "'memory':'1024Mi'"), "");
    assert_pod(max, CONTAINER("'memory':'1'", ""),
               "maximum memory usage per Container is 1Gi.  No limit is specified");
    assert_pod(max, CONTAINER("", "'memory':'1025Mi'"),
               "maximum memory usage per Container is 1Gi, but limit is 1025Mi");
    assert_pod(max, CONTAINER("'memory':'2Gi'", "'memory':'1Gi'"),
               "maximum memory usage per Container is 1Gi, but request is 2Gi");
}

static void the_ratio_of_limit_and_request_is_bounded(void **state)
{
    (void)state;
    const char *ratio = "{'type':'Container','maxLimitRequestRatio':{'cpu':'1500m'}}";
    assert_pod(ratio, CONTAINER("'cpu':'2'", "'cpu':'3'"), "");
    assert_pod(ratio, CONTAINER("'cpu':'1'", "'cpu':'2'"),
               "cpu max limit to request ratio per Container is 1500m, but provided ratio is "
               "2.000000");
    assert_pod(ratio, CONTAINER("'cpu':'0'", "'cpu':'2'"),
               "cpu max limit to request ratio per Container is 1500m, but no request is "
               "specified or request is 0");
    assert_pod(ratio, CONTAINER("'cpu':'1'", ""),
               "cpu max limit to request ratio per Container is 1500m, but no limit is specified "
               "or limit is 0");
}

/* Amounts that do not fit in 64 bits as thousandths are compared as units. */
static void large_amounts_are_compared(void **state)
{
    (void)state;
    const char *max = "{'type':'Container','max':{'memory':'8Ei'}}";
    assert_pod(max, CONTAINER("", "'memory':'7Ei'"), "");
    assert_pod("{'type':'Container','max':{'memory':'6Ei'}}", CONTAINER("", "'memory':'7Ei'"),
               "maximum memory usage per Container is 6Ei, but limit is 7Ei");
    assert_pod("{'type':'Container','min':{'memory':'-1'}}", CONTAINER("'memory':'0'", ""), "");
}

/* Sidecars count with the containers, other init containers only while they run. */
static void pods_are_bounded_by_their_sum(void **state)
{
    (void)state;
#define NEEDS(cpu) "'resources':{'requests':{'cpu':'" cpu "'}}"
    const char *spec = "'containers':[{" NEEDS("1") "},{" NEEDS(
        "500m") "}],"
                "'initContainers':[{'restartPolicy':'Always'," NEEDS(
                    "1") "},"
                         "{" NEEDS("1500m") "}],'overhead':{'cpu':'7'}";
    assert_pod("{'type':'Pod','min':{'cpu':'2500m'}}", spec, "");
    assert_pod("{'type':'Pod','min':{'cpu':'2501m'}}", spec,
               "minimum cpu usage per Pod is 2501m, but request is 2500m");
    const char *init = "'containers':[{" NEEDS("1") "}],'initContainers':[{" NEEDS("3") "}]";
    assert_pod("{'type':'Pod','min':{'cpu':'4'}}", init,
               "minimum cpu usage per Pod is 4, but request is 3");
    assert_pod("{'type':'Pod','min':{'cpu':'9'}}",
               "'resources':{'requests':{'cpu':'8'}},'containers':[{" NEEDS("1") "}]",
               "minimum cpu usage per Pod is 9, but request is 8");
    assert_pod("{'type':'Pod','max':{'memory':'1'}}", spec,
               "maximum memory usage per Pod is 1.  No limit is specified");
}

static void claims_are_bounded(void **state)
{
    (void)state;
    const char *limits = "{'type':'PersistentVolumeClaim','min':{'storage':'1Gi'},"
                         "'max':{'storage':'2Gi'}},{'type':'Pod','min':{'storage':'9'}}";
#define CLAIM(storage) "{'spec':{'resources':{'requests':{" storage "}}}}"
    assert_claim(limits, CLAIM("'storage':'2Gi'"), "");
    assert_claim(limits, CLAIM("'storage':'3Gi'"),
                 "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi");
    assert_claim(limits, CLAIM(""),
                 "[minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is "
                 "specified, maximum storage usage per PersistentVolumeClaim is 2Gi.  No request "
                 "is specified]");
}

static void equal_errors_are_shown_once(void **state)
{
    (void)state;
    const char *limits = "{'type':'Container','min':{'cpu':'1','memory':'1'}}";
    const char *spec = "'containers':[{},{'resources':{'requests':{'cpu':'1'}}}],"
                       "'initContainers':[{}]";
    assert_pod(limits, spec,
               "[minimum cpu usage per Container is 1.  No request is specified, "
               "minimum memory usage per Container is 1.  No request is specified]");
}

static void no_more_errors_are_shown_than_the_limit(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf text = {0};
    struct slice why;
    assert_int_equal(buf_append_text(&text, "{'spec':{'containers':["), ST_OK);
    for (int i = 1; i <= KUBE_LIMIT_RANGE_ERRORS_MAX + 9; i++)
        assert_int_equal(buf_append_format(&text, "%s{'resources':{'requests':{'cpu':'%d'}}}",
                                           i > 1 ? "," : "", i),
                         ST_OK);
    assert_int_equal(buf_append(&text, slice_of("]}}", 4)), ST_OK);
    assert_int_equal(
        kube_limit_range_check_pod(&arena, range_of("{'type':'Container','min':{'cpu':'500'}}"),
                                   tree((const char *)text.ptr), &why),
        ST_OK);
    assert_non_null(memmem(why.ptr, why.len, "request is 64", 13));
    assert_null(memmem(why.ptr, why.len, "request is 65", 13));
}

static struct json_node *large_range(size_t items, size_t amounts)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(buf_append_text(&text, "{'spec':{'limits':["), ST_OK);
    for (size_t i = 0; i < items; i++) {
        assert_int_equal(buf_append_text(&text, i ? ",{'max':{" : "{'max':{"), ST_OK);
        for (size_t n = 0; n < amounts; n++)
            assert_int_equal(buf_append_format(&text, "%s'a/%zu':'1'", n ? "," : "", n), ST_OK);
        assert_int_equal(buf_append_text(&text, "}}"), ST_OK);
    }
    assert_int_equal(buf_append(&text, slice_of("]}}", 4)), ST_OK);
    return tree((const char *)text.ptr);
}

static void the_size_of_a_limit_range_is_bounded(void **state)
{
    (void)state;
    assert_true(kube_limit_range_is_sound(
        large_range(KUBE_LIMIT_RANGE_ITEMS_MAX, KUBE_LIMIT_RANGE_AMOUNTS_MAX)));
    assert_false(kube_limit_range_is_sound(large_range(KUBE_LIMIT_RANGE_ITEMS_MAX + 1, 1)));
    assert_false(kube_limit_range_is_sound(large_range(1, KUBE_LIMIT_RANGE_AMOUNTS_MAX + 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(containers_get_what_they_do_not_have, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pod_that_has_everything_is_not_annotated, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(containers_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_ratio_of_limit_and_request_is_bounded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(large_amounts_are_compared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pods_are_bounded_by_their_sum, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claims_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equal_errors_are_shown_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_more_errors_are_shown_than_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_size_of_a_limit_range_is_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
