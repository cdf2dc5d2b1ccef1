/* What is read from the metrics of a watch tier, and what `vigil doctor` says about it. */
#include "cmd/ctl/live/tier.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PODS "group=\"\",version=\"v1\",resource=\"pods\",encoding=\"json\""
#define NODES "group=\"\",version=\"v1\",resource=\"nodes\",encoding=\"protobuf\""
#define LEASES "group=\"coordination.k8s.io\",version=\"v1\",resource=\"leases\",encoding=\"json\""

static const char healthy[] =
    "vigil_tier_collections{phase=\"starting\"} 0\n"
    "vigil_tier_collections{phase=\"loading\"} 0\n"
    "vigil_tier_collections{phase=\"serving\"} 2\n"
    "vigil_tier_collections{phase=\"refused\"} 0\n"
    "vigil_tier_collection_info{" PODS ",phase=\"serving\",reason=\"\"} 1\n"
    "vigil_tier_collection_info{" NODES ",phase=\"serving\",reason=\"\"} 1\n"
    "vigil_tier_connected{" PODS "} 1\n"
    "vigil_tier_connected{" NODES "} 1\n"
    "vigil_tier_objects{" PODS "} 100\n"
    "vigil_tier_objects{" NODES "} 3\n"
    "vigil_tier_bytes{" PODS "} 4000\n"
    "vigil_tier_bytes{" NODES "} 500\n"
    "vigil_tier_lag_seconds{" PODS "} 1.5\n"
    "vigil_tier_lag_seconds{" NODES "} 60\n"
    "vigil_tier_age_seconds{" PODS "} 3600\n"
    "vigil_tier_age_seconds{" NODES "} 7200\n"
    "vigil_tier_upstream_events_total{" PODS "} 50\n"
    "vigil_tier_upstream_events_total{" NODES "} 10\n"
    "vigil_tier_fences_total{" PODS "} 20\n"
    "vigil_tier_fences_total{" NODES "} 0\n"
    "vigil_tier_watches 12\n"
    "vigil_tier_reviews_total{kind=\"token\",result=\"allowed\"} 30\n"
    "vigil_tier_reviews_total{kind=\"access\",result=\"failed\"} 0\n";

static struct {
    struct metrics older, now;
    struct tier_report report;
    struct findings findings;
} w;

static void read_page(struct metrics *to, const char *page, const char *more, int64_t time_ns)
{
    char text[8192];
    snprintf(text, sizeof(text), "%s%s", page, more);
    metrics_read(to, slice_from_text(text), time_ns);
}

static void fini(void)
{
    metrics_fini(&w.older);
    metrics_fini(&w.now);
    findings_fini(&w.findings);
    memset(&w, 0, sizeof(w));
}

static void figures_are_those_of_the_page(void **state)
{
    (void)state;
    read_page(&w.older, healthy, "vigil_tier_events_total 100\n", NS_PER_S);
    read_page(&w.now, healthy, "vigil_tier_events_total 150\n", 11 * NS_PER_S);
    const struct tier_report *r = &w.report;
    tier_report_read(&w.report, &w.older, &w.now);
    assert_true(r->is_tier);
    assert_int_equal(r->count, 2);
    assert_string_equal(r->collections[0].name, "pods/v1");
    assert_string_equal(r->collections[1].encoding, "protobuf");
    assert_true(r->collections[0].connected && r->collections[1].connected);
    assert_int_equal(r->collections[0].objects, 100);
    assert_int_equal(r->collections[1].lag_s, 60);
    assert_int_equal(r->collections[1].age_s, 7200);
    assert_int_equal(r->collections[0].fences, 20);
    assert_int_equal(r->serving, 2);
    assert_int_equal(r->objects, 103);
    assert_int_equal(r->watches, 12);
    assert_int_equal(r->events_rate, 5);
    fini();
    read_page(&w.now, "etcd_server_has_leader 1\n", "", 1);
    tier_report_read(&w.report, &w.older, &w.now);
    assert_false(w.report.is_tier);
    fini();
}

static void rates_of_a_collection_are_its_own(void **state)
{
    (void)state;
    read_page(&w.older, healthy, "", NS_PER_S);
    read_page(&w.now,
              "vigil_tier_collections{phase=\"serving\"} 2\n"
              "vigil_tier_collection_info{" LEASES ",phase=\"serving\",reason=\"\"} 1\n"
              "vigil_tier_collection_info{" NODES ",phase=\"serving\",reason=\"\"} 1\n"
              "vigil_tier_upstream_events_total{" LEASES "} 7\n"
              "vigil_tier_upstream_events_total{" NODES "} 30\n",
              "", 11 * NS_PER_S);
    tier_report_read(&w.report, &w.older, &w.now);
    assert_string_equal(w.report.collections[0].name, "leases.coordination.k8s.io/v1");
    assert_int_equal((int)(w.report.collections[1].events_rate * 10), 20);
    fini();
}

static void those_that_do_not_serve_come_first_and_texts_can_be_shown(void **state)
{
    (void)state;
    read_page(&w.now, healthy,
              "vigil_tier_collection_info{" LEASES ",phase=\"refused\",reason=\"\x1b[2Jbad\"} 1\n",
              1);
    tier_report_read(&w.report, &w.older, &w.now);
    assert_int_equal(w.report.count, 3);
    assert_string_equal(w.report.collections[0].phase, "refused");
    assert_string_equal(w.report.collections[0].reason, "?[2Jbad");
    assert_int_equal(w.report.collections[0].objects, -1);
    fini();
}

