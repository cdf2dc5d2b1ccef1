#include "net/tls/tls_private.h"

#include "base/clock.h"
#include "base/memory/budget.h"
#include "io/address.h"
#include "net/tls/bytes.h"
#include "net/tls/names.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

enum {
    INNER_ROOM_MIN = 8 * 1024,   /* room that an inner protocol may rely on */
    OUT_PAUSE_BYTES = 64 * 1024, /* output that was not requested and is not sent: stop reading */
    RECORD_HANDSHAKE = 0x16,     /* the first byte of every TLS connection */
};

enum tls_state { TLS_WAITING, TLS_SHAKING, TLS_OPEN, TLS_ENDING, TLS_FAILED, TLS_PLAIN };

#define TO(state) (1u << TLS_##state)

static const unsigned moves[] = {
    [TLS_WAITING] = TO(SHAKING) | TO(FAILED) | TO(PLAIN),
    [TLS_SHAKING] = TO(OPEN) | TO(FAILED),
    [TLS_OPEN] = TO(ENDING) | TO(FAILED),
    [TLS_PLAIN] = TO(FAILED),
    [TLS_ENDING] = 0,
    [TLS_FAILED] = 0,
};

/* Owned by its shard's thread. When open and idle, it holds the SSL and the inner protocol, but no
 * buffer. */
struct tls_connection {
    struct tls_shard *shard;
    struct protocol_hooks hooks;
    SSL *ssl;                             /* owned; NULL while waiting, and for plain connections */
    struct tls_context *context;          /* a reference; has the names that the SSL uses */
    void *inner;                          /* owned; set when open or plain */
    char *peer_name;                      /* owned; NULL without a certificate */
    struct http_certificate *certificate; /* owned; NULL if peer_name is */
    char *reason;                         /* owned; why it failed */
    struct tls_peer peer;
    struct tls_bytes bytes;  /* below the SSL; input only within feed and fill */
    struct buf first;        /* received before or during the handshake and not processed yet */
    int64_t handshake_at_ns; /* deadline of the handshake */
    uint8_t state;           /* enum tls_state */
    bool ended;              /* feed_end of the inner protocol was called */
    bool notified;           /* our close notification was sent */
    bool placed;             /* has one of the shard's places for handshakes */
    struct list in_waiting;  /* links tls_shard.waiting */
};

static const struct protocol_ops *inner_ops(const struct tls_connection *c)
{
    return c->shard->tls->inner->ops;
}

static void move(struct tls_connection *c, enum tls_state next)
{
    assert(moves[c->state] & (1u << next));
    c->state = (uint8_t)next;
}

static enum status keep(struct tls_connection *c, struct buf *buf, struct slice bytes)
{
    return account_append(c->hooks.account, buf, bytes);
}

/* -- places for handshakes -- */

static void stop_waiting(struct tls_connection *c)
{
    if (list_empty(&c->in_waiting))
        return;
    list_remove(&c->in_waiting);
    c->shard->waiting_bytes -= c->first.len;
}

static void take_place(struct tls_connection *c)
{
    c->placed = true;
    c->shard->handshakes++;
}

/* The connection that waits longest gets the place. */
static void leave_place(struct tls_connection *c)
{
    struct tls_shard *shard = c->shard;
    if (!c->placed)
        return;
    c->placed = false;
    shard->handshakes--;
    if (list_empty(&shard->waiting))
        return;
    struct tls_connection *next =
        LIST_ENTRY(shard->waiting.next, struct tls_connection, in_waiting);
    stop_waiting(next);
    take_place(next);
    next->hooks.on_output(next->hooks.owner);
}

/* -- failures -- */

static void fail(struct tls_connection *c, const char *reason)
{
    stop_waiting(c);
    leave_place(c);
    move(c, TLS_FAILED);
    c->reason = strdup(reason);
    account_buf_fini(c->hooks.account, &c->first);
    c->bytes.in = SLICE_EMPTY;
}

static void reject(struct tls_connection *c, const char *reason, bool left)
{
    const struct net_tls *tls = c->shard->tls;
    const char *name = c->ssl ? SSL_get_servername(c->ssl, TLSEXT_NAMETYPE_host_name) : NULL;
    char address[ADDRESS_TEXT_BYTES] = "";
    if (c->hooks.peer_address)
        c->hooks.peer_address(c->hooks.owner, address);
    struct tls_rejection rejection = {
        .remote_address = address,
        .server_name = name ? name : "",
        .reason = reason,
        .dns_names = c->peer.dns_names,
        .ip_addresses = c->peer.ip_addresses,
        .left = left,
    };
    if (tls->on_rejection)
        tls->on_rejection(tls->ctx, &rejection);
    fail(c, reason);
}

