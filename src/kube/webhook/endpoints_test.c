/* Calls of webhooks that are services: which of their endpoints is called, and how that is read. */
#include "kube/webhook/caller_fixture_test.h"
#include "kube/webhook/endpoints.h"

#define SERVICE "/registry/services/specs/space/hook"
#define SLICE "/registry/endpointslices/space/"
#define ENDPOINTS "/registry/services/endpoints/space/hook"

static const char *const plain_service =
    "{'metadata':{'name':'hook'},'spec':{'type':'ClusterIP','ports':[{'name':'other','port':80},"
    "{'name':'https','port':443}]}}";

static const struct kube_webhook_target *service(struct hook_world *w)
{
    return hook_target(w,
                       "{'service':{'namespace':'space','name':'hook','path':'/hook/x'},"
                       "'caBundle':'%s'}",
                       w->ca);
}

/* A slice of the service with one endpoint. */
static void put_slice(struct hook_world *w, const char *name, const char *owner,
                      const char *address, const char *conditions, unsigned port)
{
    char key[128], value[1024];
    snprintf(key, sizeof(key), SLICE "%s", name);
    snprintf(value, sizeof(value),
             "{'metadata':{'name':'%s','labels':{'kubernetes.io/service-name':'%s'}},"
             "'ports':[{'name':'wrong','port':9},{'name':'https','port':%u}],"
             "'endpoints':[{'addresses':['%s'],'conditions':%s}]}",
             name, owner, port, address, conditions);
    hook_put(w, key, value);
}

static void expect(struct hook_world *w, const char *reason)
{
    char expected[512];
    struct hook_call c = hook_ask(w, service(w));
    snprintf(expected, sizeof(expected),
             "Post \"https://hook.space.svc:443/hook/x?timeout=2s\": %s", reason);
    assert_string_equal(c.error, expected);
}

static void ready_endpoint_is_called(void **state)
{
    (void)state;
    struct hook_world w;
    hook_world_init(&w);
    hook_put(&w, SERVICE, plain_service);
    put_slice(&w, "hook-a", "hook", "127.0.0.1", "{'ready':true}", hook_port(&w));
    struct hook_call c = hook_ask(&w, service(&w));
    assert_string_equal(c.error, "");
    assert_non_null(strstr(w.site.seen, "POST /hook/x?timeout=2s 1 host=hook.space.svc:443 "));
    /* A connection that exists is used although the service has gone. */
    hook_put(&w, SERVICE, "");
    c = hook_ask(&w, service(&w));
    assert_string_equal(c.error, "");
    assert_int_equal(faults.connects, 1);
    hook_world_fini(&w);
}

static void error_names_what_is_missing(void **state)
{
    (void)state;
    struct hook_world w;
    hook_world_init(&w);
    expect(&w, "service \"hook\" not found");
    hook_put(&w, SERVICE, "{'metadata':{},'spec':{'ports':[{'port':80}]}}");
    expect(&w, "no service port 443 found for service \"hook\"");
    hook_put(&w, SERVICE, "{'metadata':{},'spec':{'type':'ExternalName','ports':[]}}");
    expect(&w, "service \"hook\" has no external name");
    hook_put(&w, SERVICE, plain_service);
    expect(&w, "no endpoints available for service \"hook\"");
    put_slice(&w, "hook-a", "hook", "127.0.0.1", "{'ready':false}", hook_port(&w));
    put_slice(&w, "hook-b", "other", "127.0.0.1", "{'ready':true}", hook_port(&w));
    put_slice(&w, "hook-c", "hook", "name.test", "{'ready':true}", hook_port(&w));
    hook_put(&w, SLICE "hook-d", "no json");
    expect(&w, "no endpoints available for service \"hook\"");
    fake_fail_next(w.engine, ST_INTERNAL, SLICE_EMPTY);
    expect(&w, "vigil: internal error");
    hook_world_fini(&w);
}

