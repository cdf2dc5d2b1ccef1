#include "embed/listener.h"

#include "base/options/options.h"
#include "base/xalloc.h"
#include "server/server.h"

#include <stdio.h>

#define VIGIL_NAME "vigil-embed"
/* Memory that clients may make the program hold. */
#define CLIENT_BYTES_MAX ((size_t)256 << 20)

struct embed_listener {
    struct server_config config;
    struct url urls[NET_LISTENERS_MAX];
    enum server_role roles[NET_LISTENERS_MAX];
    struct server *server; /* owned */
};

static enum status add_url(struct embed_listener *listener, struct slice text,
                           enum server_role role, struct error *error)
{
    struct server_config *config = &listener->config;
    if (config->listen_count == NET_LISTENERS_MAX)
        return error_set(error, ST_INVALID, "at most %d URLs may be given", NET_LISTENERS_MAX);
    struct url *url = &listener->urls[config->listen_count];
    TRY(url_parse(text, url, error));
    if (url->secure || !address_is_local(&url->address))
        return error_set(
            error, ST_INVALID,
            "%.*s: a store in a program serves only this machine, and without TLS; use "
            "http://127.0.0.1:PORT or unix:///PATH",
            SLICE_ARGS(text));
    listener->roles[config->listen_count++] = role;
    return ST_OK;
}

static enum status add_urls(struct embed_listener *listener, const char *list,
                            enum server_role role, struct error *error)
{
    struct slice text;
    for (const char *rest = list ? list : ""; option_list_next(&rest, &text);)
        TRY(add_url(listener, text, role, error));
    return ST_OK;
}

static void configure(struct embed_listener *listener, const struct embed_listener_options *options)
{
    struct server_config *config = &listener->config;
    *config = (struct server_config){
        .open_engine = options->engine,
        .open_auth = options->auth,
        .etcd = *options->etcd,
        .kube = {.version = VIGIL_NAME},
        .net = NET_OPTIONS_DEFAULT,
        .client_bytes_max = CLIENT_BYTES_MAX,
        .wire = *options->wire,
        .listen = listener->urls,
        .roles = listener->roles,
        .guards_pages = true,
    };
    config->net.shards = options->threads;
    config->etcd.gateway_calls_max = config->wire.h2.streams_max;
}

static enum status start(struct embed_listener *listener,
                         const struct embed_listener_options *options, struct error *error)
{
    configure(listener, options);
    TRY(add_urls(listener, options->client_urls, SERVER_CLIENTS, error));
    size_t clients = listener->config.listen_count;
    TRY(add_urls(listener, options->kube_urls, SERVER_KUBE, error));
    listener->config.kube_wanted = listener->config.listen_count > clients;
    if (listener->config.listen_count == 0)
        return error_set(error, ST_INVALID, "no URL was given");
    return server_start(&listener->config, &listener->server, error);
}

enum status embed_listener_new(const struct embed_listener_options *options,
                               struct embed_listener **ret_listener, struct error *error)
{
    struct embed_listener *listener = xcalloc(1, sizeof(*listener));
    enum status status = start(listener, options, error);
    if (status != ST_OK)
        free(listener);
    else
        *ret_listener = listener;
    return status;
}

void embed_listener_urls(const struct embed_listener *listener, char *text, size_t size)
{
    size_t len = 0;
    if (size)
        text[0] = 0;
    for (size_t i = 0; i < listener->config.listen_count && len < size; i++) {
        char url[URL_TEXT_BYTES];
        url_format(server_bound(listener->server, i), url);
        len += (size_t)snprintf(text + len, size - len, "%s%s", i ? "," : "", url);
    }
}

void embed_listener_drain(struct embed_listener *listener)
{
    server_drain(listener->server);
}

void embed_listener_free(struct embed_listener *listener)
{
    if (!listener)
        return;
    server_free(listener->server);
    free(listener);
}
