/* A server with TLS over a simulated network that splits, delays and breaks connections. */
#include "io/loop.h"
#include "net/server.h"
#include "net/tls/pair_test.h"
#include "simulated/sim.h"

/* OpenSSL's client on a simulated socket: sends some frames, then waits for their echo. */
struct sim_client {
    struct loop *loop;
    struct socket socket;
    struct io_watch watch;
    SSL *ssl;
    BIO *in, *out;
    struct buf to_send; /* encrypted, not yet taken by the socket */
    size_t sent;
    uint64_t received; /* correct bytes of answers */
    bool over, broken, wrong;
    uint32_t frames; /* frames of CLIENT_FRAME bytes, to be echoed */
    bool said;
};

enum { CLIENT_FRAME = 3000, CLIENTS = 6 };

struct sim_world {
    struct world tls;
    struct sim *sim;
    struct loop *loop;
    struct net_server *server;
    struct url bound;
    SSL_CTX *ctx;
    struct sim_client clients[CLIENTS];
};

static void client_close(struct sim_client *c)
{
    if (!c->socket.ops)
        return;
    loop_unwatch(c->loop, &c->watch);
    socket_close(&c->socket);
    c->over = true;
}

static uint8_t frame_byte(uint64_t i)
{
    uint64_t at = i % (CLIENT_FRAME + 4);
    const uint8_t head[] = {0, 0, CLIENT_FRAME >> 8, CLIENT_FRAME & 0xff, 'e'};
    return at < sizeof(head) ? head[at] : (uint8_t)(i * 31);
}

static void client_say_all(struct sim_client *c)
{
    static uint8_t bytes[CLIENT_FRAME + 4];
    if (c->said || !SSL_is_init_finished(c->ssl))
        return;
    c->said = true;
    for (uint64_t frame = 0, i = 0; frame < c->frames; frame++) {
        for (size_t at = 0; at < sizeof(bytes); at++)
            bytes[at] = frame_byte(i++);
        assert_int_equal(SSL_write(c->ssl, bytes, sizeof(bytes)), sizeof(bytes));
    }
}

static void client_step(struct sim_client *c)
{
    uint8_t bytes[4096];
    ERR_clear_error();
    if (!SSL_is_init_finished(c->ssl))
        SSL_do_handshake(c->ssl);
    client_say_all(c);
    for (int n; (n = SSL_read(c->ssl, bytes, sizeof(bytes))) > 0;)
        for (int i = 0; i < n; i++)
            c->wrong |= bytes[i] != frame_byte(c->received++);
    for (int n; (n = BIO_read(c->out, bytes, sizeof(bytes))) > 0;)
        assert_int_equal(buf_append(&c->to_send, slice_of(bytes, (size_t)n)), ST_OK);
}

static enum status client_move(struct sim_client *c, unsigned ready)
{
    uint8_t bytes[4096];
    size_t n;
    if (ready & (IO_READ | IO_BROKEN)) {
        TRY(socket_read(&c->socket, bytes, sizeof(bytes), &n));
        assert_int_equal(BIO_write(c->in, bytes, (int)n), n);
    }
    client_step(c);
    if (ready & IO_WRITE && c->sent < c->to_send.len) {
        struct slice rest = slice_of(c->to_send.ptr + c->sent, c->to_send.len - c->sent);
        TRY(socket_write(&c->socket, rest, &n));
        c->sent += n;
    }
    return ST_OK;
}

static void client_ready(struct io_watch *watch, unsigned ready)
{
    struct sim_client *c = CONTAINER_OF(watch, struct sim_client, watch);
    enum status status = client_move(c, ready);
    if (status != ST_OK && status != ST_AGAIN) {
        c->broken = status == ST_CLOSED;
        client_close(c);
        return;
    }
    unsigned events = IO_READ | (c->sent < c->to_send.len ? IO_WRITE : 0u);
    assert_int_equal(loop_watch(c->loop, watch, events), ST_OK);
}

