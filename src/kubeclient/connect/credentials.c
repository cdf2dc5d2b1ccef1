#include "kubeclient/connect/credentials.h"

#include "client/http/token_file.h"
#include "io/loop.h"
#include "kubeclient/connect/exec_plugin.h"
#include "kubeclient/connect/impersonation.h"
#include "wire/http/basic_auth.h"
#include "wire/http/http1/parser.h"

#include <stdlib.h>

#define PAUSE_NS_MIN (1 * NS_PER_S)
#define PAUSE_NS_MAX (10 * NS_PER_S)
/* A plugin that was not needed for this long is run at once. */
#define CALM_NS (60 * NS_PER_S)

enum credentials_state {
    CREDENTIALS_UNKNOWN, /* nothing waits */
    CREDENTIALS_PAUSING,
    CREDENTIALS_RUNNING,
    CREDENTIALS_KNOWN, /* always, without a plugin */
};

struct credentials {
    struct loop *loop;               /* borrowed */
    const struct kubeconfig *config; /* borrowed */
    struct credentials_hooks hooks;
    struct impersonation as;
    enum credentials_state state;
    struct buf authorization; /* "Bearer …", "Basic …" or empty */
    uint64_t generation;

    struct token_file token_file; /* its path is NULL without one */
    bool stale;                   /* its token is not in the authorization yet */

    struct exec_plugin *plugin; /* NULL: none is used */
    struct list waiters;        /* credentials_waiter.in_credentials; pausing or running */
    struct timer pause;         /* set while pausing */
    struct buf cert, key;       /* certificate and key of the plugin */
    int64_t expires_ns;         /* on the real-time clock */
    int64_t ended_ns;           /* when the plugin last ended */
    unsigned tries;             /* runs, each of them soon after the one before */
};

static const unsigned credentials_moves[] = {
    [CREDENTIALS_UNKNOWN] = 1u << CREDENTIALS_PAUSING | 1u << CREDENTIALS_RUNNING,
    [CREDENTIALS_PAUSING] = 1u << CREDENTIALS_UNKNOWN | 1u << CREDENTIALS_RUNNING,
    [CREDENTIALS_RUNNING] = 1u << CREDENTIALS_UNKNOWN | 1u << CREDENTIALS_KNOWN,
    [CREDENTIALS_KNOWN] = 1u << CREDENTIALS_UNKNOWN,
};

static void swap(struct buf *a, struct buf *b)
{
    struct buf old = *a;
    *a = *b;
    *b = old;
}

static void fini_secret(struct buf *secret)
{
    if (secret->ptr)
        explicit_bzero(secret->ptr, secret->capacity);
    buf_fini(secret);
}

/* Replaces the field's value as a whole: without memory the old one is kept. */
static enum status set_bearer(struct credentials *c, struct slice token)
{
    AUTO(fini_secret) struct buf made = {0};
    if (token.len)
        TRY(buf_append_text(&made, "Bearer "));
    TRY(buf_append(&made, token));
    swap(&c->authorization, &made);
    c->generation++;
    return ST_OK;
}

/* -- Plugins: the end of a run -- */

/* Without an error it is used from now on. */
static enum status take_certificate(struct credentials *c, const struct exec_credential *found,
                                    struct error *error)
{
    AUTO(fini_secret) struct buf cert = {0};
    AUTO(fini_secret) struct buf key = {0};
    if (slice_equal(found->cert, buf_slice(&c->cert)) &&
        slice_equal(found->key, buf_slice(&c->key)))
        return ST_OK;
    if (buf_append(&cert, found->cert) != ST_OK || buf_append(&key, found->key) != ST_OK)
        return error_no_memory(error);
    swap(&c->cert, &cert);
    swap(&c->key, &key);
    if (!c->hooks.on_certificate)
        return ST_OK;
    enum status status = c->hooks.on_certificate(c->hooks.ctx, error);
    if (status != ST_OK) {
        swap(&c->cert, &cert);
        swap(&c->key, &key);
    }
    return status;
}

