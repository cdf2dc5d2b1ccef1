#include "tier/call/pass.h"

#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/policy/access/identity.h"
#include "kube/request/life.h"
#include "wire/http/certificate.h"

#include <vigil/client.h>

enum { ARENA_BYTES_MAX = 1 << 20, LOGGED_BYTES_MAX = 500 };
#define REFUSED_NS (60 * NS_PER_S) /* a refusal of the tier's account is not looked after again */

/* A request of a client with a certificate, until it is forwarded; and while it is, to see whether
 * the tier's own account is refused. A watch whose right is reviewed while it is forwarded. */
struct pass {
    struct kube_life life; /* owner of the exchange, until it is forwarded */
    struct tier_forward_listener listener;
    struct tier_api *api;
    struct http_exchange *x;
    struct tier_user *user; /* a reference */
    struct tier_question question;
    struct credentials_waiter waiter;
    struct tier_standing standing; /* added for a watch */
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
    tier_standing_remove(&pass->standing);
    tier_user_unref(pass->user);
    account_buf_fini(http_exchange_account(pass->x), &pass->early);
    free(pass);
}

static void on_end(struct kube_life *life)
{
    free_pass(CONTAINER_OF(life, struct pass, life));
}

static void on_forward_ended(struct tier_forward_listener *listener)
{
    free_pass(CONTAINER_OF(listener, struct pass, listener));
}

/* It is not forwarded. */
static void refuse(struct pass *pass, const struct kube_status *status)
{
    tier_standing_remove(&pass->standing);
    tier_refuse(pass->x, status);
}

static void fail(struct pass *pass, enum kube_reason reason, const char *text)
{
    struct kube_status status = {0};
    (void)!kube_fail(&status, reason, "%s", text);
    status.retry_after_s = reason == KUBE_SERVICE_UNAVAILABLE ? 1 : 0;
    refuse(pass, &status);
}

static struct pass *pass_new(struct tier_api *api, struct http_exchange *x)
{
    struct pass *pass = xcalloc(1, sizeof(*pass));
    pass->life.end = on_end;
    pass->listener.ended = on_forward_ended;
    pass->api = api;
    pass->x = x;
    http_exchange_set_user(x, &pass->life);
    return pass;
}

/* The exchange belongs to the forward afterwards. */
static void forward(struct pass *pass, struct http_pool *pool, const struct tier_head_options *head)
{
    struct http_exchange *x = pass->x;
    struct account *account = http_exchange_account(x);
    if (!tier_forward(x, &(struct tier_forward_options){.forwards = &pass->api->forwards,
                                                        .pool = pool,
                                                        .head = *head,
                                                        .listener = &pass->listener})) {
        free_pass(pass);
        return;
    }
    if (pass->early.len)
        tier_forward_body(x, buf_slice(&pass->early));
    if (pass->body_ended)
        tier_forward_body(x, SLICE_EMPTY);
    account_buf_fini(account, &pass->early);
}

/* -- Refusals of the tier's account -- */

/* Credentials that have expired are renewed. Not often: what answers may also be a program behind
 * the kube-apiserver, whose 401 says nothing about them. */
static void renew_credentials(struct tier_api *api)
{
    int64_t now_ns = loop_now_ns(api->loop);
    if (api->renewed_ns && now_ns < api->renewed_ns + REFUSED_NS)
        return;
    api->renewed_ns = now_ns;
    tier_link_refused(api->link);
}

/* By the words of kube-apiserver, whatever the encoding: "… cannot impersonate resource "users" …",
 * or "cannot impersonate-on:user-info:list …". A name in a request may contain them, too; then its
 * sender is the only one to be misled. */
static bool is_about_impersonation(struct slice body)
{
    static const char words[] = " cannot impersonate";
    return memmem(body.ptr, body.len, words, sizeof(words) - 1) != NULL;
}

static void log_impersonation(struct tier_api *api, struct slice body)
{
    int64_t now_ns = loop_now_ns(api->loop);
    if (api->impersonation_logged_ns && now_ns < api->impersonation_logged_ns + REFUSED_NS)
        return;
    api->impersonation_logged_ns = now_ns;
    body.len = size_min(body.len, LOGGED_BYTES_MAX);
    tier_link_log(api->link, VIGIL_LOG_WARN,
                  "the watch tier may not impersonate a client with a certificate: %.*s",
                  SLICE_ARGS(body));
}

static bool on_refused(struct tier_forward_listener *listener, unsigned code, struct slice body,
                       struct kube_status *ret_status)
{
    struct pass *pass = CONTAINER_OF(listener, struct pass, listener);
    if (code == 401)
        renew_credentials(pass->api);
    if (code != 403 || !is_about_impersonation(body))
        return false;
    tier_count(pass->api, TIER_TOTAL_IMPERSONATIONS_REFUSED);
    log_impersonation(pass->api, body);
    (void)!kube_fail(ret_status, KUBE_FORBIDDEN,
                     "the watch tier may not impersonate clients with certificates: grant its "
                     "account the verb impersonate for users, groups and serviceaccounts, and in "
                     "the group authentication.k8s.io for uids and "
                     "userextras/authentication.kubernetes.io/credential-id; or use a token");
    return true;
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
    bool expressible = is_name_exact(user->name) && (!user->uid.len || is_name_exact(user->uid));
    for (size_t i = 0; expressible && i < user->group_count; i++)
        expressible = is_name_exact(user->groups[i]);
    return expressible;
}

