#include "kube/webhook/peer.h"

#include "base/xalloc.h"
#include "kube/webhook/endpoints.h"
#include "net/tls/client.h"

#include <stdio.h>

/* -- The copy of the target -- */

static bool copy(struct arena *arena, struct slice *text)
{
    return arena_dup(arena, *text, text) == ST_OK;
}

static bool copy_target(struct kube_webhook_peer *peer, const struct kube_webhook_target *target)
{
    struct kube_webhook_target *t = &peer->target;
    *t = *target;
    return copy(&peer->arena, &t->url) && copy(&peer->arena, &t->service_namespace) &&
           copy(&peer->arena, &t->service_name) && copy(&peer->arena, &t->service_path) &&
           copy(&peer->arena, &t->ca_pem) && copy(&peer->arena, &t->host) &&
           copy(&peer->arena, &t->authority) && copy(&peer->arena, &t->path);
}

/* -- TLS -- */

static bool has_certificate(const struct kube_webhook_credentials *credentials)
{
    return credentials && (*credentials->cert_file || credentials->cert_pem.len);
}

static const struct kube_webhook_credentials *credentials_of(
    const struct kube_webhook_settings *settings, const struct kube_webhook_target *target,
    enum kube_webhook_use use)
{
    return kube_webhook_credentials_find(&settings->users[use], target->host, target->port);
}

bool kube_webhook_peer_shares_tls(const struct kube_webhook_settings *settings,
                                  const struct kube_webhook_target *target,
                                  enum kube_webhook_use use)
{
    return !target->ca_pem.len && !has_certificate(credentials_of(settings, target, use));
}

static enum status open_tls(struct kube_webhook_peer *peer, struct error *error)
{
    const struct kube_webhook_credentials *c = peer->credentials;
    struct tls_client_options options = TLS_CLIENT_OPTIONS_NONE;
    options.ca_pem = peer->target.ca_pem;
    if (has_certificate(c)) {
        options.cert_file = c->cert_file;
        options.cert_pem = c->cert_pem;
        options.key_file = c->key_file;
        options.key_pem = c->key_pem;
    }
    return tls_client_source_new(&options, (struct tls_source_hooks){0}, &peer->tls, error);
}

/* -- The pool -- */

static void text_of(struct slice from, char *text, size_t room)
{
    snprintf(text, room, "%.*s", SLICE_ARGS(from));
}

static void open_endpoints(struct kube_webhook_peer *peer, const struct kube_webhook_base *base)
{
    if (kube_webhook_target_is_service(&peer->target))
        peer->endpoints = kube_webhook_endpoints_new(
            &(struct kube_webhook_endpoints_options){
                .shard = base->shard,
                .loop = base->loop,
                .under_way = base->under_way,
                .resolver = base->resolver,
            },
            &peer->target);
}

static enum status open_pool(struct kube_webhook_peer *peer, const struct kube_webhook_base *base,
                             struct error *error)
{
    char host[ENDPOINT_HOST_BYTES], authority[ENDPOINT_TEXT_BYTES];
    struct http_pool_options options = HTTP_POOL_OPTIONS_DEFAULT;
    char *proxy_url;
    text_of(peer->target.host, host, sizeof(host));
    text_of(peer->target.authority, authority, sizeof(authority));
    endpoint_from_target(host, peer->target.port, true, &options.endpoint);
    options.connector.loop = base->loop;
    options.connector.network = base->settings->network;
    options.connector.resolver = base->resolver;
    options.connector.addresses =
        peer->endpoints ? kube_webhook_endpoints_source(peer->endpoints) : NULL;
    options.connector.tls = peer->tls ? peer->tls : base->system_tls;
    options.authority = authority;
    options.connections_max = KUBE_WEBHOOK_CONNECTIONS_MAX;
    options.protocol =
        kube_webhook_target_is_local(&peer->target) ? HTTP_POOL_NEGOTIATED : HTTP_POOL_HTTP1;
    if (proxy_environment_find(&options.endpoint, true, base->settings->environment, &proxy_url) !=
        ST_OK)
        return error_no_memory(error);
    options.proxy_url = proxy_url;
    enum status status = http_pool_new(&options, &peer->pool, error);
    free(proxy_url);
    return status;
}

/* -- Tokens -- */

static enum status open_token(struct kube_webhook_peer *peer, int64_t now_ns, struct error *error)
{
    const struct kube_webhook_credentials *c = peer->credentials;
    if (!c || !*c->token_file)
        return ST_OK;
    return token_file_init(&peer->token, c->token_file, *c->token ? c->token : NULL, now_ns, error);
}

/* -- Life -- */

enum status kube_webhook_peer_new(const struct kube_webhook_base *base,
                                  const struct kube_webhook_target *target,
                                  enum kube_webhook_use use, struct kube_webhook_peer **ret_peer,
                                  struct error *error)
{
    AUTO(kube_webhook_peer_freep) struct kube_webhook_peer *peer = xcalloc(1, sizeof(*peer));
    list_init(&peer->in_caller);
    arena_init(&peer->arena, NULL, 0, SIZE_MAX);
    if (!copy_target(peer, target))
        return error_no_memory(error);
    peer->use = use;
    peer->credentials = credentials_of(base->settings, target, use);
    TRY(open_token(peer, loop_now_ns(base->loop), error));
    if (!kube_webhook_peer_shares_tls(base->settings, target, use))
        TRY(open_tls(peer, error));
    open_endpoints(peer, base);
    TRY(open_pool(peer, base, error));
    peer->idle_since_ns = loop_now_ns(base->loop);
    *ret_peer = TAKE(peer);
    return ST_OK;
}

void kube_webhook_peer_free(struct kube_webhook_peer *peer)
{
    if (!peer)
        return;
    list_remove(&peer->in_caller);
    http_pool_free(peer->pool);
    kube_webhook_endpoints_close(peer->endpoints);
    tls_client_source_free(peer->tls);
    token_file_fini(&peer->token);
    arena_fini(&peer->arena);
    free(peer);
}
