/* Requests, answers and failures that are passed on. */
#include "tier/forward/forward_fixture_test.h"

/* -- Requests and answers -- */

static void request_arrives_with_its_fields_and_body(void **state)
{
    static const struct http_field fields[] = {
        {{(const uint8_t *)"authorization", 13}, {(const uint8_t *)"Bearer t", 8}},
        {{(const uint8_t *)"x-remote-user", 13}, {(const uint8_t *)"admin", 5}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.method = "POST",
                                      .target = "/f/head?a=%20b",
                                      .body = "the body",
                                      .fields = fields,
                                      .field_count = 2};
        begin(&cases[i]);
        exchange(&r);
        assert_true(pool_test_succeeded(&r));
        for (char *c = r.text; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        const char *expected[] = {
            "post /up/f/head?a=%20b\nauthorization: bearer t\n"
            "x-forwarded-for: 127.0.0.1\ncontent-length: 8\nthe body",
        };
        assert_string_equal(r.text, expected[0]);
        end();
    }
}

static void answer_comes_back_with_its_fields(void **state)
{
    static const unsigned codes[] = {200, 201, 404, 409, 500, 503};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin(&cases[i]);
        for (size_t k = 0; k < COUNT_OF(codes); k++) {
            char target[64];
            struct pool_test_request r = {.target = target};
            snprintf(target, sizeof(target), "/f/fields?%u", codes[k]);
            exchange(&r);
            assert_int_equal(r.status, codes[k]);
            assert_string_equal(r.text, "the body");
            for (char *c = r.head; *c; c++)
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
            assert_non_null(strstr(r.head, "content-length: 8\n"));
            assert_non_null(strstr(r.head, "content-type: text/x\n"));
            assert_non_null(strstr(r.head, "etag: \"a\"\n"));
            assert_non_null(strstr(r.head, "warning: one\nwarning: two\n"));
            assert_non_null(strstr(r.head, "audit-id: 7\n"));
            assert_null(strstr(r.head, "connection"));
            assert_null(strstr(r.head, "keep-alive"));
            assert_null(strstr(r.head, "x-hop"));
        }
        end();
    }
}

static void answers_without_a_body_have_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static const struct {
            const char *method, *target;
            unsigned status;
            bool length;
        } rows[] = {{"HEAD", "/f/fields?200", 200, true},
                    {"HEAD", "/f/fields?404", 404, true},
                    {"GET", "/f/fields?204", 204, false},
                    {"GET", "/f/fields?304", 304, false}};
        begin(&cases[i]);
        for (size_t k = 0; k < COUNT_OF(rows); k++) {
            struct pool_test_request r = {.method = rows[k].method, .target = rows[k].target};
            exchange(&r);
            assert_int_equal(r.ends, 1);
            assert_int_equal(r.end, ST_OK);
            assert_int_equal(r.status, rows[k].status);
            assert_int_equal(r.received, 0);
            for (char *c = r.head; *c; c++)
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
            assert_int_equal(strstr(r.head, "content-length: 8\n") != NULL, rows[k].length);
        }
        assert_int_equal(http_pool_stats(t.w.pool).connects, 1); /* it was kept */
        end();
    }
}

static void answers_of_any_length_arrive_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/pull"};
        begin(&cases[i]);
        t.site.big_bytes = 10 << 20;
        exchange(&r);
        assert_true(pool_test_succeeded(&r));
        assert_int_equal(r.received, 10 << 20);
        end();
    }
}

static void pieces_are_passed_on_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/ticks?watch=1", .waits = true};
        begin(&cases[i]);
        start(&r);
        for (size_t n = 1; n < 200; n++) {
            run(n == 1 ? 100 * NS_PER_MS : NS_PER_S);
            assert_in_range(r.received, 5 * n - 5, 5 * n + 5);
        }
        assert_string_equal(r.type, "application/json");
        assert_int_equal(r.ends, 0);
        pool_request_cancel(&r.request); /* and so is the client's end */
        run(10 * NS_PER_MS);
        assert_int_equal(t.ticks_ended, 1);
        assert_int_equal(t.forwards.under_way, 0);
        end();
    }
}

