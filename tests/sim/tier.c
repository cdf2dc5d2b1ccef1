#include "tier.h"

#include "base/clock.h"
#include "cmd/serve/tier.h"
#include "kube/request/tokens.h"
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
} tier;

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    trace_line("the tier: %s", text);
}

void tier_begin(void)
{
    static const char users[] = "root,root,1,\"system:masters\"\n"
                                "tier,tier,2,\"system:masters\"\n"
                                "ann,ann,3\n"
                                "eve,eve,4\n";
    struct error error;
    enum status status = kube_tokens_parse("users", slice_from_text(users), &tier.tokens, &error);
    assert(status == ST_OK);
    (void)status;
}

void tier_end(void)
{
    kube_tokens_free(tier.tokens);
    tier.tokens = NULL;
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
