/*
 * How a connection to a proxy becomes one to the server behind it: bytes in, bytes out; no socket,
 * no clock.
 *
 *     HTTP (CONNECT):  requesting ──► open
 *
 *     SOCKS5:          greeting ──► authenticating ──► requesting ──► open
 *                          └──(without a user)─────────────▲
 *
 * Whatever the proxy sends otherwise is an error; its response is limited. Owned by a connection,
 * on its thread.
 */
#ifndef VIGIL_CLIENT_CONNECT_TUNNEL_H
#define VIGIL_CLIENT_CONNECT_TUNNEL_H

#include "client/connect/proxy.h"

enum { TUNNEL_HEAD_BYTES_MAX = 16 * 1024 }; /* limit on the size of the response to CONNECT */

struct tunnel;

/* The proxy is borrowed. The first output is ready. ST_NOMEM. */
MUST_CHECK
enum status tunnel_new(const struct proxy *proxy, const struct endpoint *server,
                       struct tunnel **ret_tunnel);
void tunnel_free(struct tunnel *tunnel);
DEFINE_CLEANUP(struct tunnel *, tunnel_free)

bool tunnel_wants_write(const struct tunnel *tunnel);
size_t tunnel_fill(struct tunnel *tunnel, uint8_t *dst, size_t room);

/* ST_OK: it is open, and what follows *ret_used bytes is the server's. ST_AGAIN: all bytes were
 * used, and more are needed. Otherwise ST_CLOSED with a text, or ST_NOMEM. */
MUST_CHECK
enum status tunnel_feed(struct tunnel *tunnel, struct slice bytes, size_t *ret_used,
                        struct error *error);

/* Asserts every invariant, unless it has failed; for tests. */
void tunnel_check(const struct tunnel *tunnel);

#endif
