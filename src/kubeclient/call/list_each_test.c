/* Whole collections, page by page. */
#include "kubeclient/call/call_world_test.h"

/* A collection that a server serves in pages. */
struct pages {
    unsigned objects;
    unsigned expires_at; /* the page that begins here is refused with 410; 0: none */
    bool offers;         /* then with a token for the rest as of now */
    bool repeats;        /* the same token all the time */
    bool unnamed;        /* the second object has no name */
    const char *body;    /* unless NULL: the whole answer */
};

struct received {
    unsigned count;
    char last[32];
    unsigned stop_after; /* cancels the call in the callback; 0: never */
    unsigned free_after;
};

static void write_objects(struct buf *to, const struct pages *p, unsigned from, unsigned end)
{
    for (unsigned i = from; i < end; i++)
        assert_int_equal(buf_append_format(to, "%s{\"metadata\":{\"%s\":\"pod-%u\"}}",
                                           i > from ? "," : "", p->unnamed && i == 1 ? "x" : "name",
                                           i),
                         ST_OK);
}

static unsigned number_after(const char *target, const char *name)
{
    const char *found = strstr(target, name);
    return found ? (unsigned)strtoul(found + strlen(name), NULL, 10) : 0;
}

static void answer_expired(struct sim_reply *reply, const struct pages *p, unsigned from)
{
    char json[512], token[64] = "";
    if (p->offers)
        snprintf(token, sizeof(token), "\"continue\":\"newer-%u\"", from);
    snprintf(json, sizeof(json),
             "{\"kind\":\"Status\",\"metadata\":{%s},\"status\":\"Failure\",\"reason\":"
             "\"Expired\",\"message\":\"too old\",\"code\":410}",
             token);
    sim_reply_json(reply, 410, json);
}

static void answer_pages(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const struct pages *p = ctx;
    AUTO(buf_fini) struct buf json = {0};
    unsigned limit = number_after(request->target, "limit=");
    bool newer = strstr(request->target, "continue=newer-") != NULL;
    unsigned from = number_after(request->target, newer ? "continue=newer-" : "continue=");
    unsigned end = from + limit < p->objects ? from + limit : p->objects;
    if (p->body) {
        sim_reply_json(reply, 200, p->body);
        return;
    }
    if (from && from == p->expires_at && (!newer || p->repeats)) {
        answer_expired(reply, p, from);
        return;
    }
    assert_int_equal(buf_append_text(&json, "{\"kind\":\"PodList\",\"metadata\":{"), ST_OK);
    if (p->repeats && !p->expires_at)
        assert_int_equal(buf_append_text(&json, "\"continue\":\"1\","), ST_OK);
    else if (end < p->objects)
        assert_int_equal(buf_append_format(&json, "\"continue\":\"%u\",", end), ST_OK);
    assert_int_equal(buf_append_text(&json, "\"resourceVersion\":\"9\"},\"items\":["), ST_OK);
    write_objects(&json, p, from, end);
    assert_int_equal(buf_append_text(&json, "]}"), ST_OK);
    sim_reply_begin(reply, 200, "application/json");
    sim_reply_write(reply, buf_slice(&json));
    sim_reply_end(reply);
}

static void on_item(vigil_kube_call *call, const vigil_kube_object *object, void *user)
{
    struct received *got = user;
    vigil_bytes name = vigil_kube_object_name(object);
    char expected[32];
    snprintf(expected, sizeof(expected), "pod-%u", got->count);
    snprintf(got->last, sizeof(got->last), "%.*s", VIGIL_ARGS(name));
    assert_string_equal(got->last, expected);
    got->count++;
    assert_int_equal(vigil_kube_call_error(call)->code, VIGIL_OK);
    if (got->count == got->stop_after)
        vigil_kube_call_cancel(call);
    if (got->count == got->free_after)
        vigil_kube_call_free(call);
}

static vigil_kube_call *list(struct kube_world *w, int64_t limit, struct received *got)
{
    vigil_kube_list_options options = {.size = sizeof(options),
                                       .limit = limit,
                                       .label_selector = "a=b",
                                       .version = "5",
                                       .version_match = "NotOlderThan"};
    return vigil_kube_list_each(w->kube, &call_pods, &options, on_item, got);
}