static void client_dial(struct sim_world *w, struct sim_client *c)
{
    *c = (struct sim_client){.loop = w->loop, .frames = 40};
    struct error error;
    assert_int_equal(network_connect(sim_network(w->sim), &w->bound.address, &c->socket, &error),
                     ST_OK);
    c->watch = (struct io_watch){.handle = c->socket.handle, .fn = client_ready};
    c->ssl = SSL_new(w->ctx);
    c->in = BIO_new(BIO_s_mem());
    c->out = BIO_new(BIO_s_mem());
    SSL_set_bio(c->ssl, c->in, c->out);
    SSL_set_connect_state(c->ssl);
    client_step(c);
    assert_int_equal(loop_watch(w->loop, &c->watch, IO_READ | IO_WRITE), ST_OK);
}

static void sim_world_init(struct sim_world *w, uint64_t seed, uint32_t resets)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.seed = seed;
    options.reset_per_million = resets;
    options.buffer_bytes = seed % 2 ? 1500 : 100000;
    *w = (struct sim_world){.sim = sim_new(&options)};
    world_init(&w->tls);
    w->tls.tls.limits.handshakes_max = 2; /* some handshakes wait */
    world_begin(&w->tls);
    struct network *network = sim_network(w->sim);
    struct net_options net = NET_OPTIONS_DEFAULT;
    struct url url;
    struct error error;
    assert_int_equal(network_loop_new(network, &w->loop), ST_OK);
    assert_int_equal(net_server_new(network, &net, NULL, &w->server), ST_OK);
    assert_int_equal(url_parse(SLICE_LITERAL("https://127.0.0.1:0"), &url, &error), ST_OK);
    assert_int_equal(net_server_listen(w->server, &url, &w->tls.kind, &w->bound, &error), ST_OK);
    assert_int_equal(net_server_start(w->server), ST_OK);
    w->ctx = SSL_CTX_new(TLS_client_method());
    X509_STORE_add_cert(SSL_CTX_get_cert_store(w->ctx), w->tls.certs.ca.certificate);
    SSL_CTX_set_verify(w->ctx, SSL_VERIFY_PEER, NULL);
    for (int i = 0; i < CLIENTS; i++)
        client_dial(w, &w->clients[i]);
}

static void sim_world_fini(struct sim_world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        client_close(&w->clients[i]);
        SSL_free(w->clients[i].ssl);
        buf_fini(&w->clients[i].to_send);
    }
    SSL_CTX_free(w->ctx);
    net_server_stop(w->server);
    net_server_free(w->server);
    loop_free(w->loop);
    world_fini(&w->tls);
    sim_free(w->sim);
}

static void run_for(struct sim_world *w, int64_t ns)
{
    sim_run_until(w->sim, clock_mono_ns(sim_clock(w->sim)) + ns);
}

static void every_byte_arrives_whatever_the_network_does(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sim_world w;
        sim_world_init(&w, seed, 0);
        run_for(&w, 8 * NS_PER_S);
        for (int i = 0; i < CLIENTS; i++) {
            assert_int_equal(w.clients[i].received, 40 * (CLIENT_FRAME + 4));
            assert_false(w.clients[i].wrong || w.clients[i].over);
        }
        net_server_drain(w.server);
        run_for(&w, 3 * NS_PER_S);
        assert_true(net_server_drained(w.server));
        for (int i = 0; i < CLIENTS; i++) {
            assert_true(w.clients[i].over && !w.clients[i].broken);
            assert_int_equal(SSL_get_shutdown(w.clients[i].ssl), SSL_RECEIVED_SHUTDOWN);
        }
        assert_int_equal(w.tls.rejections, 0);
        sim_world_fini(&w);
    }
}

static void broken_connections_leave_nothing_behind(void **state)
{
    (void)state;
    int broken = 0;
    for (uint64_t seed = 1; seed <= 15; seed++) {
        struct sim_world w;
        sim_world_init(&w, seed, 10000);
        run_for(&w, 100 * NS_PER_S);
        for (int i = 0; i < CLIENTS; i++) {
            assert_false(w.clients[i].wrong);
            broken += w.clients[i].broken;
            client_close(&w.clients[i]);
        }
        run_for(&w, 100 * NS_PER_S);
        assert_int_equal(net_server_stats(w.server).connections, 0);
        assert_int_equal(net_server_stats(w.server).held_bytes, 0);
        sim_world_fini(&w);
    }
    assert_true(broken > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_arrives_whatever_the_network_does),
        cmocka_unit_test(broken_connections_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
