#include "server/tls.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "net/server.h"
#include "net/tls/server_context.h"

#include <stdio.h>
#include <time.h>

/* Log lines about refused clients are limited, so that attackers cannot fill the disk. */
enum { REJECTIONS_BURST = 100, REJECTIONS_PER_S = 10 };

struct wrap {
    struct net_tls tls;
    struct protocol_kind kind;
};

struct server_tls {
    struct tls_options options; /* the config's, or with a self-signed certificate */
    struct tls_auto own;
    struct tls_source *source; /* owned */
    struct net_tls_limits limits;
    struct wrap wraps[NET_LISTENERS_MAX];
    unsigned wrap_count;

    struct lock lock; /* guards what follows */
    int64_t refilled_ns;
    int64_t tokens;
    uint64_t rejections;
    uint64_t unsaid; /* rejections that were not logged since the last line */
};

/* -- the log -- */

/* False: the limit is reached. ret_unsaid is the number of rejections that were not logged. */
static bool may_say(struct server_tls *t, uint64_t *ret_unsaid)
{
    LOCK_SCOPE(&t->lock);
    int64_t now = clock_mono_ns(clock_system());
    int64_t refill = (now - t->refilled_ns) * REJECTIONS_PER_S / NS_PER_S;
    if (refill > 0) {
        t->tokens = t->tokens + refill < REJECTIONS_BURST ? t->tokens + refill : REJECTIONS_BURST;
        t->refilled_ns = now;
    }
    *ret_unsaid = t->unsaid;
    t->unsaid = t->tokens > 0 ? 0 : t->unsaid + 1;
    return t->tokens > 0 && t->tokens--;
}

static void count_rejection(struct server_tls *t)
{
    LOCK_SCOPE(&t->lock);
    t->rejections++;
}

static void on_rejection(void *ctx, const struct tls_rejection *r)
{
    enum log_level level = r->left ? LOG_DEBUG : LOG_WARN;
    if (!r->left)
        count_rejection(ctx);
    uint64_t unsaid;
    if (!log_enabled(level) || !may_say(ctx, &unsaid))
        return;
    struct log_field more = {.key = NULL};
    if (unsaid)
        more = LOG_U64("unlogged-rejections", unsaid);
    if (r->dns_names)
        LOG_AT(level, "rejected connection on client endpoint",
               LOG_TEXT("remote-addr", r->remote_address), LOG_TEXT("server-name", r->server_name),
               LOG_LIST("ip-addresses", r->ip_addresses), LOG_LIST("dns-names", r->dns_names),
               LOG_TEXT("error", r->reason), more);
    else
        LOG_AT(level, "rejected connection on client endpoint",
               LOG_TEXT("remote-addr", r->remote_address), LOG_TEXT("server-name", r->server_name),
               LOG_TEXT("error", r->reason), more);
}

static void on_reload(void *ctx)
{
    const struct server_tls *t = ctx;
    log_info("TLS files have changed; new connections use them",
             LOG_TEXT("cert-file", t->options.cert_file), LOG_TEXT("key-file", t->options.key_file),
             LOG_TEXT("trusted-ca-file", t->options.trusted_ca_file),
             LOG_TEXT("client-crl-file", t->options.crl_file));
}

static void on_failure(void *ctx, const char *why)
{
    const struct server_tls *t = ctx;
    log_warn("TLS files have changed and cannot be used; new connections use the old ones",
             LOG_TEXT("cert-file", t->options.cert_file), LOG_TEXT("key-file", t->options.key_file),
             LOG_TEXT("error", why));
}

static void tell_missing_suites(const struct tls_options *options)
{
    struct tls_suites suites;
    struct error unused;
    if (tls_suites_parse(options->cipher_suites, &suites, &unused) == ST_OK && *suites.missing)
        log_warn("cipher suites that OpenSSL does not have are left out",
                 LOG_LIST("cipher-suites", suites.missing));
}

