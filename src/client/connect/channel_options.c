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

static enum status copy_text(const char *from, const char **ret_copy)
{
    if (!from)
        return ST_OK;
    *ret_copy = strdup(from);
    return *ret_copy ? ST_OK : ST_NOMEM;
}

enum status channel_options_copy(const struct channel_options *options,
                                 struct channel_options *ret_copy)
{
    struct channel_options from = *options;
    enum status status = ST_OK;
    *ret_copy = from;
    for (size_t i = 0; text_at(ret_copy, i); i++)
        *text_at(ret_copy, i) = NULL;
    for (size_t i = 0; status == ST_OK && text_at(&from, i); i++)
        status = copy_text(*text_at(&from, i), text_at(ret_copy, i));
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

static bool is_given(const char *text)
{
    return text && *text;
}

static bool wants_tls(const struct channel_options *o, const struct endpoint_list *endpoints)
{
    for (size_t i = 0; i < endpoints->count; i++)
        if (endpoints->all[i].security == ENDPOINT_TLS)
            return true;
    return is_given(o->ca_file) || is_given(o->cert_file) || o->insecure_skip_verify;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

enum status channel_options_open_tls(const struct channel_options *o,
                                     const struct endpoint_list *endpoints,
                                     struct tls_client_source **ret_tls, struct error *error)
{
    struct tls_client_options tls = {
        .ca_file = or_empty(o->ca_file),
        .cert_file = or_empty(o->cert_file),
        .key_file = or_empty(o->key_file),
        .insecure_skip_verify = o->insecure_skip_verify,
    };
    if (!wants_tls(o, endpoints))
        return ST_OK;
    return tls_client_source_new(&tls, (struct tls_source_hooks){0}, ret_tls, error);
}
