/* TLS as bytes in and bytes out: an OpenSSL client over memory, the echo protocol inside. */
#include "net/tls/pair_test.h"

/* -- successful handshakes -- */

static void echo_arrives_for_every_split_of_the_bytes(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (size_t piece = 1; piece <= 700; piece = piece < 40 ? piece + 1 : piece * 2) {
        struct pair p;
        pair_init(&p, &w);
        pair_dial(&p);
        pair_run(&p, piece);
        assert_true(SSL_is_init_finished(p.client));
        assert_string_equal(SSL_get_version(p.client), "TLSv1.3");
        client_say(&p, "e hello");
        pair_run(&p, piece);
        assert_true(client_heard(&p, "e hello"));
        assert_false(p.over);
        pair_fini(&p);
    }
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

static void tls_1_2_works_with_every_cipher_we_offer(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    static const char *const ciphers[] = {
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA"};
    for (size_t i = 0; i < COUNT_OF(ciphers); i++) {
        struct pair p;
        pair_init(&p, &w);
        SSL_CTX_set_max_proto_version(p.ctx, TLS1_2_VERSION);
        SSL_CTX_set_cipher_list(p.ctx, ciphers[i]);
        pair_dial(&p);
        pair_run(&p, ROOM);
        client_say(&p, "g\xff\xff"); /* an incomplete frame: no answer */
        client_say(&p, "e hello");
        pair_run(&p, ROOM);
        assert_true(client_heard(&p, "e hello"));
        assert_string_equal(SSL_get_cipher_name(p.client), ciphers[i]);
        pair_fini(&p);
    }
    world_fini(&w);
}

static void long_output_arrives_in_order_and_leaves_no_buffer(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    const uint32_t count = 3000000;
    uint8_t frame[9] = {0, 0, 0, 5, 'g'};
    echo_put_number(frame + 5, count);
    SSL_write(p.client, frame, sizeof(frame));
    pair_run(&p, ROOM);
    assert_int_equal(p.received.len, count);
    for (uint32_t i = 0; i < count; i++)
        if (p.received.ptr[i] != echo_pattern(i))
            fail_msg("byte %u is wrong", i);
    pair_fini(&p);
    world_fini(&w);
}

static void large_input_reaches_the_inner_protocol(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    static uint8_t frame[4 + ECHO_FRAME_MAX];
    echo_put_number(frame, ECHO_FRAME_MAX);
    frame[4] = 'e';
    for (int i = 0; i < 5; i++)
        assert_int_equal(SSL_write(p.client, frame, sizeof(frame)), sizeof(frame));
    pair_run(&p, ROOM);
    assert_int_equal(p.received.len, 5 * sizeof(frame));
    pair_fini(&p);
    world_fini(&w);
}

static void protocols_are_negotiated(void **state)
{
    (void)state;
    static const struct {
        const char *offered;
        const char *chosen; /* NULL: refused */
    } rows[] = {
        {"\x02h2", "h2"},
        {"\x08http/1.1", "http/1.1"},
        {"\x08http/1.1\x02h2", "h2"},
        {"\x02h3\x08http/1.1", "http/1.1"},
        {"\x06spdy/3", NULL},
    };
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pair p;
        pair_init(&p, &w);
        SSL_CTX_set_alpn_protos(p.ctx, (const unsigned char *)rows[i].offered,
                                (unsigned)strlen(rows[i].offered));
        pair_dial(&p);
        pair_run(&p, ROOM);
        const unsigned char *chosen;
        unsigned len;
        SSL_get0_alpn_selected(p.client, &chosen, &len);
        if (rows[i].chosen)
            assert_true(slice_equal(slice_of(chosen, len), slice_from_text(rows[i].chosen)));
        else
            assert_string_equal(w.reason,
                                "tls: client requested unsupported application protocols");
        pair_fini(&p);
    }
    assert_int_equal(w.rejections, 1);
    world_fini(&w);
}

/* -- ends -- */

static void each_side_may_close_first(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    client_say(&p, "q bye");
    pair_run(&p, ROOM);
    assert_true(client_heard(&p, "q bye"));
    assert_true(p.over);
    assert_int_equal(SSL_get_shutdown(p.client), SSL_RECEIVED_SHUTDOWN);
    pair_fini(&p);

    connect_pair(&p, &w);
    client_say(&p, "h under way");
    SSL_shutdown(p.client);
    pair_run(&p, ROOM);
    assert_true(p.over); /* the echo protocol ends when its peer closes */
    assert_string_equal(w.kind.ops->reason(p.server), "the peer left");
    assert_int_equal(SSL_get_shutdown(p.client), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    pair_fini(&p);

    connect_pair(&p, &w); /* closed without a close notification */
    client_say(&p, "h under way");
    pair_run(&p, ROOM);
    w.kind.ops->feed_end(p.server, w.now);
    server_flush(&p);
    assert_true(p.over);
    pair_fini(&p);
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

static void server_that_has_sent_its_last_byte_still_receives(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (uint64_t i = 0; i < COUNT_OF(versions); i++) {
        struct pair p;
        pair_init(&p, &w);
        SSL_CTX_set_max_proto_version(p.ctx, versions[i]);
        pair_dial(&p);
        pair_run(&p, ROOM);
        client_say(&p, "o last");
        pair_run(&p, ROOM);
        assert_true(client_heard(&p, "o last"));
        assert_int_equal(SSL_get_shutdown(p.client), SSL_RECEIVED_SHUTDOWN);
        assert_false(p.over);
        assert_false(w.kind.ops->output_ended(p.server)); /* the notification says so */
        for (uint64_t n = 1; n <= 3; n++) {
            client_say(&p, "more");
            pair_run(&p, 10);
            assert_int_equal(w.echo.taken, 3 * i + n);
        }
        SSL_shutdown(p.client);
        pair_run(&p, ROOM);
        assert_true(p.over);
        pair_fini(&p);
    }
    world_fini(&w);
}

static void shutdown_passes_through(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    w.kind.ops->shutdown(p.server, w.now);
    pair_run(&p, ROOM);
    assert_true(p.over);
    assert_int_equal(SSL_get_shutdown(p.client), SSL_RECEIVED_SHUTDOWN);
    pair_fini(&p);
    pair_init(&p, &w);
    w.kind.ops->shutdown(p.server, w.now);
    server_flush(&p);
    assert_true(p.over);
    pair_fini(&p);
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

/* -- limits -- */

static void silence_and_half_a_handshake_time_out(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (int bytes = 0; bytes <= 200; bytes += 100) {
        struct pair p;
        pair_init(&p, &w);
        pair_dial(&p);
        client_turn(&p);
        server_feed(&p, slice_of(p.encrypted.ptr, (size_t)bytes));
        assert_int_equal(w.kind.ops->timeout(p.server), w.now + 10 * NS_PER_S);
        w.now += 10 * NS_PER_S - 1;
        w.kind.ops->tick(p.server, w.now);
        assert_false(p.over);
        w.now += 1;
        w.kind.ops->tick(p.server, w.now);
        server_flush(&p);
        assert_true(p.over);
        assert_string_equal(w.reason, "tls: handshake not finished in time: i/o timeout");
        assert_string_equal(w.address, "192.0.2.1:1234");
        assert_false(w.left);
        pair_fini(&p);
    }
    assert_int_equal(w.rejections, 3);
    world_fini(&w);
}

static void client_that_leaves_during_the_handshake_is_distinguished(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    pair_init(&p, &w);
    w.kind.ops->feed_end(p.server, w.now);
    assert_true(w.left);
    assert_string_equal(w.reason, "EOF");
    pair_fini(&p);
    world_fini(&w);
}

static void handshake_of_too_many_bytes_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.limits.handshake_bytes = 300;
    world_begin(&w);
    struct pair p;
    pair_init(&p, &w);
    uint8_t record[5 + 301] = {0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xf0};
    server_feed(&p, slice_of(record, 300));
    assert_false(p.over);
    server_feed(&p, slice_of(record + 300, 2));
    assert_true(p.over);
    assert_string_equal(w.reason, "tls: handshake message too long");
    pair_fini(&p);
    world_fini(&w);
}

static void handshakes_beyond_the_limit_wait_for_a_place(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.limits.handshakes_max = 2;
    world_begin(&w);
    struct pair p[5];
    for (int i = 0; i < 5; i++) {
        pair_init(&p[i], &w);
        pair_dial(&p[i]);
        client_turn(&p[i]);
        server_feed(&p[i], buf_slice(&p[i].encrypted));
        buf_reset(&p[i].encrypted, SIZE_MAX);
        assert_int_equal(BIO_pending(p[i].to_client) > 0, i < 2);
        assert_int_equal(w.kind.ops->wants_read(p[i].server), i < 2);
    }
    pair_run(&p[0], ROOM); /* is done, so that the third continues */
    assert_true(SSL_is_init_finished(p[0].client));
    assert_int_equal(p[2].woken, 1);
    assert_int_equal(p[3].woken, 0);
    pair_run(&p[2], ROOM);
    assert_true(SSL_is_init_finished(p[2].client));
    w.now +=
        10 *
        NS_PER_S; /* the second makes no progress, the fourth waited too long, the fifth did not */
    w.kind.ops->tick(p[3].server, w.now);
    server_flush(&p[3]);
    assert_true(p[3].over);
    for (int i = 0; i < 5; i++)
        if (i != 4)
            pair_fini(&p[i]);
    assert_int_equal(p[4].woken, 1);
    pair_run(&p[4], ROOM);
    client_say(&p[4], "e at last");
    pair_run(&p[4], ROOM);
    assert_true(client_heard(&p[4], "e at last"));
    pair_fini(&p[4]);
    world_fini(&w);
}

static void first_bytes_of_waiting_connections_are_limited(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.limits.handshakes_max = 1;
    w.tls.limits.waiting_bytes_max = 1000;
    world_begin(&w);
    struct pair p[4];
    uint8_t hello[400] = {0x16, 3, 1, 0x3f, 0xff};
    for (int i = 0; i < 4; i++) {
        pair_init(&p[i], &w);
        server_feed(&p[i], slice_of(hello, sizeof(hello)));
        assert_int_equal(p[i].over, i == 3);
    }
    assert_string_equal(w.reason, "too many TLS handshakes at the same time");
    for (int i = 0; i < 4; i++)
        pair_fini(&p[i]);
    world_fini(&w);
}

static void key_updates_without_data_end_the_connection(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    for (int i = 0; i < 1000 && !p.over; i++) { /* with data between them there is no limit */
        assert_int_equal(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED), 1);
        client_say(&p, "e x");
        pair_run(&p, ROOM);
    }
    assert_false(p.over);
    int updates = 0;
    for (; updates < 100 && !p.over; updates++) {
        assert_int_equal(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED), 1);
        SSL_do_handshake(p.client);
        pair_run(&p, ROOM);
    }
    assert_true(p.over);
    assert_in_range(updates, 4, 40);
    assert_string_equal(w.kind.ops->reason(p.server), "tls: too many non-advancing records");
    pair_fini(&p);
    world_fini(&w);
}

static void renegotiation_ends_the_connection(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    pair_init(&p, &w);
    SSL_CTX_set_max_proto_version(p.ctx, TLS1_2_VERSION);
    pair_dial(&p);
    pair_run(&p, ROOM);
    client_say(&p, "e x");
    pair_run(&p, ROOM);
    assert_int_equal(SSL_renegotiate(p.client), 1);
    SSL_do_handshake(p.client);
    pair_run(&p, ROOM);
    assert_true(p.over);
    assert_string_equal(w.kind.ops->reason(p.server), "tls: no renegotiation");
    pair_fini(&p);
    world_fini(&w);
}

static void sessions_are_not_resumed(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct pair p, again;
        pair_init(&p, &w);
        SSL_CTX_set_max_proto_version(p.ctx, version);
        pair_dial(&p);
        pair_run(&p, ROOM);
        client_say(&p, "e x");
        pair_run(&p, ROOM);
        SSL_SESSION *session = SSL_get1_session(p.client);
        assert_false(SSL_SESSION_has_ticket(session));
        pair_init(&again, &w);
        SSL_CTX_set_max_proto_version(again.ctx, version);
        pair_dial(&again);
        SSL_set_session(again.client, session);
        pair_run(&again, ROOM);
        assert_true(SSL_is_init_finished(again.client));
        assert_false(SSL_session_reused(again.client));
        SSL_SESSION_free(session);
        pair_fini(&p);
        pair_fini(&again);
    }
    world_fini(&w);
}