/* -- A client that expects "100 Continue" -- */

static struct raw_client {
    struct socket socket;
    struct io_watch watch;
    struct buf received;
} raw_client;

static void raw_ready(struct io_watch *watch, unsigned ready)
{
    uint8_t bytes[1000];
    size_t n;
    (void)ready;
    enum status status = socket_read(&raw_client.socket, bytes, sizeof(bytes), &n);
    if (status == ST_OK)
        assert_int_equal(buf_append(&raw_client.received, slice_of(bytes, n)), ST_OK);
    else if (status != ST_AGAIN)
        loop_unwatch(t.w.loop, watch);
}

static bool raw_received(const char *text)
{
    struct slice all = buf_slice(&raw_client.received);
    return all.len && memmem(all.ptr, all.len, text, strlen(text));
}

static void raw_send(const char *text)
{
    size_t n;
    assert_int_equal(socket_write(&raw_client.socket, slice_from_text(text), &n), ST_OK);
    assert_int_equal(n, strlen(text));
    run(NS_PER_S);
}

static void client_may_continue_when_the_server_is_reached(void **state)
{
    struct error error;
    (void)state;
    for (int reached = 0; reached < 2; reached++) {
        begin(&cases[0]);
        if (!reached)
            stop_other();
        assert_int_equal(
            network_connect(sim_network(t.w.sim), &t.w.bound.address, &raw_client.socket, &error),
            ST_OK);
        raw_client.watch = (struct io_watch){.handle = raw_client.socket.handle, .fn = raw_ready};
        assert_int_equal(loop_watch(t.w.loop, &raw_client.watch, IO_READ), ST_OK);
        run(NS_PER_S);
        raw_send("POST /f/take HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
                 "Expect: 100-continue\r\n\r\n");
        assert_int_equal(raw_received("HTTP/1.1 100 Continue\r\n\r\n"), reached);
        assert_int_equal(raw_received("HTTP/1.1 503 Service Unavailable\r\n"), !reached);
        assert_int_equal(raw_received("\r\nRetry-After: 1\r\n"), !reached);
        if (reached)
            raw_send("body");
        assert_int_equal(t.stream.got_bytes, reached ? 4 : 0);
        assert_int_equal(t.stream.got_ends, reached);
        loop_unwatch(t.w.loop, &raw_client.watch);
        socket_close(&raw_client.socket);
        buf_fini(&raw_client.received);
        end();
    }
}

/* -- Back-pressure -- */

static void bodies_are_passed_on_while_they_arrive(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.method = "POST",
                                      .target = "/f/take",
                                      .pulled = &pulled,
                                      .pulled_bytes = POOL_BYTES_UNKNOWN};
        begin(&cases[i]);
        t.stream.begins = t.stream.echoes = true;
        exchange(&r);
        assert_int_equal(r.heads, 1); /* in both directions at the same time */
        give(&r, "hello ");
        assert_string_equal(r.text, "hello ");
        give(&r, "world");
        give_end(&r);
        assert_true(pool_test_succeeded(&r));
        assert_string_equal(r.text, "hello world");
        pulled_fini(&pulled);
        end();
    }
}

static void slow_server_makes_the_client_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pulled pulled = PULLED;
        struct pool_test_request r = {.method = "PUT",
                                      .target = "/f/take",
                                      .pulled = &pulled,
                                      .pulled_bytes = 100 * (int64_t)HELD_MAX};
        struct pool_test_request other = {.target = "/f/fields?200"};
        begin(&cases[i]);
        pulled.endless = true;
        t.stream.withholds = true;
        exchange(&r);
        size_t given = pulled.given;
        assert_in_range(given, 100, 3 * HELD_MAX);
        run(20 * NS_PER_S);
        assert_int_equal(pulled.given, given);
        exchange(&other); /* does not wait for it */
        assert_true(pool_test_succeeded(&other));
        http_withhold(t.stream.latest, false);
        t.stream.echoes = false;
        exchange(&other);
        for (int n = 0; n < 100 && t.stream.got_bytes < 100 * (size_t)HELD_MAX; n++)
            run(NS_PER_S);
        assert_int_equal(t.stream.got_bytes, 100 * (size_t)HELD_MAX);
        assert_int_equal(t.stream.got_ends, 1);
        pool_request_cancel(&r.request);
        end();
    }
}

