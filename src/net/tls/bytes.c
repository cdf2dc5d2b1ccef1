#include "net/tls/bytes.h"

#include "base/memory/budget.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

enum {
    RECORD_BYTES = 16 * 1024,
    RECORD_OVERHEAD = 128, /* more than any cipher adds */
};

static int take_in(BIO *bio, char *to, int len)
{
    struct tls_bytes *bytes = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0)
        return 0;
    size_t n = size_min((size_t)len, bytes->in.len);
    if (n == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(to, bytes->in.ptr, n);
    bytes->in = slice_sub(bytes->in, n, bytes->in.len - n);
    bytes->taken += n;
    return (int)n;
}

static int put_out(BIO *bio, const char *from, int len)
{
    struct tls_bytes *bytes = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0)
        return 0;
    size_t direct = bytes->out.len ? 0 : size_min((size_t)len, bytes->room);
    struct slice rest = slice_of(from + direct, (size_t)len - direct);
    if (account_append(bytes->account, &bytes->out, rest) != ST_OK) {
        bytes->no_memory = true;
        return -1;
    }
    if (direct) {
        memcpy(bytes->dst, from, direct);
        bytes->dst += direct;
        bytes->room -= direct;
    }
    return len;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH; /* other commands are not supported */
}

BIO_METHOD *tls_bytes_method_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "bytes");
    if (method &&
        (BIO_meth_set_read(method, take_in) != 1 || BIO_meth_set_write(method, put_out) != 1 ||
         BIO_meth_set_ctrl(method, control) != 1)) {
        BIO_meth_free(method);
        return NULL;
    }
    return method;
}

bool tls_bytes_attach(struct tls_bytes *bytes, const BIO_METHOD *method, SSL *ssl)
{
    BIO *bio = BIO_new(method);
    if (!bio)
        return false;
    BIO_set_data(bio, bytes);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    return true;
}

void tls_bytes_fini(struct tls_bytes *bytes)
{
    account_buf_fini(bytes->account, &bytes->out);
}

size_t tls_bytes_plain_room(size_t room)
{
    size_t overhead = (room / RECORD_BYTES + 1) * RECORD_OVERHEAD;
    return room > overhead ? room - overhead : 0;
}

void tls_bytes_begin_fill(struct tls_bytes *bytes, uint8_t *dst, size_t room)
{
    size_t n = size_min(bytes->out.len, room);
    slice_copy(dst, slice_of(bytes->out.ptr, n));
    bytes->dst = dst + n;
    bytes->room = room - n;
    buf_consume(&bytes->out, n);
    if (bytes->out.len == 0)
        account_buf_fini(bytes->account, &bytes->out);
}

size_t tls_bytes_end_fill(struct tls_bytes *bytes, const uint8_t *dst)
{
    size_t filled = (size_t)(bytes->dst - dst);
    bytes->dst = NULL;
    bytes->room = 0;
    return filled;
}