/* -- input that is not TLS -- */

static void plain_http_gets_an_error_text_and_other_input_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool answered;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
        {"POST /v3/kv/range HTTP/1.1\r\n\r\n", true},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false},
        {"G", false},
        {"\x80\x2e\x01", false},
        {"SSH-2.0-x\r\n", false},
    };
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pair p;
        pair_init(&p, &w);
        server_feed(&p, slice_from_text(rows[i].bytes));
        assert_true(p.over);
        assert_int_equal(client_heard(&p, "400 Bad Request"), rows[i].answered);
        assert_int_equal(p.received.len > 0, rows[i].answered);
        assert_string_equal(w.reason, "tls: first record does not look like a TLS handshake");
        pair_fini(&p);
    }
    world_fini(&w);
}

static void port_for_both_protocols_serves_plain_and_tls(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.plain_too = true;
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    client_say(&p, "e encrypted");
    pair_run(&p, ROOM);
    assert_true(client_heard(&p, "e encrypted"));
    pair_fini(&p);

    pair_init(&p, &w);
    server_feed(&p, slice_of("\0\0\0\6e open", 10));
    assert_true(client_heard(&p, "e open"));
    assert_false(p.over);
    w.kind.ops->feed(p.server, slice_of("\0\0\0\5q bye", 9), w.now);
    server_flush(&p);
    assert_true(client_heard(&p, "q bye"));
    assert_true(p.over);
    pair_fini(&p);
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Before, within and after the handshake; records of random bytes and single flipped bits. */
static void malformed_input_never_reaches_the_inner_protocol(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    uint32_t seed = 1;
    for (int round = 0; round < 400; round++) {
        struct pair p;
        pair_init(&p, &w);
        pair_dial(&p);
        uint32_t turns = next_random(&seed) % 4;
        for (uint32_t i = 0; i < turns; i++) {
            client_turn(&p);
            server_feed(&p, buf_slice(&p.encrypted));
            buf_reset(&p.encrypted, SIZE_MAX);
        }
        if (SSL_is_init_finished(p.client))
            client_say(&p, "e x");
        client_turn(&p);
        if (p.encrypted.len && next_random(&seed) % 2) {
            p.encrypted.ptr[next_random(&seed) % p.encrypted.len] ^= (uint8_t)(1 << seed % 8);
        } else {
            uint8_t junk[512];
            for (size_t i = 0; i < sizeof(junk); i++)
                junk[i] = (uint8_t)next_random(&seed);
            junk[0] = (uint8_t)(0x14 + next_random(&seed) % 5);
            junk[1] = 3, junk[2] = 3, junk[3] = (uint8_t)(next_random(&seed) % 3);
            assert_int_equal(buf_append(&p.encrypted, slice_of(junk, sizeof(junk))), ST_OK);
        }
        for (size_t at = 0; at < p.encrypted.len && !p.over; at += 100)
            server_feed(&p, slice_of(p.encrypted.ptr + at, size_min(100, p.encrypted.len - at)));
        pair_fini(&p);
    }
    world_fini(&w);
}

static void records_longer_than_allowed_are_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    uint8_t record[] = {0x17, 3, 3, 0xff, 0xff, 0, 0, 0};
    server_feed(&p, slice_of(record, sizeof(record)));
    assert_true(p.over);
    pair_fini(&p);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo_arrives_for_every_split_of_the_bytes),
        cmocka_unit_test(tls_1_2_works_with_every_cipher_we_offer),
        cmocka_unit_test(long_output_arrives_in_order_and_leaves_no_buffer),
        cmocka_unit_test(large_input_reaches_the_inner_protocol),
        cmocka_unit_test(protocols_are_negotiated),
        cmocka_unit_test(each_side_may_close_first),
        cmocka_unit_test(server_that_has_sent_its_last_byte_still_receives),
        cmocka_unit_test(shutdown_passes_through),
        cmocka_unit_test(silence_and_half_a_handshake_time_out),
        cmocka_unit_test(client_that_leaves_during_the_handshake_is_distinguished),
        cmocka_unit_test(handshake_of_too_many_bytes_is_refused),
        cmocka_unit_test(handshakes_beyond_the_limit_wait_for_a_place),
        cmocka_unit_test(first_bytes_of_waiting_connections_are_limited),
        cmocka_unit_test(key_updates_without_data_end_the_connection),
        cmocka_unit_test(renegotiation_ends_the_connection),
        cmocka_unit_test(sessions_are_not_resumed),
        cmocka_unit_test(plain_http_gets_an_error_text_and_other_input_nothing),
        cmocka_unit_test(port_for_both_protocols_serves_plain_and_tls),
        cmocka_unit_test(malformed_input_never_reaches_the_inner_protocol),
        cmocka_unit_test(records_longer_than_allowed_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
