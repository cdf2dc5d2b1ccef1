#include "kube/call/gate.h"

#include "codec/go_duration.h"
#include "engine/engine.h"
#include "engine/forward.h"
#include "kube/policy/access/identity.h"
#include "kube/request/request.h"
#include "kube/request/tokens.h"
#include "wire/http/origin.h"

#include <stdio.h>

/* A head has at most 64 KiB. */
enum { TIMEOUT_ARENA_BYTES_MAX = 1 << 20 };

/* Paths without authentication, as in Kubernetes. */
static bool is_public(struct slice path)
{
    static const char *const public_paths[] = {"/healthz", "/livez", "/readyz", "/version"};
    for (size_t i = 0; i < COUNT_OF(public_paths); i++) {
        if (slice_is(path, public_paths[i]))
            return true;
    }
    return false;
}

static bool has_token(const struct kube_api *api, const struct http_request *request)
{
    struct slice field = SLICE_EMPTY;
    (void)http_request_get(request, SLICE_LITERAL("authorization"), &field);
    return api->config->tokens && kube_tokens_find(api->config->tokens, field);
}

/* The names of certificates are users of the store, but a cluster knows only its own tokens, so
 * there a certificate is not enough to act in the name of the server. */
struct auth_principal kube_principal(const struct kube_api *api, const struct http_request *request)
{
    if (api->access)
        return ENGINE_SERVER;
    bool named = request->peer_name || api->config->tokens; /* the gate admits only these */
    if (engine_forwards(api->engine))
        named = has_token(api, request);
    return named || request->own ? ENGINE_SERVER : (struct auth_principal){0};
}

struct kube_sender kube_sender_of(const struct kube_api *api, const struct http_request *request)
{
    /* With roles, kube/policy/access/identity.h decides, and tokens are not looked up here as well.
     */
    return (struct kube_sender){.peer_name = request->peer_name,
                                .trusted =
                                    !api->access && (request->own || has_token(api, request))};
}

bool kube_lets_in(const struct kube_api *api, struct kube_sender sender)
{
    if (api->access)
        return true; /* kube/policy/access/identity.h decides */
    if (sender.trusted)
        return true;
    if (api->config->tokens && !sender.peer_name)
        return false;
    if (engine_forwards(api->engine))
        return kube_anonymous_get(&api->anonymous) == KUBE_ANONYMOUS_ADMITTED;
    return engine_auth_holds(api->shard, slice_from_text(sender.peer_name ? sender.peer_name : ""),
                             SLICE_LITERAL("/registry/"), SLICE_LITERAL("/registry0"));
}

bool kube_shuts_out(const struct kube_api *api, struct kube_sender sender)
{
    bool enabled = engine_forwards(api->engine)
                       ? kube_anonymous_get(&api->anonymous) == KUBE_ANONYMOUS_REFUSED
                       : engine_auth_enabled(api->shard);
    return enabled && !kube_lets_in(api, sender);
}

/* Before a cluster has been read, and before it is known whether it serves this client. */
static bool is_early(const struct kube_api *api, const struct http_request *request)
{
    if (!engine_forwards(api->engine) || is_public(request->path))
        return false;
    return !engine_is_synced(api->engine) ||
           (!api->access && kube_anonymous_get(&api->anonymous) == KUBE_ANONYMOUS_UNKNOWN &&
            !has_token(api, request));
}

void kube_unauthorized(const struct kube_api *api, struct kube_status *status)
{
    if (kube_anonymous_get(&api->anonymous) == KUBE_ANONYMOUS_REFUSED)
        (void)kube_fail(
            status, KUBE_UNAUTHORIZED,
            "Unauthorized: authentication is enabled in the cluster, so a request needs a bearer "
            "token of the server's --kube-token-file; the name in a certificate is not a user of "
            "the cluster here");
    else
        (void)kube_fail(
            status, KUBE_UNAUTHORIZED, "%s",
            engine_auth_enabled(api->shard)
                ? "Unauthorized: authentication is enabled in this store, so a request "
                  "needs a bearer token of the server's --kube-token-file, or over TLS the "
                  "certificate of a user who may read and write all keys below /registry/"
                : "Unauthorized");
}

