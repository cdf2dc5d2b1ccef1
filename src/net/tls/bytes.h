/*
 * The bytes below an SSL: it reads from and writes to memory, and bytes are copied only into and
 * out of the SSL. Embedded in a connection, on its thread.
 */
#ifndef VIGIL_NET_TLS_BYTES_H
#define VIGIL_NET_TLS_BYTES_H

#include "base/buf.h"

struct account;
struct bio_method_st;
struct ssl_st;

/* Zeroed except for account, it is empty. */
struct tls_bytes {
    struct slice in; /* what the SSL may read: only within one call of the connection */
    uint8_t *dst;    /* where the SSL may write directly: only within one call, otherwise NULL */
    size_t room;
    struct buf out;          /* what it wrote when there was no room, or outside such a call */
    bool no_memory;          /* output was lost */
    uint64_t taken;          /* bytes that the SSL has read */
    struct account *account; /* charged for out; may be NULL */
};
void tls_bytes_fini(struct tls_bytes *bytes);

/* Shared by any number of connections; the caller frees it after them with BIO_meth_free. NULL: no
 * memory. */
struct bio_method_st *tls_bytes_method_new(void);

/* The SSL uses these bytes from now on. False: no memory. */
bool tls_bytes_attach(struct tls_bytes *bytes, const struct bio_method_st *method,
                      struct ssl_st *ssl);

/* How many bytes may be encrypted so that the result fits into room. */
size_t tls_bytes_plain_room(size_t room);

/* From now on the SSL writes to dst; what was written before comes first. */
void tls_bytes_begin_fill(struct tls_bytes *bytes, uint8_t *dst, size_t room);
/* Returns the number of bytes that were written to dst. */
size_t tls_bytes_end_fill(struct tls_bytes *bytes, const uint8_t *dst);

#endif
