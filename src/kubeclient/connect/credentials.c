#include "kubeclient/connect/credentials.h"

#include "io/loop.h"
#include "kubeclient/connect/impersonation.h"
#include "kubeclient/connect/token_file.h"
#include "wire/http/basic_auth.h"
#include "wire/http/http1/parser.h"

#include <stdlib.h>

struct credentials {
    struct loop *loop;               /* borrowed */
    const struct kubeconfig *config; /* borrowed */
    struct credentials_hooks hooks;
    struct impersonation as;
    struct token_file token_file; /* its path is NULL without one */
    struct buf authorization;     /* "Bearer …", "Basic …" or empty */
    bool stale;                   /* the token of the file is not in it yet */
    uint64_t generation;
};

static enum status no_memory(struct error *error)
{
    return error_set(error, ST_NOMEM, "out of memory");
}

/* Replaces the field's value as a whole: without memory the old one is kept. */
static enum status set_bearer(struct credentials *c, struct slice token)
{
    AUTO(buf_fini) struct buf made = {0};
    TRY(buf_append_text(&made, "Bearer "));
    TRY(buf_append(&made, token));
    struct buf old = c->authorization;
    c->authorization = made;
    made = old;
    c->generation++;
    return ST_OK;
}

/* -- Making -- */

static bool has_pem(const struct kubeconfig_pem *pem)
{
    return pem->file || pem->data.len;
}

/* A plugin is not used beside anything else. */
static bool needs_plugin(const struct kubeconfig *config)
{
    return config->exec.command && !config->token && !config->token_file && !config->user &&
           !config->password && !(has_pem(&config->cert) && has_pem(&config->key));
}

static enum status init_token_file(struct credentials *c, struct error *error)
{
    const struct kubeconfig *config = c->config;
    TRY(token_file_init(&c->token_file, config->token_file, config->token, loop_now_ns(c->loop),
                        error));
    return set_bearer(c, buf_slice(&c->token_file.token)) == ST_OK ? ST_OK : no_memory(error);
}

static enum status init_fixed(struct credentials *c, struct error *error)
{
    const struct kubeconfig *config = c->config;
    if (config->token)
        return set_bearer(c, slice_from_text(config->token)) == ST_OK ? ST_OK : no_memory(error);
    if (!config->user && !config->password)
        return ST_OK;
    enum status status = http_basic_auth_append(&c->authorization, config->user ? config->user : "",
                                                config->password ? config->password : "");
    return status == ST_OK ? ST_OK : no_memory(error);
}

static enum status init(struct credentials *c, struct error *error)
{
    const struct kubeconfig *config = c->config;
    if ((config->token || config->token_file) && (config->user || config->password))
        return error_set(error, ST_INVALID,
                         "there may be a token, or a user and password, but not both");
    TRY(impersonation_init(&c->as, &config->impersonate, error));
    if (needs_plugin(config))
        return error_set(error, ST_UNIMPLEMENTED, "exec plugins cannot be run yet");
    TRY(config->token_file ? init_token_file(c, error) : init_fixed(c, error));
    if (!http1_is_field_value(buf_slice(&c->authorization)))
        return error_set(error, ST_INVALID, "the token contains line ends or zeros");
    return ST_OK;
}

enum status credentials_new(struct loop *loop, const struct kubeconfig *config,
                            struct credentials_hooks hooks, struct credentials **ret_credentials,
                            struct error *error)
{
    AUTO(credentials_freep) struct credentials *c = calloc(1, sizeof(*c));
    if (!c)
        return no_memory(error);
    c->loop = loop;
    c->config = config;
    c->hooks = hooks;
    TRY(init(c, error));
    *ret_credentials = TAKE(c);
    return ST_OK;
}

void credentials_free(struct credentials *c)
{
    if (!c)
        return;
    impersonation_fini(&c->as);
    token_file_fini(&c->token_file);
    buf_fini(&c->authorization);
    free(c);
}

/* -- Using -- */

/* Without memory for a new token the old one is used until the next request. */
static void refresh(struct credentials *c)
{
    if (!c->token_file.path)
        return;
    c->stale |= token_file_refresh(&c->token_file, loop_now_ns(c->loop));
    if (c->stale && set_bearer(c, buf_slice(&c->token_file.token)) == ST_OK)
        c->stale = false;
}

enum status credentials_get(struct credentials *c, struct credentials_waiter *waiter,
                            struct slice *ret_authorization, struct error *error)
{
    (void)waiter;
    (void)error;
    refresh(c);
    *ret_authorization = buf_slice(&c->authorization);
    return ST_OK;
}

void credentials_waiter_cancel(struct credentials_waiter *waiter)
{
    if (waiter->in_credentials.next)
        list_remove(&waiter->in_credentials);
}

const struct http_field *credentials_fields(const struct credentials *c, size_t *ret_count)
{
    *ret_count = c->as.count;
    return c->as.fields;
}

bool credentials_refused(struct credentials *c, uint64_t generation)
{
    if (generation == c->generation && c->token_file.path) {
        token_file_expire(&c->token_file);
        refresh(c);
    }
    return generation != c->generation;
}

uint64_t credentials_generation(const struct credentials *c)
{
    return c->generation;
}

struct slice credentials_cert(const struct credentials *c)
{
    (void)c;
    return SLICE_EMPTY;
}

struct slice credentials_key(const struct credentials *c)
{
    (void)c;
    return SLICE_EMPTY;
}

void credentials_check(const struct credentials *c)
{
    assert(c->loop);
    assert(c->as.count == 0 || c->as.fields);
    assert(!c->token_file.path || c->token_file.token.len);
    assert(!c->token_file.path || c->token_file.due_ns > c->token_file.read_ns);
    assert(http1_is_field_value(buf_slice(&c->authorization)));
}