static enum status take(struct credentials *c, const struct exec_credential *found,
                        struct error *error)
{
    TRY(take_certificate(c, found, error));
    if (set_bearer(c, found->token) != ST_OK)
        return error_no_memory(error);
    c->expires_ns = found->expires_ns;
    return ST_OK;
}

static void on_plugin_end(void *ctx, enum status status, const struct exec_credential *found,
                          const struct error *reason)
{
    struct credentials *c = ctx;
    struct error error = *reason;
    c->ended_ns = loop_now_ns(c->loop);
    if (status == ST_OK)
        status = take(c, found, &error);
    STATE_MOVE(c->state, credentials_moves,
               status == ST_OK ? CREDENTIALS_KNOWN : CREDENTIALS_UNKNOWN);
    /* All requests that wait get the same. */
    struct list woken;
    struct list *link;
    list_init(&woken);
    list_append(&woken, &c->waiters);
    while ((link = list_pop_front(&woken))) {
        struct credentials_waiter *waiter =
            LIST_ENTRY(link, struct credentials_waiter, in_credentials);
        waiter->ready(waiter, status, status == ST_OK ? buf_slice(&c->authorization) : SLICE_EMPTY,
                      &error);
    }
}

/* -- Plugins: the beginning of a run -- */

static void run(struct credentials *c)
{
    STATE_MOVE(c->state, credentials_moves, CREDENTIALS_RUNNING);
    c->tries++;
    exec_plugin_run(c->plugin);
}

static void on_pause_end(struct timer *timer)
{
    struct credentials *c = CONTAINER_OF(timer, struct credentials, pause);
    /* All requests that waited for the plugin may have been cancelled. */
    if (list_empty(&c->waiters))
        STATE_MOVE(c->state, credentials_moves, CREDENTIALS_UNKNOWN);
    else
        run(c);
}

/* The plugin is not run before this time. */
static int64_t earliest_ns(const struct credentials *c)
{
    int64_t pause_ns = c->tries ? PAUSE_NS_MIN : 0;
    for (unsigned i = 1; i < c->tries && pause_ns < PAUSE_NS_MAX; i++)
        pause_ns *= 2;
    return c->ended_ns + (pause_ns < PAUSE_NS_MAX ? pause_ns : PAUSE_NS_MAX);
}

static void run_soon(struct credentials *c)
{
    int64_t now_ns = loop_now_ns(c->loop);
    if (now_ns - c->ended_ns >= CALM_NS)
        c->tries = 0;
    if (earliest_ns(c) <= now_ns) {
        run(c);
        return;
    }
    STATE_MOVE(c->state, credentials_moves, CREDENTIALS_PAUSING);
    loop_timer_set(c->loop, &c->pause, earliest_ns(c));
}

static enum status get_from_plugin(struct credentials *c, struct credentials_waiter *waiter)
{
    /* Credentials that have expired are still used while the plugin may not run yet: the server
     * decides about them. */
    if (c->state == CREDENTIALS_KNOWN && clock_real_ns(loop_clock(c->loop)) > c->expires_ns &&
        loop_now_ns(c->loop) >= earliest_ns(c))
        STATE_MOVE(c->state, credentials_moves, CREDENTIALS_UNKNOWN);
    if (c->state == CREDENTIALS_KNOWN)
        return ST_OK;
    if (c->state == CREDENTIALS_UNKNOWN)
        run_soon(c);
    if (!waiter->in_credentials.next)
        list_init(&waiter->in_credentials);
    assert(list_empty(&waiter->in_credentials));
    list_push_back(&c->waiters, &waiter->in_credentials);
    return ST_AGAIN;
}

/* -- Making -- */

static enum status init_token_file(struct credentials *c, struct error *error)
{
    const struct kubeconfig *config = c->config;
    TRY(token_file_init(&c->token_file, config->token_file, config->token, loop_now_ns(c->loop),
                        error));
    return set_bearer(c, buf_slice(&c->token_file.token)) == ST_OK ? ST_OK : error_no_memory(error);
}

static enum status init_fixed(struct credentials *c, struct error *error)
{
    const struct kubeconfig *config = c->config;
    if (config->token)
        return set_bearer(c, slice_from_text(config->token)) == ST_OK ? ST_OK
                                                                      : error_no_memory(error);
    if (!config->user && !config->password)
        return ST_OK;
    enum status status = http_basic_auth_append(&c->authorization, config->user ? config->user : "",
                                                config->password ? config->password : "");
    return status == ST_OK ? ST_OK : error_no_memory(error);
}

