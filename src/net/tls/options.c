#include "net/tls/options.h"

#include "base/options/value.h"
#include "base/slice.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

enum status tls_version_parse(const char *text, enum tls_version *ret_version, struct error *error)
{
    if (!*text)
        *ret_version = TLS_VERSION_DEFAULT;
    else if (strcmp(text, "TLS1.2") == 0)
        *ret_version = TLS_VERSION_1_2;
    else if (strcmp(text, "TLS1.3") == 0)
        *ret_version = TLS_VERSION_1_3;
    else
        return error_set(error, ST_INVALID,
                         "unexpected TLS version \"%.100s\" (must be one of: TLS1.2, TLS1.3)",
                         text);
    return ST_OK;
}

/* -- ciphers -- */

struct suite {
    const char *name;    /* in Go */
    const char *openssl; /* NULL: a cipher of TLS 1.3, which cannot be chosen in Go */
};

/* In Go's order of preference on machines with AES. */
static const struct suite suites[] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"},
};
/* Offered only if they are named. */
static const struct suite suites_by_name[] = {
    {"TLS_AES_128_GCM_SHA256", NULL},
    {"TLS_AES_256_GCM_SHA384", NULL},
    {"TLS_CHACHA20_POLY1305_SHA256", NULL},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256"},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"},
    {"TLS_RSA_WITH_RC4_128_SHA", "RC4-SHA"},
    {"TLS_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", "ECDHE-ECDSA-RC4-SHA"},
    {"TLS_ECDHE_RSA_WITH_RC4_128_SHA", "ECDHE-RSA-RC4-SHA"},
    {"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "ECDHE-RSA-DES-CBC3-SHA"},
};

static const struct suite *find_in(const struct suite *rows, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, slice_from_text(rows[i].name)))
            return &rows[i];
    return NULL;
}

static const struct suite *find_suite(struct slice name)
{
    const struct suite *found = find_in(suites, COUNT_OF(suites), name);
    return found ? found : find_in(suites_by_name, COUNT_OF(suites_by_name), name);
}

static void append(char *list, size_t bytes, const char *item, char separator)
{
    size_t len = strlen(list);
    if (len)
        snprintf(list + len, bytes - len, "%c%s", separator, item);
    else
        snprintf(list, bytes, "%s", item);
}

/* OpenSSL may be built without some old ciphers. */
static bool available(SSL_CTX *probe, const char *openssl_name)
{
    return !probe || SSL_CTX_set_cipher_list(probe, openssl_name) == 1;
}

enum status tls_suites_parse(const char *names, struct tls_suites *ret_suites, struct error *error)
{
    struct tls_suites result = {{0}, {0}};
    struct slice name;
    size_t count = 0;
    for (const char *rest = names; option_list_next(&rest, &name); count++) {
        const struct suite *suite = find_suite(name);
        if (!suite)
            return error_set(error, ST_INVALID, "unexpected TLS cipher suite \"%.*s\"",
                             (int)size_min(name.len, 100), (const char *)name.ptr);
        if (count >= COUNT_OF(suites) + COUNT_OF(suites_by_name))
            return error_set(error, ST_INVALID, "a TLS cipher suite is given more than once");
    }
    /* Making one takes most of the processor time of a start, so it is made only for names. */
    SSL_CTX *probe = count ? SSL_CTX_new(TLS_server_method()) : NULL;
    for (const char *rest = names; option_list_next(&rest, &name);) {
        const struct suite *suite = find_suite(name);
        if (suite->openssl && available(probe, suite->openssl))
            append(result.list, sizeof(result.list), suite->openssl, ':');
        else if (suite->openssl)
            append(result.missing, sizeof(result.missing), suite->name, ',');
    }
    SSL_CTX_free(probe);
    for (size_t i = 0; count == 0 && i < COUNT_OF(suites); i++)
        append(result.list, sizeof(result.list), suites[i].openssl, ':');
    *ret_suites = result;
    return ST_OK;
}

/* -- the rules between options -- */

static const char *version_name(enum tls_version version)
{
    return version == TLS_VERSION_1_3 ? "TLS1.3" : version == TLS_VERSION_1_2 ? "TLS1.2" : "";
}

enum status tls_options_check(const struct tls_options *o, struct error *error)
{
    if (o->max_version != TLS_VERSION_DEFAULT && o->min_version > o->max_version)
        return error_set(error, ST_INVALID, "min version (%s) is greater than max version (%s)",
                         version_name(o->min_version), version_name(o->max_version));
    if (o->min_version == TLS_VERSION_1_3 && *o->cipher_suites)
        return error_set(error, ST_INVALID,
                         "cipher suites cannot be configured when only TLS1.3 is enabled");
    struct tls_suites unused;
    TRY(tls_suites_parse(o->cipher_suites, &unused, error));
    if (!*o->cert_file != !*o->key_file)
        return error_set(error, ST_INVALID,
                         "KeyFile and CertFile must both be present[key: %.200s, cert: %.200s]",
                         o->key_file, o->cert_file);
    if (*o->allowed_cns && *o->allowed_hostnames)
        return error_set(
            error, ST_INVALID,
            "AllowedCNs and AllowedHostnames are mutually exclusive (cns=%.100s, hostnames=%.100s)",
            o->allowed_cns, o->allowed_hostnames);
    return ST_OK;
}
