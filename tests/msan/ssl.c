/* OpenSSL's libssl, as the memory sanitizer has to see it: what it is given must be defined, and
 * what it returns or passes to callbacks is. */
#include "openssl.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

/* A call from OpenSSL to our code, in which everything is checked again. */
#define CALL_BACK(type, function, ...)              \
    ({                                              \
        __msan_scoped_enable_interceptor_checks();  \
        type result_ = function(__VA_ARGS__);       \
        __msan_scoped_disable_interceptor_checks(); \
        result_;                                    \
    })

/* -- Contexts -- */

__attribute__((constructor(102))) static void prepare(void)
{
    CALL(int, OPENSSL_init_ssl, 0, NULL);
}

PLAIN(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *method), method)
PLAIN(int, SSL_CTX_set_cipher_list, (SSL_CTX * context, const char *names), context, names)
PLAIN(int, SSL_CTX_set_default_verify_paths, (SSL_CTX * context), context)
PLAIN(int, SSL_CTX_use_certificate_chain_file, (SSL_CTX * context, const char *file), context, file)
PLAIN(int, SSL_CTX_use_PrivateKey_file, (SSL_CTX * context, const char *file, int type), context,
      file, type)
PLAIN(int, SSL_CTX_set_alpn_protos, (SSL_CTX * context, const unsigned char *names, unsigned count),
      context, names, count)
PLAIN(int, SSL_set_alpn_protos, (SSL * ssl, const unsigned char *names, unsigned count), ssl, names,
      count)

/* -- Connections -- */

PLAIN(int, SSL_do_handshake, (SSL * ssl), ssl)
PLAIN(int, SSL_shutdown, (SSL * ssl), ssl)

int REAL(SSL_read_ex)(SSL *ssl, void *ret_bytes, size_t room, size_t *ret_count);
int WRAP(SSL_read_ex)(SSL *ssl, void *ret_bytes, size_t room, size_t *ret_count);
int WRAP(SSL_read_ex)(SSL *ssl, void *ret_bytes, size_t room, size_t *ret_count)
{
    int ok = CALL(int, REAL(SSL_read_ex), ssl, ret_bytes, room, ret_count);
    is_defined(ret_count, sizeof(*ret_count));
    if (ok == 1)
        is_defined(ret_bytes, *ret_count);
    return ok;
}

int REAL(SSL_read)(SSL *ssl, void *ret_bytes, int room);
int WRAP(SSL_read)(SSL *ssl, void *ret_bytes, int room);
int WRAP(SSL_read)(SSL *ssl, void *ret_bytes, int room)
{
    int count = CALL(int, REAL(SSL_read), ssl, ret_bytes, room);
    if (count > 0)
        is_defined(ret_bytes, (size_t)count);
    return count;
}

int REAL(SSL_write_ex)(SSL *ssl, const void *bytes, size_t count, size_t *ret_count);
int WRAP(SSL_write_ex)(SSL *ssl, const void *bytes, size_t count, size_t *ret_count);
int WRAP(SSL_write_ex)(SSL *ssl, const void *bytes, size_t count, size_t *ret_count)
{
    must_be_defined(bytes, count);
    int ok = CALL(int, REAL(SSL_write_ex), ssl, bytes, count, ret_count);
    is_defined(ret_count, sizeof(*ret_count));
    return ok;
}

int REAL(SSL_write)(SSL *ssl, const void *bytes, int count);
int WRAP(SSL_write)(SSL *ssl, const void *bytes, int count);
int WRAP(SSL_write)(SSL *ssl, const void *bytes, int count)
{
    must_be_defined(bytes, (size_t)count);
    return CALL(int, REAL(SSL_write), ssl, bytes, count);
}

void REAL(SSL_get0_alpn_selected)(const SSL *ssl, const unsigned char **ret_name,
                                  unsigned *ret_count);
void WRAP(SSL_get0_alpn_selected)(const SSL *ssl, const unsigned char **ret_name,
                                  unsigned *ret_count);
void WRAP(SSL_get0_alpn_selected)(const SSL *ssl, const unsigned char **ret_name,
                                  unsigned *ret_count)
{
    REAL(SSL_get0_alpn_selected)(ssl, ret_name, ret_count);
    is_defined(ret_name, sizeof(*ret_name));
    is_defined(ret_count, sizeof(*ret_count));
    is_defined(*ret_name, *ret_count);
}

const char *REAL(SSL_get_servername)(const SSL *ssl, int type);
const char *WRAP(SSL_get_servername)(const SSL *ssl, int type);
const char *WRAP(SSL_get_servername)(const SSL *ssl, int type)
{
    const char *name = REAL(SSL_get_servername)(ssl, type);
    if (name)
        __msan_unpoison_string(name);
    return name;
}

int REAL(SSL_select_next_proto)(unsigned char **ret_name, unsigned char *ret_count,
                                const unsigned char *ours, unsigned ours_count,
                                const unsigned char *offered, unsigned offered_count);
int WRAP(SSL_select_next_proto)(unsigned char **ret_name, unsigned char *ret_count,
                                const unsigned char *ours, unsigned ours_count,
                                const unsigned char *offered, unsigned offered_count);
int WRAP(SSL_select_next_proto)(unsigned char **ret_name, unsigned char *ret_count,
                                const unsigned char *ours, unsigned ours_count,
                                const unsigned char *offered, unsigned offered_count)
{
    int found = CALL(int, REAL(SSL_select_next_proto), ret_name, ret_count, ours, ours_count,
                     offered, offered_count);
    is_defined(ret_name, sizeof(*ret_name));
    is_defined(ret_count, sizeof(*ret_count));
    return found;
}

/* -- Callbacks with an argument -- */

