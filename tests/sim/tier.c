#include "tier.h"

#include "actors.h"
#include "base/clock.h"
#include "cmd/serve/tier.h"
#include "coverage.h"
#include "engine/engine.h"
#include "kube/policy/access/identity.h"
#include "kube/request/tokens.h"
#include "kubeclient/informer/fetcher.h"
#include "plants.h"
#include "server/server.h"
#include "tls.h"
#include "trace.h"

#include <stdio.h>
#include <string.h>

static struct {
    struct kube_tokens *tokens; /* owned */
    struct serve_tier serve;
    struct config_tier config;
    char link_endpoint[64];
    bool ends_early;
    int64_t throttled_until_ns, failing_until_ns;
    bool token_has_expired;
} tier;

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    trace_line("the tier: %s", text);
}

/* -- What happens to it -- */

void tier_throttle(int64_t until_ns)
{
    tier.throttled_until_ns = until_ns;
}

void tier_fail_reads(int64_t until_ns)
{
    tier.failing_until_ns = until_ns;
}

bool tier_reads_have_failed(void)
{
    enum { CALL_S = 10 };
    return actors_now() < tier.failing_until_ns + CALL_S * NS_PER_S;
}

bool tier_has_mirror(void)
{
    char reason[ENGINE_REASON_BYTES];
    return tier.serve.tier && tier_is_ready(tier.serve.tier, reason);
}

void tier_expire_token(void)
{
    tier.token_has_expired = true;
}

const struct kube_user *__real_kube_tokens_find(const struct kube_tokens *tokens,
                                                struct slice field);
const struct kube_user *__wrap_kube_tokens_find(const struct kube_tokens *tokens,
                                                struct slice field);
const struct kube_user *__wrap_kube_tokens_find(const struct kube_tokens *tokens,
                                                struct slice field)
{
    const struct kube_user *user = __real_kube_tokens_find(tokens, field);
    return user && tier.token_has_expired && slice_is(user->name, "dan") ? NULL : user;
}

static bool is_refused(struct kube_status *status)
{
    if (actors_now() >= tier.throttled_until_ns || random_below(actors_random(), 2))
        return false;
    coverage_add(COVERAGE_THROTTLED);
    return !kube_fail_later(status, SLICE_LITERAL("too many requests, please try again later"));
}

static bool contains(struct slice text, const char *part)
{
    return text.len && memmem(text.ptr, text.len, part, strlen(part));
}

static bool has_failed(const struct http_request *request, struct kube_status *status)
{
    if (actors_now() >= tier.failing_until_ns || !slice_is(request->method, "GET") ||
        !contains(request->path, "/configmaps") || contains(request->query, "watch="))
        return false;
    coverage_add(COVERAGE_UNREADABLE);
    return !kube_fail(status, KUBE_INTERNAL_ERROR, "conversion webhook failed");
}

void __real_kube_identity_begin(struct kube_access *access, struct http_exchange *x,
                                const struct http_request *request, bool keep);
void __wrap_kube_identity_begin(struct kube_access *access, struct http_exchange *x,
                                const struct http_request *request, bool keep);
void __wrap_kube_identity_begin(struct kube_access *access, struct http_exchange *x,
                                const struct http_request *request, bool keep)
{
    struct kube_status status = {0};
    if (!is_refused(&status) && !has_failed(request, &status)) {
        __real_kube_identity_begin(access, x, request, keep);
        return;
    }
    http_exchange_set_user(x, NULL);
    kube_refuse(x, &status);
}

/* Watches of informers, too. */
void __real_fetcher_request(struct fetcher *fetcher, const struct reflector_request *request);
void __wrap_fetcher_request(struct fetcher *fetcher, const struct reflector_request *request);
void __wrap_fetcher_request(struct fetcher *fetcher, const struct reflector_request *request)
{
    enum { EARLY_S = 6 };
    struct reflector_request changed = *request;
    if (plant_is(PLANT_TIER_UNPROVEN) && request->kind == REFLECTOR_LISTING && !*request->version)
        changed.version = "0";
    if (tier.ends_early && request->timeout_s > EARLY_S)
        changed.timeout_s = 1 + (int)random_below(actors_random(), EARLY_S);
    __real_fetcher_request(fetcher, &changed);
}

/* -- Life -- */

void tier_begin(uint64_t seed)
{
    tier.ends_early = seed % 2;
    tier.throttled_until_ns = tier.failing_until_ns = 0;
    tier.token_has_expired = false;
    static const char users[] = "root,root,1,\"system:masters\"\n"
                                "tier,tier,2,\"system:masters\"\n"
                                "ann,ann,3\n"
                                "eve,eve,4\n"
                                "dan,dan,5,\"system:masters\"\n";
    struct error error;
    enum status status = kube_tokens_parse("users", slice_from_text(users), &tier.tokens, &error);
    assert(status == ST_OK);
    (void)status;
}

void tier_end(void)
{
    kube_tokens_free(tier.tokens);
    tier.tokens = NULL;
    tier.ends_early = false;
}

void tier_configure(struct server_config *config)
{
    static const struct slice kept[] = {SLICE_LITERAL("configmaps")};
    vigil_kube_options *client = &tier.config.client;
    snprintf(tier.link_endpoint, sizeof(tier.link_endpoint), "%s",
             sim_tls_endpoint(TIER_LINK_ENDPOINT));
    vigil_kube_options_init(client);
    client->server = tier.link_endpoint;
    client->ca_file = sim_tls_ca_file();
    client->token = "tier";
    client->calls_per_second = 0;
    client->connect_timeout_ms = 1000;
    tier.config.options = (struct tier_options){
        .client = client,
        .resources = kept,
        .resource_count = COUNT_OF(kept),
        .reads = TIER_READS_FENCE,
        .rights_ttl_ns = 2 * NS_PER_S,
        .history_ns = 30 * NS_PER_S,
    };
    serve_tier_init(&tier.serve, &tier.config);
    tier.serve.options.log = on_log;
    config->face = &tier.serve.face;
}

void tier_configure_upstream(struct server_config *config)
{
    config->kube.tokens = tier.tokens;
    config->kube.authorization = KUBE_AUTHORIZATION_RBAC;
}