/* They need not be named after the service, and an old controller writes Endpoints. */
static void endpoints_are_found_everywhere(void **state)
{
    (void)state;
    char text[512];
    struct hook_world w;
    for (int i = 0; i < 3; i++) {
        hook_world_init(&w);
        hook_put(&w, SERVICE, plain_service);
        for (int k = 0; k < 200; k++) { /* more than one operation reads */
            snprintf(text, sizeof(text), "a%03d", k);
            put_slice(&w, text, "another", "127.0.0.1", "{}", 1);
        }
        snprintf(text, sizeof(text),
                 "{'subsets':[{'addresses':[{'ip':'127.0.0.1'}],'ports':[{'name':'other','port':1},"
                 "{'name':'https','port':%u}]}]}",
                 hook_port(&w));
        if (i == 0)
            put_slice(&w, "hook-x", "hook", "127.0.0.1", "{}", hook_port(&w));
        else if (i == 1)
            put_slice(&w, "zebra", "hook", "127.0.0.1", "{}", hook_port(&w));
        else
            hook_put(&w, ENDPOINTS, text);
        struct hook_call c = hook_ask(&w, service(&w));
        assert_string_equal(c.error, "");
        hook_world_fini(&w);
    }
}

static void search_ends_at_its_limit(void **state)
{
    (void)state;
    char name[32];
    struct hook_world w;
    hook_world_init(&w);
    hook_put(&w, SERVICE, plain_service);
    /* The service counts, too. */
    for (int k = 0; k < KUBE_WEBHOOK_SLICES_MAX - 1; k++) {
        snprintf(name, sizeof(name), "a%04d", k);
        put_slice(&w, name, "another", "127.0.0.1", "{}", 1);
    }
    put_slice(&w, "zebra", "hook", "127.0.0.1", "{}", hook_port(&w));
    expect(&w, "no endpoints available for service \"hook\"");
    hook_put(&w, SLICE "a0000", "");
    struct hook_call c = hook_ask(&w, service(&w));
    assert_string_equal(c.error, "");
    hook_world_fini(&w);
}

static void refused_endpoint_is_followed_by_another(void **state)
{
    (void)state;
    struct hook_world w;
    hook_world_init(&w);
    hook_put(&w, SERVICE, plain_service);
    put_slice(&w, "hook-a", "hook", "127.0.0.1", "{}", 1);
    put_slice(&w, "hook-b", "hook", "127.0.0.1", "{}", 2);
    put_slice(&w, "hook-c", "hook", "127.0.0.1", "{}", hook_port(&w));
    for (int i = 0; i < 3; i++) {
        struct hook_call c = hook_ask(&w, service(&w));
        assert_string_equal(c.error, "");
    }
    put_slice(&w, "hook-c", "hook", "127.0.0.1", "{}", 3);
    hook_run(&w, 100 * NS_PER_S); /* the kept connections are closed */
    /* Each connection begins with another one. */
    unsigned first = 0;
    for (int i = 0; i < 3; i++) {
        struct hook_call c = hook_ask(&w, service(&w));
        const char *at = strstr(c.error, "dial tcp 127.0.0.1:");
        assert_non_null(at);
        first |= 1u << (at[strlen("dial tcp 127.0.0.1:")] - '0');
        assert_non_null(strstr(at, ": connect: connection refused"));
    }
    assert_int_equal(first, 2 + 4 + 8);
    hook_world_fini(&w);
}

static void preferred_family_comes_first(void **state)
{
    (void)state;
    static const char *const families[] = {"IPv4", "IPv6"};
    static const char *const reasons[] = {"dial tcp 127.0.0.1:1: connect: connection refused",
                                          "dial tcp [::1]:1: connect: connection refused"};
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        char text[256];
        struct hook_world w;
        hook_world_init(&w);
        snprintf(text, sizeof(text),
                 "{'metadata':{},'spec':{'ipFamilies':['%s'],'ports':[{'name':'https','port':443}]"
                 "}}",
                 families[i]);
        hook_put(&w, SERVICE, text);
        put_slice(&w, "hook-a", "hook", "127.0.0.1", "{}", 1);
        put_slice(&w, "hook-b", "hook", "::1", "{}", 1);
        for (int k = 0; k < 3; k++)
            expect(&w, reasons[i]);
        hook_world_fini(&w);
    }
}