enum { FIELDS_MAX = 4 }; /* besides those of groups */

/* The same user as in a review. The kube-apiserver adds the group of all who have identified
 * themselves; and to a service account without groups those that such an account has with a token,
 * so one of its groups is named. */
static size_t make_fields(const struct tier_user *user, struct slice credential,
                          struct slice authorization, struct http_field *fields)
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
    if (user->uid.len)
        fields[count++] = (struct http_field){SLICE_LITERAL("impersonate-uid"), user->uid};
    if (credential.len)
        fields[count++] = (struct http_field){
            SLICE_LITERAL("impersonate-extra-authentication.kubernetes.io%2fcredential-id"),
            credential};
    return count;
}

static void forward_as(struct pass *pass, struct slice authorization)
{
    struct tier_api *api = pass->api;
    struct http_exchange *x = pass->x;
    const struct http_certificate *certificate = http_exchange_request(x)->certificate;
    struct slice credential = certificate ? slice_from_text(certificate->id) : SLICE_EMPTY;
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct http_field *fields =
        arena_calloc(&arena, pass->user->group_count + FIELDS_MAX, sizeof(*fields));
    if (fields) {
        size_t count = make_fields(pass->user, credential, authorization, fields);
        pass->listener.refused = on_refused;
        forward(pass, tier_link_own(api->link),
                &(struct tier_head_options){.path_prefix = tier_link_path_prefix(api->link),
                                            .add = fields,
                                            .add_count = count,
                                            .drop_credentials = true});
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
        fail(pass, KUBE_SERVICE_UNAVAILABLE, error->text);
}

static void authorize(struct pass *pass)
{
    struct error error;
    struct slice authorization;
    pass->waiter.ready = on_authorization;
    enum status status =
        tier_link_authorization(pass->api->link, &pass->waiter, &authorization, &error);
    bool has_body = http_exchange_request(pass->x)->has_body;
    if (status == ST_OK)
        forward_as(pass, authorization);
    else if (status != ST_AGAIN)
        fail(pass, KUBE_SERVICE_UNAVAILABLE, error.text);
    else if (has_body)
        http_withhold(pass->x, true);
}

static void forward_certificate(struct pass *pass)
{
    if (is_expressible(pass->user))
        authorize(pass);
    else
        fail(pass, KUBE_FORBIDDEN,
             "the name, the uid or a group in the client's certificate is empty, or has blanks "
             "around it or control characters, so this watch tier cannot name it to the "
             "kube-apiserver: use the kube-apiserver's own address");
}

static void on_user(struct tier_question *question, struct tier_user *user,
                    const struct kube_status *status)
{
    struct pass *pass = CONTAINER_OF(question, struct pass, question);
    pass->user = user;
    if (user)
        forward_certificate(pass);
    else
        refuse(pass, status);
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
    struct pass *pass = pass_new(api, x);
    pass->question.done = on_user;
    if (impersonates(http_exchange_request(x)))
        fail(pass, KUBE_FORBIDDEN,
             "a client with a certificate cannot impersonate others through this watch tier, which "
             "impersonates the client itself: use a token, or the kube-apiserver's own address");
    else
        tier_identify(api->rights, &pass->question, http_exchange_request(x));
}

/* -- Watches -- */

static void on_lost(struct tier_standing *standing, enum tier_verdict verdict,
                    const struct kube_status *status)
{
    struct pass *pass = CONTAINER_OF(standing, struct pass, standing);
    (void)verdict;
    if (http_exchange_user(pass->x) == &pass->life)
        refuse(pass, status);
    else
        tier_forward_stop(pass->x, status);
}

void tier_pass_watch_on(struct tier_api *api, struct http_exchange *x, struct tier_user *user,
                        const struct tier_access *access)
{
    struct pass *pass = pass_new(api, x);
    struct kube_status status = {0};
    pass->user = tier_user_ref(user);
    pass->standing.lost = on_lost;
    if (tier_standing_add(api->rights, &pass->standing, user, access) != ST_OK) {
        (void)kube_fail_engine(&status, ST_NOMEM);
        refuse(pass, &status);
    } else if (user->by_certificate) {
        forward_certificate(pass);
    } else {
        forward(pass, tier_link_callers(api->link),
                &(struct tier_head_options){.path_prefix = tier_link_path_prefix(api->link)});
    }
}

/* -- All -- */

void tier_pass_on(struct tier_api *api, struct http_exchange *x)
{
    if (http_exchange_request(x)->peer_name) {
        pass_certificate(api, x);
        return;
    }
    (void)tier_forward(x, &(struct tier_forward_options){
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
        fail(pass, KUBE_SERVICE_UNAVAILABLE, "clients hold too much memory of the watch tier");
}