static void fail_by_openssl(struct tls_connection *c)
{
    char reason[TLS_REASON_BYTES];
    tls_reason_format(c->ssl, &c->peer, reason);
    if (c->state == TLS_SHAKING)
        reject(c, reason, false);
    else
        fail(c, reason);
}

/* -- decrypted input -- */

static enum status open_inner(struct tls_connection *c, int64_t now_ns)
{
    struct protocol_hooks hooks = c->hooks;
    hooks.peer_name = c->peer_name;
    hooks.certificate = c->certificate;
    hooks.secure = c->ssl != NULL;
    return c->shard->tls->inner->open(c->shard->inner, hooks, now_ns, &c->inner);
}

static void end_inner(struct tls_connection *c, int64_t now_ns)
{
    if (c->ended)
        return;
    c->ended = true;
    inner_ops(c)->feed_end(c->inner, now_ns);
}

/* Decrypts all received records into the scratch buffer. *ret_len == 0: the result is the reason.
 */
static int read_records(struct tls_connection *c, size_t *ret_len)
{
    size_t have = 0, n;
    int result = 1;
    while (have < TLS_SCRATCH_BYTES && result == 1) {
        result = SSL_read_ex(c->ssl, c->shard->scratch + have, TLS_SCRATCH_BYTES - have, &n);
        have += result == 1 ? n : 0;
    }
    *ret_len = have;
    return result == 1 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, result);
}

/* Passes the decrypted bytes of c->bytes.in to the inner protocol. */
static void decrypt(struct tls_connection *c, int64_t now_ns)
{
    int result;
    ERR_clear_error();
    do {
        size_t len;
        result = read_records(c, &len);
        if (len) {
            c->peer.messages = 0;
            inner_ops(c)->feed(c->inner, slice_of(c->shard->scratch, len), now_ns);
        }
    } while (result == SSL_ERROR_NONE);
    c->bytes.in = SLICE_EMPTY;
    if (c->peer.renegotiates)
        fail(c, "tls: no renegotiation");
    else if (c->peer.messages > c->shard->tls->limits.idle_messages_max)
        fail(c, "tls: too many non-advancing records");
    else if (result == SSL_ERROR_ZERO_RETURN)
        end_inner(c, now_ns);
    else if (result != SSL_ERROR_WANT_READ)
        fail_by_openssl(c);
}

/* -- the handshake -- */

static bool begin(struct tls_connection *c)
{
    struct tls_shard *shard = c->shard;
    c->context = tls_source_get(shard->tls->source);
    c->ssl = tls_context_accept(c->context, &c->peer);
    return c->ssl && tls_bytes_attach(&c->bytes, shard->method, c->ssl);
}

static void finish(struct tls_connection *c, int64_t now_ns)
{
    X509 *certificate = SSL_get0_peer_certificate(c->ssl);
    if (certificate)
        c->peer_name = tls_common_name(certificate);
    if (c->peer_name)
        c->certificate = tls_certificate_read(certificate);
    tls_peer_fini(&c->peer);
    leave_place(c);
    move(c, TLS_OPEN);
    if (open_inner(c, now_ns) != ST_OK)
        fail(c, "out of memory");
    else
        decrypt(c, now_ns); /* a client may send data with its last handshake message */
}

static void shake(struct tls_connection *c, int64_t now_ns)
{
    ERR_clear_error();
    struct buf first = c->first;
    c->first = (struct buf){0};
    c->bytes.in = buf_slice(&first);
    if (c->hooks.on_long_step)
        c->hooks.on_long_step(c->hooks.owner);
    int result = SSL_do_handshake(c->ssl);
    if (result == 1)
        finish(c, now_ns);
    else if (SSL_get_error(c->ssl, result) != SSL_ERROR_WANT_READ)
        fail_by_openssl(c);
    else if (c->bytes.taken > c->shard->tls->limits.handshake_bytes)
        reject(c, "tls: handshake message too long", false);
    c->bytes.in = SLICE_EMPTY;
    account_buf_fini(c->hooks.account, &first);
}

static bool can_shake(const struct tls_connection *c)
{
    return c->placed && c->first.len > 0;
}

static void shake_if_due(struct tls_connection *c, int64_t now_ns)
{
    if (!can_shake(c))
        return;
    if (c->state == TLS_WAITING) {
        if (!begin(c)) {
            fail(c, "out of memory");
            return;
        }
        move(c, TLS_SHAKING);
    }
    shake(c, now_ns);
}

/* -- the first bytes -- */

static bool looks_like_http(struct slice bytes)
{
    static const char *const methods[] = {"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC"};
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (slice_has_prefix(bytes, slice_of(methods[i], 4)))
            return true;
    return false;
}

