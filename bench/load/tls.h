/* TLS for the generator: OpenSSL over its sockets, set up once for all connections. */
#ifndef VIGIL_LOAD_TLS_H
#define VIGIL_LOAD_TLS_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct bench_tls;
struct ssl_st;

/* Files in PEM; "" for none. Without cacert the system's authorities count; insecure: none do. */
MUST_CHECK
enum status bench_tls_new(const char *cacert, const char *cert, const char *key, bool insecure,
                          struct bench_tls **ret_tls, struct error *error);
void bench_tls_free(struct bench_tls *tls);

/* The handshake on a connected socket, which waits; afterwards the socket does not. The error's
 * text says what went wrong. */
MUST_CHECK
enum status bench_tls_dial(struct bench_tls *tls, int fd, struct ssl_st **ret_ssl,
                           struct error *error);
void bench_tls_hang_up(struct ssl_st *ssl); /* accepts NULL */

/* As recv and send do: -1 with errno EAGAIN when the socket is not ready. A read takes as many
 * records as there are and fit. */
ssize_t bench_tls_read(struct ssl_st *ssl, void *to, size_t len);
ssize_t bench_tls_write(struct ssl_st *ssl, const void *from, size_t len);

#endif