/* Impersonate-User, -Group, -Uid and -Extra-…: executed in the name of its sender, such a request
 * would do what the other user may not. */
static const struct http_field *find_impersonation(const struct http_request *request)
{
    struct slice prefix = SLICE_LITERAL("impersonate-");
    for (size_t i = 0; i < request->field_count; i++) {
        const struct http_field *field = &request->fields[i];
        if (field->name.len >= prefix.len &&
            http_name_equal(slice_sub(field->name, 0, prefix.len), prefix))
            return field;
    }
    return NULL;
}

/* Kubernetes has no deadline for these, and ignores the option. */
static bool is_long_running(const struct kube_attributes *attributes)
{
    static const char *const subresources[] = {"attach", "exec", "log", "portforward", "proxy"};
    for (size_t i = 0; i < COUNT_OF(subresources); i++)
        if (slice_is(attributes->subresource, subresources[i]))
            return true;
    return slice_is(attributes->verb, "watch");
}

/* Whether ?timeout= is a duration; false: *status says why not. It has no other effect. */
static bool check_timeout(struct arena *arena, const struct http_request *request,
                          struct kube_status *status)
{
    struct slice timeout;
    struct kube_attributes attributes;
    char why[GO_DURATION_WHY_BYTES];
    enum status found = kube_query_get(arena, request->query, "timeout", &timeout);
    if (found != ST_OK)
        return kube_fail_engine(status, found);
    if (!timeout.len || go_duration_check(timeout, why))
        return true;
    kube_attributes_of(arena, request, &attributes);
    return is_long_running(&attributes) ||
           kube_fail(status, KUBE_BAD_REQUEST, "invalid timeout specified in the request URL - %s",
                     why);
}

static bool has_valid_timeout(struct http_exchange *x, const struct http_request *request)
{
    struct kube_status status;
    struct arena arena;
    if (!request->query.len)
        return true;
    arena_init(&arena, NULL, 0, TIMEOUT_ARENA_BYTES_MAX);
    arena_charge(&arena, http_exchange_account(x));
    bool valid = check_timeout(&arena, request, &status);
    if (!valid)
        kube_refuse(x, &status);
    arena_fini(&arena);
    return valid;
}

void kube_life_end(struct http_exchange *x, void *service)
{
    struct kube_life *life = http_exchange_user(x);
    (void)service;
    if (life)
        life->end(life);
}

bool kube_gate(struct http_exchange *x, void *ctx, const struct http_request *request)
{
    struct kube_api *api = ctx;
    struct kube_status status;
    struct slice origin;
    bool local = http_host_is_loopback(request->host) && !http_is_foreign(request, &origin);
    const struct http_field *impersonation = api->access ? NULL : find_impersonation(request);
    if ((request->secure || local) && is_early(api, request)) {
        char reason[ENGINE_REASON_BYTES], text[ENGINE_REASON_BYTES + 64];
        (void)kube_fail_engine(&status, ST_NOT_SYNCED);
        if (!engine_ready(api->engine, reason)) {
            int len = snprintf(text, sizeof(text), "%s: %s", status.message, reason);
            (void)kube_fail_later(&status, slice_of(text, (size_t)len));
        }
        kube_refuse(x, &status);
        return false;
    }
    if (request->secure || local) {
        bool known = is_public(request->path) || kube_lets_in(api, kube_sender_of(api, request));
        if (!known) {
            kube_unauthorized(api, &status);
            kube_refuse(x, &status);
        } else if (impersonation) {
            kube_fail(&status, KUBE_FORBIDDEN,
                      "impersonation is not supported by this server: send the request without the "
                      "header %.*s",
                      (int)size_min(impersonation->name.len, 64),
                      (const char *)impersonation->name.ptr);
            kube_refuse(x, &status);
        }
        return known && !impersonation && has_valid_timeout(x, request);
    }
    http_respond(x, 403, SLICE_LITERAL("text/plain; charset=utf-8"),
                 SLICE_LITERAL("without TLS this is served to programs of this machine only, under "
                               "its loopback addresses\n"));
    return false;
}