/* Not TLS. A browser or curl that used http:// gets a text that it can show. */
static void feed_plain(struct tls_connection *c, struct slice bytes, int64_t now_ns)
{
    static const char answer[] = "HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\n"
                                 "Client sent an HTTP request to an HTTPS server.\n";
    if (c->shard->tls->plain_too && open_inner(c, now_ns) == ST_OK) {
        move(c, TLS_PLAIN);
        inner_ops(c)->feed(c->inner, bytes, now_ns);
        return;
    }
    if (looks_like_http(bytes) && keep(c, &c->bytes.out, slice_from_text(answer)) != ST_OK)
        account_buf_fini(c->hooks.account, &c->bytes.out);
    reject(c, "tls: first record does not look like a TLS handshake", false);
}

static void feed_first(struct tls_connection *c, struct slice bytes, int64_t now_ns)
{
    struct tls_shard *shard = c->shard;
    const struct net_tls_limits *limits = &shard->tls->limits;
    if (c->state == TLS_WAITING && c->first.len == 0 && bytes.ptr[0] != RECORD_HANDSHAKE) {
        feed_plain(c, bytes, now_ns);
        return;
    }
    if (keep(c, &c->first, bytes) != ST_OK) {
        fail(c, "out of memory");
        return;
    }
    if (c->placed)
        return;
    if (shard->handshakes < limits->handshakes_max) {
        take_place(c);
    } else if (bytes.len > limits->waiting_bytes_max - shard->waiting_bytes) {
        reject(c, "too many TLS handshakes at the same time", false);
    } else {
        assert(list_empty(&c->in_waiting)); /* nothing is read while it waits */
        list_push_back(&shard->waiting, &c->in_waiting);
        shard->waiting_bytes += bytes.len;
    }
}

/* -- the table of functions -- */

static void feed(void *protocol, struct slice bytes, int64_t now_ns)
{
    struct tls_connection *c = protocol;
    switch (c->state) {
    case TLS_WAITING:
    case TLS_SHAKING:
        if (bytes.len)
            feed_first(c, bytes, now_ns);
        break;
    case TLS_OPEN:
        if (c->ended)
            break;
        c->bytes.in = bytes;
        decrypt(c, now_ns);
        break;
    case TLS_PLAIN:
        inner_ops(c)->feed(c->inner, bytes, now_ns);
        break;
    default:
        break;
    }
}

static void feed_end(void *protocol, int64_t now_ns)
{
    struct tls_connection *c = protocol;
    if (c->state == TLS_OPEN || c->state == TLS_PLAIN)
        end_inner(c, now_ns);
    else if (c->state == TLS_WAITING || c->state == TLS_SHAKING)
        reject(c, "EOF", true);
}

static bool wants_read(const void *protocol)
{
    const struct tls_connection *c = protocol;
    switch (c->state) {
    case TLS_WAITING:
    case TLS_SHAKING:
        return c->first.len == 0 && c->bytes.out.len < OUT_PAUSE_BYTES;
    case TLS_OPEN:
    case TLS_PLAIN:
        return c->bytes.out.len < OUT_PAUSE_BYTES && inner_ops(c)->wants_read(c->inner);
    default:
        return false;
    }
}

/* The inner protocol sends nothing any more, but still takes input. */
static bool inner_output_ended(const struct tls_connection *c)
{
    return inner_ops(c)->output_ended && inner_ops(c)->output_ended(c->inner);
}

static bool wants_write(const void *protocol)
{
    const struct tls_connection *c = protocol;
    if (c->bytes.out.len)
        return true;
    switch (c->state) {
    case TLS_WAITING:
    case TLS_SHAKING:
        return can_shake(c);
    case TLS_OPEN: /* the close notification is output, too */
        return inner_ops(c)->wants_write(c->inner) || inner_ops(c)->should_close(c->inner) ||
               (!c->notified && inner_output_ended(c));
    case TLS_PLAIN:
        return inner_ops(c)->wants_write(c->inner);
    default:
        return false;
    }
}

/* How much the inner protocol may write, so that the result fits into room. */
static size_t inner_room(size_t room)
{
    size_t plain = tls_bytes_plain_room(room);
    return plain < INNER_ROOM_MIN ? 0 : size_min(plain, TLS_SCRATCH_BYTES);
}

/* Our close notification. We do not wait for the peer's. */
static void notify_end(struct tls_connection *c)
{
    if (!c->notified)
        (void)SSL_shutdown(c->ssl);
    c->notified = true;
    ERR_clear_error();
}