static void slow_client_makes_the_server_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/pull", .waits = true};
        begin(&cases[i]);
        t.site.big_bytes = 64 << 20;
        start(&r);
        pool_request_withhold(&r.request, true);
        run(10 * NS_PER_S);
        assert_in_range(http_pool_stats(t.pool).bytes_received, 1000, 3 * HELD_MAX);
        assert_in_range(r.received, 0, HELD_MAX);
        pool_request_withhold(&r.request, false);
        run(10 * NS_PER_S);
        assert_true(pool_test_succeeded(&r));
        assert_int_equal(r.received, 64 << 20);
        end();
    }
}

/* It must not hold its place for ever. But a watch may be slow. */
static void client_that_reads_nothing_is_given_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request list = {.target = "/f/pull", .waits = true},
                                 watch = {.target = "/f/pull?watch=true", .waits = true};
        begin(&cases[i]);
        t.site.big_bytes = 64 << 20;
        start(&list);
        start(&watch);
        pool_request_withhold(&list.request, true);
        pool_request_withhold(&watch.request, true);
        run(50 * NS_PER_S);
        assert_int_equal(t.forwards.under_way, 2);
        run(100 * NS_PER_S);
        assert_int_equal(t.forwards.under_way, 1);
        run(1000 * NS_PER_S);
        assert_int_equal(t.forwards.under_way, 1);
        pool_request_withhold(&list.request, false);
        run(NS_PER_S);
        assert_int_equal(list.ends, 1);
        assert_int_equal(list.end, ST_CLOSED); /* it does not look complete */
        pool_request_withhold(&watch.request, false);
        run(10 * NS_PER_S);
        assert_int_equal(watch.received, 64 << 20);
        assert_true(pool_test_succeeded(&watch));
        end();
    }
}

/* -- Ends -- */

static void client_that_leaves_cancels_its_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pulled pulled = PULLED;
        struct pool_test_request waiting = {.target = "/f/later"};
        struct pool_test_request sending = {.method = "POST",
                                            .target = "/f/take",
                                            .pulled = &pulled,
                                            .pulled_bytes = POOL_BYTES_UNKNOWN};
        begin(&cases[i]);
        exchange(&waiting);
        assert_non_null(t.site.later);
        pool_request_cancel(&waiting.request);
        exchange(&sending);
        give(&sending, "a part");
        assert_int_equal(t.stream.got_bytes, 6);
        pool_request_cancel(&sending.request);
        run(NS_PER_S);
        assert_int_equal(t.forwards.under_way, 0);
        assert_int_equal(http_pool_stats(t.pool).connections, cases[i].other_http2);
        assert_int_equal(t.site.ends, cases[i].other_http2); /* or it waits for its handler */
        assert_int_equal(t.stream.ends, 1);
        assert_int_equal(t.stream.got_ends, 0);
        pulled_fini(&pulled);
        end();
    }
}

static void assert_status(const struct pool_test_request *r, unsigned code, const char *text)
{
    assert_int_equal(r->ends, 1);
    assert_int_equal(r->end, ST_OK);
    assert_int_equal(r->status, code);
    assert_string_equal(r->type, "application/json");
    assert_non_null(strstr(r->text, "{\"kind\":\"Status\",\"apiVersion\":\"v1\","));
    if (!strstr(r->text, text))
        fail_msg("%s", r->text);
}