void server_tls_tell(const struct tls_options *options)
{
    char text[LOG_TEXT_BYTES];
    snprintf(text, sizeof(text),
             "cert = %s, key = %s, client-cert=, client-key=, trusted-ca = %s, "
             "client-cert-auth = %s, crl-file = %s",
             options->cert_file, options->key_file, options->trusted_ca_file,
             options->client_cert_auth ? "true" : "false", options->crl_file);
    log_info("starting with client TLS", LOG_TEXT("tls-info", text),
             LOG_LIST("cipher-suites", options->cipher_suites));
}

/* -- The self-signed certificate -- */

static void tell_own(const struct tls_auto *own)
{
    char until[32];
    time_t not_after = (time_t)own->not_after_s;
    struct tm utc;
    strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&not_after, &utc));
    log_warn("automatically generate certificates",
             LOG_TEXT("certificate-validity-bound-not-after", until));
    log_info("created cert file", LOG_TEXT("path", own->cert_file));
    log_info("created key file", LOG_TEXT("path", own->key_file));
}

static enum status make_own(struct server_tls *t, const struct server_tls_config *config,
                            const char *data_dir, const struct url *urls, size_t url_count,
                            struct error *error)
{
    char directory[PATH_MAX];
    if (snprintf(directory, sizeof(directory), "%s/fixtures/client", data_dir) >= PATH_MAX)
        return error_set(error, ST_INVALID, "the data directory's path is too long");
    struct address *addresses = xcalloc(url_count, sizeof(*addresses));
    for (size_t i = 0; i < url_count; i++)
        addresses[i] = urls[i].address;
    enum status status =
        tls_auto_open(directory, addresses, url_count, clock_real_ns(clock_system()) / NS_PER_S,
                      config->automatic_years, &t->own, error);
    free(addresses);
    TRY(status);
    t->options.cert_file = t->own.cert_file;
    t->options.key_file = t->own.key_file;
    if (t->own.made)
        tell_own(&t->own);
    server_tls_tell(&t->options);
    return ST_OK;
}

/* -- the whole -- */

enum status server_tls_new(const struct server_tls_config *config, const char *data_dir,
                           const struct url *urls, size_t url_count, unsigned shards,
                           struct server_tls **ret_tls, struct error *error)
{
    AUTO(server_tls_freep) struct server_tls *t = xcalloc(1, sizeof(*t));
    lock_init(&t->lock);
    t->tokens = REJECTIONS_BURST;
    t->refilled_ns = clock_mono_ns(clock_system());
    t->options = config->options;
    t->limits = config->limits;
    t->limits.handshakes_max = (config->limits.handshakes_max + shards - 1) / shards;
    if (!*t->options.cert_file && !*t->options.key_file && config->automatic)
        TRY(make_own(t, config, data_dir, urls, url_count, error));
    struct tls_source_hooks hooks = {.on_reload = on_reload, .on_failure = on_failure, .ctx = t};
    struct tls_recipe recipe;
    TRY(tls_server_recipe(&t->options, &recipe, error));
    TRY(tls_source_new(&recipe, hooks, &t->source, error));
    tell_missing_suites(&t->options);
    *ret_tls = TAKE(t);
    return ST_OK;
}

void server_tls_free(struct server_tls *t)
{
    if (!t)
        return;
    tls_source_free(t->source);
    lock_fini(&t->lock);
    free(t);
}

struct tls_stats server_tls_stats(struct server_tls *t)
{
    struct tls_stats stats = tls_source_stats(t->source);
    LOCK_SCOPE(&t->lock);
    stats.rejections = t->rejections;
    return stats;
}

const struct protocol_kind *server_tls_wrap(struct server_tls *t, const struct protocol_kind *inner,
                                            bool plain_too)
{
    for (unsigned i = 0; i < t->wrap_count; i++)
        if (t->wraps[i].tls.inner == inner && t->wraps[i].tls.plain_too == plain_too)
            return &t->wraps[i].kind;
    assert(t->wrap_count < NET_LISTENERS_MAX);
    struct wrap *wrap = &t->wraps[t->wrap_count++];
    wrap->tls = (struct net_tls){.inner = inner,
                                 .source = t->source,
                                 .plain_too = plain_too,
                                 .limits = t->limits,
                                 .on_rejection = on_rejection,
                                 .ctx = t};
    wrap->kind = net_tls_kind(&wrap->tls);
    return &wrap->kind;
}