static void seal(struct tls_connection *c, int64_t now_ns)
{
    const struct protocol_ops *ops = inner_ops(c);
    ERR_clear_error();
    while (c->bytes.out.len == 0 && inner_room(c->bytes.room) && ops->wants_write(c->inner)) {
        size_t written,
            n = ops->fill(c->inner, c->shard->scratch, inner_room(c->bytes.room), now_ns);
        if (n == 0)
            break;
        if (SSL_write_ex(c->ssl, c->shard->scratch, n, &written) != 1) {
            fail_by_openssl(c);
            return;
        }
        assert(written == n);
    }
    if (ops->should_close(c->inner) && !ops->wants_write(c->inner)) {
        notify_end(c);
        move(c, TLS_ENDING);
    } else if (inner_output_ended(c)) {
        notify_end(c);
    }
}

static size_t fill(void *protocol, uint8_t *dst, size_t room, int64_t now_ns)
{
    struct tls_connection *c = protocol;
    if (c->state == TLS_PLAIN)
        return inner_ops(c)->fill(c->inner, dst, room, now_ns);
    tls_bytes_begin_fill(&c->bytes, dst, room);
    shake_if_due(c, now_ns);
    if (c->state == TLS_OPEN)
        seal(c, now_ns);
    return tls_bytes_end_fill(&c->bytes, dst);
}

/* With TLS the close notification says so. */
static bool output_ended(const void *protocol)
{
    const struct tls_connection *c = protocol;
    return c->state == TLS_PLAIN && inner_output_ended(c);
}

static bool should_close(const void *protocol)
{
    const struct tls_connection *c = protocol;
    if (c->state == TLS_PLAIN)
        return inner_ops(c)->should_close(c->inner);
    return (c->state == TLS_ENDING || c->state == TLS_FAILED) && c->bytes.out.len == 0;
}

static const char *reason(const void *protocol)
{
    const struct tls_connection *c = protocol;
    if (c->state == TLS_FAILED)
        return c->reason ? c->reason : "TLS failed";
    return c->inner ? inner_ops(c)->reason(c->inner) : "";
}

static int64_t timeout(const void *protocol)
{
    const struct tls_connection *c = protocol;
    switch (c->state) {
    case TLS_WAITING:
    case TLS_SHAKING:
        return c->handshake_at_ns;
    case TLS_OPEN:
    case TLS_PLAIN:
        return inner_ops(c)->timeout(c->inner);
    default:
        return CLOCK_NEVER;
    }
}

static void tick(void *protocol, int64_t now_ns)
{
    struct tls_connection *c = protocol;
    if (c->state == TLS_OPEN || c->state == TLS_PLAIN)
        inner_ops(c)->tick(c->inner, now_ns);
    else if ((c->state == TLS_WAITING || c->state == TLS_SHAKING) && now_ns >= c->handshake_at_ns)
        reject(c, "tls: handshake not finished in time: i/o timeout", false);
}

static void shut_down(void *protocol, int64_t now_ns)
{
    struct tls_connection *c = protocol;
    if (c->state == TLS_OPEN || c->state == TLS_PLAIN)
        inner_ops(c)->shutdown(c->inner, now_ns);
    else if (c->state == TLS_WAITING || c->state == TLS_SHAKING)
        fail(c, "shutting down");
}

static bool idle(const void *protocol)
{
    const struct tls_connection *c = protocol;
    return !(c->state == TLS_OPEN || c->state == TLS_PLAIN) || inner_ops(c)->idle(c->inner);
}

static void free_connection(void *protocol)
{
    struct tls_connection *c = protocol;
    stop_waiting(c);
    leave_place(c);
    if (c->inner)
        inner_ops(c)->free(c->inner);
    SSL_free(c->ssl);
    tls_context_unref(c->context);
    tls_peer_fini(&c->peer);
    account_buf_fini(c->hooks.account, &c->first);
    tls_bytes_fini(&c->bytes);
    free(c->peer_name);
    free(c->certificate);
    free(c->reason);
    free(c);
}

const struct protocol_ops tls_connection_ops = {
    .feed = feed,
    .feed_end = feed_end,
    .wants_read = wants_read,
    .wants_write = wants_write,
    .fill = fill,
    .output_ended = output_ended,
    .should_close = should_close,
    .reason = reason,
    .timeout = timeout,
    .tick = tick,
    .shutdown = shut_down,
    .idle = idle,
    .free = free_connection,
};

enum status tls_connection_new(struct tls_shard *shard, struct protocol_hooks hooks, int64_t now_ns,
                               struct tls_connection **ret_connection)
{
    struct tls_connection *c = calloc(1, sizeof(*c));
    if (!c)
        return ST_NOMEM;
    c->shard = shard;
    c->hooks = hooks;
    c->bytes.account = hooks.account;
    c->handshake_at_ns = clock_add(now_ns, shard->tls->limits.handshake_ns);
    list_init(&c->in_waiting);
    *ret_connection = c;
    return ST_OK;
}