static void failures_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/broken"},
                                 post = {.method = "POST", .target = "/f/fields?200", .body = "x"};
        begin(&cases[i]);
        if (!cases[i].other_http2) { /* otherwise it resets the stream behind the head */
            exchange(&r);
            assert_status(&r, 502, "may have executed the request");
        }
        r.target = "/f/long";
        exchange(&r);
        assert_status(&r, 502, "too long");
        r.target = "/f/long?less";
        exchange(&r);
        assert_true(pool_test_succeeded(&r));
        if (!cases[i].other_http2) {
            r.target = "/f/later";
            exchange(&r);
            run(40 * NS_PER_S);
            assert_status(&r, 504, "timeout");
        }
        stop_other();
        run(NS_PER_S);
        r.target = "/f/fields?200";
        exchange(&r);
        assert_status(&r, 503, "connection refused");
        assert_non_null(strstr(r.head, "1\n")); /* Retry-After */
        exchange(&post);
        assert_status(&post, 503, "connection refused");
        end();
    }
}

static void answer_that_breaks_off_does_not_look_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/pull"}, ticks = {.target = "/f/ticks"};
        begin(&cases[i]);
        t.site.big_bytes = 1 << 20;
        t.site.abort_pulls = true;
        exchange(&r);
        assert_int_equal(r.heads, 1);
        assert_int_equal(r.ends, 1);
        assert_int_equal(r.end, ST_CLOSED);
        t.breaks = true;
        exchange(&ticks);
        assert_int_equal(ticks.ends, 1);
        assert_true(ticks.end == ST_CLOSED || ticks.status == 502);
        end();
    }
}

static void requests_beyond_the_limit_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r[3], post = {.method = "POST", .target = "/f/take", .body = "x"};
        begin(&cases[i]);
        t.forwards.max = 2;
        for (size_t n = 0; n < COUNT_OF(r); n++) {
            r[n] = (struct pool_test_request){.target = "/f/ticks", .waits = true};
            exchange(&r[n]);
        }
        exchange(&post);
        assert_int_equal(r[1].ends, 0);
        assert_status(&r[2], 429, "too many requests");
        assert_status(&post, 429, "too many requests");
        pool_request_cancel(&r[0].request);
        run(NS_PER_S);
        exchange(&r[2]);
        assert_int_equal(r[2].status, 200);
        pool_request_cancel(&r[1].request);
        pool_request_cancel(&r[2].request);
        end();
    }
}

/* A client is known by its token; without one, by its address. */
static void one_client_leaves_room_for_others(void **state)
{
    static const struct http_field fields[][1] = {
        {{{(const uint8_t *)"authorization", 13}, {(const uint8_t *)"Bearer a", 8}}},
        {{{(const uint8_t *)"authorization", 13}, {(const uint8_t *)"Bearer b", 8}}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r[6];
        begin(&cases[i]);
        tier_forwards_fini(&t.forwards);
        tier_forwards_init(&t.forwards, 8, 1);
        assert_int_equal(t.forwards.share_max, 2);
        for (size_t n = 0; n < COUNT_OF(r); n++) {
            r[n] = (struct pool_test_request){.target = "/f/ticks", .waits = true};
            r[n].fields = n < 5 ? fields[n < 3 ? 0 : 1] : NULL;
            r[n].field_count = n < 5;
            exchange(&r[n]);
        }
        assert_int_equal(r[1].ends, 0);
        assert_status(&r[2], 429, "too many requests of this client");
        assert_non_null(strstr(r[2].head, "etry-"));
        assert_int_equal(r[3].ends + r[4].ends + r[5].ends, 0);
        assert_int_equal(t.forwards.under_way, 5);
        pool_request_cancel(&r[0].request);
        run(NS_PER_S);
        exchange(&r[2]);
        assert_int_equal(r[2].status, 200);
        for (size_t n = 1; n < COUNT_OF(r); n++)
            pool_request_cancel(&r[n].request);
        run(NS_PER_S);
        assert_int_equal(t.forwards.shares.count, 0);
        end();
    }
}

/* What is held for clients is charged to them. Those that hold too much lose their answers. */
static void memory_of_forwards_is_limited(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct budget *budget;
        struct pool_test_request r[20], post = {.method = "POST", .target = "/f/head"};
        static char body[300001];
        memset(body, 'x', sizeof(body) - 1);
        post.body = body;
        unsigned cut = 0;
        assert_int_equal(budget_new(1 << 20, &budget), ST_OK);
        prepare(&cases[i], NULL);
        t.w.budget = budget;
        t.site.big_bytes = 4 << 20;
        pool_world_start(&t.w);
        for (size_t n = 0; n < COUNT_OF(r); n++) {
            r[n] = (struct pool_test_request){.target = "/f/pull", .waits = true};
            start(&r[n]);
            pool_request_withhold(&r[n].request, true);
        }
        run(NS_PER_S);
        for (size_t n = 0; n < COUNT_OF(r); n++)
            pool_request_withhold(&r[n].request, false);
        run(10 * NS_PER_S);
        for (size_t n = 0; n < COUNT_OF(r); n++) {
            assert_int_equal(r[n].ends, 1);
            assert_true(r[n].end != ST_OK || r[n].status != 200 || r[n].received == 4 << 20);
            cut += r[n].end != ST_OK || r[n].status != 200;
        }
        assert_true(cut > 0);
        exchange(&post); /* afterwards everything is free again */
        assert_true(pool_test_succeeded(&post));
        end();
        budget_free(budget); /* asserts that nothing is charged */
    }
}

