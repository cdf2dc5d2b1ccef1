#include "client/connect/channel_options.h"

#include "base/buf.h"
#include "client/names/endpoint_list.h"
#include "net/tls/client.h"
#include "wire/http/basic_auth.h"

#include <stdlib.h>
#include <string.h>

/* NULL: there are no more. */
static const char **text_at(struct channel_options *o, size_t at)
{
    const char **texts[] = {&o->endpoints, &o->srv_domain,  &o->srv_name, &o->ca_file,
                            &o->cert_file, &o->key_file,    &o->user,     &o->password,
                            &o->token,     &o->server_name, &o->via};
    return at < COUNT_OF(texts) ? texts[at] : NULL;
}

enum status channel_options_copy(const struct channel_options *options,
                                 struct channel_options *ret_copy)
{
    struct channel_options from = *options;
    enum status status = ST_OK;
    *ret_copy = from;
    /* First all are NULL, so that a copy that ends in the middle can be freed. */
    for (size_t i = 0; text_at(ret_copy, i); i++)
        *text_at(ret_copy, i) = NULL;
    for (size_t i = 0; status == ST_OK && text_at(&from, i); i++) {
        const char *text = *text_at(&from, i);
        *text_at(ret_copy, i) = text ? strdup(text) : NULL;
        if (text && !*text_at(ret_copy, i))
            status = ST_NOMEM;
    }
    if (status != ST_OK)
        channel_options_fini(ret_copy);
    return status;
}

void channel_options_fini(struct channel_options *copy)
{
    for (size_t i = 0; text_at(copy, i); i++) {
        free((void *)*text_at(copy, i));
        *text_at(copy, i) = NULL;
    }
}

enum status channel_options_basic_auth(const struct channel_options *o, struct buf *to)
{
    return o->user ? http_basic_auth_append(to, o->user, o->password ? o->password : "") : ST_OK;
}

enum status channel_options_open_tls(const struct channel_options *o,
                                     const struct endpoint_list *endpoints,
                                     struct tls_client_source **ret_tls, struct error *error)
{
    struct tls_client_options tls = {
        .ca_file = o->ca_file ? o->ca_file : "",
        .cert_file = o->cert_file ? o->cert_file : "",
        .key_file = o->key_file ? o->key_file : "",
        .insecure_skip_verify = o->insecure_skip_verify,
    };
    /* Endpoints without a scheme use TLS if an option about it is given, as in etcd's client. */
    bool wanted = *tls.ca_file || *tls.cert_file || o->insecure_skip_verify;
    for (size_t i = 0; i < endpoints->count; i++)
        wanted |= endpoints->all[i].security == ENDPOINT_TLS;
    if (!wanted)
        return ST_OK;
    return tls_client_source_new(&tls, (struct tls_source_hooks){0}, ret_tls, error);
}
