/* /v2/keys: reads the request and passes it to the guard and its handler. */
#include "etcd/v2/routes.h"

#include "etcd/v2/call.h"
#include "etcd/v2/guard.h"
#include "etcd/v2/handlers.h"

static const struct keys_handler {
    struct v2_call *(*new)(void);
    void (*run)(struct v2_call *call);
} list_handler = {v2_list_new, v2_list_run}, write_handler = {v2_write_new, v2_write_run},
  wait_handler = {v2_wait_new, v2_wait_run};

static const struct keys_handler *handler_of(const struct http_request *request,
                                             const struct v2_form *form)
{
    if (!slice_is(request->method, "GET") && !slice_is(request->method, "HEAD"))
        return &write_handler;
    return form->wait ? &wait_handler : &list_handler;
}

/* False: the request was answered with an error. */
static bool read_form(struct v2_call *call, const struct http_request *request)
{
    struct v2_fault fault = v2_form_read(request, &call->arena, &call->form);
    if (fault.code)
        v2_fail(call, (enum v2_code)fault.code, slice_from_text(fault.cause), 0);
    return !fault.code;
}

/* False: the request was answered with an error. */
static bool read_key(struct v2_call *call, const struct http_request *request)
{
    size_t prefix = strlen("/v2/keys");
    enum status status = v2_key_make(
        &call->arena, slice_sub(request->path, prefix, request->path.len - prefix), &call->key);
    if (status == ST_LIMIT)
        v2_fail(call, V2_INVALID_FORM, SLICE_LITERAL("the key is too long or too deep"), 0);
    else if (status == ST_INVALID)
        v2_fail(call, V2_INVALID_FORM, SLICE_LITERAL("a key cannot have a zero byte"), 0);
    else if (status != ST_OK)
        v2_fail_status(call, status);
    return status == ST_OK;
}

/* Called a second time after the body, when authorize has added the cluster's id. */
static bool admit_keys(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct v2_call call = {.exchange = x, .api = service};
    if (!v2_allows(x, request, "HEAD,GET,PUT,POST,DELETE"))
        return false;
    if (!v2_is_blocked(service))
        return true;
    if (http_exchange_user(x) || v2_add_cluster_id(x, service))
        v2_fail(&call, V2_UNAUTHORIZED, SLICE_LITERAL("Insufficient credentials"), 0);
    return false;
}

static void authorize_keys(struct http_exchange *x, void *service,
                           const struct http_request *request)
{
    struct etcd_api *api = service;
    if (!v2_add_cluster_id(x, api))
        return;
    /* The head decides which kind of call it is, so it is read before the call is made. */
    struct v2_call head = {.exchange = x, .api = api};
    arena_init(&head.arena, NULL, 0, V2_CALL_BYTES_MAX);
    arena_charge(&head.arena, http_exchange_account(x));
    /* If the body may be a part of the form, the form is read later, with the body. */
    if (!(v2_form_has_body(request) || read_form(&head, request)) || !read_key(&head, request)) {
        /* The request was answered with an error. */
        arena_fini(&head.arena);
        return;
    }
    struct v2_call *call = handler_of(request, &head.form)->new ();
    head.fini = call->fini;
    *call = head;
    http_exchange_set_user(x, call);
    v2_guard_admit(call, V2_NEED_KEY);
}

static void keys(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct v2_call *call = http_exchange_user(x);
    (void)service;
    if (v2_form_has_body(request) && !read_form(call, request))
        return;
    v2_guard_confirm(call, handler_of(request, &call->form)->run);
}

#define ROUTE(at)                                                                           \
    {                                                                                       \
        .path = (at), .admit = admit_keys, .authorize = authorize_keys, .on_request = keys, \
        .on_end = v2_call_on_end                                                            \
    }

static const struct http_route routes[] = {ROUTE("/v2/keys"), ROUTE("/v2/keys/")};

enum status v2_routes_add(struct etcd_api *api)
{
    TRY(http_routes_add(api->routes, routes, COUNT_OF(routes), api));
    TRY(v2_auth_add(api));
    return v2_members_add(api);
}