/* What a callback of a context is called with instead of its own argument; never freed. */
struct callback {
    int (*verify)(X509_STORE_CTX *chain, void *arg);
    SSL_CTX_alpn_select_cb_func choose;
    void *arg;
};

static struct callback *callback_new(struct callback callback)
{
    void *kept; /* without malloc, which a test may let fail */
    if (posix_memalign(&kept, _Alignof(struct callback), sizeof(callback)) != 0)
        abort();
    memcpy(kept, &callback, sizeof(callback));
    return kept;
}

NOT_INSTRUMENTED static int on_verify(X509_STORE_CTX *chain, void *arg)
{
    struct callback *callback = arg;
    return CALL_BACK(int, callback->verify, chain, callback->arg);
}

NOT_INSTRUMENTED static int on_choose(SSL *ssl, const unsigned char **ret_name,
                                      unsigned char *ret_count, const unsigned char *offered,
                                      unsigned count, void *arg)
{
    struct callback *callback = arg;
    is_defined(offered, count);
    return CALL_BACK(int, callback->choose, ssl, ret_name, ret_count, offered, count,
                     callback->arg);
}

void REAL(SSL_CTX_set_cert_verify_callback)(SSL_CTX *context,
                                            int (*verify)(X509_STORE_CTX *chain, void *arg),
                                            void *arg);
void WRAP(SSL_CTX_set_cert_verify_callback)(SSL_CTX *context,
                                            int (*verify)(X509_STORE_CTX *chain, void *arg),
                                            void *arg);
void WRAP(SSL_CTX_set_cert_verify_callback)(SSL_CTX *context,
                                            int (*verify)(X509_STORE_CTX *chain, void *arg),
                                            void *arg)
{
    struct callback *callback = callback_new((struct callback){.verify = verify, .arg = arg});
    REAL(SSL_CTX_set_cert_verify_callback)(context, on_verify, callback);
}

void REAL(SSL_CTX_set_alpn_select_cb)(SSL_CTX *context, SSL_CTX_alpn_select_cb_func choose,
                                      void *arg);
void WRAP(SSL_CTX_set_alpn_select_cb)(SSL_CTX *context, SSL_CTX_alpn_select_cb_func choose,
                                      void *arg);
void WRAP(SSL_CTX_set_alpn_select_cb)(SSL_CTX *context, SSL_CTX_alpn_select_cb_func choose,
                                      void *arg)
{
    struct callback *callback = callback_new((struct callback){.choose = choose, .arg = arg});
    REAL(SSL_CTX_set_alpn_select_cb)(context, on_choose, callback);
}

/* -- Callbacks without one: a program has one of each -- */

static void (*info_fn)(const SSL *ssl, int where, int value);
static int (*read_fn)(BIO *bio, char *ret_bytes, int room);
static int (*write_fn)(BIO *bio, const char *bytes, int count);
static long (*control_fn)(BIO *bio, int command, long number, void *pointer);

NOT_INSTRUMENTED static void on_info(const SSL *ssl, int where, int value)
{
    info_fn(ssl, where, value);
}

NOT_INSTRUMENTED static int on_read(BIO *bio, char *ret_bytes, int room)
{
    return CALL_BACK(int, read_fn, bio, ret_bytes, room);
}

NOT_INSTRUMENTED static int on_write(BIO *bio, const char *bytes, int count)
{
    is_defined(bytes, (size_t)count);
    return CALL_BACK(int, write_fn, bio, bytes, count);
}

NOT_INSTRUMENTED static long on_control(BIO *bio, int command, long number, void *pointer)
{
    return CALL_BACK(long, control_fn, bio, command, number, pointer);
}

void REAL(SSL_CTX_set_info_callback)(SSL_CTX *context,
                                     void (*fn)(const SSL *ssl, int where, int value));
void WRAP(SSL_CTX_set_info_callback)(SSL_CTX *context,
                                     void (*fn)(const SSL *ssl, int where, int value));
void WRAP(SSL_CTX_set_info_callback)(SSL_CTX *context,
                                     void (*fn)(const SSL *ssl, int where, int value))
{
    info_fn = fn;
    REAL(SSL_CTX_set_info_callback)(context, on_info);
}

int REAL(BIO_meth_set_read)(BIO_METHOD *method, int (*fn)(BIO *bio, char *ret_bytes, int room));
int WRAP(BIO_meth_set_read)(BIO_METHOD *method, int (*fn)(BIO *bio, char *ret_bytes, int room));
int WRAP(BIO_meth_set_read)(BIO_METHOD *method, int (*fn)(BIO *bio, char *ret_bytes, int room))
{
    read_fn = fn;
    return REAL(BIO_meth_set_read)(method, on_read);
}

int REAL(BIO_meth_set_write)(BIO_METHOD *method, int (*fn)(BIO *bio, const char *bytes, int count));
int WRAP(BIO_meth_set_write)(BIO_METHOD *method, int (*fn)(BIO *bio, const char *bytes, int count));
int WRAP(BIO_meth_set_write)(BIO_METHOD *method, int (*fn)(BIO *bio, const char *bytes, int count))
{
    write_fn = fn;
    return REAL(BIO_meth_set_write)(method, on_write);
}

int REAL(BIO_meth_set_ctrl)(BIO_METHOD *method,
                            long (*fn)(BIO *bio, int command, long number, void *pointer));
int WRAP(BIO_meth_set_ctrl)(BIO_METHOD *method,
                            long (*fn)(BIO *bio, int command, long number, void *pointer));
int WRAP(BIO_meth_set_ctrl)(BIO_METHOD *method,
                            long (*fn)(BIO *bio, int command, long number, void *pointer))
{
    control_fn = fn;
    return REAL(BIO_meth_set_ctrl)(method, on_control);
}