static void shutdown_ends_what_lasts_and_finishes_the_rest(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pulled pulled = PULLED;
        struct pool_test_request watch = {.target = "/f/ticks?watch=true", .waits = true},
                                 waiting = {.target = "/f/later?watch=true"},
                                 raw = {.target = "/f/raw", .upgrade = "x", .pulled = &pulled},
                                 upload = {.method = "POST",
                                           .target = "/f/take",
                                           .pulled = &pulled,
                                           .pulled_bytes = POOL_BYTES_UNKNOWN};
        struct pulled body = PULLED;
        upload.pulled = &body;
        begin(&cases[i]);
        t.stream.begins = t.stream.echoes = true;
        start(&watch);
        start(&waiting);
        exchange(&raw);
        exchange(&upload);
        assert_int_equal(t.forwards.under_way, 4);
        net_server_drain(t.w.server);
        run(NS_PER_S);
        assert_int_equal(watch.end, ST_OK);
        assert_int_equal(watch.ends, 1);
        assert_status(&waiting, 503, "shutting down");
        assert_int_equal(raw.input_ends + raw.ends, 1);
        assert_int_equal(upload.ends, 0);
        give(&upload, "more");
        give_end(&upload);
        assert_true(pool_test_succeeded(&upload));
        assert_string_equal(upload.text, "more");
        pool_request_cancel(&raw.request);
        run(NS_PER_S);
        assert_true(net_server_drained(t.w.server));
        pulled_fini(&body);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_arrives_with_its_fields_and_body),
        cmocka_unit_test(answer_comes_back_with_its_fields),
        cmocka_unit_test(answers_without_a_body_have_none),
        cmocka_unit_test(answers_of_any_length_arrive_whole),
        cmocka_unit_test(pieces_are_passed_on_at_once),
        cmocka_unit_test(bodies_are_passed_on_while_they_arrive),
        cmocka_unit_test(client_may_continue_when_the_server_is_reached),
        cmocka_unit_test(slow_server_makes_the_client_wait),
        cmocka_unit_test(slow_client_makes_the_server_wait),
        cmocka_unit_test(client_that_reads_nothing_is_given_up),
        cmocka_unit_test(client_that_leaves_cancels_its_request),
        cmocka_unit_test(failures_are_explained),
        cmocka_unit_test(answer_that_breaks_off_does_not_look_complete),
        cmocka_unit_test(requests_beyond_the_limit_are_refused),
        cmocka_unit_test(one_client_leaves_room_for_others),
        cmocka_unit_test(memory_of_forwards_is_limited),
        cmocka_unit_test(shutdown_ends_what_lasts_and_finishes_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
