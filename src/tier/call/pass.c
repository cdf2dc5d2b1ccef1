#include "tier/call/pass.h"

#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/policy/access/identity.h"
#include "kube/request/life.h"

enum { ARENA_BYTES_MAX = 1 << 20 };

/* A request of a client with a certificate, until it is forwarded. */
struct pass {
    struct kube_life life; /* owner of the exchange */
    struct tier_api *api;
    struct http_exchange *x;
    struct tier_user *user; /* a reference */
    struct tier_question question;
    struct credentials_waiter waiter;
    struct buf early; /* what arrives of the body while the tier's credentials are renewed */
    bool body_ended;
};

void tier_refuse(struct http_exchange *x, const struct kube_status *status)
{
    kube_refuse(x, status);
}

static void free_pass(struct pass *pass)
{
    tier_question_cancel(&pass->question);
    credentials_waiter_cancel(&pass->waiter);
    tier_user_unref(pass->user);
    account_buf_fini(http_exchange_account(pass->x), &pass->early);
    free(pass);
}

static void on_end(struct kube_life *life)
{
    free_pass(CONTAINER_OF(life, struct pass, life));
}

static void fail(struct http_exchange *x, enum kube_reason reason, const char *text)
{
    struct kube_status status = {0};
    (void)!kube_fail(&status, reason, "%s", text);
    status.retry_after_s = reason == KUBE_SERVICE_UNAVAILABLE ? 1 : 0;
    tier_refuse(x, &status);
}

/* -- In the name of a certificate -- */

/* Servers remove blanks around the value of a field, and with them it would be another name:
 * " system:masters" is not the group of administrators. */
static bool is_name_exact(struct slice name)
{
    struct slice trimmed = slice_trim(name);
    bool exact = name.len && name.len == trimmed.len;
    for (size_t i = 0; exact && i < name.len; i++)
        exact = name.ptr[i] >= ' ' && name.ptr[i] != 0x7f;
    return exact;
}

static bool is_expressible(const struct tier_user *user)
{
    bool expressible = is_name_exact(user->name);
    for (size_t i = 0; expressible && i < user->group_count; i++)
        expressible = is_name_exact(user->groups[i]);
    return expressible;
}

/* The kube-apiserver adds the group of all who have identified themselves; and to a service account
 * without groups those that such an account has with a token, so one of its groups is named. */
static size_t make_fields(const struct tier_user *user, struct slice authorization,
                          struct http_field *fields)
{
    bool is_account = slice_has_prefix(user->name, SLICE_LITERAL("system:serviceaccount:"));
    size_t count = 0;
    if (authorization.len)
        fields[count++] = (struct http_field){SLICE_LITERAL("authorization"), authorization};
    fields[count++] = (struct http_field){SLICE_LITERAL("impersonate-user"), user->name};
    for (size_t i = 0; i < user->group_count; i++)
        if (is_account || !slice_is(user->groups[i], "system:authenticated"))
            fields[count++] =
                (struct http_field){SLICE_LITERAL("impersonate-group"), user->groups[i]};
    return count;
}

static void forward_as(struct pass *pass, struct slice authorization)
{
    struct tier_api *api = pass->api;
    struct http_exchange *x = pass->x;
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct http_field *fields = arena_calloc(&arena, pass->user->group_count + 2, sizeof(*fields));
    if (fields) {
        size_t count = make_fields(pass->user, authorization, fields);
        tier_forward(x, &(struct tier_forward_options){
                            .forwards = &api->forwards,
                            .pool = tier_link_own(api->link),
                            .head = {.path_prefix = tier_link_path_prefix(api->link),
                                     .add = fields,
                                     .add_count = count,
                                     .drop_credentials = true},
                        });
        if (pass->early.len && http_exchange_user(x))
            tier_forward_body(x, buf_slice(&pass->early));
        if (pass->body_ended && http_exchange_user(x))
            tier_forward_body(x, SLICE_EMPTY);
        free_pass(pass);
    } else {
        http_abort(x);
    }
    arena_fini(&arena);
}

static void on_authorization(struct credentials_waiter *waiter, enum status status,
                             struct slice authorization, const struct error *error)
{
    struct pass *pass = CONTAINER_OF(waiter, struct pass, waiter);
    if (status == ST_OK)
        forward_as(pass, authorization);
    else
        fail(pass->x, KUBE_SERVICE_UNAVAILABLE, error->text);
}

static void authorize(struct pass *pass)
{
    struct error error;
    struct slice authorization;
    enum status status =
        tier_link_authorization(pass->api->link, &pass->waiter, &authorization, &error);
    bool has_body = http_exchange_request(pass->x)->has_body;
    if (status == ST_OK)
        forward_as(pass, authorization);
    else if (status != ST_AGAIN)
        fail(pass->x, KUBE_SERVICE_UNAVAILABLE, error.text);
    else if (has_body)
        http_withhold(pass->x, true);
}

static void on_user(struct tier_question *question, struct tier_user *user,
                    const struct kube_status *status)
{
    struct pass *pass = CONTAINER_OF(question, struct pass, question);
    pass->user = user;
    if (!user)
        tier_refuse(pass->x, status);
    else if (is_expressible(user))
        authorize(pass);
    else
        fail(pass->x, KUBE_FORBIDDEN,
             "the name or a group in the client's certificate is empty, or has blanks around it or "
             "control characters, so this watch tier cannot name it to the kube-apiserver: use "
             "the kube-apiserver's own address");
}

static bool impersonates(const struct http_request *request)
{
    struct slice prefix = SLICE_LITERAL("impersonate-");
    for (size_t i = 0; i < request->field_count; i++) {
        struct slice name = request->fields[i].name;
        if (name.len >= prefix.len && http_name_equal(slice_sub(name, 0, prefix.len), prefix))
            return true;
    }
    return false;
}

static void pass_certificate(struct tier_api *api, struct http_exchange *x)
{
    struct pass *pass = xcalloc(1, sizeof(*pass));
    pass->life.end = on_end;
    pass->api = api;
    pass->x = x;
    pass->question.done = on_user;
    pass->waiter.ready = on_authorization;
    http_exchange_set_user(x, &pass->life);
    if (impersonates(http_exchange_request(x)))
        fail(x, KUBE_FORBIDDEN,
             "a client with a certificate cannot impersonate others through this watch tier, which "
             "impersonates the client itself: use a token, or the kube-apiserver's own address");
    else
        tier_identify(api->rights, &pass->question, http_exchange_request(x));
}

/* -- All -- */

void tier_pass_on(struct tier_api *api, struct http_exchange *x)
{
    if (http_exchange_request(x)->peer_name) {
        pass_certificate(api, x);
        return;
    }
    tier_forward(x, &(struct tier_forward_options){
                        .forwards = &api->forwards,
                        .pool = tier_link_callers(api->link),
                        .head.path_prefix = tier_link_path_prefix(api->link),
                    });
}

void tier_pass_body(struct http_exchange *x, struct slice bytes)
{
    struct kube_life *life = http_exchange_user(x);
    if (life->end != on_end) {
        tier_forward_body(x, bytes);
        return;
    }
    struct pass *pass = CONTAINER_OF(life, struct pass, life);
    pass->body_ended |= bytes.len == 0;
    if (account_append(http_exchange_account(x), &pass->early, bytes) != ST_OK)
        fail(x, KUBE_SERVICE_UNAVAILABLE, "clients hold too much memory of the watch tier");
}
