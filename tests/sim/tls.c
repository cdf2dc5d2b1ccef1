/* A method for random numbers: a provider would be much more. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "tls.h"

#include "base/random.h"
#include "net/tls/certs_test.h"

#include <openssl/rand.h>
#include <sys/mman.h>

/* Files in memory: nothing is left when a run ends early. */
struct memory_file {
    int fd;
    char path[32];
};

static struct {
    bool on;
    struct random random;
    struct memory_file ca, cert, key;
} tls;

static int random_bytes(unsigned char *to, int len)
{
    random_fill(&tls.random, to, (size_t)len);
    return 1;
}

static int random_status(void)
{
    return 1;
}

static const RAND_METHOD seeded = {
    .bytes = random_bytes, .pseudorand = random_bytes, .status = random_status};

static void open_file(struct memory_file *file)
{
    file->fd = memfd_create("vigil-sim", MFD_CLOEXEC);
    test_must(file->fd >= 0, "file");
    snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

/* The time is not in them, because the length of a signature depends on what is signed. */
static void make_files(void)
{
    struct test_identity ca = test_identity_make(
        TEST_WISH(.common_name = "sim", .authority = true, .always = true), NULL);
    struct test_identity server = test_identity_make(
        TEST_WISH(.names = "IP:127.0.0.1", .usage = "serverAuth", .always = true), &ca);
    test_write_certificate(tls.ca.path, ca.certificate);
    test_write_certificate(tls.cert.path, server.certificate);
    test_write_key(tls.key.path, server.key);
    test_identity_free(&server);
    test_identity_free(&ca);
}

void sim_tls_begin(uint64_t seed)
{
    random_init(&tls.random, seed);
    test_must(RAND_set_rand_method(&seeded) == 1, "random numbers");
    open_file(&tls.ca);
    open_file(&tls.cert);
    open_file(&tls.key);
    make_files();
    tls.on = true;
}

void sim_tls_end(void)
{
    if (!tls.on)
        return;
    close(tls.ca.fd);
    close(tls.cert.fd);
    close(tls.key.fd);
    tls.on = false;
}

const char *sim_tls_endpoint(const char *endpoints)
{
    static char secure[128];
    static const char plain[] = "http://";
    const size_t plain_len = sizeof(plain) - 1;
    size_t len = 0;
    if (!tls.on)
        return endpoints;
    while (*endpoints) {
        size_t next = strcspn(endpoints, ",") + 1;
        test_must(strncmp(endpoints, plain, plain_len) == 0, "endpoint");
        next -= !endpoints[next - 1];
        len += (size_t)snprintf(secure + len, sizeof(secure) - len, "https://%.*s",
                                (int)(next - plain_len), endpoints + plain_len);
        test_must(len < sizeof(secure), "endpoints");
        endpoints += next;
    }
    return secure;
}

struct tls_options sim_tls_options(void)
{
    struct tls_options options = TLS_OPTIONS_NONE;
    if (tls.on) {
        options.cert_file = tls.cert.path;
        options.key_file = tls.key.path;
    }
    return options;
}

const char *sim_tls_ca_file(void)
{
    return tls.on ? tls.ca.path : NULL;
}