static void external_name_is_looked_up(void **state)
{
    (void)state;
    struct hook_world w;
    hook_world_init(&w);
    hook_put(&w, SERVICE,
             "{'metadata':{},'spec':{'type':'ExternalName','externalName':'server.test'}}");
    struct hook_call c =
        hook_ask(&w, hook_target(&w,
                                 "{'service':{'namespace':'space','name':'hook','path':'/hook/x',"
                                 "'port':%u},'caBundle':'%s'}",
                                 hook_port(&w), w.ca));
    assert_string_equal(c.error, "");
    hook_put(&w, SERVICE,
             "{'metadata':{},'spec':{'type':'ExternalName','externalName':'missing.test'}}");
    expect(&w, "dial tcp: lookup missing.test: no such host");
    hook_world_fini(&w);
}

/* Addresses that were found are used for a second, and not longer. */
static void addresses_are_kept_for_a_second(void **state)
{
    (void)state;
    struct hook_call calls[3] = {{.ends = 0}};
    struct hook_world w;
    hook_world_init(&w);
    w.site.holds = true; /* so that each call makes a connection */
    hook_put(&w, SERVICE, plain_service);
    put_slice(&w, "hook-a", "hook", "127.0.0.1", "{}", hook_port(&w));
    hook_start(&w, &calls[0], service(&w), 10 * NS_PER_S);
    hook_run(&w, 100 * NS_PER_MS);
    hook_put(&w, SERVICE, "");
    hook_start(&w, &calls[1], service(&w), 10 * NS_PER_S);
    hook_run(&w, NS_PER_S);
    assert_int_equal(w.site.requests, 2);
    hook_start(&w, &calls[2], service(&w), 10 * NS_PER_S);
    hook_run(&w, NS_PER_S);
    assert_int_equal(calls[0].ends + calls[1].ends, 0);
    assert_non_null(strstr(calls[2].error, "service \"hook\" not found"));
    hook_world_fini(&w);
}

/* The engine answers late: calls that are cancelled, time out or are stopped leave nothing. */
static void late_store_is_not_waited_for(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct hook_call c = {.ends = 0};
        struct hook_world w;
        hook_world_init(&w);
        hook_put(&w, SERVICE, plain_service);
        put_slice(&w, "hook-a", "hook", "127.0.0.1", "{}", hook_port(&w));
        hook_start(&w, &c, service(&w), NS_PER_S);
        /* The engine does nothing. */
        sim_run_until(w.server.sim, pool_world_now(&w.server) + 500 * NS_PER_MS);
        if (way == 0)
            kube_webhook_call_cancel(&c.call);
        if (way == 1)
            kube_webhook_caller_stop(w.caller);
        sim_run_until(w.server.sim, pool_world_now(&w.server) + NS_PER_S);
        assert_int_equal(c.ends, way != 0);
        if (way == 2)
            assert_non_null(strstr(c.error, "context deadline exceeded"));
        hook_world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_endpoint_is_called),
        cmocka_unit_test(error_names_what_is_missing),
        cmocka_unit_test(endpoints_are_found_everywhere),
        cmocka_unit_test(search_ends_at_its_limit),
        cmocka_unit_test(refused_endpoint_is_followed_by_another),
        cmocka_unit_test(preferred_family_comes_first),
        cmocka_unit_test(external_name_is_looked_up),
        cmocka_unit_test(addresses_are_kept_for_a_second),
        cmocka_unit_test(late_store_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