/* More than are shown do no harm. */
static void too_many_collections_are_omitted(void **state)
{
    enum { MANY = TIER_COLLECTIONS_SHOWN_MAX + 50 };
    static char page[MANY * 256];
    size_t len = (size_t)sprintf(page, "vigil_tier_collections{phase=\"serving\"} %d\n", MANY);
    (void)state;
    for (int i = 0; i < MANY; i++)
        len += (size_t)sprintf(page + len,
                               "vigil_tier_collection_info{resource=\"r%d\",phase=\"serving\","
                               "reason=\"\"} 1\nvigil_tier_objects{resource=\"r%d\"} %d\n",
                               i, i, i);
    metrics_read(&w.now, slice_from_text(page), 1);
    tier_report_read(&w.report, &w.older, &w.now);
    assert_int_equal(w.report.count, TIER_COLLECTIONS_SHOWN_MAX);
    assert_int_equal(w.report.collections[255].objects, 255);
    fini();
}

/* The worst finding about a thing; -1: there is none. */
static int worst(const char *what)
{
    int level = -1;
    for (size_t i = 0; i < w.findings.count; i++) {
        const struct finding *found = &w.findings.all[i];
        if (strcmp(found->what, what) != 0)
            continue;
        level = (int)found->level > level ? (int)found->level : level;
        assert_true(found->level == FINDING_GOOD || found->advice);
    }
    return level;
}

static void findings_say_what_is_wrong(void **state)
{
    static const struct {
        const char *more, *what;
        int level;
        const char *advice; /* part of it */
    } rows[] = {
        {"", "mirror", FINDING_GOOD, NULL},
        {"", "reviews", FINDING_GOOD, NULL},
        {"", "fences", FINDING_GOOD, NULL},
        {"", "throttling", -1, NULL},
        {"vigil_tier_collections{phase=\"refused\"} 1\nvigil_tier_collection_info{" LEASES
         ",phase=\"refused\",reason=\"it has become too large\"} 1\n",
         "mirror", FINDING_WARNING, "--upstream-resource-bytes"},
        {"vigil_tier_collections{phase=\"refused\"} 1\nvigil_tier_collection_info{" LEASES
         ",phase=\"refused\",reason=\"all resources together have become too large\"} 1\n",
         "mirror", FINDING_WARNING, "--upstream-mirror-bytes"},
        {"vigil_tier_collections{phase=\"refused\"} 1\nvigil_tier_collection_info{" LEASES
         ",phase=\"refused\",reason=\"leases is forbidden: User x cannot list\"} 1\n",
         "mirror", FINDING_WARNING, "Grant the tier's account"},
        {"vigil_tier_collection_info{" LEASES ",phase=\"starting\",reason=\"refused\"} 1\n",
         "mirror", FINDING_WARNING, "kube-apiserver runs"},
        {"vigil_tier_collection_info{" LEASES ",phase=\"serving\",reason=\"\"} 1\n"
         "vigil_tier_connected{" LEASES "} 1\nvigil_tier_lag_seconds{" LEASES "} 149\n",
         "mirror", FINDING_GOOD, NULL},
        {"vigil_tier_collection_info{" LEASES ",phase=\"serving\",reason=\"\"} 1\n"
         "vigil_tier_connected{" LEASES "} 1\nvigil_tier_lag_seconds{" LEASES "} 151\n",
         "mirror", FINDING_WARNING, "Watches are late"},
        {"vigil_tier_collection_info{" LEASES ",phase=\"serving\",reason=\"\"} 1\n"
         "vigil_tier_connected{" LEASES "} 0\nvigil_tier_lag_seconds{" LEASES "} 601\n",
         "mirror", FINDING_BAD, "Watches are late"},
        {"vigil_tier_reviews_refused_total 1\n", "reviews", FINDING_BAD, "system:auth-delegator"},
        {"vigil_tier_reviews_total{kind=\"token\",result=\"failed\"} 1\n", "reviews",
         FINDING_WARNING, "log"},
        {"vigil_tier_reviews_waiting 101\n", "reviews", FINDING_WARNING, "--upstream-rights-ttl"},
        {"", "impersonation", -1, NULL},
        {"vigil_tier_impersonations_refused_total 1\n", "impersonation", FINDING_BAD,
         "examples/tier/tier.yaml"},
        {"vigil_tier_reviews_throttled_total 1\n", "throttling", FINDING_WARNING, "FlowSchema"},
        {"vigil_tier_upstream_throttled_total{" PODS "} 1\n", "throttling", FINDING_WARNING,
         "FlowSchema"},
        {"vigil_tier_upstream_calls_total 1000\nvigil_tier_upstream_calls_delayed_total 101\n",
         "throttling", FINDING_WARNING, "Raise --upstream-qps"},
        {"vigil_tier_upstream_calls_total 1000\nvigil_tier_upstream_calls_delayed_total 100\n",
         "throttling", -1, NULL},
        {"vigil_tier_fences_failed_total{" PODS "} 3\n", "fences", FINDING_WARNING,
         "--upstream-reads=forward"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool advised = !rows[i].advice;
        read_page(&w.now, healthy, rows[i].more, 1);
        tier_report_read(&w.report, &w.older, &w.now);
        w.findings.where = "a";
        check_tier(&w.findings, &w.report);
        if (worst(rows[i].what) != rows[i].level)
            fail_msg("row %zu: level %d", i, worst(rows[i].what));
        for (size_t k = 0; k < w.findings.count; k++)
            advised |= w.findings.all[k].advice && rows[i].advice &&
                       strstr(w.findings.all[k].advice, rows[i].advice) != NULL;
        if (!advised)
            fail_msg("row %zu: no advice", i);
        fini();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_the_page),
        cmocka_unit_test(rates_of_a_collection_are_its_own),
        cmocka_unit_test(those_that_do_not_serve_come_first_and_texts_can_be_shown),
        cmocka_unit_test(too_many_collections_are_omitted),
        cmocka_unit_test(findings_say_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