static enum status init(struct credentials *c, const struct child_runner *runner,
                        struct error *error)
{
    const struct kubeconfig *config = c->config;
    if ((config->token || config->token_file) && (config->user || config->password))
        return error_set(error, ST_INVALID,
                         "there may be a token, or a user and password, but not both");
    TRY(impersonation_init(&c->as, &config->impersonate, error));
    /* A plugin is not used beside anything else. */
    if (config->exec.command && !config->token && !config->token_file && !config->user &&
        !config->password &&
        !(kubeconfig_has_pem(&config->cert) && kubeconfig_has_pem(&config->key))) {
        struct exec_plugin_options options = {
            .loop = c->loop,
            .config = c->config,
            .runner = runner,
            .on_end = on_plugin_end,
            .ctx = c,
        };
        c->state = CREDENTIALS_UNKNOWN;
        return exec_plugin_new(&options, &c->plugin, error);
    }
    TRY(config->token_file ? init_token_file(c, error) : init_fixed(c, error));
    if (!http1_is_field_value(buf_slice(&c->authorization)))
        return error_set(error, ST_INVALID, "the token contains line ends or zeros");
    return ST_OK;
}

enum status credentials_new_over(const struct child_runner *runner, struct loop *loop,
                                 const struct kubeconfig *config, struct credentials_hooks hooks,
                                 struct credentials **ret_credentials, struct error *error)
{
    AUTO(credentials_freep) struct credentials *c = calloc(1, sizeof(*c));
    if (!c)
        return error_no_memory(error);
    c->loop = loop;
    c->config = config;
    c->hooks = hooks;
    c->state = CREDENTIALS_KNOWN;
    c->expires_ns = CLOCK_NEVER;
    c->pause.fn = on_pause_end;
    list_init(&c->waiters);
    TRY(init(c, runner, error));
    *ret_credentials = TAKE(c);
    return ST_OK;
}

enum status credentials_new(struct loop *loop, const struct kubeconfig *config,
                            struct credentials_hooks hooks, struct credentials **ret_credentials,
                            struct error *error)
{
    return credentials_new_over(child_runner_posix(), loop, config, hooks, ret_credentials, error);
}

void credentials_free(struct credentials *c)
{
    if (!c)
        return;
    exec_plugin_free(c->plugin);
    loop_timer_cancel(c->loop, &c->pause);
    while (list_pop_front(&c->waiters))
        ;
    impersonation_fini(&c->as);
    token_file_fini(&c->token_file);
    fini_secret(&c->authorization);
    fini_secret(&c->cert);
    fini_secret(&c->key);
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
    (void)error;
    if (c->plugin)
        TRY(get_from_plugin(c, waiter));
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
    if (c->plugin) {
        if (generation == c->generation && c->state == CREDENTIALS_KNOWN)
            STATE_MOVE(c->state, credentials_moves, CREDENTIALS_UNKNOWN);
        return true;
    }
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
    return buf_slice(&c->cert);
}

struct slice credentials_key(const struct credentials *c)
{
    return buf_slice(&c->key);
}

void credentials_check(const struct credentials *c)
{
    assert(c->as.count == 0 || c->as.fields);
    assert(!c->token_file.path || c->token_file.token.len);
    assert(!c->token_file.path || c->token_file.due_ns > c->token_file.read_ns);
    assert(http1_is_field_value(buf_slice(&c->authorization)));
    assert(c->plugin || c->state == CREDENTIALS_KNOWN);
    assert(!c->plugin || !c->token_file.path);
    assert((c->state == CREDENTIALS_RUNNING) == (c->plugin && exec_plugin_runs(c->plugin)));
    assert((c->state == CREDENTIALS_PAUSING) == c->pause.set);
    assert(list_empty(&c->waiters) || c->state == CREDENTIALS_RUNNING ||
           c->state == CREDENTIALS_PAUSING);
    assert(!c->cert.len == !c->key.len);
}
