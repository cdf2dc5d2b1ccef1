/*
 * TLS from the client's side: bytes in, bytes out; no socket, no clock. For HTTP/2 the server must
 * select "h2" (by ALPN), as gRPC requires; for HTTP/1.1 it may also select nothing. When both are
 * offered, a server that selects nothing speaks HTTP/1.1.
 *
 *     shaking ──► open ──► ended (a close notification was received, or the client was shut down)
 *        └──► failed ◄──┘
 *
 * A server is verified as Go does it: its certificate must lead to a trusted authority and name the
 * host in a subject alternative name; the common name is not used. The texts of failures are Go's.
 *
 * A source is shared by all connections of a client and reads changed files again for the next
 * connection. A tls_client is owned by its connection, on the connection's thread. Memory that is
 * missing is reported.
 */
#ifndef VIGIL_NET_TLS_CLIENT_H
#define VIGIL_NET_TLS_CLIENT_H

#include "net/tls/options.h"
#include "net/tls/source.h"

/* Everything is copied. "" and an empty slice mean "not given"; what is given as PEM is not given
 * as a file, too. */
struct tls_client_options {
    const char *ca_file; /* authorities of servers; not given at all: those of the system */
    struct slice ca_pem;
    const char *cert_file, *key_file; /* our certificate with its chain, and its key */
    struct slice cert_pem, key_pem;
    bool insecure_skip_verify; /* any certificate of the server is accepted */
    enum tls_version min_version;
};

#define TLS_CLIENT_OPTIONS_NONE \
    ((struct tls_client_options){.ca_file = "", .cert_file = "", .key_file = ""})

struct tls_client_source;

/* The error names the file and what is wrong with it. */
MUST_CHECK
enum status tls_client_source_new(const struct tls_client_options *options,
                                  struct tls_source_hooks hooks,
                                  struct tls_client_source **ret_source, struct error *error);
void tls_client_source_free(struct tls_client_source *source); /* after its connections */
DEFINE_CLEANUP(struct tls_client_source *, tls_client_source_free)
struct tls_stats tls_client_source_stats(struct tls_client_source *source);

struct tls_client_limits {
    int64_t handshake_ns;
    uint32_t handshake_bytes;   /* that the server may send during the handshake */
    uint32_t idle_messages_max; /* handshake messages without data between them, when open */
};

#define TLS_CLIENT_LIMITS_DEFAULT                 \
    ((struct tls_client_limits){                  \
        .handshake_ns = 10 * INT64_C(1000000000), \
        .handshake_bytes = 128 * 1024,            \
        .idle_messages_max = 32,                  \
    })

enum tls_client_state {
    TLS_CLIENT_SHAKING,
    TLS_CLIENT_OPEN,
    TLS_CLIENT_ENDED,
    TLS_CLIENT_FAILED,
};

struct tls_client;

enum tls_client_protocol {
    TLS_CLIENT_HTTP2,
    TLS_CLIENT_HTTP1,
    TLS_CLIENT_NEGOTIATED, /* both are offered; tls_client_selected_http2 */
};

/* host is the name or the IP address of the server, without a port and copied; it is verified, and
 * a name is sent to the server (SNI). The first output is ready. */
MUST_CHECK
enum status tls_client_new(struct tls_client_source *source, const char *host,
                           enum tls_client_protocol protocol,
                           const struct tls_client_limits *limits, int64_t now_ns,
                           struct tls_client **ret_client, struct error *error);
void tls_client_free(struct tls_client *client);
DEFINE_CLEANUP(struct tls_client *, tls_client_free)

enum tls_client_state tls_client_state(const struct tls_client *client);
/* The server has selected HTTP/2; valid once it is open. */
bool tls_client_selected_http2(const struct tls_client *client);
/* Failed: why, ST_NOMEM, ST_TIMEOUT or ST_CLOSED with a text that is never NULL. */
enum status tls_client_reason(const struct tls_client *client, const char **ret_text);

/* Encrypted bytes arrived; they are borrowed until tls_client_read has returned 0. */
void tls_client_feed(struct tls_client *client, struct slice bytes);
/* Continues the handshake, and decrypts what was fed; room is not 0. 0: everything was used, or the
 * client is not open any more. */
size_t tls_client_read(struct tls_client *client, uint8_t *dst, size_t room);
/* The connection ended without a close notification; during the handshake that is a failure. */
void tls_client_feed_end(struct tls_client *client);

/* Output of TLS itself is waiting: handshake messages, key updates, alerts. */
bool tls_client_wants_write(const struct tls_client *client);
/* How many bytes may be encrypted so that everything fits into room; 0 if it is not open, unless
 * only the server has ended, and after our close notification. */
size_t tls_client_plain_room(const struct tls_client *client, size_t room);
/* Writes to dst what is waiting, then plain encrypted, and returns the size; what does not fit
 * waits. Plain is empty unless there was room for it. */
size_t tls_client_fill(struct tls_client *client, struct slice plain, uint8_t *dst, size_t room);
/* Our close notification becomes output. No effect if it is not open. */
void tls_client_shutdown(struct tls_client *client);
/* The same, but it stays open for input. */
void tls_client_end_output(struct tls_client *client);

/* When to call tick at the latest; CLOCK_NEVER for never. */
int64_t tls_client_timeout(const struct tls_client *client);
void tls_client_tick(struct tls_client *client, int64_t now_ns);

/* Asserts every invariant; for tests. */
void tls_client_check(const struct tls_client *client);

#endif