static void all_pages_are_read(void **state)
{
    (void)state;
    for (unsigned objects = 0; objects < 12; objects++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        struct received got = {.count = 0};
        struct pages pages = {.objects = objects};
        call_world_start(&w, objects % 2 ? SIM_HTTP1 : SIM_HTTP2, answer_pages, &pages);
        call_run(&w, &r, list(&w, 3, &got));
        assert_int_equal(r.code, VIGIL_OK);
        assert_int_equal(got.count, objects);
        assert_string_equal(vigil_kube_call_version(r.call), "9");
        assert_string_equal(vigil_kube_call_continue(r.call), "");
        assert_int_equal(vigil_kube_call_body(r.call).size, 0);
        assert_int_equal(w.server.request_count, objects ? (objects + 2) / 3 : 1);
        assert_non_null(strstr(w.server.requests[0].target, "resourceVersion=5"));
        for (size_t i = 0; i < w.server.request_count; i++) {
            assert_non_null(strstr(w.server.requests[i].target, "labelSelector=a%3Db&limit=3"));
            assert_true(i == 0 || !strstr(w.server.requests[i].target, "resourceVersion"));
        }
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void page_has_500_objects_by_default(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    struct received got = {.count = 0};
    struct pages pages = {.objects = 1200};
    call_world_start(&w, SIM_HTTP2, answer_pages, &pages);
    call_run(&w, &r, vigil_kube_list_each(w.kube, &call_pods, NULL, on_item, &got));
    assert_int_equal(r.code, VIGIL_OK);
    assert_int_equal(got.count, 1200);
    assert_int_equal(w.server.request_count, 3);
    assert_non_null(strstr(w.server.requests[0].target, "?limit=500"));
    call_end(&r);
    kube_world_fini(&w);
}

static void rest_is_read_as_of_now_after_a_compaction(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    struct received got = {.count = 0};
    struct pages pages = {.objects = 8, .expires_at = 4, .offers = true};
    call_world_start(&w, SIM_HTTP2, answer_pages, &pages);
    call_run(&w, &r, list(&w, 2, &got));
    assert_int_equal(r.code, VIGIL_OK);
    assert_int_equal(got.count, 8);
    assert_int_equal(w.server.request_count, 5);
    assert_non_null(strstr(w.server.requests[3].target, "continue=newer-4"));
    call_end(&r);
    kube_world_fini(&w);
}

static void compaction_without_an_offer_is_an_error(void **state)
{
    (void)state;
    static const struct pages rows[] = {
        {.objects = 8, .expires_at = 4},
        {.objects = 8, .expires_at = 4, .offers = true, .repeats = true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        struct received got = {.count = 0};
        call_world_start(&w, SIM_HTTP2, answer_pages, (void *)&rows[i]);
        call_run(&w, &r, list(&w, 2, &got));
        assert_int_equal(r.code, VIGIL_ERROR_SERVER);
        assert_int_equal(vigil_kube_call_status(r.call)->code, 410);
        assert_int_equal(got.count, 4);
        assert_int_equal(w.server.request_count, rows[i].offers ? 4 : 3);
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void server_that_makes_no_sense_is_an_error(void **state)
{
    (void)state;
    static const struct pages rows[] = {
        {.objects = 8, .repeats = true},
        {.objects = 8, .unnamed = true},
        {.body = ""},
        {.body = "{}"},
        {.body = "[]"},
        {.body = CALL_POD},
        {.body = "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"pod-0\"}}"},
        {.body = "{\"kind\":\"PodList\",\"items\":[7]}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        struct received got = {.count = 0};
        call_world_start(&w, SIM_HTTP1, answer_pages, (void *)&rows[i]);
        call_run(&w, &r, list(&w, 1, &got));
        assert_int_equal(r.code, VIGIL_ERROR_PROTOCOL);
        assert_true(got.count <= 2);
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void call_can_be_stopped_in_the_callback(void **state)
{
    (void)state;
    struct pages pages = {.objects = 20};
    struct kube_world w;
    struct call_result r = {.code = 0};
    struct received got = {.stop_after = 5}, freed = {.free_after = 5};
    call_world_start(&w, SIM_HTTP2, answer_pages, &pages);
    call_run(&w, &r, list(&w, 3, &got));
    assert_int_equal(r.code, VIGIL_ERROR_CANCELED);
    assert_int_equal(got.count, 5);
    call_end(&r);
    call_start(&w, &r, list(&w, 3, &freed));
    kube_world_run(&w, NS_PER_S);
    assert_int_equal(r.completions, 0);
    assert_int_equal(freed.count, 5);
    kube_world_fini(&w);
}

static void answer_slowly(struct sim_reply *reply, void *ctx)
{
    answer_pages(reply, &reply->server->requests[reply->number], ctx);
}

static void answer_after_a_while(struct sim_reply *reply, const struct sim_request *request,
                                 void *ctx)
{
    (void)request;
    sim_reply_after(reply, 2 * NS_PER_S, answer_slowly, ctx);
}

static void timeout_counts_for_each_page(void **state)
{
    (void)state;
    struct pages pages = {.objects = 10};
    for (int i = 0; i < 2; i++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        struct received got = {.count = 0};
        call_world_start(&w, SIM_HTTP2, answer_after_a_while, &pages);
        vigil_kube_call *call = list(&w, 2, &got);
        vigil_kube_call_set_timeout(call, i ? 3000 : 1000);
        call_run(&w, &r, call);
        assert_int_equal(r.code, i ? VIGIL_OK : VIGIL_ERROR_TIMEOUT);
        assert_int_equal(got.count, i ? 10 : 0);
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    struct pages pages = {.objects = 5, .expires_at = 2, .offers = true};
    for (size_t at = 1;; at++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        struct received got = {.count = 0};
        call_world_start(&w, SIM_HTTP2, answer_pages, &pages);
        faulty_memory_at = at;
        faulty_memory_begin();
        vigil_kube_call *call = list(&w, 2, &got);
        faulty_memory_end();
        call_run(&w, &r, call);
        bool failed = faulty_memory_at == 0;
        faulty_memory_at = 0;
        assert_true(r.code == VIGIL_OK || r.code == VIGIL_ERROR_MEMORY ||
                    r.code == VIGIL_ERROR_UNAVAILABLE || r.code == VIGIL_ERROR_SERVER);
        assert_true(r.code != VIGIL_OK || got.count == 5);
        assert_true(failed || r.code == VIGIL_OK);
        call_end(&r);
        kube_world_fini(&w);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pages_are_read),
        cmocka_unit_test(page_has_500_objects_by_default),
        cmocka_unit_test(rest_is_read_as_of_now_after_a_compaction),
        cmocka_unit_test(compaction_without_an_offer_is_an_error),
        cmocka_unit_test(server_that_makes_no_sense_is_an_error),
        cmocka_unit_test(call_can_be_stopped_in_the_callback),
        cmocka_unit_test(timeout_counts_for_each_page),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
